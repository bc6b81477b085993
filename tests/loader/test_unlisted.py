"""A bucket, or a table's folder in it, that cannot be listed: who is told, and until when."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from loader.cli.main import main
from tests.loader.plain import load
from tests.loader.world import DAY, PLACE, row
from tests.support.proxy import Fault
from tests.support.receiver import ReceivingServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.loader.world import World

pytestmark = pytest.mark.long  # many loads, one after another

SCHEMAS, FOLDER = (
    "prefix=autoload%2Fv1%2Ftables%2F",
    f"prefix=autoload%2Fv1%2F{PLACE.experiment}%2Ffoo1",
)


@pytest.fixture
def hook() -> Iterator[ReceivingServer]:
    with ReceivingServer() as server:
        yield server


@pytest.fixture(autouse=True)
def stored(world: World) -> None:
    """One day of one table is loaded."""
    world.put_schema()
    world.put_bundle([row(1)])
    assert load(world).code == 0


def refuse(world: World, path: str, status: int = 403) -> None:
    world.gcs.faults = [Fault(status=status, method="GET", path=path, times=1000)]


def status(world: World, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[Any]]:
    capsys.readouterr()
    code = main(["status", "--project", world.project, "--format", "json", *words])
    return code, json.loads(capsys.readouterr().out)["tables"]


def test_a_bucket_that_may_not_be_listed_is_told_once_until_it_may(
    world: World, hook: ReceivingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """By an event of the bucket: no table is known, and no asset can be read."""
    for told in (1, 2):
        refuse(world, SCHEMAS)
        for _ in range(2):
            assert load(world, "--notify", hook.url).code == 1
            assert len(hook.events) == told
        code, (bucket, table) = status(world, capsys, PLACE.experiment)
        assert (code, bucket["table"], table["failing"]) == (1, world.url, [])
        assert bucket["failing"][0]["times"] == 2
        world.gcs.faults = []
        assert load(world, "--notify", hook.url).code == 0
        code, (table,) = status(world, capsys)
        assert (code, table["failing"]) == (0, [])
    assert load(world, "--notify", hook.url).code == 0

    first, second = hook.events
    assert first["id"] != second["id"]
    assert first["type"] == "jostler.bucket.refused"
    assert first["subject"] == world.url
    assert first["summary"].startswith(f"bucket {world.url} was refused (")
    assert first["advice"].startswith(f"permission: bucket {world.url} ")
    assert first["data"]["table"] == world.url
    assert [one["Reason"] for one in world.ledger() if one["Status"] == "skipped"] == [
        "well again",
        "well again",
    ]


def test_a_bucket_that_fails_for_a_while_is_told_the_third_time(
    world: World, hook: ReceivingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a day or a table is."""
    refuse(world, SCHEMAS, status=503)
    for told in (0, 0, 1, 1):
        assert load(world, "--notify", hook.url, "--patience", "0.1").code == 1
        assert len(hook.events) == told
    assert hook.events[0]["type"] == "jostler.bucket.failed"
    assert "it is tried again by itself" in hook.events[0]["summary"]

    # What no run has met for a week is a bucket that nobody loads any more.
    assert status(world, capsys)[0] == 1
    world.sql(
        "UPDATE jostler.loads SET Finished = TIMESTAMP_SUB(Finished, INTERVAL 9 DAY)"
        " WHERE STARTS_WITH(`table`, 'gs://')"
    )
    assert status(world, capsys)[0] == 0


def test_a_wrong_name_of_a_bucket_before_the_first_load_makes_no_ledger(
    world: World, hook: ReceivingServer
) -> None:
    """Whoever gave it sees it."""
    ran = load(world, "--bucket", "gs://no-such", "--meta-dataset", "new", "--notify", hook.url)
    assert ran.code == 1
    assert "gs://no-such: there is no such bucket" in ran.err
    assert hook.events == []
    assert [one.dataset_id for one in world.client.list_datasets() if one.dataset_id == "new"] == []


def test_a_folder_that_may_not_be_listed_is_told_of_its_table_alone(
    world: World, hook: ReceivingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other tables are loaded; it is well again though no day of it is due."""
    world.put_schema(datatype="bar1")
    world.put_bundle(
        [row(2, day=DAY + timedelta(days=1))], day=DAY + timedelta(days=1), datatype="bar1"
    )
    with ReceivingServer() as own:
        asset = {"revision": 1, "notify": [own.url]}
        world.put(f"autoload/v1/assets/{PLACE.experiment}.foo1.json", json.dumps(asset).encode())
        refuse(world, FOLDER)
        for _ in range(2):
            assert load(world, "--notify", hook.url).code == 1
        (event,) = own.events
    assert [one["type"] for one in hook.events].count("jostler.day.loaded") == 1
    assert event in hook.events
    assert event["type"] == "jostler.table.refused"
    assert event["subject"] == f"{world.project}.raw_exp.foo1"
    code, tables = status(world, capsys)
    assert code == 1
    assert [one["table"].rpartition(".")[2] for one in tables if one["failing"]] == ["foo1"]

    world.gcs.faults = []
    assert load(world, "--notify", hook.url).code == 0
    assert status(world, capsys)[0] == 0
    assert len(hook.events) == 2


def test_looking_records_nothing(world: World) -> None:
    """Neither a plan nor a comparison nor the status is a run that failed."""
    before = world.ledger()
    for path in (SCHEMAS, FOLDER):
        refuse(world, path)
        assert load(world, "--dry-run").code == 1
        main(["status", "--project", world.project, "--bucket", world.url])
    assert world.ledger() == before
