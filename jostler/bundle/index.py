"""The index object of a bundle: one row for each row of the data object, in the same order.

**Invariant:** the bytes depend on header and attempt alone.  The native module writes the rows of
common files, several times as fast and without the interpreter's lock; the bytes are the same.

It is made in the threads that upload.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Protocol

import orjson
from msgspec import Struct

from jostler.bundle.bundle import IndexForm
from jostler.bundle.entry import Entries, Entry, FileState
from jostler.format.blocks import Block, BlockWriter
from jostler.format.index_row import Facts, index_raw, last_members, place, shared
from jostler.format.names import display
from jostler.format.row import HASH_BYTES, instant, row, row_head

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Sequence

    from jostler.bundle.bundle import Attempt, Header
    from jostler.schema.native import Native

# So many rows are an eighth of a megabyte.  With four times as many, each upload took 2 MB more
# memory and no less CPU.
PART_FILES = 250


class Part(Struct, frozen=True, kw_only=True):
    """Files that follow one another in a bundle, and what their index rows say beside.

    Attributes:
        head: what the rows have before their Filename.
        shared: their members that say which bundle it is.
        first: the line of the first file, from 1.
        entries: the files.
        blocks: of the data object, in the order of lines.
    """

    head: bytes
    shared: bytes
    first: int
    entries: Entries
    blocks: Sequence[Block]

    def places(self) -> Iterator[bytes]:
        """Yield for each file the members that say where its block lies, and more at the end."""
        at = bisect_right(self.blocks, self.first, key=lambda block: block.line) - 1
        line = self.first
        for block, following in zip(self.blocks[at:], self.blocks[at + 1 :], strict=False):
            yield from repeat(place(block), following.line - line)
            line = following.line
        yield from repeat(place(self.blocks[-1]))


IndexRows = Callable[[Part], "list[bytes] | None"]
"""Returns the index rows of files, those of `rows`; None if there is something to decide."""


class NativeIndexRows(Protocol):
    """What the native module's `index_rows` is."""

    def __call__(
        self,
        paths: Sequence[str],
        numbers: array[int],
        hashes: Sequence[bytes],
        facts: Sequence[Facts | None],
        *,
        head: bytes,
        shared: bytes,
        first: int,
        blocks: Sequence[Block],
    ) -> list[bytes] | None:
        """Return the index rows of files, given by columns; None if one of them is unusual.

        Args:
            paths: of the files.
            numbers: five for each file, as `EntryRow` has them.
            hashes: of the files.
            facts: of all files, or of none.
            head: as in `Part`, like those that follow.
            shared: see there.
            first: see there.
            blocks: see there.

        Raises:
            ValueError, OverflowError: a text is no UTF-8, a number is too large.
        """


def index_object(header: Header, attempt: Attempt, native: IndexRows | None = None) -> bytes:
    """Return the index object of a bundle.

    Args:
        header: of the bundle.
        attempt: the files in it.
        native: is asked first.
    """
    writer = BlockWriter(header.compression)
    has_facts = header.index_form is IndexForm.WITH_FACTS
    for part in _parts(header, attempt):
        made = native(part) if native and has_facts else None
        writer.add_rows(rows(part, has_facts=has_facts) if made is None else made)
    return writer.finish()


def _parts(header: Header, attempt: Attempt) -> Iterator[Part]:
    name = header.name
    head = row_head(header.archiver, name.day, f"{header.bucket}/{header.index_name}")
    told_of_all = shared(name.datatype, name.node, header.url)
    for first in range(0, len(attempt.entries), PART_FILES):
        yield Part(
            head=head,
            shared=told_of_all,
            first=first + 1,
            entries=attempt.entries.between(first, first + PART_FILES),
            blocks=attempt.blocks,
        )


def rows(part: Part, *, has_facts: bool = True) -> list[bytes]:
    """Return the index rows of files; without facts they end before Start."""
    made = []
    all_facts = chain(part.entries.facts, repeat(None))
    # By columns: an entry as an object for each line would take as long as the line.
    columns = zip(count(part.first), part.entries.rows(), all_facts, part.places(), strict=False)
    for line, (path, _, size, mtime_ns, _, added_us, digest), facts, lies in columns:
        filename = orjson.dumps(display(path.partition("/")[2]))
        raw = index_raw(
            filename,
            size=size,
            added=instant(added_us),
            shared=part.shared,
            line=line,
            digest=digest.hex(),
            place=lies,
            # Start is the file's mtime if no flag fills it.
            last=last_members(facts or Facts(mtime_ns // 1000, None, None)) if has_facts else b"}",
        )
        made.append(row(part.head, filename, raw))
    return made


def native_index_rows(native: Native) -> IndexRows | None:
    """Return what writes index rows by the native module.

    Returns None if the module is not used, or does not write a few known rows as it should.
    """
    write: NativeIndexRows | None = native.module and native.module.index_rows
    if write is None:
        return None

    def written(part: Part) -> list[bytes] | None:
        entries = part.entries
        try:
            return write(
                entries.paths,
                entries.numbers,
                entries.hashes,
                entries.facts,
                head=part.head,
                shared=part.shared,
                first=part.first,
                blocks=part.blocks,
            )
        except Exception:  # noqa: BLE001 - more than 64 bits and UTF-8, or a mistake of the module
            return None

    return written if written(_SAMPLE) == rows(_SAMPLE) else None


_STATE = FileState(1, 2, 1_582_979_696_000_001_999, 3)
_FACTS = Facts(None, 0, "job-7")
_SAMPLE = Part(
    head=b'{"Filename":',
    shared=b'"Line":0',
    first=2,
    entries=Entries(
        Entry("foo1/2020/02/29/a", _STATE, 1_700_000_000_123_456, bytes(HASH_BYTES), facts)
        for facts in (None, _FACTS)
    ),
    blocks=(Block(1, 10, 20), Block(3, 30, 40)),
)
