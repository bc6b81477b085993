"""The steps of the Spark job.

**Invariant:** each step is `DataFrame -> DataFrame`, without session, action or I/O; the same input
gives the same rows.  The first step takes the columns of `findings.DDL`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from loader.spark.findings import LINE_BITS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def marked(found: DataFrame) -> DataFrame:
    """Mark repeated rows, and rows whose Filename occurs with different contents.

    A repeated row has the same node, Filename and content as an earlier row.  One window finds
    both: the rows of one node and Filename, ordered by content and then by age.
    """
    files = Window.partitionBy("name_key").orderBy("key_high", "key_low", "pos")
    good = ~F.col("bad") & F.col("whole").isNull()
    # Rows without a key would form one huge group, so each gets a group of its own.
    keyed = found.withColumn("name_key", F.coalesce("name_key", "pos")).withColumn("good", good)
    same = (F.lag("key_high").over(files) == F.col("key_high")) & (
        F.lag("key_low").over(files) == F.col("key_low")
    )
    seen = keyed.select(
        "*",
        (F.col("good") & F.coalesce(same, F.lit(False))).alias("repeated"),
        F.row_number().over(files).alias("nth"),
    )
    return seen.select(
        F.shiftright("pos", LINE_BITS).cast("int").alias("bundle"),
        F.col("pos").bitwiseAND(F.lit((1 << LINE_BITS) - 1)).cast("int").alias("line"),
        "bad",
        "whole",
        "repeated",
        (F.col("good") & ~F.col("repeated") & (F.col("nth") > 1)).alias("renewed"),
    )


def notable(rows: DataFrame) -> DataFrame:
    """Keep only bad, repeated or changed rows; later steps need no others.

    The result is used several times and is small enough to cache.  Caching all rows took Spark as
    long again as finding the repeated ones.
    """
    return rows.where(
        F.col("bad") | F.col("whole").isNotNull() | F.col("repeated") | F.col("renewed")
    )


def per_bundle(rows: DataFrame) -> DataFrame:
    """Return one row per bundle: its results as a whole, and counts of its notable rows."""
    return (
        rows.groupBy("bundle")
        .agg(
            F.first("whole", ignorenulls=True).alias("whole"),
            _count_of("repeated"),
            _count_of("renewed"),
        )
        .select("bundle", "whole.*", "repeated", "renewed")
    )


def _count_of(flag: str) -> Column:
    return F.sum(F.col(flag).cast("long")).alias(flag)


def unwanted(rows: DataFrame) -> DataFrame:
    """Return the bad lines and the repeated lines of each bundle."""
    return (
        rows.where(F.col("bad") | F.col("repeated"))
        .groupBy("bundle")
        .agg(_lines_that_are("bad"), _lines_that_are("repeated"))
    )


def _lines_that_are(flag: str) -> Column:
    return F.sort_array(F.collect_list(F.when(F.col(flag), F.col("line")))).alias(flag)


def to_write(bundles: DataFrame, unwanted_lines: DataFrame) -> DataFrame:
    """Add the unwanted lines, if any, to each bundle for which something must be written."""
    return bundles.join(unwanted_lines, "bundle", "left").select("bundle", "bad", "repeated")
