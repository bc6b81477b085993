"""Decode only the named columns of rows, straight into Arrow.

**Invariant:** a value becomes what a load job of BigQuery would store, or its row is bad; a column
that is not named costs no more than being skipped by the decoder.

Pure.  A row whose values have unusual spellings (a number in quotes, a key in other letter case) is
parsed once more by an exact parser, so the usual ones pay nothing for it.
"""

from __future__ import annotations

import base64
import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET, Meta, UnsetType

from jostler.schema.document import parse
from jostler.schema.fields import Mode
from loader.query.spelling import WIDE, json_text, spelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.schema import Field, Fields
    from jostler.schema.document import Value

_FEW = 8
"""Of so many missing names each is looked for by itself; of more, all keys are collected."""
_KEY_RE = re.compile(rb'"([^"\\]{1,300})"\s*:')
NUMERIC, BIGNUMERIC = pa.decimal128(38, 9), pa.decimal128(38, 18)
"""BIGNUMERIC has 76 digits and Spark 38: a value that needs more makes its row a bad one."""

_FORMS: dict[str, Any] = {
    "STRING": str,
    "INTEGER": Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
    "FLOAT": float,
    "BOOLEAN": bool,
    "NUMERIC": Decimal,
    "BIGNUMERIC": Decimal,
    "JSON": msgspec.Raw,
}
_TYPES: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "INTEGER": pa.int64(),
    "FLOAT": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "NUMERIC": NUMERIC,
    "BIGNUMERIC": BIGNUMERIC,
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "DATE": pa.date32(),
    "DATETIME": pa.timestamp("us"),
}


def arrow_type(field: Field) -> pa.DataType:
    """Return the Arrow type of a column; those that Arrow does not have are text."""
    kind = _TYPES.get(field.type, pa.string())
    if field.type == "RECORD":
        kind = pa.struct([pa.field(one.name, arrow_type(one)) for one in field.fields])
    return pa.list_(kind) if field.mode is Mode.REPEATED else kind


class Decoder:
    """Decodes the `raw` of rows.

    Args:
        fields: the fields of `raw` that are wanted.
    """

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._known: dict[Fields, type[msgspec.Struct]] = {}
        self._record = self._struct(fields)
        self._decode = msgspec.json.Decoder(self._record).decode

    def decode(self, raws: Sequence[bytes | memoryview]) -> tuple[pa.StructArray, list[int]]:
        """Decode the contents of rows.

        Returns:
            The values of the good rows, and the numbers of the bad ones, from 0, in order.
        """
        rows: list[Any] = []
        bad: list[int] = []
        missing: set[str] = set()
        for nth, raw in enumerate(raws):
            try:
                rows.append(self._decode(raw))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._take_odd(nth, raw, rows, bad)
        try:
            found = self._array(rows, missing)
            if not missing or not spelled_otherwise(missing, raws):
                return found, bad
        except (ValueError, InvalidOperation, pa.ArrowException):
            pass
        return self._one_by_one(raws)

    def _one_by_one(self, raws: Sequence[bytes | memoryview]) -> tuple[pa.StructArray, list[int]]:
        """Decode rows of which one has an unusual value."""
        rows: list[Any] = []
        bad: list[int] = []
        for nth, raw in enumerate(raws):
            self._take_odd(nth, raw, rows, bad)
        return self._array(rows, set()), bad

    def _take_odd(self, nth: int, raw: bytes | memoryview, rows: list[Any], bad: list[int]) -> None:
        try:
            row = self._spelled(bytes(raw))
            self._array([row], set())
            rows.append(row)
        except (ValueError, InvalidOperation, pa.ArrowException):
            bad.append(nth)

    def _spelled(self, raw: bytes) -> Any:  # noqa: ANN401 - a struct made here
        value = parse(raw)
        if not isinstance(value, tuple):
            raise ValueError("no JSON object")  # noqa: TRY004 - one error for whatever is wrong
        return self._spelled_record(self.fields, value)

    def _spelled_record(self, fields: Fields, value: Value) -> Any:  # noqa: ANN401 - as above
        if not isinstance(value, tuple):
            raise ValueError("no object")  # noqa: TRY004 - as above
        by_key = {key.lower(): inner for key, inner in value}
        made = {
            f"f{nth}": spelled(
                field, by_key.get(field.key), lambda one, v: self._spelled_record(one.fields, v)
            )
            for nth, field in enumerate(fields)
        }
        return self._struct(fields)(**made)

    def _struct(self, fields: Fields) -> type[msgspec.Struct]:
        """Define the struct of a RECORD; equal RECORDs share one."""
        if fields not in self._known:
            names = [f"f{nth}" for nth in range(len(fields))]
            self._known[fields] = msgspec.defstruct(
                "Record",
                [
                    (name, self._form(field) | UnsetType, UNSET)
                    for name, field in zip(names, fields, strict=True)
                ],
                gc=False,
                kw_only=True,
                rename=dict(zip(names, (field.name for field in fields), strict=True)),
            )
        return self._known[fields]

    def _form(self, field: Field) -> Any:  # noqa: ANN401 - a type form has no type of its own in 3.11
        if field.type == "RECORD":
            form: Any = self._struct(field.fields)
        else:
            form = _FORMS.get(field.type, str)
        if field.mode is Mode.REPEATED:
            form = list[form]
        return form if form is msgspec.Raw else form | None

    def _array(self, rows: list[Any], missing: set[str]) -> pa.StructArray:
        return _records(self.fields, rows, missing)


def _records(fields: Fields, rows: list[Any], missing: set[str]) -> pa.StructArray:
    """Make the array of a RECORD; None and UNSET stand for null."""
    nulls = [row is None or row is UNSET for row in rows]
    mask = pa.array(nulls) if any(nulls) else None
    children = []
    for nth, field in enumerate(fields):
        name = f"f{nth}"
        if mask is None:
            values = [getattr(row, name) for row in rows]
        else:
            values = [
                None if null else getattr(row, name) for row, null in zip(rows, nulls, strict=True)
            ]
        children.append(_column(field, values, missing))
    if not fields:
        return pa.array([None if null else {} for null in nulls], pa.struct([]))
    return pa.StructArray.from_arrays(
        children,
        fields=[pa.field(one.name, arrow_type(one)) for one in fields],
        mask=mask,
    )


def _column(field: Field, values: list[Any], missing: set[str]) -> pa.Array:
    if any(value is UNSET for value in values):
        missing.add(field.name)
        values = [None if value is UNSET else value for value in values]
    if field.mode is not Mode.REPEATED:
        return _values(field, values, missing)
    # BigQuery knows no null array: it is empty.
    lists = [value or () for value in values]
    flat = list(chain.from_iterable(lists))
    if None in flat:
        raise ValueError(f"{field.name}: null in an array")
    offsets = pa.array(accumulate(map(len, lists), initial=0), pa.int32())
    return pa.ListArray.from_arrays(offsets, _values(field, flat, missing))


def _values(field: Field, values: list[Any], missing: set[str]) -> pa.Array:  # noqa: PLR0911 - one for each kind of column
    """Make the array of values that are neither arrays nor missing."""
    kind = _TYPES.get(field.type, pa.string())
    match field.type:
        case "RECORD":
            return _records(field.fields, values, missing)
        case "BYTES":
            decoded = [v if v is None else base64.b64decode(v, validate=True) for v in values]
            return pa.array(decoded, kind)
        case "NUMERIC" | "BIGNUMERIC":
            return pa.array([_fitted(field, value) for value in values], kind)
        case "TIMESTAMP":
            # Digits beyond microseconds are cut, as the load job does; years before 1678 and other
            # spellings raise here, and come again one by one with six digits.
            try:
                instants = pa.array(values, pa.string()).cast(pa.timestamp("ns", "UTC"))
                return pc.floor_temporal(instants, unit="microsecond").cast(kind, safe=False)
            except pa.ArrowInvalid:
                return pa.array(values, pa.string()).cast(kind)
        case "DATE" | "DATETIME":
            return pa.array(values, pa.string()).cast(kind)
        case "FLOAT":
            return pc.add(pa.array(values, kind), 0.0)  # BigQuery stores no negative zero
        case "JSON":
            texts = [None if v is None else v if type(v) is str else _compact(v) for v in values]
            return pa.array([None if text == "null" else text for text in texts], kind)
    return pa.array(values, kind)


def _fitted(field: Field, value: Decimal | None) -> Decimal | None:
    """Round to the digits that a column has."""
    if value is None:
        return None
    scale = {"NUMERIC": 9, "BIGNUMERIC": 18}[field.type]
    if field.precision is not None:
        scale = min(scale, field.scale or 0)
    rounded = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    if field.type == "BIGNUMERIC" and rounded != value:
        raise ValueError(f"{field.name}: a BIGNUMERIC of more digits than Spark has")
    return rounded


def _compact(raw: msgspec.Raw) -> str:
    value: Any = parse(b'{"":' + bytes(raw) + b"}")
    if not isinstance(value, tuple):
        raise ValueError("no JSON")  # noqa: TRY004 - one error for whatever is wrong
    return json_text(value[0][1])


def spelled_otherwise(names: set[str], raws: Sequence[bytes | memoryview]) -> bool:
    """Return whether a name that some rows lack occurs in another letter case."""
    text = b"\n".join(raws)
    lower = text.lower()
    if len(names) <= _FEW:
        quoted = [b'"%b"' % name.encode() for name in names]
        return any(lower.count(one.lower()) != text.count(one) for one in quoted)
    known = {name.lower(): name for name in names}
    keys = {key.decode(errors="replace") for key in set(_KEY_RE.findall(text))}
    return any(known.get(key.lower(), key) != key for key in keys)


@lru_cache(maxsize=64)
def decoder(fields: Fields) -> Decoder:
    """Return a decoder; one is kept for each set of columns that a worker has seen lately."""
    return Decoder(fields)
