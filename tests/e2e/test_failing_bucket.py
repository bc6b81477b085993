"""The bucket fails in every way it can; files wait on disk and then flow again by themselves."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from jostler.storage import open_storage
from tests.support.agent import RunningAgent, arguments, once
from tests.support.bucket import assert_all_archived, problems, rows
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import Spool, document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.storage import Storage
    from tests.support.gcs import GcsServer

QUICK = ("-bundle-age-max", "100ms", "-settle-age", "100ms")
UPLOAD = "/upload/storage/v1/"


@pytest.fixture
def proxy(gcs: GcsServer) -> Iterator[FaultyServer]:
    with FaultyServer(gcs.port) as server:
        yield server


@pytest.fixture
def bucket(
    gcs: GcsServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Storage:
    name = f"failing-{abs(hash(request.node.name)) % 10**9}"
    gcs.create_bucket(name)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    return open_storage(name)


def name_of(bucket: Storage) -> str:
    return bucket.url.removeprefix("gs://")


@pytest.mark.parametrize(
    "case",
    [
        (Fault(status=503), "TransientError"),
        (Fault(status=429), "QuotaError"),
        (Fault(status=403, reason="forbidden"), "AuthError"),
        (Fault(status=403, reason="rateLimitExceeded"), "QuotaError"),
        (Fault(status=400), "RefusedError"),
        (Fault(status=0), "TransientError"),
        (Fault(status=503, after=True), "TransientError"),
        (Fault(status=0, after=True), "TransientError"),
    ],
    ids=["503", "429", "403", "rate", "400", "drop", "503-after-commit", "drop-after-commit"],
)
@pytest.mark.parametrize("what", ["foo1/", pytest.param("index1/", marks=pytest.mark.long)])
def test_an_upload_that_fails_is_tried_again(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage, case: tuple[Fault, str], what: str
) -> None:
    """Whatever the error, and whether or not the work was done, each file ends up stored once."""
    fault, error_class = case
    spool = Spool(tmp_path / "spool")
    spool.write_many(4)
    assert once(spool, name_of(bucket), gcs_url=proxy.url).returncode == 0  # the schemas
    spool.write_many(4, first=4)
    # The object's name stands in the multipart body; only the order of uploads tells them apart.
    skip = Fault(times=1 if what == "index1/" else 0, path=UPLOAD, delay_s=0.001)
    proxy.faults = [
        skip,
        Fault(**{**vars(fault), "times": 2 if not fault.after else 1, "path": UPLOAD}),
    ]

    done = once(spool, name_of(bucket), gcs_url=proxy.url)

    assert done.returncode == 0, done.stdout
    assert f'"error_class":"{error_class}"' in done.stdout
    assert_all_archived(spool, bucket)


def test_an_outage_stops_reading_and_ends_by_itself(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage
) -> None:
    """While uploads fail the disk is the queue; afterwards everything flows without a restart."""
    spool = Spool(tmp_path / "spool")
    argv = arguments(spool, name_of(bucket), *QUICK, "-bundle-size-max", "20KB")
    with RunningAgent(*argv, gcs_url=proxy.url) as agent:
        agent.wait_for("agent.started")
        proxy.faults = [Fault(status=503, times=10**6, method="POST")]
        spool.write_many(50)
        agent.wait_for("upload.failed")
        spool.write_many(200, first=50)
        assert len(spool.left()) == 250
        proxy.faults = []
        while spool.left():
            agent.wait_for("bundle.stored")
        assert agent.stop() == 0
    assert_all_archived(spool, bucket)
    failures = [entry for entry in agent.log if entry["event"] == "upload.failed"]
    assert len(failures) <= 2  # one class of error is said once, then once a minute


def test_a_name_that_another_agent_took_is_left_to_it(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage
) -> None:
    """Two agents with one node name by mistake both keep their data."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(3)
    taken: list[str] = []
    argv = arguments(spool, name_of(bucket), *QUICK)
    with RunningAgent(*argv, gcs_url=proxy.url) as agent:
        agent.wait_for("agent.started")
        proxy.faults = [Fault(status=503, times=10**6, method="POST")]
        spool.write_many(3, first=3)
        failed = agent.wait_for("upload.failed")
        taken.append(failed["what"])
        bucket.put_new(failed["what"], b"another agent's bytes", {})
        proxy.faults = []
        agent.wait_for("bundle.name_taken")
        while spool.left():
            agent.wait_for("bundle.stored")
        assert agent.stop() == 0
    assert bucket.read(taken[0]).data == b"another agent's bytes"
    bucket.remove(taken[0])
    assert_all_archived(spool, bucket)


def test_a_slow_bucket_is_waited_for(tmp_path: Path, proxy: FaultyServer, bucket: Storage) -> None:
    """A reply that takes its time is no failure."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(3)
    proxy.faults = [Fault(delay_s=0.3, times=4)]

    done = once(spool, name_of(bucket), gcs_url=proxy.url)

    assert done.returncode == 0
    assert "upload.failed" not in done.stdout
    assert_all_archived(spool, bucket)


def test_a_shutdown_that_cannot_upload_keeps_everything_on_disk(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage
) -> None:
    """After flush-timeout the agent ends with a status that says so; the next one completes."""
    spool = Spool(tmp_path / "spool")
    argv = arguments(spool, name_of(bucket), "-flush-timeout", "500ms", "-verbose")
    with RunningAgent(*argv, gcs_url=proxy.url) as agent:
        agent.wait_for("agent.started")
        proxy.faults = [Fault(status=503, times=10**6, method="POST")]
        spool.write_many(5)
        for _ in range(5):
            agent.wait_for("file.taken")
        status = agent.stop()
    assert status == 1
    assert agent.log[-1]["complete"] is False
    assert len(spool.left()) == 5

    proxy.faults = []
    assert once(spool, name_of(bucket), gcs_url=proxy.url).returncode == 0
    assert_all_archived(spool, bucket)


def test_a_second_signal_ends_the_agent_at_once(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage
) -> None:
    """Whoever cannot wait for the flush need not."""
    spool = Spool(tmp_path / "spool")
    argv = arguments(spool, name_of(bucket), "-flush-timeout", "1h", *QUICK)
    with RunningAgent(*argv, gcs_url=proxy.url) as agent:
        agent.wait_for("agent.started")
        proxy.faults = [Fault(status=503, times=10**6, method="POST")]
        spool.write_many(5)
        agent.wait_for("upload.failed")
        os.kill(agent.pid, signal.SIGTERM)
        agent.wait_for("agent.stopping")
        status = agent.stop(signal.SIGINT)
    assert status == 1
    assert len(spool.left()) == 5


def test_the_bucket_may_be_away_when_the_agent_starts(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage
) -> None:
    """A pod may start before its token or its network; the agent asks until it is answered."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(3)
    proxy.faults = [Fault(status=503, times=2), Fault(status=401, times=1)]
    with RunningAgent(*arguments(spool, name_of(bucket), *QUICK), gcs_url=proxy.url) as agent:
        agent.wait_for("bucket.unreachable")
        agent.wait_for("bundle.stored")
        assert agent.stop() == 0
    assert_all_archived(spool, bucket)


def test_a_file_rewritten_while_its_bundle_is_pending_is_archived_again(
    tmp_path: Path, proxy: FaultyServer, bucket: Storage
) -> None:
    """Neither content is lost, though the second has the size and the times of the first."""
    spool = Spool(tmp_path / "spool")
    argv = arguments(spool, name_of(bucket), *QUICK)
    with RunningAgent(*argv, gcs_url=proxy.url) as agent:
        agent.wait_for("agent.started")
        proxy.faults = [Fault(status=503, times=10**6, method="POST")]
        first = document(1)
        path = spool.write("m.json", first, keep=False)
        agent.wait_for("upload.failed")
        times = path.stat()
        second = first.replace(b'"u-1-', b'"u-2-')
        path.write_bytes(second)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        proxy.faults = []
        agent.wait_for("bundle.stored")
        while spool.left():
            agent.wait_for("bundle.stored")
        assert agent.stop() == 0

    uuids = sorted(row["raw"]["UUID"][:4] for row in rows(bucket, "foo1"))
    assert uuids == ["u-1-", "u-2-"]
    assert problems(bucket) == []
