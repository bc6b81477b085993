"""Work that Spark does part by part, without a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loader.spark.failure import cause
from loader.spark.parts import of_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


def repeated(part: tuple[str, int]) -> Iterator[str]:
    """Yield a text so many times; refuse less than none."""
    text, times = part
    if times < 0:
        raise ValueError(f"{text}: fewer than none")
    yield from [text] * times


def test_results_come_in_the_order_of_the_parts(spark: SparkSession) -> None:
    """A part may have several results, or none; no parts have none."""
    parts = [("c", 1), ("a", 0), ("b", 2), ("c", 1)]
    assert of_parts(spark, parts, repeated) == ["c", "b", "b", "c"]
    assert of_parts(spark, [], repeated) == []


def test_an_error_of_the_work_is_told_as_a_sentence(spark: SparkSession) -> None:
    """What Spark raises has it, as it has that of a DataFrame's work."""
    with pytest.raises(Exception, match="fewer than none") as caught:
        of_parts(spark, [("a", 1), ("b", -1)], repeated)
    assert cause(caught.value) == "ValueError: b: fewer than none"
