"""Check one bundle against its index: the same function for threads and for Spark.

**Invariant:** a bundle without a problem is whole: its stream inflates with the right check sum,
each line is a row of the bundle's day and address, and each has an index row that has its
Filename, its Hash and the place of its block.  Nothing is written, and what the writer's code
computed is not believed.

A good bundle is proven by comparing bytes (`proof`); only one that fails is parsed line by line, to
say what is wrong with it.  Pure: takes bytes, returns values.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from jostler.archive.audit.explain import Explained, Explainer
from jostler.archive.audit.problem import NO_DATA, Kind, Problem
from jostler.archive.audit.proof import HASH_BYTES, proven

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jostler.format.names import BundleName


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
        proof = proven(name, bucket, data, index_name, index)
        if proof is not None:
            return Checked(
                name=name,
                lines=proof.rows,
                rows=proof.rows,
                plain_bytes=proof.plain_bytes,
                go=False,
                keys=proof.keys(),
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


def keys(files: Sequence[Stored]) -> Iterator[bytes]:
    """Yield a key for each file, equal if node, Filename and content are; empty if not known.

    16 bytes, so that the rows of a day can be compared without their names.
    """
    for one in files:
        if not one.content:  # too large to be stored whole, or could not be read
            yield b""
            continue
        parts = (one.node, one.datatype, one.filename, one.content, str(one.rejected))
        yield blake2b("\0".join(parts).encode(), digest_size=HASH_BYTES).digest()


def missing_data(index_name: BundleName) -> Problem:
    """Return the problem of an index without bundle."""
    return Problem(str(index_name), 0, Kind.NO_DATA, NO_DATA)
