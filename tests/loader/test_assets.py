"""Assets in a load: BigQuery gets what they say, and only what differs; a bad one stops nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.format.names import Place
from tests.loader.world import DAY, PLACE, World, row
from tests.support.agent import once
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import EXPERIMENT, Spool, document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from google.cloud import bigquery

pytestmark = pytest.mark.long  # many loads, one after another

TABLE = f"raw_{EXPERIMENT}.foo1"
RAW, VIEWS = f"raw_{EXPERIMENT}", f"{EXPERIMENT}_raw"
DAY_MS = 86_400_000
EXPERIMENTS: dict[str, Any] = {
    "revision": 1,
    "owner": "Network operations",
    "classification": "internal",
    "description": "Speed tests of all nodes.",
    "consumers": ["group:readers@x.org"],
    "retention_days": 5000,
}
FOO1: dict[str, Any] = {
    "revision": 1,
    "description": "One row for each test.",
    "classification": "confidential",
    "consumers": ["user:a@x.org", "domain:x.org"],
    "retention_days": 4000,
}


@pytest.fixture
def proxy(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    """Stand between the loader and BigQuery."""
    with FaultyServer(int(world.bigquery.url.rpartition(":")[2])) as proxy:
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", proxy.url)
        yield proxy


def put(world: World, asset: dict[str, Any], datatype: str = "") -> None:
    world.put(PLACE.asset(datatype), json.dumps(asset).encode())


def prepared(world: World) -> World:
    """Store a schema, a bundle and the assets of experiment and datatype."""
    world.put_schema()
    world.put_bundle([row(1), row(2)])
    put(world, EXPERIMENTS)
    put(world, FOO1, "foo1")
    return world


def readers(world: World, dataset: str) -> list[str]:
    """Return who can read a dataset, sorted."""
    entries = world.client.get_dataset(dataset).access_entries
    return sorted(str(entry.entity_id) for entry in entries if entry.role == "READER")


def give(world: World, dataset: str, *, email: str) -> None:
    """Let a person read a dataset, as an administrator does."""
    found = world.client.get_dataset(dataset)
    found.access_entries = [*found.access_entries, reader(email)]
    world.client.update_dataset(found, ["access_entries"])


def reader(email: str) -> bigquery.AccessEntry:
    from google.cloud.bigquery import AccessEntry  # noqa: PLC0415 - used here alone

    return AccessEntry("READER", "userByEmail", email)


def writing(proxy: FaultyServer) -> list[str]:
    """Return the requests that write: all but GETs and queries that only select."""
    return [
        line
        for line, body in zip(proxy.seen, proxy.bodies, strict=True)
        if not line.startswith("GET ")
        and not (line.split("?")[0].endswith("/queries") and is_select(body))
    ]


def is_select(body: bytes) -> bool:
    query = str(json.loads(body)["query"]).lstrip().upper()
    return query.startswith(("SELECT", "WITH"))


def test_assets_are_applied_and_then_nothing_is_written(world: World, proxy: FaultyServer) -> None:
    """Ten more runs write nothing; the datatype's asset wins field by field."""
    assert prepared(world).load().code == 0

    table, index = (world.client.get_table(f"{RAW}.{name}") for name in ("foo1", "index1"))
    assert table.description == "One row for each test."
    assert table.labels["owner"] == index.labels["owner"] == "network-operations"
    assert table.labels["classification"] == "confidential"
    assert index.labels["classification"] == "internal"
    assert table.time_partitioning.expiration_ms == 4000 * DAY_MS
    assert index.time_partitioning.expiration_ms == 5000 * DAY_MS
    assert index.description.startswith("Loaded by jostler from bundles")
    for name in (RAW, VIEWS):
        dataset = world.client.get_dataset(name)
        assert dataset.description == "Speed tests of all nodes."
        assert dataset.labels["classification"] == "internal"
        assert readers(world, name) == ["a@x.org", "readers@x.org", "x.org"]
    assert world.rows() == ["2026/01/02/m1.json", "2026/01/02/m2.json"]

    assert [line for line in writing(proxy) if line.startswith("PATCH ")] != []
    assert world.load().code == 0  # it finishes what follows a first load
    proxy.seen.clear()
    proxy.bodies.clear()
    for _ in range(10):
        assert world.load().code == 0
    assert proxy.seen != []
    assert writing(proxy) == []


def test_what_a_node_says_reaches_bigquery(world: World, tmp_path: Path) -> None:
    """From a file beside the datatype schemas; a node with an older file puts nothing back."""

    def agent(name: str, revision: int) -> None:
        spool = Spool(tmp_path / name)
        spool.write(f"{name}.json", document(revision))
        asset = {"revision": revision, "owner": name, "consumers": [f"user:{name}@x.org"]}
        path = spool.root / "datatypes" / f"{EXPERIMENT}.asset.json"
        path.write_text(json.dumps(asset))
        assert once(spool, world.bucket, gcs_url=world.gcs.url).returncode == 0

    agent("first", 1)
    agent("newer", 5)
    agent("older", 4)
    assert world.load().code == 0
    assert world.client.get_table(TABLE).labels["owner"] == "newer"
    assert readers(world, RAW) == ["newer@x.org"]
    assert len(world.rows()) == 3


def test_readers_come_and_go_and_an_administrators_stay(world: World) -> None:
    """Whoever was given by hand stays, also if an asset named and forgot him."""
    prepared(world).load()
    give(world, RAW, email="admin@x.org")
    put(world, {**FOO1, "revision": 2, "consumers": ["user:b@x.org", "user:admin@x.org"]}, "foo1")
    ran = world.load()
    assert readers(world, RAW) == ["admin@x.org", "b@x.org", "readers@x.org"]
    assert readers(world, VIEWS) == ["admin@x.org", "b@x.org", "readers@x.org"]
    (event,) = [e for e in ran.events if e.get("resource") == f"{world.project}.{RAW}"]
    assert (event["event"], event["added"]) == ("asset.applied", ["user:b@x.org"])
    assert sorted(event["removed"]) == ["domain:x.org", "userByEmail:a@x.org"]

    put(world, {**FOO1, "revision": 3, "consumers": []}, "foo1")
    world.load()
    assert readers(world, RAW) == ["admin@x.org", "readers@x.org"]
    assert readers(world, VIEWS) == ["readers@x.org"]


def test_what_an_asset_no_longer_says_is_taken_back(world: World) -> None:
    """Field by field, and all of it when the asset is gone; what others set stays."""
    prepared(world).load()
    table = world.client.get_table(TABLE)
    table.labels = {"team": "x"}
    world.client.update_table(table, ["labels"])
    put(world, {"revision": 2, "owner": "Lab"}, "foo1")
    put(world, {"revision": 2})
    world.load()
    table = world.client.get_table(TABLE)
    assert (table.labels["owner"], table.labels["team"]) == ("lab", "x")
    assert "classification" not in table.labels
    assert table.time_partitioning.expiration_ms is None
    assert table.description.startswith("Loaded by jostler")
    assert readers(world, RAW) == []

    world.remove(PLACE.asset("foo1"))
    world.remove(PLACE.asset())
    world.load()
    for resource in (world.client.get_table(TABLE), world.client.get_dataset(RAW)):
        assert not {"owner", "jostler-asset"} & resource.labels.keys()
        assert resource.description.startswith("Loaded by jostler")
    assert world.client.get_table(TABLE).labels["team"] == "x"


def test_a_bad_asset_is_told_and_stops_nothing(world: World) -> None:
    """Its experiment's days are loaded; nothing that an earlier one gave is taken away."""
    prepared(world).load()
    put(world, {"revision": 2, "consumers": ["nobody"]}, "foo1")
    world.put("autoload/v1/assets/a.b.c.json", b"{}")
    world.put_bundle([row(3)])
    ran = world.load()
    assert ran.code == 1
    told = "exp.foo1.json: is not an asset: consumers[0]: expected user:, group: or"
    assert f"{world.url}/autoload/v1/assets/{told}" in ran.out
    assert f"{world.url}/autoload/v1/assets/a.b.c.json: 'b.c' is not a datatype name" in ran.out
    assert len(world.rows()) == 3
    assert world.client.get_table(TABLE).description == "One row for each test."
    assert readers(world, RAW) == ["a@x.org", "readers@x.org", "x.org"]


def test_a_reader_who_does_not_exist_keeps_no_other_away(world: World) -> None:
    """BigQuery refuses the whole list then, so the loader adds each alone and names the one."""
    prepared(world)
    people = ["user:a@x.org", "user:gone@x.invalid", "group:b@x.org"]
    put(world, {**FOO1, "consumers": people}, "foo1")
    ran = world.load()
    assert ran.code == 1
    assert readers(world, RAW) == ["a@x.org", "b@x.org", "readers@x.org"]
    told = f"{world.project}.{RAW}: user:gone@x.invalid does not become a reader: "
    assert told in ran.out
    assert world.client.get_dataset(RAW).description == "Speed tests of all nodes."
    assert len(world.rows()) == 2


def test_bigquery_that_refuses_is_told_and_the_days_are_loaded(
    world: World, proxy: FaultyServer
) -> None:
    """A missing permission is no reason not to load, and the next run tries again."""
    prepared(world)
    proxy.faults.append(
        Fault(status=403, reason="accessDenied", method="PATCH", path=f"/{RAW}?", times=1)
    )
    ran = world.load()
    assert ran.code == 1
    assert f"{world.project}.{RAW}: its asset cannot be applied: " in ran.out
    assert len(world.rows()) == 2
    # Now somebody changes the dataset between the look and the change: it is looked at again.
    proxy.faults.append(
        Fault(status=412, reason="conditionNotMet", method="PATCH", path=f"/{RAW}?", times=1)
    )
    assert world.load().code == 0
    assert readers(world, RAW) == ["a@x.org", "readers@x.org", "x.org"]
    assert not any(fault.times for fault in proxy.faults)


def test_a_dataset_of_several_experiments_gets_the_readers_of_all(world: World) -> None:
    """And what is said of none of them; a run that loads one does not forget the other."""
    views = world.project  # the name of third-party views
    for name in ("one", "two"):
        place = Place(data_dir="autoload/v1", organization="", experiment=name)
        world.put_schema(place=place)
        asset = {"revision": 1, "description": name, "consumers": [f"user:{name}@x.org"]}
        world.put(place.asset(), json.dumps(asset).encode())
    for more in (["--experiment", "one"], [], ["--experiment", "two"]):
        assert world.load("--naming", "third-party", *more).code == 0
        assert readers(world, views) == ["one@x.org", "two@x.org"]
        assert world.client.get_dataset(views).description == "Views of tables loaded by jostler."
    for name in ("one", "two"):
        assert world.client.get_dataset(name).description == name
        assert readers(world, name) == [f"{name}@x.org"]


def test_organizations_have_assets_of_their_own(world: World) -> None:
    """In v2 each has its tables, and all share the views."""
    for name in ("org1", "org2"):
        place = Place(data_dir="autoload/v2", organization=name, experiment="exp")
        world.put_bundle([row(1)], place=place)
        asset = {"revision": 1, "owner": name, "consumers": [f"user:{name}@x.org"]}
        world.put(place.asset("foo1"), json.dumps(asset).encode())
    world.put_schema(place=place)
    assert world.load().code == 0
    for name in ("org1", "org2"):
        dataset = f"autoload_v2_{name}_exp"
        assert readers(world, dataset) == [f"{name}@x.org"]
        table = world.client.get_table(f"{dataset}.foo1_raw")
        assert table.labels["owner"] == name
    assert readers(world, "mlab_v2_exp") == ["org1@x.org", "org2@x.org"]


def test_days_that_have_expired_are_not_loaded(world: World) -> None:
    """Neither anew nor in vain again and again; and nothing misses them.

    Loader and BigQuery have the clock of this machine.  No day is near the limit, so that midnight
    may pass while this runs; the limit itself is in test_names_and_plan.py.
    """
    today = datetime.now(UTC).date()
    kept, gone = ([today - timedelta(days=days) for days in ages] for ages in ((2, 0), (5, 40)))
    world.put_schema()
    put(world, {"revision": 1, "retention_days": 3})
    for number, day in enumerate([*kept, *gone]):
        world.put_bundle([row(number, day=day)], day=day)
    assert world.load().code == 0
    assert [len(world.rows(day=day)) for day in [*kept, *gone]] == [1, 1, 0, 0]
    assert sorted(line["date"] for line in world.ledger()) == kept
    assert "nothing to do" in world.load().out


def test_the_command_line_says_how_long_partitions_are_kept(world: World) -> None:
    """It wins over the asset, and only for the datatypes that it names."""
    prepared(world)

    def kept() -> list[Any]:
        tables = (world.client.get_table(f"{RAW}.{name}") for name in ("foo1", "index1"))
        return [table.time_partitioning.expiration_ms for table in tables]

    def load(*options: str) -> None:
        ran = world.load(*options)
        assert ran.code == 0, ran.err

    load("--partition-expiration", "foo1=4500")
    assert kept() == [4500 * DAY_MS, 5000 * DAY_MS]
    load("--partition-expiration", "foo1=never", "--partition-expiration", "index1=4600")
    assert kept() == [None, 4600 * DAY_MS]
    load("--partition-expiration", "foo1=4400", "--assets", "ignore")
    assert kept() == [4400 * DAY_MS, 4600 * DAY_MS]
    load()
    assert kept() == [4000 * DAY_MS, 5000 * DAY_MS]
    assert world.client.get_table(TABLE).labels["classification"] == "confidential"


def test_assets_can_be_read_only_or_ignored(world: World) -> None:
    """Then BigQuery stays as it is; `read` still takes the fraction of bad rows."""
    prepared(world)
    put(world, {**FOO1, "max_bad_fraction": 0.5}, "foo1")
    world.put_bundle([b"bad"])
    for use, status, loaded in (("ignore", 1, 0), ("read", 0, 2)):
        ran = world.load("--assets", use)
        assert ran.code == status
        assert len(world.rows(day=DAY)) == loaded
        assert readers(world, RAW) == []
        assert world.client.get_table(TABLE).time_partitioning.expiration_ms is None


def test_a_datatypes_own_fraction_of_bad_rows_counts(world: World) -> None:
    """A refused day is loaded when its asset allows for it; the others keep the run's."""
    for datatype in ("foo1", "bar1"):
        world.put_schema(datatype=datatype)
        world.put_bundle([row(1), row(2), b"bad"], datatype=datatype)
    ran = world.load()
    assert {e["status"] for e in world.sql("SELECT Status AS status FROM jostler.loads")} == {
        "rejected"
    }
    put(world, {"revision": 1, "max_bad_fraction": 0.4}, "foo1")
    ran = world.load()
    assert ran.code == 1
    assert len(world.rows()) == 2
    assert world.rows(f"raw_{EXPERIMENT}.bar1") == []
    put(world, {"revision": 2, "max_bad_fraction": 0.01}, "foo1")
    world.put_bundle([row(3)])
    assert "4 rows are bad, more than 0.01" in world.load().out
