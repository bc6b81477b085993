"""Parsed index objects on the local disk, by name and version.

**Invariant:** it only saves work.  An object in a bucket never changes under its version, so what
is here is never out of date; a cache that cannot be used (no room, no permission, damaged) is as
one that is empty.  Its file does not grow beyond `max_bytes` for long: the folders that were used
least recently are removed first.

SQLite keeps it in one file: an archive has a hundred thousand small index objects in a month.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

T = TypeVar("T")

FILE = "index-1.sqlite"  # another number when the tables or the form of the rows change
FILLED = 0.8
BUSY_S = 2.0
_USED_S = 3600
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_REFUSED = {  # no room, or not ours to write
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH),
}
_TABLES = """\
CREATE TABLE IF NOT EXISTS folders (
  id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE, used INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS objects (
  id INTEGER PRIMARY KEY, folder INTEGER NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL,
  datatype TEXT NOT NULL, node TEXT NOT NULL, files INTEGER NOT NULL, size_bytes INTEGER NOT NULL,
  packed_bytes INTEGER NOT NULL, first_us INTEGER NOT NULL, last_us INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL, UNIQUE (folder, name));
CREATE TABLE IF NOT EXISTS contents (id INTEGER PRIMARY KEY, rows BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS rejects (id INTEGER PRIMARY KEY, counts BLOB NOT NULL);
"""
_NAMES = (
    *("name", "version", "datatype", "node", "files", "size_bytes"),
    *("packed_bytes", "first_us", "last_us"),
)
_COLUMNS = ", ".join(_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is known of one index object without its rows.

    Attributes:
        id: the key of its rows; 0 before it is stored.
        name: of the object, without its folder.
        version: of the object.
        datatype: of its files.
        node: of its files.
        files: their number; 0 for an index without rows.
        size_bytes: their bytes.
        packed_bytes: bytes of the data object; 0 when unknown.
        first_us: the earliest instant of its files, microseconds since 1970.
        last_us: the latest one.
    """

    id: int = 0
    name: str
    version: str
    datatype: str
    node: str
    files: int
    size_bytes: int
    packed_bytes: int
    first_us: int
    last_us: int


class IndexCache:
    """The cache in one directory.  Its methods may be called from several threads.

    Args:
        directory: is created when something is stored first; None for no cache.
        max_bytes: the size of the file.
    """

    def __init__(self, directory: Path | None, max_bytes: int) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def known(self, folder: str) -> dict[str, Kept]:
        """Return what is known of the index objects of a folder, by name."""

        def read(db: sqlite3.Connection) -> dict[str, Kept]:
            found = db.execute("SELECT id, used FROM folders WHERE url = ?", (folder,)).fetchone()
            if not found:
                return {}
            now = int(time.time())
            if now - found[1] > _USED_S:
                with db:
                    db.execute("UPDATE folders SET used = ? WHERE id = ?", (now, found[0]))
            sql = f"SELECT id, {_COLUMNS} FROM objects WHERE folder = ?"  # noqa: S608 - ours alone
            return {row[1]: _kept(row) for row in db.execute(sql, (found[0],))}

        return self._try(read) or {}

    def rows(self, kept: Kept) -> bytes | None:
        """Return the packed rows of an index object; None if they are gone meanwhile."""

        def read(db: sqlite3.Connection) -> bytes | None:
            sql = "SELECT rows FROM contents WHERE id = ?"
            found = db.execute(sql, (kept.id,)).fetchone()
            return bytes(found[0]) if found else None

        return self._try(read)

    def rejects(self, kept: Kept) -> bytes | None:
        """Return what `put_rejects` has stored; None if nothing."""

        def read(db: sqlite3.Connection) -> bytes | None:
            sql = "SELECT counts FROM rejects WHERE id = ?"
            found = db.execute(sql, (kept.id,)).fetchone()
            return bytes(found[0]) if found else None

        return self._try(read)

    def put_rejects(self, kept: Kept, counts: bytes) -> None:
        """Store the counts of a bundle of rejected files."""

        def write(db: sqlite3.Connection) -> None:
            with db:
                db.execute("INSERT OR REPLACE INTO rejects VALUES (?, ?)", (kept.id, counts))

        if kept.id:
            self._try(write)

    def put(self, folder: str, objects: Iterable[tuple[Kept, bytes]]) -> None:
        """Store index objects of a folder with their packed rows, in one transaction."""

        def write(db: sqlite3.Connection) -> None:
            with db:
                db.execute(
                    "INSERT INTO folders (url, used) VALUES (?, ?)"
                    " ON CONFLICT (url) DO UPDATE SET used = excluded.used",
                    (folder, int(time.time())),
                )
                sql = "SELECT id FROM folders WHERE url = ?"
                (key,) = db.execute(sql, (folder,)).fetchone()
                for kept, rows in objects:
                    _insert(db, key, kept, rows)
            self._shrink(db)

        self._try(write)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._db:
                self._db.close()
            self._db, self._directory = None, None

    def _shrink(self, db: sqlite3.Connection) -> None:
        """Remove the folders used least recently until the file is below its bound."""
        over = _file_bytes(db) - self._max_bytes
        if over <= 0:
            return
        over += int(self._max_bytes * (1 - FILLED))
        with db:
            for key, held in db.execute(
                "SELECT f.id, (SELECT SUM(stored_bytes) FROM objects o WHERE o.folder = f.id)"
                " FROM folders f ORDER BY used, id"
            ).fetchall():
                mine = "(SELECT id FROM objects WHERE folder = ?)"
                db.execute(f"DELETE FROM contents WHERE id IN {mine}", (key,))  # noqa: S608 - ours alone
                db.execute(f"DELETE FROM rejects WHERE id IN {mine}", (key,))  # noqa: S608 - as above
                db.execute("DELETE FROM objects WHERE folder = ?", (key,))
                db.execute("DELETE FROM folders WHERE id = ?", (key,))
                over -= held or 0
                if over <= 0:
                    break
        # DELETE only marks pages as free inside of the file.  The pragma gives them back, one for
        # each row that is fetched, and the checkpoint shortens the log (sqlite.org/pragma.html).
        db.execute("PRAGMA incremental_vacuum").fetchall()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run work on the file; after an error go on without the cache."""
        with self._lock:
            if self._directory is None:
                return None
            try:
                self._db = self._db or _open(self._directory)
                return work(self._db)
            except sqlite3.DatabaseError as exc:
                code = (exc.sqlite_errorcode or 0) & 0xFF  # the upper bits have details
                if code in _REFUSED:
                    self._drop()
                    self._directory = None
                elif code not in _BUSY:  # damaged, or other tables: the next call starts anew
                    self._drop()
                    for name in (FILE, f"{FILE}-wal", f"{FILE}-shm"):
                        (self._directory / name).unlink(missing_ok=True)
            except OSError:
                self._directory = None
        return None

    def _drop(self) -> None:
        if self._db:
            self._db.close()
        self._db = None


def _open(directory: Path) -> sqlite3.Connection:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    db = sqlite3.connect(directory / FILE, timeout=BUSY_S, check_same_thread=False)
    try:
        # It has an effect only before the first table is made.
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = WAL").fetchall()
        # With a write-ahead log, a power failure may then undo the last transactions and damages
        # nothing (sqlite.org/pragma.html): good enough for a cache, and much faster.
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(_TABLES)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _insert(db: sqlite3.Connection, folder: int, kept: Kept, rows: bytes) -> None:
    db.execute(
        "DELETE FROM contents WHERE id = (SELECT id FROM objects WHERE folder = ? AND name = ?)",
        (folder, kept.name),
    )
    values = [getattr(kept, name) for name in _NAMES]
    marks = ", ".join("?" * (len(values) + 2))
    made = db.execute(
        f"INSERT OR REPLACE INTO objects (folder, {_COLUMNS}, stored_bytes) VALUES ({marks})",  # noqa: S608 - ours alone
        (folder, *values, len(rows)),
    )
    db.execute("INSERT INTO contents VALUES (?, ?)", (made.lastrowid, rows))


def _kept(row: tuple[Any, ...]) -> Kept:
    return Kept(id=row[0], **dict(zip(_NAMES, row[1:], strict=True)))


def _file_bytes(db: sqlite3.Connection) -> int:
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(size)
