# ruff: noqa: S608 - names of tables and columns, dates, and texts that `_literal` escapes
"""Run a question on BigQuery, on the tables that the loader fills from the same bundles.

**Invariant:** the text of the question is kept; only the names of tables are replaced: by those of
the loader, by a subquery where the question names `_time` or `_node`, and a table for
lookups by its rows.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from google.api_core.exceptions import GoogleAPIError
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigquery.retry import DEFAULT_JOB_RETRY, DEFAULT_RETRY
from requests.exceptions import RequestException
from sqlglot import exp

from jostler.format.bigquery_names import table_name
from jostler.format.names import INDEX
from jostler.schema import fields_from_api
from loader.bigquery.ask import message
from loader.errors import WarehouseError
from loader.query.answer import Answer, Notes, limited
from loader.query.columns import arrow_type
from loader.query.googlesql.dialect import parsed, tokens
from loader.query.question import NODE, TIME
from loader.query.scan import Span, span_of
from loader.query.tables import LOOKUPS

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from google.cloud import bigquery

    from jostler.format.bigquery_names import Naming
    from loader.plan.discover import Table
    from loader.query.googlesql.reads import Read
    from loader.query.lookups import Lookup, Lookups
    from loader.query.tables import Tables

LOOKUP_BYTES = 700_000
"""A query has at most 1 MB of text ("Quotas and limits", queries): the rows stand in it."""
PAGE_ROWS = 10_000
CANCEL_S = 10.0
"""So long an interrupted question waits for BigQuery, to cancel its job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What BigQuery has for the tables of an archive.

    Attributes:
        tables: the tables of the archive.
        lookups: the tables for lookups.
        project: of BigQuery's tables.
        naming: the rule for names of v1.
    """

    tables: Tables
    lookups: Lookups
    project: str
    naming: Naming

    def text(self, sql: str, reads: Sequence[Read]) -> str:
        """Return a question with BigQuery's tables.

        Args:
            sql: the question, without pipes.
            reads: what it reads.

        Raises:
            QueryError: the text cannot be parsed.
            WarehouseError: a table for lookups is too large for a query.
        """
        tree = parsed(sql, tokens(sql))
        own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        changes: set[tuple[int, int, str]] = set()
        for node in tree.find_all(exp.Table):
            found = [part for part in node.parts if "start" in part.meta]
            name = ".".join(part.name for part in node.parts)
            if not found or (len(found) == 1 and name.lower() in own):
                continue
            if source := self._source(name, reads):
                alias = "" if node.alias else f" AS `{found[-1].name}`"
                place = (found[0].meta["start"], found[-1].meta["end"] + 1)
                changes.add((*place, source + alias))
        for start, end, source in sorted(changes, reverse=True):
            sql = sql[:start] + source + sql[end:]
        return sql

    def _source(self, name: str, reads: Sequence[Read]) -> str:
        """Return what stands for a table; empty if it is none of the archive's."""
        table = self.tables.table(name)
        if table is None:
            schema, _, lookup = name.partition(".")
            if schema.lower() != LOOKUPS or self.lookups.columns(lookup) is None:
                return ""
            return _rows(lookup, self.lookups.lookup(lookup))
        mine = [one for one in reads if self.tables.table(one.table) is table]
        if any(path[0] in {TIME, NODE} for one in mine for path in one.paths):
            name, index_name = self.name(table), self.name(table, INDEX)
            return _with_pseudo_columns(table, _span(mine), name, index_name)
        return f"`{self.name(table)}`"

    def name(self, table: Table, datatype: str = "") -> str:
        """Return the name of a table, or of another datatype's at the same place."""
        datatype = datatype or table.sources[0].datatype
        return str(table_name(self.naming, self.project, table.place, datatype))


def _span(reads: Iterable[Read]) -> Span:
    """Return the days that may be read by any use of a table."""
    days = [span_of(one.range).days() for one in reads]
    return Span(first_day=min(day for day, _ in days), last_day=max(day for _, day in days))


def _with_pseudo_columns(table: Table, span: Span, name: str, index_name: str) -> str:
    """Return a subquery that joins each row with its index row."""
    first, last = span.days()
    days = f"`date` BETWEEN DATE '{first}' AND DATE '{last}'"
    own = table.sources[0].datatype == INDEX
    times = "COALESCE(raw.`Start`, raw.`End`, raw.TimeAdded)"
    columns = [f"`{field.name}`" for field in table.fields]
    columns.append(f"{times if own else 'jostler_index.moment'} AS {TIME}")
    columns.append(f"{'raw.Node' if own else 'jostler_index.node'} AS {NODE}")
    source = f"SELECT {', '.join(columns)} FROM `{name}`"
    if own:
        return f"({source} WHERE {days})"
    # In a merged bundle files of several nodes may have one Filename: the row alone cannot say
    # whose it is.
    index = (
        f"SELECT raw.ArchiveURL AS url, raw.Filename AS file, MIN({times}) AS moment,"
        " IF(COUNT(DISTINCT raw.Node) = 1, MIN(raw.Node), NULL) AS node"
        f" FROM `{index_name}` WHERE {days} GROUP BY url, file"
    )
    on = "archiver.ArchiveURL = jostler_index.url AND archiver.Filename = jostler_index.file"
    return f"({source} LEFT JOIN ({index}) AS jostler_index ON {on} WHERE {days})"


def _rows(name: str, lookup: Lookup) -> str:
    """Return the rows of a table for lookups as a subquery."""
    kinds = ", ".join(f"`{column}` STRING" for column in lookup.columns)
    rows = ", ".join(f"({', '.join(map(_literal, row))})" for row in lookup.rows)
    if len(lookup.columns) == 1:  # a value in parentheses is no STRUCT
        rows = ", ".join(f"STRUCT({_literal(row[0])})" for row in lookup.rows)
    text = f"(SELECT * FROM UNNEST(ARRAY<STRUCT<{kinds}>>[{rows}]))"
    if len(text.encode()) > LOOKUP_BYTES:
        raise WarehouseError(
            f"lookup {name}: it is too large to stand in a query to BigQuery",
            hint="load it into a table, and name that with jostler-sql",
        )
    return text


def _literal(value: str | None) -> str:
    if value is None:
        return "NULL"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r") + "'"


class BigQueryRunner:
    """Runs texts in BigQuery.

    Args:
        client: the client; its project pays.
    """

    def __init__(self, client: bigquery.Client) -> None:
        self._client = client

    def answer(self, sql: str, patience_s: float, limit: int = 0) -> Answer:
        """Run a query; its rows come in pages.

        Args:
            sql: the query.
            patience_s: how long a failing request is retried.
            limit: how many rows to return at the most; 0 for all.

        Raises:
            WarehouseError: BigQuery refuses it, or cannot be reached.
        """
        with _translated():
            job = self._begun(sql, patience_s)
        try:
            with _translated():
                rows = job.result(page_size=PAGE_ROWS)
        except BaseException:
            _cancel(job)
            raise
        fields = fields_from_api([field.to_api_repr() for field in rows.schema])
        schema = pa.schema([pa.field(one.name, arrow_type(one)) for one in fields])
        notes = Notes(size_bytes=job.total_bytes_processed or 0)
        return Answer(schema, limited(_pages(rows, schema), limit), lambda: notes)

    def _begun(self, sql: str, patience_s: float) -> bigquery.QueryJob:
        """Begin a job, in a thread: an interrupt may come before the answer that names it."""
        asked: Future[bigquery.QueryJob] = Future()

        def ask() -> None:
            try:
                asked.set_result(
                    self._client.query(
                        sql,
                        retry=DEFAULT_RETRY.with_timeout(patience_s),
                        job_retry=DEFAULT_JOB_RETRY.with_timeout(patience_s),
                    )
                )
            except BaseException as exc:  # noqa: BLE001 - it is raised where it is waited for
                asked.set_exception(exc)

        Thread(target=ask, name="query", daemon=True).start()
        try:
            return asked.result()
        except KeyboardInterrupt:
            with suppress(Exception):
                _cancel(asked.result(CANCEL_S))
            raise


def _pages(rows: Any, schema: pa.Schema) -> Generator[pa.RecordBatch]:  # noqa: ANN401 - a RowIterator
    with _translated():
        for batch in rows.to_arrow_iterable(bqstorage_client=None):
            yield batch.cast(schema)


def _cancel(job: bigquery.QueryJob) -> None:
    """Ask BigQuery to end a job; it may have ended already."""
    try:
        job.cancel(retry=None, timeout=CANCEL_S)
    except (GoogleAPIError, GoogleAuthError, RequestException, OSError):
        return


class _translated:  # noqa: N801 - used as a function
    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, exc: BaseException | None, _trace: object) -> None:
        if isinstance(exc, GoogleAPIError):
            raise WarehouseError(message(exc)) from exc
        if isinstance(exc, (GoogleAuthError, RequestException, OSError)):
            text = " ".join(str(exc).split())
            raise WarehouseError(f"no answer from BigQuery: {text}") from exc
