"""What killed runs left in staging goes, and nothing else."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from loader.bucket import open_bucket
from loader.staging import STALE_S, remove_stale
from tests.loader.plain import load
from tests.loader.world import row

if TYPE_CHECKING:
    from pathlib import Path

    from tests.loader.world import World

ORPHANS = [
    "raw_exp.foo1/20260102/20240101t000000-abcdef/000001-x-data.jsonl.gz",
    "raw_gone.bar1/20240102/20240101t000000-abcdef/manifest.txt",
]
OTHERS = [
    "raw_exp.foo1/20260102/20241301t000000-abcdef/x",
    "raw_exp.foo1/20260102/20240101t000000-abcdef/deeper/x",
    "notes.txt",
]


def test_each_run_removes_old_orphans_of_any_day_and_table(world: World, tmp_path: Path) -> None:
    """Also one with nothing to load; what a run of today has staged stays."""
    world.put_schema()
    world.put_bundle([row(1)])
    staging = tmp_path / "staging"
    old_s = time.time() - STALE_S - 60
    young = [f"raw_exp.foo1/20260102/{time.strftime('%Y%m%dt%H%M%S')}-abcdef/x"]
    fresh = ["raw_exp.foo1/20260102/20240101t000000-aaaaaa/written-just-now"]
    for name in [*ORPHANS, *OTHERS, *young, *fresh]:
        path = staging / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        if name not in fresh:
            os.utime(path, (old_s, old_s))

    ran = load(world, "--staging", staging.as_uri())

    assert ran.code == 0, ran.err
    left = {str(p.relative_to(staging)) for p in staging.rglob("*") if p.is_file()}
    assert left == {*OTHERS, *young, *fresh}


def test_orphans_in_cloud_storage_are_removed_when_they_are_old_enough(world: World) -> None:
    for name in [*ORPHANS, *OTHERS]:
        world.put(f"loader-staging/{name}", b"")
    world.put(ORPHANS[0], b"beside staging")
    bucket = open_bucket(world.url, 20.0)

    assert remove_stale(bucket, "loader-staging", time.time()) == (0, [])
    removed, failed = remove_stale(bucket, "loader-staging", time.time() + STALE_S + 60)

    assert (removed, failed) == (2, [])
    assert world.names() == sorted([ORPHANS[0], *(f"loader-staging/{name}" for name in OTHERS)])


def test_staging_that_cannot_be_listed_fails_no_run(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])

    ran = load(world, "--staging", "gs://no-such-bucket/x")

    assert ran.code == 0
    (told,) = (event for event in ran.events if event["event"] == "staging.not_removed")
    assert "there is no such bucket" in told["error"]
