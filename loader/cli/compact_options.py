"""The options of `jostler-load compact`.

**Invariant:** all mistakes are found before anything is touched, and are reported together.

Pure: argv, environment and today are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.archive.compact_days import FIRST, last_settled
from jostler.format.compression import compression_choice
from jostler.format.names import check_archived_datatype
from loader.cli.archive_values import MASTER, METRICS_RE, ArchiveValues, patience
from loader.cli.values import Command, Help, matching, read, size, switch
from loader.spark.limits import PLAIN_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from jostler.format.compression import Compression

PREFIX = "JOSTLER_COMPACT_"
AS_INPUTS = "auto"
EPILOG = f"""\
Bundles of past days that are smaller than --small are merged, those of one datatype, day and schema
together; see docs/keeping.md.  Several compactors may run at once, and beside agents and loads.
Every option can be given by the environment too: --meta-dataset is {PREFIX}META_DATASET.
STORAGE_EMULATOR_HOST and BIGQUERY_EMULATOR_HOST (URLs) lead to other servers than Google's.
Exit status: 0 all well; 1 a bundle had to be left alone, or a request failed; 2 wrong use."""

HELP: Help = (
    ("bucket", "URL*", "", "bucket to compact, gs://NAME or file:///DIR; repeatable"),
    ("api", "v1|v2|all", "all", "which layouts of the bucket to compact"),
    ("experiment", "NAME*", "", "only this experiment; repeatable; all if not given"),
    ("datatype", "NAME*", "", "only this datatype; repeatable; all if not given"),
    ("start", "YYYY/MM/DD", "", "first day to look at; the first of all if not given"),
    ("end", "YYYY/MM/DD", "", "day after the last one to look at, if that has settled"),
    ("settled", "DAYS", "1", "how long a day must be over"),
    ("small", "SIZE", "8MiB", "data objects of this size or larger are left alone"),
    ("target", "SIZE", "256MiB", "the most bytes of rows, uncompressed, in a merged bundle"),
    ("collapse-repeats", "", "false", "leave out collected files whose body is the one before"),
    ("compression", "TEXT", AS_INPUTS, "auto: as the inputs; fast, small, or 1 to 9 of zlib-ng"),
    ("dry-run", "", "false", "print objects and bytes before and after, and change nothing"),
    ("project", "ID", "", "project of the table that records each merge; none if not given"),
    ("location", "NAME", "US", "where a new dataset is made"),
    ("meta-dataset", "NAME", "jostler", "dataset of the table compactions"),
    patience("120"),
    MASTER,
    ("metrics", "URL", "", "where to leave metrics: file:///DIR/NAME.prom or a push gateway"),
)  # fmt: skip
COMMAND = Command(
    prog="jostler-load compact",
    about="Merge the small bundles of past days into large ones.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactOptions:
    """What a compaction is to do; each attribute is the option of its name (see `HELP`)."""

    bucket: tuple[str, ...]
    api: tuple[str, ...]
    experiment: frozenset[str]
    datatype: frozenset[str]
    first: date
    last: date
    small_bytes: int
    target_bytes: int
    collapse_repeats: bool
    compression: Compression | None
    dry_run: bool
    project: str
    location: str
    meta_dataset: str
    patience_s: float
    master: str
    metrics: str


def parse(argv: Sequence[str], environ: Mapping[str, str], today: date) -> CompactOptions:
    """Read arguments and environment.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    return read(ArchiveValues(COMMAND, argv, environ), lambda values: _options(values, today))


def _options(values: ArchiveValues, today: date) -> CompactOptions:
    first, last = _days(values, today)
    return CompactOptions(
        bucket=values.buckets(),
        api=values.layouts(),
        experiment=values.experiments(),
        datatype=frozenset(values.many("datatype", check_archived_datatype)),
        first=first,
        last=last,
        small_bytes=values.one("small", size) or 1,
        target_bytes=values.one("target", _target) or 1,
        collapse_repeats=bool(values.one("collapse-repeats", switch)),
        compression=values.one("compression", _compression),
        dry_run=bool(values.one("dry-run", switch)),
        project=values.project_if_any(),
        location=values.text("location"),
        meta_dataset=values.meta_dataset(),
        patience_s=values.patience_s(),
        master=values.text("master"),
        metrics=values.optional("metrics", matching(METRICS_RE, "file:///… or http(s)://…")) or "",
    )


def _days(values: ArchiveValues, today: date) -> tuple[date, date]:
    last = last_settled(today, values.one("settled", _settled) or 0)
    start, end = values.days()
    return start or FIRST, min(last, end - timedelta(days=1)) if end else last


def _settled(text: str) -> int:
    if not text.isdecimal() or int(text) > 36_500:  # noqa: PLR2004 - a hundred years
        raise ValueError(f"{text!r} is not a number of days, 0 or more")
    return int(text)


def _compression(text: str) -> Compression | None:
    return None if text == AS_INPUTS else compression_choice(text).idle


def _target(text: str) -> int:
    if size(text) >= PLAIN_MAX_BYTES:
        raise ValueError(f"{text!r} is not below 1GiB, which is what the loader takes")
    return size(text)
