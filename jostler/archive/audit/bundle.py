"""Check one bundle against its index: the same function for threads and for Spark.

**Invariant:** a bundle without a problem is whole: its stream inflates with the right check sum,
each line is a row of the bundle's day and address, and each has an index row that has its
Filename, its Hash and the place of its block.  Nothing is written, and what the writer's code
computed is not believed.

A good bundle is proven by comparing bytes; only one that fails is parsed line by line, to say what
is wrong with it.  Pure: takes bytes, returns values.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import orjson
from isal import isal_zlib

from jostler.archive.audit.explain import Explained, Explainer, nodes_of
from jostler.archive.audit.problem import NO_DATA, Kind, Problem
from jostler.archive.audit.stream import by_blocks
from jostler.archive.lines import RowError, row
from jostler.format.index_row import IndexRow
from jostler.format.names import REJECTED, BundleName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.format.index_row import IndexRaw

_HASH_BYTES = 16
_HEAD_END = b'},"raw":'
_FILENAME = b'"Filename":'


class Stored(NamedTuple):
    """A file of a bundle.

    Attributes:
        node: the node that it comes from.
        datatype: the file's own, also if it was rejected.
        filename: relative to the datatype's directory.
        digest: BLAKE2b of `raw`, 16 bytes in hexadecimal.
        hash: the Hash of its index row; empty if there is none.
        rejected: whether it is a row of rejected1.
    """

    node: str
    datatype: str
    filename: str
    digest: str
    hash: str
    rejected: bool

    @property
    def content(self) -> str:
        """The digest that identifies the file's content; empty if that is not known."""
        return self.hash if self.rejected else self.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found of a bundle.

    Attributes:
        name: of the data object.
        lines: how many rows its stream has.
        rows: how many of them can be read as rows.
        plain_bytes: of its lines.
        go: whether m-lab's Go agent wrote it.
        keys: one for each row, in order; see `keys`.
        files: its rows, in order, unless it was proven good without a look at each.
        problems: what is wrong.
    """

    name: BundleName
    lines: int
    rows: int
    plain_bytes: int
    go: bool
    keys: Sequence[bytes]
    files: Sequence[Stored]
    problems: tuple[Problem, ...]


def check(
    name: BundleName,
    bucket: str,
    data: bytes,
    index_name: BundleName | None,
    index: bytes | None,
    *,
    parse: bool = False,
) -> Checked:
    """Check a bundle.

    Args:
        name: of the data object.
        bucket: URL of the bucket.
        data: bytes of the data object.
        index_name: of the index object.
        index: its bytes; None if there is none.
        parse: whether to parse each row as JSON too, even if it has the hash in the index.
    """
    if index_name is not None and index is not None and not parse:
        proof = _Proof(name, bucket, index_name)
        found = proof.of(data, index)
        if found is not None:
            return Checked(
                name=name,
                lines=len(found),
                rows=len(found),
                plain_bytes=proof.plain_bytes,
                go=False,
                keys=found,
                files=(),
                problems=(),
            )
    return _explained(name, Explainer(name, bucket).explain(data, index_name, index))


def _explained(name: BundleName, found: Explained) -> Checked:
    files = [Stored(*one) for one in found.files]
    return Checked(
        name=name,
        lines=found.lines,
        rows=found.rows,
        plain_bytes=found.plain_bytes,
        go=found.go,
        keys=list(keys(files)),
        files=files,
        problems=tuple(Problem(*one) for one in found.problems),
    )


# Only a row with Start, null or not, has the hash of `raw`: an older form proves nothing here.
_ROWS = msgspec.json.Decoder(IndexRow)


class _Proof:
    """The proof that a bundle is good; if it fails, nothing is known yet."""

    def __init__(self, name: BundleName, bucket: str, index_name: BundleName) -> None:
        self.plain_bytes = 0
        self._name = name
        self._head = b""
        self._url = f"{bucket}/{name}"
        self._index_url = f"{bucket}/{index_name}"

    def of(self, data: bytes, index: bytes) -> list[bytes] | None:
        """Return the keys of a good bundle's rows if its index has today's form; else None."""
        if self._name.datatype == REJECTED:  # their Hash is that of Content
            return None
        try:
            index_rows = _ROWS.decode_lines(isal_zlib.decompress(index, wbits=31))
        except (isal_zlib.error, EOFError, msgspec.DecodeError, UnicodeDecodeError):  # type: ignore[misc]
            return None
        if not index_rows or not self._is_index(data, index_rows):
            return None
        rows = [one.raw for one in index_rows]
        places = _places(rows)
        blocks = by_blocks(data, [(offset, length) for offset, length, _ in places])
        if blocks is None:
            return None
        found: list[bytes] = []
        for plain, (_, _, count) in zip(blocks, places, strict=True):
            here = self._keys(plain, rows[len(found) : len(found) + count])
            if here is None:
                return None
            found += here
            self.plain_bytes += len(plain)
        return found

    def _is_index(self, data: bytes, index_rows: Sequence[IndexRow]) -> bool:
        """Return whether rows of an index are those of this bundle, as far as they show it."""
        name, day = self._name, self._name.day
        folder = f"{day.path}/"
        try:
            nodes = nodes_of(data) or [name.node] * len(index_rows)
        except ValueError:
            return False
        return len(nodes) == len(index_rows) and all(
            raw.Line == line
            and one.date == day.iso
            and one.archiver.ArchiveURL == self._index_url
            and one.archiver.Filename == raw.Filename
            and raw.ArchiveURL == self._url
            and raw.Datatype == name.datatype
            and raw.Node == node
            and raw.Filename.startswith(folder)
            for line, (one, raw, node) in enumerate(
                ((one, one.raw, node) for one, node in zip(index_rows, nodes, strict=True)), 1
            )
        )

    def _keys(self, plain: bytes, index_rows: Sequence[IndexRaw]) -> list[bytes] | None:
        """Return the keys of one block's rows, if its lines are those of these index rows."""
        *lines, rest = plain.split(b"\n")
        if rest or len(lines) != len(index_rows):
            return None
        head, datatype = self._head, self._name.datatype
        found = []
        for line, one in zip(lines, index_rows, strict=True):
            begin = head + orjson.dumps(one.Filename) + _HEAD_END
            if not line.startswith(begin):  # a merged bundle's rows have several heads
                head = self._head = self._head_of(line)
                begin = head + orjson.dumps(one.Filename) + _HEAD_END
                if not head or not line.startswith(begin):
                    return None
            raw = line[len(begin) : -1]
            digest = blake2b(raw, digest_size=_HASH_BYTES).hexdigest()
            # With this Hash it is the file that the agent found to be one JSON object.
            if digest != one.Hash or len(raw) > one.Size or line[-2:] != b"}}" or raw[:1] != b"{":
                return None
            told_of = f"{one.Node}\0{datatype}\0{one.Filename}\0{digest}\0False".encode()
            found.append(blake2b(told_of, digest_size=_HASH_BYTES).digest())
        return found

    def _head_of(self, line: bytes) -> bytes:
        """Return the bytes before the Filename, which good rows share; empty if it is none."""
        try:
            first = row(line)
        except RowError:
            return b""
        if first.go or first.date != self._name.day.iso:
            return b""
        if first.archiver["ArchiveURL"] != self._url:
            return b""
        at = line.find(_FILENAME)
        return line[: at + len(_FILENAME)] if at >= 0 else b""


def _places(rows: Sequence[IndexRaw]) -> list[tuple[int, int, int]]:
    """Return offset and length of each block, and how many rows it has, in order."""
    found: list[tuple[int, int, int]] = []
    for one in rows:
        if found and found[-1][0] == one.Offset and found[-1][1] == one.Length:
            offset, length, count = found[-1]
            found[-1] = offset, length, count + 1
        else:
            found.append((one.Offset, one.Length, 1))
    return found


def keys(files: Sequence[Stored]) -> Iterator[bytes]:
    """Yield a key for each file, equal if node, Filename and content are; empty if not known.

    16 bytes, so that the rows of a day can be compared without their names.
    """
    for one in files:
        if not one.content:  # too large to be stored whole, or could not be read
            yield b""
            continue
        parts = (one.node, one.datatype, one.filename, one.content, str(one.rejected))
        yield blake2b("\0".join(parts).encode(), digest_size=_HASH_BYTES).digest()


def missing_data(index_name: BundleName) -> Problem:
    """Return the problem of an index without bundle."""
    return Problem(str(index_name), 0, Kind.NO_DATA, NO_DATA)
