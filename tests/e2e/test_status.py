"""What a running agent says of itself, asked over HTTP and by `jostler status`."""

from __future__ import annotations

import http.client
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from jostler.agent.observe.metrics import COUNTERS, GAUGES, HISTOGRAMS
from jostler.agent.rules import REASONS
from jostler.bundle import SealReason
from tests.support.agent import RunningAgent, arguments, run
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import DAY, Spool, document

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client.samples import Sample

    from tests.support.gcs import GcsServer

WAIT_S = 60.0
LISTEN = ("-prometheusx.listen-address", "127.0.0.1:0")
DOCS = Path(__file__).parents[2] / "docs"


class Asked:
    """A client of one agent's status server."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=WAIT_S)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body

    def status(self) -> dict[str, Any]:
        answered: dict[str, Any] = json.loads(self.get("/status.json")[1])
        return answered

    def wrong(self) -> list[str]:
        """Return the codes of all problems but that of the disk, which is this machine's own."""
        codes = [problem["code"] for problem in self.status()["health"]["problems"]]
        return [code for code in codes if code != "disk_low"]

    def samples(self) -> list[Sample]:
        text = self.get("/metrics")[1].decode()
        return [s for family in text_string_to_metric_families(text) for s in family.samples]

    def value(self, name: str, **labels: str) -> float:
        (found,) = [s.value for s in self.samples() if s.name == name and s.labels == labels]
        return found

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        until_s = time.monotonic() + WAIT_S
        while not holds():
            assert time.monotonic() < until_s, f"{what}: {self.status()}"
            time.sleep(0.02)


def asked(agent: RunningAgent) -> Asked:
    return Asked(agent.wait_for("status.listening")["port"])


def test_every_series_is_there_from_the_start_and_counts(tmp_path: Path) -> None:
    """For each datatype and each reason; promtool, where it is installed, finds no fault."""
    spool = Spool(tmp_path / "spool", "foo1", "bar1")
    (spool.experiment / "foo1" / DAY).mkdir(parents=True)  # a scan would take the bad file later
    argv = arguments(spool, (tmp_path / "bucket").as_uri(), *LISTEN, "-bundle-age-max", "500ms")
    with RunningAgent(*argv) as agent:
        ask = asked(agent)
        at_start = {s.name: {} for s in ask.samples()}
        names = {f"{row.name}_total" for row in COUNTERS} | {row.name for row in GAUGES}
        names -= {"jostler_index_nulls_total"}  # it has a series for each -index-field
        assert names | {f"{name}_bucket" for name, *_ in HISTOGRAMS} <= set(at_start)
        for datatype in ("foo1", "bar1", "rejected1"):
            for reason in REASONS:
                assert (
                    ask.value("jostler_files_rejected_total", datatype=datatype, reason=reason) == 0
                )
            for why in SealReason:
                value = ask.value("jostler_bundles_sealed_total", datatype=datatype, reason=why)
                assert value == 0
        spool.write_many(7)
        spool.write("bad.json", b"[]")
        spool.write("not-wanted.txt", b"{}")
        ask.wait(
            lambda: ask.value("jostler_files_archived_total", datatype="rejected1") == 1, "archived"
        )
        ask.wait(lambda: ask.value("jostler_files_archived_total", datatype="foo1") == 7, "seven")
        rejected = {"datatype": "foo1", "reason": "not-object"}
        assert ask.value("jostler_files_rejected_total", **rejected) == 1
        ignored = {"datatype": "foo1", "reason": "extension"}
        assert ask.value("jostler_files_ignored_total", **ignored) == 1
        assert ask.value("jostler_bundles_stored_total", datatype="foo1") >= 1
        assert ask.value("jostler_bytes_per_bundle_count", datatype="foo1") >= 1
        assert ask.value("jostler_bytes_per_bundle_count", datatype="index1") >= 2
        assert ask.value("jostler_close_to_stored_seconds_count", datatype="foo1") == 7
        assert ask.value("jostler_close_to_stored_seconds_sum", datatype="foo1") < WAIT_S * 7
        assert ask.value("jostler_last_success_timestamp_seconds", datatype="foo1") > 1.7e9
        assert ask.value("jostler_file_bytes_total", datatype="foo1") > 0
        if promtool := shutil.which("promtool"):
            check = subprocess.run(
                [promtool, "check", "metrics"],
                input=ask.get("/metrics")[1],
                capture_output=True,
                check=False,
            )
            assert check.returncode == 0, check.stdout + check.stderr
        assert agent.stop() == 0


def test_each_metric_is_described_and_no_other() -> None:
    """docs/metrics.md has the same names, kinds and labels as the code."""
    rows = re.findall(
        r"^\| `(\w+)` \| (\w+) \| (.*?) \|", (DOCS / "metrics.md").read_text(), re.MULTILINE
    )
    described = {name: (kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}
    made = {f"{row.name}_total": ("counter", row.labels) for row in COUNTERS}
    made |= {row.name: ("gauge", row.labels) for row in GAUGES}
    made |= {name: ("histogram", ("datatype",)) for name, *_ in HISTOGRAMS}
    assert described == made


def test_an_outage_is_said_in_words_and_makes_nothing_unwell(
    tmp_path: Path, gcs: GcsServer
) -> None:
    """Under load: the status says what is wrong, memory stays bounded, and all recovers."""
    spool = Spool(tmp_path / "spool")
    gcs.create_bucket("outage-said")
    with FaultyServer(gcs.port) as proxy:
        argv = arguments(
            spool,
            "outage-said",
            *LISTEN,
            *("-bundle-size-max", "20KB", "-memory-max", "100KB", "-bundle-age-max", "1s"),
        )
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            ask = asked(agent)
            ask.wait(lambda: ask.get("/readyz")[0] == 200, "ready")
            assert ask.wrong() == []
            proxy.faults = [Fault(status=503, times=10**6, method="POST")]
            spool.write_many(3000)
            ask.wait(lambda: "uploads_failing" in ask.wrong(), "noticed")
            ask.wait(lambda: ask.status()["datatypes"][0]["waiting"]["files"] > 0, "backlog")
            during = ask.status()
            assert during["health"]["problems"][0]["code"] == "uploads_failing"
            assert "Uploads have been failing for" in during["health"]["headline"]
            assert "Nothing is lost" in during["health"]["headline"]
            (error,) = during["uploads"]["errors"]  # however many bundles it hit
            assert error["class"] == "TransientError"
            told = f"127.0.0.1:{proxy.port} answers HTTP 503 Service Unavailable"
            assert error["text"].startswith(told)
            assert "autoload" not in error["text"]
            assert error["times"] >= len(error["objects"]) >= error["failing"] >= 1
            assert told in during["health"]["headline"]
            assert during["datatypes"][0]["uploading"][0]["tries"] >= 1
            assert during["memory"]["held_bytes"] <= 100_000 + 20_000
            assert ask.value("jostler_uploads_failing") == 1
            assert ask.get("/healthz")[0] == 200
            assert ask.get("/readyz")[0] == 200
            assert b"Uploads have been failing for" in ask.get("/")[1]
            told = run("status", "-address", ask.address)
            assert told.returncode == 1
            assert "Uploads have been failing for" in told.stdout
            proxy.faults = []
            archived = ("jostler_files_archived_total", {"datatype": "foo1"})
            ask.wait(lambda: ask.value(archived[0], **archived[1]) == 3000, "recovered")
            ask.wait(lambda: ask.wrong() == [], "well again")
            assert ask.value("jostler_uploads_failing") == 0
            assert agent.stop() == 0


def test_a_bucket_that_is_away_at_the_start_leaves_the_probes_well(
    tmp_path: Path, gcs: GcsServer
) -> None:
    """A pod must neither be restarted nor held up by it; that it is not ready is said."""
    with FaultyServer(gcs.port) as proxy:
        proxy.faults = [Fault(status=503, times=10**6)]
        argv = arguments(Spool(tmp_path / "spool"), "away", *LISTEN)
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            ask = asked(agent)
            agent.wait_for("bucket.unreachable")
            assert ask.get("/healthz")[0] == 200
            assert ask.get("/startupz")[0] == 200
            assert ask.get("/readyz")[0] == 503
            assert ask.wrong() == ["uploads_failing", "not_ready"]
            problem = ask.status()["health"]["problems"][1]
            assert "the bucket" in problem["text"]


def test_an_agent_whose_bucket_refuses_at_the_start_watches_and_counts(
    tmp_path: Path, gcs: GcsServer
) -> None:
    """What is on disk, what comes, and why is shown; no file is read after a refusal."""
    spool = Spool(tmp_path / "spool")
    for number in range(30):  # bad ones, for good ones may be read before the first refusal
        spool.write(f"bad{number}.json", b"{", keep=False)
    gcs.create_bucket("blind-refuses")
    with FaultyServer(gcs.port) as proxy:
        proxy.faults = [Fault(status=503, times=10**6)]
        argv = arguments(spool, "blind-refuses", *LISTEN)
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            ask = asked(agent)
            foo1 = {"datatype": "foo1"}
            ask.wait(lambda: ask.value("jostler_files_waiting", **foo1) == 30, "counted")
            assert ask.value("jostler_oldest_waiting_timestamp_seconds", **foo1) > 0
            assert ask.value("jostler_spool_size_bytes") > 0
            assert ask.get("/readyz")[0] == 503
            ask.wait(lambda: ask.value("jostler_uploads_failing") == 1, "failing")
            failures = {"datatype": "", "class": "TransientError"}
            assert ask.value("jostler_upload_failures_total", **failures) >= 1
            assert ask.status()["uploads"]["errors"][0]["what"] == "table schemas"
            assert ask.value("jostler_files_arrived_total", **foo1) == 0
            spool.write_many(5)
            ask.wait(lambda: ask.value("jostler_files_arrived_total", **foo1) == 5, "arrived")
            assert ask.value("jostler_last_arrival_timestamp_seconds", **foo1) > 0
            assert ask.value("jostler_files_taken_total", **foo1) == 0
            assert agent.stop() == 0
    assert len(spool.left()) == 35


def test_an_agent_whose_bucket_hangs_at_the_start_reads_and_stores_nothing(
    tmp_path: Path, gcs: GcsServer
) -> None:
    """Files that are there and that come are counted, and stay on disk; it is not ready."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(30)
    gcs.create_bucket("blind-hangs")
    with FaultyServer(gcs.port) as proxy:
        proxy.faults = [Fault(status=503, times=10**6, delay_s=3600)]
        argv = arguments(spool, "blind-hangs", *LISTEN)
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            ask = asked(agent)
            foo1 = {"datatype": "foo1"}
            ask.wait(lambda: ask.value("jostler_files_taken_total", **foo1) == 30, "read")
            spool.write_many(5, first=30)
            ask.wait(lambda: ask.value("jostler_files_arrived_total", **foo1) == 35, "arrived")
            assert ask.value("jostler_last_arrival_timestamp_seconds", **foo1) > 0
            assert ask.get("/readyz")[0] == 503
            assert agent.stop() == 0
    assert len(spool.left()) == 35
    assert spool.journal() == []


def test_arrivals_are_counted_when_they_come_and_not_when_they_are_read(
    tmp_path: Path, gcs: GcsServer
) -> None:
    """In an outage nothing is read, and services go on writing; nothing counts twice."""
    spool = Spool(tmp_path / "spool")
    (spool.experiment / "foo1" / DAY).mkdir(parents=True)
    gcs.create_bucket("arrivals")
    with FaultyServer(gcs.port) as proxy:
        argv = arguments(spool, "arrivals", *LISTEN, "-bundle-age-max", "200ms")
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            ask = asked(agent)
            ask.wait(lambda: ask.get("/readyz")[0] == 200, "ready")
            proxy.faults = [Fault(status=503, times=10**6, method="POST")]
            spool.write_many(1)
            ask.wait(lambda: ask.value("jostler_uploads_failing") == 1, "failing")
            spool.write_many(40, first=1)
            arrived = ("jostler_files_arrived_total", {"datatype": "foo1"})
            ask.wait(lambda: ask.value(arrived[0], **arrived[1]) == 41, "arrived")
            assert ask.value("jostler_files_taken_total", datatype="foo1") == 1
            proxy.faults = []
            archived = ("jostler_files_archived_total", {"datatype": "foo1"})
            ask.wait(lambda: ask.value(archived[0], **archived[1]) == 41, "archived")
            assert ask.value(arrived[0], **arrived[1]) == 41
            assert agent.stop() == 0


def test_names_that_producers_choose_stay_data(tmp_path: Path) -> None:
    """Markup, control characters, and bytes that are no text, in JSON, metrics and terminal."""
    spool = Spool(tmp_path / "spool")
    day = spool.root / "exp/foo1" / DAY
    day.mkdir(parents=True)  # what comes into a new directory is met by a scan, and waits longer
    argv = arguments(spool, (tmp_path / "bucket").as_uri(), *LISTEN)
    evil = ["<img src=x onerror=alert(1)>.json", "a\x1b[31mred.json", 'q"\n# HELP x.json']
    with RunningAgent(*argv) as agent:
        ask = asked(agent)
        ask.wait(lambda: ask.get("/readyz")[0] == 200, "ready")
        for name in evil:
            spool.write(name, document(1))
        raw = str(day).encode() + b"/\xff\xfe.json"
        Path(raw.decode(errors="surrogateescape")).write_bytes(document(1))
        ask.wait(lambda: len(ask.status()["datatypes"][0]["rejected"]) == 4, "rejected")
        files = {one["file"] for one in ask.status()["datatypes"][0]["rejected"]}
        assert f"foo1/{DAY}/{evil[0]}" in files
        assert any("\\xff" in file for file in files)
        told = run("status", "-address", ask.address).stdout
        assert "\x1b" not in told
        assert all(line.isprintable() for line in told.splitlines())
        metrics = ask.get("/metrics")[1]
        assert not any(word in metrics for word in (b"onerror", b"\x1b", b"HELP x"))


def test_a_port_that_is_taken_ends_the_agent_with_a_message(tmp_path: Path) -> None:
    """Exit status 2; nothing is taken."""
    spool = Spool(tmp_path / "spool")
    bucket = (tmp_path / "bucket").as_uri()
    with RunningAgent(*arguments(spool, bucket, *LISTEN)) as agent:
        address = asked(agent).address
        other = Spool(tmp_path / "other")
        flag = ("-prometheusx.listen-address", address)
        ended = run(*arguments(other, bucket, *flag))
        assert ended.returncode == 2
        assert f"-prometheusx.listen-address: cannot listen on {address}" in ended.stderr


@pytest.mark.parametrize("arguments_", [("-address", "127.0.0.1:1"), ("-address", "x"), ("-nope",)])
def test_status_says_when_nobody_answers(arguments_: tuple[str, ...]) -> None:
    """Exit status 2, and one line that says why."""
    ended = run("status", *arguments_)
    assert ended.returncode == 2
    assert ended.stderr.startswith("jostler status: ")
    assert not ended.stdout


def test_status_can_be_watched(tmp_path: Path) -> None:
    """On a terminal it writes over itself, says when nobody answers, and ends with Ctrl-C."""
    ours, theirs = pty.openpty()
    argv = arguments(Spool(tmp_path / "spool"), (tmp_path / "bucket").as_uri(), *LISTEN)
    with RunningAgent(*argv) as agent, os.fdopen(ours, "rb", buffering=0) as terminal:
        ask = asked(agent)
        watch = subprocess.Popen(
            [sys.executable, "-m", "jostler", "status", "-watch", "-address", ask.address],
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        while seen.count(b"\x1b[H") < 2 or b"running" not in seen:
            seen += terminal.read(1 << 16)
        agent.stop()
        while b"nobody answers at" not in seen:
            seen += terminal.read(1 << 16)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(WAIT_S) == 2
    assert b"Traceback" not in seen


def test_status_as_json_and_the_health_check(tmp_path: Path) -> None:
    """`-json` is the document; `-health` says nothing when all is well."""
    argv = arguments(Spool(tmp_path / "spool"), (tmp_path / "bucket").as_uri(), *LISTEN)
    with RunningAgent(*argv) as agent:
        ask = asked(agent)
        assert json.loads(run("status", "-json", "-address", ask.address).stdout)["format"] == 1
        checked = run("status", "-health", "-address", ask.address)
        assert (checked.returncode, checked.stdout) == (0, "")
