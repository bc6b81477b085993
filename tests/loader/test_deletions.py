"""Objects that are gone from the bucket do not take their rows along without being told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from loader.bigquery import attempts, partition_load
from loader.bigquery.warehouse import Job
from tests.loader.plain import load
from tests.loader.test_load import names
from tests.loader.world import DAY, row

if TYPE_CHECKING:
    from tests.loader.world import World


pytestmark = pytest.mark.long  # many loads, one after another


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


@pytest.fixture
def killed(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A day that was loaded from two objects by a run that could not tell the ledger."""
    monkeypatch.setattr(attempts, "pause", lambda _: None)
    world.put_schema()
    world.put_bundle([row(1)])
    world.put_bundle([row(2)])
    world.fault("job_error", job="-loads-", reason="backendError", times=1000)
    assert load(world).code == 1
    world.bigquery.clear()
    assert world.ledger() == []
    return world


@pytest.mark.parametrize("manifest", [False, True])
def test_a_deletion_before_the_ledger_knew_the_load_is_reported(
    world: World, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, manifest: bool
) -> None:
    """The run was killed after its load job; the job itself says what it loaded."""
    if manifest:
        monkeypatch.setattr(partition_load, "URIS_MAX", 1)
    killed: World = request.getfixturevalue("killed")
    killed.remove(next(name for name in killed.names("autoload/v1/exp/foo1") if "000001" in name))
    killed.put_bundle([row(3)])

    for _ in range(2):  # the ledger's row of the failure must not make the next run forget it
        refused = load(killed)

        assert refused.code == 1
        assert "1 of the 2 objects that it was loaded from are gone" in refused.out
        assert killed.rows() == names(1, 2)
    assert load(killed, "--accept-deletions").code == 0
    assert killed.rows() == names(2, 3)
    assert load(killed).code == 0


def test_a_killed_load_of_objects_that_are_there_is_followed_by_the_next(killed: World) -> None:
    """A bundle has come since."""
    killed.put_bundle([row(3)])

    assert load(killed).code == 0
    assert killed.rows() == names(1, 2, 3)


def test_a_copy_in_staging_stands_for_its_bundle() -> None:
    """A killed run had rewritten a bundle; what it loaded is told by the name of the copy."""
    bundle = SimpleNamespace(name="autoload/v1/exp/foo1/2026/01/02/b-data.jsonl.gz", node="n")
    found = SimpleNamespace(day=SimpleNamespace(bundles=[bundle]))
    run = SimpleNamespace(accept_deletions=False)
    jobs = partition_load.DayJobs(None, found, None, run, "")  # type: ignore[arg-type]

    def lost(*uris: str) -> str:
        return jobs.lost(Job(id="j", labels={}, rows=1, reason="", errors=(), uris=uris))

    assert lost("gs://b/staging/d.t/20260102/run/000017-b-data.jsonl.gz") == ""
    assert (
        lost("gs://b/staging/x/000017-c-data.jsonl.gz", f"gs://b/{bundle.name}")[:8] == "1 of the"
    )


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
    shrunk.age_ledger()
    shrunk.remove(next(name for name in shrunk.names("autoload/v1/exp/foo1") if "000003" in name))

    ran = load(shrunk)

    assert ran.code == 1, ran.err
    assert "1 of the 2 objects that it was loaded from are gone" in ran.out
    assert {told["date"] for told in shrunk.ledger()} == {DAY}
