"""Compare rows of index bundles, rows of data bundles, and rows in BigQuery.

**Invariant:** it only reads.  It reports every difference: a bundle without index, an index without
bundle, a bundle and its index with different numbers of rows, a day whose rows in BigQuery are not
those of its bundles (by number and Filename), a day with rows but without bundles; and for such
days, which bundles and rows are missing or too many.

Contents are not compared: BigQuery stores the values of a row, not the bytes of which Hash is the
digest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from jostler.format.names import INDEX
from loader.spark import filenames, steps
from loader.spark.engine import find
from loader.spark.filenames import SUM_SQL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, Row, SparkSession

    from jostler.format.bigquery_names import TableName
    from loader.bigquery.warehouse import Warehouse
    from loader.plan.discover import Bundle
    from loader.plan.due import DayKey, TableDay
    from loader.plan.window import Window
    from loader.spark.wave import Wave

BUNDLES_SHOWN = 10
ROWS_SHOWN = 10
NAMED_MAX = 1_000_000
"""In a day with more rows, single rows are not named."""
_DAYS_SQL = """\
SELECT CAST(`date` AS STRING) AS day, COUNT(*) AS n, {sum} AS s FROM `{table}`
WHERE `date` >= '{start}' AND `date` <= '{end}' GROUP BY 1"""
_BUNDLES_SQL = """\
SELECT archiver.ArchiveURL AS url, COUNT(*) AS n FROM `{table}` WHERE `date` = '{day}' GROUP BY 1"""
_NAMES_SQL = """\
SELECT IFNULL(archiver.Filename, '') AS filename, COUNT(*) AS n FROM `{table}`
WHERE `date` = '{day}' GROUP BY 1"""


@dataclass(slots=True)
class Reconciliation:
    """The result of comparing.

    Attributes:
        bundles: the number of data bundles compared with their index.
        rows: the number of rows in BigQuery compared with bundles.
        differences: one sentence each.
    """

    bundles: int = 0
    rows: int = 0
    differences: list[str] = field(default_factory=list)


def pairs(days: Iterable[TableDay]) -> tuple[dict[str, Bundle], dict[str, Bundle]]:
    """Return data bundles and index bundles, each by the key that the two of a pair share."""
    data: dict[str, Bundle] = {}
    index: dict[str, Bundle] = {}
    for day in days:
        place = index if day.table.sources[0].datatype == INDEX else data
        place.update({bundle.pair: bundle for bundle in day.bundles})
    return data, index


def lonely(data: dict[str, Bundle], index: dict[str, Bundle]) -> list[str]:
    """Name bundles without index and indexes without bundle."""
    missing = [f"{data[pair].url}: has no index bundle" for pair in sorted(data.keys() - index)]
    return missing + [
        f"{index[pair].url}: there is no data bundle for this index"
        for pair in sorted(index.keys() - data)
    ]


class Reconciler:
    """Compares days with BigQuery wave by wave, then bundles with indexes.

    The latter come last because a bundle and its index may be in different waves.

    Args:
        warehouse: the BigQuery project.
        days: all days to compare.
        patience_s: how long a failing request to a bucket is retried.
    """

    def __init__(self, warehouse: Warehouse, days: list[TableDay], patience_s: float) -> None:
        self.found = Reconciliation()
        self._warehouse = warehouse
        self._patience_s = patience_s
        self._days = {day.key for day in days}
        self._data, self._index = pairs(days)
        self._lines: dict[str, int] = {}

    def compare(self, spark: SparkSession, wave: Wave) -> None:
        """Compare the days of a wave with BigQuery."""
        groups = wave.groups(spark.sparkContext.defaultParallelism)
        found = find(spark, groups, wave.tables, self._patience_s)
        rows = steps.notable(steps.marked(found)).persist()
        try:
            readable = []
            for bundle in sorted(steps.per_bundle(rows).collect(), key=lambda told: told.bundle):
                task = wave.tasks[bundle.bundle]
                url = f"{task.bucket}/{task.name}"
                self._lines[url] = bundle.rows
                if wrong := bundle.unreadable or bundle.corrupt:
                    self.found.differences.append(f"{url}: {wrong}")
                else:
                    readable.append(bundle.bundle)
            looking = _Looking(spark, wave, steps.unwanted(rows), self._patience_s)
            good: dict[DayKey, Rows] = defaultdict(Rows)
            for told in looking.at(readable, keep=False):
                task = wave.tasks[told.bundle]
                good[wave.owners[told.bundle].day.key].add(f"{task.bucket}/{task.name}", told)
                if told.problem:
                    self.found.differences.append(f"{task.bucket}/{task.name}: {told.problem}")
            for table in sorted({str(seen.day.table.name) for seen in wave.days}):
                days = [seen.day for seen in wave.days if str(seen.day.table.name) == table]
                self._compare_table(table, days, good, looking)
        finally:
            rows.unpersist()

    def look_for_gone(self, table: TableName, window: Window) -> None:
        """Report the days of a table that have rows but no bundle in the bucket."""
        listed = {date for name, date in self._days if name == str(table)}
        for day, (count, _) in self._stored(str(table), window.start, window.last).items():
            if date.fromisoformat(day) not in listed:
                self.found.rows += count
                told = f"{table} {day}: {count} rows in BigQuery, and no bundle in the bucket"
                self.found.differences.append(told)

    def _stored(self, table: str, start: date, end: date) -> dict[str, tuple[int, int]]:
        """Query the number of rows and the sum of their names for each day."""
        sql = _DAYS_SQL.format(table=table, start=start, end=end, sum=SUM_SQL)
        return {str(told["day"]): (told["n"], told["s"]) for told in self._warehouse.rows(sql)}

    def finish(self) -> Reconciliation:
        """Compare bundles with their indexes; return the whole result."""
        if self._index:  # none if not selected, or if the archive has no indexes
            self.found.differences += lonely(self._data, self._index)
        for pair in sorted(self._data.keys() & self._index.keys()):
            url = self._data[pair].url
            in_data, in_index = self._lines.get(url), self._lines.get(self._index[pair].url)
            self.found.bundles += 1
            if in_data != in_index:
                told = f"{url}: has {in_data} rows, its index has {in_index}"
                self.found.differences.append(told)
        return self.found

    def _compare_table(
        self, table: str, days: list[TableDay], good: dict[DayKey, Rows], looking: _Looking
    ) -> None:
        dates = [day.date for day in days]
        there = self._stored(table, min(dates), max(dates))
        for day in days:
            rows, (stored, total) = good[day.key], there.get(str(day.date), (0, 0))
            count = rows.counts.total()
            self.found.rows += stored
            if (stored, total) == (count, rows.sum):
                continue
            same = "; as many, and not the same ones" if stored == count else ""
            self.found.differences.append(
                f"{table} {day.date}: {count} good rows in bundles, {stored} in BigQuery{same}"
            )
            self.found.differences += _bundles(day, rows.counts, self._warehouse)
            if max(stored, count) <= NAMED_MAX:
                self.found.differences += self._named(day, looking)

    def _named(self, day: TableDay, looking: _Looking) -> list[str]:
        """Name the rows of a day that are missing or too many."""
        wanted: Counter[str] = Counter()
        for told in looking.of(day):
            wanted.update(told.names)
        sql = _NAMES_SQL.format(table=day.table.name, day=day.date)
        there = Counter({told["filename"]: told["n"] for told in self._warehouse.rows(sql)})
        lost, many = sorted((wanted - there).elements()), sorted((there - wanted).elements())
        return [f"    row missing: {name}" for name in lost[:ROWS_SHOWN]] + [
            f"    row too many: {name}" for name in many[:ROWS_SHOWN]
        ]


@dataclass(slots=True)
class Rows:
    """The good rows of a day: the number in each bundle, and the sum of all their names."""

    counts: Counter[str] = field(default_factory=Counter)
    sum: int = 0

    def add(self, url: str, told: Row) -> None:
        """Add the rows of one bundle."""
        self.counts[url] += told.rows
        self.sum += told.sum


class _Looking:
    """Reads bundles of a wave for the names of their rows."""

    def __init__(
        self, spark: SparkSession, wave: Wave, unwanted: DataFrame, patience_s: float
    ) -> None:
        self._spark = spark
        self._wave = wave
        self._unwanted = unwanted
        self._patience_s = patience_s

    def of(self, day: TableDay) -> list[Row]:
        """Read the bundles of one day."""
        owners = enumerate(self._wave.owners)
        return self.at([n for n, owner in owners if owner.day.key == day.key], keep=True)

    def at(self, bundles: list[int], *, keep: bool) -> list[Row]:
        """Return for each bundle the columns of `filenames.DDL`."""
        if not bundles:
            return []
        tasks, patience_s = self._wave.tasks, self._patience_s

        def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return filenames.found(batches, tasks, patience_s, keep=keep)

        wanted = self._spark.createDataFrame([(bundle,) for bundle in bundles], "bundle INT")
        several = min(len(bundles), 4 * self._spark.sparkContext.defaultParallelism)
        rows = steps.to_write(wanted, self._unwanted).repartition(several, "bundle")
        return rows.mapInArrow(task, filenames.DDL).collect()


def _bundles(day: TableDay, counts: Counter[str], warehouse: Warehouse) -> list[str]:
    """Name the bundles of a day of which BigQuery has more or fewer rows than the bundle."""
    sql = _BUNDLES_SQL.format(table=day.table.name, day=day.date)
    stored = Counter({told["url"]: told["n"] for told in warehouse.rows(sql)})
    differ = [url for url in sorted(counts | stored) if counts[url] != stored[url]]
    return [
        f"  {url}: {counts[url]} good rows, {stored[url]} in BigQuery"
        for url in differ[:BUNDLES_SHOWN]
    ]
