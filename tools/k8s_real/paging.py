"""Check that an outage of the bucket reaches a webhook through real Prometheus and Alertmanager.

**Invariant:** rules and routes are those of k8s/monitoring and docs/runbook.md, except that their
durations are shortened, a minute to a second.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from tests.support.agent import RunningAgent, arguments
from tests.support.gcs import GcsServer, free_port
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import Spool
from tools.k8s_real.waiting import wait_until

ROOT = Path(__file__).parents[2]
FLEETS = "JostlerUploadsFailingEverywhere"
PER_NODE = {"JostlerUploadsFailing", "JostlerUploadsFailingLong", "JostlerNoSuccess"}
AGENTS = 3


class Receiver(ThreadingHTTPServer):
    """Receives Alertmanager's messages; `alerts` has path, status and name of each alert."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.alerts: list[tuple[str, str, str]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Store the alerts of a message."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for alert in body["alerts"]:
            self.server.alerts.append((self.path, alert["status"], alert["labels"]["alertname"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


def page(cache: Path, home: Path) -> None:
    """Run three agents through an outage and check the alerts.

    Raises:
        RuntimeError: there was no page, a page for a single node, or no end of the page.
    """
    home.mkdir()
    binaries = debian(cache)
    with ExitStack() as stack:
        gcs = stack.enter_context(GcsServer())
        gcs.create_bucket("paging")
        proxy = stack.enter_context(FaultyServer(gcs.port))
        ports = [start_agent(stack, home / f"agent{n}", proxy.url, n) for n in range(AGENTS)]
        receiver = Receiver()
        stack.callback(receiver.shutdown)
        prometheus = start_monitoring(stack, binaries, home, ports, receiver.server_port)
        wait_until("all agents are scraped", lambda: len(query(prometheus, "up == 1")) == AGENTS)
        proxy.faults[:] = [Fault(status=503, times=10**6, method="POST")]
        paged = ("/wake-somebody", "firing", FLEETS)
        wait_until("somebody is paged", lambda: paged in receiver.alerts)
        firing = 'ALERTS{alertname="JostlerUploadsFailing",alertstate="firing"}'
        wait_until("each node's own alert fires", lambda: len(query(prometheus, firing)) == AGENTS)
        time.sleep(5)  # longer than group_wait and the interval of evaluation, shortened
        proxy.faults.clear()
        over = ("/wake-somebody", "resolved", FLEETS)
        wait_until("the page is taken back", lambda: over in receiver.alerts)
        foreign = [alert for alert in receiver.alerts if alert[2] in PER_NODE]
        if foreign:
            raise RuntimeError(f"told of single nodes during the fleet's outage: {foreign}")
    print(f"paging: one page for {AGENTS} agents, none for a single node, taken back at the end")


def debian(cache: Path) -> Path:
    """Unpack Debian's packages of Prometheus and Alertmanager; return their directory."""
    place = cache / "debian"
    if not (place / "usr/bin/prometheus").exists():
        place.mkdir(parents=True, exist_ok=True)
        names = ["prometheus", "prometheus-alertmanager"]
        subprocess.run(["apt-get", "download", "-qq", *names], check=True, cwd=place)
        for package in place.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(place)], check=True)
    templates = Path("usr/share/prometheus/alertmanager")
    if not (
        "/" / templates
    ).exists():  # the only place where Debian's build looks for its templates
        shutil.copytree(place / templates, "/" / templates)
    return place / "usr/bin"


def start_agent(stack: ExitStack, home: Path, gcs_url: str, number: int) -> int:
    """Start an agent and a service that keeps writing; return the port of the agent's metrics."""
    port = free_port()
    spool = Spool(home)
    argv = arguments(spool, "paging", "-bundle-age-max", "200ms", "-node-name", f"node{number}")
    argv += ["-prometheusx.listen-address", f"127.0.0.1:{port}"]
    agent = stack.enter_context(RunningAgent(*argv, gcs_url=gcs_url))
    agent.wait_for("agent.started")
    stop = threading.Event()

    def write() -> None:
        written = 0
        while not stop.wait(0.5):
            spool.write_many(5, first=written)
            written += 5

    thread = threading.Thread(target=write)
    thread.start()
    stack.callback(thread.join)
    stack.callback(stop.set)
    return port


def start_monitoring(
    stack: ExitStack, binaries: Path, home: Path, agents: list[int], receiver: int
) -> str:
    """Start both servers; return the URL of Prometheus."""
    rules = yaml.safe_load((ROOT / "k8s/monitoring/prometheusrule.yaml").read_text())["spec"]
    (home / "rules.yml").write_text(yaml.safe_dump(shortened(rules)))
    text = (ROOT / "docs/runbook.md").read_text()
    found = re.search(r"```yaml\n(route:.*?)```", text, re.DOTALL)
    assert found
    routes = shortened(yaml.safe_load(found[1]))
    routes["route"] |= {"group_interval": "2s", "repeat_interval": "1h"}
    for target in routes["receivers"]:
        target["webhook_configs"] = [{"url": f"http://127.0.0.1:{receiver}/{target['name']}"}]
    (home / "alertmanager.yml").write_text(yaml.safe_dump(routes))
    manager, prometheus = free_port(), free_port()
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"node": f"node{n}", "pod": f"pod{n}"}}
        for n, port in enumerate(agents)
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "jostler", "static_configs": targets}],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{manager}"]}]}]
        },
    }
    (home / "prometheus.yml").write_text(yaml.safe_dump(config))
    run(
        stack,
        home / "alertmanager.log",
        str(binaries / "prometheus-alertmanager"),
        *(f"--config.file={home}/alertmanager.yml", f"--storage.path={home}/alertmanager"),
        *(f"--web.listen-address=127.0.0.1:{manager}", "--cluster.listen-address="),
    )
    run(
        stack,
        home / "prometheus.log",
        str(binaries / "prometheus"),
        *(f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/prometheus"),
        f"--web.listen-address=127.0.0.1:{prometheus}",
    )
    return f"http://127.0.0.1:{prometheus}"


def shortened(value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Convert every value that is a duration in minutes to the same number of seconds."""
    if isinstance(value, dict):
        return {key: shortened(held) for key, held in value.items()}
    if isinstance(value, list):
        return [shortened(held) for held in value]
    if isinstance(value, str) and re.fullmatch(r"\d+m", value):
        return value.replace("m", "s")
    return value


def run(stack: ExitStack, log: Path, *argv: str) -> None:
    """Start a server that ends with the context."""
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out)
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)


def query(prometheus: str, text: str) -> list[Any]:
    """Return the series that PromQL finds; none while the server starts."""
    command = ["curl", "-sf", "--data-urlencode", f"query={text}", f"{prometheus}/api/v1/query"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: list[Any] = json.loads(done.stdout)["data"]["result"] if done.stdout else []
    return found
