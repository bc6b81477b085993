"""Functions that Spark lacks, or has with other answers, in Python.

**Invariant:** each gives what BigQuery's reference says; NULL is None.  An error of a value is an
exception, which ends the query.

They run in Spark's workers, which have this package.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

SIZES = {4: 32, 16: 128}  # bytes and bits of an IP address


def float_text(value: float | None) -> str | None:
    """CAST(x AS STRING) of a FLOAT64: 15 digits, or 17 if these are not exact."""
    if value is None:
        return None
    if math.isnan(value):
        return "NaN"
    if value == 0:
        return "0"
    short = f"{value:.15g}"
    return short if float(short) == value else f"{value:.17g}"


class _Number:
    """A JSON number as it is written."""

    def __init__(self, text: str) -> None:
        self.text = text


_FIRST = json.JSONDecoder(
    object_pairs_hook=lambda pairs: dict(reversed(pairs)),  # the first of two equal names counts
    parse_int=_Number,
    parse_float=_Number,
    parse_constant=_Number,
)
_STEP = re.compile(
    r"""\.([A-Za-z_][A-Za-z0-9_-]*)|\."((?:[^"\\]|\\.)*)"|\[([0-9]+)\]|\['((?:[^'\\]|\\.)*)'\]"""
)
_NOTHING = object()


def _found(text: str | None, path: str) -> Any:  # noqa: ANN401 - JSON
    """Return the part of a JSON text at a path; `_NOTHING` if there is none."""
    if text is None:
        return _NOTHING
    try:
        value = _FIRST.decode(text.strip())
    except (ValueError, RecursionError):
        return _NOTHING
    for step in _STEP.finditer(path):
        name = next((one for one in (step[1], step[2], step[4]) if one is not None), None)
        if name is not None:
            name = re.sub(r"\\(.)", r"\1", name)
            if not isinstance(value, dict) or name not in value:
                return _NOTHING
            value = value[name]
        else:
            at = int(step[3])
            if not isinstance(value, list) or at >= len(value):
                return _NOTHING
            value = value[at]
    return value


def _scalar(value: Any) -> str | None:  # noqa: ANN401 - JSON
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _written(value: Any) -> str:  # noqa: ANN401 - JSON
    """Write JSON without white space, numbers as they were."""
    if isinstance(value, _Number):
        return value.text
    if isinstance(value, dict):
        # The decoder reversed the members.
        members = reversed(value.items())
        return "{" + ",".join(f"{_written(k)}:{_written(v)}" for k, v in members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def json_value(text: str | None, path: str) -> str | None:
    """JSON_VALUE: a scalar as text; NULL for null, objects and arrays."""
    return _scalar(_found(text, path))


def json_query(text: str | None, path: str) -> str | None:
    """JSON_QUERY of a STRING: a part as JSON text; NULL for null."""
    found = _found(text, path)
    return None if found is _NOTHING or found is None else _written(found)


def json_query_array(text: str | None, path: str) -> list[str] | None:
    """JSON_QUERY_ARRAY of a STRING."""
    found = _found(text, path)
    return [_written(item) for item in found] if isinstance(found, list) else None


def json_value_array(text: str | None, path: str) -> list[str | None] | None:
    """JSON_VALUE_ARRAY: NULL if an element is no scalar."""
    found = _found(text, path)
    if not isinstance(found, list) or any(isinstance(item, dict | list) for item in found):
        return None
    return [_scalar(item) for item in found]


def json_of_text(value: str | None) -> str:
    """TO_JSON_STRING of a STRING."""
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


def json_of_int(value: int | None) -> str:
    """TO_JSON_STRING of an INT64: beyond 2^53 a JSON string."""
    if value is None:
        return "null"
    return str(value) if abs(value) <= 2**53 else f'"{value}"'


def json_of_float(value: float | None) -> str:
    """TO_JSON_STRING of a FLOAT64."""
    if value is None:
        return "null"
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return '"NaN"' if math.isnan(value) else str(float_text(value))


def safe_ip_from_string(text: str | None) -> bytes | None:
    """NET.SAFE_IP_FROM_STRING."""
    if text is None or "%" in text:
        return None
    try:
        return ipaddress.ip_address(text).packed
    except ValueError:
        return None


def ip_from_string(text: str | None) -> bytes | None:
    """NET.IP_FROM_STRING."""
    found = safe_ip_from_string(text)
    if found is None and text is not None:
        raise ValueError(f"NET.IP_FROM_STRING: {text!r} is no IP address")
    return found


def _checked(address: bytes) -> bytes:
    if len(address) not in SIZES:
        raise ValueError(f"an IP address has 4 or 16 bytes, not {len(address)}")
    return bytes(address)


def ip_to_string(address: bytes | None) -> str | None:
    """NET.IP_TO_STRING."""
    return None if address is None else str(ipaddress.ip_address(_checked(address)))


def ip_trunc(address: bytes | None, length: int | None) -> bytes | None:
    """NET.IP_TRUNC."""
    if address is None or length is None:
        return None
    bits = SIZES[len(_checked(address))]
    if not 0 <= length <= bits:
        raise ValueError(f"NET.IP_TRUNC: a prefix has 0 to {bits} bits, not {length}")
    whole = int.from_bytes(address) >> (bits - length) << (bits - length)
    return whole.to_bytes(len(address))


def ipv4_to_int64(address: bytes | None) -> int | None:
    """NET.IPV4_TO_INT64."""
    if address is None:
        return None
    if len(address) != 4:  # noqa: PLR2004 - bytes of IPv4
        raise ValueError(f"an IPv4 address has 4 bytes, not {len(address)}")
    return int.from_bytes(address)


def ipv4_from_int64(number: int | None) -> bytes | None:
    """NET.IPV4_FROM_INT64."""
    if number is None:
        return None
    if not -(2**31) <= number < 2**32:
        raise ValueError(f"NET.IPV4_FROM_INT64: {number} is no IPv4 address")
    return (number % 2**32).to_bytes(4)


FUNCTIONS: dict[str, tuple[Callable[..., object], str]] = {
    "float_text": (float_text, "string"),
    "json_value": (json_value, "string"),
    "json_query": (json_query, "string"),
    "json_query_array": (json_query_array, "array<string>"),
    "json_value_array": (json_value_array, "array<string>"),
    "json_of_text": (json_of_text, "string"),
    "json_of_int": (json_of_int, "string"),
    "json_of_float": (json_of_float, "string"),
    "safe_ip_from_string": (safe_ip_from_string, "binary"),
    "ip_from_string": (ip_from_string, "binary"),
    "ip_to_string": (ip_to_string, "string"),
    "ip_trunc": (ip_trunc, "binary"),
    "ipv4_to_int64": (ipv4_to_int64, "bigint"),
    "ipv4_from_int64": (ipv4_from_int64, "binary"),
}


def register(spark: SparkSession, names: Iterable[str]) -> None:
    """Make the functions of a `SparkText` known to a session."""
    for name in names:
        function, kind = FUNCTIONS[name]
        spark.udf.register(name, function, kind)
