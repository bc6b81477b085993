"""What a run leaves for Prometheus."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.format.names import Kind
from tests.loader.world import DAY, World, row

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("spark")
PAGE = Path(__file__).parents[2] / "docs/loader.md"
FOO = 'datatype="foo1",experiment="exp"'


def values(text: str) -> dict[str, float]:
    """Read an exposition."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {series: float(value) for series, _, value in (line.rpartition(" ") for line in lines)}


@pytest.fixture
def stored(world: World) -> World:
    """A day with a repeated and a bad row."""
    world.put_schema()
    world.put_bundle([*(row(number) for number in range(20)), row(3)])
    world.put_bundle([row(30, raw=b'{"Rate":"fast"}')])
    return world


class Gateway:
    """Keeps what is pushed to it."""

    def __init__(self) -> None:
        self.pushed: list[tuple[str, str, str]] = []
        pushed = self.pushed

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                pushed.append((self.command, self.path, body))
                self.send_response(202)
                self.end_headers()

            do_PUT = do_POST  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.stop()


def test_a_load_tells_its_days_rows_and_time(stored: World, tmp_path: Path) -> None:
    """In a file for the node exporter, with the Go autoloader's names beside ours."""
    path = tmp_path / "jostler.prom"

    ran = stored.load("--metrics", f"file://{path}")

    assert ran.code == 0, ran.err
    found = values(path.read_text())
    assert found[f'jostler_load_days{{{FOO},status="success"}}'] == 1
    assert found[f'jostler_load_days{{{FOO},status="failed"}}'] == 0
    counts = {"read": 22, "loaded": 20, "rejected": 1, "repeated": 1}
    for outcome, number in counts.items():
        assert found[f'jostler_load_rows{{{FOO},outcome="{outcome}"}}'] == number
    assert found[f"jostler_load_count_differences{{{FOO}}}"] == 0
    assert found["jostler_load_success_timestamp_seconds"] > 1.7e9
    assert found["jostler_load_run_timestamp_seconds"] > 1.7e9
    assert found["jostler_load_run_seconds"] > 0
    day = f'autoloader_loaded_dates{{{FOO},period="everything",status="OK"}}'
    assert found[day] == 1767312000  # 2026-01-02
    assert str(DAY) == "2026-01-02"
    assert found[f'autoloader_duration_count{{{FOO},period="everything",status="OK"}}'] == 1
    operations = f'autoloader_bigquery_operations_total{{{FOO},operation="load",status="OK"}}'
    assert found[operations] == 1
    told = re.findall(r"^\| `((?!jostler_compact)[a-z]+_\w+)` \|", PAGE.read_text(), re.MULTILINE)
    names = set(re.findall(r"# TYPE (\w+) ", path.read_text()))
    assert {name for name in names if not name.endswith("_created")} == set(told)
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_a_run_that_fails_keeps_the_time_of_the_last_success(stored: World, tmp_path: Path) -> None:
    """And says which days failed; before the first success it is 0."""
    path = tmp_path / "jostler.prom"
    argv = ("--metrics", f"file://{path}", "--max-bad-fraction", "0.01")

    assert stored.load(*argv).code == 1
    assert values(path.read_text())["jostler_load_success_timestamp_seconds"] == 0
    assert stored.load("--metrics", f"file://{path}").code == 0
    before = values(path.read_text())
    stored.put_bundle([row(40, raw=b"[]"), row(41, raw=b"[]")])
    assert stored.load(*argv).code == 1

    after = values(path.read_text())
    success, ended = "jostler_load_success_timestamp_seconds", "jostler_load_run_timestamp_seconds"
    assert after[success] == before[success]
    assert after[ended] > before[ended]
    assert after[f'jostler_load_days{{{FOO},status="rejected"}}'] == 1


def test_metrics_go_to_a_push_gateway(stored: World, gateway: Gateway) -> None:
    """Added to what it has, so it remembers the last success; a comparison has its own group."""
    assert stored.load("--metrics", gateway.url).code == 0
    stored.put_bundle([b'{"Filename":"2026/01/02/m1.json","Size":1}'], kind=Kind.INDEX)
    ran = stored.load("--metrics", gateway.url, "--verify-only")

    (load, verify) = gateway.pushed
    assert load[:2] == ("POST", "/metrics/job/jostler-load/period/everything")
    assert "jostler_load_success_timestamp_seconds" in load[2]
    assert verify[:2] == ("POST", "/metrics/job/jostler-verify")
    differences = 'jostler_load_count_differences{datatype="all",experiment="all"}'
    assert values(verify[2]) == {differences: len(ran.out.splitlines()) - 1}
    assert values(verify[2])[differences] > 0


def test_a_gateway_that_is_down_fails_no_run(stored: World) -> None:
    """It is told."""
    ran = stored.load("--metrics", "http://127.0.0.1:1")
    assert ran.code == 0
    assert "metrics.not_written" in [event["event"] for event in ran.events]


def test_where_metrics_go_is_checked_first(world: World) -> None:
    """Wrong use, before anything is touched."""
    ran = world.load("--metrics", "gateway:9091")
    assert ran.code == 2
    assert "--metrics: 'gateway:9091' is neither file:///… nor http(s)://…" in ran.err
