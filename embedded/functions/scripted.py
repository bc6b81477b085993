"""GoogleSQL functions written in Python, and their registration with DuckDB.

**Invariant:** each argument and each result has one DuckDB type; the text of an exception is
BigQuery's message.

DuckDB needs numpy for such functions.  Without numpy, a call of one is an error that says so.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any

import duckdb

from embedded.functions import formats, nets, searches, timeformats, values

if TYPE_CHECKING:
    from collections.abc import Callable

_STEP = re.compile(r'\."((?:[^"\\]|\\.)*)"|\[(\d+)\]')


def _steps(path: str) -> list[str | int]:
    """Return the keys and indexes of a JSON path in normalized form, such as `$."a"[1]`."""
    return [
        int(found[2]) if found[1] is None else found[1].replace('\\"', '"')
        for found in _STEP.finditer(path)
    ]


def _json_number(text: str | None, path: str | None) -> str | None:
    return None if path is None else values.number_text(text, json.dumps(_steps(path)))


def _json_part(text: str | None, path: str | None) -> str | None:
    """Return a part of a JSON text; its numbers keep their spelling."""
    if text is None or path is None:
        return None
    value: Any = values.loaded(text)
    for step in _steps(path):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return None if value is None else values.dumped(value)


def _normalized(text: str | None, form: str | None) -> str | None:
    if text is None or form is None:
        return None
    return unicodedata.normalize(form, text)  # type: ignore[arg-type]


def _to_base32(data: bytes | None) -> str | None:
    return None if data is None else base64.b32encode(data).decode()


def _from_base32(text: str | None) -> bytes | None:
    return None if text is None else base64.b32decode(text)


def _soundex(text: str | None) -> str | None:
    if text is None:
        return None
    codes = {
        c: d
        for cs, d in zip(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), "123456", strict=False)
        for c in cs
    }
    letters = [char for char in text.upper() if "A" <= char <= "Z"]
    if not letters:
        return ""
    out, last = letters[0], codes.get(letters[0])
    for char in letters[1:]:
        code = codes.get(char)
        if code and code != last:
            out += code
        if char not in "HW":
            last = code
    return out[:4].ljust(4, "0")


def _sha512(data: bytes | None) -> bytes | None:
    return None if data is None else hashlib.sha512(data).digest()


def _safe_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


# name: (function, argument types, result type)
FUNCTIONS: dict[str, tuple[Callable[..., object], list[str], str]] = {
    "py_json": (values.to_json_string, ["VARCHAR", "VARCHAR", "BOOLEAN"], "VARCHAR"),
    "py_json_number": (_json_number, ["VARCHAR", "VARCHAR"], "VARCHAR"),
    "py_json_part": (_json_part, ["VARCHAR", "VARCHAR"], "VARCHAR"),
    "py_format": (formats.formatted, ["VARCHAR", "VARCHAR[]", "VARCHAR[]"], "VARCHAR"),
    "py_strftime": (
        timeformats.formatted,
        ["TIMESTAMP", "TIMESTAMP", "VARCHAR", "VARCHAR"],
        "VARCHAR",
    ),
    "py_strptime": (timeformats.parsed, ["VARCHAR", "VARCHAR"], "TIMESTAMP"),
    "py_normalize": (_normalized, ["VARCHAR", "VARCHAR"], "VARCHAR"),
    "py_to_base32": (_to_base32, ["BLOB"], "VARCHAR"),
    "py_from_base32": (_from_base32, ["VARCHAR"], "BLOB"),
    "py_soundex": (_soundex, ["VARCHAR"], "VARCHAR"),
    "py_safe_text": (_safe_text, ["BLOB"], "VARCHAR"),
    "py_sha512": (_sha512, ["BLOB"], "BLOB"),
    "py_texts": (searches.texts, ["VARCHAR", "VARCHAR"], "VARCHAR[]"),
    "py_decoded": (searches.decoded, ["VARCHAR[]"], "VARCHAR[]"),
    "py_ip_from_string": (nets.ip_from_string, ["VARCHAR"], "BLOB"),
    "py_safe_ip_from_string": (nets.safe_ip_from_string, ["VARCHAR"], "BLOB"),
    "py_ip_to_string": (nets.ip_to_string, ["BLOB"], "VARCHAR"),
    "py_ip_trunc": (nets.ip_trunc, ["BLOB", "BIGINT"], "BLOB"),
    "py_ip_net_mask": (nets.ip_net_mask, ["BIGINT", "BIGINT"], "BLOB"),
    "py_ipv4_from_int64": (nets.ipv4_from_int64, ["BIGINT"], "BLOB"),
    "py_ipv4_to_int64": (nets.ipv4_to_int64, ["BLOB"], "BIGINT"),
    "py_host": (nets.host, ["VARCHAR"], "VARCHAR"),
    "py_public_suffix": (nets.public_suffix, ["VARCHAR"], "VARCHAR"),
    "py_reg_domain": (nets.reg_domain, ["VARCHAR"], "VARCHAR"),
}
RAISED = re.compile(r"Python exception occurred while executing the UDF: \w+: (.*)", re.DOTALL)


def register(database: duckdb.DuckDBPyConnection) -> None:
    """Register all functions with a database that was just opened."""
    for name, (function, takes, gives) in FUNCTIONS.items():
        try:
            database.create_function(name, function, takes, gives, null_handling="special")  # type: ignore[call-overload]
        except duckdb.InvalidInputException:  # without numpy
            args = ", ".join(f"a{place}" for place, _ in enumerate(takes))
            reason = (
                "This function needs numpy, which is not installed beside the embedded BigQuery"
            )
            body = f"CAST(error('{reason}') AS {gives})"
            database.execute(f"CREATE OR REPLACE TEMP MACRO {name} ({args}) AS ({body})")
