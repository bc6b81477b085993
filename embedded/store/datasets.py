"""Datasets in the database: find, create, store and drop them.

**Invariant:** a dataset's `etag` changes if and only if a property that clients can set changes.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import orjson

from embedded.model.access import entries_of
from embedded.model.columns import quoted
from embedded.model.errors import ApiError, already_exists, not_found
from embedded.model.labels import check_labels
from embedded.store import results
from embedded.store.database import Resources

if TYPE_CHECKING:
    import duckdb

    from embedded.model.names import DatasetRef
    from embedded.model.wire import Json

SETTABLE = frozenset(
    {"friendlyName", "description", "labels", "defaultTableExpirationMs", "access", "location"}
)
ACCESS = [{"role": "OWNER", "specialGroup": "projectOwners"}]
DEFAULT_LOCATION = "US"
ANONYMOUS = results.DATASET
"""A hidden dataset of each project, with query results and with tables that clients write there."""


def now_ms() -> str:
    """Return the current time as the API writes it: milliseconds since 1970, as a string."""
    return str(time.time_ns() // 1_000_000)


def etag_of(body: Json) -> str:
    """Return the etag of a resource: a digest of all its properties except the time of change."""
    same = {k: v for k, v in body.items() if k not in {"etag", "lastModifiedTime"}}
    return hashlib.sha256(orjson.dumps(same, option=orjson.OPT_SORT_KEYS)).hexdigest()[:22]


def find_dataset(cursor: duckdb.DuckDBPyConnection, ref: DatasetRef) -> Json:
    """Return a dataset's resource.

    Raises:
        ApiError: the dataset does not exist.
    """
    body = Resources(cursor, "dataset").find(ref)
    if body is None and ref.dataset == ANONYMOUS:
        return {"location": DEFAULT_LOCATION, "datasetReference": ref.to_api()}
    if body is None:
        raise not_found("Dataset", str(ref))
    return body


def make_dataset(cursor: duckdb.DuckDBPyConnection, ref: DatasetRef, given: Json) -> Json:
    """Create a dataset from a Dataset resource.

    Raises:
        ApiError: the dataset exists.
    """
    known = Resources(cursor, "dataset")
    if known.find(ref) is not None:
        raise already_exists("Dataset", str(ref))
    body = {key: given[key] for key in SETTABLE if given.get(key) is not None}
    body = {"location": DEFAULT_LOCATION, "access": ACCESS, **body}
    body["creationTime"] = now_ms()
    return store_dataset(known, ref, body)


def drop_dataset(cursor: duckdb.DuckDBPyConnection, ref: DatasetRef, *, contents: bool) -> None:
    """Delete a dataset.

    Args:
        cursor: the transaction.
        ref: the dataset.
        contents: whether to delete its tables too.

    Raises:
        ApiError: the dataset does not exist, or has tables and `contents` is false.
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


def store_dataset(known: Resources, ref: DatasetRef, body: Json) -> Json:
    """Check and complete a dataset's resource (id, link, times, etag), and store it.

    Raises:
        ApiError: a label or an entry of `access` is not allowed.
    """
    check_labels(body.get("labels", {}))
    body["access"] = entries_of(body.get("access", []), str(ref))
    body["kind"] = "bigquery#dataset"
    body["id"] = str(ref)
    body["datasetReference"] = ref.to_api()
    body["selfLink"] = f"/bigquery/v2/projects/{ref.project}/datasets/{ref.dataset}"
    body["lastModifiedTime"] = now_ms()
    body["etag"] = etag_of(body)
    known.put(ref, ref.project, body)
    return body
