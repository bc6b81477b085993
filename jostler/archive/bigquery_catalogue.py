"""The catalogue made of the table index1 in BigQuery.

**Invariant:** it only reads.  Every query names the days of its partitions, takes what a user gave
as parameters, and is read page by page.

This module imports the official client; import it only when BigQuery is queried.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from google.cloud import bigquery

from jostler.archive import index_rows, index_sql
from jostler.archive.bigquery_tables import columns_of, open_client, query_rows
from jostler.archive.files import Bundle, File, NodeDay, Origin, Rejects, Tally
from jostler.archive.index_sql import Source
from jostler.format.bigquery_names import Naming, TableName, table_name
from jostler.format.names import INDEX, REJECTED, BundleName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from jostler.archive.query import Query
    from jostler.format.names import Place

PAGE_ROWS = 5000
FEW_DAYS = 31
CHUNK_ROWS = 2_000_000
"""Rows of one query, about: BigQuery sorts a result on one machine, so it must not be too large."""


class BigQueryCatalogue:
    """The catalogue of one experiment in one project; see `jostler.archive.catalogue.Catalogue`.

    Args:
        project: the project of the tables and of the queries.
        places: the experiment's places in the bucket, each with a table.
        location: the location of the datasets.
        naming: the naming rule of v1 tables.
        patience_s: how long a failing request is retried.
        chunk_rows: rows of one query, about.

    Raises:
        QueryError: there are no credentials.
    """

    def __init__(
        self,
        *,
        project: str,
        places: Sequence[Place],
        location: str,
        naming: Naming,
        patience_s: float,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._project = project
        self._places = sorted(places, key=lambda place: place.root)
        self._location = location
        self._naming = naming
        self._chunk_rows = chunk_rows
        self._patience_s = patience_s
        self._client = open_client(project, location)
        self._sources: list[Source] | None = None
        self._lacking: list[str] = []

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def files(self, query: Query, tally: Tally | None = None) -> Iterator[File]:
        """Query the days in chunks, and yield the rows page by page."""
        tally = tally or Tally()
        left = query.limit
        for sources, first, last in self._chunks(query, query.days(), tally):
            sql, parameters = index_sql.files(sources, query, first, last, max(left, 0))
            for row in self._rows(sql, parameters):
                tally.rows += row["copies"]
                tally.repeats += row["copies"] - 1
                yield self._file(row)
                left -= 1
            if query.limit and left <= 0:
                return

    def bundles(self, query: Query, tally: Tally | None = None) -> Iterator[Bundle]:
        """Group the rows by their index object."""
        left = query.limit
        for sources, first, last in self._chunks(query, query.days(), tally or Tally()):
            sql, parameters = index_sql.bundles(sources, query, first, last, max(left, 0))
            for row in self._rows(sql, parameters):
                yield Bundle(
                    origin=_origin_of(row),
                    files=row["files"],
                    size_bytes=row["size_bytes"],
                    packed_bytes=row["packed_bytes"],
                    first=row["first"],
                    last=row["last"],
                )
                left -= 1
            if query.limit and left <= 0:
                return

    def nodes(self, query: Query) -> tuple[str, ...]:
        """Select the distinct nodes."""
        found: set[str] = set()
        for sources, first, last in self._chunks(query, query.days(), Tally()):
            sql, parameters = index_sql.nodes(sources, query, first, last)
            found.update(row["node"] for row in self._rows(sql, parameters))
        return tuple(sorted(found))

    def days(self, query: Query, tally: Tally | None = None) -> Iterator[NodeDay]:
        """Group the rows by day, datatype and node."""
        for sources, first, last in self._chunks(query, query.folders(), tally or Tally()):
            sql, parameters = index_sql.days(sources, query, first, last)
            for row in self._rows(sql, parameters):
                yield NodeDay(**row)

    def rejects(self, query: Query, tally: Tally | None = None) -> Iterator[Rejects]:
        """Group the rows of the table rejected1."""
        first, last = query.folders()
        tally = tally or Tally()
        tables = [
            name for place in self._places if self._columns(name := self._name(place, REJECTED))
        ]
        if not tables:
            return
        sql, parameters = index_sql.rejects(tables, query, first, last)
        for row in self._rows(sql, parameters):
            tally.rows += row["files"]
            yield Rejects(**row)

    def _chunks(
        self, query: Query, days: tuple[date, date], tally: Tally
    ) -> Iterator[tuple[list[Source], date, date]]:
        """Yield the tables with ranges of days, each of a size that one query may sort."""
        sources = self._tables(tally)
        first, last = days
        if not sources or first > last:
            return
        chunks = [(first, last)]
        if (last - first).days >= FEW_DAYS:
            sql, parameters = index_sql.sizes(sources, first, last)
            rows = self._rows(sql, parameters)
            chunks = _cut(((row["day"], row["files"]) for row in rows), self._chunk_rows)
        for start, end in reversed(chunks) if query.newest_first else chunks:
            tally.days += (end - start).days + 1
            yield sources, start, end

    def _tables(self, tally: Tally) -> list[Source]:
        """Return the tables that exist, each with its columns; they are looked up once."""
        if self._sources is None:
            names = [(place, self._name(place, INDEX)) for place in self._places]
            known = [Source(place, name, self._columns(name)) for place, name in names]
            self._sources = [one for one in known if one.columns]
            self._lacking = [
                f"{one.table}: there is no such table" for one in known if not one.columns
            ]
        told = tally.absent if self._sources else tally.problems
        told += [text for text in self._lacking if text not in told]
        return self._sources

    def _name(self, place: Place, datatype: str) -> TableName:
        return table_name(self._naming, self._project, place, datatype)

    def _columns(self, name: TableName) -> frozenset[str]:
        """Return the fields of the column `raw`; none if there is no such table."""
        columns = columns_of(self._client, name, self._patience_s)
        raw = next((field for field in columns if field.name.lower() == "raw"), None)
        return frozenset(field.name.lower() for field in raw.fields) if raw else frozenset()

    def _rows(self, sql: str, parameters: list[index_sql.Parameter]) -> Iterator[dict[str, Any]]:
        return query_rows(
            self._client,
            sql,
            [_parameter(one) for one in parameters],
            location=self._location,
            patience_s=self._patience_s,
            page_rows=PAGE_ROWS,
        )

    def _file(self, row: dict[str, Any]) -> File:
        return File(
            filename=row["filename"],
            size=row["size"],
            added=row["added"],
            line=row["line"],
            hash=row["digest"],
            hash_of_raw=row["started"] is not None,
            offset=row["block_offset"],
            length=row["block_length"],
            start=row["started"],
            end=row["ended"],
            work_id=row["job"],
            origin=_origin_of(row),
        )


def _origin_of(row: dict[str, Any]) -> Origin:
    return _origin(row["index_url"], row["index_name"], row["datatype"], row["node"])


@lru_cache(maxsize=1024)
def _origin(index_url: str, index_name: str, datatype: str, node: str) -> Origin:
    bucket = index_url.removesuffix(f"/{index_name}")
    name = BundleName.parse(index_name)
    return index_rows.origin_of(name, bucket, datatype, node)


def _cut(days: Iterable[tuple[date, int]], most: int) -> list[tuple[date, date]]:
    """Cut days with rows, in order, into ranges that end with the day that reaches `most` rows."""
    chunks: list[tuple[date, date]] = []
    held = most
    for day, rows in days:
        if held >= most:
            chunks.append((day, day))
            held = 0
        chunks[-1] = (chunks[-1][0], day)
        held += rows
    return chunks


def _parameter(one: index_sql.Parameter) -> Any:  # noqa: ANN401 - the library has no types
    if isinstance(one.value, tuple):
        return bigquery.ArrayQueryParameter(one.name, one.type, list(one.value))
    return bigquery.ScalarQueryParameter(one.name, one.type, one.value)
