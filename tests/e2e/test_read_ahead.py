"""An agent reads its first files while the bucket has not answered, and changes nothing by it."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from jostler.storage import open_storage
from tests.support.agent import RunningAgent, arguments, once
from tests.support.bucket import assert_all_archived, reasons
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import SCHEMA, Spool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.storage import Storage
    from tests.support.gcs import GcsServer

FILES = 8
# Each bundle is full after some files, so bundles are sealed before the bucket answers.
FLAGS = ("-verbose", "-missed-age", "0s", "-settle-age", "100ms", "-bundle-size-max", "1000")
EXTRA = {"name": "Extra", "type": "STRING", "description": "Only some nodes know it."}


@pytest.fixture
def bucket(
    gcs: GcsServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    name = f"ahead-{abs(hash(request.node.name)) % 10**9}"
    gcs.create_bucket(name)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    return open_storage(name)


@contextmanager
def waiting(
    gcs: GcsServer, spool: Spool, bucket: Storage, *flags: str
) -> Iterator[tuple[RunningAgent, threading.Event, FaultyServer]]:
    """Start an agent whose bucket answers nothing until the event is set."""
    answers = threading.Event()
    with FaultyServer(gcs.port, faults=[Fault(until=answers)]) as server:
        argv = arguments(spool, bucket.url.removeprefix("gs://"), *FLAGS, *flags)
        with RunningAgent(*argv, gcs_url=server.url) as agent:
            try:
                yield agent, answers, server
            finally:
                answers.set()


def read_all(agent: RunningAgent) -> None:
    """Wait until the files are read, and a bundle is sealed."""
    for _ in range(FILES):
        agent.wait_for("file.taken")
    assert any(entry["event"] == "bundle.sealed" for entry in agent.log)


def objects(bucket: Storage) -> list[str]:
    return [info.name for info in bucket.list("autoload/")]


def test_files_are_read_before_the_bucket_answers(
    tmp_path: Path, gcs: GcsServer, bucket: Storage
) -> None:
    """Until it does, no record, no object and no file comes or goes; then all are stored."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(FILES)
    with waiting(gcs, spool, bucket) as (agent, answers, server):
        read_all(agent)
        assert len(spool.left()) == FILES
        assert spool.journal() == []
        assert all(request.startswith("GET") for request in server.seen)
        answers.set()
        agent.wait_for("agent.started")
        assert agent.stop() == 0
        uploads = [n for n, request in enumerate(server.seen) if "/upload/" in request]
        first_bundle = next(n for n in uploads if b"-data.jsonl.gz" in server.bodies[n])
    assert_all_archived(spool, bucket)
    # Three table schemas and two kept ones come first: readers of a bundle find its schema.
    assert uploads.index(first_bundle) == 5


def test_what_was_read_is_read_again_if_the_bucket_has_another_schema(
    tmp_path: Path, gcs: GcsServer, bucket: Storage
) -> None:
    """A file is judged by the bucket's schema, and its bundle names that one."""
    spool = Spool(tmp_path / "spool")
    name = bucket.url.removeprefix("gs://")
    spool.schema_file("foo1").write_text(json.dumps([*SCHEMA, EXTRA]))
    assert once(spool, name, gcs_url=gcs.url).returncode == 0
    spool.schema_file("foo1").write_text(json.dumps(SCHEMA))
    spool.write_many(FILES)
    (kept,) = [name for name in objects(bucket) if "/schemas/" in name and "/foo1/" in name]
    with waiting(gcs, spool, bucket) as (agent, answers, _):
        read_all(agent)
        spool.write("extra.json", b'{"UUID":"u","Extra":"known to the bucket alone"}')
        answers.set()
        agent.wait_for("ahead.given_back")
        agent.wait_for("file.taken", file="foo1/2026/01/02/extra.json")
        assert agent.stop() == 0
    assert reasons(bucket) == {}
    assert_all_archived(spool, bucket)
    bundles = [name for name in objects(bucket) if name.endswith("-data.jsonl.gz")]
    judged = {bucket.metadata(name)["schema"] for name in bundles if "/foo1/" in name}
    assert {f"{digest}.json" for digest in judged} == {kept.rpartition("/")[2]}


def test_a_schema_that_conflicts_ends_the_agent_and_nothing_is_stored(
    tmp_path: Path, gcs: GcsServer, bucket: Storage
) -> None:
    """Its files were read, and stay."""
    spool = Spool(tmp_path / "spool")
    spool.schema_file("foo1").write_text(json.dumps([{**SCHEMA[0], "type": "INTEGER"}]))
    assert once(spool, bucket.url.removeprefix("gs://"), gcs_url=gcs.url).returncode == 0
    spool.schema_file("foo1").write_text(json.dumps(SCHEMA))
    before = objects(bucket)
    spool.write_many(FILES)
    with waiting(gcs, spool, bucket) as (agent, answers, _):
        read_all(agent)
        answers.set()
        said = agent.wait_for("?")["text"]
        assert agent.stop(0) == 1  # it ends by itself, so without a signal
    assert "foo1.table.json conflicts with the datatype's schema" in said
    assert len(spool.left()) == FILES
    assert spool.journal() == []
    assert objects(bucket) == before


def test_files_of_an_earlier_process_are_not_read_ahead(
    tmp_path: Path, gcs: GcsServer, bucket: Storage
) -> None:
    """Its bundles are stored first, so no file is stored twice."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(FILES)
    with FaultyServer(gcs.port, faults=[Fault(503, times=99, path="/upload/storage")]) as server:
        argv = arguments(spool, bucket.url.removeprefix("gs://"), *FLAGS, "-upload-schema=false")
        assert once(Spool(tmp_path / "none"), argv[1], gcs_url=gcs.url).returncode == 0
        with RunningAgent(*argv, gcs_url=server.url) as agent:
            agent.wait_for("upload.failed")
            agent.kill()
    assert spool.journal()
    with FaultyServer(gcs.port, faults=[Fault(delay_s=0.3)]) as server:
        done = once(spool, bucket.url.removeprefix("gs://"), gcs_url=server.url)
    assert done.returncode == 0
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert "journal.replayed" in events
    assert "bundle.sealed" not in events[: events.index("agent.started")]
    assert_all_archived(spool, bucket)
