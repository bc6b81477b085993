"""Generated schemas, documents that fit them, and spoiled copies of those."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from jostler.schema import Field, Mode
from jostler.schema.fields import SCALAR_TYPES

if TYPE_CHECKING:
    from random import Random

    from jostler.schema import Fields

NAMES = ["A", "b", "RTT", "ClientIP", "class", "_x1", "StartTime", "Value"]
SCALARS = [
    *(Field(name="x", type=kind) for kind in sorted(SCALAR_TYPES - {"RANGE"})),
    Field(name="x", type="STRING", max_length=8),
    Field(name="x", type="BYTES", max_length=4),
    Field(name="x", type="NUMERIC", precision=5, scale=2),
    Field(name="x", type="RANGE", range_element="DATE"),
]


@dataclass(frozen=True)
class Literal:
    """Text that is written unchanged to a document, such as a number that Python does not have."""

    text: str


_clock = st.times().map(lambda t: t.strftime("%H:%M:%S"))
_fraction = st.sampled_from(["", ".1", ".123456"])
_zone = st.sampled_from(["", "Z", " UTC", "+01:00", "-13:59", "+14:00"])
_plain_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(-1e9, 1e9)
    | _plain_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_plain_text, inner, max_size=3),
    max_leaves=6,
)
GEOGRAPHIES = [
    *("POINT(1 2)", " point ( -1.5  2e1 ) ", "LINESTRING(0 0, 1 1,2 -90)", "POINT EMPTY"),
    *("POLYGON((0 0, 1 0, 1 1, 0 0),(0 0,2 0,2 2,0 0.0))", "MULTIPOINT(1 2, 3 4)", "FULLGLOBE"),
    *("MULTIPOINT((1 2),(3 4))", "MULTILINESTRING((0 0,1 1),(2 2,3 3))", "LINESTRING EMPTY"),
    "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)),((0 0, 1 0, 1 1, 0 0)))",
    "GEOMETRYCOLLECTION(POINT(1 2), GEOMETRYCOLLECTION EMPTY,LINESTRING(0 0,1 1))",
    '{"type":"Point","coordinates":[1,2.5]}',
    ' { "type": "LineString", "coordinates": [[0,0],[1,1]] }',
    '{"coordinates":[[[0,0],[1,0],[1,1],[0,0.0]]],"type":"Polygon"}',
    '{"type":"GeometryCollection","geometries":[{"type":"MultiPoint","coordinates":[[1,2]]}]}',
    "0101000000000000000000f03f0000000000000040",
    "00000000013FF00000000000004000000000000000",
    "010200000002000000" + "00" * 32,
    "010300000001000000" + "04000000" + "00" * 64,
    "010700000001000000" + "0101000000" + "00" * 16,
]
_decimal = st.decimals(-9999, 9999, places=3).map(str)

GOOD: dict[str, st.SearchStrategy[Any]] = {
    "STRING": _plain_text
    | st.integers()
    | st.booleans()
    | st.sampled_from([":", '"', "a\\b", "\u2028", "😀", "\x7f", "\x01"]),
    "BYTES": st.binary(max_size=9).map(lambda b: base64.b64encode(b).decode()),
    "INTEGER": st.integers(-(2**63), 2**63 - 1).flatmap(
        lambda n: st.sampled_from([n, str(n), f"{n:030d}"])
    ),
    "FLOAT": st.floats(allow_nan=False, allow_infinity=False)
    | st.integers(-(10**300), 10**300)
    | st.sampled_from(["NaN", "Infinity", "-Infinity", "1.5", "-2e3", Literal("1E-400")]),
    "BOOLEAN": st.booleans()
    | st.sampled_from([Literal("1"), Literal("0"), "T", "yes", "N", "TRUE", "f"]),
    "DATE": st.dates().map(str),
    "TIME": st.builds(lambda c, f: c + f, _clock, _fraction),
    "DATETIME": st.builds(lambda d, c, f: f"{d} {c}{f}", st.dates(), _clock, _fraction),
    "TIMESTAMP": st.builds(
        lambda d, s, c, f, z: f"{d}{s}{c}{f}{z}",
        st.dates().filter(lambda d: 1 < d.year < 9999),
        st.sampled_from("T "),
        _clock,
        _fraction | st.just(".123456789012"),
        _zone,
    )
    | st.integers(-62_135_596_800, 253_402_300_799),
    "GEOGRAPHY": st.sampled_from(GEOGRAPHIES),
    "NUMERIC": _decimal | _decimal.map(Literal) | st.sampled_from(["9" * 29, "1e28"]),
    "BIGNUMERIC": _decimal | _decimal.map(Literal) | st.just("5" + "0" * 38),
    "JSON": _json_values.filter(lambda value: value is not None),
    "RANGE": st.sampled_from(["[2020-01-01, 2021-02-03)", "[UNBOUNDED, 2020-02-29)"]),
}
_SMALL: dict[str, st.SearchStrategy[Any]] = {
    "STRING": st.text("abc😀", max_size=8),
    "BYTES": st.sampled_from(["", "QQ==", "QUJDRA=="]),
    "NUMERIC": st.sampled_from(["123.45", Literal("-1.1"), Literal("999.994")]),
}


@st.composite
def fields(draw: st.DrawFn, depth: int = 0) -> Fields:
    """Draw the columns of a table or RECORD."""
    found = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True)):
        mode = draw(st.sampled_from(Mode))
        if depth < 3 and draw(st.integers(0, 3)) == 0:
            inner = draw(fields(depth + 1))
            found.append(Field(name=name, type="RECORD", mode=mode, fields=inner))
        else:
            found.append(replace(draw(st.sampled_from(SCALARS)), name=name, mode=mode))
    return tuple(found)


def _one(field: Field) -> st.SearchStrategy[Any]:
    if field.type == "RECORD":
        return records(field.fields)
    narrow = field.max_length is not None or field.precision is not None
    return (_SMALL if narrow else GOOD)[field.type]


@st.composite
def records(draw: st.DrawFn, columns: Fields) -> tuple[tuple[str, Any], ...]:
    """Draw the pairs of an object that fits the columns, in any order."""
    pairs = []
    for field in columns:
        if field.mode is not Mode.REQUIRED and draw(st.integers(0, 4)) == 0:
            if draw(st.booleans()):
                pairs.append((field.name, None))
            continue
        one = _one(field)
        value = draw(st.lists(one, max_size=3) if field.mode is Mode.REPEATED else one)
        spelled = draw(st.sampled_from([field.name] * 6 + [field.name.lower(), field.name.upper()]))
        pairs.append((spelled, value))
    return tuple(draw(st.permutations(pairs)) if draw(st.integers(0, 3)) == 0 else pairs)


def written(value: Any, rest: Random, spaces: str = "") -> str:  # noqa: ANN401 - any JSON
    """Write a drawn value as JSON; a tuple is an object, and `spaces` may be between tokens."""

    def space() -> str:
        return rest.choice(spaces) if spaces else ""

    if isinstance(value, Literal):
        return value.text
    if isinstance(value, tuple):
        pairs = (
            f"{space()}{json.dumps(key)}{space()}:{space()}{written(part, rest, spaces)}{space()}"
            for key, part in value
        )
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        parts = (space() + written(part, rest, spaces) + space() for part in value)
        return "[" + ",".join(parts) + "]"
    return json.dumps(value, ensure_ascii=rest.random() < 0.5)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Fields, bytes]:
    """Draw columns and a document that fits them, compact or with white space."""
    columns = draw(fields())
    spaces = draw(st.sampled_from(["", " \n\r\t"]))
    rest = draw(st.randoms(use_true_random=False))
    return columns, written(draw(records(columns)), rest, spaces).encode()


TOKENS = [
    b"null", b"true", b"1.0", b"1e3", b"-0", b"1e400", b"9223372036854775808", b'"x"', b'"12"',
    b'"\\ud800"', b'"\\u0000"', b"[]", b"[null]", b"{}", b"NaN", b'"2021-02-29"', b"01", b"[1,2]",
    b'"2020-01-01T00:00:00+15:00"', b'"a\\u003ab"', b'"\\u0022"', b'"a"', b"3", b'{"A":1,"a":2}',
    b'"2020-01-01T00:00:60Z"', b'"QQ"', b'"Q=Q="', b'"1\\n"', b'"\xc2\xb2"', b'"\xd9\xa1"',
    b"1e28", b"123456.7", b'"x:y:z"', b'{"b":[{}]}', b"\xff", b'"\xed\xa0\x80"',
]  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[Fields, bytes]:
    """Draw columns, and a document that fitted them before it was changed at random."""
    columns, document = draw(cases())
    return columns, draw(spoil(columns, document))


@st.composite
def spoil(draw: st.DrawFn, columns: Fields, document: bytes) -> bytes:
    """Change a document at random, once or several times."""
    for _ in range(draw(st.integers(1, 3))):
        document = draw(st.sampled_from([_swap, _double, _cut, _poke]))(draw, columns, document)
    return document


def _swap(draw: st.DrawFn, _: Fields, document: bytes) -> bytes:
    """Replace the value after a colon, up to the next comma or bracket."""
    colons = [i for i, byte in enumerate(document) if byte == ord(":")]
    if not colons:
        return document
    start = draw(st.sampled_from(colons)) + 1
    ends = [i for i in range(start, len(document)) if document[i] in b",}]"]
    return document[:start] + draw(st.sampled_from(TOKENS)) + document[ends[0] if ends else start :]


def _double(draw: st.DrawFn, columns: Fields, document: bytes) -> bytes:
    """Add a pair whose key may exist already, perhaps in another case or escaped."""
    name = draw(st.sampled_from([field.name for field in columns] + NAMES))
    key = draw(st.sampled_from([name, name.swapcase(), f"\\u{ord(name[0]):04x}{name[1:]}"]))
    pair = f'"{key}":'.encode() + draw(st.sampled_from(TOKENS))
    at = [i for i, byte in enumerate(document) if byte in b"{,"]
    if not at:
        return document
    index = draw(st.sampled_from(at)) + 1
    return document[:index] + pair + b"," + document[index:]


def _cut(draw: st.DrawFn, _: Fields, document: bytes) -> bytes:
    return document[: draw(st.integers(0, len(document)))]


def _poke(draw: st.DrawFn, _: Fields, document: bytes) -> bytes:
    index = draw(st.integers(0, len(document)))
    return document[:index] + draw(st.binary(min_size=1, max_size=3)) + document[index:]


_MOMENT = r"(0001|2020|2021|9999)-(0[1-9]|1[0-3])-(0[1-9]|2[89]|3[0-2])"
_TICKS = r"([01][0-9]|2[0-4]):[0-6][0-9]:[0-6][0-9](\.[0-9]{1,9})?"
_FORMS = {
    "BYTES": r'"[A-Za-z0-9+/_-]{0,6}={0,2}"',
    "INTEGER": r'"?-?(9223372036854775[0-9]{3}|[0-9]{1,20}|\d{2})(\.0|e1)?"?',
    "FLOAT": r'"?-?[0-9]{1,3}(\.[0-9]{1,3})?(e[+-]?[0-9]{1,3})?"?|"-?(NaN|Infinity)"',
    "BOOLEAN": r'"?(?i:[tfyn01]|true|false|yes|no|on|off)"?',
    "DATE": rf'"{_MOMENT}"',
    "TIME": rf'"{_TICKS}Z?"',
    "DATETIME": rf'"{_MOMENT}[T ]{_TICKS}Z?"',
    "TIMESTAMP": rf'"{_MOMENT}[T ]{_TICKS}(Z| UTC|[+-][0-2][0-9]:[0-6][0-9])?"|-?[0-9]{{9,16}}',
    "NUMERIC": r'"?-?[0-9]{1,31}(\.[0-9]{1,11})?(e2[0-9])?"?',
    "BIGNUMERIC": r'"?-?[0-9]{1,41}(\.[0-9]{1,40})?(e3[0-9])?"?',
    "JSON": r'null|\[null\]|[0-9]{1,3}|"a"|\{"a":(null|1e40[0-9])\}',
}


@st.composite
def near_misses(draw: st.DrawFn) -> tuple[Fields, bytes]:
    """Draw a column, and a document with a value near the limits of the column's type."""
    kind = draw(st.sampled_from(sorted(_FORMS)))
    mode = draw(st.sampled_from(Mode))
    literal = draw(st.from_regex(_FORMS[kind], fullmatch=True))
    value = f"[{literal}]" if mode is Mode.REPEATED else literal
    return (Field(name="x", type=kind, mode=mode),), f'{{"x":{value}}}'.encode()
