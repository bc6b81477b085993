"""The columns of index1 that `-index-field` fills: Start, End and WorkID of each file.

**Invariant:** if the source is missing or of another type, the value is null; the file stays good.

Pure: takes a Filename and a document, returns values.
"""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from jostler.format.index_row import Facts
from jostler.format.translation import SEPARATOR, Translation, UntranslatableError
from jostler.schema.moments import timestamp_us

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH_MS_ABOVE = 100_000_000_000
"""Seconds since 1970 beyond this number, which is in the year 5138, are milliseconds."""
WORK_ID_MAX = 255
_WORK_ID_RE = re.compile(rf"[a-z0-9_-]{{1,{WORK_ID_MAX}}}", re.ASCII)
_NUMBER_RE = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]+)?", re.ASCII)
_YEAR_1_US, _YEAR_10000_US = -62_135_596_800_000_000, 253_402_300_800_000_000


class Column(StrEnum):
    """The columns."""

    START = "Start"
    END = "End"
    WORK_ID = "WorkID"


class IndexField(Struct, frozen=True, kw_only=True):
    """One value of `-index-field`: which column of which datatype gets its value from where.

    Attributes:
        datatype: the datatype of the files.
        column: the index column.
        source: the path of member names from the document's top to the value; or a translation of
            the Filename.
    """

    datatype: str
    column: Column
    source: tuple[str, ...] | Translation

    @classmethod
    def parse(cls, text: str) -> IndexField:
        """Read `DATATYPE:COLUMN=SOURCE`.

        Raises:
            ValueError: it is something else; the message says what is wrong.
        """
        target, equals, source = text.partition("=")
        datatype, colon, name = target.partition(":")
        if not (equals and colon and datatype and source):
            raise ValueError(f"{text!r} is not DATATYPE:COLUMN=SOURCE")
        try:
            column = Column(name)
        except ValueError:
            raise ValueError(f"{name!r} is none of the columns {', '.join(Column)}") from None
        if SEPARATOR in source:
            return cls(datatype=datatype, column=column, source=Translation.parse(source))
        path = tuple(source.split("."))
        if "" in path:
            raise ValueError(f"{source!r} is neither a path such as Download.StartTime nor R~F")
        return cls(datatype=datatype, column=column, source=path)


class IndexFields:
    """All fields of one datatype.

    Attributes:
        columns: those that a field fills.
    """

    def __init__(self, fields: Iterable[IndexField]) -> None:
        self._sources = {field.column: field.source for field in fields}
        self.columns = tuple(self._sources)
        paths = [source for source in self._sources.values() if isinstance(source, tuple)]
        self._decoder = msgspec.json.Decoder(_struct(paths)) if paths else None

    def facts(self, filename: str, document: bytes, mtime_ns: int) -> Facts:
        """Return the values for a file.

        Args:
            filename: `yyyy/mm/dd/<name>`.
            document: one JSON object.
            mtime_ns: its modification time, for Start if no field fills it.
        """
        decoded = self._decoded(document)
        values = {column: self._value(column, filename, decoded) for column in self.columns}
        start = values.get(Column.START, mtime_ns // 1000)
        return Facts(start, values.get(Column.END), values.get(Column.WORK_ID))

    def missing(self, facts: Facts) -> list[str]:
        """Return the columns that a field was to fill and that are null."""
        values = dict(zip(Column, facts, strict=True))
        return [str(column) for column in self.columns if values[column] is None]

    def _decoded(self, document: bytes) -> object:
        """Decode the members on the way to the values; all others are passed over."""
        if self._decoder is None:
            return None
        try:
            return self._decoder.decode(document)
        except (msgspec.DecodeError, RecursionError):
            pass
        try:  # a member on the way is of another kind: the other values may still be there
            return msgspec.json.decode(document)
        except (msgspec.DecodeError, RecursionError):
            return None

    def _value(self, column: Column, filename: str, decoded: object) -> Any:  # noqa: ANN401 - int or str
        source = self._sources[column]
        value: object
        if isinstance(source, Translation):
            try:
                value = source.of(filename)
            except UntranslatableError:
                return None
            if column is not Column.WORK_ID and _NUMBER_RE.fullmatch(str(value)):
                value = float(value) if "." in str(value) else int(str(value))
        else:
            value = _member(decoded, source)
        return work_id(value) if column is Column.WORK_ID else instant_us(value)


def _struct(paths: Iterable[tuple[str, ...]]) -> type[msgspec.Struct]:
    """Make a type that has the members of some paths and no others."""
    below: dict[str, list[tuple[str, ...]]] = {}
    for head, *rest in paths:
        below.setdefault(head, []).append(tuple(rest))
    fields: list[tuple[str, Any, Any]] = []
    rename = {}
    for number, (name, rests) in enumerate(below.items()):
        is_value = () in rests
        kind: Any = msgspec.Raw if is_value else _struct(rests)
        fields.append((f"f{number}", kind | msgspec.UnsetType, msgspec.UNSET))
        rename[f"f{number}"] = name
    return msgspec.defstruct("Looked", fields, rename=rename, gc=False)


def _member(value: object, path: tuple[str, ...]) -> object:
    """Return the value at a path; None if there is none."""
    for name in path:
        if isinstance(value, msgspec.Raw):
            value = _json(value)
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, msgspec.Struct):
            value = next(
                getattr(value, field)
                for field, encoded in zip(
                    value.__struct_fields__, value.__struct_encode_fields__, strict=True
                )
                if encoded == name
            )
        else:
            return None
    return _json(value) if isinstance(value, msgspec.Raw) else value


def _json(raw: msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def instant_us(value: object) -> int | None:
    """Return the instant that a value names, in microseconds since 1970; None if it names none.

    Args:
        value: the text of a TIMESTAMP, or seconds since 1970, or milliseconds if their number is
            above `EPOCH_MS_ABOVE`.
    """
    if isinstance(value, str):
        return timestamp_us(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    unit_us = 1_000 if abs(value) > EPOCH_MS_ABOVE else 1_000_000
    try:
        found = round(value * unit_us)
    except (OverflowError, ValueError):  # infinite, or no number
        return None
    return found if _YEAR_1_US <= found < _YEAR_10000_US else None


def work_id(value: object) -> str | None:
    """Return a value as a WorkID; None if it is not fit to be one."""
    if not isinstance(value, str):
        return None
    text = value.lower()
    if text == "null" or not _WORK_ID_RE.fullmatch(text):
        return None
    return sys.intern(text)  # files of one job come together
