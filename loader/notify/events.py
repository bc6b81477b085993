"""A ledger row as a CloudEvent (cloudevents.io, version 1.0.2), in the structured JSON form.

**Invariant:** the same ledger row gives the same event with the same id, in whichever run it is
sent, because ledger rows never change.

Pure.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jostler.format.urls import is_bucket_url
from loader.errors import WOULD_LOSE
from loader.explain import Flaw, advice, is_refusal, sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.format.bigquery_names import TableName

Json = dict[str, Any]
CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8"
_IDENTITY = ("table", "date", "TableMade", "Status", "Attempt", "JobID", "RunID", "Finished")
_REFUSED = (*("table", "date", "TableMade", "Status", "Attempt"), "Fingerprint", "ErrorText")
_SHOWN_MAX = 1000


class Kind(StrEnum):
    """What an event says of a day, or of a table or bucket as a whole; the end of its `type`."""

    LOADED = "loaded"
    REFUSED = "refused"
    FAILED = "failed"
    ABANDONED = "abandoned"


KIND_OF_STATUS = {
    "success": Kind.LOADED,
    "rejected": Kind.REFUSED,
    "failed": Kind.FAILED,
    "abandoned": Kind.ABANDONED,
}
"""Statuses of ledger rows that are told; of failures, the third in a row and refusals."""
WHOLES = ("table", "bucket")
"""What an event is about if not about a day."""
TYPES = (
    *(f"jostler.day.{kind}" for kind in Kind),
    *(f"jostler.{what}.{kind}" for what in WHOLES for kind in (Kind.REFUSED, Kind.FAILED)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, ready to be sent.

    Attributes:
        id: identifies the ledger row.
        type: one of `TYPES`.
        table: of the day, as project.dataset.table; or the URL of a bucket.
        day: the day; None if it is about the table or bucket as a whole.
        finished: when the ledger row was written, UTC.
        body: the bytes of the request.
    """

    id: str
    type: str
    table: str
    day: date | None
    finished: datetime
    body: bytes


def event_of(row: Mapping[str, Any], ledger: TableName, flaw: Flaw | None = None) -> Event:
    """Return the event of a ledger row.

    Args:
        row: the row as the client for BigQuery returns it.
        ledger: the ledger's table, which is the event's source.
        flaw: the first bad row of the day, if it has one.
    """
    kind = Kind.REFUSED if is_refusal(row) else KIND_OF_STATUS[row["Status"]]
    what, of = "day", f"/{row['date']}"
    if row["date"] is None:
        what, of = "bucket" if is_bucket_url(row["table"]) else "table", ""
    data = {key: _plain(value) for key, value in row.items()}
    about: dict[str, str] = {
        "specversion": "1.0",
        "id": event_id(row),
        # Full names of resources are written so by Google Cloud; project ids may have a colon.
        "source": f"//bigquery.googleapis.com/projects/{quote(ledger.project, safe=':')}"
        f"/datasets/{ledger.dataset}/tables/{ledger.table}",
        "type": f"jostler.{what}.{kind}",
        "subject": f"{row['table']}{of}",
        "time": str(data["Finished"]),
        "datacontenttype": "application/json",
    }
    if kind is not Kind.LOADED:
        # Extension attributes: lower-case names, and strings without control characters.
        about["summary"] = _line(sentence(row, flaw))
        about["advice"] = _line(advice(row, flaw))
    return Event(
        id=about["id"],
        type=about["type"],
        table=row["table"],
        day=row["date"],
        finished=row["Finished"],
        body=json.dumps({**about, "data": data}, ensure_ascii=False).encode(errors="replace"),
    )


def event_id(row: Mapping[str, Any]) -> str:
    """Return the id of a ledger row's event: 32 hex digits.

    Two loaders that refuse a day for the same objects at the same time tell one event.
    """
    same = row.get("ErrorClass") == WOULD_LOSE
    names = _REFUSED if same else _IDENTITY
    text = "\n".join(str(_plain(row.get(name))) for name in names)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: object) -> object:
    """Return a value of BigQuery as JSON has it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else value


def _line(text: str) -> str:
    """Return a text without control characters, as an attribute must be."""
    return "".join(char if char.isprintable() else " " for char in text)[:_SHOWN_MAX]
