"""The table of all jobs; jobs are never removed from it.

**Invariant:** a job that is not DONE runs in this process, or the next start ends it.

Each function works in the caller's transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from embedded.model.errors import ApiError
from embedded.model.names import JobRef
from embedded.store.datasets import now_ms

if TYPE_CHECKING:
    import duckdb

    from embedded.model.wire import Json


def end_interrupted(cursor: duckdb.DuckDBPyConnection) -> None:
    """End the jobs that a killed server left unfinished; their ids stay used."""
    error = ApiError(
        "backendError",
        "Error encountered during execution: the server was stopped before the job was done. "
        "Retry with a new job id.",
    )
    proto = error.proto()
    status = {"state": "DONE", "errorResult": proto, "errors": [proto]}
    rows = cursor.execute(
        "SELECT project, location, id, body FROM meta.jobs "
        "WHERE body ->> '$.status.state' <> 'DONE'"
    ).fetchall()
    for project, location, name, text in rows:
        record(cursor, JobRef(project, location, name), with_end(orjson.loads(text), status, {}))


def with_end(body: Json, status: Json, statistics: Json) -> Json:
    """Return a job's resource with state DONE, end time and error."""
    times = {"startTime": now_ms(), **body["statistics"], "endTime": now_ms()}
    return {**body, "status": status, "statistics": {**times, **statistics}}


def record(cursor: duckdb.DuckDBPyConnection, ref: JobRef, body: Json) -> None:
    """Replace a job's resource."""
    cursor.execute(
        "UPDATE meta.jobs SET body = ? WHERE project = ? AND location = ? AND id = ?",
        [orjson.dumps(body).decode(), ref.project, ref.location, ref.job],
    )


def find(
    cursor: duckdb.DuckDBPyConnection, project: str, name: str, location: str
) -> tuple[JobRef, Json] | None:
    """Return a job and its resource; None if there is none.  The location "" means any."""
    found = cursor.execute(
        "SELECT location, body FROM meta.jobs WHERE project = ? AND id = ? "
        "AND (? = '' OR lower(location) = lower(?))",
        [project, name, location, location],
    ).fetchone()
    return None if found is None else (JobRef(project, found[0], name), orjson.loads(found[1]))
