"""Which load jobs of others count as done, and when a day is loaded anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loader.bigquery import attempts
from tests.loader.plain import load
from tests.loader.test_load import FOO, names
from tests.loader.world import DAY, row

if TYPE_CHECKING:
    from tests.loader.world import World

GONE = f"DELETE FROM {FOO} WHERE date = '{DAY}' AND archiver.Filename LIKE '%m2.json'"
FORGOTTEN = f"DELETE FROM jostler.loads WHERE date = '{DAY}'"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda _: None)


@pytest.fixture
def loaded(world: World) -> World:
    """Three rows of one day, loaded, and one of them lost since."""
    world.put_schema()
    world.put_bundle([row(1), row(2), row(3)])
    assert load(world).code == 0
    world.sql(GONE)
    assert world.rows() == names(1, 3)
    return world


def interrupt(world: World) -> None:
    """End a run after its load job, before the ledger has the row."""
    world.put_schema()
    world.put_bundle([row(1)])
    world.fault("job_error", job="-loads-", reason="backendError", times=1000)
    assert load(world).code == 1
    world.bigquery.clear()


@pytest.mark.parametrize("how", ["--force", "--meta-dataset=other", "ledger rows are lost"])
def test_a_table_that_lost_rows_is_loaded_anew(loaded: World, how: str) -> None:
    """The job of the first load has the same fingerprint; its rows are not all there any more."""
    if how.startswith("--"):
        more = [how]
    else:
        loaded.sql(FORGOTTEN)
        more = []

    ran = load(loaded, *more)

    assert ran.code == 0, ran.err
    assert loaded.rows() == names(1, 2, 3)


@pytest.mark.long
def test_force_makes_a_new_job_although_an_interrupted_run_left_one(world: World) -> None:
    """Rows are there and the ledger knows nothing; forced means loaded by this run."""
    interrupt(world)

    assert load(world, "--force").code == 0

    assert [told["Attempt"] for told in world.ledger()] == [2]


@pytest.mark.long
def test_a_job_of_an_interrupted_run_whose_rows_are_there_is_adopted(world: World) -> None:
    interrupt(world)

    assert load(world).code == 0

    assert [(told["Attempt"], told["RowsLoaded"]) for told in world.ledger()] == [(1, 1)]
