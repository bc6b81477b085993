"""Spark reads what a question names of the bundles, and no more; its rows are those of BigQuery."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from loader.query.googlesql.reads import SparkText
from loader.query.on_spark import SparkRunner, plan
from tests.asking.archive import DAY, ask, read, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.asking.archive import Archive


def test_the_named_columns_have_the_types_of_the_table(
    spark: SparkSession, archive: Archive
) -> None:
    """Whatever spelling a load job accepts; an absent array is empty."""
    archive.put(
        [
            {"UUID": "a", "Rate": 1, "Count": "7", "When": "2026-01-02 03:04:05.123456789+01:00"},
            {"UUID": 5, "rate": "Infinity", "Price": 1.10, "Samples": [{"T": 1}, {"Note": "é"}]},
            {"UUID": None, "Rate": -0.0, "When": 1767322800, "Price": "0.1234567885"},
        ]
    )

    answer = ask(
        spark,
        archive,
        "SELECT raw.UUID, raw.Rate, raw.`Count`, raw.When, raw.Price, raw.Samples, date,"
        " _node FROM t ORDER BY raw.UUID",
        read("foo1", "raw", "date", "_node"),
    )

    samples = [{"T": 1, "Note": None}, {"T": None, "Note": "é"}]
    cut = datetime(2026, 1, 2, 2, 4, 5, 123456, tzinfo=UTC)
    three = datetime(2026, 1, 2, 3, tzinfo=UTC)
    assert rows(answer) == [
        (None, 0.0, None, three, Decimal("0.123456789"), [], DAY, "n1"),
        ("5", float("inf"), None, None, Decimal("1.100000000"), samples, DAY, "n1"),
        ("a", 1.0, 7, cut, None, [], DAY, "n1"),
    ]
    assert answer.notes.well


def test_bad_and_repeated_rows_and_damaged_bundles_are_left_out_and_counted(
    spark: SparkSession, archive: Archive
) -> None:
    """As a load leaves them out of the table."""
    archive.put([{"Count": 1}, {"Count": 2}], names=["a.json", "b.json"])
    archive.put([{"Count": 2}, {"Count": 3}], names=["b.json", "b.json"])
    archive.put([{"Count": 2}], names=["b.json"], node="n2")
    archive.put([{"Count": 4}, {"Count": "much"}, {"Other": 1}], judged=False, node="n3")
    cut = archive.put([{"Count": 100}], node="n4")
    path = archive.root / cut
    path.write_bytes(path.read_bytes()[:-5])

    answer = ask(
        spark, archive, "SELECT sum(raw.`Count`), count(*) FROM t", read("foo1", "raw.Count")
    )

    assert rows(answer) == [(1 + 2 + 3 + 2 + 4, 5)]
    notes = answer.notes
    assert (notes.read_rows, notes.bad, notes.repeated) == (5, 2, 1)
    assert [(url.rpartition("/")[2], why) for url, why in notes.damaged] == [
        (cut.rpartition("/")[2], "the gzip stream is cut short")
    ]


@pytest.mark.parametrize(
    ("begin", "end", "found"),
    [(11, 13, {1}), (11, 15, {1, 2}), (15, 16, set()), (None, 13, {1}), (13, None, {2})],
)
def test_bundles_without_a_row_of_the_range_are_not_read(
    spark: SparkSession, archive: Archive, begin: int | None, end: int | None, found: set[int]
) -> None:
    """Only their index is."""
    noon, two = (datetime(2026, 1, 2, hour, tzinfo=UTC) for hour in (12, 14))
    archive.put([{"Count": 1}], at=noon)
    archive.put([{"Count": 2}], at=two)
    archive.put([{"Count": 3}], day=date(2026, 1, 5))
    archive.put([{"Count": 4}], indexed=False)
    bounds = {
        name: datetime(2026, 1, 2, hour, tzinfo=UTC) if hour else None
        for name, hour in (("begin", begin), ("end", end))
    }
    if not end:
        bounds["end"] = datetime(2026, 1, 3, tzinfo=UTC)

    answer = ask(
        spark,
        archive,
        "SELECT raw.`Count`, _time FROM t",
        read("foo1", "raw.Count", "_time", **bounds),
    )

    assert {row[0] for row in rows(answer)} == found
    assert answer.notes.bundles == 3
    assert answer.notes.unindexed == 1


def test_of_a_large_bundle_only_the_blocks_of_the_range_are_read(
    spark: SparkSession, archive: Archive
) -> None:
    """With a request for each run of them."""
    noise = random.Random(1)
    archive.put([{"UUID": noise.randbytes(3000).hex(), "Count": nth} for nth in range(500)])
    begin = datetime(2026, 1, 2, 12, tzinfo=UTC) + timedelta(microseconds=100)

    answer = ask(
        spark,
        archive,
        "SELECT raw.`Count`, unix_micros(_time) % 1000000 FROM t ORDER BY 1",
        read("foo1", "raw.Count", "_time", begin=begin, end=begin + timedelta(microseconds=40)),
    )

    assert rows(answer) == [(nth, nth + 1) for nth in range(99, 139)]
    assert answer.notes.read_bytes < answer.notes.size_bytes


def test_index1_is_a_table_that_knows_its_times(spark: SparkSession, archive: Archive) -> None:
    archive.put([{"Count": 1}, {"Count": 2}], node="n7")

    answer = ask(
        spark,
        archive,
        "SELECT raw.Line, _node, _time = raw.Start FROM t ORDER BY 1",
        read("exp.index1", "raw.Line", "raw.Start", "_node", "_time"),
    )

    assert rows(answer) == [(1, "n7", True), (2, "n7", True)]


def test_rows_stream_and_a_limit_ends_the_reading(spark: SparkSession, archive: Archive) -> None:
    """Whether it stands in the text or beside it."""
    for nth in range(40):
        archive.put([{"Count": nth}], node=f"n{nth}")

    for sql, limit in (("SELECT raw.`Count` FROM t LIMIT 3", 0), ("SELECT raw.`Count` FROM t", 3)):
        answer = ask(spark, archive, sql, read("foo1", "raw.Count"), limit=limit)
        assert len(rows(answer)) == 3
        assert answer.notes.read_rows < 20


def test_a_lookup_is_joined(spark: SparkSession, archive: Archive) -> None:
    """From the bucket; an empty cell is NULL."""
    archive.storage.put_new("lookups/sites.csv", b"node,city\nn1,Oslo\nn2,\n", {})
    archive.put([{"Count": 1}])
    archive.put([{"Count": 2}], node="n2")

    answer = ask(
        spark,
        archive,
        "SELECT t.raw.`Count`, city FROM t JOIN s ON s.node = t._node ORDER BY 1",
        read("foo1", "raw.Count", "_node"),
        read("lookups.sites", "node", "city", view="s"),
    )

    assert rows(answer) == [(1, "Oslo"), (2, None)]


def test_repeats_are_collapsed_over_nodes(spark: SparkSession, archive: Archive) -> None:
    """Of A A B A, as two collectors save it, the second A goes."""
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    first, other = {"UUID": "A"}, {"UUID": "B"}
    for minute, (node, body) in enumerate(
        (("n1", first), ("n2", first), ("n1", other), ("n2", first))
    ):
        archive.put([body], node=node, at=noon + timedelta(minutes=minute))
    text = SparkText(
        sql="SELECT raw.UUID FROM t ORDER BY _time",
        reads=(read("foo1", "raw.UUID", "_time"),),
        columns=(),
    )

    readings = plan(text, archive.tables(), 5.0, collapse=True)
    answer = SparkRunner(spark, archive.lookups()).answer(text, readings, lambda _: None)

    assert rows(answer) == [("A",), ("B",), ("A",)]
    assert answer.notes.collapsed == 1
