"""A run that is to end before its time, and days that wait for a slow BigQuery."""

from __future__ import annotations

import os
import re
import signal
import threading
from datetime import date, timedelta
from pathlib import Path

import pytest

from loader.cli.console import Console
from loader.loading import PACE, PACE_S, Pace
from loader.stopping import GRACE_S
from tests.loader.plain import load
from tests.loader.world import World, row, wait_until

FIRST = date(2026, 1, 1)
COUNT = 6


@pytest.fixture
def days(world: World) -> list[date]:
    """Store a bundle for each of some days."""
    world.put_schema()
    found = [FIRST + timedelta(days=number) for number in range(COUNT)]
    for day in found:
        world.put_bundle([row(1, day=day)], day=day)
    return found


def test_load_jobs_of_a_table_begin_no_faster_than_bigquery_takes_them() -> None:
    now = [0.0]
    pace = Pace(lambda: False, lambda: now[0])

    assert [pace.delay_s("t") for _ in range(PACE)] == [0.0] * PACE
    assert pace.delay_s("other") == 0.0
    now[0] = 4.0
    assert pace.delay_s("t") == PACE_S - 4
    now[0] = 2 * PACE_S
    assert pace.delay_s("t") == 0.0


@pytest.mark.long
def test_a_signal_lets_running_load_jobs_end_and_begins_no_other_day(
    world: World, days: list[date], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are told to the ledger, a line says so, and the next run does the rest."""
    world.fault("job_slow", seconds=600, job="-foo1-20260101-", times=1)

    def interrupt() -> None:
        wait_until("the first job runs", lambda: world.bigquery.faults() == [])
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.wait(60)
        world.bigquery.clear()

    stopping = threading.Event()
    event = Console.event

    def seen(console: Console, name: str, *args: str, **facts: object) -> None:
        event(console, name, *args, **facts)
        if name == "run.stopping":
            stopping.set()

    monkeypatch.setattr(Console, "event", seen)
    thread = threading.Thread(target=interrupt)
    thread.start()
    ran = load(world, "--parallel-days", "1")
    thread.join()

    assert ran.code == 1
    (said,) = (event for event in ran.events if event["event"] == "run.stopping")
    assert said["loading"] == 1
    told = world.ledger()
    assert [(line["date"], line["Status"]) for line in told] == [(days[0], "success")]
    assert f"{COUNT - 1} days are left to the next run" in ran.out
    assert load(world).code == 0
    assert sum(line["Status"] == "success" for line in world.ledger()) == COUNT


@pytest.mark.slow
def test_a_second_ctrl_c_ends_the_loader_at_once(world: World, days: list[date]) -> None:
    """Spark takes Ctrl-C for itself when it starts; the job that hangs is found by the next run."""
    world.fault("job_slow", seconds=120, job="-foo1-20260101-", times=1)
    process = world.start("--parallel-days", "1")
    assert process.stderr
    wait_until("the first job runs", lambda: world.bigquery.faults() == [])

    process.send_signal(signal.SIGINT)
    said = next(line for line in process.stderr if "run.stopping" in line)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=200)
    assert '"loading": 1' in said
    assert process.returncode == 1
    assert "asked for again" in err
    assert "Traceback" not in err
    assert len(days) == COUNT


def test_the_grace_time_is_shorter_than_that_of_the_pods() -> None:
    for path in (Path(__file__).parents[2] / "k8s/base/loader").glob("*.yaml"):
        for seconds in re.findall(r"terminationGracePeriodSeconds: (\d+)", path.read_text()):
            assert int(seconds) >= GRACE_S + 10, path
