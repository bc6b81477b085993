"""`--every`: a loader that stays, takes requests as they come, and ends between rounds."""

from __future__ import annotations

import io
import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from loader.cli import daemon
from loader.cli.console import Console
from loader.cli.daemon import Daemon
from loader.cli.main import main
from loader.cli.options import parse
from loader.run import Loader
from tests.loader.plain import verified
from tests.loader.world import DAY, Ran, World, row, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import ExitStack
    from pathlib import Path

    from loader.cli.options import Options

pytestmark = pytest.mark.long  # many loads, one after another

ASK = (
    "INSERT jostler.requests (Experiment, Datatype, StartDate) VALUES ('exp', 'foo1', '2026-01-02')"
)


@pytest.fixture
def stored(world: World) -> World:
    world.put_schema()
    world.put_bundle([row(1)])
    return world


@pytest.fixture
def run(
    stored: World, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[Daemon, Ran]]]:
    """Start a daemon in a thread; it is ended with the test."""
    monkeypatch.setattr(daemon, "LOOK_S", 0.3)
    running: list[tuple[Daemon, threading.Thread]] = []

    def start(*more: str) -> tuple[Daemon, Ran]:
        out, err = io.StringIO(), io.StringIO()
        console = Console(out, err)
        options = parse(stored.arguments("--datatype", "foo1", *more), {}, datetime.now(UTC).date())

        def make(options: Options, keep: ExitStack) -> Loader:
            loader = Loader(
                options,
                console,
                lambda days: [verified(stored, d, loader.run_id) for d in days],
                keep,
            )
            loaders.append(loader)
            return loader

        loaders: list[Loader] = []
        made = Daemon(options, console, make)
        thread = threading.Thread(target=made.run)
        thread.start()
        running.append((made, thread))

        class Now(Ran):
            @property
            def enough(self) -> bool:
                return loaders[-1].enough.is_set()

            @property
            def events(self) -> list[dict[str, object]]:  # type: ignore[override]
                return Ran(0, out.getvalue(), err.getvalue()).events

        return made, Now(0, "", "")

    yield start
    for made, thread in running:
        made._ended.set()
        thread.join(30)
        assert not thread.is_alive()


def attempts(world: World) -> list[int]:
    return [told["Attempt"] for told in world.ledger()]


def test_it_loads_again_at_the_interval_and_writes_the_metrics_of_a_run(
    stored: World, run: Callable[..., tuple[Daemon, Ran]], tmp_path: Path
) -> None:
    path = tmp_path / "jostler.prom"
    run("--every", "1s", "--metrics", f"file://{path}")
    wait_until("the first round has ended", path.exists)
    assert 'jostler_load_days{datatype="foo1",experiment="exp",status="success"} 1.0' in (
        path.read_text()
    )

    stored.put_bundle([row(2)])

    wait_until("a later round has loaded it", lambda: attempts(stored) == [1, 2])


def test_a_request_ends_the_waiting(
    stored: World, run: Callable[..., tuple[Daemon, Ran]], tmp_path: Path
) -> None:
    path = tmp_path / "jostler.prom"
    run("--every", "1h", "--metrics", f"file://{path}")
    wait_until("the first round has ended", path.exists)

    stored.sql(ASK)

    wait_until("it is loaded anew", lambda: attempts(stored) == [1, 2])


def test_a_request_during_a_round_comes_before_the_rounds_other_days(
    stored: World, run: Callable[..., tuple[Daemon, Ran]]
) -> None:
    """Days that have begun are finished; the others are left to the next round."""
    for day in range(3, 8):
        stored.put_bundle([row(1, day=DAY.replace(day=day))], day=DAY.replace(day=day))
    stored.fault("job_slow", job="-foo1-20260102-", seconds=600)
    _, ran = run("--every", "1h", "--parallel-days", "1")
    wait_until("the first day is loaded", lambda: stored.bigquery.faults() == [])

    stored.sql(ASK)
    wait_until("the round has seen it", lambda: ran.enough)
    stored.bigquery.clear()

    wait_until("all is loaded", lambda: len(attempts(stored)) == 7)
    order = [(told["date"].day, told["Reason"]) for told in stored.ledger()]
    assert order[:2] == [(2, "new"), (2, "requested")]
    assert sorted(order[2:]) == [(day, "new") for day in range(3, 8)]


def test_a_round_that_fails_as_a_whole_does_not_end_it(
    stored: World, run: Callable[..., tuple[Daemon, Ran]]
) -> None:
    stored.fault("quota_exceeded", times=1000)
    _, said = run("--every", "1s")
    wait_until("it has failed", lambda: any(e["event"] == "run.failed" for e in said.events))

    stored.bigquery.clear()

    wait_until("a later round is well", lambda: bool(stored.rows_or_none()))


def test_sigterm_ends_it_between_rounds(stored: World, tmp_path: Path) -> None:
    """As a process: at once, with the status of its last round."""
    path = tmp_path / "jostler.prom"
    process = stored.start("--every", "1h", "--metrics", f"file://{path}")
    wait_until("the first round has ended", path.exists)

    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=100)

    assert process.returncode == 0, err
    assert '"event": "daemon.ended"' in err
    assert attempts(stored) == [1]


@pytest.mark.parametrize("other", ["--force", "--dry-run", "--verify-only"])
def test_what_makes_no_sense_at_intervals_is_refused(
    world: World, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    assert main(world.arguments("--every", "5m", other)) == 2
    assert f"{other} and --every" in capsys.readouterr().err


def test_times_have_a_unit(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(world.arguments("--every", "5", "--give-up-after", "0d")) == 2
    said = capsys.readouterr().err
    assert "--every: '5' is not a time such as" in said
    assert "--give-up-after: '0d' is not a time such as" in said
