"""Ledger and rejects are written in few jobs, each row once, success after all that it counts."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from loader.bigquery import attempts
from tests.loader.plain import REFUSED, load
from tests.loader.world import row

if TYPE_CHECKING:
    from tests.loader.world import World

FIRST = date(2025, 1, 1)
BAD_ROWS_MAY_BE_MANY = ("--max-bad-fraction", "0.9")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda _: None)


def days(world: World, count: int) -> list[date]:
    """Store a good and a bad row for each of so many days."""
    world.put_schema()
    found = [FIRST + timedelta(days=number) for number in range(count)]
    for day in found:
        world.put_bundle([row(1, day=day)], day=day)
        world.put_bundle([b"bad"], day=day)
    return found


def jobs(world: World, table: str) -> list[str]:
    return [job.job_id for job in world.client.list_jobs() if f"-{table}-" in job.job_id]


@pytest.mark.long
def test_many_days_are_told_in_few_jobs(world: World) -> None:
    count = 24
    days(world, count)

    assert load(world, *BAD_ROWS_MAY_BE_MANY).code == 0

    assert [told["Status"] for told in world.ledger()] == ["success"] * count
    assert len(world.rejects()) == count
    assert len(jobs(world, "loads")) < count / 4
    assert len(jobs(world, "reject_rows")) < count / 4


@pytest.mark.long
@pytest.mark.parametrize("table", ["loads", "reject_rows"])
def test_what_a_run_could_not_tell_is_told_by_the_next_and_once(world: World, table: str) -> None:
    """Rows are loaded, the table takes no jobs: the days have failed, and the next run tells."""
    days(world, 2)
    world.fault("job_error", job=f"-{table}-", reason="backendError", times=1000)
    assert load(world, *BAD_ROWS_MAY_BE_MANY).code == 1
    assert {told["Status"] for told in world.ledger()} <= {"failed"}
    world.bigquery.clear()

    assert load(world, *BAD_ROWS_MAY_BE_MANY).code == 0

    success = [told for told in world.ledger() if told["Status"] == "success"]
    assert [(told["Attempt"], told["RowsLoaded"]) for told in success] == [(1, 1)] * 2
    assert len(world.rejects()) == 2


def test_a_row_that_a_table_refuses_fails_its_own_day(world: World) -> None:
    """One job for many days must not make one day's trouble that of all."""
    first, second = days(world, 2)
    world.put_bundle([REFUSED], day=second)

    assert load(world, *BAD_ROWS_MAY_BE_MANY).code == 1

    status = {told["date"]: told["Status"] for told in world.ledger()}
    assert status == {first: "success", second: "failed"}


def test_a_lost_reply_writes_a_batch_once(world: World) -> None:
    days(world, 1)
    upload = f"/upload/bigquery/v2/projects/{world.project}/jobs"
    world.fault("unavailable_after", method="POST", path=upload, times=1)

    assert load(world, *BAD_ROWS_MAY_BE_MANY).code == 0

    assert len(world.ledger()) == len(world.rejects()) == 1
