"""Generate hundreds of thousands of pairs of columns and documents from a seed.

Hypothesis takes at least a millisecond per pair.  This takes some tens of microseconds, because it
joins literals that exist already as text.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from jostler.schema import Field, Mode
from tests.unit.schema import documents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jostler.schema import Fields

DOCUMENTS_PER_SCHEMA = 150
_MODES = (Mode.NULLABLE, Mode.NULLABLE, Mode.NULLABLE, Mode.REPEATED, Mode.REQUIRED)
# Letters that `lower()`, `casefold()` or a regular expression without ASCII equate with others.
_FOLDS = {"s": "\u017f", "k": "\u212a", "S": "\u017f", "K": "\u212a", "i": "\u0131", "1": "\u0661"}
_NAMES = [*documents.NAMES, "Sky", "k", "Skies", "x" * 60]
_UNKNOWN = ["x", "X", "nul", "Nul", "ClientMeasurements", "k0", "", "a b", "\\ud800", "\\u0000"]
_UNKNOWN += ["\\u0078", "\u017f", "\u212a"]
_ODD = [
    *(
        "null",
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-0.0",
        "1",
        "2",
        "1.0",
        "1e3",
        "1E+2",
        "01",
        "+1",
    ),
    *("NaN", "Infinity", "-Infinity", '"NaN"', '"nan"', '"Infinity"', '"-Infinity"', '"inf"'),
    *("1e400", "-1e400", "1e-400", "0e99999999999999999999", "1e99999999999999999999"),
    *(
        "9" * 308,
        "1" * 309,
        "2" * 309,
        "1" * 400,
        "-" + "1" * 400,
        "1" * 4299,
        "1" * 4301,
        "1" * 5000,
    ),
    *(f'"{"1" * 400}"', f'"{"0" * 400}1"', f'"{"1" * 5000}"', "0." + "1" * 400, "1" * 400 + ".5"),
    *('"yes"', '"ye\u017f"', '"ye\\u017f"', '"YE\u017f"', '"t"', '"T"', '"On"', '"fal\u017fe"'),
    *('""', '" "', '"a"', '":"', '"a:b"', '"\\u003a"', '"\\""', '"\\\\"', '"\\u0022"', '"\\/"'),
    *(
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\u0000"',
        '"\\u0001"',
        '"\U0001f600"',
    ),
    *(
        '"\\x"',
        '"\\u12"',
        "'a'",
        '"a',
        "tru",
        "nul",
        "{",
        "}",
        "[",
        "]",
        "",
        ",",
        ":",
        "\ufeff",
        "//",
    ),
    *(
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "[{}]",
        '{"a":1}',
        '{"a":1,"a":2}',
        '{"a":1,"A":2}',
        '{"":null}',
    ),
    *(
        '{"a":{"b":[1e5,{"c":null}]}}',
        "[1,2,]",
        '{"a":1,}',
        "[" * 40 + "]" * 40,
        '["a",1,true,null]',
    ),
    *('["\\ud800"]', '{"\\u0000":1}', "[1e400]", f"[{'7' * 320}]", f'{{"a":{"7" * 4500}}}'),
    *(
        '"\\u0661"',
        '"\u0662"',
        '"1_0"',
        '"0x1f"',
        '" 1"',
        '"1\\n"',
        '"1\\u0000"',
        '"--1"',
        '"-"',
        '"."',
    ),
]


class Pairs:
    """Generates columns and documents; the same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._rest = Random(seed)
        self._literals = {
            kind: [make(self._rest) for _ in range(400)] for kind, make in _LITERALS.items()
        }
        self._unknown = _UNKNOWN
        self._all = [text for texts in self._literals.values() for text in texts]

    def schemas(self, documents_in_all: int) -> Iterator[tuple[Fields, list[bytes]]]:
        """Yield columns, and some documents for each."""
        for done in range(0, documents_in_all, DOCUMENTS_PER_SCHEMA):
            columns = self._fields(0)
            # Often the same few: only a null that was met before is known to the fast judge.
            self._unknown = self._rest.choice((["x", "X"], ["nul", "Nul", "x"], _UNKNOWN))
            left = min(DOCUMENTS_PER_SCHEMA, documents_in_all - done)
            yield columns, [self._document(columns) for _ in range(left)]

    def _fields(self, depth: int) -> Fields:
        rest = self._rest
        found = []
        for name in rest.sample(_NAMES, rest.randint(1, 5)):
            mode = rest.choice(_MODES)
            if depth < 3 and rest.random() < 0.2:
                inner = self._fields(depth + 1)
                found.append(Field(name=name, type="RECORD", mode=mode, fields=inner))
            else:
                found.append(replace(rest.choice(documents.SCALARS), name=name, mode=mode))
        return tuple(found)

    def _document(self, columns: Fields) -> bytes:
        # Most documents have no odd values; otherwise hardly any would be valid.
        odd = self._rest.choice((0.0, 0.0, 0.02, 0.1))
        text = self._object(columns, odd)
        if self._rest.random() < 0.2:
            text = self._spoiled(text)
        document = text.encode(errors="surrogatepass")
        if self._rest.random() < 0.02:
            at = self._rest.randint(0, len(document))
            document = document[:at] + self._rest.randbytes(1) + document[at:]
        return document

    def _object(self, columns: Fields, odd: float) -> str:
        rest = self._rest
        pairs = []
        for field in columns:
            if field.mode is not Mode.REQUIRED and rest.random() < 0.2:
                continue
            name = field.name
            if odd and rest.random() < odd:
                name = self._respelled(name)
            pairs.append(f'"{name}":{self._value(field, odd)}')
        while rest.random() < 0.12:
            pairs.insert(rest.randint(0, len(pairs)), f'"{rest.choice(self._unknown)}":null')
        if odd and rest.random() < odd:
            pairs.append(f'"{self._respelled(rest.choice(_NAMES))}":{rest.choice(_ODD)}')
        if rest.random() < 0.1:
            rest.shuffle(pairs)
        if rest.random() < 0.05:
            return "{ " + " ,\t".join(pairs) + "\r\n}"
        return "{" + ",".join(pairs) + "}"

    def _value(self, field: Field, odd: float) -> str:
        rest = self._rest
        if odd and rest.random() < odd:
            return rest.choice(rest.choice((_ODD, self._all)))
        if field.mode is not Mode.REQUIRED and rest.random() < 0.1:
            return "null"
        if field.mode is not Mode.REPEATED:
            return self._one(field, odd)
        return "[" + ",".join(self._one(field, odd) for _ in range(rest.randrange(3))) + "]"

    def _one(self, field: Field, odd: float) -> str:
        if field.type == "RECORD":
            return self._object(field.fields, odd)
        if field.max_length is not None or field.precision is not None:
            return self._rest.choice(_NARROW[field.type])
        return self._rest.choice(self._literals[field.type])

    def _respelled(self, name: str) -> str:
        rest = self._rest
        at = rest.randrange(len(name))
        letter = name[at]
        other = rest.choice(
            (letter.swapcase(), f"\\u{ord(letter):04x}", _FOLDS.get(letter, letter), letter * 2, "")
        )
        return rest.choice((name.lower(), name.upper(), name[:at] + other + name[at + 1 :]))

    def _spoiled(self, text: str) -> str:
        """Change a text at random; it may stay valid or not."""
        rest = self._rest
        at = rest.randrange(len(text))
        before, letter, after = text[:at], text[at], text[at + 1 :]
        whole = rest.choice((" " + text + "\n", text + text, before, "[" + text + "]"))
        ways = (
            self._with_a_pair_twice(text),
            before + after,
            before + rest.choice('"\\{}[],:0x\n \x00\u017f') + letter + after,
            before + _FOLDS.get(letter, letter.swapcase()) + after,
            before + rest.choice(_ODD) + letter + after,
            before + _VALUE_RE.sub(lambda found: found[1] + rest.choice(_ODD), text[at:], count=1),
            whole,
        )
        return rest.choice(ways)

    def _with_a_pair_twice(self, text: str) -> str:
        found = self._rest.choice(_PAIR_RE.findall(text) or ['"a":null'])
        null = found.partition(":")[0] + ":null"
        return text[0] + self._rest.choice((found, found.swapcase(), null)) + "," + text[1:]


_VALUE_RE = re.compile(r"([:,])[^,}\]]*")
_PAIR_RE = re.compile(r'"[^"]*":(?:"[^"]*"|[^",{}\[\]]+)')


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _day(rest: Random) -> str:
    year = rest.choice(
        ("0001", "1000", "1969", "2020", "2021", "8999", "9000", "9999", "0000", "202")
    )
    mark = rest.choice("----/")
    return f"{year}{mark}{rest.randint(0, 13):02d}{mark}{rest.randint(1, 32):02d}"


def _good_day(rest: Random) -> str:
    year = rest.choice(("0001", "1000", "2020", "2021", "8999", "9999"))
    return f"{year}-{rest.randint(1, 12):02d}-{rest.randint(1, 28):02d}"


def _clock(rest: Random) -> str:
    fraction = rest.choice(("", "", ".1", ".123456", ".1234567", ".123456789", "."))
    return (
        f"{rest.randint(0, 24):02d}:{rest.randint(0, 60):02d}:{rest.randint(0, 60):02d}{fraction}"
    )


def _date(rest: Random) -> str:
    return _quoted(_good_day(rest) if rest.random() < 0.8 else _day(rest))


def _moment(rest: Random, zones: tuple[str, ...]) -> str:
    day = _good_day(rest) if rest.random() < 0.8 else _day(rest)
    return f"{day}{rest.choice('T   tT')}{_clock(rest)}{rest.choice(zones)}"


def _timestamp(rest: Random) -> str:
    if rest.random() < 0.2:
        ends = (0, 1534680695, 253402300799, 253402300799999, -62135596800000)
        return str(rest.choice(ends) + rest.choice((-1, 0, 1)))
    zones = (
        "",
        "Z",
        "Z",
        " UTC",
        "z",
        "+01:00",
        "-13:59",
        "+14:00",
        "+14:01",
        "+1",
        "-09",
        "+0100",
    )
    return _quoted(_moment(rest, zones))


def _integer(rest: Random) -> str:
    around = rest.choice((0, 10, 2**31, 2**53, 2**63, -(2**63), 10**18))
    number = around + rest.randint(-1, 1) if rest.random() < 0.6 else rest.randrange(10**6)
    if rest.random() < 0.1:
        number *= 10 ** rest.choice((1, 300, 400))
    return rest.choice((str(number), str(number), f'"{number}"', f'"{number:030d}"'))


def _float(rest: Random) -> str:
    if rest.random() < 0.1:
        return rest.choice(
            ('"NaN"', '"Infinity"', '"-Infinity"', '"nan"', "1e308", "1e309", "1.8e308")
        )
    number = rest.choice((rest.random(), rest.uniform(-1e9, 1e9), float(rest.randrange(99)), 1e23))
    return rest.choice((repr(number), repr(number), f'"{number!r}"', f"{number:e}"))


def _decimal(rest: Random) -> str:
    whole = rest.choice((1, 3, 20, 28, 29, 30, 38, 39))
    text = str(rest.randrange(10**whole))
    if rest.random() < 0.5:
        text += "." + str(rest.randrange(10 ** rest.choice((1, 2, 9, 10, 38))))
    if rest.random() < 0.1:
        text += rest.choice(("e1", "e-9", "E28", "e99999999999999999999"))
    return rest.choice((text, f'"{text}"', f"-{text}", f'"-{text}"'))


def _text(rest: Random) -> str:
    if rest.random() < 0.3:
        return rest.choice(("1", "1.50", "true", "1e400", '"\\u0041"', "9" * 30, "-0"))
    letters = 'abcXYZ :,{}[]"\\/\t\x01\x7f\u00e9\u2028\U0001f600s\u017f'
    text = "".join(rest.choice(letters) for _ in range(rest.randrange(9)))
    return json.dumps(text, ensure_ascii=rest.random() < 0.3)


def _json(rest: Random) -> str:
    if rest.random() < 0.15:
        return rest.choice([text for text in _ODD if text not in {"", ","}])

    def one(depth: int) -> object:
        pick = rest.random()
        if depth < 3 and pick < 0.3:
            return [one(depth + 1) for _ in range(rest.randrange(4))]
        if depth < 3 and pick < 0.6:
            return {rest.choice(("a", "A", "b:", "\u00e9")): one(depth + 1) for _ in range(3)}
        return rest.choice((None, True, 0, -7, 2**64, 10**300, 1.5, 1e308, "", "a:b", "\U0001f600"))

    return json.dumps(one(0), ensure_ascii=rest.random() < 0.3)


def _bytes(rest: Random) -> str:
    text = base64.b64encode(rest.randbytes(rest.randrange(7))).decode()
    return _quoted(rest.choice((text, text, text, text.rstrip("="), text + "=", "-_" + text)))


def _range(rest: Random) -> str:
    start, end = (rest.choice((_good_day(rest), "UNBOUNDED", "null")) for _ in range(2))
    return _quoted(rest.choice((f"[{start}, {end})", f"[{start},{end})", f"[{start}, {end}]")))


_GEOGRAPHY = (
    *(
        "POINT(1 2)",
        "point( 1.5 -2e1 )",
        "POINT EMPTY",
        "LINESTRING(1 2, 3 4)",
        "POINT(1)",
        "POINT",
    ),
    *(
        "POLYGON((0 0, 1 0, 1 1, 0 0))",
        "MULTIPOINT((1 2), (3 4))",
        "GEOMETRYCOLLECTION(POINT(1 2))",
    ),
    *('{"type":"Point","coordinates":[1,2]}', '{"type":"Point"}', "{}", "01" * 21, "here", ""),
    "0101000000000000000000f03f0000000000000040",
)
_LITERALS: dict[str, Callable[[Random], str]] = {
    "STRING": _text,
    "BYTES": _bytes,
    "INTEGER": _integer,
    "FLOAT": _float,
    "BOOLEAN": lambda rest: rest.choice(
        ("true", "false", "1", '"yes"', '"NO"', '"t"', '"ye\u017f"')
    ),
    "TIMESTAMP": _timestamp,
    "DATE": _date,
    "TIME": lambda rest: _quoted(_clock(rest)),
    "DATETIME": lambda rest: _quoted(_moment(rest, ("", "", "", "Z"))),
    "NUMERIC": _decimal,
    "BIGNUMERIC": _decimal,
    "GEOGRAPHY": lambda rest: _quoted(rest.choice(_GEOGRAPHY)),
    "RANGE": _range,
    "JSON": _json,
}
_NARROW = {
    "STRING": [
        '""',
        '"abc"',
        '"abcdefgh"',
        '"abcdefghi"',
        '"\U0001f600\u00e9"',
        '"\\u0041bcdefgh"',
        "12345678",
    ],
    "BYTES": ['""', '"QQ=="', '"QUJDRA=="', '"QUJDREU="'],
    "NUMERIC": ["123.45", "-1.1", "999.994", "999.995", "1000", '"1"', "1e2"],
}
