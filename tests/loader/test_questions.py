"""The ten questions of examples/questions, asked of tables that the programs themselves made."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from jostler.archive.audit.bigquery_tables import open_tables
from loader.bigquery.ledger import (
    COMPACTION_FIELDS,
    LOADS_FIELDS,
    NOTIFICATION_FIELDS,
    REJECT_FIELDS,
    Ledger,
)
from loader.bigquery.requests import REQUEST_DAYS_FIELDS, REQUEST_FIELDS, Requests
from loader.bigquery.warehouse import Warehouse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.loader.world import BigQueryServer

    Rows = list[dict[str, Any]]
    Answers = Callable[[str], Rows]

ROOT = Path(__file__).parents[2]
QUESTIONS = ROOT / "examples/questions"
NOW = datetime(2026, 3, 15, 12, tzinfo=UTC)
"""When the questions are asked: fixed, or answers would differ when a test runs over midnight."""
TODAY = NOW.date()
# The embedded BigQuery takes no literal DATE '…' in an alias that HAVING names.
CLOCK = {
    "CURRENT_TIMESTAMP()": f"TIMESTAMP '{NOW}'",
    "CURRENT_DATE()": f"DATE({TODAY:%Y, %-m, %-d})",
}


def day(back: int) -> date:
    return TODAY - timedelta(days=back)


def loaded(table: str, back: int, **facts: object) -> dict[str, Any]:
    """Make a ledger row of a day so many days ago, a success that began and ended at its end."""
    counts = dict.fromkeys(("RowsRead", "RowsLoaded"), 100)
    none = dict.fromkeys(("RowsRejected", "RowsRepeated", "RowsWithheld", "Verified"), 0)
    return {
        "table": f"p.raw_demo.{table}",
        "Experiment": "demo",
        "Datatype": table,
        "date": str(day(back)),
        "Status": "success",
        "Attempt": 1,
        "Started": str(NOW - timedelta(minutes=10)),
        "Finished": str(NOW - timedelta(minutes=5)),
        "Seconds": 300.0,
        "Bundles": 2,
        "PackedBytes": 500_000_000,
        "Distrusted": "",
        "RunID": "run1",
        "Host": "host1",
        **counts,
        **none,
        **facts,
    }


LOADS = (
    loaded("fine", 0),
    loaded("fine", 1, RowsRepeated=7),
    loaded("worse", 8, RowsRejected=1, RowsLoaded=99),
    loaded(
        "worse",
        1,
        RowsRejected=20,
        RowsLoaded=80,
        RunID="run2",
        Distrusted="no index of b2",
        Verified=2,
    ),
    loaded("late", 5, RequestID="r1", RequestedAt=str(NOW - timedelta(minutes=15))),
    loaded(
        "late",
        3,
        Status="failed",
        RowsLoaded=0,
        RowsWithheld=100,
        ErrorClass="accessDenied",
        ErrorText="no right",
        FailureClass="permission",
        RequestID="r1",
        RequestedAt=str(NOW - timedelta(minutes=15)),
    ),
)
REJECT = {
    "table": "p.raw_demo.worse",
    "date": str(day(1)),
    "ArchiveURL": "gs://b/o",
    "Line": 3,
    "Reason": "type",
    "Field": "raw.Count",
    "RunID": "run2",
}
TOLD = {
    "EventID": "e1",
    "Receiver": "r",
    "Address": "https://x.example",
    "Recorded": str(NOW),
    "Written": str(NOW),
}


@pytest.fixture(scope="module")
def answers(environment: None, warehouse: BigQueryServer) -> Iterator[Answers]:
    """Make the tables as the programs do, fill them, and return what asks a question."""
    project = f"p{uuid.uuid4().hex[:12]}"
    house = Warehouse(project, "US", 20.0)
    ledger = Ledger(house, "jostler")
    ledger.prepare()
    ledger.prepare_notifications()
    Requests(house, ledger, "run1").prepare()
    house.close()
    with closing(
        open_tables(
            project=project, location="US", naming="mlab", meta_dataset="jostler", who="ann@host1"
        )
    ) as audits:
        about = {"Experiment": "demo", "Datatype": "fine", "Bucket": "gs://b", "Time": str(NOW)}
        found = {**about, "Command": "audit", "Kind": "no-index", "Status": "found"}
        audits.write([found, {**found, "Status": "mended"}])
    options = {"api_endpoint": warehouse.url}
    with closing(
        bigquery.Client(project, AnonymousCredentials(), client_options=options)
    ) as client:
        _fill(client)

        def ask(name: str) -> Rows:
            sql = (QUESTIONS / f"{name}.sql").read_text()
            for function, instant in CLOCK.items():
                sql = sql.replace(function, instant)
            assert "CURRENT_" not in sql
            return [dict(row.items()) for row in client.query_and_wait(sql)]

        yield ask


def _fill(client: bigquery.Client) -> None:
    def insert(table: str, rows: Rows) -> None:
        assert client.insert_rows_json(f"{client.project}.jostler.{table}", rows) == []

    insert("loads", [*LOADS])
    insert("reject_rows", [REJECT, {**REJECT, "Line": 4}, {**REJECT, "Line": 5, "Reason": "name"}])
    names = "RequestID, Experiment, StartDate, EndDate, RequestedBy, Reason, RequestedAt"
    days = f"'{day(5)}', '{day(3)}', 'ann@x.org', 'node 7'"
    asked = f"TIMESTAMP '{NOW - timedelta(minutes=15)}'"
    values = f"('r1', 'demo', {days}, {asked})"
    client.query_and_wait(f"INSERT INTO jostler.requests ({names}) VALUES {values}")
    taken = {"RequestID": "r1", "table": "p.raw_demo.late", "State": "taken", "Written": str(NOW)}
    insert("request_days", [{**taken, "date": str(day(back))} for back in (5, 3)])
    waiting = {**TOLD, "State": "waiting", "Tries": 2, "Error": "x.example answers 500"}
    other = {**TOLD, "EventID": "e2"}
    insert(
        "notifications",
        [
            {**TOLD, "State": "subscribed", "Tries": 0, "EventID": None},
            waiting,
            {**other, "State": "waiting", "Tries": 1},
            {**other, "State": "delivered", "Tries": 2},
        ],
    )
    client.create_dataset("demo_raw")
    raw = "STRUCT<Datatype STRING, Filename STRING, TimeAdded TIMESTAMP>"
    client.query_and_wait(f"CREATE TABLE demo_raw.index1 (date DATE, raw {raw})")
    files = ", ".join(
        f"(DATE '{TODAY}', STRUCT('fine', 'f{n}', TIMESTAMP '{NOW - timedelta(minutes=10 + n)}'))"
        for n in range(101)
    )
    late = f"(DATE '{TODAY}', STRUCT('fine', 'not yet', TIMESTAMP '{NOW}'))"
    client.query_and_wait(f"INSERT INTO demo_raw.index1 (date, raw) VALUES {files}, {late}")


def test_who_loaded_what_and_when(answers: Answers) -> None:
    runs = {row["run"]: row for row in answers("who_loaded_what")}
    assert (runs["run1"]["loaded"], runs["run1"]["failed"], runs["run1"]["tables"]) == (4, 1, 3)
    assert (runs["run2"]["loaded"], runs["run2"]["n_rows"], runs["run2"]["host"]) == (
        1,
        80,
        "host1",
    )


def test_whose_rejects_rose(answers: Answers) -> None:
    """Only of the datatype that got worse, with what is wrong most often."""
    (worse,) = answers("rejects_rose")
    assert worse == {
        "table_name": "p.raw_demo.worse",
        "bad_this_week": 0.2,
        "bad_last_week": 0.01,
        "reason": "type",
        "field": "raw.Count",
        "times": 2,
    }


def test_which_datatype_is_late(answers: Answers) -> None:
    assert [(row["table_name"], row["days_behind"]) for row in answers("late")] == [
        ("p.raw_demo.late", 5)
    ]


def test_how_long_from_file_to_row(answers: Answers) -> None:
    """Files of 5 to 105 minutes before the load's end; the one that came after it is not loaded."""
    (fine,) = answers("file_to_row")
    assert fine == {
        "datatype": "fine",
        "files": 101,
        "median_s": 55 * 60,
        "p95_s": 100 * 60,
        "longest_s": 105 * 60,
    }


def test_which_days_fail_and_why(answers: Answers) -> None:
    (failing,) = answers("failing")
    assert (failing["table_name"], failing["date"], failing["class"], failing["failures"]) == (
        "p.raw_demo.late",
        day(3),
        "permission",
        1,
    )


def test_how_much_came(answers: Answers) -> None:
    found = {row["date"]: row for row in answers("volume")}
    yesterday = found[day(1)]
    assert (yesterday["tables"], yesterday["bundles"], yesterday["packed_gb"]) == (2, 4, 1.0)
    assert (yesterday["loaded"], yesterday["rejected"], yesterday["repeated"]) == (180, 20, 7)


def test_whose_indexes_were_not_trusted(answers: Answers) -> None:
    (row,) = answers("distrusted")
    assert (row["table_name"], row["why"], row["bundles_read"]) == (
        "p.raw_demo.worse",
        "no index of b2",
        2,
    )


def test_what_came_of_requests(answers: Answers) -> None:
    """Of two days one is loaded, after ten minutes; the other one failed."""
    (found,) = answers("requested")
    assert (found["request"], found["who"], found["reason"]) == ("r1", "ann@x.org", "node 7")
    assert (found["state"], found["days_done"], found["days_asked"]) == ("failed", 1, 2)
    assert (found["n_rows"], found["seconds"]) == (100, 600)
    assert "no right" in found["error"]


def test_who_was_not_told(answers: Answers) -> None:
    """The event that was delivered at last is not shown."""
    (row,) = answers("undelivered")
    assert (row["events"], row["tries"], row["why"]) == (1, 2, "x.example answers 500")


def test_what_audits_found(answers: Answers) -> None:
    (row,) = answers("audited")
    assert (row["kind"], row["found_or_begun"], row["mended_or_done"], row["who"]) == (
        "no-index",
        1,
        1,
        "ann@host1",
    )


def test_there_are_ten_questions_each_documented_and_tested() -> None:
    """A query that is in neither the examples' page nor a test of this file is an orphan."""
    names = {path.stem for path in QUESTIONS.glob("*.sql")}
    assert len(names) == 10
    page, tests = (ROOT / "examples/README.md").read_text(), Path(__file__).read_text()
    for name in names:
        assert f"questions/{name}.sql" in page
        assert f'answers("{name}")' in tests


def test_each_column_of_the_loaders_tables_has_a_description() -> None:
    tables = (LOADS_FIELDS, REJECT_FIELDS, COMPACTION_FIELDS, NOTIFICATION_FIELDS)
    for fields in (*tables, REQUEST_FIELDS, REQUEST_DAYS_FIELDS):
        assert [field.name for field in fields if not field.description.endswith(".")] == []
