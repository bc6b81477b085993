"""The fast judge: a typed decoder compiled from the columns, which only ever accepts.

**Invariant:** it accepts nothing that the slow judge refuses; what it does not accept is undecided.
What it decodes takes no more than DECODED_BYTES_MAX of memory beside the text.

Pure; one judge may serve any number of threads.  No union has more than two constrained parts:
msgspec 0.22 reads beyond its table of constraints when int, float and text limits meet list and
dict in one union, and crashes.
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
# Years far from both ends of the calendar, so that no offset leads out of it.
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
    # Not Any: that would let null in as the element of an array.
    "JSON": bool | int | float | str | list | dict,
    NULL: None,
}

# Escapes that stand for NUL, which is refused, and for a colon, which would spoil the count.
_ESCAPES_RE = re.compile(rb"\\u00(?:00|3[aA])")

# A number of 309 digits may be beyond 64 bits, which the decoder of a JSON column does not look at.
# Of so many digits in a row two lie next to each other among every 154th byte.
_STRIDE = 154
_LONG_RE = re.compile(rb"[0-9]{309}")
_TWO_DIGITS_RE = re.compile(rb"[0-9]{2}")

DECODED_BYTES_MAX = 64 * 2**20
# What a decoded value takes, measured: of a list, a dict and a further pair in a JSON column, of a
# value in any other.
_LIST_BYTES, _DICT_BYTES, _PAIR_BYTES, _VALUE_BYTES = 100, 250, 170, 64
_STRUCT_BYTES, _SLOT_BYTES = 48, 8


class FastJudge:
    """Accepts most good documents at the speed of a decoder."""

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
        """Return True if a load job would take the row; False means undecided.

        A decoder silently keeps the last of duplicate keys, so the row is encoded again: equal
        bytes prove that no pair was dropped.  If they differ (white space, another order of keys,
        other spellings of numbers), colons are counted: each key has one, text keeps its own, and
        nothing else holds any, so a dropped pair lowers the count and nothing raises it.
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
        """Return True if a load job would take each line as a row; False means undecided.

        The same as `accepts` for each line, in two calls instead of two for each.  To the decoder a
        line feed is white space, so if the bytes differ it must be shown that each line holds one
        object: all line feeds but the last stand between `}` and `{`, where no object can go on,
        and there are as many objects as lines.
        """
        if self._has_json:  # their depth is that of one document
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
    """Say that no JSON column can be nested too deeply or hold a number beyond 64 bits."""
    if document.count(b"[") + document.count(b"{") > JSON_DEPTH:
        return False
    return not (_TWO_DIGITS_RE.search(document[::_STRIDE]) and _LONG_RE.search(document))


class _Size:
    """Bounds what decoding a document takes.

    Each object takes the slots of its RECORD, whatever it holds: `{},` may become 80 KB.  A RECORD
    that cannot repeat is counted once; all others as the widest of them, once for each brace.  What
    is no longer than `small` always fits.
    """

    __slots__ = ("_brace", "_bracket", "_comma", "_once", "small")

    def __init__(self, fields: Fields) -> None:
        self._once, many = _record_bytes(fields)
        json = _has_json(fields)
        self._brace = max(many, _DICT_BYTES if json else 0)
        self._bracket = _LIST_BYTES if json else 0
        self._comma = _PAIR_BYTES if json else _VALUE_BYTES
        # So short that each byte may cost the most: `[],` and `{},` have three, `"":0,` five.
        worst = max(self._brace / 3, self._bracket / 3, _PAIR_BYTES / 5, _VALUE_BYTES / 2)
        self.small = int((DECODED_BYTES_MAX - self._once) / worst)

    def fits(self, document: bytes) -> bool:
        size = self._once + self._brace * document.count(b"{")
        size += self._bracket * document.count(b"[") + self._comma * document.count(b",")
        return size <= DECODED_BYTES_MAX


def _record_bytes(fields: Fields) -> tuple[int, int]:
    """Return the bytes of all RECORDs that stand once in a row, and of the widest that repeats."""
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
    """Define the struct of a RECORD; equal RECORDs share one, each costs 0.1 ms and some KiB."""
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
    """Give the type form that accepts the usual spellings of a type, exactly or too narrowly."""
    if field.type == "STRING":
        if field.max_length is None:
            return str | bool | int | float
        return Annotated[str, Meta(max_length=field.max_length)]
    if field.type == "BYTES":
        return bytes if field.max_length is None else _NEVER
    if field.type in {"NUMERIC", "BIGNUMERIC"}:
        return _NUMERIC if field.precision is None else _NEVER
    return _TYPES.get(field.type, _NEVER)
