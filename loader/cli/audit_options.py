"""The options of `jostler-load audit`.

**Invariant:** all mistakes are found before anything is touched, and are reported together.

Pure: argv and environment are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.archive.audit.days import MANY
from jostler.archive.audit.remake import fields_of
from jostler.archive.audit.scope import Scope
from jostler.format.names import check_archived_datatype
from loader.cli.archive_values import MASTER, NAMINGS, ArchiveValues, patience
from loader.cli.values import Command, Help, choice, read, seconds, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostler.archive.audit.mend import Fields
    from jostler.format.bigquery_names import Naming

PREFIX = "JOSTLER_AUDIT_"
NO_FIX = "no"
ORPHANS = "orphans"
EPILOG = f"""\
What is found, what --fix mends and how: docs/keeping.md.  `jostler audit` does the same on one
machine.  Every option can be given by the environment too: --meta-dataset is {PREFIX}META_DATASET.
STORAGE_EMULATOR_HOST and BIGQUERY_EMULATOR_HOST (URLs) lead to other servers than Google's.
Exit status: 0 clean, or all mended; 1 problems are left, or there is nothing to look at and --fix
is not given; 2 wrong use."""

HELP: Help = (
    ("bucket", "URL*", "", "bucket to look at, gs://NAME or file:///DIR; repeatable"),
    ("api", "v1|v2|all", "all", "which layouts of the bucket"),
    ("experiment", "NAME*", "", "only this experiment; repeatable; all if not given"),
    ("datatype", "NAME*", "", "only this datatype; repeatable; all if not given"),
    ("node", "NAME*", "", "only bundles of this node; repeatable; all if not given"),
    ("start", "YYYY/MM/DD", "", "first day to look at"),
    ("end", "YYYY/MM/DD", "", "day after the last one to look at"),
    ("fix", "no|yes|orphans", NO_FIX, "mend; orphans: remove indexes without data as well"),
    ("settled", "SECONDS", "3600", "leave a missing index so long to the agent"),
    ("staging", "URL", "", "bucket and prefix of quarantine/; without it loader-staging/"),
    ("index-field", "TEXT*", "", "DATATYPE:Column=SOURCE, as the agents have it; repeatable"),
    ("small", "SIZE", "1MiB", "a data object is small if it has fewer bytes"),
    ("many", "N", f"{MANY}", "report a past day that has more small bundles than this; 0: never"),
    ("format", "text|jsonl", "text", "text, or a JSON object a line"),
    ("project", "ID", "", "project in BigQuery; without it BigQuery is not asked"),
    ("location", "NAME", "US", "of the datasets"),
    ("naming", NAMINGS, "mlab", "names of v1 tables"),
    ("meta-dataset", "NAME", "jostler", "dataset of the ledger and of the table audits"),
    patience("120"),
    MASTER,
)  # fmt: skip
COMMAND = Command(
    prog="jostler-load audit",
    about="Find, and mend, what is wrong with an archive, on Spark.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What an audit is to do; each attribute is the option of its name (see `HELP`)."""

    bucket: tuple[str, ...]
    api: tuple[str, ...]
    experiment: frozenset[str]
    scope: Scope
    fix: str
    settled: timedelta
    staging: str
    fields: Fields
    small_bytes: int
    many: int
    as_json: bool
    project: str
    location: str
    naming: Naming
    meta_dataset: str
    patience_s: float
    master: str


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> AuditOptions:
    """Read arguments and environment.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    return read(ArchiveValues(COMMAND, argv, environ), _options)


def _options(values: ArchiveValues) -> AuditOptions:
    return AuditOptions(
        bucket=values.buckets(),
        api=values.layouts(),
        experiment=values.experiments(),
        scope=_scope(values),
        fix=str(values.one("fix", choice(NO_FIX, "yes", ORPHANS))),
        settled=timedelta(seconds=values.one("settled", seconds) or 0),
        staging=values.text("staging").rstrip("/"),
        fields=_fields(values),
        small_bytes=values.one("small", size) or 0,
        many=values.one("many", _whole) or 0,
        as_json=values.one("format", choice("text", "jsonl")) == "jsonl",
        project=values.project_if_any(),
        location=values.text("location"),
        naming=values.naming(),
        meta_dataset=values.meta_dataset(),
        patience_s=values.patience_s(),
        master=values.text("master"),
    )


def _fields(values: ArchiveValues) -> Fields:
    try:
        return fields_of(values.lines("index-field"))
    except ValueError as exc:
        values.problems.append(f"--index-field: {exc}")
        return {}


def _scope(values: ArchiveValues) -> Scope:
    start, end = values.days()
    return Scope(
        datatypes=frozenset(values.many("datatype", check_archived_datatype)),
        nodes=frozenset(values.many("node", str)),
        first=start,
        last=end - timedelta(days=1) if end else None,
    )


def _whole(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:  # noqa: PLR2004 - more bundles than a bucket has
        raise ValueError(f"{text!r} is not a number, 0 or more")
    return int(text)
