"""Do work on executors whose results are few: a task for each part of it.

**Invariant:** each part is worked on by one task, and its results come in the order of the parts;
Spark may run a task twice, and takes the results of one of both.

Why not a DataFrame: Spark SQL plans and compiles a query for each job, and its workers load Arrow
and, with it, pandas.  That was half of what the JVM took for an index job and three fifths for the
first one of a run, and the JVM only carries bytes here.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

_P = TypeVar("_P")
_R = TypeVar("_R")


def of_parts(
    spark: SparkSession, parts: Sequence[_P], work: Callable[[_P], Iterable[_R]]
) -> list[_R]:
    """Return the results of all parts; parts and results are pickled.

    Args:
        spark: the session.
        parts: what there is to do.
        work: does one part, on an executor.
    """
    if not parts:
        return []
    one_each = spark.sparkContext.parallelize(parts, len(parts))
    return one_each.mapPartitions(lambda some: chain.from_iterable(map(work, some))).collect()
