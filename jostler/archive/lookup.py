"""The findings of `jostler why` in a bucket: the index rows of a file and the data they refer to.

**Invariant:** it only reads.  It reports a file as stored only if the data object exists.  All rows
of the file are findings, also those of a bundle that came again.
"""

from __future__ import annotations

import json
from base64 import b64decode
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from jostler.archive.cache import IndexCache
from jostler.archive.files import Tally
from jostler.archive.hashes import digest
from jostler.archive.indexes import IndexReader
from jostler.archive.listing import folders
from jostler.archive.pairs import other_half
from jostler.archive.query import Query
from jostler.archive.reading import RowReader
from jostler.errors import JostlerError
from jostler.format.names import REJECTED, BundleName, Day
from jostler.format.row import DISK_LACK, one_line
from jostler.why.finding import Finding, Looked, State, Value, after_rejection
from jostler.words import rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import date

    from jostler.archive.files import File
    from jostler.archive.indexes import Found
    from jostler.archive.reading import Row
    from jostler.format.names import Place
    from jostler.storage import Storage
    from jostler.why.asked import Asked

WHERE = "bucket"
HASH_KNOWN = "the row was read, and its bytes have the hash"
MISNAMED = frozenset({"name", "path"})
HASH_AS_DATA = "hash as data"
"""The evidence of a rejected file with line breaks, which are not stored with data."""
HASH_UNKNOWN = "the row was read; not all bytes of the file are in it, so its hash is not known"


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


def findings(asked: Asked, storage: Storage, search: Search) -> tuple[list[Finding], Looked]:
    """Search the indexes of a bucket for a file; return the findings and what was searched."""
    found: list[Finding] = []
    tally = Tally()
    query = Query(
        datatypes=(asked.datatype, REJECTED) if asked.datatype else (),
        nodes=(search.only_node,) if search.only_node else (),
        with_rejected=True,
    )
    try:
        with (
            closing(IndexReader(storage, IndexCache(None, 0))) as indexes,
            closing(RowReader(lambda _url: storage)) as rows,
        ):
            names = _indexes(indexes, storage, search, query, tally)
            read = names[: search.most]

            def matching(is_meant: Callable[[File], bool]) -> Iterator[Finding]:
                for index in indexes.read(read, query, tally, rows=True):
                    for file in filter(is_meant, index.files):
                        one = _finding(asked, storage, rows, file, search)
                        if one:
                            yield one

            found += matching(lambda file: asked.matches_row(file.filename))
            if renamed := _hashes_of_misnamed(found):
                # `jostler requeue` gave the file a name that is allowed: it is found by its bytes.
                found += matching(lambda file: file.hash in renamed and file.datatype != REJECTED)
    except JostlerError as exc:
        return found, Looked(WHERE, False, f"{storage.url}: {exc}{_hint(exc)}")
    return found, Looked(WHERE, True, _searched(storage, search, tally, len(read), len(names)))


def _searched(storage: Storage, search: Search, tally: Tally, read: int, there: int) -> str:
    """Return what was searched, in words: so many index objects of those that are there."""
    days = f"{min(search.days)}" + (f" to {max(search.days)}" if len(search.days) > 1 else "")
    roots = ", ".join(place.root for place in search.places)
    text = f"{storage.url}: {read} index objects of {roots} of {days}"
    if search.only_node:
        text += f", of node {search.only_node} alone"
    if there > read:
        text += f"; {there - read} more were NOT read: give -node, or a larger -most"
    if tally.problems:
        text += f"; {len(tally.problems)} could NOT be read, the first: {tally.problems[0]}"
    if tally.others:
        text += f"; {tally.others} objects there are no index"
    return text


def _hashes_of_misnamed(found: Iterable[Finding]) -> set[Value]:
    """Return the hashes as data of files that were rejected for their name or path."""
    evidences = [one.evidence for one in found if one.state is State.REJECTED]
    odd = [evidence for evidence in evidences if evidence.get("reason") in MISNAMED]
    return {
        evidence.get(HASH_AS_DATA) or evidence["hash"] for evidence in odd if "hash" in evidence
    }


def _hint(exc: JostlerError) -> str:
    return f" ({exc.hint})" if exc.hint else ""


def _indexes(
    indexes: IndexReader, storage: Storage, search: Search, query: Query, tally: Tally
) -> list[Found]:
    """List the index objects that may contain the file, the most likely ones first."""
    found = []
    for day in search.days:
        for folder in folders(storage, search.places, day, day, newest_first=False):
            found += indexes.wanted(query, folder, tally)
    first = f"-{search.first_node}-"
    found.sort(key=lambda one: (first in one.ending, one.base), reverse=True)
    return found


def _finding(
    asked: Asked, storage: Storage, rows: RowReader, file: File, search: Search
) -> Finding | None:
    """Describe the data row that an index row refers to; None if it is another file's."""
    file = _located(storage, file)
    is_rejection = file.datatype == REJECTED
    of_go = file.filename.startswith("/")
    stored = Finding(
        state=State.STORED,
        file=file.filename if of_go else f"{file.datatype}/{file.filename}",
        since=file.added,
        why="its row is in a data bundle",
        next="the loader loads it",
        evidence=_evidence(file),
    )
    name = file.origin.data
    if not any(info.name == name for info in storage.list(name)):
        why = "an index tells of it, but the data bundle is not in the bucket"
        following = "find out who removed the object; without it only BigQuery may have the row"
        return replace(stored, state=State.MISSING, why=why, next=following)
    if not (is_rejection or search.show):
        return stored
    try:
        row = rows.read(file)
    except JostlerError as exc:
        following = "`jostler verify` tells what else differs"
        why = "an index tells of it, but its row could not be had"
        evidence = {**stored.evidence, "checked": str(exc)}
        return replace(stored, state=State.MISSING, why=why, next=following, evidence=evidence)
    evidence = {**stored.evidence, "checked": HASH_KNOWN if row.verified else HASH_UNKNOWN}
    found = replace(stored, evidence=evidence, row=row.raw if search.show else b"")
    return _rejected(asked, row, found) if is_rejection else found


def _located(storage: Storage, file: File) -> File:
    """Find the data bundle of a row whose index does not show where the datatype's name ends.

    That is so for m-lab's Go agent and a datatype with dashes.
    """
    origin = file.origin
    for name in [origin.data, *map(str, other_half(BundleName.parse(origin.index)))]:
        if any(info.name == name for info in storage.list(name)):
            found = BundleName.parse(name)
            node = origin.node if found.is_merged else found.node
            moved = replace(origin, data=name, datatype=found.datatype, node=node)
            return msgspec.structs.replace(file, origin=moved)
    return file


def _rejected(asked: Asked, row: Row, found: Finding) -> Finding | None:
    """Add the reason from a rejected1 row to a finding; None if it is another file's."""
    columns = _members(row.raw, "Datatype", "Reason", "Detail", "Field", "Content")
    if asked.datatype not in {"", columns["Datatype"]}:
        return None
    following = after_rejection(columns["Reason"])
    if not row.file.hash and columns["Reason"] != DISK_LACK:
        following = "mend or remove the file: it stays in the spool, its bytes are not stored"
    return replace(
        found,
        state=State.REJECTED,
        file=f"{columns['Datatype']}/{row.file.filename}",
        why=f"{columns['Reason']}: {columns['Detail']}",
        next=following,
        evidence=found.evidence
        | {key.lower(): columns[key] for key in ("Reason", "Field", "Detail") if columns[key]}
        | _hash_as_data(row, columns["Content"]),
    )


def _hash_as_data(row: Row, content: str) -> dict[str, Value]:
    """Return the Hash that a rejected file has if it is stored as data, unless it is the same."""
    try:
        found = digest(one_line(b64decode(content)))
    except ValueError:
        return {}
    return {} if not row.file.hash or found == row.file.hash else {HASH_AS_DATA: found}


def _members(raw: bytes, *names: str) -> dict[str, str]:
    """Return members of `raw` as text; a missing member is an empty text."""
    try:
        values = json.loads(raw)
    except ValueError:
        values = {}
    return {name: str(values.get(name, "")) for name in names}


def _evidence(file: File) -> dict[str, Value]:
    evidence: dict[str, Value] = {"object": file.origin.url, "line": file.line}
    if file.offset is not None and file.length is not None:
        evidence |= {"offset": file.offset, "length": file.length}
    index = f"{file.origin.bucket}/{file.origin.index}"
    evidence |= {"index": index, "node": file.node, "size": file.size}
    if file.hash:
        evidence["hash"] = file.hash
    return evidence | {"read": rfc3339(file.added)}


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
