"""Decide whether a line of NDJSON is a row of a table, and convert it to the stored values.

**Invariant:** the verdict depends only on the line and the schema.  The rules were written from
BigQuery's documentation, independently of `jostler.schema`, so that each can check the other.

It judges single rows; the load job counts bad rows and refuses files.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from embedded.load.scalars import Flaw, NumberText, converter, integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from embedded.model.fields import Field

Row = dict[str, object]
MAX_ROW_BYTES = 100 * 2**20  # "Row size", quotas of load jobs
MAX_JSON_DEPTH = 500  # "JSON type"
JSON_INTEGERS = range(-(2**63), 2**64)  # a JSON column stores larger integers as FLOAT64


class Repeated(dict[str, object]):
    """A JSON object that has a key twice; a JSON column keeps the first value."""

    again: str = ""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    first = Repeated()
    for key, value in pairs:
        if key in first:
            first.again = key
        else:
            first[key] = value
    return first


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=integer,
    parse_float=NumberText,
    parse_constant=_no_constant,
)


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    path: str
    mode: str
    convert: Callable[[object], object]

    def of_null(self) -> object:
        if self.mode == "REQUIRED":
            raise Flaw(f"Only optional fields can be set to NULL. Field: {self.path}; Value: NULL")
        # BigQuery's page on loading JSON says that null becomes an empty array; docs/embedded.md.
        return [] if self.mode == "REPEATED" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordConverter:
    """Converts JSON objects to values of a RECORD; `folded` has the columns by lower-case name."""

    path: str
    columns: dict[str, _Column]
    folded: dict[str, _Column]
    required: tuple[_Column, ...]
    arrays: tuple[str, ...]
    ignore_unknown: bool

    def convert(self, value: object) -> object:
        if not isinstance(value, dict):
            raise self._no_record(value)
        if type(value) is Repeated:
            raise Flaw(f"Multiple definition of field: {self.path}{value.again}")
        row: Row = {}
        for key, item in value.items():
            column = self.columns.get(key) or self.folded.get(_folded(key))
            if column is None:
                if not self.ignore_unknown:
                    raise Flaw(f"No such field: {self.path}{key}.")
            elif column.name in row:  # the names differ only by case
                raise Flaw(f"Multiple definition of field: {column.path}")
            else:
                row[column.name] = column.of_null() if item is None else column.convert(item)
        if len(row) < len(self.columns):
            self._complete(row)
        return row

    def _complete(self, row: Row) -> None:
        for column in self.required:
            if column.name not in row:
                raise Flaw(f"Missing required field: {column.path}.")
        for name in self.arrays:
            if name not in row:
                row[name] = []

    def _no_record(self, value: object) -> Flaw:
        name = self.path.rstrip(".")
        if isinstance(value, list):
            return Flaw(f"Array specified for non-repeated field: {name}.")
        return Flaw(f"This field: {name} is not a record.")


class RowJudge:
    """Judges rows against one schema.

    Args:
        fields: the table's columns.
        ignore_unknown: whether to drop fields that are not in the schema (ignoreUnknownValues).
    """

    def __init__(self, fields: tuple[Field, ...], *, ignore_unknown: bool = False) -> None:
        self._ignore_unknown = ignore_unknown
        self._record = self._record_converter(fields, "")

    def row(self, line: bytes) -> Row:
        """Return the row in `line` by column names, in the form that DuckDB reads.

        Raises:
            Flaw: the line is not a row of this table.
        """
        if len(line) > MAX_ROW_BYTES:
            raise Flaw(f"Row size is larger than: {MAX_ROW_BYTES}.")
        try:
            # BigQuery replaces bytes that are not UTF-8 (JobConfigurationLoad.encoding).
            parsed = _DECODER.decode(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as exc:
            raise Flaw(f"Parser terminated before end of string: {exc}") from exc
        if not isinstance(parsed, dict):
            raise Flaw("Start of array encountered without start of object.")
        row = self._record(parsed)
        assert isinstance(row, dict)
        return row

    def _record_converter(self, fields: tuple[Field, ...], path: str) -> Callable[[object], object]:
        columns = {field.name: self._column(field, path) for field in fields}
        return _RecordConverter(
            path=path,
            columns=columns,
            folded={name.lower(): column for name, column in columns.items()},
            required=tuple(column for column in columns.values() if column.mode == "REQUIRED"),
            arrays=tuple(field.name for field in fields if field.repeated),
            ignore_unknown=self._ignore_unknown,
        ).convert

    def _column(self, field: Field, path: str) -> _Column:
        name = path + field.name
        one = self._one(field, name)
        convert = _array(one, name) if field.repeated else one
        return _Column(field.name, name, field.mode, convert)

    def _one(self, field: Field, name: str) -> Callable[[object], object]:
        if field.type == "RECORD":
            return self._record_converter(field.fields, f"{name}.")
        if field.type == "JSON":
            return _json_text
        plain = converter(field)
        return lambda value: plain(value, name)


def _array(one: Callable[[object], object], name: str) -> Callable[[object], object]:
    def convert(value: object) -> object:
        if not isinstance(value, list):
            raise Flaw(f"Repeated field must be imported as a JSON array. Field: {name}.")
        if None in value:
            raise Flaw(f"Only optional fields can be set to NULL. Field: {name}; Value: NULL")
        return [one(item) for item in value]

    return convert


def _folded(key: str) -> str:
    return (
        key.lower() if key.isascii() else key
    )  # str.lower() converts the Kelvin sign to k, which BigQuery does not


def _json_text(value: object) -> object:
    """Write a JSON column's value, with numbers in BigQuery's form.

    The order of members is not BigQuery's.  There is no recursion, because 500 levels are
    legal and Python's limit is 1,000 calls.
    """
    text: list[str] = []
    todo: list[tuple[object, int]] = [(value, 1)]  # a stack; text with depth 0 is copied unchanged
    while todo:
        part, depth = todo.pop()
        if depth == 0:
            text.append(str(part))
        elif isinstance(part, dict | list):
            if depth > MAX_JSON_DEPTH:
                raise Flaw(f"JSON is nested too deep: at most {MAX_JSON_DEPTH} levels")
            todo += reversed(list(_tokens(part, depth)))
        else:
            text.append(_json_scalar(part))
    return "".join(text)


def _tokens(part: dict[str, object] | list[object], depth: int) -> Iterator[tuple[object, int]]:
    """Yield the parts of an array or object in order, with depths; punctuation has depth 0."""
    if isinstance(part, dict):
        yield "{", 0
        for number, (key, item) in enumerate(part.items()):
            yield f"{',' if number else ''}{json.dumps(key, ensure_ascii=False)}:", 0
            yield item, depth + 1
        yield "}", 0
    else:
        yield "[", 0
        for number, item in enumerate(part):
            yield "," if number else "", 0
            yield item, depth + 1
        yield "]", 0


def _json_scalar(value: object) -> str:
    if isinstance(value, NumberText) or (isinstance(value, int) and value not in JSON_INTEGERS):
        try:
            value = float(value)
        except OverflowError as exc:
            raise Flaw(f"Invalid JSON value: {exc}") from exc
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError as exc:
        raise Flaw(f"Invalid JSON value: {exc}") from exc


def encoded(row: Mapping[str, object]) -> bytes:
    """Write a judged row as one line of the staging file.

    Raises:
        Flaw: a string has a lone surrogate, which UTF-8 cannot encode.
    """
    try:
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as exc:
        raise Flaw(f"Invalid Unicode in a string: {exc}") from exc
