"""The rows of a bundle to merge, read in order from its data object.

**Invariant:** each row that is handed out is the one that its index row says: the same line,
Filename and Hash; where whoever reads compares the Hash later, the same line and Filename.  A
bundle that differs from its index, or is cut off, is an InputError, and nothing of it may be
removed.

Two readers do the same.  The one that uses the native module takes rows of the usual form alone
and does not know what is wrong with another one, so after its InputError the other one is asked.

Pure: takes bytes, reads no bucket.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

import orjson
from isal import isal_zlib

from jostler.format.names import BundleName, display
from jostler.format.row import Archiver, content_hash, row_head

if TYPE_CHECKING:
    from jostler.archive.native_index import MovedLines, NativeIndex
    from jostler.format.names import Day
    from jostler.format.node_table import Run

Moved = list[bytes] | list["MovedLines"]
"""Rows that have got another head."""
HeadOf = Callable[[Archiver], bytes]
"""Returns what the rows of an archiver have before their Filename in the object they move to."""

PIECE_BYTES = 64 * 1024
"""Bytes of an object that are inflated at once."""
_HEAD_END = b'},"raw":'  # never inside of a string: there quotes are escaped
_ROW_END = b"}\n"


class InputError(Exception):
    """A bundle cannot be merged, and stays as it is; the message says why.

    Attributes:
        foreign: it has nothing wrong, but a form that is not merged.
    """

    def __init__(self, message: str, *, foreign: bool = False) -> None:
        super().__init__(message)
        self.foreign = foreign


class Taken(NamedTuple):
    """A row of a bundle.

    Attributes:
        filename: its Filename.
        digest: the hash of its `raw`.
        archiver: the program that archived it.
        rest: its bytes from the Filename on, as JSON, to the line feed.
    """

    filename: str
    digest: bytes
    archiver: Archiver
    rest: bytes


class Reader(ABC):
    """Reads the rows of a bundle in order, the rows of one node at a time.

    Args:
        runs: the nodes of the rows.

    Raises of `pass_over`, `moved` and `finish`:
        InputError: the object is not what its index says, or no complete gzip stream.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.line = 0
        self._runs = iter(runs)
        self._next = next(self._runs, None)

    @property
    def node(self) -> str | None:
        """The node of the next rows; None at the end."""
        return self._next.node if self._next else None

    def pass_over(self) -> None:
        """Read the rows of the next node."""
        self._read(None)

    def moved(self, head_of: HeadOf) -> Moved:
        """Return the rows of the next node, each with the head that it has in another object."""
        return self._read(head_of)

    @abstractmethod
    def finish(self) -> None:
        """Check that there are no further rows, and that the object is complete."""

    def _read(self, head_of: HeadOf | None) -> Moved:
        assert self._next
        found = self._rows_of_node(self._next.rows, head_of)
        self.line += self._next.rows
        self._next = next(self._runs, None)
        return found

    @abstractmethod
    def _rows_of_node(self, rows: int, head_of: HeadOf | None) -> Moved:
        """Return so many rows from `line` on; nothing if there is no `head_of`."""


class PythonReader(Reader):
    """Reads rows of any form that jostler has written.

    Args:
        data: bytes of the object.
        name: of the object.
        runs: the nodes of its rows.
        identities: Filename and hash of each row, as the index says.
    """

    def __init__(
        self,
        data: bytes,
        name: BundleName,
        runs: Sequence[Run],
        identities: Sequence[tuple[str, bytes]],
    ) -> None:
        super().__init__(runs)
        self._rows = all_rows(data, name)
        self._identities = identities

    def finish(self) -> None:
        """Check that there are no further rows, and that the object is complete."""
        if next(self._rows, None) is not None:
            raise InputError("it has more rows than its index")

    def _rows_of_node(self, rows: int, head_of: HeadOf | None) -> list[bytes]:
        wanted = self._identities[self.line : self.line + rows]
        found = list(islice(self._rows, len(wanted)))
        if [(row.filename, row.digest) for row in found] != wanted:
            same = takewhile(lambda both: both[0][:2] == both[1], zip(found, wanted, strict=False))
            line = self.line + sum(1 for _ in same) + 1
            raise InputError(f"line {line} is not the row of its index")
        return [head_of(row.archiver) + row.rest for row in found] if head_of else []


class NativeReader(Reader):
    """Reads rows of the usual form, with no Python for each.

    Args:
        data: bytes of the object.
        name: of the object.
        runs: the nodes of its rows.
        index: its index.
        compare: whether to compare the Hash of rows that are moved.
    """

    def __init__(
        self,
        data: bytes,
        name: BundleName,
        runs: Sequence[Run],
        index: NativeIndex,
        *,
        compare: bool = True,
    ) -> None:
        super().__init__(runs)
        self._compare = compare
        self._index = index
        self._pieces = _lines(data)
        self._heads = _Heads(name)
        self._plain = b""
        self._at = 0

    def finish(self) -> None:
        """Check that there are no further rows, and that the object is complete."""
        if self._at < len(self._plain) or next(self._pieces, None) is not None:
            raise InputError("it has more rows than its index")

    def _rows_of_node(self, rows: int, head_of: HeadOf | None) -> list[MovedLines]:
        found: list[MovedLines] = []
        line, end = self.line, self.line + rows
        while line < end:
            if self._at == len(self._plain):
                self._plain, self._at = next(self._pieces, b""), 0
            if not self._plain.startswith(self._heads.head, self._at):
                self._heads.learn(self._plain[self._at : self._plain.find(b"\n", self._at) + 1])
            where, head = (self._plain, self._at, line, end - line), self._heads.head
            if head_of is None:
                taken, self._at = self._index.take(*where, head=head)
            else:
                new_head = head_of(self._heads.archiver)
                lines, self._at = self._index.moved(
                    *where, head=head, new_head=new_head, compare=self._compare
                )
                found.append(lines)
                taken = len(lines)
            if not taken:
                raise InputError(f"line {line + 1} is not the row of its index")
            line += taken
        return found


def all_rows(data: bytes, name: BundleName) -> Iterator[Taken]:
    """Yield the rows of an object; at the end it is known to be complete.

    Raises:
        InputError: a row has another form, or the object is not exactly one gzip stream.
    """
    heads = _Heads(name)
    for lines in _lines(data):
        yield from heads.take(lines)


class _Heads:
    """Takes rows apart; the part before the Filename is the same in most of them."""

    def __init__(self, name: BundleName) -> None:
        self._day: Day = name.day
        self._name = name
        self.head = b"\n"  # no row begins so
        self.archiver = Archiver(version="", commit="")

    def take(self, lines: bytes) -> Iterator[Taken]:
        """Yield the rows of some whole lines."""
        # A view: rows are hashed where they lie, and copied once.
        view, find, begins = memoryview(lines), lines.find, lines.startswith
        head, archiver = self.head, self.archiver
        at = 0
        while at < len(lines):
            end = find(b"\n", at) + 1
            if not begins(head, at, end):
                self.learn(lines[at:end])
                head, archiver = self.head, self.archiver
            start = at + len(head)
            stop = find(_HEAD_END, start, end)
            if stop < 0 or not lines.endswith(_ROW_END, start, end):
                raise InputError(f"a row is no row: {lines[at : min(end, at + 80)]!r}")
            quoted = lines[start:stop]
            if b"\\" in quoted:
                filename = _text(quoted)
            else:
                filename = quoted[1:-1].decode(errors="backslashreplace")
            raw = view[stop + len(_HEAD_END) : end - len(_ROW_END)]
            yield Taken(filename, content_hash(raw), archiver, lines[start:end])
            at = end

    def learn(self, line: bytes) -> None:
        """Learn how rows of another version of jostler begin."""
        try:
            columns = orjson.loads(line[: line.find(_HEAD_END)] + b"}}")
            fields = columns["archiver"]
            self.archiver = Archiver(version=fields["Version"], commit=fields["GitCommit"])
            head = row_head(self.archiver, self._day, fields["ArchiveURL"])
        except (ValueError, KeyError, TypeError) as exc:
            raise InputError(f"a row has another form than jostler's: {exc!r}") from exc
        if not line.startswith(head):
            raise InputError("its rows are written in another way than jostler's", foreign=True)
        if not fields["ArchiveURL"].endswith(f"/{self._name}"):
            raise InputError(f"a row says that it lies in {fields['ArchiveURL']}")
        self.head = head


def _text(quoted: bytes) -> str:
    try:
        return display(str(orjson.loads(quoted)))
    except ValueError as exc:
        raise InputError(f"a row has no Filename: {exc}") from exc


def _lines(data: bytes) -> Iterator[bytes]:
    """Yield the text of an object, some whole lines at a time; at the end it is complete.

    Raises:
        InputError: it is not exactly one gzip stream, or its last line has no end.
    """
    inflate = isal_zlib.decompressobj(31)
    view, rest = memoryview(data), b""
    try:
        for at in range(0, len(data), PIECE_BYTES):
            plain = inflate.decompress(view[at : at + PIECE_BYTES])
            end = plain.rfind(b"\n") + 1
            if end:
                yield rest + plain[:end]
                rest = plain[end:]
            else:
                rest += plain
    except isal_zlib.error as exc:  # type: ignore[misc] # the stub says value for class
        raise InputError(f"the gzip stream is broken: {exc}") from exc
    # Inflating stops silently at the end of the first member: what follows would be left out, and
    # lost with the object.
    if not inflate.eof or inflate.unused_data:
        raise InputError("it is not exactly one whole gzip stream")
    if rest:
        raise InputError("its last line has no end")
