"""The options of `jostler-load index`.

**Invariant:** all mistakes are found before anything is touched, and are reported together.

Pure: argv and environment are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.archive.compact_days import FIRST, LAST
from jostler.format.names import INDEX, check_archived_datatype
from loader.cli.archive_values import MASTER, ArchiveValues
from loader.cli.values import Command, Help, read

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
    MASTER,
)  # fmt: skip
COMMAND = Command(
    prog="jostler-load index",
    about="Make the text index of an archive, which jostler-query uses.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
)


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
    return read(ArchiveValues(COMMAND, argv, environ), _options)


def _options(values: ArchiveValues) -> IndexOptions:
    start, end = values.days()
    return IndexOptions(
        bucket=values.buckets(),
        text=values.needed("text", _datatype),
        api=values.layouts(),
        experiment=values.experiments(),
        first=start or FIRST,
        last=(end or LAST) - timedelta(days=1),
        patience_s=values.patience_s(),
        master=values.text("master"),
    )


def _datatype(text: str) -> str:
    if text == INDEX:
        raise ValueError(f"{INDEX} has no texts to search")
    return check_archived_datatype(text)
