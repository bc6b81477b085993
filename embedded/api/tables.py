"""The `tables` collection of the REST API: insert, get, list, patch, update, delete.

**Invariant:** a schema changes only as `changes` allows, and a request with a stale `If-Match`
changes nothing.

A property that is not supported is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedded.api.datasets import check_etag, patched
from embedded.model import fields as columns_of
from embedded.model.changes import Change
from embedded.model.errors import invalid, unsupported
from embedded.model.names import DatasetRef, TableRef, new_table
from embedded.model.wire import Call, Json, Reply, page
from embedded.sql.defaults import check_defaults
from embedded.store.catalog import (
    GIVEN_BY_SERVER,
    SETTABLE,
    Table,
    check_layout,
    create_table,
    drop_table,
    find_table,
    save_table,
    set_fields,
)
from embedded.store.database import Resources
from embedded.store.datasets import find_dataset
from embedded.store.results import is_result

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from embedded.model.fields import Field
    from embedded.store.database import Store
    from embedded.store.results import Results

    Describe = Callable[[duckdb.DuckDBPyConnection, str, str], tuple[Field, ...]]

FIXED_ONCE_MADE = ("timePartitioning",)


class Tables:
    """The `tables` collection.

    Args:
        store: the database.
        results: the results of queries, which clients read as tables.
        describe: returns the columns of a view; its arguments are a transaction, the view's SQL,
            and the project of names without one.
    """

    def __init__(self, store: Store, results: Results, describe: Describe) -> None:
        self._store = store
        self._results = results
        self._describe = describe

    def insert(self, call: Call) -> Reply:
        """Create a table or view."""
        given = call.json()
        parent = DatasetRef(call.names["project"], call.names["dataset"])
        ref = new_table(parent, str((given.get("tableReference") or {}).get("tableId") or ""))
        _check_keys(given)
        check_defaults(columns_of.from_api(given.get("schema") or {}))
        with self._store.writing() as cursor:
            find_dataset(cursor, parent)
            return Reply(
                shown(cursor, create_table(cursor, ref, self._with_view(cursor, call, given)))
            )

    def get(self, call: Call) -> Reply:
        """Return a table with its number of rows."""
        if is_result(call.names["dataset"], call.names["table"]):
            return Reply(self._results.table(call.names["table"]))
        with self._store.reading() as cursor:
            return Reply(shown(cursor, find_table(cursor, table_ref(call))))

    def list(self, call: Call) -> Reply:
        """Return a page of a dataset's tables and views."""
        parent = DatasetRef(call.names["project"], call.names["dataset"])
        with self._store.reading() as cursor:
            find_dataset(cursor, parent)
            bodies = Resources(cursor, "table").children(parent)
        keys = {"id", "tableReference", "type", "labels", "friendlyName", "creationTime"}
        keys |= {"timePartitioning", "clustering", "view", "requirePartitionFilter"}
        items, more = page(bodies, call)
        brief = [
            {"kind": "bigquery#table", **{key: item[key] for key in sorted(keys) if key in item}}
            for item in items
        ]
        total = {"totalItems": len(bodies)}
        return Reply({"kind": "bigquery#tableList", "tables": brief, **total, **more})

    def patch(self, call: Call) -> Reply:
        """Change the given properties; PUT also removes those that are not given."""
        change = call.json()
        _check_keys(change)
        with self._store.writing() as cursor:
            table = find_table(cursor, table_ref(call))
            check_etag(call, table.body)
            change = {key: value for key, value in change.items() if key in SETTABLE}
            _check_fixed(table, change)
            body = dict(table.body)
            if call.method == "PUT":
                kept = {"schema", "view", *FIXED_ONCE_MADE}
                body = {k: v for k, v in body.items() if k not in SETTABLE - kept}
            schema = change.pop("schema", None)
            after = Table(table.ref, patched(body, self._with_view(cursor, call, change)))
            if schema is not None and not table.view_sql:
                fields = columns_of.from_api(schema)
                check_defaults(fields)
                merged = Change(table=str(table.ref)).merged(table.fields, fields)
                after = set_fields(cursor, after, merged)
            check_layout(after.fields, after.body)
            return Reply(shown(cursor, save_table(cursor, after)))

    def delete(self, call: Call) -> Reply:
        """Delete a table or view."""
        with self._store.writing() as cursor:
            drop_table(cursor, find_table(cursor, table_ref(call)))
        return Reply(status=204)

    def _with_view(self, cursor: duckdb.DuckDBPyConnection, call: Call, given: Json) -> Json:
        """Add the columns of a view's SQL as its schema, which stays, as in BigQuery."""
        view = given.get("view")
        if view is None:
            return given
        if view.get("useLegacySql", True):  # the API's default
            raise unsupported("Legacy SQL of a view (set useLegacySql to false)")
        for key in view:
            if key not in {"query", "useLegacySql"} and view[key]:
                raise unsupported(f"{key} of a view")
        for key in ("timePartitioning", "clustering", "requirePartitionFilter"):
            if given.get(key):
                raise invalid(f"{key} cannot be set on a view")
        fields = self._describe(cursor, str(view.get("query") or ""), call.names["project"])
        return {
            **given,
            "view": {"query": view.get("query") or "", "useLegacySql": False},
            "schema": columns_of.to_api(fields),
        }


def table_ref(call: Call) -> TableRef:
    """Return the table in a request's path."""
    return TableRef(call.names["project"], call.names["dataset"], call.names["table"])


def shown(cursor: duckdb.DuckDBPyConnection, table: Table) -> Json:
    """Return a table's resource as the client gets it."""
    body = {key: value for key, value in table.body.items() if key != "storage"}
    if not table.view_sql:
        body["numRows"] = str(table.count(cursor))
    return body


def _check_keys(given: Json) -> None:
    for key, value in given.items():
        if key not in SETTABLE | GIVEN_BY_SERVER and value not in (None, "", {}, [], False):
            raise unsupported(f"{key} of a table")


def _check_fixed(table: Table, change: Json) -> None:
    """Refuse a change of the partitioning, except of requirePartitionFilter in either place."""
    if "timePartitioning" not in change:
        return
    old, new = (
        {**(spec or {})}
        for spec in (table.body.get("timePartitioning"), change["timePartitioning"])
    )
    for spec in (old, new):
        spec.pop("requirePartitionFilter", None)
        spec.pop("expirationMs", None)
    if old != new:
        raise invalid(
            f"Cannot change partitioning spec for a partitioned/clustered table {table.ref}."
        )
