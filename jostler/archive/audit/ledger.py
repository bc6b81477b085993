"""The rows that an audit and a deletion read and write in the loader's ledger, and in `audits`.

**Invariant:** the numbers of a written row add up, as those of the loader's own rows do: all are 0.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostler.words import rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date, datetime

AUDITS_COLUMNS = (
    ("Time", "TIMESTAMP", "When the row was written."),
    ("Command", "STRING", "audit or delete."),
    ("RunID", "STRING", "The run; begins with when it began."),
    ("Who", "STRING", "User and host that ran the command."),
    ("Version", "STRING", "Of jostler."),
    ("Bucket", "STRING", "URL of the bucket."),
    ("Experiment", "STRING", "The experiment."),
    ("Datatype", "STRING", "The datatype."),
    ("date", "DATE", "Day of the data; null when it is about a datatype as a whole."),
    ("Kind", "STRING", "Kind of the problem; empty for a deletion."),
    ("Object", "STRING", "Object or folder that it is about."),
    ("Line", "INTEGER", "Line of the object; null when it is about all of it."),
    ("Detail", "STRING", "What is wrong."),
    ("Status", "STRING", "found or mended; of a deletion begun or done."),
    ("Done", "STRING", "What was done, or why it was not."),
    ("Objects", "INTEGER", "Objects of a deletion."),
    ("Rows", "INTEGER", "Their rows."),
    ("Bytes", "INTEGER", "Their size."),
)
_NUMBERS = (
    *("Bundles", "Rewritten", "Corrupt", "PackedBytes", "PlainBytes"),
    *("RowsRead", "RowsLoaded", "RowsRejected", "RowsRepeated", "RowsWithheld", "RowsRenewed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The newest ledger row of a day.

    Attributes:
        status: its Status.
        attempt: its Attempt.
        made_ms: when the table was made, ms since 1970.
        buckets: URLs of the buckets that the day was loaded from.
        objects: digests of the objects that it was loaded from; None of an old loader's row.
        read: rows of these objects.
        loaded: rows that were loaded.
        error: its ErrorClass.
    """

    status: str
    attempt: int
    made_ms: int
    buckets: frozenset[str]
    objects: str | None
    read: int
    loaded: int
    error: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> State:
        """Read a row of the ledger."""
        return cls(
            status=str(row["Status"]),
            attempt=int(row["Attempt"] or 0),
            made_ms=int(row["TableMade"] or 0),
            buckets=frozenset(str(row["Buckets"] or "").split()),
            objects=row["Objects"],
            read=int(row["RowsRead"] or 0),
            loaded=int(row["RowsLoaded"] or 0),
            error=str(row["ErrorClass"] or ""),
        )


def ledger_row(
    table: str,
    day: date,
    state: State,
    *,
    status: str,
    error: str,
    detail: str,
    when: datetime,
) -> dict[str, Any]:
    """Return a row that follows the newest one of a day, without who wrote it.

    Args:
        table: as project.dataset.table.
        day: of the data.
        state: the newest row.
        status: of the new row.
        error: its ErrorClass; empty if the day was deleted.
        detail: its ErrorText.
        when: now.
    """
    return {
        **dict.fromkeys(_NUMBERS, 0),
        "table": table,
        "date": day.isoformat(),
        "Status": status,
        "Attempt": state.attempt,
        "Started": rfc3339(when),
        "Finished": rfc3339(when),
        "Seconds": 0.0,
        "Reason": "audit" if error else "delete",
        "Fingerprint": "",
        "Buckets": " ".join(sorted(state.buckets)) if error else "",
        "Objects": "",
        "TableMade": state.made_ms,
        "JobID": "",
        "ErrorClass": error,
        "ErrorText": detail,
        "Errors": "",
    }
