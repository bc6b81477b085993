"""The options of `jostler-load index`.

**Invariant:** all mistakes are found before anything is touched, and are reported together.

Pure: argv and environment are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.archive.compact_days import FIRST, LAST
from jostler.format.names import INDEX, Day, check_archived_datatype, check_experiment
from loader.cli.options import BUCKET_RE
from loader.cli.values import Help, Values, choice, given_words, matching, parser_of, seconds
from loader.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

PREFIX = "JOSTLER_INDEX_"
EPILOG = f"""\
Each bundle gets an object that says which of its blocks may have a word, so that `fulltext` and
SEARCH of jostler-query need not read the others; see docs/query.md.  What has one is passed over,
and those whose bundle is gone are removed.  Several may run at once, and beside agents and loads.
Every option can be given by the environment too: --text is {PREFIX}TEXT.
STORAGE_EMULATOR_HOST (a URL) leads to another server than Google's.
Exit status: 0 all well; 1 a bundle got no index, or a request failed; 2 wrong use."""

HELP: Help = (
    ("bucket", "URL*", "", "bucket to index, gs://NAME or file:///DIR; repeatable"),
    ("text", "NAME*", "", "datatype whose words are indexed; repeatable"),
    ("api", "v1|v2|all", "all", "which layouts of the bucket to index"),
    ("experiment", "NAME*", "", "only this experiment; repeatable; all if not given"),
    ("start", "YYYY/MM/DD", "", "first day to index; the first of all if not given"),
    ("end", "YYYY/MM/DD", "", "day after the last one to index; the last of all if not given"),
    ("patience", "SECONDS", "120", "how long a request to the bucket is tried again"),
    ("master", "URL", "", "Spark master; that of spark-submit, else local[*], if not given"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """What is to be indexed; each attribute is the option of its name (see `HELP`)."""

    bucket: tuple[str, ...]
    text: tuple[str, ...]
    api: tuple[str, ...]
    experiment: frozenset[str]
    first: date
    last: date
    patience_s: float
    master: str


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> IndexOptions:
    """Read arguments and environment.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    about = "Make the text index of an archive, which jostler-query uses."
    given, problems = given_words(parser_of(HELP, "jostler-load index", about, EPILOG), argv)
    values = Values(given, environ, HELP, PREFIX)
    values.problems += [*problems, *values.unknown_variables()]
    options = _options(values)
    if values.problems:
        raise UsageError(values.problems)
    return options


def _options(values: Values) -> IndexOptions:
    buckets = _needed(values, "bucket", values.many("bucket", matching(BUCKET_RE, "a bucket")))
    text = _needed(values, "text", values.many("text", _datatype))
    api = values.one("api", choice("v1", "v2", "all"))
    start = values.one("start", Day.parse) if values.text("start") else None
    end = values.one("end", Day.parse) if values.text("end") else None
    if start and end and start.date >= end.date:
        values.problems.append(f"--start: {start.path} is not before --end {end.path}")
    return IndexOptions(
        bucket=tuple(dict.fromkeys(url.rstrip("/") for url in buckets)),
        text=tuple(dict.fromkeys(text)),
        api=("v1", "v2") if api == "all" else (str(api),),
        experiment=frozenset(values.many("experiment", check_experiment)),
        first=start.date if start else FIRST,
        last=(end.date if end else LAST) - timedelta(days=1),
        patience_s=values.one("patience", seconds) or 0.0,
        master=values.text("master"),
    )


def _needed(values: Values, name: str, found: tuple[str, ...]) -> tuple[str, ...]:
    if not found and not any(problem.startswith(f"--{name}") for problem in values.problems):
        values.problems.append(f"--{name} or {PREFIX}{name.upper()}: is needed")
    return found


def _datatype(text: str) -> str:
    if text == INDEX:
        raise ValueError(f"{INDEX} has no texts to search")
    return check_archived_datatype(text)
