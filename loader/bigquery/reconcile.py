"""Compare: rows of index bundles, rows of data bundles, rows in BigQuery.

**Invariant:** reads only.  Whatever differs is named: a bundle without index or an index without
bundle, a bundle with another number of rows than its index, a day with other rows than its
bundles, and then the bundles and the rows that are missing or too many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostler.format.names import INDEX
from loader.bucket import open_bucket
from loader.spark import row, steps
from loader.spark.engine import find
from loader.spark.gunzip import salvaged
from loader.spark.verdicts import judges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from jostler.schema import Fields
    from loader.bigquery.warehouse import Warehouse
    from loader.plan.discover import Bundle
    from loader.plan.due import Day, DayKey
    from loader.spark.wave import Wave

BUNDLES_SHOWN = 10
ROWS_SHOWN = 10
_DAYS_SQL = """\
SELECT CAST(`date` AS STRING) AS day, COUNT(*) AS n FROM `{table}`
WHERE `date` >= '{start}' AND `date` <= '{end}' GROUP BY 1"""
_BUNDLES_SQL = """\
SELECT archiver.ArchiveURL AS url, COUNT(*) AS n FROM `{table}` WHERE `date` = '{day}' GROUP BY 1"""
_ROWS_SQL = """\
SELECT archiver.Filename AS filename FROM `{table}`
WHERE `date` = '{day}' AND archiver.ArchiveURL IN UNNEST(@urls)"""


@dataclass(slots=True)
class Comparison:
    """What was compared and what differs.

    Attributes:
        bundles: data bundles compared with their index.
        rows: of the tables that were compared with their bundles.
        differences: one sentence each.
    """

    bundles: int = 0
    rows: int = 0
    differences: list[str] = field(default_factory=list)


def pairs(days: Iterable[Day]) -> tuple[dict[str, Bundle], dict[str, Bundle]]:
    """Return data bundles and index bundles of the same experiments, by what a pair shares."""
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


class Comparer:
    """Compares wave after wave, and at last bundles with indexes, which may lie in two waves.

    Args:
        warehouse: to ask for rows.
        days: all that will be compared.
        patience_s: how long a request to a bucket is tried again.
    """

    def __init__(self, warehouse: Warehouse, days: list[Day], patience_s: float) -> None:
        self.found = Comparison()
        self._warehouse = warehouse
        self._patience_s = patience_s
        self._data, self._index = pairs(days)
        self._lines: dict[str, int] = {}

    def compare(self, spark: SparkSession, wave: Wave) -> None:
        """Compare the days of a wave with BigQuery."""
        groups = wave.groups(spark.sparkContext.defaultParallelism)
        found = find(spark, groups, wave.tables, self._patience_s)
        rows = steps.notable(steps.marked(found))
        good: dict[DayKey, Counter[str]] = defaultdict(Counter)
        for bundle in sorted(steps.per_bundle(rows).collect(), key=lambda told: told.bundle):
            task, day = wave.tasks[bundle.bundle], wave.owners[bundle.bundle].day
            url = f"{task.bucket}/{task.name}"
            self._lines[url] = bundle.rows
            good[day.key][url] += bundle.rows - bundle.bad - bundle.repeated
            if wrong := bundle.unreadable or bundle.corrupt:
                self.found.differences.append(f"{url}: {wrong}")
        fields = {
            owner.day.key: wave.tables[task.table]
            for owner, task in zip(wave.owners, wave.tasks, strict=True)
        }
        for table in sorted({str(verdict.day.table.name) for verdict in wave.days}):
            days = [seen.day for seen in wave.days if str(seen.day.table.name) == table]
            self._compare_table(table, days, good, fields)

    def finish(self) -> Comparison:
        """Compare bundles with their indexes; return what was found in all."""
        if self._index:  # else not asked for, or an archive without
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
        self,
        table: str,
        days: list[Day],
        good: dict[DayKey, Counter[str]],
        fields: dict[DayKey, Fields],
    ) -> None:
        dates = [day.date for day in days]
        sql = _DAYS_SQL.format(table=table, start=min(dates), end=max(dates))
        there = {str(told["day"]): told["n"] for told in self._warehouse.rows(sql)}
        for day in days:
            counts, stored = good[day.key], there.get(str(day.date), 0)
            self.found.rows += stored
            if stored != counts.total():
                self.found.differences.append(
                    f"{table} {day.date}: {counts.total()} good rows in bundles,"
                    f" {stored} in BigQuery"
                )
                where = _where(day, counts, fields[day.key], self._warehouse, self._patience_s)
                self.found.differences += where


def _where(
    day: Day, counts: Counter[str], fields: Fields, warehouse: Warehouse, patience_s: float
) -> list[str]:
    """Name the bundles of a day whose rows are not the ones in BigQuery, and the rows."""
    sql = _BUNDLES_SQL.format(table=day.table.name, day=day.date)
    stored = Counter({told["url"]: told["n"] for told in warehouse.rows(sql)})
    told = []
    urls = {bundle.url: bundle for bundle in day.bundles}
    differ = [url for url in sorted(counts | stored) if counts[url] != stored[url]]
    for url in differ[:BUNDLES_SHOWN]:
        told.append(f"  {url}: {counts[url]} good rows, {stored[url]} in BigQuery")
        if counts[url] > stored[url] and url in urls:
            told += _missing(day, urls[url], fields, warehouse, patience_s)
    return told


def _missing(
    day: Day, bundle: Bundle, fields: Fields, warehouse: Warehouse, patience_s: float
) -> list[str]:
    """Name rows of a bundle that are not in BigQuery."""
    data = open_bucket(bundle.bucket, patience_s).read(bundle.name, bundle.generation)
    judge = judges(fields)["raw"]
    wanted: Counter[str] = Counter()
    for line in salvaged(data):
        found = row.parts(line)
        if found and judge.flaw(line) is None:
            wanted[found.filename] += 1
    sql = _ROWS_SQL.format(table=day.table.name, day=day.date)
    there = Counter(told["filename"] for told in warehouse.rows(sql, urls=[bundle.url]))
    lost = sorted((wanted - there).elements())
    return [f"    row missing: {name}" for name in lost[:ROWS_SHOWN]]
