"""What older days, tables and ledgers left behind does not lead a run astray."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from jostler.format.names import Place
from loader.bigquery import attempts
from loader.cli.command import command
from loader.cli.console import Console
from loader.cli.options import parse
from loader.plan import due
from loader.run import Loader
from tests.loader.plain import load, verified
from tests.loader.test_load import FOO, names
from tests.loader.test_owners import unfinished
from tests.loader.world import DAY, PLACE, Ran, row
from tests.support.proxy import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from loader.plan.discover import Table
    from loader.plan.due import Refusal, TableDay
    from loader.spark.wave import VerifiedDay
    from tests.loader.world import World


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda _: None)


def test_a_table_made_again_is_known_by_its_own_rows(world: World) -> None:
    """The ledger has higher attempts of the table that was removed."""
    world.put_schema()
    for number in (1, 2):
        world.put_bundle([row(number)])
        assert load(world).code == 0
    world.client.delete_table(FOO)

    assert load(world).days[FOO, str(DAY)]["attempt"] == 1
    assert load(world).days == {}
    assert world.rows() == names(1, 2)
    assert [told["Attempt"] for told in world.sql("SELECT Attempt FROM jostler.days")] == [1]
    world.remove(world.names("autoload/v1/exp/foo1")[0])
    assert "are gone" in load(world, "--force").out


def test_a_plan_can_be_asked_for_with_an_older_ledger(world: World) -> None:
    """A plan changes nothing, so it may be the first to meet a ledger without today's columns."""
    world.put_schema()
    world.put_bundle([row(1)])
    assert load(world).code == 0
    world.age_ledger()
    world.put_bundle([row(2)])

    ran = load(world, "--dry-run")

    assert ran.code == 0, ran.err
    assert "1 days would be loaded" in ran.out


def test_a_first_load_is_not_finished_without_one_of_its_buckets(world: World) -> None:
    """A bucket whose schema cannot be read is left out of the table, with all of its days."""
    world.put_schema()
    world.put_bundle([row(1)])
    other = world.storage.create_bucket(f"{world.bucket}-b")
    other.blob(PLACE.table_schema("foo1")).upload_from_string("no JSON")
    both = ["--bucket", world.url, "--bucket", f"gs://{other.name}", "--period=daily"]

    assert load(world, *both).code == 1
    assert world.rows() == names(1)
    assert unfinished(world)
    other.blob(PLACE.table_schema("foo1")).upload_from_string(world.get(PLACE.table_schema("foo1")))
    assert load(world, *both).code == 0
    assert not unfinished(world)


def test_a_view_of_several_organizations_loses_none_that_fails(world: World) -> None:
    places = [
        Place(data_dir="autoload/v2", organization=name, experiment="exp")
        for name in ("one", "two")
    ]
    for number, place in enumerate(places):
        world.put_schema(place=place)
        world.put_bundle([row(number)], place=place)
    assert load(world).code == 0
    view = "mlab_v2_exp.foo1_raw"
    assert len(world.rows(view)) == 2
    world.put("autoload/v2/tables/one/exp/foo1.table.json", b"no JSON")

    assert load(world).code == 1
    assert len(world.rows(view)) == 2


def test_a_refused_day_is_no_load_job(world: World) -> None:
    world.put_schema()
    world.put_bundle([b"bad"])
    assert load(world).code == 1
    world.put_bundle([row(1)])
    ran = load(world, "--jobs-per-day=1", "--max-bad-fraction=0.5")
    assert ran.code == 0, ran.out
    assert world.rows() == names(1)


def test_a_refused_day_counts_no_load_job_in_the_metrics(world: World, tmp_path: Path) -> None:
    """Its attempt is that of the last load, which an earlier run has done."""
    world.put_schema()
    world.put_bundle([row(1)])
    assert load(world).code == 0
    world.put_bundle([b"bad"])
    path = tmp_path / "jostler.prom"

    assert load(world, f"--metrics=file://{path}").code == 1
    counted = [line for line in path.read_text().splitlines() if "operations_total{" in line]
    assert not counted


def test_a_day_that_cannot_be_listed_again_has_failed(world: World) -> None:
    """Another loader was at it; whether it loaded all that the bucket holds is not known."""
    world.put_schema()
    world.put_bundle([row(1)])
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)
    loaded: list[Ran] = []

    def verify(days: list[TableDay]) -> list[VerifiedDay]:
        world.put_bundle([row(2)])
        loaded.append(load(world))
        return [verified(world, day, loader.run_id) for day in days]

    def plan(
        ready: list[Table], force: bool, *, take: bool = False
    ) -> tuple[list[TableDay], list[Refusal]]:
        if loaded:  # the second time
            listing = "prefix=autoload%2Fv1%2Fexp%2Ffoo1"
            world.gcs.faults.append(Fault(status=403, times=1, path=listing))
        return planned(ready, force, take=take)

    options = parse(world.arguments(), {}, datetime.now(UTC).date())
    loader = Loader(options, console, verify)
    planned, loader.planner.plan = loader.planner.plan, plan  # type: ignore[method-assign]
    code = command(options, loader, console)

    assert code == 1
    assert "could not be listed again" in out.getvalue()
    assert "another loader has loaded" not in out.getvalue()


def test_a_day_that_an_older_version_refused_is_judged_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of the Go agent's index, and rows after a bad first one, were bad for version 1."""
    world.put_schema()
    world.put_bundle([b"bad"])
    with monkeypatch.context() as older:
        older.setattr(due, "FORMAT_VERSION", 1)
        assert load(world).code == 1

    assert [told["reason"] for told in load(world).days.values()] == ["changed"]
    assert "nothing has changed since" in load(world).out
