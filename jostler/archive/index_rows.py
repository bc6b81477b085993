"""Parse the rows of an index object into files, and pack them for the cache.

**Invariant:** `unpack(pack(files), origin) == files`.  A line that is no index row is reported and
left out; it does not hide its neighbours.

It reads the rows of jostler, those of agents built before 22 November 2026 (without Start, End and
WorkID; their Hash is that of the file's bytes) and the bare lines of m-lab's Go agent; see
docs/format.md.

Pure.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import orjson
from isal import isal_zlib
from msgspec.structs import force_setattr

from jostler.archive.files import NOWHERE, Bundle, File, IndexRow, Origin
from jostler.format.go import is_bare, loadable_index
from jostler.format.names import BundleName, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_BYTES = 10  # the empty last block and the trailer: what follows the last block of a bundle
_GO_FOLDERS = 5  # of an absolute Filename: datatype, yyyy, mm, dd, name


_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class _Raw(msgspec.Struct, gc=False):
    Filename: str
    Size: int
    TimeAdded: _Instant
    Datatype: str
    Node: str
    Line: int
    Hash: str
    Offset: int
    Length: int
    Start: _Instant | msgspec.UnsetType | None = msgspec.UNSET
    End: _Instant | None = None
    WorkID: str | None = None


class _Row(msgspec.Struct, gc=False):
    raw: _Raw


_ROWS = msgspec.json.Decoder(_Row)
_PACK = msgspec.msgpack.Encoder()
_UNPACK = msgspec.msgpack.Decoder(list[File])
_UNPACK_RUNS = msgspec.msgpack.Decoder(tuple[list[tuple[str, int]], bytes])


def parse(packed: bytes, name: BundleName, bucket: str) -> tuple[list[File], list[str]]:
    """Return the files of an index object, and one sentence for each line that is no index row.

    Args:
        packed: the object's bytes.
        name: its name.
        bucket: URL of the bucket.

    Raises:
        ValueError: the object is not gzip.
    """
    try:
        plain = isal_zlib.decompress(packed, wbits=31)
    except isal_zlib.error as exc:  # type: ignore[misc]
        raise ValueError(f"{bucket}/{name} is not gzip: {exc}") from exc
    try:
        rows = [row.raw for row in _ROWS.decode_lines(plain)]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _parse_lines(plain, name, bucket)
    if not rows:
        return [], []
    if name.is_merged and all(row.Datatype == rows[0].Datatype for row in rows):
        nodes = {row.Node: origin_of(name, bucket, row.Datatype, row.Node) for row in rows}
        return [_file(row, nodes[row.Node]) for row in rows], []
    origin = origin_of(name, bucket, rows[0].Datatype, rows[0].Node)
    if any(row.Datatype != origin.datatype or row.Node != origin.node for row in rows):
        return _parse_lines(plain, name, bucket)
    return [_file(row, origin) for row in rows], []


def origin_of(name: BundleName, bucket: str, datatype: str, node: str) -> Origin:
    """Return the bundle of an index object.

    Args:
        name: of the index object.
        bucket: URL of the bucket.
        datatype: of an index row.  In an index object's name, nothing shows where a datatype with
            dashes ends and the node begins.
        node: of an index row.
    """
    index = replace(name, kind=Kind.INDEX)
    both = f"{name.datatype}-{name.node}"
    in_name = node
    if name.is_merged and both.startswith(f"{datatype}-"):  # rows of many nodes, none in the name
        in_name = both.removeprefix(f"{datatype}-")
    elif f"{datatype}-{node}" != both:  # a row of something else
        datatype, node = name.datatype, name.node
        in_name = node
    data = replace(name, kind=Kind.DATA, datatype=datatype, node=in_name)
    return Origin(
        bucket=bucket,
        data=str(data),
        index=str(index),
        datatype=datatype,
        node=node,
        day=name.day.date,
    )


def _file(row: _Raw, origin: Origin) -> File:
    start = row.Start
    is_new = start is not msgspec.UNSET
    return File(
        filename=row.Filename,
        size=row.Size,
        added=row.TimeAdded,
        line=row.Line,
        hash=row.Hash,
        hash_of_raw=is_new,
        offset=row.Offset,
        length=row.Length,
        start=start if isinstance(start, datetime) else None,
        end=row.End,
        work_id=row.WorkID,
        origin=origin,
    )


def _parse_lines(plain: bytes, name: BundleName, bucket: str) -> tuple[list[File], list[str]]:
    """Parse line by line: bare lines of the Go agent, rows with columns missing, damaged rows."""
    files: list[File] = []
    problems: list[str] = []
    origins: dict[tuple[str, str], Origin] = {}
    for number, line in enumerate(plain.split(b"\n"), 1):
        if not line:
            continue
        try:
            raw = _members(line)
            words = _names(raw, name)
            origin = origins.get(words) or origin_of(name, bucket, *words)
            files.append(_lenient(raw, origins.setdefault(words, origin), number, name))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as exc:
            problems.append(f"{bucket}/{name}: line {number} is no index row: {exc!r}")
    return files, problems


def _members(line: bytes) -> dict[str, Any]:
    if is_bare(line):
        line = loadable_index(line)
    columns = {key.lower(): value for key, value in orjson.loads(line).items()}
    return {key.lower(): value for key, value in columns.get("raw", columns).items()}


def _names(raw: dict[str, Any], name: BundleName) -> tuple[str, str]:
    """Return datatype and node of a row; the Go agent's rows have the datatype in a path."""
    if "datatype" in raw:
        return str(raw["datatype"]), str(raw["node"])
    both = f"{name.datatype}-{name.node}"
    folders = str(raw["filename"]).split("/")
    datatype = folders[-_GO_FOLDERS] if len(folders) > _GO_FOLDERS else name.datatype
    return datatype, both.removeprefix(f"{datatype}-")


def _lenient(raw: dict[str, Any], origin: Origin, number: int, name: BundleName) -> File:
    """Make a file of what a row has; a time that cannot be read is that of the bundle."""
    has_block = "offset" in raw and "length" in raw
    work_id = raw.get("workid")
    return File(
        filename=str(raw["filename"]),
        size=int(raw.get("size", 0)),
        added=_instant(raw.get("timeadded")) or name.created,
        line=int(raw.get("line", number)),
        hash=str(raw.get("hash", "")),
        hash_of_raw="start" in raw,
        offset=int(raw["offset"]) if has_block else None,
        length=int(raw["length"]) if has_block else None,
        start=_instant(raw.get("start")),
        end=_instant(raw.get("end")),
        work_id=str(work_id) if work_id else None,
        origin=origin,
    )


def _instant(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC) if value else None
    except (ValueError, OverflowError):
        return None


def pack(files: Sequence[File]) -> bytes:
    """Return the files of one index in the form that `unpack` reads."""
    fields = IndexRow.__struct_fields__
    rows = [IndexRow(*[getattr(file, name) for name in fields]) for file in files]
    packed: bytes = isal_zlib.compress(_PACK.encode(rows), 1)
    return packed


def unpack(packed: bytes, origin: Origin) -> list[File]:
    """Return the files that `pack` has written.

    Raises:
        ValueError: `packed` is something else.
    """
    try:
        files = _UNPACK.decode(isal_zlib.decompress(packed))
    except (isal_zlib.error, msgspec.DecodeError) as exc:  # type: ignore[misc]
        raise ValueError(f"no packed files: {exc}") from exc
    for file in files:
        # Nobody has seen these files yet; one shared origin costs far less than one for each.
        force_setattr(file, "origin", origin)
    return files


def pack_merged(files: Sequence[File]) -> bytes:
    """Return the files of the index of a merged bundle in the form that `unpack_merged` reads."""
    runs = [(node, len(list(same))) for node, same in groupby(files, key=attrgetter("node"))]
    packed: bytes = isal_zlib.compress(_PACK.encode((runs, pack(files))), 1)
    return packed


def unpack_merged(packed: bytes, name: BundleName, bucket: str, datatype: str) -> list[File]:
    """Return the files that `pack_merged` has written.

    Raises:
        ValueError: `packed` is something else.
    """
    try:
        runs, rest = _UNPACK_RUNS.decode(isal_zlib.decompress(packed))
    except (isal_zlib.error, msgspec.DecodeError) as exc:  # type: ignore[misc]
        raise ValueError(f"no packed files: {exc}") from exc
    files = unpack(rest, NOWHERE)
    at = 0
    for node, count in runs:
        origin = origin_of(name, bucket, datatype, node)
        for file in files[at : at + count]:
            force_setattr(file, "origin", origin)
        at += count
    return files


def bundle_of(files: Sequence[File]) -> Bundle:
    """Sum up the files of one index, at least one."""
    ends = [file.offset + file.length for file in files if file.offset and file.length]
    return Bundle(
        origin=files[0].origin,
        files=len(files),
        size_bytes=sum(file.size for file in files),
        packed_bytes=max(ends) + _END_BYTES if ends else 0,
        first=min(file.begin for file in files),
        last=max(file.finish for file in files),
    )
