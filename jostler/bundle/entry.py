"""What an agent remembers of a file between reading and unlinking it.

**Invariant:** an entry is never changed; what cannot be read from the file's own state on disk is
not in it.  A bundle's entries are kept by column: a hundred thousand small files must not take
more memory to remember than to hold.
"""

from __future__ import annotations

from array import array
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.format.index_row import Facts

# A time stamp of a file is one of the kernel's ticks, 10 ms at the longest (CONFIG_HZ=100): a
# second change within the tick leaves it as it is.
RACY_NS = 20_000_000
# Some file systems keep whole seconds, or pairs of them, alone.
COARSE_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000
EntryRow = tuple[str, int, int, int, int, int, bytes]
"""Path; inode, size, mtime and ctime of the state; when it was read; hash: as in `Entry`."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
# What remembering one file takes, beside its compressed row; and what its Facts take more.
ENTRY_BYTES = 300
FACTS_BYTES = 200


class FileState(NamedTuple):
    """One state of a file, comparable with another without reading the file.

    Each number is a signed one of 64 bits.  A file system may hold times beyond that range; they
    are replaced by the nearest in it.  Two such states still differ in other numbers, and a time in
    the future makes `Entry.unchanged` return False, so that the bytes are compared.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        """Take the state from what stat(2) returned."""
        inode, mtime_ns, ctime_ns = status.st_ino, status.st_mtime_ns, status.st_ctime_ns
        if inode <= _MOST and 0 <= mtime_ns <= _MOST and 0 <= ctime_ns <= _MOST:
            return cls(inode, status.st_size, mtime_ns, ctime_ns)
        return cls.fitted(inode, status.st_size, mtime_ns, ctime_ns)

    @classmethod
    def fitted(cls, inode: int, size: int, mtime_ns: int, ctime_ns: int) -> FileState:
        """Make a state of numbers of any size."""
        if inode > _MOST:  # file systems that make up inode numbers use the highest bit
            inode -= 1 << 64
        if not (_LEAST <= mtime_ns <= _MOST and _LEAST <= ctime_ns <= _MOST):
            mtime_ns = min(max(mtime_ns, _LEAST), _MOST)
            ctime_ns = min(max(ctime_ns, _LEAST), _MOST)
        return cls(inode, size, mtime_ns, ctime_ns)


def is_racy(touched_ns: int, added_us: int) -> bool:
    """Return whether a file may have changed after it was read without a change of its times.

    Args:
        touched_ns: when it was last changed, by its times; nanoseconds since 1970.
        added_us: when it was read, microseconds since 1970.
    """
    age_ns = added_us * 1000 - touched_ns
    return age_ns < COARSE_NS and (age_ns < RACY_NS or not touched_ns % _SECOND_NS)


class Entry(NamedTuple):
    """One file of a bundle.

    Attributes:
        path: below the experiment's spool, `ndt7/2022/09/29/<name>.json`.
        state: the file's, when it was read.
        added_us: when it was read, microseconds since 1970, UTC.
        hash: BLAKE2b of the file's bytes on one line, or of a rejected file's bytes as they are;
            empty when they could not be read whole, and then the file is never unlinked.
        facts: for the index row; None when no `-index-field` fills its columns.
    """

    path: str
    state: FileState
    added_us: int
    hash: bytes
    facts: Facts | None = None

    @property
    def filename(self) -> str:
        """The path below the datatype's directory, as rows have it."""
        return self.path.partition("/")[2]

    def unchanged(self, status: os.stat_result) -> bool:
        """Say whether the file certainly still is what was read.

        False means "read it again to know": a state that is equal proves nothing when the file
        had been touched in the same tick of the kernel's clock in which it was read.
        """
        touched_ns = max(self.state.mtime_ns, self.state.ctime_ns)
        return not is_racy(touched_ns, self.added_us) and FileState.of(status) == self.state


class Entries:
    """The entries of one bundle, in the order of its lines; grows at its end only."""

    __slots__ = ("_facts", "_hashes", "_numbers", "_paths", "_with_facts")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._paths: list[str] = []
        self._numbers = array("q")
        self._hashes: list[bytes] = []
        self._facts: list[Facts | None] = []  # empty as long as no entry has any
        self._with_facts = 0
        for entry in entries:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        """Add one entry."""
        self._paths.append(entry.path)
        self._numbers.extend((*entry.state, entry.added_us))
        self._hashes.append(entry.hash)
        if entry.facts or self._facts:
            self._facts += [None] * (len(self._paths) - 1 - len(self._facts))
            self._facts.append(entry.facts)
            self._with_facts += entry.facts is not None

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that they take, about."""
        return len(self._paths) * ENTRY_BYTES + self._with_facts * FACTS_BYTES

    @property
    def facts(self) -> list[Facts | None]:
        """The facts, in order, as far as there are any."""
        return self._facts

    def extend(
        self,
        paths: Sequence[str],
        numbers: array[int],
        hashes: Sequence[bytes],
        facts: Sequence[Facts],
    ) -> None:
        """Add entries by columns.

        Args:
            paths: of the files.
            numbers: five for each file, as `EntryRow` has them.
            hashes: of the files.
            facts: of all files, or of none.
        """
        if facts or self._facts:
            self._facts += [None] * (len(self._paths) - len(self._facts))
            self._facts += facts or [None] * len(paths)
            self._with_facts += len(facts)
        self._paths += paths
        self._numbers += numbers
        self._hashes += hashes

    @property
    def paths(self) -> list[str]:
        """The paths, in order."""
        return self._paths

    @property
    def numbers(self) -> array[int]:
        """Five for each, in order, as `EntryRow` has them."""
        return self._numbers

    @property
    def hashes(self) -> list[bytes]:
        """The hashes, in order."""
        return self._hashes

    @property
    def span_us(self) -> tuple[int, int]:
        """When the first and the last file were read, microseconds since 1970."""
        added_us = self._numbers[4::5]
        return min(added_us), max(added_us)

    @property
    def written_ns(self) -> Iterator[int]:
        """When each file was last written or moved, nanoseconds since 1970."""
        return map(max, self._numbers[2::5], self._numbers[3::5])

    def at(self, line: int) -> Entry:
        """Return the entry of a line, 0 for the first.

        Any thread may ask for a line that was there when it learned of these entries: they only
        grow at their end.
        """
        inode, size, mtime_ns, ctime_ns, added_us = self._numbers[5 * line : 5 * line + 5]
        state = FileState(inode, size, mtime_ns, ctime_ns)
        facts = self._facts[line] if self._facts else None
        return Entry(self._paths[line], state, added_us, self._hashes[line], facts)

    def part(self, first: int, end: int) -> tuple[list[str], array[int], list[bytes]]:
        """Return paths, numbers (five for each file) and hashes of the lines from `first` on."""
        return self._paths[first:end], self._numbers[5 * first : 5 * end], self._hashes[first:end]

    def row(self, line: int) -> EntryRow:
        """Return the entry of a line, 0 for the first, as a plain tuple."""
        inode, size, mtime_ns, ctime_ns, added_us = self._numbers[5 * line : 5 * line + 5]
        path, digest = self._paths[line], self._hashes[line]
        return path, inode, size, mtime_ns, ctime_ns, added_us, digest

    def rows(self) -> Iterator[EntryRow]:
        """Yield the entries as plain tuples: quicker than objects, for loops over all files."""
        numbers = iter(self._numbers)
        return zip(
            self._paths, numbers, numbers, numbers, numbers, numbers, self._hashes, strict=True
        )

    def between(self, first: int, end: int) -> Entries:
        """Return the entries from one line on up to another, 0 for the first."""
        made = Entries()
        made._paths, made._numbers, made._hashes = self.part(first, end)
        made._facts = self._facts[first:end]
        made._with_facts = sum(facts is not None for facts in made._facts)
        return made

    def __len__(self) -> int:
        return len(self._paths)

    def __iter__(self) -> Iterator[Entry]:
        numbers = iter(self._numbers)
        facts = self._facts or repeat(None, len(self._paths))
        rows = zip(
            *(self._paths, numbers, numbers, numbers, numbers, numbers, self._hashes, facts),
            strict=True,
        )
        for path, inode, size, mtime_ns, ctime_ns, added_us, digest, facts in rows:
            yield Entry(path, FileState(inode, size, mtime_ns, ctime_ns), added_us, digest, facts)
