"""Any text ends as a question or as an error with its place, and what compiles can be run."""

# ruff: noqa: E501
# Questions have quotes, and stand on one line.

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import TokenType

from loader.query import logs
from loader.query.errors import Code, QueryError
from loader.query.logs.emitted import FUNCTIONS
from loader.query.logs.parser import parse
from tests.query.logs.archive import NOW
from tests.query.logs.test_commands import ANSWERS, SPEEDS, VISITS
from tests.query.logs.test_functions import EDGES, examples
from tests.query.logs.test_refusals import REFUSED, Shapes

if TYPE_CHECKING:
    from tests.query.logs.archive import Archive

ALL = [VISITS, SPEEDS, *(text for text, _ in ANSWERS)]
ALL += [text.replace("«", "").replace("»", "") for _, text in REFUSED]
WORDS = sorted({word for text in ALL for word in text.replace("(", " ( ").split()})
# Words that the compiler writes before a parenthesis, and that are no functions.
CLAUSES = {"ALL", "INTERVAL", "SELECT"} | {
    "AND",
    "OR",
    "NOT",
    "IN",
    "ON",
    "AS",
    "WHERE",
    "FROM",
    "THEN",
    "WHEN",
    "ELSE",
    "JOIN",
    "BY",
}
SECONDS = 30.0


def outcome(text: str) -> QueryError | None:
    """Compile a text; None if it is a question."""
    try:
        logs.compile(text, Shapes(), NOW)
    except QueryError as error:
        found = error
    else:
        return None
    assert 0 <= found.start <= found.end <= len(text), (text, found)
    assert found.message
    return found


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=60))
def test_any_text_ends(text: str) -> None:
    outcome(text)
    outcome(f"table iis | search {text}")
    outcome(f"table iis | {text}")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join))
def test_any_sequence_of_words_ends(text: str) -> None:
    outcome(text)
    outcome(f"table iis | {text}")


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(ALL), st.data())
def test_a_question_that_is_damaged_ends(text: str, data: st.DataObject) -> None:
    """Cut out a part of a question and put another one's into its place."""
    other = data.draw(st.sampled_from(ALL))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(other))] * 2)))
    outcome(text[:start] + other[first:last] + text[end:])


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "table iis | search " + "(" * 50_000,
        "table iis | search " + "not " * 20_000,
        "table iis | search " + "-" * 90_000,
        "table iis | search " + "abs(" * 20_000,
        "table " + "iis, " * 1_900 + "iis",
        "table iis" + " | drop" * 900,
        "table iis" + " | union [ table iis" * 900,
        "table iis | search " + " or ".join(["bytes > 1"] * 900),
        "table iis | search " + " + ".join(["1"] * 1_900) + " > 1",
        "table iis | search city == " + '"' + "\\" * 90_000,
        "table iis | search city == " + '"' + "*" * 90_000 + '"',
        'table iis | search match(city, "' + "(a*)*" * 300 + '")',
        'table iis | search match(city, "' + "(" * 900 + '")',
        'table iis | rex field=city "' + "(?<a>" * 190 + '"',
        "table iis | search " + "x." * 45_000 + "y > 1",
        "table iis | search " + "1" * 99_000 + " > 1",
        "table iis | fields " + ", ".join(f"a{n}" for n in range(1_900)),
        "table iis | eval a = bytes" + " | eval a = a + a" * 49,
        "table iis | eval a = 1.5" + " | eval a = pow(a, a)" * 49,
        "table iis | eval a = city" + " | eval a = urldecode(a)" * 49,
        "table iis | eval a = " + "pow(" * 28 + "1.5" + ", 2)" * 28,
        "fulltext " + " and ".join(['"a 1 b 2"'] * 900) + " from iis",
        "`" * 100_000,
        "\U0001f600" * 100_001,
    ],
)
def test_no_text_takes_long(text: str) -> None:
    """What grows in the text grows the time no faster; all of these end within seconds."""
    before = time.process_time()
    outcome(text)
    assert time.process_time() - before < SECONDS


def test_an_expression_that_would_grow_is_refused() -> None:
    """The text of an argument may be written several times, so nested calls multiply it."""
    error = outcome("table iis | eval a = " + "pow(" * 10 + "bytes" + ", 2)" * 10)
    assert error is not None
    assert error.code is Code.NOT_SUPPORTED
    assert outcome("table iis | eval a = pow(bytes, 2)" + " | eval a = pow(a, 2)" * 10) is None


def test_the_compiler_calls_no_function_that_is_not_listed() -> None:
    """Other engines have to know no more than `emitted` says; and all of it is used."""
    texts = [f"table one | eval x = {text}" for text in EDGES]
    for table in ("functions", "operators"):
        texts += [f"table one | eval x = {text}" for _, text, _ in examples(table)]
    texts += [f"table duration=1d five | stats {text}" for _, text, _ in examples("aggregates")]
    called: set[str] = set()
    for text in [*ALL, *texts]:
        if outcome(text) is None:
            called |= calls(logs.compile(text, Shapes(), NOW).sql)
    assert called - CLAUSES - FUNCTIONS == set()
    assert FUNCTIONS - called == set()


def calls(sql: str) -> set[str]:
    """Return the names that stand before a parenthesis."""
    tokens = sqlglot.tokenize(sql, read="bigquery")
    return {
        name.text.upper()
        for name, after in itertools.pairwise(tokens)
        if after.token_type is TokenType.L_PAREN and (name.text.isidentifier())
    }


NUMBERS = st.sampled_from(["number", "real", "no_number", "1", "2.5", "exact", "len(list)", "null"])
TEXTS = st.sampled_from(["text", "none", '"a b"', "`text`", "json.a.b", '"Gr*"', "date"]).map(
    lambda each: "string(day)" if each == "date" else each
)
TIMES = st.sampled_from(["at", "day", "local", "_time", "now()", "null"])


def numbers() -> st.SearchStrategy[str]:
    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(st.sampled_from("+-*/%"), inner, inner).map(
                lambda t: f"({t[1]} {t[0]} {t[2]})"
            ),
            st.tuples(st.sampled_from(["abs", "floor", "sqrt", "exp", "-", "int"]), inner).map(
                lambda t: f"{t[0]}({t[1]})"
            ),
            st.tuples(st.sampled_from(["min", "max", "pow", "mod", "nvl"]), inner, inner).map(
                lambda t: f"{t[0]}({t[1]}, {t[2]})"
            ),
            st.tuples(TEXTS, TEXTS).map(lambda t: f"indexof({t[0]}, {t[1]})"),
            TIMES.map(lambda t: f"epoch({t})"),
        )

    return st.recursive(NUMBERS, more, max_leaves=3)


def texts() -> st.SearchStrategy[str]:
    def more(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.tuples(
                st.sampled_from(["lower", "upper", "trim", "urldecode", "hash", "base64"]), inner
            ).map(lambda t: f"{t[0]}({t[1]})"),
            st.tuples(inner, numbers()).map(lambda t: f"concat({t[0]}, {t[1]})"),
            st.tuples(inner, st.integers(-2, 9), numbers()).map(
                lambda t: f"substr({t[0]}, {t[1]}, int({t[2]}))"
            ),
            st.tuples(inner, inner, inner).map(lambda t: f"replace({t[0]}, {t[1]}, {t[2]})"),
            TIMES.map(lambda t: f'string(datetrunc({t}, "2w"), "yyyy-MM-dd")'),
            numbers().map(lambda t: f"long2ip(int({t}))"),
            inner.map(lambda t: f"network({t}, 24)"),
        )

    return st.recursive(TEXTS, more, max_leaves=3)


def conditions() -> st.SearchStrategy[str]:
    sign = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    simple = st.one_of(
        st.tuples(numbers(), sign, numbers()).map(" ".join),
        st.tuples(texts(), sign, texts()).map(" ".join),
        st.tuples(TIMES, sign, TIMES).map(" ".join),
        st.tuples(texts(), texts()).map(lambda t: f'in({t[0]}, {t[1]}, "*a")'),
        st.tuples(texts(), texts()).map(lambda t: f"{t[0]} contain {t[1]}"),
        st.sampled_from(["yes", "isnull(none)", 'contain(list, "x")', "true", "null == 1"]),
    )
    return st.one_of(
        simple,
        st.tuples(simple, st.sampled_from(["and", "or"]), simple).map(
            lambda t: f"not ({' '.join(t)})"
        ),
    )


COMMANDS = st.one_of(
    conditions().map(lambda each: f"search {each}"),
    numbers().map(lambda each: f"eval n = {each}"),
    texts().map(lambda each: f"eval s = {each}"),
    st.sampled_from(
        [
            "sort -text, +number", "limit 3", "limit 1 3", "sort limit=2 n", "eval n = number",
            'rex field=text "(?<s>G)"', "rename real as rest", "lookup iso_code country_code as text output size",
            "union [ table limit=1 one ]", "fields text, number, real, none, at, day, list, _time",
            "join number [ table one | stats count as m by number ]", "parsejson none",
        ]
    ),
)  # fmt: skip
ENDS = st.one_of(
    st.just(""),
    numbers().map(
        lambda each: f" | eval k = {each} | stats count, sum(k), first(k), values(k) by text"
    ),
    texts().map(lambda each: f" | eval k = {each} | timechart span=6h count, max(k) by k"),
    conditions().map(lambda each: f" | eval k = {each} | stats count(k) by k | sort k"),
)


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(COMMANDS, max_size=4), ENDS)
def test_what_compiles_runs(archive: Archive, commands: list[str], end: str) -> None:
    """The embedded BigQuery accepts and answers whatever the compiler writes."""
    text = "table one" + "".join(f" | {command}" for command in commands) + end
    parse(text, NOW)  # each of these is well formed; a name or type may not fit
    try:
        question = archive.compiled(text)
    except QueryError:
        return
    archive.sql(question.sql)
