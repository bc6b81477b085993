"""Datasets: made, listed, described anew, dropped.

**Invariant:** a dataset's `etag` changes exactly when what the client may set changes.

It refuses to drop a dataset that holds tables, unless told to drop them too.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import orjson

from embedded import results
from embedded.columns import quoted
from embedded.errors import ApiError, already_exists, invalid, not_found, unsupported
from embedded.names import DatasetRef, new_dataset
from embedded.store import Resources
from embedded.wire import Call, Json, Reply, page

if TYPE_CHECKING:
    import duckdb

    from embedded.store import Store

SETTABLE = frozenset(
    {"friendlyName", "description", "labels", "defaultTableExpirationMs", "access", "location"}
)
GIVEN_BY_SERVER = frozenset(
    {"kind", "etag", "id", "selfLink", "datasetReference", "creationTime", "lastModifiedTime"}
)
ACCESS = [{"role": "OWNER", "specialGroup": "projectOwners"}]
DEFAULT_LOCATION = "US"
ANONYMOUS = results.DATASET  # of each project: hidden, where results are and clients put tables


def now_ms() -> str:
    """Return the time as the API writes it: milliseconds since the epoch, in a string."""
    return str(time.time_ns() // 1_000_000)


def etag_of(body: Json) -> str:
    """Name a state of a resource."""
    same = {k: v for k, v in body.items() if k not in {"etag", "lastModifiedTime"}}
    return hashlib.sha256(orjson.dumps(same, option=orjson.OPT_SORT_KEYS)).hexdigest()[:22]


def check_etag(call: Call, body: Json) -> None:
    """Hold the caller to the `If-Match` that it sent.

    Raises:
        ApiError: the resource is no longer the one that the caller read.
    """
    wanted = call.headers.get("if-match", "*")
    if wanted not in {"*", body["etag"]}:
        raise ApiError("conditionNotMet", "Precondition check failed.")


def patched(body: Json, change: Json) -> Json:
    """Merge a change into a resource: a null removes a key, an object merges if it is labels."""
    after = dict(body)
    for key, value in change.items():
        if value is None:
            after.pop(key, None)
        elif key == "labels":
            labels = {**body.get(key, {}), **value}
            after[key] = {name: text for name, text in labels.items() if text is not None}
        else:
            after[key] = value
    return after


def find_dataset(cursor: duckdb.DuckDBPyConnection, ref: DatasetRef) -> Json:
    """Return a dataset's resource.

    Raises:
        ApiError: there is none.
    """
    body = Resources(cursor, "dataset").find(ref)
    if body is None and ref.dataset == ANONYMOUS:
        return {"location": DEFAULT_LOCATION, "datasetReference": ref.to_api()}
    if body is None:
        raise not_found("Dataset", str(ref))
    return body


def make_dataset(cursor: duckdb.DuckDBPyConnection, ref: DatasetRef, given: Json) -> Json:
    """Make a dataset of what the client gave.

    Raises:
        ApiError: it exists.
    """
    known = Resources(cursor, "dataset")
    if known.find(ref) is not None:
        raise already_exists("Dataset", str(ref))
    body = {key: given[key] for key in SETTABLE if given.get(key) is not None}
    body = {"location": DEFAULT_LOCATION, "access": ACCESS, **body}
    body["creationTime"] = now_ms()
    return _stored(known, ref, body)


def drop_dataset(cursor: duckdb.DuckDBPyConnection, ref: DatasetRef, *, contents: bool) -> None:
    """Drop a dataset.

    Args:
        cursor: the transaction.
        ref: the dataset.
        contents: whether its tables are dropped too.

    Raises:
        ApiError: there is none, or it holds tables.
    """
    find_dataset(cursor, ref)
    tables = Resources(cursor, "table")
    inside = tables.children(ref)
    if inside and not contents:
        raise ApiError("resourceInUse", f"Dataset {ref} is still in use")
    for body in [*inside, *tables.expired(ref)]:
        tables.drop(body["id"])
        if "storage" in body:
            cursor.execute(f"DROP TABLE data.{quoted(body['storage'])}")
    Resources(cursor, "dataset").drop(ref)


class Datasets:
    """The `datasets` collection."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def insert(self, call: Call) -> Reply:
        """Make a dataset."""
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
        """Change what the call names, keep the rest; PUT replaces everything settable."""
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
            return Reply(_stored(Resources(cursor, "dataset"), ref, patched(body, change)))

    def delete(self, call: Call) -> Reply:
        """Drop a dataset."""
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


def _stored(known: Resources, ref: DatasetRef, body: Json) -> Json:
    """Complete the resource and store it."""
    body["kind"] = "bigquery#dataset"
    body["id"] = str(ref)
    body["datasetReference"] = ref.to_api()
    body["selfLink"] = f"/bigquery/v2/projects/{ref.project}/datasets/{ref.dataset}"
    body["lastModifiedTime"] = now_ms()
    body["etag"] = etag_of(body)
    known.put(ref, ref.project, body)
    return body
