"""What is refused, and where; what a question reads; any text ends."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.schema.fields import Field, Mode
from loader.query.errors import Code, QueryError
from loader.query.googlesql.reading import read
from loader.query.googlesql.reads import Range
from loader.query.googlesql.translating import to_spark
from loader.query.logs.emitted import FUNCTIONS
from loader.query.question import Question

if TYPE_CHECKING:
    from jostler.schema.fields import Fields
    from loader.query.googlesql.reads import Read

NOW = datetime(2024, 5, 10, 12, tzinfo=UTC)
COLUMNS = (
    Field(name="date", type="DATE"),
    Field(name="archiver", type="RECORD", fields=(Field(name="Version", type="STRING"),)),
    Field(
        name="raw",
        type="RECORD",
        fields=(
            Field(name="UUID", type="STRING"),
            Field(name="Mbps", type="FLOAT"),
            Field(
                name="Client",
                type="RECORD",
                fields=(Field(name="IP", type="STRING"), Field(name="Port", type="INTEGER")),
            ),
            Field(
                name="Samples",
                type="RECORD",
                mode=Mode.REPEATED,
                fields=(Field(name="RTT", type="FLOAT"), Field(name="Bytes", type="INTEGER")),
            ),
        ),
    ),
    Field(name="_time", type="TIMESTAMP"),
    Field(name="_node", type="STRING"),
)


class Archive:
    """Two tables of the same columns."""

    def names(self) -> tuple[str, ...]:
        return ("ndt.ndt7", "ndt7")

    def columns(self, table: str) -> Fields | None:
        return COLUMNS if table in self.names() else None


def reads(sql: str, begin: datetime | None = None) -> list[Read]:
    question = read(sql, Archive())
    question = Question(text=sql, sql=question.sql, begin=begin)
    return list(to_spark(question, Archive(), NOW).reads)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (Code.UNKNOWN_TABLE, "SELECT 1 FROM «ndt8»"),
        (Code.UNKNOWN_TABLE, "SELECT * FROM ndt7 JOIN «x.y» ON TRUE"),
        (Code.UNKNOWN_FIELD, "SELECT «daet» FROM ndt7"),
        (Code.UNKNOWN_FIELD, "SELECT raw.Client.«Prot» FROM ndt7"),
        (Code.UNKNOWN_FIELD, "SELECT raw.Samples.«RTT» FROM ndt7"),
        (Code.UNKNOWN_FIELD, "SELECT t.«x» FROM ndt7 AS t"),
        (Code.UNKNOWN_FIELD, "SELECT «date» FROM ndt7, ndt.ndt7 AS b"),
        (Code.UNKNOWN_FIELD, "FROM ndt7 |> SELECT raw.UUID |> WHERE «date» > '2024-01-01'"),
        (Code.UNKNOWN_FUNCTION, "SELECT «FROBNICATE(date)» FROM ndt7"),
        (Code.UNKNOWN_FUNCTION, "SELECT LENGTH(«LEN(raw.UUID)») FROM ndt7"),
        (Code.NOT_SUPPORTED, "SELECT «ST_GEOGPOINT(1, 2)»"),
        (Code.NOT_SUPPORTED, "SELECT «NORMALIZE('a')»"),
        (Code.NOT_SUPPORTED, "SELECT CAST(«'1'» AS BIGNUMERIC)"),
        (Code.NOT_SUPPORTED, "SELECT REGEXP_CONTAINS(raw.UUID, «raw.UUID») FROM ndt7"),
        (Code.ARGUMENT, "SELECT REGEXP_CONTAINS('a', «r'(?=a)'»)"),
        (Code.NOT_SUPPORTED, "SELECT REGEXP_REPLACE('a', «'a*'», '')"),
        (Code.ARGUMENT, "SELECT «SUBSTR('a')»"),
        (Code.ARGUMENT, "SELECT DATE_TRUNC(date, «FORTNIGHT») FROM ndt7"),
        (Code.ARGUMENT, "SELECT TIMESTAMP('2024-01-01', «'Mars/Olympus'»)"),
        (Code.ARGUMENT, "SELECT «99999999999999999999»"),
        (Code.ARGUMENT, "SELECT raw.UUID FROM ndt7 WHERE «SUM(raw.Mbps)» > 1"),
        (Code.ARGUMENT, "SELECT «date», COUNT(*) FROM ndt7"),
        (Code.TYPE, "SELECT «raw.UUID + 1» FROM ndt7"),
        (Code.TYPE, "SELECT 1 FROM ndt7 WHERE «raw.UUID = 5»"),
        (Code.TYPE, "SELECT 1 FROM ndt7 WHERE «raw.UUID»"),
        (Code.TYPE, "SELECT «IF(TRUE, 1, 'a')»"),
        (Code.TYPE, "SELECT x FROM UNNEST(«5») AS x"),
        (Code.SYNTAX, "SELECT (1 + «"),
    ],
)
def test_what_is_refused_has_a_code_and_a_place(code: Code, text: str) -> None:
    """The words between « and » are those that the error names."""
    sql = text.replace("«", "").replace("»", "")
    start = text.index("«")
    end = text.index("»") - 1 if "»" in text else len(sql)

    with pytest.raises(QueryError) as found:
        read(sql, Archive())

    place = sql[found.value.start : found.value.end]
    assert found.value.code == code, found.value
    if code is not Code.SYNTAX:
        assert sql[start:end].startswith(place) or place in sql[start : end + 1], found.value
        assert place


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT UUID FROM ndt7", "raw.UUID"),
        ("SELECT t.UUID FROM ndt7 AS t", "t.raw.UUID"),
    ],
)
def test_a_field_without_its_column_is_found(sql: str, meant: str) -> None:
    with pytest.raises(QueryError, match=f"; {meant} is one"):
        read(sql, Archive())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM ndt7 TABLESAMPLE SYSTEM (10 PERCENT)",
        "SELECT * FROM ndt7 FOR SYSTEM_TIME AS OF '2024-01-01'",
        "SELECT date FROM ndt7 GROUP BY ROLLUP (date)",
        "WITH RECURSIVE w AS (SELECT 1) SELECT * FROM w",
        "SELECT (SELECT COUNT(*) FROM ndt7 AS b WHERE b.date = a.date) FROM ndt7 AS a",
        "SELECT date FROM ndt7 INTERSECT ALL SELECT date FROM ndt7",
        "DELETE FROM ndt7 WHERE TRUE",
        "SELECT 1; SELECT 2",
        "FROM ndt7 |> TABLESAMPLE SYSTEM (1 PERCENT)",
        "SELECT @x",
        "SELECT x -> x",
        "",
        "|>",
        "SELECT " + "(" * 60 + "1" + ")" * 60,
        "SELECT " + "+".join(["1"] * 20_000),
        "SELECT " + "ABS(" * 16 + "(SELECT MAX(raw.Mbps) FROM ndt7)" + " * 2.5)" * 16,
    ],
)
def test_whole_forms_are_refused_quickly(sql: str) -> None:
    """What has no translation is no query; it takes a moment to say so, not minutes."""
    begun = time.process_time()
    with pytest.raises(QueryError) as found:
        read(sql, Archive())
    assert 0 <= found.value.start <= found.value.end <= len(sql)
    assert time.process_time() - begun < 20


@pytest.mark.parametrize(
    "expression",
    ["raw.Mbps" + " * raw.Mbps" * 200, "ABS(" * 16 + "raw.Mbps" + " * raw.Mbps)" * 16],
)
def test_looking_at_overflows_makes_no_long_text(expression: str) -> None:
    """Operands are named where they are long, so the text grows with the question."""
    sql = f"SELECT {expression} AS x FROM ndt7"
    made = to_spark(read(sql, Archive()), Archive(), NOW).sql
    assert len(made) < 500 * expression.count("*")


WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "LIMIT",
    "JOIN",
    "ON",
    "AS",
    "WITH",
    "UNION",
    "ALL",
    "DISTINCT",
    "|>",
    "AGGREGATE",
    "EXTEND",
    "(",
    ")",
    "[",
    "]",
    ",",
    ".",
    "*",
    "+",
    "-",
    "/",
    "=",
    "<",
    ">",
    "'",
    '"',
    "`",
    "\\",
    ";",
    "--",
    "/*",
    "*/",
    "1",
    "2.5",
    "1e400",
    "'a'",
    "b'\\xff'",
    "r'\\d'",
    "NULL",
    "TRUE",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "IN",
    "BETWEEN",
    "LIKE",
    "NOT",
    "AND",
    "OR",
    "IS",
    "CAST",
    "COUNT",
    "SUM",
    "SUBSTR",
    "UNNEST",
    "ARRAY",
    "STRUCT",
    "INTERVAL",
    "DAY",
    "OVER",
    "PARTITION",
    "QUALIFY",
    "date",
    "raw",
    "raw.UUID",
    "ndt7",
    "x",
    "_time",
    "SAFE.",
    "NET.",
    "{",
    "}",
    "@",
    "#",
    "é",
    "\n",
]


@settings(max_examples=150, deadline=2000)
@given(st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_question_or_is_refused_at_a_place(text: str) -> None:
    """In bounded time, and with no other exception."""
    try:
        question = read(text, Archive())
    except QueryError as error:
        assert 0 <= error.start <= error.end <= len(text)  # noqa: PT017 - it may be raised
    else:
        to_spark(question, Archive(), NOW)


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("SELECT COUNT(*) FROM ndt7", []),
        ("SELECT raw.UUID FROM ndt7 WHERE RAW.mbps > 1", ["raw.Mbps", "raw.UUID"]),
        ("SELECT raw.Client FROM ndt7 WHERE raw.Client.IP = 'a'", ["raw.Client"]),
        ("SELECT * FROM ndt7", ["archiver", "date", "raw"]),
        ("SELECT * FROM ndt7 WHERE _node = 'a'", ["_node", "archiver", "date", "raw"]),
        ("SELECT s.RTT FROM ndt7, UNNEST(raw.Samples) AS s", ["raw.Samples.RTT"]),
        ("SELECT COUNT(*) FROM ndt7, UNNEST(raw.Samples) AS s", ["raw.Samples"]),
        ("SELECT raw.Samples[OFFSET(0)].RTT FROM ndt7", ["raw.Samples.RTT"]),
        ("SELECT r.UUID FROM (SELECT raw AS r, date FROM ndt7)", ["date", "raw.UUID"]),
        (
            "FROM ndt7 |> SELECT raw |> WHERE raw.Mbps > 1 |> SELECT raw.UUID",
            ["raw.Mbps", "raw.UUID"],
        ),
        ("SELECT ARRAY(SELECT s.RTT FROM UNNEST(raw.Samples) AS s) FROM ndt7", ["raw.Samples.RTT"]),
    ],
)
def test_only_what_is_named_is_read(sql: str, paths: list[str]) -> None:
    """A field of a struct, or of an array's elements, is read without those beside it."""
    (found,) = reads(sql)
    assert [".".join(path) for path in found.paths] == paths


def day(text: str) -> date:
    return date.fromisoformat(text)


@pytest.mark.parametrize(
    ("where", "first", "end"),
    [
        ("date = '2024-05-01'", "2024-05-01", "2024-05-02"),
        (
            "date >= '2024-05-01' AND raw.Mbps > 1 AND date < '2024-05-03'",
            "2024-05-01",
            "2024-05-03",
        ),
        ("date BETWEEN '2024-05-01' AND DATE '2024-05-03'", "2024-05-01", "2024-05-04"),
        ("date IN ('2024-05-09', '2024-05-01')", "2024-05-01", "2024-05-10"),
        ("'2024-05-01' < date", "2024-05-02", None),
        ("date > DATE_SUB(CURRENT_DATE(), INTERVAL 7 DAY)", "2024-05-04", None),
        ("date >= DATE_SUB(CURRENT_DATE(), INTERVAL 1 MONTH)", "2024-04-10", None),
        ("date = '2024-05-01' OR date = '2024-05-03'", "2024-05-01", "2024-05-04"),
        ("date = '2024-05-01' OR raw.Mbps > 1", None, None),
        ("NOT date = '2024-05-01'", None, None),
        ("DATE_ADD(date, INTERVAL 1 DAY) = '2024-05-01'", None, None),
    ],
)
def test_the_days_of_where_are_known(where: str, first: str | None, end: str | None) -> None:
    """From comparisons with constants, joined by AND, OR, IN and BETWEEN."""
    (found,) = reads(f"SELECT raw.UUID FROM ndt7 WHERE {where}")
    assert found.range.first_day == (day(first) if first else None)
    assert found.range.end_day == (day(end) if end else None)


@pytest.mark.parametrize(
    ("where", "nodes"),
    [
        ("_node = 'n1'", {"n1"}),
        ("'n1' = _node AND raw.Mbps > 1", {"n1"}),
        ("_node IN ('n1', 'n2')", {"n1", "n2"}),
        ("_node = 'n1' OR (_node = 'n2' AND date > '2024-05-01')", {"n1", "n2"}),
        ("_node IN ('n1', 'n2') AND _node IN ('n2', 'n3')", {"n2"}),
        ("_node = 'n1' AND _node = 'n2'", set()),
        ("_node = CONCAT('n', '1')", None),
        ("_node = 'n1' OR raw.Mbps > 1", None),
        ("NOT _node = 'n1'", None),
        ("_node NOT IN ('n1')", None),
        ("_node != 'n1'", None),
        ("_node > 'n1'", None),
        ("_node IN ('n1', NULL)", None),
        ("_node IN ('n1', raw.UUID)", None),
        ("UPPER(_node) = 'n1'", None),
        ("raw.UUID = 'n1'", None),
    ],
)
def test_the_nodes_of_where_are_known(where: str, nodes: set[str] | None) -> None:
    """From equality with texts, joined by AND, OR and IN."""
    (found,) = reads(f"SELECT raw.UUID FROM ndt7 WHERE {where}")
    assert found.range.nodes == (None if nodes is None else frozenset(nodes))


def test_the_nodes_of_another_use_of_the_table_are_not_these() -> None:
    """Nor those of a condition behind a limit or beside an outer join."""
    one, other = reads("SELECT a.date FROM ndt7 a JOIN ndt7 b USING (date) WHERE a._node = 'n1'")
    assert (one.range.nodes, other.range.nodes) == ({"n1"}, None)
    for sql in (
        "SELECT date FROM (SELECT date, _node FROM ndt7 LIMIT 3) WHERE _node = 'n1'",
        "SELECT a.date FROM ndt7 a LEFT JOIN ndt7 b ON b._node = 'n1'",
    ):
        assert all(found.range.nodes is None for found in reads(sql))


def test_times_and_the_questions_own_range_are_joined() -> None:
    """`_time` is compared by the microsecond; the question's begin counts for each table."""
    begin = datetime(2024, 5, 1, tzinfo=UTC)
    (found,) = reads(
        "SELECT date FROM ndt7 WHERE _time <= TIMESTAMP '2024-05-02 01:00:00+01'", begin
    )
    assert found.range == Range(begin=begin, end=datetime(2024, 5, 2, 0, 0, 0, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("sql", "known"),
    [
        ("SELECT raw FROM (SELECT date, raw FROM ndt7) WHERE date = '2024-05-01'", True),
        ("FROM ndt7 |> EXTEND 1 AS x |> WHERE date = '2024-05-01'", True),
        ("FROM ndt7 |> LIMIT 5 |> WHERE date = '2024-05-01'", False),
        ("FROM ndt7 |> AGGREGATE COUNT(*) AS n GROUP BY date |> WHERE date = '2024-05-01'", False),
        (
            (
                "SELECT * FROM (SELECT date, ROW_NUMBER() OVER () AS n FROM ndt7) "
                "WHERE date = '2024-05-01'"
            ),
            False,
        ),
    ],
)
def test_a_condition_counts_for_a_subquerys_table_if_it_may_go_first(sql: str, known: bool) -> None:
    """Rows that LIMIT, a group or a window has counted cannot be left out."""
    (found,) = reads(sql)
    assert (found.range.first_day == day("2024-05-01")) == known


def test_each_use_of_a_table_has_its_own_days_and_columns() -> None:
    """A table that is joined with itself is read twice."""
    sql = (
        "SELECT a.raw.UUID FROM ndt7 AS a JOIN ndt.ndt7 AS b ON a.raw.UUID = b.raw.Client.IP "
        "WHERE a.date = '2024-05-01' AND b.date = '2024-05-02'"
    )
    one, other = reads(sql)
    assert (one.table, one.view, other.table) == ("ndt7", "_read_0", "ndt.ndt7")
    assert one.paths == (("date",), ("raw", "UUID"))
    assert other.paths == (("date",), ("raw", "Client", "IP"))
    assert (one.range.first_day, other.range.first_day) == (day("2024-05-01"), day("2024-05-02"))


def test_a_star_beside_time_is_written_as_its_columns() -> None:
    """A runner's subquery in the table's place has `_time`, which `*` leaves out."""
    question = read(
        "FROM ndt7 AS t |> WHERE _time > '2024-05-01' |> SELECT t.* EXCEPT (raw)", Archive()
    )
    assert (
        question.sql
        == ("SELECT t.`date`, t.`archiver` FROM ndt7 AS t WHERE (_time > '2024-05-01')")
        or "`date`, t.`archiver`" in question.sql
    )
    assert read("SELECT * FROM ndt7", Archive()).sql == "SELECT * FROM ndt7"


def test_the_functions_of_the_log_query_language_are_known() -> None:
    """All that its compiler writes has a translation."""
    from loader.query.googlesql.functions.dispatch import NAMES  # noqa: PLC0415 - used here alone

    syntax = {"ARRAY", "CAST", "SAFE_CAST", "EXTRACT", "IF", "UNNEST", "SAFE_OFFSET", "WEEK"}
    assert FUNCTIONS - NAMES - syntax == set()
