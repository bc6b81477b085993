"""Read files out of their bundles, and compare each with the hash in its index.

**Invariant:** `raw` is returned byte for byte as stored, never parsed and written again; a row that
does not have its Hash is never returned.  A row costs one ranged request, whatever the size of its
bundle; rows of the same and of neighbouring blocks share one.
"""

from __future__ import annotations

from base64 import b64decode
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import orjson
from isal import isal_zlib

from jostler.archive import hashes
from jostler.archive.hashes import digest
from jostler.errors import DamageError, JostlerError, MissingError, TransientError
from jostler.format.names import REJECTED
from jostler.format.row import BOM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jostler.archive.files import File
    from jostler.storage import Storage

READERS = 8
AHEAD = 8
BLOCKS_MOST = 32
"""Blocks of one request; a block is at most 256 KiB of rows, or one longer row."""
GAP_BYTES = 64 * 1024
"""Bytes between two wanted blocks that are read along rather than by a request of their own."""
_HEAD_END = b'},"raw":'
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENDINGS = (b"\n", b"\r\n", b"\r")


@dataclass(frozen=True, slots=True)
class Row:
    """A file that was read.

    Attributes:
        file: the file.
        raw: its content, as stored.
        verified: whether it was held against a hash.  Rows of m-lab's Go agent have none, and some
            rows of agents built before 22 November 2026 have one of bytes that are not stored.
    """

    file: File
    raw: bytes
    verified: bool


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that could not be read, with the reason."""

    file: File
    error: JostlerError


class _Stored(NamedTuple):
    """A row of a bundle.

    Attributes:
        raw: as stored.
        hash: the Hash of it; of a row of rejected1, that of the file's bytes in it.
    """

    raw: bytes
    hash: str


class RowReader:
    """Reads files.

    Args:
        bucket: opens the bucket of a URL; may be asked for the same one again and again.
        moved: finds a file again whose bundle went away since it was found, as compaction merges
            bundles; returns None if it is nowhere.
    """

    def __init__(
        self,
        bucket: Callable[[str], Storage],
        moved: Callable[[File], File | None] = lambda _file: None,
    ) -> None:
        self._bucket = bucket
        self._moved = moved
        self._digests = hashes.many()
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="rows")

    def close(self) -> None:
        """Read nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def read(self, file: File) -> Row:
        """Read one file.

        Raises:
            DamageError: the row is not there, or does not have its Hash.
            StorageError: a request to the bucket fails.
        """
        (found,) = self._part([file])
        if isinstance(found, Unread):
            raise found.error
        return found

    def read_all(self, files: Iterable[File]) -> Iterator[Row | Unread]:
        """Yield the files of each run of one bundle in the order of their blocks.

        Files of one bundle that follow one another share requests; several requests are on their
        way at once.
        """
        ahead: deque[Future[list[Row | Unread]]] = deque()
        try:
            for part in _parts(files):
                ahead.append(self._pool.submit(self._part, part))
                if len(ahead) > AHEAD:
                    yield from ahead.popleft().result()
            while ahead:
                yield from ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()

    def _part(self, files: Sequence[File]) -> list[Row | Unread]:
        """Read files of one bundle with one request."""
        try:
            found = self._raws(files)
        # Between the query and this read, compaction may have merged the bundle and removed it.
        except MissingError as exc:
            error = DamageError(f"{files[0].origin.url} is not in the bucket, but its index is")
            error.__cause__ = exc
            return [self._again(file) or Unread(file, error) for file in files]
        except JostlerError as exc:
            return [Unread(file, exc) for file in files]
        return [_checked(file, _own(file, found.get(file.filename, []))) for file in files]

    def _again(self, file: File) -> Row | Unread | None:
        """Read a file where it is now; return None if it has not moved."""
        try:
            moved = self._moved(file)
            raws = self._raws([moved]) if moved else {}
        except JostlerError as exc:
            return Unread(file, exc)
        return _checked(moved, _own(moved, raws.get(moved.filename, []))) if moved else None

    def _raws(self, files: Sequence[File]) -> dict[str, list[_Stored]]:
        """Return the wanted rows by Filename; in a merged bundle several rows may have one."""
        origin = files[0].origin
        found: dict[str, list[_Stored]] = {}
        storage = self._bucket(origin.bucket)
        wanted = {file.filename for file in files}
        blocks = _blocks(files)
        if not blocks:
            data = _retried(lambda: storage.read(origin.data).data)
            self._add(found, _inflated(data, 31, origin.url), wanted, origin.datatype)
            return found
        start, end = blocks[0][0], max(offset + length for offset, length in blocks)
        data = _retried(lambda: storage.read_range(origin.data, start, end - start))
        view = memoryview(data)
        for offset, length in blocks:
            packed = view[offset - start : offset - start + length]
            where = f"{origin.url}, block {offset}+{length}"
            self._add(found, _inflated(packed, -15, where), wanted, origin.datatype)
        return found

    def _add(
        self, found: dict[str, list[_Stored]], plain: bytes, wanted: set[str], datatype: str
    ) -> None:
        """Add the wanted rows of a block, hashed while the processor still has them at hand."""
        rows = list(_rows(plain, wanted))
        contents = [_content(raw) if datatype == REJECTED else raw for _, raw in rows]
        for (filename, raw), its_hash in zip(rows, self._digests(contents), strict=True):
            found.setdefault(filename, []).append(_Stored(raw, its_hash))


def _own(file: File, rows: list[_Stored]) -> _Stored | None:
    """Return the file's own row of those with its Filename; None if there is none."""
    if len(rows) > 1:
        for row in rows:
            if row.hash == file.hash if file.hash else _is_of(row.raw, file):
                return row
    return rows[0] if rows else None


def _is_of(raw: bytes, file: File) -> bool:
    """Say whether a row of rejected1, whose file was too large to have a hash, is of a file."""
    try:
        columns = orjson.loads(raw)
        added = datetime.fromisoformat(columns["TimeAdded"])
    except (ValueError, KeyError, TypeError):
        return False
    return bool(columns.get("Node") == file.node and added == file.added)


def _parts(files: Iterable[File]) -> Iterator[list[File]]:
    """Cut files into groups of one request each."""
    for _origin, run in groupby(files, key=attrgetter("origin")):
        part: list[File] = []
        blocks = 0
        for file in sorted(run, key=lambda file: (file.offset or 0, file.line)):
            is_new = not part or file.offset != part[-1].offset
            if part and is_new and not (blocks < BLOCKS_MOST and _is_near(part[-1], file)):
                yield part
                part, blocks = [], 0
            part.append(file)
            blocks += is_new
        yield part


def _is_near(last: File, file: File) -> bool:
    """Say whether the block of a file is read with the one before it."""
    if file.offset is None or file.length is None or last.offset is None or last.length is None:
        return False
    return file.offset - (last.offset + last.length) <= GAP_BYTES


def _blocks(files: Sequence[File]) -> list[tuple[int, int]]:
    """Return offset and length of the blocks; none if one file's is not known."""
    blocks = {(file.offset, file.length) for file in files}
    known = [(offset, length) for offset, length in blocks if offset is not None and length]
    return sorted(known) if len(known) == len(blocks) else []


def _retried(request: Callable[[], bytes]) -> bytes:
    try:
        return request()
    except TransientError:
        return request()  # one failure must not end thousands of reads


def _inflated(packed: bytes | memoryview, wbits: int, where: str) -> bytes:
    """Decompress a block or a whole object.

    Raises:
        DamageError: it is damaged.
    """
    try:
        if wbits > 0:
            return bytes(isal_zlib.decompress(packed, wbits=wbits))
        # A block ends with a full flush and not with the end of the stream (RFC 1951, zlib's
        # manual: Z_FULL_FLUSH); `decompress` would take that for cut off.
        return bytes(isal_zlib.decompressobj(wbits).decompress(packed))
    except (isal_zlib.error, EOFError) as exc:  # type: ignore[misc]
        raise DamageError(f"{where} does not decompress: {exc}") from exc


def _rows(plain: bytes, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """Yield Filename and `raw` of the wanted rows; nothing is copied but these."""
    start, size = 0, len(plain)
    while start < size:
        end = plain.find(b"\n", start)
        end = size if end < 0 else end
        at = plain.find(_HEAD_END, start, end)  # not inside of a string: there quotes are escaped
        try:
            filename = orjson.loads(plain[start : at + 1] + b"}")["archiver"]["Filename"]
            if filename in wanted:
                yield filename, plain[at + len(_HEAD_END) : end - 1]
        except (ValueError, KeyError, TypeError):
            # What is no row is left out; whoever wants it is told that it is not there.
            with suppress(msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError):
                filename, raw = _other_row(plain[start:end])
                if filename in wanted:
                    yield filename, raw
        start = end + 1


def _other_row(line: bytes) -> tuple[str, bytes]:
    """Take apart a row with other spelling or order: those of m-lab's Go agent."""
    columns = {key.lower(): bytes(value) for key, value in _TOP.decode(line).items()}
    archiver = {key.lower(): value for key, value in orjson.loads(columns["archiver"]).items()}
    return archiver["filename"], columns["raw"]


def _checked(file: File, row: _Stored | None) -> Row | Unread:
    """Hold a row against the Hash in its index; None stands for one that is not there."""
    if row and row.hash == file.hash:
        return Row(file, row.raw, verified=True)
    where = f"{file.origin.url}, line {file.line} ({file.filename})"
    if row is None:
        return Unread(file, DamageError(f"{where}: the row is not where its index says"))
    raw = row.raw
    if not file.hash:
        return Row(file, raw, verified=False)
    if not file.hash_of_raw and file.datatype != REJECTED and len(raw) < file.size:
        # The hash is that of the file with its line breaks, which are not stored.
        if any(digest(one) == file.hash for one in _originals(raw, file.size)):
            return Row(file, raw, verified=True)
        return Row(file, raw, verified=False)
    text = f"{where}: the row has hash {row.hash}, its index says {file.hash}"
    return Unread(file, DamageError(text, hint="`jostler verify` checks the whole bundle"))


def _originals(raw: bytes, size: int) -> Iterator[bytes]:
    """Yield the likely contents of a file of this size that became `raw`."""
    for start in (b"", BOM):
        for end in (b"", *_ENDINGS):
            if len(start) + len(raw) + len(end) == size:
                yield start + raw + end


def _content(raw: bytes) -> bytes:
    """Return the bytes of a rejected file."""
    try:
        return b64decode(orjson.loads(raw)["Content"])
    except (ValueError, KeyError, TypeError):
        return b""
