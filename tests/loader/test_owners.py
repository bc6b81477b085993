"""A table belongs to one experiment; a first load is done when all of it was seen."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from jostler.format.names import Place
from loader.bigquery import attempts
from tests.loader.plain import load
from tests.loader.test_load import FOO, names
from tests.loader.world import DAY, row
from tests.support.proxy import Fault

if TYPE_CHECKING:
    from tests.loader.world import World

OLD, OTHER = (
    Place(data_dir="autoload/v1", organization="", experiment="a_b"),
    Place(data_dir="autoload/v1", organization="", experiment="a-b"),
)
SHARED = "raw_a_b.foo1"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda _: None)


def put(world: World, place: Place, number: int) -> None:
    world.put_schema(place=place)
    world.put_bundle([row(number)], place=place)


@pytest.mark.parametrize("more", [[], ["--experiment=a-b"]])
def test_a_newcomer_does_not_take_over_the_table_of_another_experiment(
    world: World, more: list[str]
) -> None:
    """`a-b` is listed before `a_b`; both would be raw_a_b.foo1, which is that of a_b."""
    put(world, OLD, 1)
    assert load(world).code == 0
    put(world, OTHER, 2)
    world.put_bundle([row(3)], place=OLD)

    ran = load(world, *more)

    assert ran.code == 1
    assert "belongs to experiment a_b" in ran.out
    assert world.rows(SHARED) == (names(1) if more else names(1, 3))


def test_a_table_made_before_owners_were_noted_keeps_its_experiment(world: World) -> None:
    """Its description says whose it is."""
    put(world, OLD, 1)
    assert load(world).code == 0
    table = world.client.get_table(SHARED)
    table.labels = dict.fromkeys(table.labels)
    world.client.update_table(table, ["labels"])
    put(world, OTHER, 2)

    assert load(world, "--experiment=a-b").code == 1
    assert world.rows(SHARED) == names(1)
    assert load(world, "--experiment=a_b").code == 0
    assert world.client.get_table(SHARED).labels["jostler-owner"].startswith("a_b-")


def test_two_new_experiments_that_would_share_a_table_are_both_refused(world: World) -> None:
    put(world, OLD, 1)
    put(world, OTHER, 2)

    ran = load(world)

    assert ran.code == 1
    assert ran.out.count("foo1: both autoload/v1/a") == 2
    assert not [job for job in world.client.list_jobs() if "foo1" in job.job_id]


def unfinished(world: World) -> bool:
    return world.client.get_table(FOO).labels.get("jostler-first-load") == "unfinished"


def test_a_first_load_whose_listing_failed_is_not_finished(world: World) -> None:
    """One 403 on the listing of bundles: the older days would never be seen."""
    world.put_schema()
    world.put_bundle([row(1)])
    listing = "prefix=autoload%2Fv1%2Fexp%2Ffoo1"
    world.gcs.faults.append(Fault(status=403, times=1, path=listing))

    assert load(world, "--period=daily").code == 1
    assert world.gcs.faults[0].times == 0
    assert unfinished(world)
    assert load(world, "--period=daily").code == 0
    assert world.rows() == names(1)
    assert not unfinished(world)


def test_a_first_load_with_a_refused_day_is_not_finished(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])
    world.put_bundle([b"bad"])

    assert load(world, "--period=daily").code == 1
    assert unfinished(world)
    assert load(world, "--period=daily", "--max-bad-fraction=0.5").code == 0
    assert not unfinished(world)


def test_given_days_hold_for_a_new_table_too(world: World) -> None:
    """Somebody who names days wants these; the rest is still to come."""
    world.put_schema()
    world.put_bundle([row(1)])
    old = date(2025, 6, 7)
    world.put_bundle([row(2, day=old)], day=old)

    assert load(world, f"--start={DAY:%Y/%m/%d}").code == 0
    assert world.rows() == names(1)
    assert world.rows(day=old) == []
    assert load(world, "--period=daily").code == 0
    assert world.rows(day=old) == names(2, day=old)
