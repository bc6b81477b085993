"""The options of `jostler-query`.

**Invariant:** all mistakes are found before anything is touched, and are reported together.

Pure: argv and environment are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from loader.cli.answers import FORMATS
from loader.cli.archive_values import MASTER, NAMINGS, ArchiveValues, patience
from loader.cli.values import Command, Help, choice, count, one_of, read, switch
from loader.query.charts import PLOT_SUFFIXES
from loader.query.language import Language

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostler.format.bigquery_names import Naming

PREFIX = "JOSTLER_QUERY_"
EPILOG = f"""\
QUESTION is GoogleSQL, with pipe syntax or without, or a log query, which begins with table or
fulltext; - reads it from standard input.  See docs/query.md.
Every option can be given by the environment too: --experiment is {PREFIX}EXPERIMENT.
STORAGE_EMULATOR_HOST and BIGQUERY_EMULATOR_HOST (URLs) lead to other servers than Google's.
Exit status: 0 answered; 1 not answered, or with --strict not whole; 2 wrong use, or a question that
cannot be understood; 130 interrupted."""

HELP: Help = (
    ("bucket", "URL*", "", "bucket to ask, gs://NAME or file:///DIR; repeatable"),
    ("experiment", "NAME*", "", "only this experiment; repeatable; all if not given"),
    ("language", "|".join(Language), "auto", "of the question; auto: by its first word"),
    ("lookup", "NAME=FILE*", "", "CSV file as table lookups.NAME; repeatable"),
    ("limit", "N", "", "rows to print at the most; reading ends with them"),
    ("now", "TIME", "", "instant that duration=… counts from, as 2026-01-02T03:04:05Z; now"),
    ("format", "|".join(FORMATS), "table", "how rows are printed"),
    ("out", "FILE", "", "file for the rows, written whole or not at all; standard output"),
    ("plot", "FILE", "", "draw the chart of a timechart into a file .svg or .png, too"),
    ("bars", "", "false", "draw the chart of a timechart with characters instead of rows"),
    ("sql", "", "false", "print the SQL text and run nothing"),
    ("explain", "", "false", "print days, bundles, columns and bytes, and run nothing"),
    ("strict", "", "false", "exit with 1 if a row or bundle had to be left out"),
    ("collapse-repeats", "", "false", "leave out files whose body is that of the file before"),
    ("bigquery", "", "false", "run on BigQuery, on the tables that jostler-load fills"),
    ("project", "ID", "", "project of BigQuery's tables; that of the credentials if not given"),
    ("location", "NAME", "", "where BigQuery's datasets are, such as US"),
    ("naming", NAMINGS, "mlab", "names of BigQuery's tables, as jostler-load made them"),
    patience("30"),
    MASTER,
)  # fmt: skip
COMMAND = Command(
    prog="jostler-query",
    about="Ask the archive, by Spark or by BigQuery.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
    operand=("QUESTION", "what to ask"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """What to ask; each attribute is the option of its name (see `HELP`)."""

    question: str
    bucket: tuple[str, ...]
    experiment: frozenset[str]
    language: Language
    lookup: dict[str, Path]
    limit: int
    now: datetime | None
    format: str
    out: Path | None
    plot: Path | None
    bars: bool
    sql: bool
    explain: bool
    strict: bool
    collapse_repeats: bool
    bigquery: bool
    project: str
    location: str
    naming: Naming
    patience_s: float
    master: str


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> QueryOptions:
    """Read arguments and environment.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    return read(ArchiveValues(COMMAND, argv, environ), _options)


def _options(values: ArchiveValues) -> QueryOptions:
    question = values.operand("QUESTION")
    if not question.strip():
        values.problems.append("QUESTION: is needed")
    form = str(values.one("format", choice(*FORMATS)))
    if values.text("sql") == values.text("explain") == "true":
        values.problems.append("--sql and --explain: only one of them")
    if values.text("explain") == values.text("bigquery") == "true":
        values.problems.append("--explain and --bigquery: it explains what Spark reads")
    if values.text("collapse-repeats") == values.text("bigquery") == "true":
        values.problems.append("--collapse-repeats and --bigquery: Spark alone leaves repeats out")
    return QueryOptions(
        question=question,
        bucket=values.buckets(),
        experiment=values.experiments(),
        language=values.one("language", one_of(Language)) or Language.AUTO,
        lookup=dict(values.many("lookup", _lookup)),
        limit=values.optional("limit", count(2**62)) or 0,
        now=values.optional("now", _instant),
        format=form,
        out=values.optional("out", Path),
        plot=values.optional("plot", _plot),
        bars=bool(values.one("bars", switch)),
        sql=bool(values.one("sql", switch)),
        explain=bool(values.one("explain", switch)),
        strict=bool(values.one("strict", switch)),
        collapse_repeats=bool(values.one("collapse-repeats", switch)),
        bigquery=bool(values.one("bigquery", switch)),
        project=values.project_if_any(),
        location=values.text("location"),
        naming=values.naming(),
        patience_s=values.patience_s(),
        master=values.text("master"),
    )


def _lookup(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if not equals or not name.isidentifier() or not name.isascii() or not path:
        raise ValueError(f"{text!r} is not NAME=FILE")
    return name, Path(path)


def _instant(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an instant such as 2026-01-02T03:04:05Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _plot(text: str) -> Path:
    path = Path(text)
    if path.suffix not in PLOT_SUFFIXES:
        raise ValueError(f"{text!r} ends with neither {' nor '.join(PLOT_SUFFIXES)}")
    return path
