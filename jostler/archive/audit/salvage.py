"""Read what can still be read of a damaged bundle, and make a new bundle of it.

**Invariant:** where an index has a row's Hash, the row is taken only if its `raw` has that hash and
its other columns are those that the index row has.  Where no hash of the whole `raw` is known, no
row of a damaged block is taken, and none at all if it is not known which block is damaged: a wrong
row must not become a good one.  A row that is taken keeps each byte but its ArchiveURL, which
becomes the new object's.

Pure: takes bytes, returns bytes.
"""

from __future__ import annotations

from base64 import b64decode
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

import orjson
from isal import isal_zlib

from jostler.archive.audit.explain import nodes_of
from jostler.archive.audit.remake import (
    by_filename,
    facts_of,
    index_of,
    known_files,
    micros,
    of_another,
)
from jostler.archive.audit.stream import part, readable
from jostler.archive.compact_order import digest_of
from jostler.archive.hashes import digest
from jostler.archive.keeping import Made
from jostler.archive.lines import Row, RowError, members, row
from jostler.format.blocks import HEADER, BlockWriter
from jostler.format.compression import SMALL
from jostler.format.names import REJECTED, BundleName, Kind
from jostler.format.node_table import Run, header
from jostler.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from jostler.archive.files import File
    from jostler.bundle.index_fields import IndexFields

_SHOWN = 20
_Columns = tuple[object, object, object]
"""date, Version and GitCommit."""


class DoubtfulError(Exception):
    """What can be read may be wrong; the message says why."""


@dataclass(slots=True)
class Salvaged:
    """What a damaged bundle still has.

    Attributes:
        rows: the rows, in order.
        lost: the lines that are lost, as far as an index names them.
        lost_files: their Filenames.
        verified: whether each row was held against a hash.
        known: whether an index showed how many rows there were.
        named: whether it named every line up to the last one that it knew.
        nodes: of a merged bundle the node of each row; else empty.
        doubtful: bytes of rows that no hash verifies and that lie in a damaged block.
    """

    rows: list[Row] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    lost_files: list[str] = field(default_factory=list)
    verified: bool = False
    known: bool = False
    named: bool = True
    nodes: list[str] = field(default_factory=list)
    doubtful: int = 0

    @property
    def summary(self) -> str:
        """What was saved and what is lost, in one sentence."""
        saved = f"{counted(len(self.rows), 'row')} saved"
        if not self.verified:
            saved += " without a hash to verify them by"
        if self.doubtful:
            saved += f", {self.doubtful} bytes of a damaged block are left out"
        if not self.known:
            return f"{saved}; without its index it is not known which lines are lost"
        if not self.named:
            saved += ", lines that its index does not name are left out"
        if not self.lost:
            return f"{saved}, none is lost"
        names = ", ".join(self.lost_files[:_SHOWN])
        more = f" and {len(self.lost) - _SHOWN} more" if len(self.lost) > _SHOWN else ""
        return f"{saved}; lost: {_ranges(self.lost)} ({names}{more})"


def salvage(name: BundleName, bucket: str, data: bytes, index: bytes | None) -> Salvaged:
    """Return what can be read of a damaged bundle.

    Args:
        name: of the data object.
        bucket: URL of the bucket.
        data: its bytes.
        index: bytes of the index object; None if there is none.

    Raises:
        DoubtfulError: a row with wrong bytes could not be told from a good one.
    """
    files = known_files(replace(name, kind=Kind.INDEX), bucket, index)
    files = sorted({(one.line, one.filename): one for one in files}.values(), key=_line_of)
    if not files or any(file.offset is None or file.length is None for file in files):
        if name.is_merged:
            raise DoubtfulError("a merged bundle cannot be read in part without its index")
        return _unverified(name, data, files)
    return _verified(name, data, files, index or b"")


def _line_of(file: File) -> int:
    return file.line


def _verified(name: BundleName, data: bytes, files: Sequence[File], index: bytes) -> Salvaged:
    """Return the rows that have the Hash that the index has of them.

    Raises:
        DoubtfulError: nodes are not known, no Hash is of whole rows, or rows are another bundle's.
    """
    nodes = _nodes(name, data, files)
    columns, sure = _columns_of(index, name), _sure_lines(name, data)
    found = Salvaged(known=True, verified=True)
    found.named = [file.line for file in files] == list(range(1, len(files) + 1))
    known = zip(files, nodes, strict=True)
    for (offset, length), same in groupby(known, key=lambda one: (one[0].offset, one[0].length)):
        assert offset is not None
        assert length is not None
        there: dict[str, list[Row]] = {}
        # What follows the last line feed is a row that is cut off.
        for line in part(data[offset : offset + length]).split(b"\n")[:-1]:
            if one := _row(line + b"\n"):
                _check_own(name, [one] if one.line in sure else [])
                there.setdefault(str(one.archiver["Filename"]), []).append(one)
        for file, node in same:
            left = there.get(file.filename, [])
            rows = [
                one
                for one in left
                if _has_hash(one, file)
                # A Hash is that of `raw`, or of a part of it, alone.
                and (one.line in sure or _columns(one) == columns.get((file.filename, file.line)))
            ]
            _take(found, file, rows[0] if rows else None)
            if rows:
                left.remove(rows[0])
                found.nodes.append(node)
    if not name.is_merged:
        found.nodes.clear()
    return found


def _columns_of(index: bytes, name: BundleName) -> dict[tuple[str, int], _Columns]:
    """Return what an index says of the columns beside `raw` of each row, by Filename and line.

    Nothing of rows of rejected1, for no Hash is of the whole of their `raw`.

    Raises:
        DoubtfulError: it is the index of another bundle.
    """
    found: dict[tuple[str, int], _Columns] = {}
    others = set()
    for line in isal_zlib.decompress(index, wbits=31).split(b"\n"):
        with suppress(RowError, KeyError, TypeError, ValueError, OverflowError):
            one = row(line)
            raw = members(one.raw)
            if str(raw["ArchiveURL"]).endswith(f"/{name}"):
                found[str(raw["Filename"]), int(raw["Line"])] = _columns(one)
            else:
                others.add(str(raw["ArchiveURL"]))
    if others and not found:
        raise DoubtfulError(f"its index is that of {min(others)}")
    return {} if name.datatype == REJECTED else found


def _columns(one: Row) -> _Columns:
    """Return the columns that a row and its index row share."""
    return one.date, one.archiver["Version"], one.archiver["GitCommit"]


def _sure_lines(name: BundleName, data: bytes) -> set[bytes]:
    """Return the lines of the blocks that are known not to be damaged.

    Raises:
        DoubtfulError: none is known, and no Hash is of whole rows.
    """
    there = readable(data)
    if name.datatype == REJECTED and (not there.is_sure or (there.doubtful and not there.parts)):
        raise DoubtfulError("a Hash is that of Content alone, and any row may be damaged")
    lines = (line + b"\n" for plain in there.parts for line in plain.split(b"\n"))
    return set(lines) if there.is_sure else set()


def _check_own(name: BundleName, rows: Iterable[Row]) -> None:
    if other := of_another(name, rows):
        raise DoubtfulError(f"its rows are those of {other}")


def _nodes(name: BundleName, data: bytes, files: Sequence[File]) -> list[str]:
    """Return the node of each row.

    Raises:
        DoubtfulError: those of a merged bundle are not known.
    """
    if not name.is_merged:
        return [name.node] * len(files)
    try:
        nodes = nodes_of(data)
    except ValueError:
        nodes = []
    if not nodes:  # the header is damaged: the index has the nodes, too
        return [file.node for file in files]
    if len(nodes) != len(files):
        raise DoubtfulError("its table of nodes is that of other rows than its index")
    return nodes


def _has_hash(one: Row, file: File) -> bool:
    """Say whether a row is the one that its index row has the Hash of."""
    if file.origin.datatype == REJECTED:
        return not file.hash or digest(_content(one)) == file.hash
    if file.hash_of_raw:
        return digest(one.raw) == file.hash
    # An earlier form: of the file's bytes, of which the line break at the end may be missing.
    return file.hash in {digest(one.raw), digest(one.raw + b"\n")}


def _content(one: Row) -> bytes:
    try:
        return b64decode(str(members(one.raw).get("Content", "")), validate=True)
    except (RowError, ValueError):
        return b""


def _take(found: Salvaged, file: File, one: Row | None) -> None:
    if one is None:
        found.lost.append(file.line)
        found.lost_files.append(file.filename)
    else:
        found.rows.append(one)


def _unverified(name: BundleName, data: bytes, files: Sequence[File]) -> Salvaged:
    """Return rows that no hash verifies: without index, or with one of the Go agent.

    Raises:
        DoubtfulError: a row with wrong bytes could not be told from a good one.
    """
    there = readable(data)
    rows = []
    for plain in there.parts:
        *lines, rest = plain.split(b"\n")
        rows += [one for line in lines if (one := _row(line + b"\n"))]
        rows += [one for one in [_row(rest)] if one]
    if rows and not there.is_sure:
        raise DoubtfulError("its check sum is wrong, and no index says which rows are good")
    if there.doubtful and not rows:
        raise DoubtfulError("it is damaged, and no index says which rows are good")
    _check_own(name, rows)
    found = Salvaged(known=bool(files), doubtful=there.doubtful)
    if not files:
        found.rows = rows
        return found
    named = {str(one.archiver["Filename"]): one for one in rows}
    for file in files:
        one = named.get(file.filename)
        is_whole = one is not None and len(one.line.rstrip(b"\n")) == file.size
        _take(found, file, one if is_whole else None)
    return found


def _row(line: bytes) -> Row | None:
    if not line:
        return None
    try:
        one = row(line)
    except RowError:
        return None
    # Only the Go agent leaves out the last line feed.
    return one if one.go or line.endswith(b"\n") else None


def _ranges(lines: Sequence[int]) -> str:
    """Write line numbers as `lines 3, 7 to 9`."""
    parts = []
    for _, run in groupby(enumerate(lines), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in run]
        last = f" to {numbers[-1]}" if len(numbers) > 1 else ""
        parts.append(f"{numbers[0]}{last}")
    return f"line{'s' if len(lines) > 1 else ''} {', '.join(parts)}"


def later(name: BundleName, saved: Salvaged, nth: int) -> BundleName:
    """Return the n-th name that a new bundle may have: microseconds after the damaged one's.

    A merged bundle is named by its rows.
    """
    if not name.is_merged:
        return replace(name, created=name.created + timedelta(microseconds=nth))
    identities = [
        (node, str(one.archiver["Filename"]), bytes.fromhex(digest(one.raw)))
        for node, one in zip(saved.nodes, saved.rows, strict=True)
    ]
    return BundleName.merged(name.place, name.datatype, name.day, digest_of(identities))


def rewritten(
    name: BundleName,
    bucket: str,
    saved: Salvaged,
    *,
    old: BundleName,
    index: bytes | None,
    added: datetime,
    schema: str,
    fields: IndexFields | None = None,
) -> tuple[Made, Made]:
    """Return data object and index object of a new bundle.

    Args:
        name: of the new data object.
        bucket: URL of the bucket.
        saved: its rows, at least one.
        old: the damaged data object.
        index: bytes of its index object; None if there is none.
        added: TimeAdded of the rows of which the index has none.
        schema: digest of the schema that judged the damaged bundle; empty if none.
        fields: fill Start, End and WorkID where the index does not.
    """
    url = orjson.dumps(f"{bucket}/{name}")
    runs = [Run(node, sum(1 for _ in same)) for node, same in groupby(saved.nodes)]
    writer = BlockWriter(SMALL, header=header(runs) if runs else HEADER)
    for nth, one in enumerate(saved.rows, 1):
        line = one.line.replace(orjson.dumps(one.archiver["ArchiveURL"]), url, 1)
        if one.go:
            line = line.rstrip(b"\n") + (b"\n" if nth < len(saved.rows) else b"")
        writer.add(line)
    data = writer.finish()
    known = by_filename(known_files(replace(old, kind=Kind.INDEX), bucket, index))
    its_index = index_of(
        name,
        replace(name, kind=Kind.INDEX),
        bucket,
        data,
        known=known,
        added=added,
        fields=fields,
    )
    times = [file.added for name in _names(saved) for file in known.get(name, ())] or [added]
    metadata = facts_of(saved.rows, [micros(when) for when in times]) | {"salvaged-from": str(old)}
    # By the digest the loader knows that every row fits this schema, and need not read them.
    # Rows that no hash verifies must be judged anew.
    if schema and saved.verified:
        metadata["schema"] = schema
    return Made(name=str(name), data=data, metadata=metadata), its_index


def _names(saved: Salvaged) -> list[str]:
    return [str(one.archiver["Filename"]) for one in saved.rows]
