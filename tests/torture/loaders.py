"""Torture of loaders: driver, JVM and workers are killed, two run at once, services fail.

Two of three loaders use Spark, the others verify in the driver; half do without the native module.

usage: python -m tests.torture.loaders --runs 200

A bucket of odd bundles grows round by round: good ones, bad rows, repeats, rows of another day, cut
tails, no gzip, late ones, and ones in the Go agent's form.  In each round loaders are started as
processes and killed somewhere, some of them with --every, while somebody asks for days to be loaded
anew; then one runs in peace, and SQL is asked whether every row is where it must be, and every day
that was asked for was loaded since.  Exit status 0: every check was right.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from google.api_core.exceptions import NotFound

from tests.loader.world import BigQueryServer, World, row
from tests.support.gcs import GcsServer
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import DATATYPE, EXPERIMENT, document

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_DAY = date(2026, 1, 1)
DAYS = 6
ROWS = 60
RUN_S = 400
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
TABLE = f"raw_{EXPERIMENT}.{DATATYPE}"


@dataclass
class Day:
    """What the bucket holds of a day: Filename and UUID of each good row, places of bad ones."""

    good: set[tuple[str, str]] = field(default_factory=set)
    bad: set[tuple[str, int]] = field(default_factory=set)
    corrupt: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Wish:
    """A request: its id, and the days of it that had bundles when it was made."""

    id: str
    days: frozenset[date]


class Filler:
    """Puts odd bundles into a world and remembers what must come of them."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._number = 0
        self._rows: dict[date, list[list[bytes]]] = {}
        self.days: dict[date, Day] = {}
        self.kinds: Counter[str] = Counter()

    def put_some(self) -> None:
        """Add one to four bundles, of one to three days."""
        kinds = ("good", "good", "go", "bad", "repeat", "strangers", "changed", "cut", "no gzip")
        for _ in range(self._random.randint(1, 4)):
            day = FIRST_DAY + timedelta(days=self._random.randrange(DAYS))
            known = self.days.setdefault(day, Day())
            kind = self._random.choice(kinds) if known.good else "good"
            self.kinds[kind] += 1
            self._put(kind, day, known)

    def _put(self, kind: str, day: date, known: Day) -> None:
        if kind == "repeat":
            self._world.put_bundle(self._random.choice(self._rows[day]), day=day)
            return
        lines = [self._good(day, known, go=kind == "go", keep=kind != "cut") for _ in range(ROWS)]
        if kind == "cut":
            known.corrupt.add(self._world.put_bundle(lines[:4], day=day, cut=30))
            return
        if kind == "no gzip":
            known.good -= {(_filename(line), _uuid(line)) for line in lines}
            name = self._world.put_bundle([], day=day)
            self._world.put(name, b"no gzip at all")
            known.corrupt.add(name)
            return
        bad = {}
        if kind == "bad":
            bad = {self._random.randrange(ROWS): b'{"UUID":"bad","Rate":"fast"}'}
            lines.extend(self._good(day, known) for _ in range(ROWS))
        if kind == "strangers":
            bad = {3: b""}
        for at, raw in bad.items():
            known.good.discard((_filename(lines[at]), _uuid(lines[at])))
            self._number += 1
            wrong = day if raw else day + timedelta(days=400)
            lines[at] = row(self._number, day=wrong, raw=raw or None)
        if kind == "changed":  # the name of a row that is there, with other content: both count
            name = self._random.choice(sorted(known.good))[0].rpartition("/")[2]
            self._number += 1
            lines.append(row(self._number, day=day, name=name))
            known.good.add((_filename(lines[-1]), _uuid(lines[-1])))
        stored = self._world.put_bundle(lines, day=day)
        known.bad |= {(stored, at + 1) for at in bad}
        if not bad:
            self._rows.setdefault(day, []).append(lines)

    def _good(self, day: date, known: Day, *, go: bool = False, keep: bool = True) -> bytes:
        self._number += 1
        line = row(self._number, day=day, go=go)
        if keep:
            known.good.add((_filename(line), _uuid_of(self._number)))
        return line


def _uuid_of(number: int) -> str:
    uuid: str = json.loads(document(number))["UUID"]
    return uuid


def _filename(line: bytes) -> str:
    row = {key.lower(): value for key, value in json.loads(line).items()}  # Go's are capitalised
    filename: str = row["archiver"]["Filename"]
    return filename


def _uuid(line: bytes) -> str:
    row = {key.lower(): value for key, value in json.loads(line).items()}
    uuid: str = row["raw"]["UUID"]
    return uuid


class Campaign:
    """One world and all that is done to the loaders in it.

    Args:
        bigquery: the embedded BigQuery.
        gcs: the bucket's server.
        seed: of all that is random.
        engines: one is chosen for each loader.
    """

    def __init__(
        self,
        bigquery: BigQueryServer,
        gcs: FaultyServer,
        seed: int,
        engines: Sequence[str] = ("spark", "spark", "auto"),
    ) -> None:
        self._engines = engines
        self._wishes: list[Wish] = []
        self.world = World(bigquery, gcs)
        self.world.put_schema()
        self.filler = Filler(self.world, seed)
        self.runs = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._children: list[int] = []
        self._quick = False  # the loader started last needs no Spark
        self._random = random.Random(seed)
        self._environ = {"JDK_JAVA_OPTIONS": QUICK_JVM, "STORAGE_EMULATOR_HOST": gcs.url}

    def round(self) -> None:
        """Add bundles, hurt some loaders, let one run in peace, check."""
        self.filler.put_some()
        if self.counts["checks"]:  # a run has made the table of requests
            self._ask()
        for _ in range(self._random.choice((1, 1, 2))):
            kinds = (self._kill_one, self._kill_one, self._pair, self._failing, self._staying)
            self._random.choice(kinds)()
        self.world.bigquery.clear()
        self.world.gcs.faults.clear()
        self._in_peace()
        self.world.gcs.seen.clear()
        self.world.gcs.bodies.clear()

    def _start(self, *more: str) -> subprocess.Popen[str]:
        self.runs += 1
        if self._random.random() < 0.4:
            self._ask()
        engine = self._random.choice(self._engines)
        native = self._random.choice(("auto", "off"))
        self.counts[f"engine {engine}, native {native}"] += 1
        self._quick = engine == "auto"
        argv = ("--max-bad-fraction", "0.9", "--engine", engine, "--native", native)
        return self.world.start(*argv, *more, **self._environ)

    def _ask(self) -> None:
        """Ask for some days, of which some may have no bundle."""
        first = FIRST_DAY + timedelta(days=self._random.randrange(DAYS))
        last = first + timedelta(days=self._random.randrange(3))
        wish = Wish(
            f"wish-{len(self._wishes)}",
            frozenset(d for d in self.filler.days if first <= d <= last),
        )
        values = f"('{wish.id}', '{EXPERIMENT}', '{DATATYPE}', '{first}', '{last}')"
        with suppress(NotFound):  # no run has made the table yet
            self.world.sql(
                "INSERT INTO jostler.requests (RequestID, Experiment, Datatype, StartDate, EndDate)"
                f" VALUES {values}"
            )
            self._wishes.append(wish)
            self.counts["requests"] += 1

    def _staying(self) -> None:
        """A loader that stays, and is killed or ended somewhere in its rounds."""
        loader = self._start("--every", "1s")
        self._hurt(loader)
        if self._random.random() < 0.5:
            self._ask()
        time.sleep(self._random.uniform(0, 3))
        if loader.poll() is None:
            loader.send_signal(self._random.choice((signal.SIGTERM, signal.SIGKILL)))
        self.counts["stayed"] += 1
        self._end(loader)

    def _kill_one(self) -> None:
        loader = self._start()
        self._hurt(loader)
        self._end(loader)

    def _pair(self) -> None:
        """Two loaders over the same days; one of them may die."""
        first, second = self._start(), self._start()
        self.counts["pairs"] += 1
        if self._random.random() < 0.5:
            self._hurt(first)
        for loader in (first, second):
            self._end(loader)

    def _failing(self) -> None:
        """Faults of both services while a loader runs."""
        project = f"/projects/{self.world.project}/"
        fault = self._random.choice(
            ("unavailable_before", "unavailable_after", "rate_limited", "job_error", "job_slow")
        )
        job = fault.startswith("job")
        facts: dict[str, object] = {"times": self._random.randint(1, 6)}
        facts |= {"job": DATATYPE} if job else {"path": project, "method": "POST"}
        facts |= {"seconds": 2} if fault == "job_slow" else {}
        facts |= {"reason": "backendError"} if fault == "job_error" else {}
        self.world.bigquery.fault(fault, **facts)
        status = self._random.choice((0, 429, 503))
        lost = self._random.random() < 0.5
        self.world.gcs.faults.append(Fault(status=status, times=4, after=lost))
        self.counts[f"fault {fault}"] += 1
        loader = self._start()
        if self._random.random() < 0.5:
            self._hurt(loader)
        self._end(loader)

    def _hurt(self, loader: subprocess.Popen[str]) -> None:
        """Kill the driver, its JVM or a worker of Python, somewhere in the run."""
        time.sleep(self._random.uniform(0.5, 3.0 if self._quick else 12.0))
        whom = self._random.choice(("driver", "jvm", "worker", "interrupt"))
        self._children = [pid for pid, _ in below(loader.pid)]  # orphans cannot be found later
        if loader.poll() is not None:
            whom = "came too late"
        elif whom == "driver":
            loader.kill()
        elif whom == "interrupt":
            loader.send_signal(self._random.choice((signal.SIGINT, signal.SIGTERM)))
        else:
            wanted = "java" if whom == "jvm" else "pyspark"
            found = [pid for pid, words in below(loader.pid) if wanted in words]
            if found:
                os.kill(self._random.choice(found), signal.SIGKILL)
            else:
                whom = f"no {whom} yet"
        self.counts[f"kill: {whom}"] += 1

    def _end(self, loader: subprocess.Popen[str]) -> None:
        children = [*self._children, *(pid for pid, _ in below(loader.pid))]
        self._children = []
        if loader.poll() is not None:  # its JVM may outlive it, and holds its output open
            _kill_all(children)
        try:
            loader.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            loader.kill()
            _kill_all(children)  # what the loader left behind may hold its output open
            loader.communicate()
            self.problems.append(f"run {self.runs}: a loader hung for {RUN_S} s")
        _kill_all(children)

    def _in_peace(self) -> None:
        loader = self._start()
        out, err = loader.communicate(timeout=RUN_S)
        if loader.returncode != 0:
            self.problems.append(
                f"run {self.runs}: exit {loader.returncode}: {out[-500:]} {err[-1500:]}"
            )
        self._check()

    def _check(self) -> None:
        self.counts["checks"] += 1
        found: dict[date, Counter[tuple[str, str]]] = {}
        columns = "date, archiver.Filename AS f, raw.UUID AS u"
        sql = f"SELECT {columns} FROM `{TABLE}` WHERE date > '2020-01-01'"
        for line in self.world.sql(sql):
            found.setdefault(line["date"], Counter())[line["f"], line["u"]] += 1
        for day, known in self.filler.days.items():
            rows = found.pop(day, Counter())
            lost, foreign = known.good - set(rows), set(rows) - known.good
            double = [key for key, count in rows.items() if count > 1]
            if lost or foreign or double:
                self.problems.append(
                    f"run {self.runs} {day}: lost {len(lost)} {sorted(lost)[:2]}, "
                    f"foreign {len(foreign)} {sorted(foreign)[:2]}, double {double[:2]}"
                )
        self.problems += [f"run {self.runs}: rows of {day}, which has none" for day in found]
        self._check_rejects()
        self._check_wishes()
        try:
            self.world.assert_adds_up()
        except AssertionError as exc:
            self.problems.append(f"run {self.runs}: counts do not add up: {exc}")

    def _check_wishes(self) -> None:
        """Each day that was asked for has a load since, in the ledger once, and an answer."""
        if not self._wishes:
            return
        sql = "SELECT RequestID, RequestedAt, State, Error FROM jostler.request_status"
        answers = {told["RequestID"]: told for told in self.world.sql(sql)}
        loads = [told for told in self.world.ledger() if told["Status"] == "success"]
        made = {job.job_id: job.created for job in self.world.client.list_jobs()}
        for wish in self._wishes:
            told = answers[wish.id]
            wanted = (
                "done" if wish.days else "failed"
            )  # bundles may have come since: then it is done
            if told["State"] not in {wanted, "done"}:
                self.problems.append(
                    f"run {self.runs}: {wish.id} is {told['State']}: {told['Error']}"
                )
            since = {
                one["date"]
                for one in loads
                if one["RequestedAt"]
                and one["RequestedAt"] >= told["RequestedAt"]
                # A job of before it, which the ledger only says to be an answer, is none.
                and made[one["JobID"]] >= told["RequestedAt"]
            }
            if missing := wish.days - since:
                self.problems.append(f"run {self.runs}: {wish.id}: not loaded {sorted(missing)}")
        jobs = Counter(told["JobID"] for told in loads)
        if double := [job for job, count in jobs.items() if count > 1]:
            self.problems.append(f"run {self.runs}: in the ledger twice: {double[:2]}")

    def _check_rejects(self) -> None:
        sql = "SELECT ArchiveURL AS o, Line AS n, Reason AS r FROM jostler.reject_rows"
        told = {(r["o"].split("/", 3)[3], r["n"], r["r"]) for r in self.world.sql(sql)}
        corrupt = {name for name, _, reason in told if reason == "corrupt-bundle"}
        bad = {(name, line) for name, line, reason in told if reason != "corrupt-bundle"}
        for day, known in self.filler.days.items():
            if missing := known.bad - bad:
                self.problems.append(
                    f"run {self.runs} {day}: not in the rejects {sorted(missing)[:2]}"
                )
            if missing_bundles := known.corrupt - corrupt:
                self.problems.append(
                    f"run {self.runs} {day}: no reject of {sorted(missing_bundles)[:2]}"
                )


def _kill_all(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def below(pid: int) -> list[tuple[int, str]]:
    """Return all processes that a process started, with their command lines."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        parents.setdefault(parent, []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            todo.append(child)
            try:
                words = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            found.append((child, words))
    return found


def main() -> int:
    """Run the campaign; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="processes of the loader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-spark", action="store_true", help="all verify in the driver")
    options = parser.parse_args()
    problems: list[str] = []
    engines = ("auto",) if options.without_spark else ("spark", "spark", "auto")
    runs, number = 0, options.seed
    with tempfile.TemporaryDirectory(prefix="torture-") as home, GcsServer() as gcs:
        proxy = FaultyServer(gcs.port)
        os.environ["STORAGE_EMULATOR_HOST"] = gcs.url
        with proxy:
            bigquery = BigQueryServer(Path(home), gcs.url)
            try:
                while runs < options.runs and not problems:
                    campaign = Campaign(bigquery, proxy, number, engines)
                    while campaign.runs < min(40, options.runs - runs) and not campaign.problems:
                        campaign.round()
                    runs, number = runs + campaign.runs, number + 1
                    problems += campaign.problems
                    print(f"{runs} runs; {json.dumps(dict(sorted(campaign.counts.items())))}")
                    print(f"  bundles {json.dumps(dict(campaign.filler.kinds))}", flush=True)
                    campaign.world.close()
            finally:
                bigquery.stop()
    for problem in problems:
        print(f"PROBLEM {problem}")
    print(f"{runs} runs of the loader, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
