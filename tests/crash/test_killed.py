"""The agent is killed at every step; nothing is lost and nothing is stored twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.agent import RunningAgent, arguments, environment, once
from tests.support.bucket import assert_all_archived, reasons, rows, url_of
from tests.support.spool import Spool, document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.gcs import GcsServer

pytestmark = pytest.mark.timeout(900)  # hundreds of processes, on whatever machine
KILLED = Path(__file__).with_name("killed.py")


class Runs:
    """Runs jostler, each time in a process of its own; see `killed`."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._process = subprocess.Popen(
            [sys.executable, str(KILLED)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(), "PYTHONPATH": str(Path(__file__).parents[2])},
        )

    def run(self, argv: list[str], steps: int = -1, prefix: Path | str = "") -> int:
        """Run jostler, killed after so many steps below the prefix; return its exit status."""
        assert self._process.stdin
        assert self._process.stdout
        asked = {"steps": steps, "prefix": str(prefix), "argv": argv, "output": str(self._output)}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        assert status in {0, -signal.SIGKILL}, self._output.read_text()
        return status

    def die(self, steps: int, prefix: Path, argv: list[str]) -> bool:
        """Run jostler until it has done `steps` steps; say whether it was killed there."""
        return self.run(argv, steps, prefix) == -signal.SIGKILL

    def close(self) -> None:
        """End the process that forks the others."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    started = Runs(tmp_path_factory.mktemp("runs") / "output")
    yield started
    started.close()


def once_argv(spool: Spool, bucket: str, *more: str) -> list[str]:
    """Return a command line that takes what is there, one upload at a time."""
    return arguments(spool, bucket, "-once", "-missed-age", "0s", "-upload-concurrency", "1", *more)


@pytest.mark.slow
def test_no_file_is_lost_or_stored_twice_wherever_the_agent_dies(
    tmp_path: Path, runs: Runs
) -> None:
    """Die before each rename, link and unlink of a run; a fresh agent completes it."""
    steps = 0
    while True:
        home = tmp_path / str(steps)
        spool = Spool(home / "spool")
        bucket = url_of(home / "bucket")
        spool.write_many(3)
        spool.write("bad.json", b"{not json", keep=False)
        killed = runs.die(steps, home, once_argv(spool, bucket))

        assert runs.run(once_argv(spool, bucket)) == 0
        assert_all_archived(spool, bucket)
        assert reasons(bucket) == {"2026/01/02/bad.json": "not-json"}
        if not killed:
            break
        steps += 1
    assert steps > 25  # schemas, two bundles and four files take at least so many


@pytest.mark.slow
@pytest.mark.parametrize("upgraded", [False, True])
def test_a_file_changed_between_crash_and_restart_is_archived_in_both_states(
    tmp_path: Path, upgraded: bool, runs: Runs
) -> None:
    """What was stored stays, what the file became is new; no index row lies about either."""
    for steps in range(12, 30):
        home = tmp_path / str(steps)
        spool = Spool(home / "spool")
        bucket = url_of(home / "bucket")
        spool.write_many(3)
        if not runs.die(steps, home, once_argv(spool, bucket)):
            break
        if "2026/01/02/m1.json" in spool.left():
            spool.write("m1.json", document(99))
        level = ("-compression-level", "3") if upgraded else ()
        assert runs.run(once_argv(spool, bucket, *level)) == 0
        assert_all_archived(spool, bucket)
        assert {row["raw"]["UUID"][:4] for row in rows(bucket, "foo1")} >= {"u-0-", "u-2-"}


def kill_under_load(spool: Spool, bucket: str, rng: random.Random, *, times: int) -> int:
    """Kill an agent at random while files come, so many times; return how many files came."""
    flags = ("-bundle-size-max", "3KB", "-bundle-age-max", "50ms", "-settle-age", "50ms")
    written = 0
    for _ in range(times):
        with RunningAgent(*arguments(spool, bucket, *flags)) as agent:
            agent.wait_for("agent.started")
            until = time.monotonic() + rng.random() * 0.4
            while time.monotonic() < until:
                spool.write_many(3, first=written)
                written += 3
            agent.kill()
    return written


@pytest.mark.slow
def test_random_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    """An agent that is killed at random while files come, ten times, leaves no gap."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    written = kill_under_load(spool, bucket, random.Random(20260102), times=10)

    assert once(spool, bucket).returncode == 0
    assert written > 30
    assert_all_archived(spool, bucket)


@pytest.mark.long
@pytest.mark.slow
def test_random_kills_against_a_real_gcs_server_lose_nothing(
    tmp_path: Path, gcs: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, with uploads that may be cut off on the wire."""
    gcs.create_bucket("killed")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    spool = Spool(tmp_path / "spool")
    kill_under_load(spool, "killed", random.Random(42), times=6)

    assert once(spool, "killed").returncode == 0
    assert_all_archived(spool, "killed")


@pytest.mark.long
@pytest.mark.slow
def test_kills_while_many_files_are_unlinked_lose_nothing(tmp_path: Path) -> None:
    """The native module unlinks hundreds in a call, in a thread of its own."""
    rng = random.Random(6)
    spool, bucket = Spool(tmp_path / "spool"), url_of(tmp_path / "bucket")
    day = spool.experiment / "foo1/2026/01/02"
    argv = arguments(spool, bucket, "-once", "-missed-age", "0s")
    between = 0
    for number in range(60):
        if number >= 6 and between:  # where other work slows this process, a kill may come too late
            break
        if len(spool.left()) < 600:
            spool.write_many(4000, first=4000 * number, size=100)
        before, few = len(list(day.iterdir())), rng.randrange(1, 600)
        with RunningAgent(*argv) as agent:
            while agent.is_alive and len(list(day.iterdir())) > before - few:
                time.sleep(0.0005)
        between += 0 < len(spool.left()) < before
    assert between

    assert once(spool, bucket).returncode == 0
    assert_all_archived(spool, bucket)


@pytest.mark.slow
def test_a_directory_moved_away_over_a_restart_comes_back_without_second_rows(
    tmp_path: Path, runs: Runs
) -> None:
    """Stored files that were gone when they were to be unlinked are known to the next process."""
    for steps in range(15, 40):  # die when all is stored, before the first unlink
        home = tmp_path / str(steps)
        spool = Spool(home / "spool")
        bucket = url_of(home / "bucket")
        spool.write_many(3)
        assert runs.die(steps, home, once_argv(spool, bucket))
        if list(spool.state_dir.glob("*.stored")):
            break
    assert len(spool.left()) == 3
    day, away = spool.experiment / "foo1/2026/01/02", home / "away"
    day.rename(away)

    assert once(spool, bucket).returncode == 0
    assert spool.journal() == []
    away.rename(day)
    assert once(spool, bucket).returncode == 0

    assert_all_archived(spool, bucket)
