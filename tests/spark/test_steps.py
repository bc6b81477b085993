"""The steps, as whole frames."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loader.spark import engine, steps
from loader.spark.findings import LINE_BITS, LINE_MASK, BundleFindings, Found, Whole
from loader.spark.repeats import by_bundle, parts, repeats

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Line = tuple[int, int, int, int]
"""Bundle, line, key of the name and of the content."""


def rows_of(*lines: Line) -> np.ndarray:
    made = [(name, content, -content, bundle << 32 | line) for bundle, line, name, content in lines]
    return np.array(made, "<i8").reshape(-1, 4)


def found(
    *lines: Line, bundles: dict[int, Whole] | None = None, bad: tuple[int, ...] = ()
) -> Found:
    wholes = (bundles or {}).items()
    return Found(rows_of(*lines), [BundleFindings(number, one, bad) for number, one in wholes])


def frame(spark: SparkSession, partitions: int, *tasks: Found) -> DataFrame:
    """What tasks of verifying return, each for itself."""
    batches = [steps.dealt(one, partitions) for one in tasks]
    lines = [tuple(line.values()) for batch in batches for line in batch.to_pylist()]
    return steps.marked(spark.createDataFrame(lines, steps.DEALT), partitions)


def lines_of(positions: np.ndarray) -> list[tuple[int, int]]:
    return [(pos >> LINE_BITS, pos & LINE_MASK) for pos in positions.tolist()]


def test_the_earliest_of_equal_rows_stays() -> None:
    """By age of bundle, then by line; other content under the same name is marked as renewed."""
    told = repeats(rows_of((2, 1, 7, 5), (1, 3, 7, 5), (1, 9, 7, 5), (3, 1, 7, 6), (1, 1, 8, 5)))
    assert lines_of(told.repeated) == [(1, 9), (2, 1)]
    assert lines_of(told.renewed) == [(3, 1)]
    nothing = repeats(rows_of((1, 1, 7, 5), (1, 2, 8, 5)))
    assert not len(nothing.repeated)
    assert not len(nothing.renewed)
    assert [(bundle, lines.tolist()) for bundle, lines in by_bundle(told.repeated)] == [
        (1, [9]),
        (2, [1]),
    ]
    assert list(by_bundle(nothing.repeated)) == []


seen = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-2, 2), st.integers(0, 2)), max_size=30
).map(lambda each: [(b, n, name, content) for n, (b, name, content) in enumerate(each, 1)])


@given(seen=seen, count=st.integers(1, 9))
def test_parts_together_find_what_the_whole_finds(seen: list[Line], count: int) -> None:
    """The earliest of each identity, by a dictionary, stays; each row is in one part."""
    earliest: dict[tuple[int, int], tuple[int, int]] = {}
    for bundle, line, name, content in sorted(seen):
        earliest.setdefault((name, content), (bundle, line))

    told = repeats(rows_of(*seen))

    everything = {(bundle, line) for bundle, line, *_ in seen}
    assert everything - set(lines_of(told.repeated)) == set(earliest.values())
    assert len(told.renewed) == len(earliest) - len({name for name, _ in earliest})
    assert set(lines_of(told.renewed)) <= set(earliest.values())
    dealt = list(parts(rows_of(*seen), count))
    assert sorted(row for _, rows in dealt for row in rows.tolist()) == sorted(
        rows_of(*seen).tolist()
    )
    by_part = [repeats(rows) for _, rows in dealt]
    for name in ("repeated", "renewed"):
        some = [pos for one in by_part for pos in getattr(one, name).tolist()]
        assert sorted(some) == getattr(told, name).tolist()


def test_bundles_are_summed_up_and_their_unwanted_lines_are_named(spark: SparkSession) -> None:
    """Two tasks have found them, and several look for repeated rows."""
    rows = frame(
        spark,
        2,
        found((1, 1, 7, 5), (1, 2, 7, 5), (1, 3, 9, 1), bundles={1: Whole(rows=3)}),
        found(
            *((2, 3, 7, 5), (2, 4, 9, 2), (2, 5, 8, 1), (1, 9, 8, 1)),
            bundles={2: Whole(rows=5, bad=2)},
            bad=(1, 2),
        ),
    )

    told = engine.summed_up(rows)

    assert [(one.bundle, one.rows, one.bad, one.repeated, one.renewed) for one in told] == [
        (1, 3, 0, 1, 0),
        (2, 5, 2, 2, 1),
    ]
    dirty = spark.createDataFrame([(1,), (2,), (3,)], "bundle INT")
    wanted = steps.to_write(dirty, steps.unwanted(rows)).collect()
    assert sorted((one.bundle, one.bad, one.repeated) for one in wanted) == [
        (1, [], [2]),
        (2, [1, 2], [3, 5]),
        (3, None, None),
    ]


@pytest.mark.long
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seen=seen)
def test_spark_finds_what_one_list_shows(spark: SparkSession, seen: list[Line]) -> None:
    """Whichever task found a row, and whichever looks for its like."""
    numbers = range(5)
    tasks = [
        found(*(one for one in seen if one[0] == number), bundles={number: Whole(rows=30)})
        for number in numbers
    ]
    rows = frame(spark, 3, *tasks)

    whole = repeats(rows_of(*seen))
    repeated: dict[int, list[int]] = defaultdict(list)
    for bundle, line in lines_of(whole.repeated):
        repeated[bundle].append(line)
    told = {one.bundle: one.repeated for one in steps.unwanted(rows).collect()}
    assert told == {number: repeated[number] for number in numbers}
    renewed = Counter(bundle for bundle, _ in lines_of(whole.renewed))
    assert [(one.repeated, one.renewed) for one in engine.summed_up(rows)] == [
        (len(repeated[number]), renewed[number]) for number in numbers
    ]
