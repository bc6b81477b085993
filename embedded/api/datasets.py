"""The `datasets` collection of the REST API: insert, get, list, patch, update, delete.

**Invariant:** a request with a stale `If-Match` changes nothing.

A property that is not supported is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedded.model.errors import ApiError, invalid, unsupported
from embedded.model.names import DatasetRef, new_dataset
from embedded.model.wire import Call, Json, Reply, page
from embedded.store.database import Resources
from embedded.store.datasets import (
    SETTABLE,
    drop_dataset,
    find_dataset,
    make_dataset,
    store_dataset,
)

if TYPE_CHECKING:
    from embedded.store.database import Store

MERGED = frozenset({"labels", "timePartitioning"})
GIVEN_BY_SERVER = frozenset(
    {"kind", "etag", "id", "selfLink", "datasetReference", "creationTime", "lastModifiedTime"}
)


def check_etag(call: Call, body: Json) -> None:
    """Check that a resource still has the etag in the request's `If-Match` header.

    Raises:
        ApiError: the resource has changed since the client read it.
    """
    wanted = call.headers.get("if-match", "*")
    if wanted not in {"*", body["etag"]}:
        raise ApiError("conditionNotMet", "Precondition check failed.")


def patched(body: Json, change: Json) -> Json:
    """Return a resource after a PATCH: null removes a property, objects of values are merged."""
    after = dict(body)
    for key, value in change.items():
        if value is None:
            after.pop(key, None)
        elif key in MERGED and isinstance(value, dict):
            inner = {**body.get(key, {}), **value}
            after[key] = {name: text for name, text in inner.items() if text is not None}
        else:
            after[key] = value
    return after


class Datasets:
    """The `datasets` collection."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def insert(self, call: Call) -> Reply:
        """Create a dataset."""
        given = call.json()
        api = given.get("datasetReference") or {}
        ref = new_dataset(call.names["project"], str(api.get("datasetId") or ""))
        _check_keys(given)
        with self._store.writing() as cursor:
            return Reply(make_dataset(cursor, ref, given))

    def get(self, call: Call) -> Reply:
        """Return one dataset."""
        with self._store.reading() as cursor:
            return Reply(find_dataset(cursor, _ref(call)))

    def list(self, call: Call) -> Reply:
        """Return a page of a project's datasets."""
        with self._store.reading() as cursor:
            all_of_them = Resources(cursor, "dataset").children(call.names["project"])
        keys = ("id", "datasetReference", "labels", "friendlyName", "location")
        items, more = page(all_of_them, call)
        brief = [
            {"kind": "bigquery#dataset", **{key: item[key] for key in keys if key in item}}
            for item in items
        ]
        return Reply({"kind": "bigquery#datasetList", "datasets": brief, **more})

    def patch(self, call: Call) -> Reply:
        """Change the given properties; PUT also removes those that are not given."""
        change = call.json()
        _check_keys(change)
        ref = _ref(call)
        with self._store.writing() as cursor:
            body = find_dataset(cursor, ref)
            check_etag(call, body)
            change = {key: value for key, value in change.items() if key in SETTABLE}
            if change.get("location", body["location"]) != body["location"]:
                raise invalid("Cannot change dataset location")
            if call.method == "PUT":
                kept = SETTABLE - {"location", "access"}
                body = {key: value for key, value in body.items() if key not in kept}
            return Reply(store_dataset(Resources(cursor, "dataset"), ref, patched(body, change)))

    def delete(self, call: Call) -> Reply:
        """Delete a dataset."""
        ref = _ref(call)
        with self._store.writing() as cursor:
            drop_dataset(cursor, ref, contents=call.flag("deleteContents"))
        return Reply(status=204)


def _ref(call: Call) -> DatasetRef:
    return DatasetRef(call.names["project"], call.names["dataset"])


def _check_keys(given: Json) -> None:
    for key, value in given.items():
        if key not in SETTABLE | GIVEN_BY_SERVER and value not in (None, "", {}, []):
            raise unsupported(f"{key} of a dataset")
