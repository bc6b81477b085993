"""The steps, as whole frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loader.spark import steps
from loader.spark.findings import DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHOLE = {"rows": 2, "bad": 0, "bare": 0, "plain_bytes": 9, "packed_bytes": 5}
WHOLE |= {"corrupt": "", "unreadable": ""}
Found = tuple[int, int, int, int, int]


def frame(spark: SparkSession, *rows: dict[str, Any]) -> DataFrame:
    names = ("pos", "name_key", "key_high", "key_low", "bad", "whole")
    told = [{"bad": False, **row} for row in rows]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in told], DDL)


def good(bundle: int, line: int, name: int, content: int) -> dict[str, Any]:
    return {"pos": bundle << 32 | line, "name_key": name, "key_high": content, "key_low": -content}


def whole(bundle: int, **facts: int) -> dict[str, Any]:
    return {"pos": bundle << 32, "whole": WHOLE | facts}


def bad(bundle: int, line: int) -> dict[str, Any]:
    return {"pos": bundle << 32 | line, "bad": True}


def collected(found: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in found.select(*columns).collect())


def test_the_earliest_of_equal_rows_stays(spark: SparkSession) -> None:
    """By age of bundle, then by line; other content under the same name is marked as renewed."""
    rows = frame(spark, good(2, 1, 7, 5), good(1, 3, 7, 5), good(1, 9, 7, 5), good(3, 1, 7, 6))

    found = steps.marked(rows)

    assert collected(found, "bundle", "line", "repeated", "renewed") == [
        (1, 3, False, False),
        (1, 9, True, False),
        (2, 1, True, False),
        (3, 1, False, True),
    ]


def test_equal_content_under_other_names_is_no_repeat(spark: SparkSession) -> None:
    found = steps.marked(frame(spark, good(1, 1, 7, 5), good(1, 2, 8, 5)))
    assert collected(found, "repeated", "renewed") == [(False, False)] * 2


def test_bundles_are_summed_up_and_their_unwanted_lines_are_named(spark: SparkSession) -> None:
    rows = steps.marked(
        frame(
            spark,
            *(whole(1), good(1, 1, 7, 5), good(1, 2, 7, 5)),
            *(whole(2, bad=2), bad(2, 2), bad(2, 1), good(2, 3, 7, 5)),
        )
    )

    summed = [(1, 2, 0, 1, 0), (2, 2, 2, 1, 0)]
    for some in (rows, steps.notable(rows)):
        found = steps.per_bundle(some)
        assert collected(found, "bundle", "rows", "bad", "repeated", "renewed") == summed
    unwanted = steps.unwanted(rows)
    assert collected(unwanted, "bundle", "bad", "repeated") == [(1, [], [2]), (2, [1, 2], [3])]
    dirty = spark.createDataFrame([(1,), (3,)], "bundle INT")
    wanted = steps.to_write(dirty, unwanted)
    assert collected(wanted, "bundle", "bad", "repeated") == [(1, [], [2]), (3, None, None)]


@pytest.mark.long
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seen=st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(0, 2)), max_size=30)
)
def test_one_row_of_each_identity_stays(
    spark: SparkSession, seen: list[tuple[int, int, int]]
) -> None:
    """Against a dictionary, for any arrivals."""
    lines = [(b, n, name, content) for n, (b, name, content) in enumerate(seen, 1)]
    earliest: dict[tuple[int, int], tuple[int, int]] = {}
    for b, n, name, content in sorted(lines):
        earliest.setdefault((name, content), (b, n))

    rows = steps.marked(frame(spark, whole(9), *(good(*line) for line in lines)))

    kept = rows.where("NOT repeated AND whole IS NULL")
    assert collected(kept, "bundle", "line") == sorted(earliest.values())
    notable = rows.where("repeated OR renewed OR whole IS NOT NULL")
    assert collected(steps.notable(rows), "bundle", "line") == collected(notable, "bundle", "line")
