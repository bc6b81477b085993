"""Days that fail: tried again in the run if that can help, then by each run, then given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.loader import plain
from tests.loader.world import World, row

if TYPE_CHECKING:
    from tests.loader.world import Ran


pytestmark = pytest.mark.long  # many loads, one after another


def load(world: World, *more: str) -> Ran:
    """Run the loader for the one datatype that has bundles, which is faster."""
    return plain.load(world, "--datatype", "foo1", *more)


@pytest.fixture
def stored(world: World) -> World:
    world.put_schema()
    world.put_bundle([row(1)])
    return world


def told(world: World) -> list[tuple[Any, ...]]:
    names = ("Status", "ErrorClass", "FailureClass")
    return [tuple(line[name] for name in names) for line in world.ledger()]


def fails(world: World, *more: str) -> Ran:
    """Run the loader while BigQuery refuses the day's bundle."""
    world.fault("job_error", job="20260102", reason="invalid", message="cannot be read")
    ran = load(world, *more)
    assert ran.code == 1
    return ran


def test_a_day_whose_failure_can_pass_is_tried_three_times_in_the_run(stored: World) -> None:
    """BigQuery does not answer the request for the load job: each try lists the day again."""
    path = f"^/bigquery/v2/projects/{stored.project}/jobs$"
    stored.fault("unavailable_before", method="POST", path=path, times=2)

    ran = load(stored, "--patience", "0.001")

    assert ran.code == 0
    assert [line[0] for line in told(stored)] == ["failed", "failed", "success"]
    waits = [event["wait_s"] for event in ran.events if event["event"] == "days.tried_again"]
    assert len(waits) == 2
    assert waits[0] < waits[1]


def test_after_three_tries_the_day_is_left_to_the_next_run(stored: World) -> None:
    path = f"^/bigquery/v2/projects/{stored.project}/jobs$"
    stored.fault("unavailable_before", method="POST", path=path, times=100)

    assert load(stored, "--patience", "0.001").code == 1

    assert told(stored) == [("failed", "WarehouseError", "transient")] * 3
    stored.bigquery.clear()
    assert load(stored).code == 0


def test_a_day_that_fails_for_too_long_is_given_up_until_it_changes(stored: World) -> None:
    fails(stored, "--give-up-after", "1s")
    assert [line[0] for line in told(stored)] == ["failed"]
    stored.sql("UPDATE jostler.loads SET Finished = '2026-01-01' WHERE TRUE")

    ran = fails(stored, "--give-up-after", "30d")

    assert [line[0] for line in told(stored)] == ["failed", "failed", "abandoned"]
    assert "day.abandoned" in {event["event"] for event in ran.events}
    stored.bigquery.clear()
    again = load(stored)
    assert again.code == 1
    assert "abandoned" in again.out
    assert len(told(stored)) == 3, "it is not tried any more"

    stored.put_bundle([row(2)])
    assert load(stored).code == 0
    assert len(stored.rows()) == 2


def test_a_failure_that_no_pause_mends_is_tried_once_by_each_run(stored: World) -> None:
    for _ in range(2):
        ran = fails(stored)
        assert not [event for event in ran.events if event["event"] == "days.tried_again"]
    assert told(stored) == [("failed", "invalid", "data")] * 2
    assert load(stored).code == 0


@pytest.mark.parametrize("how", ["request", "force"])
def test_what_was_given_up_is_loaded_when_somebody_asks(stored: World, how: str) -> None:
    fails(stored)
    stored.sql("UPDATE jostler.loads SET Finished = '2026-01-01' WHERE TRUE")
    fails(stored)
    values = "('exp', 'foo1', '2026-01-02')"
    if how == "request":
        stored.sql(f"INSERT jostler.requests (Experiment, Datatype, StartDate) VALUES {values}")

    assert load(stored, *(["--force"] if how == "force" else [])).code == 0

    assert [line[0] for line in told(stored)][-2:] == ["abandoned", "success"]
    fails(stored, "--force")
    assert told(stored)[-1][0] == "failed", "the time counts anew"


def test_a_request_whose_day_is_given_up_says_so(stored: World) -> None:
    assert load(stored).code == 0
    stored.sql(
        "INSERT jostler.requests (Experiment, Datatype, StartDate) VALUES"
        " ('exp', 'foo1', '2026-01-02')"
    )
    fails(stored)
    stored.sql("UPDATE jostler.loads SET Finished = '2026-01-01' WHERE Status = 'failed'")
    stored.sql("UPDATE jostler.loads SET Finished = '2025-12-01' WHERE Status = 'success'")

    fails(stored)

    (one,) = stored.sql("SELECT * FROM jostler.request_status")
    assert (one["State"], one["DaysDone"], one["DaysAsked"]) == ("given up", 0, 1)
    assert "cannot be read" in one["Error"]
    assert len(stored.rows()) == 1, "what was loaded before is still there"
