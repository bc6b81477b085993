"""The demo from beginning to end: write, kill, go on, load, ask, and add up.

**Invariant:** each number that is shown was counted where it is said to be: in the spool, in the
bucket, or by BigQuery; and what was written is what was loaded and what was rejected, or the demo
fails.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
from collections import Counter
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from demo.feeds import Replicas
from demo.measurements import DATATYPES, measurements
from demo.processes import DemoError, start_bigquery, start_storage
from demo.questions import EXAMPLES, Questions, text
from demo.services import Written
from jostler.format.row import one_line
from loader.bigquery.ask import Answer
from loader.cli.sql import as_table

if TYPE_CHECKING:
    from pathlib import Path

    from demo.page import Page
    from demo.processes import Process, Processes

QUERIES = ("speed_by_country", "ping_loss", "speed_samples")
BUCKET, PROJECT, EXPERIMENT = "demo-archive", "demo", "demo"
FILES = 2000
KILL_AFTER_FILES = 1200
EMPTY_S = 60.0
LOAD_S = 120.0
TICK_S = 0.02


class Story:
    """One run of the demo.

    Args:
        home: an empty directory for everything that is kept.
        processes: where programs are started, and ended by whoever made it.
        page: where it is told.
    """

    def __init__(self, home: Path, processes: Processes, page: Page) -> None:
        self._spool = home / "spool"
        self._home = home
        self._processes = processes
        self._page = page
        self._written = Written()
        self._replicas = Replicas(home, EXPERIMENT)
        self._gcs_url = ""
        self._bigquery_url = ""

    def tell(self) -> None:
        """Tell it.

        Raises:
            DemoError: something did not end as it must.
        """
        self._start_servers()
        self._write_and_kill()
        self._go_on()
        self._replicas.collect(self._processes, self._page, BUCKET)
        self._show_bucket()
        self._load()
        self._load_again()
        self._show_rejects()
        self._show_ledger()
        self._show_answers()
        self._replicas.ask(self._questions, self._page)
        self._add_up()
        self._read_back()

    def _start_servers(self) -> None:
        self._page.step("Servers on this machine: object storage and BigQuery")
        self._gcs_url = start_storage(self._processes, self._home / "bucket", BUCKET)
        self._processes.set(STORAGE_EMULATOR_HOST=self._gcs_url)
        self._page.say(f"fake-gcs-server    {self._gcs_url}  bucket gs://{BUCKET}, empty")
        url = start_bigquery(self._processes, self._home / "bigquery")
        self._processes.set(BIGQUERY_EMULATOR_HOST=url)
        self._page.say(f"embedded BigQuery  {url}  project {PROJECT}, empty")
        self._bigquery_url = url
        schemas = self._spool / "datatypes"
        schemas.mkdir(parents=True)
        for datatype in DATATYPES:
            shutil.copy(EXAMPLES / f"{datatype}.json", schemas)

    def _start_agent(self) -> Process:
        agent = self._processes.python(
            "agent",
            "jostler",
            *("-gcs-bucket", BUCKET, "-node-name", "laptop", "-experiment", EXPERIMENT),
            *("-datatype", ",".join(DATATYPES), "-local-data-dir", str(self._spool)),
            *("-bundle-size-max", "200KB", "-bundle-age-max", "2s", "-upload-concurrency", "2"),
            *("-settle-age", "500ms", "-missed-age", "1s", "-missed-interval", "1s"),
            *("-log-format", "json", "-prometheusx.listen-address", "127.0.0.1:0"),
        )
        until = time.monotonic() + EMPTY_S
        while not agent.events("agent.started"):
            _wait(agent, until, "has not started")
        return agent

    def _write_and_kill(self) -> None:
        self._page.step("Services write files, the agent takes them, and is killed at it")
        agent = self._start_agent()
        now = datetime.now(UTC).date()
        for measurement in measurements(now, FILES):
            self._written.write(self._spool / EXPERIMENT, measurement, now.isoformat())
            if agent.is_running() and self._is_amid(agent):
                self._kill(agent)
        if agent.is_running():  # a fast disk: no moment was caught
            self._kill(agent)
        written, bad = self._written, self._written.bad
        self._page.say(
            f"The services took no notice: {written.files} files, {written.size_bytes:,} bytes;"
        )
        self._page.say(
            f"{written.yesterday} of them for yesterday, {written.pretty} pretty-printed,"
            f" {bad.total()} bad in {len({flaw for _, flaw in bad})} ways."
        )

    def _is_amid(self, agent: Process) -> bool:
        """Say whether some bundles are stored and another is just on its way."""
        late = self._written.files >= KILL_AFTER_FILES
        return late and bool(self._journal()) and bool(agent.events("bundle.stored"))

    def _kill(self, agent: Process) -> None:
        agent.kill()
        stored = Counter(_datatype(name) == "index1" for name in self._bundles())
        self._page.say(
            f"kill -9 {agent.pid} after {self._written.files} files.  In the bucket:"
            f" {stored[False]} data bundles, {stored[True]} indexes;"
        )
        self._page.say(
            f"bundles on their way, by the agent's journal: {len(self._journal())};"
            f" still on disk: {len(self._left())} files."
        )

    def _go_on(self) -> None:
        self._page.step("The agent is started again, and finds everything")
        agent = self._start_agent()
        until = time.monotonic() + EMPTY_S
        while self._left() or self._journal():
            _wait(agent, until, f"leaves files in the spool: {self._left()[:3]}")
        replayed = sum(line["entries"] for line in agent.events("journal.replayed"))
        status = agent.stop()
        if status:
            raise DemoError(f"the agent ended with status {status}, not 0")
        self._page.say(
            f"Bundles finished from its journal: {replayed}.  The rest it took from disk."
        )
        self._page.say("It ended with status 0 at SIGTERM, and the spool is empty.")

    def _show_bucket(self) -> None:
        self._page.step("What arrived in the bucket")
        kinds = Counter(_datatype(name) for name in self._bundles())
        rows = tuple(sorted(kinds.items()))
        self._page.block(
            as_table(Answer(columns=("datatype", "bundles"), numeric=(False, True), rows=rows))
        )
        self._page.say("Each data bundle has an index bundle beside it: what, where, which hash.")
        self._run("verify", "jostler", "verify", f"gs://{BUCKET}")

    def _loader(self) -> str:
        return self._run(
            "loader",
            "loader",
            *("--bucket", f"gs://{BUCKET}", "--project", PROJECT, "--period", "everything"),
        )

    def _run(self, name: str, module: str, *arguments: str) -> str:
        """Run a command to its end and show the result that it prints."""
        process = self._processes.python(name, module, *arguments)
        status = process.wait(LOAD_S)
        lines = [x for x in process.output().splitlines() if not x.startswith("{")]
        output = "\n".join(x for x in lines if not _is_noise(x))
        self._page.block(output)
        if status:
            raise DemoError(f"{name} ended with status {status}, not 0: see {process.log.name}")
        return output

    def _load(self) -> None:
        self._page.step("The loader, on Spark: from bundles to day partitions")
        self._loader()

    def _load_again(self) -> None:
        self._page.step("The loader once more: nothing to do")
        output = self._loader()
        if "nothing to do" not in output:
            raise DemoError("the second run of the loader did something")

    def _show_rejects(self) -> None:
        self._page.step("Bad files are rows too: examples/rejected.sql")
        self._page.block(as_table(self._questions.ask("rejected")))

    def _show_ledger(self) -> None:
        self._page.step("What the loader noted: examples/ledger.sql")
        self._page.block(as_table(self._questions.ask("ledger")))

    def _show_answers(self) -> None:
        for name in QUERIES:
            self._page.step(f"A question to BigQuery: examples/{name}.sql")
            sql = text(name)
            self._page.block(sql)
            self._page.say("")
            self._page.block(as_table(self._questions.ask(name)))

    def _add_up(self) -> None:
        self._page.step("Does it add up?  examples/arrived.sql, beside what was written")
        arrived = {row[0]: row[1:] for row in self._questions.ask("arrived").rows}
        late = self._questions.count("SELECT COUNT(*) FROM jostler.rejects")
        rows, problems = [], []
        for datatype in sorted(DATATYPES):
            good = self._written.good[datatype]
            bad = sum(n for (kind, _), n in self._written.bad.items() if kind == datatype)
            loaded, files, rejected = arrived[datatype]
            rows.append((datatype, good + bad, good, loaded, bad, rejected))
            if (loaded, files, rejected) != (good, good, bad):
                problems.append(datatype)
        columns = ("datatype", "written", "good", "loaded", "bad", "rejected")
        table = Answer(columns=columns, numeric=(False, *[True] * 5), rows=tuple(rows))
        self._page.block(as_table(table))
        loaded, rejected = sum(row[3] for row in rows), sum(row[5] for row in rows) + late
        sign = "=" if self._written.files == loaded + rejected else "≠"
        self._page.say(
            f"written {self._written.files} {sign} loaded {loaded} + rejected {rejected}"
        )
        if problems or sign != "=" or self._reasons() != self._written.bad:
            raise DemoError(f"what was written is not what arrived: {', '.join(problems)}")
        self._page.say("No file lost, none twice, each bad one with the reason it was made with.")

    def _read_back(self) -> None:
        """List the archive, fetch one file, and compare it with what was written."""
        self._page.step("Out of the archive again, without BigQuery: jostler list, jostler fetch")
        wanted = self._written.example
        if not wanted:
            raise DemoError("no file of several lines was written")
        self._processes.set(XDG_CONFIG_HOME=str(self._home), XDG_CACHE_HOME=str(self._home))
        where = ("-bucket", BUCKET, "-experiment", EXPERIMENT)
        self._run("list", "jostler", "list", "-days", *where)
        filename = f"{wanted.day:%Y/%m/%d}/{wanted.name}"
        self._run("list", "jostler", "list", wanted.datatype, "-name", filename, *where)
        fetched = self._home / "fetched"
        datatype = ("-datatype", wanted.datatype)
        self._run("fetch", "jostler", "fetch", filename, "-dir", str(fetched), *datatype, *where)
        if (fetched / wanted.name).read_bytes() != one_line(wanted.content):
            raise DemoError(f"{filename} is not what was written")
        self._page.say("Byte for byte what was written, but for its line breaks: rows are lines.")

    def _reasons(self) -> Counter[tuple[str, str]]:
        return Counter({(row[0], row[1]): row[2] for row in self._questions.ask("rejected").rows})

    @cached_property
    def _questions(self) -> Questions:
        return Questions(self._bigquery_url, PROJECT)

    def _bundles(self) -> list[str]:
        """Return the names of all bundles, by the storage server's own list."""
        url = f"{self._gcs_url}/storage/v1/b/{BUCKET}/o?prefix=autoload/v1/{EXPERIMENT}/"
        with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - the URL is ours
            found: dict[str, Any] = json.load(reply)
        return [item["name"] for item in found.get("items", [])]

    def _left(self) -> list[str]:
        """Return the files that are still in the spool."""
        top = self._spool / EXPERIMENT
        return [p.name for d in DATATYPES for p in (top / d).rglob("*.json")]

    def _journal(self) -> list[Path]:
        state = self._spool / f".jostler-{EXPERIMENT}"
        return [*state.glob("*.sealed"), *state.glob("*.stored")]


def _wait(process: Process, until: float, trouble: str) -> None:
    """Wait a moment for a process to do something."""
    if not process.is_running() or time.monotonic() > until:
        raise DemoError(f"the {process.name} {trouble}: see {process.log.name}")
    time.sleep(TICK_S)


def _datatype(bundle: str) -> str:
    return bundle.split("/")[3]


def _is_noise(line: str) -> bool:
    """Say whether a line is one of those that Spark's launcher writes and nobody can turn off."""
    return line.startswith(("WARNING:", "Setting ", "To adjust", "Using Spark")) or (
        " WARN " in line
    )
