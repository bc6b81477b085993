"""The identities of files that were seen, in bounded memory.

**Invariant:** it holds at most `KEYS_MOST` of them in memory; the others lie in a temporary file of
SQLite, which the system removes when it is closed, even if this process is killed.

An identity is a hash of 64 bits with a key of this process.  Two different files of one group have
the same one by accident once in 30 million days of a million files of that group.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import orjson

from jostler.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS_MOST = 100_000
"""Some 8 MiB."""
_CACHE_KIB = 8 * 1024
_TABLE = """\
CREATE TABLE seen (
  class INTEGER, key INTEGER, time INTEGER, PRIMARY KEY (class, key)) WITHOUT ROWID"""
_ADD = "INSERT OR IGNORE INTO seen SELECT ?, value, ? FROM json_each(?)"
_EARLIER = """\
SELECT key FROM seen WHERE class = ? AND time < ? AND key IN (SELECT value FROM json_each(?))"""


class Seen:
    """Identities by group.  Close it at the end."""

    def __init__(self, most: int = KEYS_MOST) -> None:
        self._most = most
        self._sets: dict[str, set[int]] = {}
        self._count = 0
        self._classes: dict[str, int] = {}
        self._time = 0
        self._db: sqlite3.Connection | None = None

    def close(self) -> None:
        """Forget all."""
        self._sets.clear()
        if self._db:
            self._db.close()

    def add(self, group: str, keys: Sequence[int]) -> set[int] | None:
        """Add identities.

        Args:
            group: keys of other groups are not compared with these.
            keys: 64 bits each, with a sign.

        Returns:
            Those that had been added before; None if there are none, and all of `keys` differ.

        Raises:
            StorageError: there is no room for the temporary file.
        """
        if self._db is None:
            known = self._sets.setdefault(group, set())
            new = set(keys)
            earlier = known & new if not known.isdisjoint(new) else set()
            known |= new
            self._count += len(new) - len(earlier)
            if self._count > self._most:
                self._spill()
            return None if len(new) == len(keys) and not earlier else earlier
        return self._add(self._db, group, keys)

    def _add(self, db: sqlite3.Connection, group: str, keys: Sequence[int]) -> set[int] | None:
        """Add identities to the file, in order: neighbours lie on one page."""
        number = self._classes.setdefault(group, len(self._classes))
        self._time += 1
        text = orjson.dumps(sorted(keys)).decode()
        try:
            if db.execute(_ADD, (number, self._time, text)).rowcount == len(keys):
                return None
            return {key for (key,) in db.execute(_EARLIER, (number, self._time, text))}
        except sqlite3.Error as exc:
            raise _error(exc) from exc

    def _spill(self) -> None:
        """Move all into a temporary file."""
        try:
            # An empty name stands for a temporary file of its own, which is written to when its
            # pages do not fit into the cache (sqlite.org/inmemorydb.html).
            db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            self._db = db
            for pragma in (f"cache_size = -{_CACHE_KIB}", "journal_mode = OFF"):
                db.execute(f"PRAGMA {pragma}").fetchall()
            db.execute(_TABLE)
            db.execute("BEGIN")  # never committed: nobody else reads it
        except sqlite3.Error as exc:
            raise _error(exc) from exc
        for group, known in self._sets.items():
            self._add(db, group, list(known))
        self._sets.clear()


def _error(exc: sqlite3.Error) -> StorageError:
    return StorageError(
        f"the identities of a day's files do not fit into a temporary file: {exc}",
        hint="set SQLITE_TMPDIR to a directory with room: 40 bytes for each file of the day",
    )
