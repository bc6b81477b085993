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

from jostler.errors import JostlerError
from jostler.format.blocks import read_block
from jostler.format.row import content_hash

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.storage import Storage

_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class RawColumn:
    """The column `raw` of one row, or the reason why it could not be read."""

    raw: bytes
    problem: str = ""

    def checked(self, size: int, digest: str, *, rejected: bool, of_raw: bool) -> str:
        """Say whether the row has the bytes that its index row tells of.

        Args:
            size: the file's, in bytes.
            digest: Hash of the index row; may be empty.
            rejected: whether it is a row of rejected1, which has the bytes in the member Content.
            of_raw: whether the digest is that of `raw`; before, it was that of the file's bytes.
        """
        if self.problem:
            return self.problem
        hashed = [self.raw] if of_raw else [self.raw, self.raw + b"\n"]
        if rejected:
            try:
                hashed = [b64decode(self.members("Content")["Content"])]
            except ValueError as exc:
                return f"the row was read, and its Content is not base64: {exc}"
        if not of_raw or rejected:
            hashed = [one for one in hashed if len(one) == size]
        if not (hashed and digest):
            return "the row was read; not all bytes of the file are in it, so its hash is not known"
        same = any(content_hash(one).hex() == digest for one in hashed)
        return f"the row was read, and its bytes {'have' if same else 'do NOT have'} the hash"

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
