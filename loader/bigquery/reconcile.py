"""Compare rows of index bundles, rows of data bundles, and rows in BigQuery.

**Invariant:** it reports every difference: a bundle without index, an index without bundle, a
bundle and its index with different numbers of rows, a day whose rows in BigQuery are not those of
its bundles (by value, see `reference`), a day with rows but without bundles; and for such days,
which bundles and rows.  It changes nothing that others see: it writes a temporary table, and copies
of bundles in staging, and removes both at the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from jostler.archive.audit.problem import NO_DATA, NO_INDEX
from jostler.format.names import INDEX
from jostler.schema import compare
from loader.bucket import open_bucket
from loader.errors import BucketError, WarehouseError
from loader.spark import engine, failure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from jostler.format.bigquery_names import TableName
    from jostler.schema import Fields
    from loader.bigquery.reference import DifferingDay, Reference
    from loader.bigquery.warehouse import Warehouse
    from loader.plan.discover import Bundle
    from loader.plan.due import DayKey, TableDay
    from loader.plan.window import Window
    from loader.spark.choice import BundleResult
    from loader.spark.wave import Verified, Wave

BUNDLES_SHOWN = 10
_DAYS_SQL = """\
SELECT CAST(`date` AS STRING) AS day, COUNT(*) AS n FROM `{table}`
WHERE `date` >= '{start}' AND `date` <= '{end}' GROUP BY 1"""
_BUNDLES_SQL = """\
SELECT archiver.ArchiveURL AS url, COUNT(*) AS n FROM `{table}` WHERE `date` = '{day}' GROUP BY 1"""


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
    missing = [f"{data[pair].url}: {NO_INDEX}" for pair in sorted(data.keys() - index)]
    return missing + [f"{index[pair].url}: {NO_DATA}" for pair in sorted(index.keys() - data)]


class Reconciler:
    """Compares days with BigQuery wave by wave, then bundles with indexes.

    The latter come last because a bundle and its index may be in different waves.

    Args:
        warehouse: the BigQuery project.
        reference: compares rows.
        days: all days to compare.
        patience_s: how long a failing request to a bucket is retried.
    """

    def __init__(
        self, warehouse: Warehouse, reference: Reference, days: list[TableDay], patience_s: float
    ) -> None:
        self.found = Reconciliation()
        self._warehouse = warehouse
        self._reference = reference
        self._patience_s = patience_s
        self._days = {day.key for day in days}
        self._data, self._index = pairs(days)
        self._lines: dict[str, int] = {}
        self._good: dict[DayKey, Counter[str]] = defaultdict(Counter)
        self._columns: dict[str, Fields] = {}

    def compare(self, spark: SparkSession, wave: Wave) -> None:
        """Compare the days of a wave with BigQuery."""
        try:
            try:
                results = engine.run(
                    spark, wave, max_bad=1.0, patience_s=self._patience_s, rejects=False
                )
            except Exception as exc:  # noqa: BLE001 - Py4J's, Spark's and Python's have no common base
                named = sorted({f"{found.day.table.name} {found.day.date}" for found in wave.days})
                why = f"Spark could not verify {', '.join(named)}: {failure.cause(exc)}"
                self.found.differences.append(why)
                return
            self._note(wave, results)
            by_table: dict[str, list[Verified]] = defaultdict(list)
            for found in wave.days:
                by_table[str(found.day.table.name)].append(found)
            for _, days in sorted(by_table.items()):
                there = [found for found in days if not found.day.has_expired]
                self._compare_table([found for found in there if not found.error])
        finally:
            for found in wave.days:
                self._remove(found.staged)

    def _note(self, wave: Wave, results: list[BundleResult]) -> None:
        """Note the rows of each bundle; report bundles and days that cannot be compared."""
        explained = set()
        for bundle in sorted(results, key=lambda bundle: bundle.bundle):
            task = wave.tasks[bundle.bundle]
            url = f"{task.bucket}/{task.name}"
            self._lines[url] = bundle.rows
            good = bundle.rows - bundle.bad - bundle.repeated
            self._good[wave.owners[bundle.bundle].day.key][url] += good
            if wrong := bundle.unreadable or bundle.corrupt:
                self.found.differences.append(f"{url}: {wrong}")
                explained.add(wrong)
        self.found.differences += [
            f"{found.day.table.name} {found.day.date}: was not compared: {found.error}"
            for found in wave.days
            if found.error and found.error not in explained
        ]

    def _remove(self, staged: list[tuple[str, str]]) -> None:
        for bucket, name in staged:
            try:
                open_bucket(bucket, self._patience_s).remove(name)
            except BucketError:  # a later load removes it
                continue

    def look_for_gone(self, table: TableName, window: Window) -> None:
        """Count the rows of a table; report the days that have rows but no bundle in the bucket."""
        sql = _DAYS_SQL.format(table=table, start=window.start, end=window.last)
        for row in self._warehouse.rows(sql):
            day, count = str(row["day"]), row["n"]
            self.found.rows += count
            if (str(table), date.fromisoformat(day)) not in self._days:
                difference = f"{table} {day}: {count} rows in BigQuery, and no bundle in the bucket"
                self.found.differences.append(difference)
                self.found.differences += self._bundles(table, day, Counter())

    def finish(self) -> Reconciliation:
        """Compare bundles with their indexes; return the whole result."""
        if self._index:  # none if not selected, or if the archive has no indexes
            self.found.differences += lonely(self._data, self._index)
        for pair in sorted(self._data.keys() & self._index.keys()):
            url = self._data[pair].url
            in_data, in_index = self._lines.get(url), self._lines.get(self._index[pair].url)
            self.found.bundles += 1
            if in_data != in_index:
                difference = f"{url}: has {in_data} rows, its index has {in_index}"
                self.found.differences.append(difference)
        return self.found

    def _compare_table(self, days: list[Verified]) -> None:
        """Compare days of one table; if BigQuery refuses their rows, find the days at fault."""
        if not days:
            return
        table = days[0].day.table.name
        uris = [uri for found in days for uri in found.uris]
        try:
            columns = self._columns_of(days[0].day)
            differ = self._reference.compare(table, columns, [d.day.date for d in days], uris)
        except WarehouseError as exc:
            # One bad row fails the load job of all these days: halving finds the day.
            if exc.reason == "invalid" and len(days) > 1:
                half = len(days) // 2
                self._compare_table(days[:half])
                self._compare_table(days[half:])
                return
            span = f"{days[0].day.date}" + (f" to {days[-1].day.date}" if len(days) > 1 else "")
            self.found.differences.append(f"{table} {span}: was not compared: {exc}")
            return
        for day in differ:
            self._report(table, day)

    def _columns_of(self, day: TableDay) -> Fields:
        """Return the columns that a table has; report those that it lacks, once."""
        table = day.table.name
        if str(table) not in self._columns:
            self._columns[str(table)] = columns = self._reference.columns(table)
            if lacking := compare(columns, day.table.fields).added:
                difference = (
                    f"{table}: lacks columns that the bucket's schema has: {', '.join(lacking)}"
                )
                self.found.differences.append(f"{difference}; the next load adds them")
        return self._columns[str(table)]

    def _report(self, table: TableName, differing: DifferingDay) -> None:
        """Report a day whose rows differ: its bundles, and the first of its files."""
        good = self._good[str(table), date.fromisoformat(differing.day)]
        counts = differing.counts
        stored = good.total() - counts.missing + counts.doubled + counts.surplus
        self.found.differences.append(
            f"{table} {differing.day}: {good.total()} good rows in bundles, {stored} in BigQuery:"
            f" {counts}"
        )
        self.found.differences += self._bundles(table, differing.day, good)
        for file in differing.files:
            where = f" ({', '.join(file.paths)})" if file.paths else ""
            self.found.differences.append(
                f"    {file.counts} of {file.filename}{where}, bundle {file.url}"
            )

    def _bundles(self, table: TableName, day: str, good: Counter[str]) -> list[str]:
        """Name the bundles of a day that have another number of rows in BigQuery."""
        sql = _BUNDLES_SQL.format(table=table, day=day)
        stored = Counter({row["url"] or "": row["n"] for row in self._warehouse.rows(sql)})
        differ = [url for url in sorted(good | stored) if good[url] != stored[url]]
        return [
            f"  {url}: {good[url]} good rows, {stored[url]} in BigQuery"
            for url in differ[:BUNDLES_SHOWN]
        ]
