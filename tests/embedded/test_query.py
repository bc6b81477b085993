"""Queries over tables: shapes of GoogleSQL, partition filters, parameters, pages, DML."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.exceptions import BadRequest, NotFound
from google.cloud import bigquery
from google.cloud.bigquery import QueryJobConfig, SchemaField

if TYPE_CHECKING:
    from collections.abc import Iterator

DAY = "2022-09-29"
ROWS: list[dict[str, Any]] = [
    {
        "date": DAY,
        "site": "lga",
        "n": 1,
        "raw": {"test": {"id": "a"}, "j": {"k": 1}, "snaps": [{"rtt": 10}, {"rtt": 30}]},
    },
    {
        "date": DAY,
        "site": "lga",
        "n": 3,
        "raw": {"test": {"id": "b"}, "j": {"k": "two"}, "snaps": [{"rtt": 20}]},
    },
    {"date": DAY, "site": "par", "n": 2, "raw": {"test": {"id": "c"}, "snaps": []}},
    {"date": "2022-09-30", "site": "par", "n": None, "raw": None},
]


@pytest.fixture(scope="module")
def ds(client: bigquery.Client) -> Iterator[str]:
    """A dataset with a table `t` of four rows that wants a filter, and one `free` that does not."""
    client.create_dataset("queried")
    raw = [
        SchemaField("test", "RECORD", fields=[SchemaField("id", "STRING")]),
        SchemaField("j", "JSON"),
        SchemaField("snaps", "RECORD", "REPEATED", fields=[SchemaField("rtt", "INTEGER")]),
    ]
    schema = [
        SchemaField("date", "DATE"),
        SchemaField("site", "STRING"),
        SchemaField("n", "INTEGER"),
        SchemaField("raw", "RECORD", fields=raw),
    ]
    for name in ("t", "free"):
        table = bigquery.Table(f"proj.queried.{name}", schema=schema)
        table.time_partitioning = bigquery.TimePartitioning(field="date")
        table.require_partition_filter = name == "t"
        client.create_table(table)
        client.load_table_from_json(ROWS, f"queried.{name}").result()
    yield "queried"
    client.delete_dataset("queried", delete_contents=True)


def rows(client: bigquery.Client, sql: str, **options: object) -> list[tuple[Any, ...]]:
    config = QueryJobConfig(**options)
    return [tuple(row.values()) for row in client.query_and_wait(sql, job_config=config)]


# Each gives its rows in a certain order, over `free`.
SHAPES: list[tuple[str, list[tuple[Any, ...]]]] = [
    ("SELECT raw.test.id FROM queried.free WHERE n = 1", [("a",)]),
    ("SELECT RAW.Test.ID FROM queried.free WHERE N = 1", [("a",)]),
    ("SELECT t.raw.test.id FROM `proj.queried.free` AS t WHERE t.n = 1", [("a",)]),
    ("SELECT free.n FROM proj.queried.free WHERE free.n > 2", [(3,)]),
    ("SELECT n FROM queried.free WHERE site = 'par' AND (n = 1 OR (n = 2))", [(2,)]),
    ("SELECT CASE (n) WHEN 1 THEN 'one' END FROM queried.free WHERE n = 1", [("one",)]),
    ("SELECT n FROM queried.free ORDER BY n", [(None,), (1,), (2,), (3,)]),
    ("SELECT n FROM queried.free ORDER BY n DESC", [(3,), (2,), (1,), (None,)]),
    ("SELECT raw.j.k FROM queried.free WHERE n = 1", [(1,)]),
    (
        "SELECT JSON_VALUE(raw.j, '$.k') FROM queried.free WHERE n <= 2 ORDER BY n",
        [("1",), (None,)],
    ),
    (
        "SELECT raw.test.id, s.rtt FROM queried.free, UNNEST(raw.snaps) AS s ORDER BY s.rtt",
        [("a", 10), ("b", 20), ("a", 30)],
    ),
    (
        "SELECT t.n, s.rtt FROM queried.free t, t.raw.snaps s WHERE n = 3",
        [(3, 20)],
    ),
    (
        (
            "SELECT n, s.rtt, o FROM queried.free, UNNEST(raw.snaps) AS s WITH OFFSET AS o "
            "WHERE n = 1 ORDER BY o"
        ),
        [(1, 10, 0), (1, 30, 1)],
    ),
    (
        ("SELECT n, s.rtt FROM queried.free LEFT JOIN UNNEST(raw.snaps) AS s WHERE n = 2"),
        [(2, None)],
    ),
    (
        (
            "SELECT n, s.rtt, o FROM queried.free LEFT JOIN UNNEST(raw.snaps) AS s WITH OFFSET o "
            "WHERE n >= 2 ORDER BY n"
        ),
        [(2, None, None), (3, 20, 0)],
    ),
    (
        (
            "SELECT n, (SELECT MAX(s.rtt) FROM UNNEST(raw.snaps) AS s) FROM queried.free "
            "WHERE date = '2022-09-29' ORDER BY n"
        ),
        [(1, 30), (2, None), (3, 20)],
    ),
    (
        (
            "SELECT ARRAY(SELECT s.rtt FROM UNNEST(raw.snaps) AS s ORDER BY s.rtt DESC) "
            "FROM queried.free WHERE n = 1"
        ),
        [([30, 10],)],
    ),
    (
        (
            "SELECT ARRAY(SELECT AS STRUCT s.rtt AS r FROM UNNEST(raw.snaps) AS s ORDER BY 1) "
            "FROM queried.free WHERE n = 1"
        ),
        [([{"r": 10}, {"r": 30}],)],
    ),
    (
        (
            "SELECT n, ARRAY_LENGTH(raw.snaps), raw.snaps[SAFE_OFFSET(0)].rtt FROM queried.free "
            "WHERE n IS NOT NULL ORDER BY n"
        ),
        [(1, 2, 10), (2, 0, None), (3, 1, 20)],
    ),
    (
        (
            "SELECT site, COUNT(*) AS c, SUM(n) FROM queried.free GROUP BY site "
            "HAVING c > 0 ORDER BY site"
        ),
        [("lga", 2, 4), ("par", 2, 2)],
    ),
    (
        "SELECT site, ARRAY_AGG(n IGNORE NULLS ORDER BY n) FROM queried.free GROUP BY 1 ORDER BY 1",
        [("lga", [1, 3]), ("par", [2])],
    ),
    (
        (
            "SELECT site, ARRAY_AGG(STRUCT(n, site AS s) ORDER BY n DESC LIMIT 1)[OFFSET(0)].n "
            "FROM queried.free GROUP BY 1 ORDER BY 1"
        ),
        [("lga", 3), ("par", 2)],
    ),
    (
        (
            "SELECT n, ROW_NUMBER() OVER (PARTITION BY site ORDER BY n DESC), "
            "SUM(n) OVER (PARTITION BY site), LAG(n) OVER (ORDER BY n) "
            "FROM queried.free ORDER BY n"
        ),
        [(None, 2, 2, None), (1, 2, 4, None), (2, 1, 2, 1), (3, 1, 4, 2)],
    ),
    (
        (
            "SELECT n FROM queried.free WHERE TRUE "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY site ORDER BY n DESC) = 1 ORDER BY n"
        ),
        [(2,), (3,)],
    ),
    (
        (
            "SELECT DISTINCT PERCENTILE_CONT(n, 0.5) OVER (PARTITION BY site) AS p "
            "FROM queried.free WHERE site = 'lga'"
        ),
        [(2.0,)],
    ),
    (
        (
            "WITH a AS (SELECT site, n FROM queried.free), b AS (SELECT site FROM a WHERE n = 2) "
            "SELECT a.n FROM a JOIN b USING (site) ORDER BY n"
        ),
        [(None,), (2,)],
    ),
    (
        "SELECT a.n, b.n AS m FROM queried.free a JOIN queried.free b ON a.n = b.n - 1 ORDER BY 1",
        [(1, 2), (2, 3)],
    ),
    ("SELECT 1 AS x UNION ALL SELECT 2 UNION ALL SELECT 2 ORDER BY x", [(1,), (2,), (2,)]),
    ("SELECT 1 AS x UNION DISTINCT SELECT 1", [(1,)]),
    ("SELECT n FROM queried.free EXCEPT DISTINCT SELECT 2 ORDER BY n", [(None,), (1,), (3,)]),
    ("SELECT n FROM queried.free INTERSECT DISTINCT SELECT 2", [(2,)]),
    (
        (
            "SELECT n, RANK() OVER w, DENSE_RANK() OVER w, PERCENT_RANK() OVER w, "
            "CUME_DIST() OVER w, NTILE(2) OVER w, LEAD(n) OVER w, FIRST_VALUE(n) OVER w, "
            "LAST_VALUE(n) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING), "
            "NTH_VALUE(n, 2) OVER w "
            "FROM queried.free WHERE n IS NOT NULL WINDOW w AS (ORDER BY n) ORDER BY n"
        ),
        [
            (1, 1, 1, 0.0, 1 / 3, 1, 2, 1, 2, None),
            (2, 2, 2, 0.5, 2 / 3, 1, 3, 1, 3, 2),
            (3, 3, 3, 1.0, 1.0, 2, None, 1, 3, 2),
        ],
    ),
    ("SELECT * EXCEPT (raw, date) FROM queried.free WHERE n = 1", [("lga", 1)]),
    (
        "SELECT * EXCEPT (raw) REPLACE (n + 1 AS n) FROM queried.free WHERE n = 1",
        [(date(2022, 9, 29), "lga", 2)],
    ),
    (
        "SELECT * FROM UNNEST([STRUCT(1 AS a, 'x' AS b), STRUCT(2, 'y')]) ORDER BY a",
        [(1, "x"), (2, "y")],
    ),
    ("SELECT * FROM UNNEST([3, 4]) AS v ORDER BY v", [(3,), (4,)]),
    (
        "SELECT DATE_TRUNC(date, MONTH) AS m, COUNT(*) FROM queried.free GROUP BY m",
        [(date(2022, 9, 1), 4)],
    ),
    (
        (
            "FROM queried.free |> WHERE n IS NOT NULL |> AGGREGATE SUM(n) AS s GROUP BY site "
            "|> ORDER BY s DESC |> LIMIT 1"
        ),
        [("lga", 4)],
    ),
    (
        (
            "FROM queried.free |> EXTEND n * 2 AS twice |> WHERE twice > 2 |> SELECT site, twice "
            "|> ORDER BY twice"
        ),
        [("par", 4), ("lga", 6)],
    ),
    ("FROM UNNEST([1, 2, 3]) AS n |> LIMIT 2 |> WHERE n > 1", [(2,)]),
    (
        (
            "FROM UNNEST([1, 2, 3]) AS n |> AGGREGATE COUNT(*) AS c GROUP BY MOD(n, 2) AS n "
            "|> ORDER BY n -- the new n"
        ),
        [(0, 1), (1, 2)],
    ),
    ("FROM UNNEST([1, 1]) AS n |> SELECT DISTINCT n |> AGGREGATE COUNT(*) AS c", [(1,)]),
    ("FROM UNNEST([3, 1]) AS n |> DISTINCT |> ORDER BY n |> LIMIT 1", [(1,)]),
    ("FROM UNNEST([1]) AS n |> EXTEND n + 1 AS m |> SET n = m * 2 |> DROP m", [(4,)]),
    (
        (
            "FROM queried.free AS a |> WHERE a.n = 1 |> LEFT JOIN queried.free AS b "
            "ON a.site = b.site |> AGGREGATE COUNT(*) AS c GROUP BY a.site"
        ),
        [("lga", 2)],
    ),
    (
        (
            "FROM queried.free |> WHERE n = 1 |> UNION ALL (SELECT * FROM queried.free) "
            "|> SELECT n |> ORDER BY n DESC |> LIMIT 2"
        ),
        [(3,), (2,)],
    ),
    (
        ("WITH q AS (FROM queried.free |> WHERE n > 1) FROM q |> AS r |> SELECT r.n |> ORDER BY n"),
        [(2,), (3,)],
    ),
    (
        "SELECT DATE_TRUNC(date, MONTH) AS date, COUNT(*) AS c FROM queried.free GROUP BY date",
        [(date(2022, 9, 1), 4)],
    ),
    ("SELECT -n AS n FROM queried.free GROUP BY n HAVING n < -1 ORDER BY n + 1", [(-3,), (-2,)]),
    (
        (
            "SELECT ROUND(SUM(n) / COUNT(*), 2), MAX(n) - MIN(n), CAST(SUM(n) AS STRING), "
            "ROUND(APPROX_QUANTILES(n, 2)[OFFSET(1)] * 1.5, 1), MAX(date) - 1, "
            "LENGTH(STRING_AGG(site)), CEIL(AVG(n)), SUM(n) * SUM(n), MOD(SUM(n), 4), "
            "DIV(SUM(n), 4) FROM queried.free WHERE date = '2022-09-29'"
        ),
        [(2.0, 2, "6", 3.0, date(2022, 9, 28), 11, 2.0, 36, 2, 1)],
    ),
    (
        ("SELECT site, SUM(n) FROM queried.free WHERE n > 1 GROUP BY ROLLUP (site) ORDER BY site"),
        [(None, 5), ("lga", 3), ("par", 2)],
    ),
    (
        "SELECT site, SUM(n) FROM queried.free GROUP BY GROUPING SETS (site, ()) ORDER BY site",
        [(None, 6), ("lga", 4), ("par", 2)],
    ),
    (
        (
            "SELECT site, n, COUNT(*) FROM queried.free WHERE n = 1 GROUP BY CUBE (site, n) "
            "ORDER BY site, n"
        ),
        [(None, None, 1), (None, 1, 1), ("lga", None, 1), ("lga", 1, 1)],
    ),
    (
        (
            "SELECT * FROM (SELECT date, site, n FROM queried.free) "
            "PIVOT (SUM(n) AS s, COUNT(*) AS c FOR site IN ('lga', 'par' AS paris)) AS p "
            "WHERE p.s_lga IS NOT NULL"
        ),
        [(date(2022, 9, 29), 4, 2, 2, 1)],
    ),
    (
        (
            "SELECT lga, par FROM (SELECT site, n FROM queried.free) "
            "PIVOT (MAX(n) FOR site IN ('lga', 'par'))"
        ),
        [(3, 2)],
    ),
    (
        (
            "SELECT * FROM (SELECT 'x' AS k, 1 AS a, 2 AS b, CAST(NULL AS INT64) AS c) "
            "UNPIVOT (v FOR name IN (a, b AS 'B', c)) ORDER BY v"
        ),
        [("x", 1, "a"), ("x", 2, "B")],
    ),
    (
        (
            "SELECT name FROM (SELECT 1 AS a, CAST(NULL AS INT64) AS c) "
            "UNPIVOT INCLUDE NULLS (v FOR name IN (a, c)) ORDER BY name"
        ),
        [("a",), ("c",)],
    ),
    ("SELECT 1 AS `end`, 2 AS user, 3 AS `order`", [(1, 2, 3)]),
    ("SELECT n FROM queried.free ORDER BY n LIMIT 1 OFFSET 1", [(1,)]),
    ("SELECT EXISTS(SELECT 1 FROM queried.free WHERE n = 3)", [(True,)]),
    ("SELECT IF(n > 2, 'big', 'small') FROM queried.free WHERE n = 3", [("big",)]),
    (
        "SELECT COUNT(*), MAX(date) FROM queried.free WHERE site IN ('lga')",
        [(2, date(2022, 9, 29))],
    ),
]


@pytest.mark.parametrize(("sql", "expected"), SHAPES, ids=[shape[0][:70] for shape in SHAPES])
def test_a_query_gives_its_rows(
    client: bigquery.Client, ds: str, sql: str, expected: list[tuple[Any, ...]]
) -> None:
    """GoogleSQL's shapes: paths, arrays, windows, subqueries, set operations, pipes."""
    assert rows(client, sql) == expected


FILTERED = [
    "SELECT COUNT(*) FROM queried.t WHERE date = '2022-09-29'",
    "SELECT COUNT(*) FROM queried.t WHERE DATE >= DATE '2022-09-29' AND n > 0",
    "SELECT COUNT(*) FROM queried.t WHERE date BETWEEN '2022-09-01' AND '2022-09-29'",
    "SELECT COUNT(*) FROM queried.t WHERE date IN ('2022-09-29')",
    "SELECT COUNT(*) FROM queried.t WHERE (date = '2022-09-29' OR date < '2000-01-01')",
    "SELECT COUNT(*) FROM queried.t AS x WHERE x.date = '2022-09-29'",
    "SELECT COUNT(*) FROM (SELECT * FROM queried.t) WHERE date = '2022-09-29'",
    "SELECT COUNT(*) FROM (SELECT date AS d FROM queried.t) AS q WHERE q.d = '2022-09-29'",
    "WITH q AS (SELECT * FROM queried.t) SELECT COUNT(*) FROM q WHERE date = '2022-09-29'",
    "FROM queried.t |> WHERE date = '2022-09-29' |> AGGREGATE COUNT(*)",
    "SELECT COUNT(*) FROM queried.t a JOIN queried.free b ON a.n = b.n AND a.date = '2022-09-29'",
]
UNFILTERED = [
    "SELECT COUNT(*) FROM queried.t",
    "SELECT COUNT(*) FROM queried.t WHERE n = 1",
    "SELECT COUNT(*) FROM queried.t WHERE date = '2022-09-29' OR n = 1",
    "SELECT COUNT(*) FROM queried.t WHERE FORMAT_DATE('%F', date) = '2022-09-29'",
    "SELECT COUNT(*) FROM queried.t WHERE date = DATE_ADD(date, INTERVAL n DAY)",
    "SELECT COUNT(*) FROM queried.free WHERE n IN (SELECT n FROM queried.t)",
    "SELECT COUNT(*) FROM queried.t a, queried.free b WHERE b.date = '2022-09-29'",
    "SELECT COUNT(*) FROM (SELECT n AS date FROM queried.t) WHERE date = 1",
    "SELECT COUNT(*) FROM (SELECT * EXCEPT (date), n AS date FROM queried.t) WHERE date = 1",
    "WITH q AS (SELECT * FROM queried.t) SELECT COUNT(*) FROM q",
    "DELETE FROM queried.t WHERE n = 1",
    "UPDATE queried.t SET n = 1 WHERE n = 1",
]


@pytest.mark.parametrize("sql", FILTERED)
def test_a_partition_filter_lets_a_query_through(
    client: bigquery.Client, ds: str, sql: str
) -> None:
    """Wherever it stands, if it is on the column itself."""
    assert rows(client, sql) == [(3,)]


@pytest.mark.parametrize("sql", UNFILTERED)
def test_a_query_without_partition_filter_is_refused(
    client: bigquery.Client, ds: str, sql: str
) -> None:
    """In BigQuery's words."""
    said = (
        r"Cannot query over table 'proj\.queried\.t' without a filter over column\(s\) 'date' "
        "that can be used for partition elimination"
    )
    with pytest.raises(BadRequest, match=said):
        rows(client, sql)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1 AS a, 2 AS A", "Duplicate column names"),
        ("SELECT * FROM t", "must be qualified with a dataset"),
        ("SELECT missing FROM queried.free", "missing"),
        ("SELEC 1", "Syntax error|not supported"),
        ("SELECT * FROM `queried.nothing_*`", "does not match any table"),
        ("SELECT * FROM queried.INFORMATION_SCHEMA.ROUTINES", "INFORMATION_SCHEMA.ROUTINES"),
        ("SELECT * FROM queried.free TABLESAMPLE SYSTEM (10 PERCENT)", "TABLESAMPLE|Sample"),
        (
            "SELECT * FROM queried.free FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()",
            "Version|not supported",
        ),
        (
            "SELECT * FROM queried.free PIVOT (ARRAY_AGG(n) FOR site IN ('lga'))",
            "PIVOT with ARRAY_?AGG",
        ),
        ("SELECT * FROM queried.free PIVOT (SUM(n) FOR n IN (1))", "without an alias"),
        (
            "SELECT * FROM queried.free PIVOT (SUM(n), COUNT(*) FOR site IN ('lga'))",
            "needs an alias",
        ),
        ("SELECT * FROM queried.free, UNNEST(raw.snaps) AS s", r"SELECT \* over UNNEST"),
        ("SELECT * FROM queried.free JOIN queried.t USING (n)", r"without a filter|with USING"),
        ("SELECT * FROM queried.free a JOIN queried.free b USING (n)", "over JOIN with USING"),
        (
            "SELECT x.n FROM (SELECT * FROM queried.free a, queried.free b) AS x",
            "over joined tables in a subquery",
        ),
        (
            "SELECT -n AS n FROM queried.free QUALIFY ROW_NUMBER() OVER (ORDER BY n) = 1",
            "QUALIFY on n",
        ),
        ("FROM queried.free |> RENAME n AS m", "pipe operator RENAME"),
        ("FROM queried.free |> JOIN queried.t USING (n) |> DISTINCT", "joined tables"),
        ("SELECT DATE '2020-01-02' - DATE '2020-01-01'", "DATE - DATE"),
        ("SELECT TIMESTAMP '2020-01-02' - TIMESTAMP '2020-01-01'", "Type INTERVAL"),
        ("SELECT 9223372036854775808", "9223372036854775808"),
        ("SELECT ARRAY_AGG(n) FROM queried.free", "Array cannot have a null element"),
        ("CALL queried.p()", "not supported"),
        ("SELECT 1; IF TRUE THEN SELECT 2; END IF", "not supported"),
        ("CREATE FUNCTION queried.f() AS (1); SELECT 1", "not supported"),
        ("CREATE TEMP FUNCTION f() RETURNS INT64 LANGUAGE js AS 'return 1'; SELECT f()", "SQL"),
        ("CREATE TEMP FUNCTION f(x INT64) AS (f(x)); SELECT f(1)", "Recursive"),
        ("DECLARE x INT64; SET y = 1", "Undeclared variable: y"),
        ("ALTER TABLE queried.free DROP COLUMN n", "not supported"),
        ("EXPORT DATA OPTIONS(uri='gs://x') AS SELECT 1", "not supported"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    client: bigquery.Client, ds: str, sql: str, said: str
) -> None:
    """The message says what it is."""
    with pytest.raises(BadRequest, match=f"(?i){said}"):
        rows(client, sql)


def test_an_alias_keeps_its_letter_case(client: bigquery.Client, ds: str) -> None:
    (row,) = client.query_and_wait(f"SELECT site AS SITE, n AS N FROM {ds}.free WHERE n = 2")

    assert list(row.keys()) == ["SITE", "N"]


def test_a_missing_table_is_not_found(client: bigquery.Client, ds: str) -> None:
    """Names of tables are case-sensitive."""
    with pytest.raises(NotFound, match=r"Not found: Table proj:queried\.FREE"):
        rows(client, "SELECT * FROM queried.FREE")


def test_legacy_sql_is_refused(client: bigquery.Client) -> None:
    """It is another language."""
    with pytest.raises(BadRequest, match="Legacy SQL"):
        rows(client, "SELECT 1", use_legacy_sql=True)


def test_a_default_dataset_qualifies_names(client: bigquery.Client, ds: str) -> None:
    """As `default_dataset` of the job."""
    assert rows(client, "SELECT COUNT(*) FROM free", default_dataset="proj.queried") == [(4,)]


def test_a_project_with_dashes_needs_no_quotes(client: bigquery.Client) -> None:
    """`a-b.dataset.table`, bare and in backticks."""
    client.create_dataset(bigquery.Dataset("my-project-1.dashed"))
    schema = [SchemaField("n", "INTEGER")]
    client.create_table(bigquery.Table("my-project-1.dashed.a-table", schema=schema))
    for name in ("my-project-1.dashed.`a-table`", "`my-project-1.dashed.a-table`"):
        assert rows(client, f"SELECT COUNT(*) FROM {name}") == [(0,)]


WITH_PARAMETER = "SELECT @p"
PARAMETERS: list[tuple[str, Any]] = [
    ("INT64", 7),
    ("FLOAT64", 1.5),
    ("STRING", "it's"),
    ("BOOL", True),
    ("BYTES", b"\x00\xff"),
    ("DATE", date(2022, 9, 29)),
    ("TIMESTAMP", datetime(2022, 9, 29, 1, 2, 3, 4, tzinfo=UTC)),
    ("DATETIME", datetime(2022, 9, 29, 1, 2, 3)),  # noqa: DTZ001
    ("NUMERIC", Decimal("1.5")),
    ("INT64", None),
]


@pytest.mark.parametrize(("kind", "value"), PARAMETERS)
def test_parameters_keep_type_and_value(client: bigquery.Client, kind: str, value: object) -> None:
    """Named, by place, and in an array."""
    named = [bigquery.ScalarQueryParameter("p", kind, value)]
    assert rows(client, WITH_PARAMETER, query_parameters=named) == [(value,)]
    places = [
        bigquery.ScalarQueryParameter(None, "INT64", 1),
        bigquery.ScalarQueryParameter(None, kind, value),
    ]
    assert rows(client, "SELECT ? + 1, ?", query_parameters=places) == [(2, value)]
    if value is not None:
        array = [bigquery.ArrayQueryParameter("p", kind, [value, value])]
        assert rows(client, "SELECT @p", query_parameters=array) == [([value, value],)]


def test_a_struct_parameter(client: bigquery.Client) -> None:
    """Its fields are reached by name."""
    struct = bigquery.StructQueryParameter(
        "p",
        bigquery.ScalarQueryParameter("a", "INT64", 1),
        bigquery.ScalarQueryParameter("b", "STRING", "x"),
    )
    assert rows(client, "SELECT @p.b, @p", query_parameters=[struct]) == [("x", {"a": 1, "b": "x"})]


def test_a_parameter_can_be_the_partition_filter(client: bigquery.Client, ds: str) -> None:
    """It is a constant to the query."""
    day = bigquery.ScalarQueryParameter("day", "DATE", date(2022, 9, 29))
    sql = "SELECT COUNT(*) FROM queried.t WHERE date = @day"
    assert rows(client, sql, query_parameters=[day]) == [(3,)]
    with pytest.raises(BadRequest, match="Query parameter 'day' not found"):
        rows(client, sql)


def test_results_come_in_pages(client: bigquery.Client) -> None:
    """Each row once and in order, by query_and_wait, by a job, and from its destination."""
    sql = "SELECT x FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x ORDER BY x"
    wanted = list(range(1, 1001))

    paged = client.query_and_wait(sql, page_size=300)
    assert [row.x for row in paged] == wanted
    assert paged.total_rows == 1000
    job = client.query(sql)
    result = job.result(page_size=300)
    assert [len(list(page)) for page in result.pages] == [300, 300, 300, 100]
    assert [row.x for row in client.list_rows(job.destination, page_size=300)] == wanted
    fresh = client.get_job(job.job_id, location=job.location)
    assert [row.x for row in fresh.result(start_index=998)] == [999, 1000]
    assert [row.x for row in client.query_and_wait(sql, max_results=2)] == [1, 2]


def test_a_table_is_read_in_pages(client: bigquery.Client, ds: str) -> None:
    """With selected columns, or one partition of it."""
    table = client.get_table("queried.t")
    sites = [row.site for row in client.list_rows(table, page_size=1)]
    assert sites == ["lga", "lga", "par", "par"]
    chosen = [field for field in table.schema if field.name == "n"]
    assert [tuple(row) for row in client.list_rows(table, selected_fields=chosen)] == [
        (1,), (3,), (2,), (None,),
    ]  # fmt: skip
    day = client.list_rows("proj.queried.t$20220930", selected_fields=chosen)
    assert [tuple(row) for row in day] == [(None,)]


def test_a_dry_run_tells_columns_and_runs_nothing(client: bigquery.Client, ds: str) -> None:
    """And says what would be refused."""
    job = client.query("SELECT n FROM queried.free", QueryJobConfig(dry_run=True))
    assert [field.name for field in job.schema] == ["n"]
    assert job.total_bytes_processed == 0
    with pytest.raises(BadRequest, match="without a filter"):
        client.query("SELECT n FROM queried.t", QueryJobConfig(dry_run=True))


def test_a_query_can_write_a_table(client: bigquery.Client, dataset: str) -> None:
    """`destination` is made, refused when it holds rows, and replaced when told to."""
    place = f"proj.{dataset}.made"
    options: dict[str, object] = {"destination": place}
    client.query("SELECT 1 AS a, [1.5] AS b", QueryJobConfig(**options)).result()
    assert [dict(row) for row in client.list_rows(place)] == [{"a": 1, "b": [1.5]}]
    with pytest.raises(Exception, match="Already Exists"):
        client.query("SELECT 2 AS a, [2.5] AS b", QueryJobConfig(**options)).result()
    options["write_disposition"] = "WRITE_TRUNCATE"
    result = client.query("SELECT 'x' AS c", QueryJobConfig(**options)).result()
    assert [dict(row) for row in client.list_rows(place)] == [{"c": "x"}]
    assert [dict(row) for row in result] == [{"c": "x"}]


TRUNCATE = "TRUNCATE TABLE ds.t"
CHANGES = [
    "INSERT INTO ds.t (k, v) VALUES (1, 'a'), (2, 'b')",
    "INSERT ds.t (k) SELECT k + 2 FROM ds.t",
    "UPDATE ds.t SET v = 'z' WHERE k > 2",
    "DELETE FROM ds.t WHERE k = 1",
    (
        "MERGE ds.t AS t USING (SELECT 2 AS k, 'm' AS v UNION ALL SELECT 9, 'n') AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (k, v)"
    ),
]


def test_dml_changes_rows_and_counts_them(client: bigquery.Client, dataset: str) -> None:
    """INSERT, UPDATE, DELETE, MERGE and TRUNCATE; a REQUIRED column stays filled."""
    schema = [SchemaField("k", "INTEGER", "REQUIRED"), SchemaField("v", "STRING")]
    client.create_table(bigquery.Table(f"proj.{dataset}.t", schema=schema))

    def changed(sql: str) -> int | None:
        job = client.query(sql.replace("ds.t", f"{dataset}.t"))
        job.result()
        affected: int | None = job.num_dml_affected_rows
        return affected

    assert [changed(sql) for sql in CHANGES] == [2, 2, 2, 1, 2]
    assert sorted(rows(client, f"SELECT k, v FROM {dataset}.t")) == [
        (2, "m"), (3, "z"), (4, "z"), (9, "n"),
    ]  # fmt: skip
    with pytest.raises(BadRequest, match="Required field k cannot be null"):
        changed("INSERT INTO ds.t (v) VALUES ('x')")
    with pytest.raises(BadRequest, match="has type FLOAT"):
        changed("INSERT INTO ds.t (k) SELECT 1.5")
    assert client.get_table(f"{dataset}.t").num_rows == 4
    with pytest.raises(BadRequest, match="has type FLOAT"):
        changed("UPDATE ds.t SET k = 1.5 WHERE TRUE")
    with pytest.raises(BadRequest, match="must have a WHERE clause"):
        changed("DELETE FROM ds.t")
    changed(TRUNCATE)
    assert client.get_table(f"{dataset}.t").num_rows == 0


def test_views_through_sql(client: bigquery.Client, ds: str, dataset: str) -> None:
    """CREATE OR REPLACE VIEW and DROP VIEW."""
    make = f"CREATE {{}} VIEW {dataset}.v AS SELECT n FROM queried.t WHERE date = '2022-09-29'"
    client.query(make.format("")).result()
    assert len(rows(client, f"SELECT * FROM {dataset}.v")) == 3
    with pytest.raises(Exception, match="Already Exists"):
        client.query(make.format("")).result()
    client.query(make.format("OR REPLACE")).result()
    with pytest.raises(NotFound):
        client.query(f"DROP TABLE {dataset}.v").result()
    client.query(f"DROP VIEW {dataset}.v").result()
    client.query(f"DROP VIEW IF EXISTS {dataset}.v").result()
    assert list(client.list_tables(dataset)) == []
