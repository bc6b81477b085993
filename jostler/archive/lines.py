"""A parser for the lines of a bundle, written from docs/format.md alone.

**Invariant:** it shares no code with the writer, so that a mistake of the writer is found.  It
never decodes the bytes of `raw`, so numbers of any length and values of any depth are accepted.

Pure: takes bytes, returns rows and problems.
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
        date: the value of the column `date`.
        archiver: the fields of the column `archiver`, by the names in docs/format.md.
        raw: the bytes of the column `raw`.
        go: whether m-lab's Go agent wrote the line.
    """

    line: bytes
    date: object
    archiver: dict[str, Any]
    raw: bytes
    go: bool = False


class RowError(Exception):
    """A line is not a row; the message says why."""


def lines_of(data: bytes) -> list[bytes]:
    """Decompress a bundle; return its lines with their line feeds; the last one may have none.

    Raises:
        RowError: the data is not exactly one gzip stream.
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
    """Parse one line of a bundle.

    Raises:
        RowError: the line is neither a row of jostler nor one of the Go agent.
    """
    columns = _object(line)
    go = tuple(columns) == tuple(key.capitalize() for key in _STANDARD)
    if not go and tuple(columns) != _STANDARD:
        raise RowError(f"expected the columns {_STANDARD}")
    date, archiver, raw = columns.values()
    if not raw.startswith(b"{"):
        raise RowError("raw is not an object")
    fields = _decoded(archiver)
    if not isinstance(fields, dict) or tuple(fields) != _ARCHIVER:
        raise RowError(f"expected archiver to have {_ARCHIVER}")
    if not all(isinstance(value, str) and value for value in fields.values()):
        raise RowError("a field of archiver is empty")
    return Row(line=line, date=_decoded(date), archiver=fields, raw=raw, go=go)


def members(value: bytes) -> dict[str, Any]:
    """Return the members of a JSON object, such as an index row's `raw` or a bare index line.

    Raises:
        RowError: `value` is not a JSON object.
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
