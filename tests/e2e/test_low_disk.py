"""A disk that really runs full, with each -disk-lack-action, against a real GCS server."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from jostler.full_sign import is_full, path_of
from tests.support.agent import RunningAgent, arguments, run
from tests.support.bucket import problems, rows
from tests.support.disk import small_disk
from tests.support.gcs import GcsServer
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import DAY, EXPERIMENT, Spool, document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1 << 20
FLAGS = ("-settle-age", "200ms", "-min-free-disk", "1600KiB")
DISK_MIB = 24  # of which the journal's reserve takes 16


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", DISK_MIB) as path:
        yield path


@pytest.fixture
def spool(disk: Path, tmp_path: Path) -> Spool:
    spool = Spool(disk / "spool")
    spool.originals = tmp_path / "originals"
    return spool


@pytest.fixture
def bucket(gcs: GcsServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"disk-{abs(hash(request.node.name)) % 10**9}"
    gcs.create_bucket(name)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    return name


def leave_free(path: Path, free_bytes: int) -> None:
    """Write or cut a file until its disk has so much left."""
    disk = os.statvfs(path.parent)
    held = path.stat().st_size if path.exists() else 0
    path.touch()
    wanted = held + disk.f_bavail * disk.f_frsize - free_bytes
    if wanted > held:
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, wanted)
    else:
        os.truncate(path, wanted)


def until(holds: Callable[[], bool], timeout_s: float = 60.0) -> None:
    end_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.02)


def why(spool: Spool, path: str, *more: str) -> str:
    where = ("-experiment", EXPERIMENT, "-local-data-dir", str(spool.root), "-address", "")
    return run("why", *where, *more, path).stdout


def test_flush_uploads_early_and_the_agent_lives_on(spool: Spool, bucket: str, disk: Path) -> None:
    """Bundles that would be open for an hour are stored at once, the next a minute later.

    So a disk that is always low does not make a bundle of each file.
    """
    with RunningAgent(*arguments(spool, bucket, *FLAGS, "-verbose")) as agent:
        agent.wait_for("agent.started")
        leave_free(disk / "ballast", 5 * MIB)
        spool.write_many(5)
        for _ in range(5):
            agent.wait_for("file.taken")
        leave_free(disk / "ballast", 1 * MIB)
        agent.wait_for("disk.lacking", action="flush")
        assert agent.wait_for("bundle.stored")["files"] == 5
        assert not path_of(spool.experiment).exists()  # only -disk-lack-action stop tells services
        spool.write_many(20, first=5)
        for _ in range(20):
            agent.wait_for("file.taken")
        leave_free(disk / "ballast", 5 * MIB)
        agent.wait_for("disk.enough")
        leave_free(disk / "ballast", 1 * MIB)
        agent.wait_for("disk.lacking")
        assert agent.stop() == 0
    sealed = [(one["files"], one["reason"]) for one in agent.log if one["event"] == "bundle.sealed"]
    assert sealed == [(5, "disk-lack"), (20, "shutdown")]
    assert len(rows(bucket, "foo1")) == 25
    assert not path_of(spool.experiment).exists()


def test_stop_tells_services_and_takes_it_back(spool: Spool, bucket: str, disk: Path) -> None:
    """By a file that is no measurement file; what there is is still stored."""
    sign = path_of(spool.experiment)
    sign.parent.mkdir()
    sign.touch()  # a killed agent left it
    flags = (*FLAGS, "-disk-lack-action", "stop", "-bundle-age-max", "1s")
    with RunningAgent(*arguments(spool, bucket, *flags)) as agent:
        agent.wait_for("agent.started")
        assert not sign.exists()
        leave_free(disk / "ballast", 1 * MIB)
        until(sign.exists)
        assert is_full(spool.experiment)
        assert sign.stat().st_mode & 0o777 == 0o644
        spool.write_many(10)
        agent.wait_for("bundle.stored")
        until(lambda: not spool.left())
        assert sign.exists()
        leave_free(disk / "ballast", 5 * MIB)
        agent.wait_for("disk.enough")
        until(lambda: not sign.exists())
        leave_free(disk / "ballast", 1 * MIB)
        until(sign.exists)
        assert agent.stop() == 0
    assert not sign.exists()
    assert len(rows(bucket, "foo1")) == 10
    assert not rows(bucket, "rejected1")


def test_small_files_that_take_all_inodes_are_given_up(
    tmp_path: Path, bucket: str, gcs: GcsServer
) -> None:
    """As many as are needed, although hardly a byte of the disk is used."""
    with small_disk(tmp_path / "small", 40, inodes=1000) as disk, FaultyServer(gcs.port) as proxy:
        spool = Spool(disk / "spool")
        spool.originals = tmp_path / "originals"
        flags = ("-settle-age", "200ms", "-disk-lack-action", "remove-oldest")
        argv = arguments(spool, bucket, *flags, "-bundle-age-max", "300ms")
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            agent.wait_for("agent.started")
            proxy.faults[:] = [Fault(status=503, times=10**6)]
            spool.write_many(2)
            agent.wait_for("upload.failed")
            inodes = os.statvfs(disk).f_favail
            spool.write_many(inodes - 20, first=2)
            assert agent.wait_for("disk.lacking")["inodes"] < 50
            agent.wait_for("disk.enough")
            proxy.faults.clear()
            until(lambda: not spool.left())
            assert agent.stop() == 0
    given_up = agent.log[-1]["given_up"]
    details = [row["raw"]["Detail"] for row in rows(bucket, "rejected1")]
    # Of 62 that are enough, 20 were left; one more goes for the record.
    assert 40 <= len(details) == given_up < 50
    assert all("-min-free-disk is 50 inodes" in detail for detail in details)


def test_a_sign_that_nobody_renews_means_nothing(tmp_path: Path) -> None:
    sign = path_of(tmp_path)
    assert not is_full(tmp_path)
    sign.parent.mkdir()
    sign.touch()
    assert is_full(tmp_path)
    os.utime(sign, (time.time() - 301, time.time() - 301))
    assert not is_full(tmp_path)


def test_remove_oldest_gives_up_unsent_files_alone_and_lists_each(
    spool: Spool, disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the bucket is down, the oldest go; then each file is stored or listed, none both.

    `jostler why` tells of those that went.
    """
    server = GcsServer(tmp_path / "objects")
    server.create_bucket("bkt")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    flags = (*FLAGS, "-disk-lack-action", "remove-oldest", "-bundle-age-max", "300ms")
    argv = arguments(spool, "bkt", *flags, "-bundle-size-max", "200000")
    with RunningAgent(*argv) as agent:
        agent.wait_for("agent.started")
        server.stop()
        spool.write_many(20, size=20_000)
        agent.wait_for("upload.failed")
        for number in range(20, 120):
            day = "2025/12/31" if number < 40 else DAY
            spool.write(f"m{number}.json", document(number, size=20_000), day=day)
        time.sleep(1.1)  # a file that was written just now does not go
        leave_free(disk / "ballast", 750_000)
        agent.wait_for("disk.files_given_up")
        held = set(spool.left())
        # A list that is in the journal alone is told, too.
        gone = next(one for one in agent.log if one["event"] == "file.given_up")["file"]
        assert "REJECTED" in (told := why(spool, gone))
        assert "disk-lack: given up unsent" in told
        again = GcsServer(tmp_path / "objects", port=server.port)
        until(lambda: not spool.left(), 60.0)
        assert agent.stop() == 0
        assert "disk-lack: given up unsent" in (told := why(spool, gone, "-gcs-bucket", "bkt"))
        assert "its content was not stored" in told
    given_up = sum(one["files"] for one in agent.log if one["event"] == "disk.files_given_up")
    listed = Counter(row["raw"]["Filename"] for row in rows("bkt", "rejected1"))
    stored = Counter(row["archiver"]["Filename"] for row in rows("bkt", "foo1"))
    assert problems("bkt") == []
    again.stop()

    assert sum(listed.values()) == given_up == agent.log[-1]["given_up"]
    assert set(listed.values()) == set(stored.values()) == {1}
    assert not listed.keys() & stored.keys()
    assert len(listed) + len(stored) == 120
    assert held <= stored.keys() | listed.keys()
    # The oldest day goes first.  What was in bundles when the outage began is stored.
    assert {name for name in listed if name.startswith("2025")} == {
        f"2025/12/31/m{number}.json" for number in range(20, 40)
    }
    assert all(f"{DAY}/m{number}.json" not in listed for number in range(100, 120))
