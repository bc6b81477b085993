"""The one DuckDB file that holds rows, descriptions of tables and every job that ever was.

**Invariant:** whatever `writing` changed is there after kill -9 if it returned, and not at all if
it did not: rows and the record of the job that wrote them are one transaction.

It refuses to open a directory that another process serves.
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
from embedded.functions.scripted import make_known

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from embedded.model.wire import Json

MEMORY_LIMIT = "800MB"  # beyond, DuckDB spills to `tmp`; the server's own memory comes on top
THREADS = 2
SETTINGS = {
    "memory_limit": MEMORY_LIMIT,
    "threads": str(THREADS),
    "autoinstall_known_extensions": "false",  # works offline, and the same everywhere
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
# No index on these: DuckDB's unique indexes refuse a delete and an insert in one transaction.
# `writing` is one at a time, and what it reads is therefore what it writes upon.


class InUseError(Exception):
    """Another process has the directory open."""


def _locked(data_dir: Path) -> BinaryIO:
    """Take the directory; DuckDB's own lock lets the same process in twice."""
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
        data_dir: directory that the store owns; made if it is not there.
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
        shutil.rmtree(self.staging, ignore_errors=True)  # what a killed load left
        self.staging.mkdir()
        self._database.execute(META)
        make_known(self._database)
        for statement in statements():
            self._database.execute(statement)
        self._database.execute("ATTACH ':memory:' AS results")
        self._writer = threading.Lock()

    def close(self) -> None:
        """Write everything into the one file and let it go."""
        with self._writer:
            self._database.close()
            self._lock.close()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a connection of its own, for one thread, that sees committed rows."""
        cursor = self._database.cursor()
        try:
            yield cursor
        finally:
            cursor.close()

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield the one connection that may write; leaving commits, an exception undoes it all."""
        with self._writer, self.reading() as cursor:
            cursor.begin()
            try:
                yield cursor
            except BaseException:
                cursor.rollback()
                raise
            cursor.commit()


class Resources:
    """Datasets or tables by name, inside of somebody's transaction.

    Args:
        cursor: the transaction.
        kind: `dataset` or `table`.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, kind: str) -> None:
        self._cursor = cursor
        self._kind = kind

    def find(self, name: object) -> Json | None:
        """Return the resource; None if there is none, or if it has expired."""
        found = self._cursor.execute(
            "SELECT body FROM meta.resources WHERE kind = ? AND id = ?", [self._kind, str(name)]
        ).fetchone()
        body = orjson.loads(found[0]) if found else None
        return None if body is None or _has_expired(body) else body

    def children(self, parent: object) -> list[Json]:
        """Return the resources of one parent that have not expired, by name."""
        return [body for body in self._all(parent) if not _has_expired(body)]

    def expired(self, parent: object) -> list[Json]:
        """Return the resources of one parent that have expired and were not dropped yet."""
        return [body for body in self._all(parent) if _has_expired(body)]

    def _all(self, parent: object) -> list[Json]:
        rows = self._cursor.execute(
            "SELECT body FROM meta.resources WHERE kind = ? AND parent = ? ORDER BY id",
            [self._kind, str(parent)],
        ).fetchall()
        return [orjson.loads(row[0]) for row in rows]

    def put(self, name: object, parent: object, body: Json) -> None:
        """Store the resource in place of the one of that name."""
        self.drop(name)
        self._cursor.execute(
            "INSERT INTO meta.resources VALUES (?, ?, ?, ?)",
            [self._kind, str(name), str(parent), orjson.dumps(body).decode()],
        )

    def drop(self, name: object) -> None:
        """Forget the resource."""
        self._cursor.execute(
            "DELETE FROM meta.resources WHERE kind = ? AND id = ?", [self._kind, str(name)]
        )


def _has_expired(body: Json) -> bool:
    until_ms = body.get("expirationTime")
    return until_ms is not None and int(until_ms) <= time.time_ns() // 1_000_000
