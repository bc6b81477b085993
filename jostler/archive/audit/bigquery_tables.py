"""What an audit asks of BigQuery, and writes there: partitions, the ledger, the table `audits`.

**Invariant:** rows of ledger and audits are only appended, each by a load job whose id is submitted
once.  A day is compared only while the ledger says that it was loaded from exactly the objects that
the bucket has; else it is due, and the loader will do its work.

This module imports the official client; import it only when BigQuery is asked.
"""

from __future__ import annotations

import hashlib
import io
import json
import secrets
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import Conflict, NotFound
from google.cloud import bigquery
from google.cloud.bigquery.retry import DEFAULT_RETRY

from jostler.archive.audit.ledger import AUDITS_COLUMNS, State, ledger_row
from jostler.archive.audit.problem import Kind, Problem
from jostler.archive.bigquery_tables import TIMEOUT_S, open_client, query_rows, translated
from jostler.build import version
from jostler.errors import QueryError
from jostler.format.bigquery_names import Naming, TableName, table_name
from jostler.format.names import INDEX

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from jostler.archive.audit.audit import DayFound
    from jostler.archive.audit.scope import Scope
    from jostler.format.names import Place

Json = dict[str, Any]
PATIENCE_S = 30.0
AUDITS, LOADS = "audits", "loads"
MARKED = "AuditDiffers"
"""The ErrorClass of a ledger row by which an audit makes a day due."""
DELETED = "deleted"
SHOWN = 5
_STATE_SQL = """\
SELECT Status, Attempt, TableMade, Buckets, Objects, RowsRead, RowsLoaded, RowsRejected,
  RowsRepeated, ErrorClass
FROM `{loads}` WHERE `table` = @table AND `date` = @day AND Status != 'skipped'
ORDER BY TableMade DESC, Attempt DESC, Finished DESC LIMIT 1"""
_BUNDLES_SQL = """\
SELECT archiver.ArchiveURL AS url, COUNT(*) AS n FROM `{table}` WHERE `date` = @day GROUP BY 1"""
_DAYS_SQL = """\
SELECT `date` AS day, COUNT(*) AS n FROM `{table}`
WHERE `date` >= @first AND `date` <= @last GROUP BY 1 ORDER BY 1"""
_INDEX_DAYS_SQL = """\
SELECT `date` AS day, COUNT(*) AS n FROM `{table}`
WHERE `date` >= @first AND `date` <= @last AND raw.Datatype = @datatype GROUP BY 1"""
_OTHER_SQL = """\
SELECT MIN(archiver.ArchiveURL) AS url FROM `{table}`
WHERE `date` = @day AND NOT STARTS_WITH(archiver.ArchiveURL, @start)"""


def open_tables(
    *, project: str, location: str, naming: str, meta_dataset: str, who: str
) -> AuditTables:
    """Return the tables of a project.

    Raises:
        ValueError: there is no such naming.
        QueryError: there are no credentials.
    """
    return AuditTables(project, location, Naming(naming), meta_dataset, who)


class AuditTables:
    """The tables of one project.

    Args:
        project: of the tables and of the queries.
        location: of the datasets.
        naming: the naming rule of v1 tables.
        meta_dataset: the dataset of ledger and audits.
        who: runs this program.
    """

    def __init__(
        self, project: str, location: str, naming: Naming, meta_dataset: str, who: str
    ) -> None:
        self.run = f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{secrets.token_hex(3)}"
        self._project = project
        self._location = location
        self._naming = naming
        self._meta_dataset = meta_dataset
        self._who = who
        self._appended = 0
        self._lifetimes: dict[str, int] = {}
        self._client = open_client(project, location)
        self._how: Json = {"retry": DEFAULT_RETRY.with_timeout(PATIENCE_S), "timeout": TIMEOUT_S}

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def table(self, place: Place, datatype: str) -> TableName:
        """Return the table of a datatype."""
        return table_name(self._naming, self._project, place, datatype)

    # The audit

    def differences(self, day: DayFound, bucket: str, scope: Scope) -> list[Problem]:
        """Return how a day's rows in BigQuery differ from its bundles.

        Args:
            day: what was found of it.
            bucket: URL of the bucket.
            scope: what is looked at; with nodes, a day is not seen as a whole.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        listed = day.listed
        if scope.nodes or not listed.bundles:
            return []
        # To load the day anew would take rows away that of a damaged bundle only BigQuery has.
        if any(problem.kind in {Kind.DAMAGED, Kind.UNREADABLE} for problem in day.problems):
            return []
        table = self.table(listed.place, listed.datatype)
        state = self.state(table, listed.day)
        if state is None or state.status != "success" or state.buckets != {bucket}:
            return []
        urls = [f"{bucket}/{name}" for name in day.rows]
        if state.objects != _digests(urls):  # changed since: the loader has yet to load it
            return []
        rows = dict(zip(urls, day.rows.values(), strict=True))
        differences = list(self._differ(table, listed.day, rows, state))
        if differences and self._has_expired(table, listed.day):
            return []
        return [
            Problem(listed.folder, 0, Kind.DAY_DIFFERS, f"{table} {listed.day}: {detail}")
            for detail in differences
        ]

    def _has_expired(self, table: TableName, day: date) -> bool:
        """Return whether BigQuery has deleted a day's partition because of its age."""
        if str(table) not in self._lifetimes:
            partitioning = None
            with translated(f"table {table}"), suppress(NotFound):  # then its rows are missing
                partitioning = self._client.get_table(str(table), **self._how).time_partitioning
            lifetime_ms = partitioning.expiration_ms if partitioning else None
            self._lifetimes[str(table)] = int(lifetime_ms or 0)
        lifetime = timedelta(milliseconds=self._lifetimes[str(table)])
        ends = datetime.combine(day + timedelta(days=1), time(tzinfo=UTC))
        return bool(lifetime) and ends + lifetime <= datetime.now(UTC)

    def _differ(
        self, table: TableName, day: date, rows: dict[str, int], state: State
    ) -> Iterator[str]:
        if (total := sum(rows.values())) != state.read:
            yield f"its bundles have {total} rows, the ledger says {state.read}"
        stored = {
            str(row["url"] or ""): int(row["n"])
            for row in self._rows(_BUNDLES_SQL.format(table=table), day=day)
        }
        if (loaded := sum(stored.values())) != state.loaded:
            yield f"BigQuery has {loaded} rows, the ledger says {state.loaded}"
        wrong = [url for url in sorted(stored) if stored[url] > rows.get(url, 0)]
        for url in wrong[:SHOWN]:
            yield f"BigQuery has {stored[url]} rows of {url}, the bundle {rows.get(url, 0)}"

    def gone(
        self, place: Place, datatype: str, days: Collection[date], bucket: str, scope: Scope
    ) -> Iterator[tuple[date, Problem]]:
        """Yield the days that have rows in BigQuery, and no bundle in the bucket.

        Args:
            place: of the experiment.
            datatype: of the rows.
            days: those that have bundles.
            bucket: URL of the bucket.
            scope: what is looked at; with nodes, a day is not seen as a whole.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        if scope.nodes:
            return
        table = self.table(place, datatype)
        for day, rows in self.days(table, scope.first, scope.last):
            # Days that another bucket has rows of are not compared, as in `differences`.
            if day not in days and not self.others(table, day, bucket):
                detail = f"{table} {day}: {rows} rows in BigQuery, and no bundle in the bucket"
                folder = f"{place.root}/{datatype}/{day:%Y/%m/%d}/"
                yield day, Problem(folder, 0, Kind.DAY_DIFFERS, detail)

    def days(
        self, table: TableName, first: date | None, last: date | None
    ) -> list[tuple[date, int]]:
        """Return the days of which a table has rows, with their numbers."""
        found = self._rows(
            _DAYS_SQL.format(table=table), first=first or date.min, last=last or date.max
        )
        return [(row["day"], int(row["n"])) for row in found]

    def mark(self, day: DayFound, problem: Problem) -> str:
        """Make a day due for the loader; return what was done.

        Raises:
            QueryError: BigQuery refuses.
        """
        table = self.table(day.listed.place, day.listed.datatype)
        state = self.state(table, day.listed.day)
        if state is None:
            return "the day is due: the ledger does not know it"
        if not (state.status == "failed" and state.error == MARKED):
            self._ledger(
                table,
                day.listed.day,
                state,
                status="failed",
                error=MARKED,
                detail=problem.detail,
            )
        return "the day is marked as due; the next run of jostler-load loads it again"

    def state(self, table: TableName, day: date) -> State | None:
        """Return the newest ledger row of a day; None if there is none.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        sql = _STATE_SQL.format(loads=self._meta(LOADS))
        for row in self._rows(sql, table=str(table), day=day):
            return State.of(row)
        return None

    # Deletion

    def others(self, table: TableName, day: date, bucket: str) -> list[str]:
        """Return the buckets, or an object of them, that a day has rows of, beside a bucket.

        Args:
            table: of the rows.
            day: of the rows.
            bucket: URL of the bucket.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        state = self.state(table, day)
        if state and state.buckets:
            return sorted(state.buckets - {bucket})
        found = self._rows(_OTHER_SQL.format(table=table), day=day, start=f"{bucket}/")
        return [str(row["url"]) for row in found if row["url"]]

    def index_days(
        self, place: Place, datatype: str, first: date | None, last: date | None
    ) -> list[date]:
        """Return the days of which the table of indexes has rows of a datatype."""
        sql = _INDEX_DAYS_SQL.format(table=self.table(place, INDEX))
        days = {"first": first or date.min, "last": last or date.max}
        with suppress(QueryError):  # the Go agent's index has no Datatype
            return [row["day"] for row in self._rows(sql, **days, datatype=datatype)]
        return []

    def delete_day(self, table: TableName, day: date, why: str) -> None:
        """Say in the ledger that a day is deleted, then delete its rows.

        In this order: if the second step fails, the ledger does not say that the rows are there.

        Raises:
            QueryError: BigQuery refuses.
        """
        state = self.state(table, day)
        if state is not None and state.status != DELETED:
            self._ledger(table, day, state, status=DELETED, error="", detail=why)
        # A DELETE of a whole partition is billed nothing and removes the partition.
        self._rows(f"DELETE FROM `{table}` WHERE `date` = @day", day=day)  # noqa: S608 - a name of ours

    def forget_index(self, place: Place, datatype: str, day: date, why: str) -> None:
        """Delete a datatype's rows of a day from the table of indexes.

        The ledger says that the day is deleted, so the loader loads what index objects are left.

        Raises:
            QueryError: BigQuery refuses.
        """
        table = self.table(place, INDEX)
        state = self.state(table, day)
        if state is None:
            return
        if state.status != DELETED:  # another datatype of the day was deleted before
            self._ledger(table, day, state, status=DELETED, error="", detail=why)
        with suppress(QueryError):  # the Go agent's index has no Datatype; the next load mends it
            self._rows(
                f"DELETE FROM `{table}` WHERE `date` = @day AND raw.Datatype = @datatype",  # noqa: S608 - as above
                day=day,
                datatype=datatype,
            )

    # Appending

    def write(self, rows: Sequence[Json]) -> None:
        """Append rows to `audits`; create it if need be.

        Raises:
            QueryError: BigQuery refuses.
        """
        if not rows:
            return
        name = self._meta(AUDITS)
        self._prepare(name)
        shared = {"RunID": self.run, "Who": self._who, "Version": version()}
        self._append(name, [{**row, **shared} for row in rows])

    def _prepare(self, name: TableName) -> None:
        with translated(f"table {name}"):
            dataset = bigquery.Dataset(f"{name.project}.{name.dataset}")
            dataset.location = self._location
            self._client.create_dataset(dataset, exists_ok=True, **self._how)
            schema = [bigquery.SchemaField(n, t, description=d) for n, t, d in AUDITS_COLUMNS]
            made = bigquery.Table(str(name), schema=schema)
            made.description = "What jostler audit found and mended, and who deleted what."
            made.time_partitioning = bigquery.TimePartitioning(field="Time")
            self._client.create_table(made, exists_ok=True, **self._how)

    def _ledger(
        self, table: TableName, day: date, state: State, *, status: str, error: str, detail: str
    ) -> None:
        row = ledger_row(
            str(table),
            day,
            state,
            status=status,
            error=error,
            detail=detail,
            when=datetime.now(UTC),
        ) | {"RunID": self.run, "Host": self._who, "Version": version()}
        self._append(self._meta(LOADS), [row])

    def _append(self, name: TableName, rows: Sequence[Json]) -> None:
        """Append rows by one load job; its id is new, and submitted once."""
        self._appended += 1
        job_id = f"jostler-keeping-{self.run}-{self._appended}"
        out = io.BytesIO(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        config = bigquery.LoadJobConfig(
            source_format="NEWLINE_DELIMITED_JSON", write_disposition="WRITE_APPEND"
        )
        with translated(f"table {name}"):
            try:
                job: Any = self._client.load_table_from_file(
                    out, str(name), job_id=job_id, job_config=config, timeout=TIMEOUT_S
                )
            except Conflict:  # a reply was lost
                job = self._client.get_job(job_id, **self._how)
            job.result(**self._how)

    def _meta(self, table: str) -> TableName:
        dataset = self._meta_dataset
        return TableName(project=self._project, dataset=dataset, table=table, wanted=dataset)

    def _rows(self, sql: str, **values: date | str) -> list[Json]:
        """Run a query; a table that does not exist has no rows.

        Raises:
            QueryError: it fails.
        """
        parameters = [
            bigquery.ScalarQueryParameter(k, "DATE" if isinstance(v, date) else "STRING", v)
            for k, v in values.items()
        ]
        try:
            return list(
                query_rows(
                    self._client, sql, parameters, location=self._location, patience_s=PATIENCE_S
                )
            )
        except QueryError as exc:
            if isinstance(exc.__cause__, NotFound):
                return []
            raise


def _digests(urls: Sequence[str]) -> str:
    """Return the digests of objects' URLs as the ledger's column Objects has them."""
    return "".join(sorted(hashlib.blake2b(url.encode(), digest_size=4).hexdigest() for url in urls))
