"""The fast judge: a typed decoder compiled from the columns; it answers "good" or "undecided".

**Invariant:** it accepts no document that the slow judge refuses; a document that it does not
accept is undecided.  Decoded values take at most DECODED_BYTES_MAX of memory beside the text.

Pure; any number of threads may share one judge.  No union of types has more than two constrained
parts: msgspec 0.22 reads beyond its table of constraints and crashes if int, float and text limits
occur with list and dict in one union.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from jostler.schema.fields import Field, Fields, Mode
from jostler.schema.nulls import NULL
from jostler.schema.scalars import EPOCH_MAX, EPOCH_MIN, INT64_MAX, INT64_MIN, JSON_DEPTH

_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)"
    r"|(?:0[13578]|1[02])-31)"
)
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
# Years that stay within 1 to 9999 with any UTC offset.
_DATE = rf"[1-8][0-9]{{3}}-{_DAY}"
_ZONE = r"(?:Z| UTC|[+-](?:0[0-9]|1[0-3]):[0-5][0-9])?"

_NEVER: Any = Annotated[str, Meta(pattern=r"(?!)")]
_INTEGER: Any = (
    Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
    | Annotated[str, Meta(pattern=r"\A-?[0-9]{1,18}\Z")]
)
_FLOAT: Any = float | Annotated[str, Meta(pattern=r"\A(?:NaN|-?Infinity)\Z")]
_BOOLEAN: Any = bool | Annotated[str, Meta(pattern=r"\A(?ai:true|false|t|f|yes|no|y|n|1|0)\Z")]
_NUMERIC: Any = (
    Annotated[float, Meta(ge=-1e28, le=1e28)]
    | Annotated[str, Meta(pattern=r"\A-?[0-9]{1,28}(?:\.[0-9]{1,9})?\Z")]
)
_TIMESTAMP: Any = (
    Annotated[int, Meta(ge=EPOCH_MIN, le=EPOCH_MAX)]
    | Annotated[
        str,
        Meta(pattern=rf"\A{_DATE}[T ]{_CLOCK}(?:\.[0-9]+)?{_ZONE}\Z"),
    ]
)
_TYPES: dict[str, Any] = {
    "INTEGER": _INTEGER,
    "FLOAT": _FLOAT,
    "BOOLEAN": _BOOLEAN,
    "TIMESTAMP": _TIMESTAMP,
    "DATE": date,
    "TIME": Annotated[str, Meta(pattern=rf"\A{_CLOCK}(?:\.[0-9]{{1,6}})?\Z")],
    "DATETIME": Annotated[str, Meta(pattern=rf"\A{_DATE} {_CLOCK}(?:\.[0-9]{{1,6}})?\Z")],
    # Not Any, which would accept null as an element of an array.
    "JSON": bool | int | float | str | list | dict,
    NULL: None,
}

# Escapes of NUL, which is refused, and of a colon, which would make the count of colons wrong.
_ESCAPES_RE = re.compile(rb"\\u00(?:00|3[aA])")

# A number of 309 digits may exceed a 64-bit float; the decoder of JSON columns does not check that.
# 309 digits in a row contain two successive samples of every 154th byte, so sampling finds them.
_STRIDE = 154
_LONG_RE = re.compile(rb"[0-9]{309}")
_TWO_DIGITS_RE = re.compile(rb"[0-9]{2}")

DECODED_BYTES_MAX = 64 * 2**20
# Measured bytes per decoded value: a list, a dict and each further pair in a JSON column; a value
# in any other column.
_LIST_BYTES, _DICT_BYTES, _PAIR_BYTES, _VALUE_BYTES = 100, 250, 170, 64
_STRUCT_BYTES, _SLOT_BYTES = 48, 8


class FastJudge:
    """Accepts most good documents as fast as a decoder reads them."""

    __slots__ = (
        *("_decode", "_decode_lines", "_encode", "_encode_lines"),
        *("_has_json", "_size", "_small"),
    )

    def __init__(self, fields: Fields) -> None:
        decoder, encoder = msgspec.json.Decoder(_record(fields, {})), msgspec.json.Encoder()
        self._decode, self._decode_lines = decoder.decode, decoder.decode_lines
        self._encode, self._encode_lines = encoder.encode, encoder.encode_lines
        self._has_json = _has_json(fields)
        self._size = _Size(fields)
        self._small = self._size.small

    def accepts(self, document: bytes) -> bool:
        """Return True if a load job would accept the row; False means undecided.

        The decoder silently drops all but the last of duplicate keys, so the row is encoded again:
        equal bytes prove that nothing was dropped.  If they differ (white space, order of keys,
        spelling of numbers), the numbers of colons are compared.  Colons occur only after keys and
        inside text, which stays as it is: a dropped pair lowers the number and nothing raises it.
        """
        if len(document) > self._small and not self._size.fits(document):
            return False
        try:
            row = self._decode(document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if b"\\" in document and _ESCAPES_RE.search(document):
            return False
        if self._has_json and not _is_plain_json(document):
            return False
        again = self._encode(row)
        return again == document or again.count(b":") == document.count(b":")

    def accepts_lines(self, documents: bytes) -> bool:
        """Return True if a load job would accept each line as a row; False means undecided.

        The same as `accepts` for each line, but with two decoder calls in all.  The decoder takes a
        line feed for white space.  So if the bytes differ, it must be proved that each line is one
        object: every line feed but the last lies between `}` and `{`, where no object can continue,
        and there are as many objects as lines.
        """
        if self._has_json:  # the depth of a JSON column can be checked for one document only
            return False
        if len(documents) > self._small and not self._size.fits(documents):
            return False
        try:
            rows = self._decode_lines(documents)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if b"\\" in documents and _ESCAPES_RE.search(documents):
            return False
        again = self._encode_lines(rows)
        if again == documents:
            return True
        return (
            documents.endswith(b"\n")
            and documents.count(b"\n") == len(rows)
            and documents.count(b"}\n{") == len(rows) - 1
            and again.count(b":") == documents.count(b":")
        )


def _has_json(fields: Fields) -> bool:
    return any(field.type == "JSON" or _has_json(field.fields) for field in fields)


def _is_plain_json(document: bytes) -> bool:
    """Return True if no JSON value can be nested too deeply or have a number beyond 64 bits."""
    if document.count(b"[") + document.count(b"{") > JSON_DEPTH:
        return False
    return not (_TWO_DIGITS_RE.search(document[::_STRIDE]) and _LONG_RE.search(document))


class _Size:
    """An upper bound for the memory that decoding a document takes.

    Each object takes memory for all fields of its RECORD, even if it is empty: `{},` may take
    80 KB.  A RECORD that cannot repeat is counted once.  For all others each brace counts as the
    widest of them.  A document of at most `small` bytes always fits.
    """

    __slots__ = ("_brace", "_bracket", "_comma", "_once", "small")

    def __init__(self, fields: Fields) -> None:
        self._once, many = _record_bytes(fields)
        json = _has_json(fields)
        self._brace = max(many, _DICT_BYTES if json else 0)
        self._bracket = _LIST_BYTES if json else 0
        self._comma = _PAIR_BYTES if json else _VALUE_BYTES
        # Short enough even if each byte costs the most: `[],` and `{},` have three, `"":0,` five.
        worst = max(self._brace / 3, self._bracket / 3, _PAIR_BYTES / 5, _VALUE_BYTES / 2)
        self.small = int((DECODED_BYTES_MAX - self._once) / worst)

    def fits(self, document: bytes) -> bool:
        size = self._once + self._brace * document.count(b"{")
        size += self._bracket * document.count(b"[") + self._comma * document.count(b",")
        return size <= DECODED_BYTES_MAX


def _record_bytes(fields: Fields) -> tuple[int, int]:
    """Return the bytes of all RECORDs that occur once in a row, and of the widest that repeats."""
    once, many = _STRUCT_BYTES + _SLOT_BYTES * len(fields), 0
    for field in fields:
        if field.type == "RECORD":
            once_inside, many_inside = _record_bytes(field.fields)
            if field.mode is Mode.REPEATED:
                many = max(many, once_inside, many_inside)
            else:
                once, many = once + once_inside, max(many, many_inside)
    return once, many


def _record(fields: Fields, known: dict[Fields, type[msgspec.Struct]]) -> type[msgspec.Struct]:
    """Define the struct of a RECORD; equal RECORDs share one, as each costs 0.1 ms and some KiB."""
    if fields not in known:
        names = [f"f{index}" for index in range(len(fields))]
        known[fields] = msgspec.defstruct(
            "Record",
            [_attribute(n, field, known) for n, field in zip(names, fields, strict=True)],
            forbid_unknown_fields=True,
            gc=False,
            kw_only=True,
            rename=dict(zip(names, (field.name for field in fields), strict=True)),
        )
    return known[fields]


def _attribute(name: str, field: Field, known: dict[Fields, type[msgspec.Struct]]) -> Any:  # noqa: ANN401 - a tuple of two lengths
    kind: Any = _record(field.fields, known) if field.type == "RECORD" else _scalar(field)
    if field.mode is Mode.REQUIRED:
        return (name, kind)
    if field.mode is Mode.REPEATED:
        kind = list[kind]
    return (name, kind | UnsetType if kind is None else kind | None | UnsetType, UNSET)


def _scalar(field: Field) -> Any:  # noqa: ANN401 - a type form has no type of its own in 3.11
    """Return a type form that accepts the usual spellings of a type, and no wrong value."""
    if field.type == "STRING":
        if field.max_length is None:
            return str | bool | int | float
        return Annotated[str, Meta(max_length=field.max_length)]
    if field.type == "BYTES":
        return bytes if field.max_length is None else _NEVER
    if field.type in {"NUMERIC", "BIGNUMERIC"}:
        return _NUMERIC if field.precision is None else _NEVER
    return _TYPES.get(field.type, _NEVER)
