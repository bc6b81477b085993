"""Compare days in BigQuery with their bundles by value, in BigQuery itself.

**Invariant:** the good rows of the bundles are loaded into a temporary table with the columns of
the table that is compared, by a load job like the one that loaded the days.  So each side has been
through the same conversions, and equal rows have equal texts (TO_JSON_STRING).  The temporary table
is deleted afterwards; if that fails, it expires after `LIFETIME_S`.

Rows are compared as a multiset: a row that is there twice differs from a row that is there once.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from loader.bigquery import attempts
from loader.bigquery.batches import URIS_MAX
from loader.bigquery.tables import fields_of
from loader.bigquery.warehouse import api_schema
from loader.errors import TRANSIENT, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from jostler.format.bigquery_names import TableName
    from jostler.schema import Fields
    from loader.bigquery.ledger import Ledger
    from loader.bigquery.warehouse import Job, Json, Warehouse

LIFETIME_S = 86_400
FILES_SHOWN = 10
"""So many files of a day are named."""
PATHS_SHOWN = 3
ROW_SHOWN_BYTES = 1_000_000
"""The fields at fault are not looked for in a longer row."""
_ROWS_SQL = """\
  SELECT CAST(`date` AS STRING) AS day, IFNULL(archiver.Filename, '') AS filename,
    SHA256(TO_JSON_STRING(r)) AS content, ANY_VALUE(archiver.ArchiveURL) AS url, COUNT(*) AS n
  FROM `{table}` AS r WHERE `date` IN ({days}) GROUP BY 1, 2, 3"""
_FILES_SQL = """\
WITH wanted AS (
{wanted}
), stored AS (
{stored}
), counted AS (
  SELECT day, filename, IFNULL(wanted.url, stored.url) AS url,
    IFNULL(wanted.n, 0) AS w, IFNULL(stored.n, 0) AS s
  FROM wanted FULL JOIN stored USING (day, filename, content)
), files AS (
  SELECT day, filename, MAX(url) AS url, SUM(GREATEST(w - s, 0)) AS fewer,
    SUM(IF(w = 0, s, 0)) AS strange, SUM(IF(w = 0, 0, GREATEST(s - w, 0))) AS doubled
  FROM counted WHERE w != s GROUP BY day, filename
), kinds AS (
  SELECT day, filename, url, LEAST(fewer, strange) AS altered,
    fewer - LEAST(fewer, strange) AS missing, strange - LEAST(fewer, strange) AS surplus, doubled
  FROM files
)
SELECT *, SUM(altered) OVER (PARTITION BY day) AS all_altered,
  SUM(missing) OVER (PARTITION BY day) AS all_missing,
  SUM(surplus) OVER (PARTITION BY day) AS all_surplus,
  SUM(doubled) OVER (PARTITION BY day) AS all_doubled
FROM kinds WHERE TRUE
QUALIFY ROW_NUMBER() OVER (PARTITION BY day ORDER BY filename) <= {most}
ORDER BY day, filename"""
_TEXTS_SQL = """\
SELECT archiver.Filename AS filename, TO_JSON_STRING(r) AS text FROM `{table}` AS r
WHERE `date` = '{day}' AND archiver.Filename IN UNNEST(@names)
  AND LENGTH(TO_JSON_STRING(r)) <= {longest}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many rows of a file or of a day differ.

    Attributes:
        missing: rows of bundles that BigQuery does not have.
        altered: rows that BigQuery has with other values.
        doubled: copies that BigQuery has beyond the one of the bundles.
        surplus: rows that only BigQuery has.
    """

    missing: int
    altered: int
    doubled: int
    surplus: int

    def __str__(self) -> str:
        counts = {kind: getattr(self, kind) for kind in KINDS}
        return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)


KINDS = ("missing", "altered", "doubled", "surplus")


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingFile:
    """A file whose rows differ.

    Attributes:
        filename: its Filename.
        url: the bundle, as its rows name it.
        counts: how many of its rows differ, and how.
        paths: for an altered row, fields that differ.
    """

    filename: str
    url: str
    counts: Counts
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingDay:
    """A day whose rows differ: how many, and the first of its files."""

    day: str
    counts: Counts
    files: list[DifferingFile]


class Reference:
    """Compares days with a temporary table.

    Args:
        warehouse: the BigQuery project.
        ledger: the dataset in which temporary tables are made.
        run_id: the id of this run, which is part of their names.
    """

    def __init__(self, warehouse: Warehouse, ledger: Ledger, run_id: str) -> None:
        self._warehouse = warehouse
        self._ledger = ledger
        self._prefix = f"verify_{run_id.replace('-', '_')}"
        self._made = 0

    def columns(self, table: TableName) -> Fields:
        """Return the columns that a table has now.

        Raises:
            WarehouseError: it does not exist.
        """
        found = self._warehouse.get_table(table)
        if found is None:
            raise WarehouseError(f"table {table}: does not exist")
        return fields_of(found)

    def compare(
        self, table: TableName, columns: Fields, days: Sequence[date], uris: Sequence[str]
    ) -> list[DifferingDay]:
        """Return the days of a table whose rows are not those of their bundles.

        Args:
            table: the table to compare.
            columns: the columns that it has.
            days: the days to compare, at least one.
            uris: the objects that hold exactly the good rows of these days.

        Raises:
            WarehouseError: BigQuery refuses to load the objects, or another request fails.
        """
        with self._loaded(columns, uris) as reference:
            listed = ", ".join(f"'{day}'" for day in days)
            wanted = _ROWS_SQL.format(table=reference, days=listed)
            stored = _ROWS_SQL.format(table=table, days=listed)
            sql = _FILES_SQL.format(wanted=wanted, stored=stored, most=FILES_SHOWN)
            by_day: dict[str, list[Json]] = {}
            for row in self._warehouse.rows(sql):
                by_day.setdefault(row["day"], []).append(row)
            return [self._day(day, rows, reference, table) for day, rows in by_day.items()]

    @contextmanager
    def _loaded(self, columns: Fields, uris: Sequence[str]) -> Iterator[TableName]:
        """Make the temporary table and load objects into it; delete it at the end."""
        self._made += 1
        name = self._ledger.name(f"{self._prefix}_{self._made}")
        description = "Ledger and rejects of the jostler loader."
        self._warehouse.make_dataset(name.project, name.dataset, description)
        try:
            properties: Json = {
                "schema": api_schema(columns),
                "timePartitioning": {"type": "DAY", "field": "date"},
                "expirationTime": str(int((time.time() + LIFETIME_S) * 1000)),
                "description": "Rows of bundles, to be compared by jostler-load --verify-only.",
            }
            self._warehouse.create_table(name, properties)
            for number, start in enumerate(range(0, len(uris), URIS_MAX)):
                self._load(name, uris[start : start + URIS_MAX], number)
            yield name
        finally:
            with suppress(WarehouseError):  # it expires
                self._warehouse.delete_table(name)

    def _load(self, name: TableName, uris: Sequence[str], number: int) -> None:
        for attempt in range(1, attempts.TRIES + 1):
            job_id = f"jostler-{name.table}-{number}-{attempt}"
            job = self._warehouse.load_uris(str(name), uris, job_id, _CONFIG)[0]
            if not job.reason:
                return
            if job.reason not in TRANSIENT or attempt == attempts.TRIES:
                raise WarehouseError(_refusal(job), reason=job.reason)
            attempts.pause(attempt)

    def _day(
        self, day: str, rows: list[Json], reference: TableName, table: TableName
    ) -> DifferingDay:
        altered = [row["filename"] for row in rows if row["altered"]]
        paths = self._paths(day, altered, reference, table) if altered else {}
        files = [
            DifferingFile(
                filename=row["filename"],
                url=row["url"] or "",
                counts=Counts(**{kind: row[kind] for kind in KINDS}),
                paths=paths.get(row["filename"], ()),
            )
            for row in rows
        ]
        counts = Counts(**{kind: rows[0][f"all_{kind}"] for kind in KINDS})
        return DifferingDay(day=day, counts=counts, files=files)

    def _paths(
        self, day: str, names: list[str], reference: TableName, table: TableName
    ) -> dict[str, tuple[str, ...]]:
        """Find the fields that differ in the altered rows of some files."""
        texts: list[dict[str, set[str]]] = []
        for place in (reference, table):
            sql = _TEXTS_SQL.format(table=place, day=day, longest=ROW_SHOWN_BYTES)
            found: dict[str, set[str]] = {name: set() for name in names}
            for row in self._warehouse.rows(sql, names=names):
                found[row["filename"]].add(row["text"])
            texts.append(found)
        paths = {}
        for name in names:
            wanted, stored = texts[0][name], texts[1][name]
            only = sorted(wanted - stored), sorted(stored - wanted)
            if only[0] and only[1]:
                pair = json.loads(only[0][0]), json.loads(only[1][0])
                paths[name] = tuple(islice(differing(*pair), PATHS_SHOWN))
        return paths


_CONFIG: Json = {
    "sourceFormat": "NEWLINE_DELIMITED_JSON",
    "writeDisposition": "WRITE_APPEND",
    "createDisposition": "CREATE_NEVER",
    "ignoreUnknownValues": True,  # as the load of a day
    "maxBadRecords": 0,
}


def differing(one: Any, other: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    """Yield the dotted paths at which two JSON values differ; array items count from 0."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else key
            yield from differing(one.get(key), other.get(key), inner)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differing(left, right, f"{path}[{number}]")
    elif one != other or type(one) is not type(other):
        yield path


def _refusal(job: Job) -> str:
    messages = "; ".join(str(error.get("message")) for error in job.errors)
    return f"BigQuery refuses the rows of the bundles (job {job.id}): {messages}"
