"""Expiration of partitions: rows of a day are deleted so many milliseconds after the day's end.

**Invariant:** the rows of expired partitions are gone after each write, and after the first request
over HTTP of a day (UTC).  A partition ends at midnight, so with an expiration of whole days nobody
sees them; with another one they may stay until the next write.

Rows without a day never expire.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

from embedded.model.columns import quoted
from embedded.model.names import TableRef
from embedded.store.catalog import Table

if TYPE_CHECKING:
    import duckdb

    from embedded.store.database import Store

DAY_MS = 86_400_000


class Expiry:
    """Deletes the rows of expired partitions of a database.

    Args:
        store: the database; from now on each of its writes ends with a deletion.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._day = ""
        store.at_commit = expire

    def new_day(self) -> None:
        """Delete what has expired, if nobody asked since midnight."""
        today = datetime.now(UTC).date().isoformat()
        if today != self._day:
            self._day = today
            with self._store.writing():
                pass


def expire(cursor: duckdb.DuckDBPyConnection) -> None:
    """Delete the rows of all expired partitions."""
    found = cursor.execute(
        "SELECT body FROM meta.resources WHERE kind = 'table' AND contains(body, 'expirationMs')"
    ).fetchall()
    for (text,) in found:
        body = orjson.loads(text)
        table = Table(TableRef(*body["tableReference"].values()), body)
        lifetime_ms = int((body.get("timePartitioning") or {}).get("expirationMs") or 0)
        if not lifetime_ms or not table.partition_column:
            continue
        # A partition ends with the midnight after its day, UTC ("Managing partitioned tables").
        end = f"epoch_ms(CAST({quoted(table.partition_column)} AS DATE) + INTERVAL 1 DAY)"
        now = f"epoch_ms(now()) - {lifetime_ms}"
        cursor.execute(f"DELETE FROM {table.storage} WHERE {end} <= {now}")  # noqa: S608 - quoted
