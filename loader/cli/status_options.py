"""The options of `jostler-load status`.

**Invariant:** all mistakes are found before anything is asked, and are reported together.

Pure: argv and environment are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.format.names import check_experiment
from loader.cli.archive_values import BUCKET_RE, NAMINGS, ArchiveValues, patience
from loader.cli.values import Command, Help, choice, matching, read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostler.format.bigquery_names import Naming

PREFIX = "JOSTLER_LOAD_"
EPILOG = f"""\
The ledger is asked; with --bucket, the bucket is listed as well, for the days that are due.  The
environment variables of a load, such as {PREFIX}PROJECT and {PREFIX}BUCKET, hold here, too.
Exit status: 0 nothing fails; 1 some day fails, was refused or given up, or the ledger cannot be
asked; 2 wrong use."""
HELP: Help = (
    ("project", "ID", "", "project of the ledger"),
    ("meta-dataset", "NAME", "jostler", "dataset of the ledger and the rejects"),
    ("location", "NAME", "US", "of the datasets"),
    ("bucket", "URL*", "", "list it, to count the days that are due; repeatable"),
    ("naming", NAMINGS, "mlab", "with --bucket: names of v1 tables, as for a load"),
    patience("30"),
    ("verbose", "", "false", "each failing day with what to do, and each request; or -v"),
    ("format", "text|json", "text", "text, or one JSON object"),
)
COMMAND = Command(
    prog="jostler-load status",
    about="Show how the loads stand: of all experiments, or of EXPERIMENT.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
    operand=("EXPERIMENT", "only this one"),
    shares_prefix=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusOptions:
    """What is asked; each attribute is the option of its name (see `HELP`).

    Attributes:
        experiment: only this one; all if empty.
    """

    experiment: str
    project: str
    meta_dataset: str
    location: str
    bucket: tuple[str, ...]
    naming: Naming
    patience_s: float
    verbose: bool
    as_json: bool


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> StatusOptions:
    """Read arguments and environment.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    words = ["--verbose" if word == "-v" else word for word in argv]
    return read(ArchiveValues(COMMAND, words, environ), _options)


def _options(values: ArchiveValues) -> StatusOptions:
    experiment = values.operand("EXPERIMENT")
    try:
        experiment = experiment and check_experiment(experiment)
    except ValueError as exc:
        values.problems.append(f"EXPERIMENT: {exc}")
    return StatusOptions(
        experiment=experiment,
        project=values.project(),
        meta_dataset=values.meta_dataset(),
        location=values.text("location"),
        bucket=values.many("bucket", matching(BUCKET_RE, "gs://NAME or file:///DIR")),
        naming=values.naming(),
        patience_s=values.patience_s(),
        verbose=values.text("verbose") == "true",
        as_json=values.one("format", choice("text", "json")) == "json",
    )
