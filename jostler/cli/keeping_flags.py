"""The flags of the commands that keep an archive: audit, delete, retention."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from msgspec.structs import replace

from jostler.cli.archive_flags import WHERE
from jostler.cli.flags import Flag, boolean, day, duration, lines, one_of, size, whole, words

KEPT = ("bucket", "experiment", "organization", "gcs-data-dir", "datatype", "location", "naming")
_HELP = {"datatype": "datatypes, repeated or with commas"}
PLACES = tuple(
    replace(flag, help=_HELP.get(flag.name, flag.help)) for flag in WHERE if flag.name in KEPT
)
"""Of the flags that say where an archive is, those that say it of the bucket."""
PROJECT = (
    Flag(name="project", default="", help="project in BigQuery; without it BigQuery is not asked"),
    Flag(
        name="meta-dataset",
        default="jostler",
        help="dataset of the ledger and of the table audits",
        variable=False,
    ),
)
DAYS = (
    Flag(
        name="start",
        read=day,
        help="first day of the data: 2026-01-31",
        variable=False,
    ),
    Flag(name="end", read=day, help="the last such day", variable=False),
)
MIN_AGE = timedelta(days=30)
"""The default of -min-age."""
NODE = Flag(name="node", read=words, help="only these nodes", variable=False)


class Fix(StrEnum):
    """What -fix mends."""

    NOTHING = "false"
    ALL = "true"
    ORPHANS = "orphans"


class Report(StrEnum):
    """How an audit is reported."""

    TEXT = "text"
    JSONL = "jsonl"


AUDIT = (
    NODE,
    *DAYS,
    Flag(
        name="fix",
        read=one_of(Fix),
        default="false",
        alone="true",
        help="mend what can be mended; -fix=orphans: remove indexes without data as well",
        variable=False,
    ),
    Flag(
        name="settled",
        read=duration,
        default="1h",
        help="leave an index that is missing to its agent for so long after the data was stored",
        variable=False,
    ),
    Flag(
        name="staging",
        default="",
        help="bucket and prefix whose quarantine/ takes damaged objects"
        " (default loader-staging in the bucket)",
        variable=False,
    ),
    Flag(
        name="index-field",
        read=lines,
        help="DATATYPE:Column=SOURCE, as the agents have it: fills an index that is made again",
        variable=False,
    ),
    Flag(
        name="small",
        read=size,
        default="1MiB",
        help="a data object is small if it has fewer bytes",
        variable=False,
    ),
    Flag(
        name="many",
        read=whole,
        default="100",
        help="report a past day that has more small bundles than this; 0: never",
        variable=False,
    ),
    Flag(
        name="format",
        read=one_of(Report),
        default="text",
        help="text, or jsonl: a JSON object a line",
        variable=False,
    ),
)
DELETE = (
    *DAYS,
    Flag(
        name="yes",
        read=boolean,
        default="false",
        help="delete; without it, only show what would go",
        variable=False,
    ),
    Flag(
        name="min-age",
        read=duration,
        default=f"{MIN_AGE // timedelta(hours=1)}h",
        help="never touch days that are younger, or that got an object more lately",
        variable=False,
    ),
)
RETENTION = (
    Flag(
        name="retain",
        read=words,
        help="DATATYPE=DAYS, repeated or with commas: how long data is kept",
        variable=False,
    ),
)
