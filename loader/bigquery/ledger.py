"""The tables `loads` (the ledger) and `reject_rows`, which record what the loader did.

**Invariant:** rows are only appended (see `appends`).  In every ledger row, rows read = loaded +
rejected + repeated + withheld, and a successful day has no withheld rows.

It adds columns that tables of an older version lack, and refuses tables with other columns.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, BinaryIO

from jostler.format.bigquery_names import TableName
from jostler.schema import Field, Relation, compare, fields_from_api, merged
from loader.bigquery.warehouse import api_schema
from loader.errors import WOULD_LOSE, RunError, WarehouseError
from loader.plan.due import DIGEST_BYTES, Known, Loaded, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import date, datetime

    from jostler.schema import Fields
    from loader.bigquery.warehouse import Json, Warehouse
    from loader.plan.due import DayKey, TableDay

LOADS = "loads"
REJECT_ROWS = "reject_rows"
COMPACTIONS = "compactions"
NOTIFICATIONS = "notifications"


def columns(text: str) -> Fields:
    """Read columns from a text with one per line: name, type, description."""
    lines = [line.split(maxsplit=2) for line in text.strip().splitlines()]
    return tuple(Field(name=name, type=kind, description=text) for name, kind, text in lines)


LOADS_FIELDS = columns("""
table         STRING    Table as project.dataset.table; or the URL of a bucket that was not listed.
Experiment    STRING    The experiment, as in the bucket.
Datatype      STRING    The datatype, as in the bucket.
date          DATE      Day of the data; null when it is about table or bucket as a whole.
Status        STRING    success, skipped, failed, rejected (too many bad rows), abandoned, deleted.
Attempt       INTEGER   Load jobs of this day of this table so far.
Started       TIMESTAMP When this loader began with the day.
Finished      TIMESTAMP When this row was written.
Seconds       FLOAT     From beginning to end, waiting included.
Reason        STRING    Why the day was due; well again: table or bucket had failed as a whole.
RequestID     STRING    The request that the day was loaded for; see the table requests.
RequestedAt   TIMESTAMP When that was asked for; null of a day that nobody asked for.
Bundles       INTEGER   Objects of the day.
Rewritten     INTEGER   Those of them that were loaded from a cleaned copy.
Corrupt       INTEGER   Those of them that are not whole gzip streams.
PackedBytes   INTEGER   Size of the objects.
PlainBytes    INTEGER   Size of their lines; null of a trusted day.
RowsRead      INTEGER   Lines of all bundles.
RowsLoaded    INTEGER   Rows that the load job wrote.
RowsRejected  INTEGER   Bad rows; they are in rejects, of a refused day the first 1,000.
RowsRepeated  INTEGER   Rows that were left out because an earlier bundle has the same.
RowsWithheld  INTEGER   Good rows that could not be loaded because the day failed; 0 after success.
RowsRenewed   INTEGER   Loaded rows whose Filename another loaded row has with other content.
Trusted       INTEGER   Objects whose rows were taken from their index.
Sampled       INTEGER   Objects that were read in full to check their index.
Verified      INTEGER   Objects that were read in full because the index was not to be trusted.
Distrusted    STRING    Why it was not to be trusted; empty if it was, or was not looked at.
Fingerprint   STRING    Digest of objects, generations, columns and the loader's format version.
Buckets       STRING    URLs of the buckets, separated by spaces.
Objects       STRING    Digests of the objects' URLs: four bytes of each in hex, sorted.
TableMade     INTEGER   When the table was made, in ms since 1970.
JobID         STRING    The load job; of a rejected day the name it would have had.
ErrorClass    STRING    What kind of failure it was.
ErrorText     STRING    What was tried, what was found.
FailureClass  STRING    transient, data, schema, permission, quota, or bug; empty of a success.
Errors        STRING    BigQuery's own list of errors, as JSON.
RunID         STRING    The run; begins with when it began.
Host          STRING    Where the driver ran.
Version       STRING    Of the loader, of Python and of Spark.
""")

REJECT_FIELDS = columns("""
table         STRING    Table that the row was meant for, as project.dataset.table.
date          DATE      Day of its bundle.
ArchiveURL    STRING    Bundle that holds the row.
Line          INTEGER   Line of the bundle, counted from 1.
Filename      STRING    Path of the file, as far as the row tells it.
Field         STRING    Path of the field at fault; empty when it is the row as a whole.
Reason        STRING    Short label, to count by.
Detail        STRING    What was expected and what was found.
Row           STRING    The row from its beginning, at most 64 KiB.
JobID         STRING    Load job of the day as it was planned; its number may have grown since.
RunID         STRING    The run, as in loads.
""")

COMPACTION_FIELDS = columns("""
date          DATE      Day of the bundles.
Datatype      STRING    Of the bundles.
Place         STRING    Prefix of the experiment's objects in the bucket.
Started       TIMESTAMP When the run began.
Finished      TIMESTAMP When this row was written.
ArchiveURL    STRING    The merged bundle.
Bundles       INTEGER   How many bundles it replaced.
Rows          INTEGER   Of the merged bundle.
RowsRepeated  INTEGER   Rows of the bundles that were left out as exact repeats.
RowsCollapsed INTEGER   Rows of the bundles that were left out as repeats of a feed.
PlainBytes    INTEGER   Of its rows; 0 if the object was there before.
ObjectsBefore INTEGER   Data and index objects that were removed.
ObjectsAfter  INTEGER   Data and index objects that were stored.
BytesBefore   INTEGER   Of the objects that were removed.
BytesAfter    INTEGER   Of the objects that were stored.
RunID         STRING    The run; begins with when it began.
Host          STRING    Where the driver ran.
Version       STRING    Of the loader, of Python and of Spark.
""")

NOTIFICATION_FIELDS = columns("""
table         STRING    Table of the day, or URL of a bucket; null of a subscription.
date          DATE      The day told of; null of a subscription, a table or a bucket.
EventID       STRING    Id of the CloudEvent; the same whenever the event is sent.
Type          STRING    Of the CloudEvent, as jostler.day.loaded; null of a subscription.
Receiver      STRING    Digest of the receiver's whole URL.
Address       STRING    The receiver's scheme and host; path and query may hold a secret.
State         STRING    subscribed (from when on it is told), delivered, waiting, or expired.
Tries         INTEGER   How often the event was sent to this receiver, by all runs.
Answer        INTEGER   HTTP status of the last answer; null if there was none.
Error         STRING    Why it was not delivered; null if it was.
Recorded      TIMESTAMP When the ledger's row was written that the event tells.
Written       TIMESTAMP When this row was written.
RunID         STRING    The run that sent it; begins with when it began.
Host          STRING    Where the driver ran.
Version       STRING    Of the loader, of Python and of Spark.
""")

# A table that was removed and made again begins anew with attempt 1.
_DAYS_SQL = """\
SELECT * EXCEPT (nth) FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY `table`, `date` ORDER BY TableMade DESC, Attempt DESC, Finished DESC) AS nth
  FROM `{loads}` WHERE Status IN ('success', 'rejected', 'deleted')
) WHERE nth = 1"""
_REJECTS_SQL = """\
SELECT r.* FROM `{reject_rows}` AS r JOIN `{days}` AS d
  ON r.`table` = d.`table` AND r.`date` = d.`date` AND r.RunID = d.RunID"""
_STATE_SQL = """\
SELECT `table`, `date`, Attempt, Status, Fingerprint, Buckets, TableMade, RowsRead, RowsRejected,
  FailedSince, ErrorClass, ErrorText
FROM (
  SELECT *,
    MIN(IF(Status = 'failed' AND IFNULL(ErrorClass, '') != '{would_lose}'
        AND (ended IS NULL OR Finished > ended), Finished, NULL)) OVER (
      PARTITION BY `table`, `date`, TableMade, Fingerprint) AS FailedSince,
    ROW_NUMBER() OVER (
      PARTITION BY `table`, `date` ORDER BY TableMade DESC, Attempt DESC, Finished DESC) AS nth
  FROM (
    SELECT *, MAX(IF(Status = 'failed', NULL, Finished)) OVER (
      PARTITION BY `table`, `date`, TableMade) AS ended
    FROM `{loads}` WHERE `table` IN UNNEST(@tables) AND Status != 'skipped' AND `date` IS NOT NULL
  )
) WHERE nth = 1"""

_LOADED_SQL = """\
SELECT `table`, `date`, TableMade, Bundles, RowsLoaded, {objects} FROM (
  SELECT *, ROW_NUMBER() OVER (
    PARTITION BY `table`, `date` ORDER BY TableMade DESC, Attempt DESC, Finished DESC) AS nth
  FROM `{loads}` WHERE `table` IN UNNEST(@tables) AND Status IN ('success', 'deleted')
    AND `date` >= '{start}' AND `date` <= '{end}'
) WHERE nth = 1"""

# A failure as a whole ends with any later row that is none.
_BROKEN_SQL = """\
SELECT `table` FROM `{loads}` WHERE Status != 'skipped' OR `date` IS NULL GROUP BY 1
HAVING MAX(IF(`date` IS NULL AND Status = 'failed', Finished, NULL))
  > IFNULL(MAX(IF(`date` IS NULL AND Status = 'failed', NULL, Finished)), TIMESTAMP '1970-01-01')"""

_JOBS_SQL = """\
SELECT `table`, COUNT(DISTINCT JobID) AS n FROM `{loads}`
WHERE `table` IN UNNEST(@tables) AND JobID != ''
  AND Status != 'rejected' AND Finished > TIMESTAMP '{since}' GROUP BY 1"""


class Ledger:
    """The dataset of ledger and rejects."""

    def __init__(self, warehouse: Warehouse, dataset: str) -> None:
        self._warehouse = warehouse
        self._dataset = dataset
        self._made: dict[str, int] = {}

    def name(self, table: str) -> TableName:
        """Return the full name of a table or view of the dataset."""
        project, dataset = self._warehouse.project, self._dataset
        return TableName(project=project, dataset=dataset, table=table, wanted=dataset)

    def prepare(self) -> None:
        """Create dataset, tables and views, and add columns that older tables lack.

        Raises:
            RunError: a table has other columns than these.
        """
        self.table(LOADS, LOADS_FIELDS, "One row for each day and attempt of the loader.")
        self.table(REJECT_ROWS, REJECT_FIELDS, "Bad rows of every attempt; see the view rejects.")
        self.view("days", _DAYS_SQL, "The newest success or refusal of each day of each table.")
        self.view("rejects", _REJECTS_SQL, "The bad rows that the newest loads left out.")

    def prepare_compactions(self) -> None:
        """Create the table `compactions`, or add columns that an older one lacks.

        Raises:
            RunError: it has other columns than these.
        """
        self.table(COMPACTIONS, COMPACTION_FIELDS, "One row for each merge of bundles.")

    def prepare_notifications(self) -> None:
        """Create the table `notifications`, or add columns that an older one lacks.

        Raises:
            RunError: it has other columns than these.
        """
        about = "Who was told of which day, and what is still to be told; rows are only appended."
        self.table(NOTIFICATIONS, NOTIFICATION_FIELDS, about)

    def made_ms(self, table: str) -> int:
        """Return when a table was created, in ms since 1970; call after `prepare`."""
        return self._made[table]

    @property
    def label(self) -> str:
        """A digest that identifies this ledger; a ledger created anew has another one."""
        text = f"{self.name(LOADS)} {self._made[LOADS]}".encode()
        return hashlib.blake2b(text, digest_size=8).hexdigest()

    def exists(self) -> bool:
        """Return whether the ledger exists."""
        return self._warehouse.get_table(self.name(LOADS)) is not None

    def table(
        self, table: str, fields: Fields, description: str, *, partitioned_by: str = "date"
    ) -> None:
        """Create a table, or add columns that an older one lacks.

        Raises:
            RunError: it has other columns than these.
        """
        name = self.name(table)
        found = self._warehouse.get_table(name)
        if found is None:
            of_dataset = "Ledger and rejects of the jostler loader."
            self._warehouse.make_dataset(name.project, name.dataset, of_dataset)
            partitioning = {"type": "DAY", "field": partitioned_by}
            properties: Json = {"schema": api_schema(fields), "description": description}
            found = self._warehouse.create_table(
                name, {**properties, "timePartitioning": partitioning}
            )
        stored = fields_from_api([column.to_api_repr() for column in found.schema])
        comparison = compare(stored, fields)
        if comparison.added and not comparison.conflicts:  # made by an older version
            change: Json = {"schema": api_schema(merged(stored, fields))}
            self._warehouse.change_table(found, change)
        elif comparison.relation not in {Relation.EQUAL, Relation.OLDER}:
            hint = "give another --meta-dataset"
            raise RunError(f"{name} has other columns than this loader's", hint=hint)
        assert found.created is not None
        self._made[table] = round(found.created.timestamp() * 1000)

    def append(self, table: str, lines: BinaryIO, job_id: str) -> None:
        """Append lines of JSON to a table, all or none.

        Raises:
            WarehouseError: they are not written.
        """
        config = {"sourceFormat": "NEWLINE_DELIMITED_JSON", "writeDisposition": "WRITE_APPEND"}
        job = self._warehouse.load_file(str(self.name(table)), lines, job_id, config)[0]
        if job.reason:
            messages = "; ".join(str(error.get("message")) for error in job.errors)
            raise WarehouseError(f"job {job.id} into {table}: {messages}", reason=job.reason)

    def view(
        self, view: str, sql: str, description: str, names: Mapping[str, object] | None = None
    ) -> None:
        """Create a view, or change its SQL; `names` are the tables and views that it reads."""
        names = names or {table: self.name(table) for table in (LOADS, REJECT_ROWS, "days")}
        query = {"query": sql.format(**names), "useLegacySql": False}
        found = self._warehouse.get_table(self.name(view))
        if found is None:
            self._warehouse.create_table(
                self.name(view), {"view": query, "description": description}
            )
        # Compared as text, so that an unchanged view costs no update of its table.
        elif found.view_query != query["query"]:
            self._warehouse.change_table(found, {"view": query})

    def loaded(self, days: Sequence[TableDay], made: dict[str, int]) -> dict[DayKey, Loaded]:
        """Return the objects from which days were last loaded.

        Args:
            days: at least one day.
            made: when each table was created; older ledger rows belong to a table since deleted.
        """
        dates = [day.date for day in days]
        objects = "Objects" if self._has("Objects") else "CAST(NULL AS STRING) AS Objects"
        sql = _LOADED_SQL.format(
            loads=self.name(LOADS), start=min(dates), end=max(dates), objects=objects
        )
        tables = sorted({str(day.table.name) for day in days})
        return {
            (row["table"], row["date"]): Loaded(
                count=row["Bundles"] or 0,
                objects=_digests(row["Objects"]),
                rows=row["RowsLoaded"] or 0,
            )
            for row in self._warehouse.rows(sql, tables=tables)
            if row["TableMade"] == made.get(row["table"])
        }

    def _has(self, column: str) -> bool:
        """Say whether the ledger has a column; a plan may meet one of an older version."""
        if LOADS in self._made:  # it was prepared
            return True
        found = self._warehouse.get_table(self.name(LOADS))
        return found is not None and any(field.name == column for field in found.schema)

    def broken(self) -> set[str]:
        """Return the names of tables, and URLs of buckets, that last failed as a whole."""
        sql = _BROKEN_SQL.format(loads=self.name(LOADS))
        return {row["table"] for row in self._warehouse.rows(sql)}

    def jobs(self, tables: Iterable[str], since: datetime) -> dict[str, int]:
        """Count the load jobs of tables since an instant."""
        sql = _JOBS_SQL.format(loads=self.name(LOADS), since=since.isoformat())
        found = self._warehouse.rows(sql, tables=sorted(tables))
        return {row["table"]: row["n"] for row in found}

    def known(self, tables: dict[str, int]) -> dict[tuple[str, date], Known]:
        """Return the newest ledger row of each day of some tables.

        Args:
            tables: for each table name, when it was created; older ledger rows belong to a table
                since deleted.
        """
        if not tables:
            return {}
        sql = _STATE_SQL.format(loads=self.name(LOADS), would_lose=WOULD_LOSE)
        return {
            (row["table"], row["date"]): Known(
                attempt=row["Attempt"],
                status=Status(row["Status"]),
                fingerprint=row["Fingerprint"] or "",
                buckets=frozenset((row["Buckets"] or "").split()),
                bad_fraction=(row["RowsRejected"] or 0) / max(1, row["RowsRead"] or 0),
                failed_since=row["FailedSince"],
                error=(row["ErrorClass"] or "", row["ErrorText"] or ""),
            )
            for row in self._warehouse.rows(sql, tables=sorted(tables))
            if row["TableMade"] == tables[row["table"]]
        }


def _digests(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    size = 2 * DIGEST_BYTES
    return frozenset(text[at : at + size] for at in range(0, len(text), size))
