"""The sums of the last weeks that the archive's pages show."""

from __future__ import annotations

import io
from contextlib import closing
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from jostler.archive.bigquery_tables import TableReader
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.serve.ledger import Ledger
from jostler.archive.serve.summary import (
    DAYS,
    FRESH_DAYS,
    FRESH_S,
    OF_BIGQUERY_S,
    OLD_S,
    Summary,
)
from jostler.errors import QueryError, TransientError
from jostler.format.bigquery_names import Naming
from jostler.schema import to_json
from jostler.storage import open_storage
from loader.bigquery.ledger import LOADS_FIELDS
from tests.support.archive import DAY, PLACE, Entry, MadeArchive, at, project
from tests.support.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.archive.catalogue import NodeDay, Query, Tally
    from tests.loader.world import BigQueryServer

TODAY = DAY + timedelta(days=2)


class Broken(BucketCatalogue):
    """A catalogue of which some days cannot be read."""

    broken: set[date]

    def days(self, query: Query, tally: Tally | None = None) -> Iterator[NodeDay]:
        if query.first_day in self.broken:
            raise TransientError("no answer", hint="wait")
        return super().days(query, tally)


@pytest.fixture
def made(tmp_path: Path) -> MadeArchive:
    return MadeArchive(tmp_path / "bucket")


def catalogue(made: MadeArchive) -> Broken:
    opened = Broken(open_storage(made.url), [PLACE])
    opened.broken = set()
    return opened


def test_days_are_summed_up_by_node_and_by_datatype(made: MadeArchive) -> None:
    made.put([Entry(name="a.json", start=at(1)), Entry(name="b.json", start=at(9))])
    made.put([Entry(name="c.json", start=at(5))], node="n2")
    made.put([Entry(name="d.json", start=at(5))], datatype="bar1")
    made.put_rejected([("foo1", "type"), ("foo1", "type"), ("foo1", "name")])
    summary = Summary(catalogue(made), lambda: TODAY)

    while summary.refresh(0.0):
        pass

    sums = summary.of(DAY)
    foo1 = sums.by_datatype["foo1"]
    assert (foo1.files, foo1.nodes, foo1.rejected, foo1.last) == (3, 2, 3, at(9))
    assert sums.by_node["foo1"]["n2"].files == 1
    assert sums.by_node["foo1"]["n1"].rejected == 3
    assert sums.by_datatype["bar1"].files == 1
    assert "rejected1" not in sums.by_datatype
    assert summary.problems == []
    assert summary.is_loaded("foo1", DAY) is None


def test_the_latest_days_are_read_first_and_again_soon(made: MadeArchive) -> None:
    read: list[date | None] = []

    class Watched(BucketCatalogue):
        def days(self, query: Query, tally: Tally | None = None) -> Iterator[NodeDay]:
            read.append(query.first_day)
            return super().days(query, tally)

    summary = Summary(Watched(open_storage(made.url), [PLACE]), lambda: TODAY)

    def all_read(now_s: float) -> list[date | None]:
        read.clear()
        while summary.refresh(now_s):
            pass
        return list(read)

    newest_first = [TODAY - timedelta(days=back) for back in range(DAYS)]
    assert summary.unread == DAYS
    assert all_read(1.0) == newest_first
    assert summary.unread == 0
    assert all_read(1.0 + FRESH_S - 0.1) == []
    assert all_read(1.0 + FRESH_S) == newest_first[:FRESH_DAYS]
    assert all_read(1.0 + OLD_S) == newest_first


def test_a_day_that_cannot_be_read_keeps_its_sums_and_is_named(made: MadeArchive) -> None:
    made.put([Entry(name="a.json", start=at(1))])
    opened = catalogue(made)
    summary = Summary(opened, lambda: TODAY)
    while summary.refresh(0.0):
        pass
    opened.broken = {DAY}
    while summary.refresh(OLD_S):
        pass

    assert summary.of(DAY).by_datatype["foo1"].files == 1
    assert summary.problems == [f"{DAY}: no answer (wait)"]

    opened.broken = set()
    while summary.refresh(2 * OLD_S):
        pass
    assert summary.problems == []


def test_a_bug_of_one_day_is_named_and_ends_nothing(made: MadeArchive) -> None:
    """The days after it are read all the same; what went wrong inside is for the log."""

    class Buggy(BucketCatalogue):
        def days(self, query: Query, tally: Tally | None = None) -> Iterator[NodeDay]:
            if query.first_day == TODAY:
                raise LookupError("inside")
            return super().days(query, tally)

    made.put([Entry(name="a.json", start=at(1))])
    summary = Summary(Buggy(open_storage(made.url), [PLACE]), lambda: TODAY)
    while summary.refresh(0.0):
        pass

    assert summary.of(DAY).by_datatype["foo1"].files == 1
    assert summary.problems == [f"{TODAY}: LookupError, see the log"]


def test_bigquery_is_asked_again_each_minute(made: MadeArchive) -> None:
    asked: list[tuple[date, date]] = []

    def loaded(first: date, last: date) -> set[tuple[str, date]]:
        asked.append((first, last))
        return {("foo1", DAY)} if len(asked) > 1 else set()

    summary = Summary(catalogue(made), lambda: TODAY, loaded)
    for now_s, is_loaded in ((0.0, False), (OF_BIGQUERY_S - 1, False), (OF_BIGQUERY_S, True)):
        while summary.refresh(now_s):
            pass
        assert summary.is_loaded("foo1", DAY) is is_loaded

    assert asked == [(summary.window[0], TODAY)] * 2


def test_days_that_have_left_the_window_are_forgotten(made: MadeArchive) -> None:
    today = TODAY
    summary = Summary(catalogue(made), lambda: today)
    while summary.refresh(0.0):
        pass
    first = summary.window[0]
    today += timedelta(days=1)
    while summary.refresh(1.0):
        pass

    assert summary.of(first).read_at is None
    assert summary.of(today).read_at is not None


def test_a_ledger_that_cannot_be_asked_leaves_the_question_open(made: MadeArchive) -> None:
    def loaded(_first: date, _last: date) -> set[tuple[str, date]]:
        raise QueryError("no BigQuery")

    summary = Summary(catalogue(made), lambda: TODAY, loaded)
    while summary.refresh(0.0):
        pass

    assert summary.is_loaded("foo1", DAY) is None
    assert summary.problems == ["BigQuery: no BigQuery"]


def test_the_ledger_tells_which_days_bigquery_has(
    made: MadeArchive, warehouse: BigQueryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", warehouse.url)
    name = project()
    options = {"api_endpoint": warehouse.url}
    with closing(bigquery.Client(name, AnonymousCredentials(), client_options=options)) as client:
        reader = TableReader(
            project=name, location="US", naming=Naming.MLAB, meta_dataset="jostler", patience_s=5
        )
        ledger = Ledger(
            reader,
            project=name,
            naming=Naming.MLAB,
            places=[PLACE],
            datatypes=lambda: ["foo1", "bar1"],
        )
        assert ledger.loaded(DAY, TODAY) == set()  # no ledger yet
        foo1 = f"{name}.raw_exp.foo1"
        _write(
            client,
            [
                {"table": foo1, "date": f"{DAY}", "Status": "failed", "Finished": text(at(1))},
                {
                    "table": foo1,
                    "date": f"{DAY}",
                    "Status": "success",
                    "Finished": text(at(2)),
                    "RowsRead": 7,
                },
                {"table": foo1, "date": f"{TODAY}", "Status": "failed", "Finished": text(at(3))},
                {"table": "x.y.z", "date": f"{DAY}", "Status": "success", "Finished": text(at(3))},
            ],
        )

        assert ledger.loaded(DAY, TODAY) == {("foo1", DAY)}
        rows = ledger.rows("foo1", DAY)
        with Serving() as serving:
            assert serving.show_made(made) is not None
            assert serving.get("/loads").status == 404  # no ledger
            serving.show_made(made, ledger=ledger)
            shown = serving.get("/loads").text
        reader.close()
    assert f"{foo1} {TODAY}" in shown  # the failing day
    assert f"{foo1} {DAY}" not in shown
    assert "x.y.z" not in shown  # another experiment's
    assert at(2).strftime("%H:%M:%S") in shown  # the last success
    assert [(row["status"], row["rows_read"]) for row in rows] == [("success", 7), ("failed", None)]


def text(when: datetime) -> str:
    return when.isoformat()


def _write(client: bigquery.Client, rows: list[dict[str, Any]]) -> None:
    """Make a ledger with the loader's own columns."""
    client.create_dataset("jostler")
    fields = client.schema_from_json(io.BytesIO(to_json(LOADS_FIELDS)))
    table = client.create_table(bigquery.Table(f"{client.project}.jostler.loads", schema=fields))
    assert client.insert_rows_json(table, rows) == []
