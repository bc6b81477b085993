"""The table of all jobs; no job is ever removed from it.

**Invariant:** a job that is not DONE runs in this process, or is ended at the next start.

Each function works inside the caller's transaction.
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


def end_what_was_cut_short(cursor: duckdb.DuckDBPyConnection) -> None:
    """End the jobs of a server that was killed; their ids stay used."""
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
        record(cursor, JobRef(project, location, name), ended(orjson.loads(text), status, {}))


def ended(body: Json, status: Json, statistics: Json) -> Json:
    """Return a job's body with its end."""
    times = {"startTime": now_ms(), **body["statistics"], "endTime": now_ms()}
    return {**body, "status": status, "statistics": {**times, **statistics}}


def record(cursor: duckdb.DuckDBPyConnection, ref: JobRef, body: Json) -> None:
    """Replace a job's body."""
    cursor.execute(
        "UPDATE meta.jobs SET body = ? WHERE project = ? AND location = ? AND id = ?",
        [orjson.dumps(body).decode(), ref.project, ref.location, ref.job],
    )


def find(
    cursor: duckdb.DuckDBPyConnection, project: str, name: str, location: str
) -> tuple[JobRef, Json] | None:
    """Look a job up; a location of "" is any."""
    found = cursor.execute(
        "SELECT location, body FROM meta.jobs WHERE project = ? AND id = ? "
        "AND (? = '' OR lower(location) = lower(?))",
        [project, name, location, location],
    ).fetchone()
    return None if found is None else (JobRef(project, found[0], name), orjson.loads(found[1]))
