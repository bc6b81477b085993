"""The lines of a bundle taken apart, as any reader of docs/format.md would do it.

**Invariant:** nothing is taken from the code that writes.  The bytes of `raw` are never decoded, so
numbers of any length and values of any legal depth are no problem.

Pure: bytes in, rows and problems out.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import msgspec

_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STANDARD = ("date", "archiver", "raw")
_ARCHIVER = ("Version", "GitCommit", "ArchiveURL", "Filename")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a bundle.

    Attributes:
        line: its bytes, with the line feed if it has one.
        date: of the column.
        archiver: of the column; by the names that the format has.
        raw: the bytes of the column.
        go: whether m-lab's Go agent wrote it.
    """

    line: bytes
    date: object
    archiver: dict[str, Any]
    raw: bytes
    go: bool = False


class RowError(Exception):
    """A line that is no row; the message says why."""


def lines_of(data: bytes) -> list[bytes]:
    """Inflate a bundle; return its lines with their line feeds, which the last one may lack.

    Raises:
        RowError: it is not one gzip stream.
    """
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        plain = inflate.decompress(data)
    except zlib.error as exc:
        raise RowError(f"not one gzip stream: {exc}") from exc
    if not inflate.eof or inflate.unused_data:
        raise RowError("not one gzip stream: truncated, or more than one")
    *lines, rest = plain.split(b"\n")
    return [line + b"\n" for line in lines] + ([rest] if rest else [])


def row(line: bytes) -> Row:
    """Take one line of a bundle apart.

    Raises:
        RowError: it is no row, neither ours nor one of the Go agent.
    """
    columns = _object(line)
    go = tuple(columns) == tuple(key.capitalize() for key in _STANDARD)
    if not go and tuple(columns) != _STANDARD:
        raise RowError(f"expected the columns {_STANDARD}")
    date, archiver, raw = columns.values()
    if not raw.startswith(b"{"):
        raise RowError("raw is not an object")
    told = _decoded(archiver)
    if not isinstance(told, dict) or tuple(told) != _ARCHIVER:
        raise RowError(f"expected archiver to have {_ARCHIVER}")
    if not all(isinstance(value, str) and value for value in told.values()):
        raise RowError("a field of archiver is empty")
    return Row(line=line, date=_decoded(date), archiver=told, raw=raw, go=go)


def members(value: bytes) -> dict[str, Any]:
    """Return the members of a JSON object, such as an index row's `raw` or a bare index line.

    Raises:
        RowError: it is no object.
    """
    return {key: _decoded(member) for key, member in _object(value).items()}


def _object(text: bytes) -> dict[str, bytes]:
    try:
        return {key: bytes(value) for key, value in _TOP.decode(text).items()}
    except (msgspec.DecodeError, RecursionError, ValueError) as exc:
        raise RowError(f"no row: {exc}") from exc


def _decoded(value: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError, ValueError) as exc:
        raise RowError(f"no row: {exc}") from exc
