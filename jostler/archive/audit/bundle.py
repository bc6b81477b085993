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
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from isal import isal_zlib
from orjson import dumps

from jostler.archive.audit.explain import Explained, Explainer, nodes_of
from jostler.archive.audit.problem import NO_DATA, Kind, Problem
from jostler.archive.audit.stream import by_blocks
from jostler.archive.lines import RowError, row
from jostler.format.index_row import IndexRow
from jostler.format.names import REJECTED, BundleName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.format.index_row import IndexRaw

_HASH_BYTES = 16
_HEAD_END = b'},"raw":'
_FILENAME = b'"Filename":'
_OPENED = ord("{")


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
        rows = proof.of(data, index)
        if rows is not None:
            return Checked(
                name=name,
                lines=len(rows),
                rows=len(rows),
                plain_bytes=proof.plain_bytes,
                go=False,
                keys=_keys_of(rows),
                files=(),
                problems=(),
            )
    return _explained(name, Explainer(name, bucket).explain(data, index_name, index))


def proven(
    name: BundleName, bucket: str, data: bytes, index_name: BundleName, index: bytes
) -> list[IndexRaw] | None:
    """Return what the index of a bundle says of its rows, if it is known to be right; else None.

    None says that the bundle is not proven good by comparing bytes; `check` says what is wrong, or
    that nothing is.
    """
    return _Proof(name, bucket, index_name).of(data, index)


def _keys_of(rows: Iterable[IndexRaw]) -> list[bytes]:
    """Return the key of each row of a bundle that was proven good; see `keys`."""
    return [
        blake2b(
            f"{one.Node}\0{one.Datatype}\0{one.Filename}\0{one.Hash}\0False".encode(),
            digest_size=_HASH_BYTES,
        ).digest()
        for one in rows
    ]


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

    def of(self, data: bytes, index: bytes) -> list[IndexRaw] | None:
        """Return the index of a good bundle if it has today's form; else None."""
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
        at = 0
        for plain, (_, _, many) in zip(blocks, places, strict=True):
            if not self._has(plain, rows[at : at + many]):
                return None
            at += many
            self.plain_bytes += len(plain)
        return rows

    def _is_index(self, data: bytes, index_rows: Sequence[IndexRow]) -> bool:
        """Return whether rows of an index are those of this bundle, as far as they show it."""
        name, date = self._name, self._name.day.iso
        datatype, url, index_url = name.datatype, self._url, self._index_url
        folder = f"{name.day.path}/"
        try:
            nodes = nodes_of(data) or [name.node] * len(index_rows)
        except ValueError:
            return False
        return len(nodes) == len(index_rows) and all(
            (raw := one.raw).Line == line
            and one.date == date
            and (archiver := one.archiver).ArchiveURL == index_url
            and archiver.Filename == (filename := raw.Filename)
            and raw.ArchiveURL == url
            and raw.Datatype == datatype
            and raw.Node == node
            and filename.startswith(folder)
            for line, one, node in zip(count(1), index_rows, nodes, strict=False)
        )

    def _has(self, plain: bytes, index_rows: Sequence[IndexRaw]) -> bool:
        """Return whether the lines of one block are those of these index rows."""
        head = self._head
        view, begins, ends = memoryview(plain), plain.startswith, plain.endswith
        at = 0
        for one in index_rows:
            end = plain.find(b"\n", at)
            begin = head + dumps(one.Filename) + _HEAD_END
            if not begins(begin, at, end):  # a merged bundle's rows have several heads
                head = self._head = self._head_of(plain[at:end])
                begin = head + dumps(one.Filename) + _HEAD_END
                if not head or not begins(begin, at, end):
                    return False
            start = at + len(begin)
            # A view: rows are hashed where they lie, for to copy long ones takes as long again.
            raw = view[start : end - 1]
            # With this Hash it is the file that the agent found to be one JSON object.
            if (
                blake2b(raw, digest_size=_HASH_BYTES).hexdigest() != one.Hash
                or len(raw) > one.Size
                or not ends(b"}}", start, end)
                or plain[start] != _OPENED
            ):
                return False
            at = end + 1
        return at == len(plain)

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
            offset, length, many = found[-1]
            found[-1] = offset, length, many + 1
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
