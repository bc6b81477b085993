"""Objects that are gone from the bucket do not take their rows along without being told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from google.cloud import bigquery

from tests.loader.plain import load
from tests.loader.test_load import names
from tests.loader.world import DAY, row

if TYPE_CHECKING:
    from tests.loader.world import World


@pytest.fixture
def shrunk(world: World) -> World:
    """A day that was loaded from two objects, of which one is gone; a new one has come."""
    world.put_schema()
    gone = world.put_bundle([row(1)])
    world.put_bundle([row(2)])
    assert load(world).code == 0
    world.remove(gone)
    world.put_bundle([row(3)])
    return world


@pytest.mark.parametrize("more", [[], ["--force"]])
def test_a_day_that_lost_objects_is_refused_until_that_is_accepted(
    shrunk: World, more: list[str]
) -> None:
    """A lifecycle rule, or somebody's hand, has deleted a bundle."""
    refused = load(shrunk, *more)

    assert refused.code == 1
    assert "1 of the 2 objects that it was loaded from are gone" in refused.out
    assert shrunk.rows() == names(1, 2)

    assert load(shrunk, *more, "--accept-deletions").code == 0
    assert shrunk.rows() == names(2, 3)
    assert load(shrunk).code == 0


def test_an_object_written_anew_under_its_name_is_not_lost(world: World) -> None:
    world.put_schema()
    name = world.put_bundle([row(1)])
    assert load(world).code == 0
    other = world.put_bundle([row(2)])
    world.put(name, world.get(other))
    world.remove(other)

    assert load(world).code == 0
    assert world.rows() == names(2)


def test_a_ledger_of_before_tells_by_the_number_of_objects(shrunk: World) -> None:
    """Older versions of the loader wrote no digests of objects; their ledger gets the column."""
    (told,) = shrunk.ledger()
    table = shrunk.client.get_table("jostler.loads")
    columns = [column for column in table.schema if column.name != "Objects"]
    shrunk.client.delete_table(table)
    older = bigquery.Table(table.reference, columns)
    older.time_partitioning = table.time_partitioning
    shrunk.client.create_table(older)
    line = json.loads(json.dumps({**told, "Objects": None}, default=str))
    line = {name: value for name, value in line.items() if value is not None}
    shrunk.client.load_table_from_json([line], older).result()
    shrunk.remove(next(name for name in shrunk.names("autoload/v1/exp/foo1") if "000003" in name))

    ran = load(shrunk)

    assert ran.code == 1, ran.err
    assert "1 of the 2 objects that it was loaded from are gone" in ran.out
    assert {told["date"] for told in shrunk.ledger()} == {DAY}
