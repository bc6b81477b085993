"""Which rows of the ledger are told: what ended, and the third failure in a row."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from loader.bigquery.ledger import Ledger
from loader.bigquery.notifications import Notifications
from loader.bigquery.warehouse import Warehouse

if TYPE_CHECKING:
    from tests.loader.world import BigQueryServer

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HISTORIES = {
    "2026-01-01": "failed failed failed failed success failed failed failed failed",
    "2026-01-02": "failed failed success failed failed",
    "2026-01-03": "rejected skipped success deleted",
    "2026-01-04": "failed marked failed marked abandoned",
    "2026-01-05": "failed failed abandoned failed failed failed",
}
TOLD = {
    ("2026-01-01", 2, "failed"),
    ("2026-01-01", 4, "success"),
    ("2026-01-01", 7, "failed"),
    ("2026-01-02", 2, "success"),
    ("2026-01-03", 0, "rejected"),
    ("2026-01-03", 2, "success"),
    ("2026-01-04", 4, "abandoned"),
    ("2026-01-05", 2, "abandoned"),
    ("2026-01-05", 5, "failed"),
}


def test_what_ends_and_each_third_failure_is_due_and_a_mark_of_an_audit_is_no_failure(
    environment: None, warehouse: BigQueryServer
) -> None:
    """By histories of days; a failure of a table as a whole is of no day."""
    project = f"p{uuid.uuid4().hex[:12]}"
    house = Warehouse(project, "US", 20.0)
    ledger = Ledger(house, "jostler")
    ledger.prepare()
    rows = [
        {
            "table": "p.d.t",
            "date": day,
            "Status": "failed" if word == "marked" else word,
            "ErrorClass": "AuditDiffers" if word == "marked" else "x",
            "Attempt": nth,
            "Finished": str(BEGAN + timedelta(hours=nth)),
        }
        for day, history in HISTORIES.items()
        for nth, word in enumerate(history.split())
    ]
    rows += [{**rows[0], "date": None, "Attempt": nth} for nth in range(3)]
    options = {"api_endpoint": warehouse.url}
    client = bigquery.Client(project, AnonymousCredentials(), client_options=options)
    assert client.insert_rows_json(f"{project}.jostler.loads", rows) == []
    client.close()

    notifications = Notifications(house, ledger, "run")
    due = notifications.due(BEGAN)
    later = notifications.due(BEGAN + timedelta(hours=4))
    house.close()

    assert {(str(row["date"]), row["Attempt"], row["Status"]) for row in due} == TOLD
    assert len(due) == len(TOLD)
    assert {row["Attempt"] for row in later} == {4, 5, 7}
    assert "Objects" not in due[0]
