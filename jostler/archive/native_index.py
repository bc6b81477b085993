"""Indexes of the usual form, as the native module reads them: without Python for each row.

**Invariant:** what is here says yes or nothing.  An index or a row that is not taken is left to
Python, which alone says what is wrong with it; so the module changes how long an answer takes, and
never the answer.

The usual form is that of docs/format.md, byte for byte, in texts without escapes, with Filenames
of the bundle's day.  Rows of rejected1 never have it: their Hash is not that of `raw`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from jostler.format.names import REJECTED
from jostler.format.row import content_hash
from jostler.schema.native import Use, find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.format.names import BundleName
    from jostler.format.node_table import Run


class NativeIndex(Protocol):
    """The rows of an index; any number of threads may share one."""

    def __len__(self) -> int:
        """Return how many there are."""

    def blocks(self) -> list[tuple[int, int, int]]:
        """Return offset and length of each block, and how many rows it has, in order."""

    def take(self, plain: bytes, at: int, first: int, most: int, *, head: bytes) -> tuple[int, int]:
        """Compare lines with the rows from `first` on, up to one that differs.

        A line that is taken has the given head, the Filename and the Hash of its index row, and no
        more bytes in `raw` than the file had.

        Args:
            plain: lines of the data object.
            at: where in them the first line begins.
            first: the row of the first line, from 0.
            most: how many rows are wanted.
            head: what the lines have before their Filename.

        Returns:
            How many lines were taken, and where the next one begins.
        """

    def take_blocks(self, blocks: Sequence[tuple[bytes, int]], first: int, *, head: bytes) -> int:
        """Return how many of some blocks are wholly the rows from `first` on, as `take` compares.

        Args:
            blocks: lines, and how many they must be.
            first: the row of the first line, from 0.
            head: what all lines have before their Filename.
        """

    def moved(
        self,
        plain: bytes,
        at: int,
        first: int,
        most: int,
        *,
        head: bytes,
        new_head: bytes,
        compare: bool,
    ) -> tuple[MovedLines, int]:
        """Take lines as `take` does; return them with another head, and where the next begins.

        Hashes are compared only if `compare` is true.
        """

    def name_keys(self) -> bytes:
        """Return 8 bytes for each row: XXH3 of Filename, with the XXH3 of its node as the seed."""

    def keys(self, datatype: str) -> list[bytes]:
        """Return the key of each row: `keys` in `jostler.archive.audit.bundle`."""

    def identities(self) -> list[tuple[str, str, bytes]]:
        """Return node, Filename and hash of each row."""


class MovedLines(Protocol):
    """Lines that have got another head."""

    def __len__(self) -> int:
        """Return how many there are."""

    def rows(self) -> list[bytes]:
        """Return each."""


class MergedRows(Protocol):
    """The rows of several indexes in order; of equal identities the earliest alone."""

    @property
    def repeats(self) -> int:
        """How many are left out as exact repeats."""

    def __len__(self) -> int:
        """Return how many there are."""

    def runs(self) -> list[tuple[str, int]]:
        """Return the nodes in order, each with the number of its rows."""

    def digest(self) -> str:
        """Return the hash of the identities, by which a merged bundle is named."""

    def added(self) -> tuple[str, str]:
        """Return the earliest and the latest TimeAdded."""

    def places(self, first: int, rows: int) -> list[tuple[int, int]]:
        """Return the number of the index, and of the row in it from 0, of some rows in order."""

    def identities(self) -> list[tuple[str, str, bytes]]:
        """Return node, Filename and hash of each row."""


class NativeMerge(MergedRows, Protocol):
    """Those rows as the native module has them."""

    def is_order_of(self, index: NativeIndex) -> bool:
        """Return whether an index has these rows and no others, in this order."""

    def text(
        self,
        first: int,
        rows: int,
        moved: Sequence[tuple[int, int, Sequence[object]]],
        room_bytes: int,
        block_bytes: int,
    ) -> tuple[bytes, int]:
        """Return rows in order as one text, as many as a block takes, and how many they are.

        Args:
            first: the number of the first row, from 0.
            rows: how many rows are wanted at most.
            moved: of each index that has some of them, its number, a row of it, and `MovedLines`
                from that row on.
            room_bytes: what the last block still takes; if the first row needs more, it begins one.
            block_bytes: what a block takes, unless it has one row.
        """

    def index_text(
        self,
        first: int,
        most_bytes: int,
        *,
        date: bytes,
        datatype: bytes,
        url: bytes,
        index_url: bytes,
        blocks: Sequence[tuple[int, int, int]],
    ) -> tuple[bytes, int]:
        """Return index rows, each with the new place of its row, and how many they are.

        Args:
            first: the number of the first row, from 0.
            most_bytes: what they must not exceed, unless it is one row.
            date: of the bundle, as JSON, as the other texts.
            datatype: of the bundle.
            url: of the data object.
            index_url: of the index object.
            blocks: first line from 1, offset and length of each block of the data object.
        """


def native_index(
    name: BundleName, text: bytes, runs: Sequence[Run], *, url: str, index_url: str
) -> NativeIndex | None:
    """Read an index; return None if it has not the usual form, is another's, or has no reader.

    Args:
        name: of the data object.
        text: of the index, inflated.
        runs: the nodes of the rows, from the header of a merged bundle; empty for others.
        url: of the data object.
        index_url: of the index object.
    """
    reader = index_reader(name, url=url, index_url=index_url)
    return reader.read(text, runs=runs) if reader else None


def index_reader(name: BundleName, *, url: str, index_url: str) -> IndexReader | None:
    """Return what reads the index of a bundle; None if there is no reader, or not for its rows."""
    classes = _classes()
    if classes is None or name.datatype == REJECTED:
        return None
    return IndexReader(classes.index, name, url, index_url)


class NameKeys(NamedTuple):
    """What some lines of an index say.

    Attributes:
        keys: as `NativeIndex.name_keys` has them.
        block: offset and length of the last row's block.
    """

    keys: bytes
    block: tuple[int, int]


class IndexReader(NamedTuple):
    """Reads the index of a bundle, as a whole or in parts.

    Attributes:
        index: the class of the native module.
        name: of the data object.
        url: of the data object.
        index_url: of the index object.
    """

    index: Any
    name: BundleName
    url: str
    index_url: str

    def read(self, text: bytes, first: int = 0, runs: Sequence[Run] = ()) -> NativeIndex | None:
        """Read lines of the index; return None if they have not the usual form, or are another's.

        Args:
            text: lines, inflated.
            first: how many lines of the index come before.
            runs: the nodes of the rows, from the header of a merged bundle; empty for others.
        """
        found = self.index.of(text, list(runs), node=self.name.node, first=first, **self._shared)
        return cast("NativeIndex | None", found)

    def name_keys(self, text: bytes, first: int) -> NameKeys | None:
        """Return what tells whether a Filename occurs twice; None as `read`.

        The nodes of a merged bundle are those that the lines name.

        Args:
            text: lines, inflated.
            first: how many lines of the index come before.
        """
        node = None if self.name.is_merged else self.name.node
        found = self.index.name_keys_of(text, node=node, first=first, **self._shared)
        return found and NameKeys(*found)

    @property
    def _shared(self) -> dict[str, str]:
        """What all lines have."""
        return {
            "date": self.name.day.iso,
            "datatype": self.name.datatype,
            "url": self.url,
            "index_url": self.index_url,
            "folder": f"{self.name.day.path}/",
        }


def native_merge(indexes: Sequence[NativeIndex]) -> NativeMerge:
    """Put the rows of indexes in order."""
    classes = _classes()
    assert classes
    return cast("NativeMerge", classes.merge(list(indexes)))


class _Classes(NamedTuple):
    index: Any
    merge: Any


def _classes() -> _Classes | None:
    module = find(Use.AUTO).module
    return _Classes(module.Index, module.Merge) if module and _answers(module.Index) else None


@cache
def _answers(index: Any) -> bool:  # noqa: ANN401 - a class of the module
    """Return whether good rows are told from others: bundles are removed because of that answer."""
    hashed = content_hash(b'{"a":1}').hex()
    text = (
        '{"date":"2026-01-02","archiver":{"Version":"v","GitCommit":"c","ArchiveURL":"i",'
        '"Filename":"2026/01/02/a"},"raw":{"Filename":"2026/01/02/a","Size":7,'
        '"TimeAdded":"2026-01-02T03:04:05.000006Z",'
        f'"Datatype":"d","Node":"n","ArchiveURL":"u","Line":1,"Hash":"{hashed}","Offset":10,'
        '"Length":20,"Start":null,"End":null,"WorkID":null}}\n'
    ).encode()
    told = {"date": "2026-01-02", "folder": "2026/01/02/", "datatype": "d", "url": "u"}
    made = index.of(text, [], node="n", **told, index_url="i")
    if index.of(text.replace(b"T03", b"T30"), [], node="n", **told, index_url="i"):
        return False  # of a version that takes any text for an instant
    good = b'h"2026/01/02/a"},"raw":{"a":1}}\n'
    return made is not None and [
        made.take(line, 0, 0, 1, head=b"h")
        for line in (good, good.replace(b"1}", b"2}"), good.replace(b"/a", b"/b"))
    ] == [(1, len(good)), (0, 0), (0, 0)]
