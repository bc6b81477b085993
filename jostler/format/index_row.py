"""Index rows, one for each row of a data bundle: their form, and how to write their `raw`.

The form is in docs/format.md, "index1".

**Invariant:** equal facts give equal bytes, whoever writes them: the agent when it stores a bundle,
or a keeper of the archive who makes a lost index again.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import orjson

from jostler.format.row import instant

if TYPE_CHECKING:
    from jostler.format.blocks import Block


class Facts(NamedTuple):
    """The index columns that `-index-field` fills; None is null.

    Attributes:
        start_us: Start, microseconds since 1970, UTC.
        end_us: End, in the same unit.
        work_id: WorkID.
    """

    start_us: int | None
    end_us: int | None
    work_id: str | None


class IndexRaw(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The `raw` of an index row; times are texts, so that they stay as they are."""

    Filename: str
    Size: int
    TimeAdded: str
    Datatype: str
    Node: str
    ArchiveURL: str
    Line: int
    Hash: str
    Offset: int
    Length: int
    Start: str | None
    End: str | None
    WorkID: str | None


class RowArchiver(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The column `archiver` of an index row."""

    Version: str
    GitCommit: str
    ArchiveURL: str
    Filename: str


class IndexRow(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An index row of today's form, no member more or less: older forms do not decode to it."""

    date: str
    archiver: RowArchiver
    raw: IndexRaw


def shared(datatype: str, node: str, url: str) -> bytes:
    """Return the members that are equal in all index rows of a bundle.

    Args:
        datatype: of the bundle.
        node: of the bundle.
        url: of the data object.
    """
    return b'"Datatype":%b,"Node":%b,"ArchiveURL":%b' % (
        orjson.dumps(datatype),
        orjson.dumps(node),
        orjson.dumps(url),
    )


def place(block: Block) -> bytes:
    """Return the members that say where the row's block lies in the data object."""
    return b'"Offset":%d,"Length":%d' % (block.offset, block.length)


def last_members(facts: Facts) -> bytes:
    """Return the members Start, End and WorkID, and the end of the row."""
    start_us, end_us, work_id = facts
    start, end = (
        b"null" if us is None else b'"%b"' % instant(us).encode() for us in (start_us, end_us)
    )
    work = b"null" if work_id is None else orjson.dumps(work_id)
    return b',"Start":%b,"End":%b,"WorkID":%b}' % (start, end, work)


def index_raw(
    filename: bytes,
    *,
    size: int,
    added: str,
    shared: bytes,
    line: int,
    digest: str,
    place: bytes,
    last: bytes,
) -> bytes:
    """Return the `raw` of one index row.

    Args:
        filename: the Filename as JSON.
        size: of the file, bytes.
        added: TimeAdded, as `row.instant` writes it.
        shared: what `shared` returned.
        line: of the row in the data bundle, from 1.
        digest: Hash, in hexadecimal.
        place: what `place` returned.
        last: what `last_members` returned; `}` for rows of the form without Start.
    """
    return b'{"Filename":%b,"Size":%d,"TimeAdded":"%b",%b,"Line":%d,"Hash":"%b",%b%b' % (
        filename,
        size,
        added.encode(),
        shared,
        line,
        digest.encode(),
        place,
        last,
    )
