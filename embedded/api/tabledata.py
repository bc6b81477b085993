"""Rows over REST: read a page of a table or of a result, insert rows.

**Invariant:** the pages of an unchanged table together have each row once.

`insertAll` refuses rows that a load job would refuse, and inserts all rows of a request or none.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import orjson

from embedded.load.judge import RowJudge, encoded
from embedded.load.scalars import Flaw
from embedded.model.cells import read_page, stamps_of
from embedded.model.columns import literal, quoted
from embedded.model.errors import invalid, unsupported
from embedded.model.names import destination
from embedded.model.wire import Call, Json, Reply
from embedded.store.catalog import find_table
from embedded.store.landing import Landing
from embedded.store.results import is_result

if TYPE_CHECKING:
    import duckdb

    from embedded.model.fields import Field
    from embedded.store.database import Store
    from embedded.store.results import Results


class TableData:
    """The `tabledata` collection."""

    def __init__(self, store: Store, results: Results) -> None:
        self._store = store
        self._results = results

    def list(self, call: Call) -> Reply:
        """Return a page of rows."""
        with self._store.reading() as cursor:
            cursor.begin()  # count and page come from one transaction
            source, fields = self._source(cursor, call)
            fields = _selected(fields, call.query.get("selectedFields", ""))
            found = cursor.execute(f"SELECT count(*) FROM {source}").fetchone()  # noqa: S608
            total = int(found[0]) if found else 0
            start = call.number("pageToken", 0) or call.number("startIndex", 0)
            limit = call.number("maxResults", total)
            rows = read_page(cursor, source, fields, start=start, limit=limit, how=stamps_of(call))
        end = start + len(rows)
        more = {"pageToken": str(end)} if rows and end < total else {}
        kind = {"kind": "bigquery#tableDataList", "totalRows": str(total)}
        return Reply({**kind, "rows": rows, **more} if rows else {**kind})

    def _source(
        self, cursor: duckdb.DuckDBPyConnection, call: Call
    ) -> tuple[str, tuple[Field, ...]]:
        api = {"datasetId": call.names["dataset"], "tableId": call.names["table"]}
        if is_result(call.names["dataset"], call.names["table"]):
            name, fields, _ = self._results.find(call.names["table"])
            return name, fields
        ref, day = destination(api, call.names["project"])
        table = find_table(cursor, ref)
        if table.view_sql:
            raise invalid(f"Cannot list a table of type VIEW. {ref}")
        if not day:
            return table.storage, table.fields
        column = quoted(table.partition_column)
        return f"{table.storage} WHERE CAST({column} AS DATE) = DATE {literal(day)}", table.fields

    def insert_all(self, call: Call) -> Reply:
        """Insert rows; the next query sees them."""
        given = call.json()
        for key in ("templateSuffix", "skipInvalidRows"):
            if given.get(key):
                raise unsupported(f"{key} of insertAll")
        ref, day = destination(
            {"datasetId": call.names["dataset"], "tableId": call.names["table"]},
            call.names["project"],
        )
        if day:
            raise unsupported("insertAll into a partition")
        with self._store.reading() as cursor:
            fields = find_table(cursor, ref).fields
        ignore = bool(given.get("ignoreUnknownValues"))
        lines, errors = _judged(RowJudge(fields, ignore_unknown=ignore), given.get("rows") or [])
        if errors:
            return Reply({"kind": "bigquery#tableDataInsertAllResponse", "insertErrors": errors})
        landing = Landing(
            ref=ref, day="", write="WRITE_APPEND", create="CREATE_NEVER", schema=(),
            layout={}, properties={},
        )  # fmt: skip
        path = self._store.staging / f"insert-{uuid.uuid4().hex}"
        path.write_bytes(b"".join(lines))
        try:
            with self._store.writing() as cursor:
                landing.put_staged(cursor, fields, path, max(map(len, lines), default=0))
        finally:
            path.unlink()
        return Reply({"kind": "bigquery#tableDataInsertAllResponse"})


def _judged(judge: RowJudge, rows: list[Json]) -> tuple[list[bytes], list[Json]]:
    lines: list[bytes] = []
    errors: list[Json] = []
    for index, row in enumerate(rows):
        try:
            lines.append(encoded(judge.row(orjson.dumps(row.get("json") or {}))))
        except Flaw as flaw:
            error = {"reason": "invalid", "location": "", "debugInfo": "", "message": str(flaw)}
            errors.append({"index": index, "errors": [error]})
    return lines, errors


def _selected(fields: tuple[Field, ...], names: str) -> tuple[Field, ...]:
    if not names:
        return fields
    wanted = {name.strip().lower() for name in names.split(",")}
    unknown = wanted - {field.name.lower() for field in fields}
    if unknown:
        raise invalid(f"No such field: {', '.join(sorted(unknown))}")
    return tuple(field for field in fields if field.name.lower() in wanted)
