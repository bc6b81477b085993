"""What each command answers, on the embedded BigQuery."""

# ruff: noqa: E501, Q003, ISC004
# Questions have quotes, and stand on one line.

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from loader.query import logs
from loader.query.question import Pivot
from tests.query.logs.archive import NOW

if TYPE_CHECKING:
    from tests.query.logs.archive import Archive

VISITS = "table duration=1w iis | lookup iso_code country_code output country | stats count by country, city | sort -count"
SPEEDS = (
    "table duration=1d ndt7 | search raw.Download.MeanThroughputMbps > 10 | timechart span=1h "
    "count, avg(raw.Download.MeanThroughputMbps) as mbps by archiver.Node"
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def test_the_first_query_of_the_reference(archive: Archive) -> None:
    found = archive.values(VISITS)
    assert found[0] == ("Switzerland", "Zug", 2)
    assert {*found[1:]} == {("Switzerland", "Bern", 1), ("Italy", "Zug*", 1), (None, "Rome", 1)}


def test_the_second_query_of_the_reference(archive: Archive) -> None:
    question = archive.compiled(SPEEDS)
    assert question.pivot == Pivot(bucket="_time", key="Node", values=("count", "mbps"))
    assert (question.begin, question.end) == (NOW - timedelta(days=1), NOW)
    assert archive.answer(SPEEDS) == [
        {"_time": utc(2026, 1, 4, 13), "Node": "n1", "count": 1, "mbps": 20.0},
        {"_time": utc(2026, 1, 4, 13), "Node": "n2", "count": 1, "mbps": 40.0},
        {"_time": utc(2026, 1, 4, 14), "Node": "n1", "count": 1, "mbps": 80.0},
    ]


ANSWERS: list[tuple[str, list[tuple[Any, ...]]]] = [
    # table.
    ("table iis | stats count", [(5,)]),
    ("TABLE\n  from:20260102 to:20260104\n  iis | STATS Count", [(2,)]),
    ("table from=2026010210 to=202601021031 iis | stats count", [(1,)]),
    ("table from=20260102103000 duration=1s iis | stats count", [(1,)]),
    ("table to=20260102103000 duration=24h iis | stats count", [(0,)]),
    ("table to=20260102 iis | stats count", [(1,)]),
    ("table duration=1mon iis | stats count", [(5,)]),
    ("table limit=2 iis | stats count", [(2,)]),
    ("table offset=4 limit=2 iis | stats count", [(1,)]),
    ("table nothing?, iis | stats count", [(5,)]),
    ("table nothing? | search x > 1 | stats count", [(0,)]),
    ("table nothing? | fields x", []),
    ("table ndt7, ndt5 | stats sum(Download.MeanThroughputMbps) as s, values(Old) as o", [(152.0, ["x"])]),
    ("table ndt7, ndt5 | stats count by archiver.Node | sort -count | limit 1", [("n1", 3)]),
    # search.
    ('table iis | search city == "Z*" | stats count', [(3,)]),
    (r'table iis | search city == "*\*" | stats count', [(1,)]),
    ('table iis | search city != "Z*" | sort city | fields city', [("Bern",), ("Rome",)]),
    ('table iis | search in(city, "B*", "Rome") | stats count', [(2,)]),
    ('table iis | search in(bytes, 10, 20) or city contain "om" | stats count', [(3,)]),
    ("table iis | search bytes != 10 | stats count", [(3,)]),
    ("table iis | search not bytes == 10 | stats count", [(3,)]),
    ("table iis | search not bytes == 10 or isnull(bytes) | stats count", [(4,)]),
    ("table iis | search bytes == null | stats count", [(0,)]),
    ("table iis | search null | stats count", [(0,)]),
    ("table iis | search limit=2 bytes > 0 | stats count", [(2,)]),
    ("table iis | search bytes >= 20 and bytes <= 40 | stats count", [(2,)]),
    ('table iis | search date == "2026-01-02" and _time > "2026-01-02 10:00" | stats count', [(1,)]),
    ("table iis | eval bytes > 10 | stats count", [(3,)]),
    ("table iis | search `bytes` > 10 | stats count", [(3,)]),
    ('table iis | sort -bytes | limit 2 | search city == "Z*" | fields bytes', [(40,)]),
    # eval.
    ("table iis | eval x = bytes * 2 | eval x = x + 1 | sort x | limit 1 1 | fields x", [(21,)]),
    ("table iis | sort -bytes | eval bytes = -bytes | limit 1 | fields bytes", [(-50,)]),
    ("table iis | eval city = upper(city) | search city == \"ROME\" | fields CITY", [("ROME",)]),
    ("table one | eval x = null | eval t = typeof(x) | fields x, t", [(None, None)]),
    ("table ndt7 | eval n = len(Samples.RTT) | sort -n | limit 1 | fields n", [(2,)]),
    ("table ndt7 | search contain(raw.Samples.RTT, 4) | fields Download.MeanThroughputMbps", [(20.0,)]),
    # stats.
    ("table iis | search bytes > 100 | stats count, sum(bytes) as s", [(0, None)]),
    ("table iis | stats count by country_code | sort country_code",
     [(None, 1), ("CH", 3), ("IT", 1)]),
    ("table iis | limit 0 | stats count", [(0,)]),
    ("table iis | sort -bytes | limit 2 | stats sum(bytes)", [(90,)]),
    ("table iis | stats count, count as n, c(bytes)", [(5, 5, 4)]),
    ("table iis | stats sum(bytes) | search sum_bytes > 1", [(120,)]),
    ("table iis | stats last(city), first(bytes), last(bytes)", [("Rome", 10, 50)]),
    ("table iis | stats count by raw.city | sort raw.city | limit 1", [("Bern", 1)]),
    # timechart.
    ("table iis | timechart count",
     [(utc(2026, 1, day), 1) for day in range(1, 6)]),
    ("table iis | timechart span=1w sum(bytes) as s",
     [(utc(2025, 12, 29), 70), (utc(2026, 1, 5), 50)]),
    ("table iis | timechart span=2w count", [(utc(2025, 12, 22), 4), (utc(2026, 1, 5), 1)]),
    ("table iis | timechart span=1mon count", [(utc(2026, 1, 1), 5)]),
    ("table iis | timechart span=3mon count", [(utc(2026, 1, 1), 5)]),
    ("table iis | timechart span=1y per_day(bytes) as d", [(utc(2026, 1, 1), 120 / 365)]),
    ("table ndt7 | timechart span=30m count",
     [(utc(2026, 1, 4, 13), 2), (utc(2026, 1, 4, 13, 30), 1), (utc(2026, 1, 4, 14), 1)]),
    ("table ndt7 | timechart span=1h per_minute", [(utc(2026, 1, 4, 13), 0.05), (utc(2026, 1, 4, 14), 1 / 60)]),
    ("table iis | timechart span=1y count by country_code",
     [(utc(2026, 1, 1), "CH", 3), (utc(2026, 1, 1), "IT", 1), (utc(2026, 1, 1), "null", 1)]),
    ("table iis | timechart count | sort -_time | limit 1", [(utc(2026, 1, 5), 1)]),
    # sort, fields, rename, limit, drop.
    ("table iis | sort limit=2 city, -bytes | fields city, bytes", [("Bern", 10), ("Rome", 50)]),
    ("table iis | sort +bytes | fields bytes", [(None,), (10,), (20,), (40,), (50,)]),
    ("table iis | sort -bytes | fields bytes", [(50,), (40,), (20,), (10,), (None,)]),
    ("table iis | sort -bytes | limit 1 2 | eval x = bytes | fields x", [(40,), (20,)]),
    ("table iis | sort bytes | limit 3 | sort -bytes | limit 1 | fields bytes", [(20,)]),
    ("table iis | fields date, city | search city == \"Bern\"", [(date(2026, 1, 1), "Bern")]),
    ("table one | fields - raw, archiver, date", [(utc(2026, 1, 2, 3, 4, 5),)]),
    ("table iis | fields archiver, city | search archiver.Node == \"mlab*\" | stats count", [(5,)]),
    ("table iis | search city == \"Bern\" | rename raw.city as town, date as day | fields town, day",
     [("Bern", date(2026, 1, 1))]),
    ("table iis | fields city, bytes | rename city as bytes | sort bytes | limit 1", [("Bern",)]),
    ("table iis | drop", []),
    ("table iis | drop | stats count", [(0,)]),
    # rex and parsejson.
    ('table iis | rex field=line "(?i)^(?<verb>get) (?<path>\\S+) (?:\\d+)" | search verb == "GET" | fields path',
     [("/a%20b?x=1",)]),
    ('table iis | rex field=raw.line "code (?<code>[0-9]+)" | stats max(int(code)), count', [(4711, 5)]),
    ("table iis | parsejson | search line.user.name == \"a*\" | fields city, line.ok", [("Bern", "true")]),
    ("table iis | parsejson field=raw.line | stats count(raw.line.user.name)", [(1,)]),
    ("table one | parsejson json | fields json.a.b", [("1",)]),
    # lookup.
    ("table iis | lookup iso_code country_code output country as land, size | stats count by land, size | sort -count, land",
     [("Switzerland", "41285", 3), (None, None, 1), ("Italy", "302073", 1)]),
    ('table iis | eval k = lower("IT") | eval k = upper(k) | lookup iso_code country_code as k output country '
     '| stats count by country', [("Italy", 5)]),
    # join and union.
    ("table iis | join city [ table iis | stats sum(bytes) as total by city ] | search total > 45 | fields city, total",
     [("Rome", 50)]),
    ("table iis | join country_code [ table iis | stats count as n by country_code ] | stats count", [(4,)]),
    ("table iis | join type=left country_code [ table iis | stats count as n by country_code ] "
     "| search isnull(n) | fields city", [("Rome",)]),
    ("table iis | stats count | union [ table ndt7 | stats count | eval x = \"b\" ] | sort count",
     [(4, "b"), (5, None)]),
    ("table iis | stats max(bytes) as m | union [ table ndt7 | stats max(Download.MeanThroughputMbps) as m ] | sort m",
     [(50.0,), (80.0,)]),
    ("table limit=1 iis | union [ table limit=1 ndt7 | union [ table limit=1 ndt5 ] ] | stats count", [(3,)]),
    # fulltext.
    ('fulltext "failed_LOGIN root" from iis | fields city', [("Zug*",)]),
    ('fulltext "login" from iis | fields city', []),
    ('fulltext "4711" from iis | fields city', [("Zug*",)]),
    ('fulltext "50" from iis | fields city', [("Rome",)]),
    ('fulltext from=20260101 to=20260105 "zug" and ("get" or not "root") from iis | sort _time | fields bytes',
     [(20,), (None,)]),
    ('fulltext limit=1 "zug" from iis, ndt7 | stats count', [(1,)]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ANSWERS)
def test_a_question_has_its_answer(
    archive: Archive, text: str, expected: list[tuple[Any, ...]]
) -> None:
    found = archive.values(text)
    if " sort " in text or "timechart" in text:
        assert found == [tuple(map(_near, each)) for each in expected]
    else:
        assert sorted(found, key=repr) == sorted(expected, key=repr)


def _near(value: object) -> object:
    return pytest.approx(value) if isinstance(value, float) else value


def test_an_aggregate_reads_the_fields_that_it_needs_and_no_others(archive: Archive) -> None:
    """No engine needs to read the whole of `raw` for a chart."""
    sql = archive.compiled(SPEEDS).sql
    assert "`MeanThroughputMbps`" in sql
    assert "`raw` AS" not in sql
    assert "t.`date` >= DATE '2026-01-03'" in sql


def test_the_range_of_a_question_is_that_of_all_its_tables(archive: Archive) -> None:
    joined = "table from=20260102 to=20260103 iis | join city [ table from={} to={} iis | stats count by city ]"
    question = archive.compiled(joined.format("20260101", "2026010212"))
    assert (question.begin, question.end) == (utc(2026, 1, 1), utc(2026, 1, 3))
    question = archive.compiled("table from=20260102 iis | union [ table to=20260101 iis ]")
    assert (question.begin, question.end) == (None, None)
    assert archive.compiled("table nothing?").begin is None


def test_the_first_word_says_which_language_it_is() -> None:
    assert logs.is_log_query("\n Table iis")
    assert logs.is_log_query('fulltext "a" from iis')
    assert not logs.is_log_query("FROM ndt7 |> WHERE TRUE")
    assert not logs.is_log_query("  ")
