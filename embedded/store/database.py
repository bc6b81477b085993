"""The DuckDB file with all rows, resources of datasets and tables, and jobs.

**Invariant:** changes made in `writing` are durable when the context ends; after a crash inside of
it none of them remains.  A job's rows and the job's end are written in one transaction.

Only one process at a time can open a data directory.
"""

from __future__ import annotations

import fcntl
import shutil
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import duckdb
import orjson

from embedded.functions.macros import statements
from embedded.functions.scripted import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from embedded.model.wire import Json

MEMORY_LIMIT = "800MB"  # of DuckDB, which spills to `tmp`; the process needs more
THREADS = 2
SETTINGS = {
    "memory_limit": MEMORY_LIMIT,
    "threads": str(THREADS),
    "autoinstall_known_extensions": "false",  # no downloads, so it works offline
    "autoload_known_extensions": "false",
    "enable_external_file_cache": "false",
}
META = """
SET GLOBAL TimeZone = 'UTC';
CREATE SCHEMA IF NOT EXISTS data;
CREATE SCHEMA IF NOT EXISTS meta;
CREATE TABLE IF NOT EXISTS meta.resources (kind VARCHAR, id VARCHAR, parent VARCHAR, body VARCHAR);
CREATE TABLE IF NOT EXISTS meta.jobs (project VARCHAR, location VARCHAR, id VARCHAR, body VARCHAR);
"""
# No unique index: DuckDB's refuse a delete and an insert of one key in one transaction.
# `writing` takes a lock, so nothing changes between its reads and its writes.


class InUseError(Exception):
    """Another process has opened the data directory."""


def _locked(data_dir: Path) -> BinaryIO:
    """Lock the directory; DuckDB's own lock lets one process open a file twice."""
    lock = (data_dir / "lock").open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        lock.close()
        raise InUseError(f"{data_dir}: is it served already?") from exc
    return lock


class Store:
    """The open database.

    Args:
        data_dir: the data directory; created if it does not exist.

    Attributes:
        at_commit: called in each transaction that writes, before it ends.
    """

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self.staging = data_dir / "staging"
        self._lock = _locked(data_dir)
        settings: dict[str, str | bool | int | float | list[str]] = {
            **SETTINGS,
            "temp_directory": str(data_dir / "tmp"),
        }
        self._database = duckdb.connect(str(data_dir / "bigquery.duckdb"), config=settings)
        shutil.rmtree(self.staging, ignore_errors=True)  # files that a killed load job left
        self.staging.mkdir()
        self._database.execute(META)
        register(self._database)
        for statement in statements():
            self._database.execute(statement)
        self._database.execute("ATTACH ':memory:' AS results")
        self._writer = threading.Lock()
        self.at_commit: Callable[[duckdb.DuckDBPyConnection], None] = lambda _cursor: None

    def close(self) -> None:
        """Write the log into the file and close it."""
        with self._writer:
            self._database.close()
            self._lock.close()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a new connection, for one thread, that sees committed changes."""
        cursor = self._database.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield the only connection that may write; commit at the end, or roll back on an error."""
        with self._writer, self.reading() as cursor:
            cursor.begin()
            try:
                yield cursor
                self.at_commit(cursor)
            except BaseException:
                cursor.rollback()
                raise
            cursor.commit()


class Resources:
    """The stored resources of datasets or of tables, in the caller's transaction.

    Args:
        cursor: the transaction.
        kind: `dataset` or `table`.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, kind: str) -> None:
        self._cursor = cursor
        self._kind = kind

    def find(self, name: object) -> Json | None:
        """Return a resource; None if it does not exist or has expired."""
        found = self._cursor.execute(
            "SELECT body FROM meta.resources WHERE kind = ? AND id = ?", [self._kind, str(name)]
        ).fetchone()
        body = orjson.loads(found[0]) if found else None
        return None if body is None or _has_expired(body) else body

    def children(self, parent: object) -> list[Json]:
        """Return the unexpired resources of a project or dataset, sorted by name."""
        return [body for body in self._all(parent) if not _has_expired(body)]

    def expired(self, parent: object) -> list[Json]:
        """Return the resources of a project or dataset that have expired and still exist."""
        return [body for body in self._all(parent) if _has_expired(body)]

    def _all(self, parent: object) -> list[Json]:
        rows = self._cursor.execute(
            "SELECT body FROM meta.resources WHERE kind = ? AND parent = ? ORDER BY id",
            [self._kind, str(parent)],
        ).fetchall()
        return [orjson.loads(row[0]) for row in rows]

    def put(self, name: object, parent: object, body: Json) -> None:
        """Store a resource; replace the one with the same name."""
        self.drop(name)
        self._cursor.execute(
            "INSERT INTO meta.resources VALUES (?, ?, ?, ?)",
            [self._kind, str(name), str(parent), orjson.dumps(body).decode()],
        )

    def drop(self, name: object) -> None:
        """Delete a resource."""
        self._cursor.execute(
            "DELETE FROM meta.resources WHERE kind = ? AND id = ?", [self._kind, str(name)]
        )


def _has_expired(body: Json) -> bool:
    until_ms = body.get("expirationTime")
    return until_ms is not None and int(until_ms) <= time.time_ns() // 1_000_000
