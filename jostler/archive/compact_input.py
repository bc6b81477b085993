"""One bundle to merge: data and index, taken apart.

**Invariant:** a bundle whose index is not its own, or that has another form, is an InputError, and
nothing of it may be removed; `compact_rows` compares each row with its index.

Pure: takes bytes, reads no bucket.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
from isal import isal_zlib

from jostler.archive.compact_rows import InputError, NativeReader, PythonReader, all_rows
from jostler.archive.native_index import native_index
from jostler.format.blocks import inflated
from jostler.format.go import is_bare
from jostler.format.index_row import IndexRow
from jostler.format.names import REJECTED
from jostler.format.node_table import Run, runs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jostler.archive.compact_plan import Member
    from jostler.archive.compact_rows import Reader
    from jostler.archive.native_index import NativeIndex
    from jostler.format.names import BundleName

END_BYTES = 10
"""What follows the last block of a bundle: an empty block, checksum and length."""
_HASH_CHARS = 32
_ROWS = msgspec.json.Decoder(IndexRow)


class Input:
    """A bundle.

    Args:
        member: as it was listed.
        data: bytes of the data object.
        runs: the nodes of its rows.
        index: its index rows; nothing if it has no index object.
        identities: Filename and hash of `raw` of each row, in the order of lines.
        native: the index, if it has the usual form; then `text` has its rows.
        text: the index, inflated.
    """

    def __init__(
        self,
        member: Member,
        data: bytes,
        runs: tuple[Run, ...],
        *,
        index: Sequence[IndexRow] = (),
        identities: Sequence[tuple[str, bytes]] = (),
        native: NativeIndex | None = None,
        text: bytes = b"",
    ) -> None:
        self.member = member
        self.data = data
        self.runs = runs
        self.native = native
        self._text = text
        self._index = index
        self._identities = identities

    @property
    def has_index(self) -> bool:
        """Whether it has an index object."""
        return bool(self.native or self._index)

    @property
    def index(self) -> Sequence[IndexRow]:
        """Its index rows; nothing if it has no index object."""
        if self.native and not self._index:
            self._index = _ROWS.decode_lines(self._text)
        return self._index

    @property
    def identities(self) -> Sequence[tuple[str, bytes]]:
        """Filename and hash of `raw` of each row, in the order of lines."""
        if self.native and not self._identities:
            self._identities = [(filename, hash_) for _, filename, hash_ in self.keys()]
        return self._identities

    @property
    def plain_bytes(self) -> int:
        """Bytes of its rows, as the gzip trailer has them (RFC 1952, ISIZE); modulo 2^32."""
        (size,) = struct.unpack("<L", self.data[-4:])
        return int(size)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.native or self._identities)

    def keys(self) -> Iterable[tuple[str, str, bytes]]:
        """Return node, Filename and hash of each row."""
        if self.native:
            return self.native.identities()
        nodes = (run.node for run in self.runs for _ in range(run.rows))
        return [(node, *row) for node, row in zip(nodes, self._identities, strict=False)]

    def reader(self, *, native: bool = False, compare: bool = True) -> Reader:
        """Return a reader of its rows, which begins with the first one.

        Args:
            native: let the native module read, if it can.
            compare: if the module reads, whether to compare the Hash of rows that are moved.
        """
        name = self.member.name
        if native and self.native:
            return NativeReader(self.data, name, self.runs, self.native, compare=compare)
        return PythonReader(self.data, name, self.runs, self.identities)

    def read_all(self) -> None:
        """Compare each row with its index.

        Raises:
            InputError: one differs, or the object is no complete gzip stream.
        """
        if self.native:
            with suppress(InputError):  # the other reader knows what is wrong, if anything is
                return _read_all(self.reader(native=True))
        return _read_all(self.reader())


def _read_all(reader: Reader) -> None:
    while reader.node is not None:
        reader.pass_over()
    reader.finish()


def read_input(member: Member, data: bytes, index: bytes) -> Input:
    """Take apart a bundle and its index.

    Args:
        member: as it was listed.
        data: bytes of the data object.
        index: bytes of the index object; empty if there is none.

    Raises:
        InputError: it cannot be merged.
    """
    name = member.name
    try:
        runs = runs_of(data)
    except ValueError as exc:
        raise InputError(str(exc)) from exc
    if not index:
        return _without_index(member, data, runs)
    text = _inflated(index)
    native = _native(name, text, runs, len(data))
    if native:
        runs = runs or (Run(name.node, len(native)),)
        return Input(member, data, runs, native=native, text=text)
    rows = index_rows(text)
    runs = runs or (Run(name.node, len(rows)),)
    _check(name, len(data), runs, rows)
    if name.datatype == REJECTED:  # its Hash is that of Content
        identities = [(row.filename, row.digest) for row in all_rows(data, name)]
        if [one.raw.Filename for one in rows] != [filename for filename, _ in identities]:
            raise InputError("it has other files than its index")
    else:
        identities = [(one.raw.Filename, bytes.fromhex(one.raw.Hash)) for one in rows]
    return Input(member, data, runs, index=rows, identities=identities)


def _native(
    name: BundleName, text: bytes, runs: tuple[Run, ...], data_bytes: int
) -> NativeIndex | None:
    """Return the index if it has the usual form and passes `_check`."""
    try:
        # A copied bucket has the URLs of another one.
        first = _ROWS.decode(text[: text.find(b"\n") + 1])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    url = first.raw.ArchiveURL
    if not url.endswith(f"/{name}"):
        return None
    found = native_index(name, text, runs, url=url, index_url=first.archiver.ArchiveURL)
    if not found:
        return None
    offset, length, _ = found.blocks()[-1]
    return found if offset + length + END_BYTES == data_bytes else None


def _without_index(member: Member, data: bytes, runs: tuple[Run, ...]) -> Input:
    identities = [(row.filename, row.digest) for row in all_rows(data, member.name)]
    runs = runs or (Run(member.name.node, len(identities)),)
    if sum(run.rows for run in runs) != len(identities):
        raise InputError("it has another number of rows than its table of nodes")
    return Input(member, data, runs, identities=identities)


def _inflated(index: bytes) -> bytes:
    try:
        return inflated(index)
    except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
        raise InputError(f"its index is no gzip stream: {exc}") from exc


def index_rows(text: bytes) -> list[IndexRow]:
    """Return the rows of an index.

    Args:
        text: the object, inflated.

    Raises:
        InputError: it has another form.
    """
    try:
        rows = _ROWS.decode_lines(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        line = text.partition(b"\n")[0]
        older = is_bare(line) or (line.endswith(b"}}") and b',"Start":' not in line)
        raise InputError(f"its index has another form than today's: {exc}", foreign=older) from exc
    if not rows:
        raise InputError("its index is empty")
    return rows


def _check(name: BundleName, data_bytes: int, runs: Iterable[Run], rows: list[IndexRow]) -> None:
    """Check that an index is that of the object, as far as the index alone shows it."""
    nodes = [run.node for run in runs for _ in range(run.rows)]
    if len(nodes) != len(rows):
        raise InputError("its index has another number of rows than its table of nodes")
    url, last = rows[0].raw.ArchiveURL, rows[-1].raw
    if not url.endswith(f"/{name}"):
        raise InputError(f"its index is that of {url}")
    for line, (one, node) in enumerate(zip(rows, nodes, strict=True), 1):
        raw = one.raw
        if raw.Line != line or raw.ArchiveURL != url or raw.Node != node:
            raise InputError(f"line {line} of its index is about another row")
        if raw.Filename != one.archiver.Filename or one.date != name.day.iso:
            raise InputError(f"line {line} of its index contradicts itself")
        if raw.Datatype != name.datatype:
            raise InputError(f"line {line} of its index is about another datatype")
        if len(raw.Hash) != _HASH_CHARS and name.datatype != REJECTED:
            raise InputError(f"line {line} of its index has no hash")
    if last.Offset + last.Length + END_BYTES != data_bytes:
        raise InputError("by its index the object has another size")
