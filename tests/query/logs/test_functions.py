"""Each function and aggregate, by the examples of docs/query-language.md."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from loader.query.errors import Code, QueryError
from loader.query.logs.aggregates import AGGREGATES
from loader.query.logs.expressions import expression
from loader.query.logs.reader import Reader
from loader.query.logs.syntax import Call
from loader.query.logs.terms import NAMES

if TYPE_CHECKING:
    from tests.query.logs.archive import Archive

PAGE = Path(__file__).parents[3] / "docs" / "query-language.md"
AT_ONCE = 20
NOT_OF_NULL = {"isnull", "isnum", "isstr", "nvl", "if", "case", "in", "and", "or", "not"}
TEN_DAYS = "table from=20260101 to=20260111 five"


def examples(table: str) -> list[tuple[str, str, str]]:
    """Return (first column, example, answer) of a table of the page; its name stands before it."""
    part = PAGE.read_text().split(f"<!-- {table}", 1)[1].split("\n\n")[1]
    rows = [re.split(r" \| ", line.strip("| ")) for line in part.splitlines()[2:]]
    return [(row[0], row[-2].strip("` "), row[-1].strip("` ")) for row in rows]


def ask(archive: Archive, source: str, expressions: list[str]) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(expressions), AT_ONCE):
        some = expressions[start : start + AT_ONCE]
        evals = "".join(f" | eval a{place} = {text}" for place, text in enumerate(some))
        names = ", ".join(f"a{place}" for place in range(len(some)))
        found += archive.values(f"{source}{evals} | fields {names}")[0]
    return found


def refused(archive: Archive, text: str) -> Code | None:
    """Return the code with which a question is refused, None if it is not."""
    try:
        archive.compiled(text)
    except QueryError as error:
        return error.code
    return None


def wrong(given: list[tuple[str, str, str]], found: list[Any]) -> dict[str, tuple[Any, Any]]:
    """Return the examples whose answer has another type or value."""
    expected = [eval(answer, {"datetime": dt}) for _, _, answer in given]
    return {
        text: (value, wanted)
        for (_, text, _), value, wanted in zip(given, found, expected, strict=True)
        if type(value) is not type(wanted)
        or (value != pytest.approx(wanted) if isinstance(wanted, float) else value != wanted)
    }


@pytest.mark.parametrize("table", ["operators", "functions"])
def test_each_example_gives_its_answer(archive: Archive, table: str) -> None:
    given = examples(table)
    assert len(given) > 20
    assert not wrong(given, ask(archive, "table one", [text for _, text, _ in given]))


def test_each_aggregate_gives_its_answer(archive: Archive) -> None:
    given = examples("aggregates")
    asked = ", ".join(f"{text} as a{place}" for place, (_, text, _) in enumerate(given))
    (found,) = archive.values(f"{TEN_DAYS} | stats {asked}")
    assert not wrong(given, list(found))


def test_each_function_and_aggregate_is_documented() -> None:
    documented = {row[0].strip("`").partition("(")[0] for row in examples("functions")}
    assert documented == set(NAMES)
    aggregates = {re.split(r"[(`]", row[0].strip("`"))[0] for row in examples("aggregates")}
    assert aggregates == set(AGGREGATES)


def test_functions_of_null_are_null(archive: Archive) -> None:
    """Null in, null out: each argument of each example in turn becomes null."""
    asked = []
    for _, text, _ in [*examples("functions"), *examples("operators")]:
        call = expression(Reader(text))
        if not isinstance(call, Call) or call.name in NOT_OF_NULL:
            continue
        for arg in call.args:
            with_null = f"{text[: arg.start]}null{text[arg.end :]}"
            # An argument may have to be written out, or a list.
            if refused(archive, f"table one | eval x = {with_null}") is None:
                asked.append(with_null)
    assert len(asked) > 60
    found = ask(archive, "table one", asked)
    # BigQuery gives an empty array for one that is null.
    assert [text for text, value in zip(asked, found, strict=True) if value not in (None, [])] == []


EDGES = {
    "sqrt(-1.5)": None,
    "log(0)": None,
    "log(8, 1)": None,
    "pow(0, -1)": None,
    "pow(-8, 0.5)": None,
    "pow(0, 0)": 1.0,
    "pow(10, 400)": None,
    "exp(1000)": None,
    "mod(1, 0)": None,
    "1.5 % 0": None,
    "int(1e300)": None,
    'int("1.5")': None,
    "int(true)": 1,
    "long(-2.7)": -2,
    "round(7)": 7,
    "round(-2.5)": -3.0,
    "exact * 2": 3.0,
    "substr(text, -5, 2)": "Gr",
    "substr(text, 4)": "zi",
    "substr(text, 4, 2)": "",
    "left(text, -1)": "",
    "left(text, 100)": "Grüezi",
    'indexof(text, "q")': -1,
    'split("", ",")': [""],
    'strjoin(",", split("a,b", ","))': "a,b",
    'urldecode("%E2%82%AC%")': "€%",
    'urldecode("")': "",
    'ip2long("10.1.2.256")': None,
    'ip2long("01.1.2.3")': None,
    'ip2long("0.0.0.0")': 0,
    "long2ip(-1)": None,
    "long2ip(4294967295)": "255.255.255.255",
    "long2ip(4294967296)": None,
    'network("10.1.255.3", 32)': "10.1.255.3",
    'network("10.1.255.3", 0)': "0.0.0.0",
    'network("10.1.255.3", 17)': "10.1.128.0",
    'network("x", 17)': None,
    'date("2026-13-01")': None,
    'date("20261301", "yyyyMMdd")': None,
    'date("x20260101", "yyyyMMdd")': None,
    'epoch(date("2026-01-02T03:04:05+0200", "yyyy-MM-dd\'T\'HH:mm:ssZ"))': 1767315845,
    "epoch(date(1767323045))": 1767323045,
    "date(99999999999999)": None,
    'datediff("2026-01-31", "2026-02-01", "month")': 1,
    'datediff("2026-01-02", "2026-01-01 00:00:01", "day")': 0,
    'string(dateadd("2026-01-31", "months", 1), "yyyyMMdd")': "20260228",
    'string(dateadd("2026-01-31", "w", -1), "yyyyMMdd")': "20260124",
    'string(datetrunc("2026-01-04 10:00", "1w"), "yyyyMMdd")': "20251229",
    'string(datetrunc("2026-01-04 10:00", "2w"), "yyyyMMdd")': "20251222",
    'string(datetrunc("2026-03-04 10:00", "2mon"), "yyyyMMdd")': "20260301",
    'string(datetrunc("2026-12-04 10:00", "6mon"), "yyyyMMdd")': "20260701",
    'string(datetrunc("2026-12-04 10:00", "1y"), "yyyyMMdd")': "20260101",
    'string(datetrunc("1969-12-31 23:59:59", "7m"), "yyyyMMdd HHmm")': "19691231 2353",
    "typeof(none)": None,
    "typeof(null)": None,
    "typeof(raw)": "record",
    "typeof(list)": "list",
    "typeof(json)": "json",
    "typeof(day)": "date",
    "typeof(exact)": "numeric",
    "typeof(real)": "double",
    "string(numbers)": "[1,2,3]",
    "json.a.b": "1",
    "json.a.nothing": None,
    "not null": None,
    "null or true": True,
    "isnull(no_number) and not isnull(number)": True,
    "in(number, 1, 7)": True,
    'in(none, "a")': None,
    "contain(numbers, 4)": False,
    'hash("abc")': "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    'hash("abc", "sha1")': "a9993e364706816aba3e25717850c26c9cd0d89d",
    'len(hash("abc", "SHA512"))': 128,
    'match("a.b", "^a\\.b$")': True,
    "-9223372036854775808": -(2**63),
}  # fmt: skip


def test_values_at_the_edges(archive: Archive) -> None:
    found = ask(archive, "table one", list(EDGES))
    given = [("", text, repr(value)) for text, value in EDGES.items()]
    assert not wrong(given, found)
