"""Parse arguments and environment into one frozen value, `Options`.

**Invariant:** all mistakes are found before anything is touched, and are reported together.

Pure: argv, environment and today are arguments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from jostler.archive import retention
from jostler.format.names import Day, check_archived_datatype
from jostler.format.urls import masked
from jostler.schema import Use
from loader.cli.archive_values import MASTER, METRICS_RE, NAMINGS, ArchiveValues, patience
from loader.cli.values import (
    Command,
    Help,
    count,
    duration,
    fraction,
    one_of,
    read,
    switch,
    variable_of,
)
from loader.notify.receivers import Receiver, receiver
from loader.plan.window import FIRST, GIVEN, LAST, Period, Window, of_period

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from jostler.format.bigquery_names import Naming

PREFIX = "JOSTLER_LOAD_"
_STAGING_RE = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}(/.*)?|file:///.+", re.ASCII)

EPILOG = f"""\
Every option can be given by the environment too: --max-bad-fraction is {PREFIX}MAX_BAD_FRACTION;
repeatable ones take commas there, switches true or false.  Arguments win.
BIGQUERY_EMULATOR_HOST and STORAGE_EMULATOR_HOST (URLs) lead to other servers than Google's.
Exit status: 0 all well; 1 a day failed, was refused, or a difference was found; 2 wrong use;
130 interrupted."""


class Engine(StrEnum):
    """What verifies days: Spark, or for waves of few bytes the driver's own threads."""

    AUTO = "auto"
    SPARK = "spark"


class Verify(StrEnum):
    """How the rows of a day are verified."""

    INDEX = "index"
    FULL = "full"


class AssetUse(StrEnum):
    """What is done with the assets of the buckets."""

    APPLY = "apply"
    READ = "read"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a run is to do; each attribute is the option of its name (see `HELP`)."""

    bucket: tuple[str, ...]
    api: tuple[str, ...]
    experiment: frozenset[str]
    datatype: frozenset[str]
    window: Window
    project: str
    view_project: str
    location: str
    naming: Naming
    staging: str
    meta_dataset: str
    max_bad_fraction: float
    parallel_days: int
    share: float
    jobs_per_day: int
    give_up_after_s: float
    every_s: float
    patience_s: float
    native: Use
    master: str
    engine: Engine
    metrics: str
    notify: tuple[Receiver, ...]
    notify_secrets: str
    period: str
    verify: Verify
    sample: float
    assets: AssetUse
    partition_expiration: Mapping[str, int]
    force: bool
    accept_deletions: bool
    allow_empty: bool
    dry_run: bool
    verify_only: bool

    @property
    def trusts_indexes(self) -> bool:
        """Whether days may be loaded by their index, where it can be trusted."""
        return self.verify is Verify.INDEX

    @property
    def reads_assets(self) -> bool:
        """Whether assets say how days are loaded."""
        return self.assets is not AssetUse.IGNORE

    @property
    def applies_assets(self) -> bool:
        """Whether assets say how tables and datasets are described, read and kept."""
        return self.assets is AssetUse.APPLY


HELP: Help = (
    ("bucket", "URL*", "", "bucket to load from, gs://NAME or file:///DIR; repeatable"),
    ("api", "v1|v2|all", "all", "which layouts of the bucket to load"),
    ("experiment", "NAME*", "", "only this experiment; repeatable; all if not given"),
    ("datatype", "NAME*", "", "only this datatype; repeatable; all if not given"),
    ("period", "|".join(Period), "daily", "which days to look at, from today (UTC)"),
    ("start", "YYYY/MM/DD", "", "first day to look at, instead of --period"),
    ("end", "YYYY/MM/DD", "", "day after the last one to look at, instead of --period"),
    ("project", "ID", "", "project of tables, ledger and load jobs"),
    ("view-project", "ID", "", "project of views; that of --project if not given"),
    ("location", "NAME", "US", "where new datasets are made; must be the buckets' location"),
    ("naming", NAMINGS, "mlab", "names of v1 tables and views"),
    ("staging", "URL", "", "bucket and prefix for rewritten bundles; without it loader-staging/"),
    ("meta-dataset", "NAME", "jostler", "dataset of the ledger and the rejects"),
    ("max-bad-fraction", "0..1", "0.1", "a day with a larger part of bad rows is not replaced"),
    ("parallel-days", "N", "64", "days verified in one Spark job and loaded at the same time"),
    ("share", "0..1", "0.5", "largest part of the parallel days that one experiment may hold"),
    ("jobs-per-day", "N", "1400", "load jobs of a table in 24 hours; the rest waits"),
    ("give-up-after", "TIME", "7d", "how long a day may fail until no run tries it any more"),
    ("every", "TIME", "", "stay, and load again at this interval, such as 5m; or when asked"),
    patience("120"),
    ("native", "|".join(Use), "auto", "jostler-native, which accepts good rows fast"),
    MASTER,
    ("engine", "|".join(Engine), "auto", "auto: waves of few bytes need no Spark"),
    ("metrics", "URL", "", "where to leave metrics: file:///DIR/NAME.prom or a push gateway"),
    ("notify", "URL*", "", "tell this URL of each day, by a CloudEvent; repeatable"),
    ("notify-secrets", "FILE", "", "secrets that sign what is told: URL-BEGINNING SECRET lines"),
    ("verify", "|".join(Verify), "index", "index: do not read bundles whose index can be trusted"),
    ("sample", "0..1", "0.01", "part of a trusted day's bundles to read in full; at least one"),
    ("assets", "|".join(AssetUse), "apply", "read: share and bad fraction only; change nothing"),
    ("partition-expiration", "DATATYPE=DAYS*", "", "how long BigQuery keeps partitions; or =never"),
    ("force", "", "false", "load days that are loaded already"),
    ("accept-deletions", "", "false", "load days that lack objects they were loaded from"),
    ("allow-empty", "", "false", "no bucket, no schema, or none of a given name, is no error"),
    ("dry-run", "", "false", "print the plan and touch nothing"),
    ("verify-only", "", "false", "compare index, bundles and BigQuery; change nothing"),
)  # fmt: skip
COMMAND = Command(
    prog="jostler-load",
    about="Load bundles of measurement files into BigQuery tables, each row once.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
)


def parse(argv: Sequence[str], environ: Mapping[str, str], today: date) -> Options:
    """Read arguments and environment.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    return read(_Values(COMMAND, argv, environ), lambda values: values.options(today))


def variable(option: str) -> str:
    """Return the name of an option's environment variable."""
    return variable_of(PREFIX, option)


class _Values(ArchiveValues):
    """The values of a load."""

    def options(self, today: date) -> Options:
        project, buckets = self.project(), self.buckets()
        staging = self.text("staging")
        if staging and not _STAGING_RE.fullmatch(staging):
            self.problems.append(f"--staging: {staging!r} is neither gs://… nor file:///…")
        metrics = self.text("metrics")
        if metrics and not METRICS_RE.fullmatch(metrics):
            shown = masked(metrics) if "@" in metrics else repr(metrics)
            self.problems.append(f"--metrics: {shown} is neither file:///… nor http(s)://…")
        self._modes()
        return Options(
            bucket=buckets,
            api=self.layouts(),
            experiment=self.experiments(),
            datatype=frozenset(self.many("datatype", check_archived_datatype)),
            window=self._window(today),
            project=project,
            view_project=self.text("view-project") or project,
            location=self.text("location"),
            naming=self.naming(),
            staging=_staging(staging, buckets),
            meta_dataset=self.meta_dataset(),
            max_bad_fraction=self.one("max-bad-fraction", fraction) or 0.0,
            parallel_days=self.one("parallel-days", count(1000)) or 1,
            jobs_per_day=self.one("jobs-per-day", count(30_000)) or 1,
            give_up_after_s=self.one("give-up-after", duration) or 0.0,
            every_s=self.optional("every", duration) or 0.0,
            share=self.one("share", fraction) or 0.0,
            patience_s=self.patience_s(),
            native=self.one("native", one_of(Use)) or Use.AUTO,
            master=self.text("master"),
            engine=self.one("engine", one_of(Engine)) or Engine.AUTO,
            metrics=metrics,
            notify=self._receivers(),
            notify_secrets=self.text("notify-secrets"),
            period=self._period(),
            verify=self.one("verify", one_of(Verify)) or Verify.FULL,
            sample=self.one("sample", fraction) or 0.0,
            assets=self.one("assets", one_of(AssetUse)) or AssetUse.IGNORE,
            partition_expiration=self._expirations(),
            force=bool(self.one("force", switch)),
            accept_deletions=bool(self.one("accept-deletions", switch)),
            allow_empty=bool(self.one("allow-empty", switch)),
            dry_run=bool(self.one("dry-run", switch)),
            verify_only=bool(self.one("verify-only", switch)),
        )

    def _receivers(self) -> tuple[Receiver, ...]:
        urls = self.many("notify", lambda text: receiver(text).url)
        return tuple(map(Receiver, dict.fromkeys(urls)))

    def _modes(self) -> None:
        """Refuse switches that exclude each other: --verify-only neither plans nor loads."""
        for other in ("dry-run", "verify-only", "force"):
            if self.text("every") and self.text(other) == "true":
                self.problems.append(f"--{other} and --every: only one of them")
        for other in ("dry-run", "force"):
            if self.text(other) == self.text("verify-only") == "true":
                self.problems.append(f"--{other} and --verify-only: only one of them")

    def _expirations(self) -> dict[str, int]:
        """Return the days of --partition-expiration by datatype; 0 for never."""
        texts = self.many("partition-expiration", str)
        never = [text.removesuffix("=never") for text in texts if text.endswith("=never")]
        try:
            days = retention.parse(text for text in texts if not text.endswith("=never"))
            for datatype in [*never, *days]:
                check_archived_datatype(datatype)
        except ValueError as exc:
            self.problems.append(f"--partition-expiration: {exc}")
            return {}
        for datatype in sorted(days.keys() & set(never)):
            self.problems.append(f"--partition-expiration: {datatype} is named twice")
        return {**days, **dict.fromkeys(never, 0)}

    def _period(self) -> str:
        """Return the period as metrics name it; `GIVEN` if --start or --end selects the days."""
        given = self.text("start") or self.text("end")
        return GIVEN if given else self.text("period")

    def _window(self, today: date) -> Window:
        ends = [self.text("start"), self.text("end")]
        period = self.one("period", one_of(Period))
        given = self._given["period"] or self._environ.get(variable("period"))
        if not any(ends):
            return of_period(period or Period.DAILY, today)
        if given:
            self.problems.append("--period: say either this or --start and --end")
        days = [FIRST, LAST]
        for place, name in enumerate(("start", "end")):
            if ends[place]:
                found = self.one(name, Day.parse)
                days[place] = found.date if found else days[place]
        if days[0] >= days[1]:
            self.problems.append(f"--start: {ends[0]} is not before --end {ends[1]}")
        return Window(start=days[0], end=days[1])


def _staging(given: str, buckets: tuple[str, ...]) -> str:
    """Return where staging is; a bucket gets a prefix, for cleaning staging lists all below it."""
    staging = given.rstrip("/")
    is_bucket = staging.startswith("gs://") and "/" not in staging.removeprefix("gs://")
    if is_bucket or (not staging and buckets):
        return f"{staging or buckets[0]}/loader-staging"
    return staging
