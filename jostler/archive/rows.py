"""Read one row of a data bundle with one ranged request, as docs/format.md describes.

**Invariant:** `raw` is returned byte for byte as stored; it is never parsed and written again.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import orjson

from jostler.bundle import content_hash
from jostler.errors import JostlerError
from jostler.format.blocks import read_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.storage import Storage

_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class RawColumn:
    """The column `raw` of one row, or the reason why it could not be read."""

    raw: bytes
    problem: str = ""

    def checked(self, size: int, digest: str) -> str:
        """Say whether the row has the file's bytes, by the size and digest in its index row.

        A row of rejected1 has them in the member Content.
        """
        if self.problem:
            return self.problem
        content = b64decode(self.members("Content")["Content"])
        for one in (self.raw, self.raw + b"\n", content):
            if len(one) == size and digest:
                same = content_hash(one).hex() == digest
                return (
                    f"the row was read, and its bytes {'have' if same else 'do NOT have'} the hash"
                )
        return "the row was read; its bytes are not all of the file's, so no hash can be compared"

    def members(self, *names: str) -> dict[str, str]:
        """Return members of `raw` as text; a missing member is an empty text."""
        try:
            told = orjson.loads(self.raw)
        except ValueError:
            told = {}
        return {name: str(told.get(name, "")) for name in names}


def row_of(storage: Storage, name: str, filename: str, block: tuple[int, int] | None) -> RawColumn:
    """Read the row of a file.

    Args:
        storage: the bucket.
        name: the name of the data object.
        filename: the Filename of the row.
        block: offset and length of the block with the row; None to read the whole object.
    """
    try:
        if block:
            plain = read_block(storage.read_range(name, *block))
        else:
            data = storage.read(name).data
            plain = zlib.decompress(data, wbits=zlib.MAX_WBITS | 16)
    except (JostlerError, ValueError, zlib.error) as exc:
        return RawColumn(b"", f"the row could not be read: {exc}")
    return _find(plain.split(b"\n"), filename)


def _find(lines: Sequence[bytes], filename: str) -> RawColumn:
    for line in lines:
        try:
            columns = {key.lower(): bytes(value) for key, value in _TOP.decode(line).items()}
            archiver = orjson.loads(columns["archiver"])
            told = {key.lower(): value for key, value in archiver.items()}
            if told["filename"] == filename:
                return RawColumn(columns["raw"])
        except (msgspec.DecodeError, ValueError, KeyError, AttributeError):
            continue  # no row, or an empty line
    return RawColumn(b"", "the block has no row of this file")
