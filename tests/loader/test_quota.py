"""A table takes so many load jobs a day: what is beyond waits, and the run says so."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.loader.plain import load
from tests.loader.test_load import FOO, names
from tests.loader.world import row

if TYPE_CHECKING:
    from tests.loader.world import World

OLD = [date(2025, 1, 1) + timedelta(days=number) for number in range(5)]


def put(world: World, *days: date) -> None:
    world.put_schema()
    for day in days:
        world.put_bundle([row(1, day=day)], day=day)


def loaded(world: World) -> list[date]:
    return sorted(told["date"] for told in world.ledger() if told["Status"] == "success")


@pytest.mark.long
def test_a_first_load_beyond_the_quota_is_cut_and_goes_on_the_next_day(world: World) -> None:
    """The days of the period come first, then the oldest."""
    today = datetime.now(UTC).date()
    put(world, *OLD, today)
    few = ["--period=daily", "--jobs-per-day=3"]

    first = load(world, *few)

    assert first.code == 1
    assert "3 of 6 due days wait for a later run" in first.out
    assert loaded(world) == [*OLD[:2], today]
    again = load(world, *few)  # on the same day
    assert again.code == 1
    assert "3 of 3 due days wait" in again.out
    assert loaded(world) == [*OLD[:2], today]
    assert "1 days would be loaded" in load(world, "--dry-run", "--jobs-per-day=4").out

    assert load(world, "--period=daily").code == 0  # the quota is renewed
    assert loaded(world) == [*OLD, today]
    assert "jostler-first-load" not in world.client.get_table(FOO).labels
    assert world.rows(day=today) == names(1, day=today)
