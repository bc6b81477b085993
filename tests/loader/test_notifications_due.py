"""Which rows of the ledger are told: what ended, the third failure in a row, new refusals."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from jostler.format.bigquery_names import TableName
from loader.bigquery.ledger import Ledger
from loader.bigquery.notifications import Notifications
from loader.bigquery.warehouse import Warehouse
from loader.explain import is_refusal
from loader.notify.events import TYPES, event_id, event_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.loader.world import BigQueryServer

    Due = Callable[..., list[list[dict[str, Any]]]]

LEDGER = TableName(project="p", dataset="jostler", table="loads", wanted="jostler")
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
HISTORIES = {
    "2026-01-01": "failed failed failed failed success failed failed failed failed",
    "2026-01-02": "failed failed success failed failed",
    "2026-01-03": "rejected skipped success deleted",
    "2026-01-04": "failed marked failed marked abandoned",
    "2026-01-05": "failed failed abandoned failed failed failed",
    "2026-01-06": "gone gone failed failed gone failed success gone",
    "2026-01-07": "lost failed lost",
}
LABELS = {"marked": "AuditDiffers", "gone": "ObjectsGone", "lost": "WouldLoseRows"}
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
    ("2026-01-06", 0, "refused"),
    ("2026-01-06", 5, "failed"),
    ("2026-01-06", 6, "success"),
    ("2026-01-06", 7, "refused"),
    ("2026-01-07", 0, "refused"),
}


TABLES = {
    "schema": "wrong wrong fine wrong both wrong",
    "network": "down down down down fine down",
    "dormant": "down down back down down down back wrong wrong",
    "gs://b": "wrong wrong back wrong",
}
"""Runs: the table was found wrong, was fine, was wrong in one of its buckets, or could be used
again though no day was due."""
TOLD_OF_TABLES = {
    ("schema", 0, "jostler.table.refused"),
    ("schema", 3, "jostler.table.refused"),
    ("network", 2, "jostler.table.failed"),
    ("dormant", 5, "jostler.table.failed"),
    ("dormant", 7, "jostler.table.refused"),
    ("gs://b", 0, "jostler.bucket.refused"),
    ("gs://b", 3, "jostler.bucket.refused"),
}


@pytest.fixture
def due(environment: None, warehouse: BigQueryServer) -> Iterator[Due]:
    """Fill a ledger with rows; return what receivers are told of since an instant."""
    project = f"p{uuid.uuid4().hex[:12]}"
    house = Warehouse(project, "US", 20.0)
    ledger = Ledger(house, "jostler")
    ledger.prepare()

    def ask(rows: list[dict[str, Any]], *since: datetime) -> list[list[dict[str, Any]]]:
        options = {"api_endpoint": warehouse.url}
        with closing(
            bigquery.Client(project, AnonymousCredentials(), client_options=options)
        ) as client:
            assert client.insert_rows_json(f"{project}.jostler.loads", rows) == []
        notifications = Notifications(house, ledger, "run")
        return [notifications.due(instant) for instant in since]

    yield ask
    house.close()


def row(nth: int, status: str, label: str, **facts: object) -> dict[str, Any]:
    finished = str(BEGAN + timedelta(hours=nth))
    about = {"table": "p.d.t", "Attempt": nth, "RunID": f"r{nth}", "Finished": finished}
    return {**about, "Status": status, "ErrorClass": label, "ErrorText": label, **facts}


def test_what_ends_each_third_failure_and_each_new_refusal_are_due_and_a_mark_is_no_failure(
    due: Due,
) -> None:
    """By histories of days; a refusal ends no row of failures, and is told once until the end."""
    rows = [
        row(nth, "failed" if word in LABELS else word, LABELS.get(word, "x"), date=day)
        for day, history in HISTORIES.items()
        for nth, word in enumerate(history.split())
    ]

    told, later = due(rows, BEGAN, BEGAN + timedelta(hours=4))

    found = [
        (str(one["date"]), one["Attempt"], "refused" if is_gone(one) else one["Status"])
        for one in told
    ]
    assert set(found) == TOLD
    assert len(found) == len(TOLD)
    assert {one["Attempt"] for one in later} == {4, 5, 6, 7}
    assert "Objects" not in told[0]


def is_gone(row: dict[str, Any]) -> bool:
    return is_refusal(row) and row["Status"] == "failed"


def test_a_table_as_a_whole_is_told_once_until_a_run_finds_it_well(due: Due) -> None:
    """A wrong schema at once, what may pass when it failed three times."""
    rows = []
    for table, history in TABLES.items():
        for nth, word in enumerate(history.split()):
            if word in {"fine", "both"}:
                rows.append(row(nth, "success", "", date="2026-01-01", table=table))
            if word == "back":
                rows.append(row(nth, "skipped", "", table=table))
            elif word != "fine":
                kind = "transient" if word == "down" else "schema"
                rows.append(row(nth, "failed", kind, FailureClass=kind, table=table))

    (told,) = due(rows, BEGAN)

    events = [event_of(one, LEDGER) for one in told if one["date"] is None]
    found = {(one.table, int(one.finished.hour), one.type) for one in events}
    assert found == TOLD_OF_TABLES
    assert len(events) == len(TOLD_OF_TABLES)
    assert {one.type for one in events} <= set(TYPES)


def test_two_loaders_that_refuse_a_day_at_once_tell_one_event_and_a_later_loss_another() -> None:
    """The rows differ by run and time; the attempt is that of the last load."""
    first = row(1, "failed", "WouldLoseRows", date=date(2026, 1, 2), Attempt=1, Fingerprint="f")
    assert event_id(first) == event_id({**first, "RunID": "other", "Finished": "later"})
    assert event_id(first) != event_id({**first, "Attempt": 2})
    assert event_id(first) != event_id({**first, "Fingerprint": "g"})
    failed = {**first, "ErrorClass": "invalid"}
    assert event_id(failed) != event_id({**failed, "Finished": "later"})
