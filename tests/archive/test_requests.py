"""How many requests reading an archive takes, counted before a real GCS server."""

from __future__ import annotations

import json
import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.catalogue import Query, Tally
from jostler.archive.reading import Row, RowReader
from jostler.cli.main import main
from jostler.storage import open_storage, upload_id
from tests.support.agent import once
from tests.support.archive import DAY, PLACE, Entry, MadeArchive
from tests.support.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.proxy import FaultyServer

MIB = 1024 * 1024
BUNDLES = int(os.environ.get("JOSTLER_BUNDLES", "60"))
"""Bundles of the day that is listed twice."""


@pytest.fixture
def bucket(faulty_gcs: FaultyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a bucket behind the proxy that counts."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", faulty_gcs.url)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    name = f"requests-{upload_id(str(tmp_path).encode())[:12]}"
    open_storage(name)
    from google.cloud import storage  # noqa: PLC0415 - after the environment is set

    with closing(storage.Client(project="p")) as client:
        client.create_bucket(name)
    faulty_gcs.faults.clear()
    return name


def reads(faulty_gcs: FaultyServer) -> list[str]:
    """Return the requests for bytes of objects."""
    return [seen for seen in faulty_gcs.seen if "/download/" in seen or "alt=media" in seen]


def test_one_row_of_a_large_bundle_costs_one_ranged_request(
    faulty_gcs: FaultyServer,
    bucket: str,
    tmp_path: Path,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    """After its index; of many rows those of near blocks share one."""
    spool = Spool(tmp_path / "spool")
    for number in range(200):
        note = os.urandom(48_000).hex()
        spool.write(f"m{number}.json", json.dumps({"UUID": note}).encode())
    size = "-bundle-size-max", "24MiB"
    assert once(spool, bucket, *size, gcs_url=faulty_gcs.url).returncode == 0
    where = ["-bucket", bucket, "-experiment", "exp"]
    assert main(["list", *where, "-name", "m77.json", "-format", "url"]) == 0
    address = capsysbinary.readouterr().out.decode().strip()
    catalogue = BucketCatalogue(open_storage(bucket), [PLACE])
    with closing(catalogue):
        (bundle,) = catalogue.bundles(Query())
        files = list(catalogue.files(Query()))
    assert bundle.size_bytes > 18 * MIB

    faulty_gcs.seen.clear()
    before_bytes = faulty_gcs.answered_bytes
    assert main(["cat", address]) == 0
    assert (
        capsysbinary.readouterr().out == (spool.originals / "foo1/2026/01/02/m77.json").read_bytes()
    )
    assert len(reads(faulty_gcs)) == 1, "the index is in the cache"
    assert faulty_gcs.answered_bytes - before_bytes < MIB, "a block, not the object"

    faulty_gcs.seen.clear()
    with closing(RowReader(open_storage)) as reader:
        rows = list(reader.read_all(files))
    assert all(isinstance(row, Row) and row.verified for row in rows)
    assert len(rows) == 200
    assert len(reads(faulty_gcs)) <= 4

    faulty_gcs.seen.clear()
    before_bytes = faulty_gcs.answered_bytes
    with closing(RowReader(open_storage)) as reader:
        rows = list(reader.read_all([files[0], files[-1]]))
    assert all(isinstance(row, Row) and row.verified for row in rows)
    assert len(reads(faulty_gcs)) == 2
    assert faulty_gcs.answered_bytes - before_bytes < MIB, "not what lies between them"


def test_a_day_that_was_listed_is_not_read_again(
    faulty_gcs: FaultyServer, bucket: str, tmp_path: Path
) -> None:
    """The second listing asks for names alone; a new bundle is the only one read."""
    made = MadeArchive(tmp_path / "made")
    storage = open_storage(bucket)

    def put(number: int) -> None:
        name = made.put([Entry(name=f"{number}-{i}") for i in range(3)], node=f"n{number % 40}")
        storage.put_new(str(name), open_storage(made.url).read(str(name)).data, {})

    def listed() -> tuple[int, int]:
        faulty_gcs.seen.clear()
        cache, tally = IndexCache(tmp_path / "cache", MIB * 64), Tally()
        with closing(BucketCatalogue(open_storage(bucket), [PLACE], cache)) as catalogue:
            found = sum(1 for _ in catalogue.files(Query(first_day=DAY, last_day=DAY), tally))
        assert tally.problems == []
        return found, len(reads(faulty_gcs))

    for number in range(BUNDLES):
        put(number)
    assert listed() == (3 * BUNDLES, BUNDLES)
    assert listed() == (3 * BUNDLES, 0)
    put(BUNDLES)
    assert listed() == (3 * BUNDLES + 3, 1)
