"""The findings of `jostler why` in a bucket: the index rows of a file and the data they refer to.

**Invariant:** it only reads.  It derives the data object's name from the index object's name, never
from the content of an index row, and reports a file as stored only if the data object exists.

It reads the index rows of jostler and the bare lines of m-lab's Go agent; see docs/format.md.
"""

from __future__ import annotations

import json
import re
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.rows import RawColumn, row_of
from jostler.errors import JostlerError, TransientError
from jostler.format.names import INDEX, REJECTED, BundleName, Day, Kind
from jostler.why.finding import Finding, Looked, State, Value
from jostler.words import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date

    from jostler.format.names import Place
    from jostler.storage import Storage
    from jostler.why.asked import Asked

WHERE = "bucket"
READERS = 8
_PLAIN_RE = re.compile(r"[A-Za-z0-9:._-]+", re.ASCII)
_GO_TIME = "%Y/%m/%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which index objects of a bucket to read.

    Attributes:
        places: the experiment's places.
        days: read the indexes of these days.
        only_node: read the indexes of this node only; empty for all nodes.
        first_node: read the indexes of this node first; may be empty.
        most: the maximum number of index objects to read.
        show: whether to read each file's row from its data bundle too.
    """

    places: tuple[Place, ...]
    days: tuple[date, ...]
    only_node: str
    first_node: str
    most: int
    show: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One index row that matches the file.

    Attributes:
        index: the name of the index object.
        line: the line of the file's row in the data bundle, from 1.
        filename: the Filename in the index row.
        size: the file's size in bytes; -1 if unknown.
        added: when the agent read the file; if unknown, when the bundle was opened.
        hash: the digest of `raw`, or of a rejected file's bytes; may be empty.
        of_raw: whether it is so; in an index of jostler up to 0.1 it is that of the file's bytes.
        block: offset and length of the row's block; None in an index of the Go agent.
    """

    index: BundleName
    line: int
    filename: str
    size: int
    added: datetime
    hash: str
    of_raw: bool
    block: tuple[int, int] | None

    @property
    def data(self) -> BundleName:
        """The name of the data object that belongs to the index."""
        return replace(self.index, kind=Kind.DATA)


def findings(asked: Asked, storage: Storage, search: Search) -> tuple[list[Finding], Looked]:
    """Search the indexes of a bucket for a file; return the findings and what was searched."""
    found: list[Finding] = []
    try:
        names, others = _indexes(asked, storage, search)
        read = names[: search.most]
        failed: list[str] = []
        with ThreadPoolExecutor(READERS) as pool:
            for hits, problem in pool.map(lambda name: _hits(asked, storage, name), read):
                found += [one for hit in hits if (one := _finding(asked, storage, hit, search))]
                failed += [problem] if problem else []
    except JostlerError as exc:
        return found, Looked(WHERE, False, f"{storage.url}: {exc}{_hint(exc)}")
    days = f"{min(search.days)}" + (f" to {max(search.days)}" if len(search.days) > 1 else "")
    roots = ", ".join(place.root for place in search.places)
    told = f"{storage.url}: {len(read)} index objects of {roots} of {days}"
    if search.only_node:
        told += f", of node {search.only_node} alone"
    if len(names) > len(read):
        told += f"; {len(names) - len(read)} more were NOT read: give -node, or a larger -most"
    if failed:
        told += f"; {len(failed)} could NOT be read, the first: {failed[0]}"
    if others:
        told += f"; {others} objects there are no index"
    return found, Looked(WHERE, True, told)


def _hint(exc: JostlerError) -> str:
    return f" ({exc.hint})" if exc.hint else ""


def _indexes(asked: Asked, storage: Storage, search: Search) -> tuple[list[BundleName], int]:
    """List the index objects that may contain the file, the most likely ones first.

    Returns:
        Their names, and the number of other objects in these folders.
    """
    found = []
    others = 0
    for place in search.places:
        for day in search.days:
            for info in storage.list(f"{place.root}/{INDEX}/{Day(day).path}/"):
                try:
                    name = BundleName.parse(info.name)
                except ValueError:
                    others += 1
                    continue
                if asked.datatype and name.datatype not in {asked.datatype, REJECTED}:
                    continue
                if search.only_node in {"", name.node}:
                    found.append(name)
    found.sort(key=lambda name: (name.node == search.first_node, name.created), reverse=True)
    return found, others


def _hits(asked: Asked, storage: Storage, name: BundleName) -> tuple[list[Hit], str]:
    """Return the rows of one index that match the file, and why it could not be read, if so."""
    try:
        try:
            data = storage.read(str(name)).data
        except TransientError:
            data = storage.read(str(name)).data  # one failure must not end thousands of reads
        plain = zlib.decompress(data, wbits=zlib.MAX_WBITS | 16)
    except (zlib.error, JostlerError) as exc:
        return [], f"{name}: {exc}"
    return list(_told(asked, name, plain)), ""


def _told(asked: Asked, name: BundleName, plain: bytes) -> Iterator[Hit]:
    # JSON can spell a name with special characters in several ways; then parse each row.
    needle = asked.name.encode() if _PLAIN_RE.fullmatch(asked.name) else b""
    for number, line in enumerate(plain.split(b"\n"), 1):
        if needle not in line or not line:
            continue
        try:
            hit = _hit(name, number, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # no row
        if asked.matches_row(hit.filename):
            yield hit


def _hit(name: BundleName, number: int, columns: dict[str, Any]) -> Hit:
    """Parse one index row.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is not an index row.
    """
    raw = {key.lower(): value for key, value in columns.items()}
    raw = raw.get("raw", raw)
    told = {key.lower(): value for key, value in raw.items()}
    block = (int(told["offset"]), int(told["length"])) if "offset" in told else None
    return Hit(
        index=name,
        line=int(told.get("line", number)),
        filename=str(told["filename"]),
        size=int(told.get("size", -1)),
        added=_instant(str(told.get("timeadded"))) or name.created,
        hash=str(told.get("hash", "")),
        of_raw="start" in told,
        block=block,
    )


def _instant(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        pass
    try:
        return datetime.strptime(text, _GO_TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _finding(asked: Asked, storage: Storage, hit: Hit, search: Search) -> Finding | None:
    """Describe the data row that an index row refers to; None if it is another file's."""
    name = str(hit.data)
    is_rejection = hit.data.datatype == REJECTED
    stored = Finding(
        state=State.STORED,
        file=f"{hit.data.datatype}/{hit.filename}" if hit.block else hit.filename,
        since=hit.added,
        why="its row is in a data bundle",
        next="the loader loads it",
        evidence=_evidence(storage, hit),
    )
    if not any(info.name == name for info in storage.list(name)):
        why = "an index tells of it, but the data bundle is not in the bucket"
        following = "find out who removed the object; without it only BigQuery may have the row"
        return replace(stored, state=State.MISSING, why=why, next=following)
    if not (is_rejection or search.show):
        return stored
    row = row_of(storage, name, hit.filename, hit.block)
    checked = row.checked(hit.size, hit.hash, rejected=is_rejection, of_raw=hit.of_raw)
    evidence = {**stored.evidence, "checked": checked}
    if not row.raw:
        following = "`jostler verify` tells what else differs"
        why = "an index tells of it, but its row could not be had"
        return replace(stored, state=State.MISSING, why=why, next=following, evidence=evidence)
    found = replace(stored, evidence=evidence, row=row.raw if search.show else b"")
    return _rejected(asked, hit, row, found) if is_rejection else found


def _rejected(asked: Asked, hit: Hit, row: RawColumn, found: Finding) -> Finding | None:
    """Add the reason from a rejected1 row to a finding; None if it is another file's."""
    told = row.members("Datatype", "Reason", "Detail", "Field")
    if asked.datatype not in {"", told["Datatype"]}:
        return None
    following = "mend the service or the schema; the row's Content has the file's bytes"
    if not hit.hash:
        following = "mend or remove the file: it stays in the spool, its bytes are not stored"
    return replace(
        found,
        state=State.REJECTED,
        file=f"{told['Datatype']}/{hit.filename}",
        why=f"{told['Reason']}: {told['Detail']}",
        next=following,
        evidence=found.evidence
        | {key.lower(): told[key] for key in ("Reason", "Field", "Detail") if told[key]},
    )


def _evidence(storage: Storage, hit: Hit) -> dict[str, Value]:
    evidence: dict[str, Value] = {"object": f"{storage.url}/{hit.data}", "line": hit.line}
    if hit.block:
        evidence |= {"offset": hit.block[0], "length": hit.block[1]}
    evidence |= {"index": f"{storage.url}/{hit.index}", "node": hit.data.node}
    if hit.size >= 0:
        evidence["size"] = hit.size
    if hit.hash:
        evidence["hash"] = hit.hash
    return evidence | {"read": rfc3339(hit.added)}


def days_of(asked: Asked, files: Iterable[str], count: int, today: date) -> tuple[date, ...]:
    """Return the days whose indexes to read, newest first; none when no day is known.

    Args:
        asked: the file, whose path may contain its day.
        files: paths of the file below the spool; each may contain a day.
        count: the number of days to read.  If the file's day is known, they begin with it: the Go
            agent stores files under the day of upload, which may be later.  Otherwise they are
            the last days up to `today`.  0 means one day if it is known, else none.
        today: the current day in UTC.
    """
    known = {asked.day} if asked.day else set()
    for file in files if not known else ():
        try:
            known.add(Day.parse("/".join(file.split("/")[-4:-1])).date)
        except ValueError:
            continue
    steps = [timedelta(days=step) for step in range(max(1, count))]
    if known:
        found = {day + step for day in known for step in steps}
    else:
        found = {today - step for step in steps} if count else set()
    return tuple(sorted(found, reverse=True))
