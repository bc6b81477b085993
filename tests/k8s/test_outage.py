"""An outage of the bucket, as a real agent's metrics tell of it, wakes somebody and ends."""

from __future__ import annotations

import re
import subprocess
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.k8s.manifests import K8S, tool
from tests.support.agent import WAIT_S, RunningAgent, arguments
from tests.support.gcs import free_port
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.gcs import GcsServer

BEGUN_S = 3600  # when, in the time of promtool, the first scrape was
MINUTES = 20
FIRING = 'count by (alertname) (ALERTS{alertstate="firing"})'


def get(port: int, path: str) -> tuple[int, str]:
    """Ask the agent."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, ""


def value(text: str, series: str) -> float:
    """Return a series' value in a scrape."""
    (found,) = [line for line in text.splitlines() if line.startswith(f"{series} ")]
    return float(found.rpartition(" ")[2])


def await_ready(port: int) -> None:
    """Wait until the first scan is over."""
    until = time.monotonic() + WAIT_S
    while get(port, "/readyz")[0] != 200:
        assert time.monotonic() < until, "the agent did not become ready"


def scrape_when(port: int, series: str, wanted: float) -> str:
    """Scrape until a series has a value."""
    until = time.monotonic() + 3 * WAIT_S  # a step that failed long is tried again after a minute
    while time.monotonic() < until:
        text = get(port, "/metrics")[1]
        if value(text, series) == wanted:
            return text
    raise AssertionError(f"{series} did not become {wanted}: {text}")


def as_of(text: str, now_s: float, at_s: float) -> dict[str, float]:
    """Read a scrape, with its timestamps as if it had been made at another time."""
    found = {}
    for line in text.splitlines():
        if line.startswith("jostler_"):
            series, _, number = line.rpartition(" ")
            moved = "_timestamp_seconds" in series and float(number)
            found[series] = float(number) + (at_s - now_s if moved else 0)
    return found


def firing(tmp_path: Path, scrapes: list[dict[str, float]], at: str) -> set[str]:
    """Say which alerts fire if each scrape holds for some minutes, on three nodes."""
    spec = yaml.safe_load((K8S / "monitoring/prometheusrule.yaml").read_text())["spec"]
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(spec))
    series = []
    for node in "abc":
        series.append({"series": f'up{{job="jostler",node="{node}"}}', "values": "1x200"})
        for name in scrapes[0]:
            bare, _, labels = name.rstrip("}").partition("{")
            inside = ",".join(filter(None, [labels, f'node="{node}"']))
            step = "+60" if name.startswith("jostler_heartbeat") else ""  # the loop goes on turning
            # promtool reads no infinity that is repeated; the disk that never fills has one.
            numbers = [min(scrape[name], 1e12) for scrape in scrapes]
            held = " ".join(f"{number:f}{step}x{MINUTES - 1}" for number in numbers)
            values = f"_x{BEGUN_S // 60} {held}"
            series.append({"series": f"{bare}{{{inside}}}", "values": values})
    for what in ("run", "success"):
        name = f"jostler_load_{what}_timestamp_seconds"
        series += [{"series": name, "values": "0+60x200"}]
    asked: dict[str, Any] = {"expr": FIRING, "eval_time": at, "exp_samples": []}
    case = {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
    path = tmp_path / "case.yml"
    path.write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [case]}))
    return told(path)


def told(path: Path) -> set[str]:
    """Run a test that expects no alert; return those that it names."""
    argv = [tool("promtool"), "test", "rules", path.name]
    done = subprocess.run(argv, cwd=path.parent, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    assert done.returncode == 0 or "FAILED" in text, text
    found = set(re.findall(r'alertname="(\w+)"', text.rpartition("got:")[2]))
    return {name for name in found if "Disk" not in name}  # this machine's, which may be full


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.long
def test_an_outage_wakes_somebody_and_ends_by_itself(gcs: GcsServer, tmp_path: Path) -> None:
    """While the bucket is down /healthz stays well and memory bounded; then all flows again."""
    gcs.create_bucket("outage")
    port = free_port()
    spool = Spool(tmp_path / "spool")
    with FaultyServer(gcs.port) as proxy:
        argv = arguments(spool, "outage", "-bundle-age-max", "100ms", "-bundle-size-max", "20KB")
        argv += ["-memory-max", "100KB", "-prometheusx.listen-address", f"127.0.0.1:{port}"]
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            agent.wait_for("agent.started")
            await_ready(port)
            proxy.faults = [Fault(status=503, times=10**6, method="POST")]
            spool.write_many(300)
            down = scrape_when(port, "jostler_uploads_failing", 1)
            down_s = time.time()
            assert [get(port, path)[0] for path in ("/startupz", "/healthz", "/readyz")] == [
                200
            ] * 3
            assert value(down, "jostler_memory_held_bytes") <= 100_000
            proxy.faults = []
            scrape_when(port, "jostler_uploads_failing", 0)
            well = scrape_when(port, 'jostler_files_archived_total{datatype="foo1"}', 300)
            well_s = time.time()
            assert agent.stop() == 0
    outage = as_of(down, down_s, BEGUN_S)
    after = as_of(well, well_s, BEGUN_S + MINUTES * 60)
    assert firing(tmp_path, [outage, after], "64m") == set()
    assert firing(tmp_path, [outage, after], "66m") == {"JostlerUploadsFailingEverywhere"}
    both = {"JostlerUploadsFailing", "JostlerUploadsFailingEverywhere"}
    assert firing(tmp_path, [outage, after], "75m") == both
    assert firing(tmp_path, [outage, after], "85m") == {"JostlerUploadsFailingEverywhere"}
    assert firing(tmp_path, [outage, after], "99m") == set()
