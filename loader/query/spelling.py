"""Bring a JSON value to the one spelling that `columns` decodes, whatever a load job accepts.

**Invariant:** a value that `jostler.schema` accepts for a column has the meaning that BigQuery's
load job gives it; any other value raises ValueError.

Pure.  Values are those of `jostler.schema.document`: numbers are the bytes of their literals.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any

from jostler.schema.fields import Mode
from jostler.schema.moments import timestamp_us

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.schema import Field
    from jostler.schema.document import Value

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = (-62_135_596_800, 253_402_300_799)  # the years 1 to 9999
_TRUE = frozenset({"true", "t", "yes", "y", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "0"})
_INTEGER_RE = re.compile(r"-?[0-9]+")
_INT64 = range(-(2**63), 2**63)
WIDE = Context(prec=100, rounding=ROUND_HALF_UP)  # BigQuery rounds half away from zero


def spelled(field: Field, value: Value, record: Callable[[Field, Value], Any]) -> Any:  # noqa: ANN401 - a value of any column
    """Return a column's value as the decoder of `columns` would return it.

    Args:
        field: the column.
        value: null, or what stands there.
        record: makes the value of a RECORD.
    """
    if value is None:
        return None
    make = record if field.type == "RECORD" else _scalar
    if field.mode is Mode.REPEATED:
        if not isinstance(value, list):
            raise ValueError(f"{field.name}: no array")
        return [make(field, one) for one in value]
    return make(field, value)


def _scalar(field: Field, value: Value) -> Any:  # noqa: ANN401 - as above
    if field.type == "JSON":
        return json_text(value)
    if value is None or isinstance(value, (list, tuple)):
        raise ValueError(f"{field.name}: no {field.type}")
    return _SPELLINGS.get(field.type, _text)(value)


def _text(value: bool | str | bytes) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode()
    return value


def _integer(value: bool | str | bytes) -> int:
    text = _text(value)
    if not _INTEGER_RE.fullmatch(text) or int(text) not in _INT64:
        raise ValueError(f"no INTEGER: {text}")
    return int(text)


def _boolean(value: bool | str | bytes) -> bool:
    text = _text(value).lower()
    if text not in _TRUE | _FALSE:
        raise ValueError(f"no BOOLEAN: {text}")
    return text in _TRUE


def _timestamp(value: bool | str | bytes) -> str:
    """Return the instant with six digits of fraction and the zone Z."""
    micros = _epoch_us(value) if isinstance(value, bytes) else timestamp_us(_text(value))
    if micros is None:
        raise ValueError(f"no TIMESTAMP: {value!r}")
    instant = _EPOCH + timedelta(microseconds=micros)
    return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _epoch_us(literal: bytes) -> int | None:
    """Read a number as seconds since 1970, or as milliseconds if it is too large for seconds."""
    number = Decimal(literal.decode())
    first, last = _SECONDS
    if first <= number <= last:
        return int(number * 1_000_000)
    return int(number * 1000) if first * 1000 <= number <= last * 1000 + 999 else None


def json_text(value: Value) -> str:
    """Write a JSON value without white space; of equal keys the first one stays, as in BigQuery."""
    match value:
        case None | bool() | str():
            return json.dumps(value, ensure_ascii=False)
        case bytes():
            return value.decode()
        case list():
            return f"[{','.join(map(json_text, value))}]"
    first = dict(reversed(value))
    members = (f"{json.dumps(k, ensure_ascii=False)}:{json_text(v)}" for k, v in first.items())
    return f"{{{','.join(reversed(list(members)))}}}"


_SPELLINGS: dict[str, Callable[[bool | str | bytes], Any]] = {
    "INTEGER": _integer,
    "FLOAT": lambda value: float(_text(value)),
    "BOOLEAN": _boolean,
    "NUMERIC": lambda value: Decimal(_text(value)),
    "BIGNUMERIC": lambda value: Decimal(_text(value)),
    "TIMESTAMP": _timestamp,
}
