"""The flags of the commands that read an archive: where it is, and which files are meant.

**Invariant:** a flag that the agent has too means the same and has the same variable.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from jostler.archive.address import HASH_RE
from jostler.cli.flags import HELP, Flag, boolean, day, duration, one_of, size, whole, words

LAST_MOMENT = timedelta(days=1) - timedelta(microseconds=1)


class Kind(StrEnum):
    """Where the catalogue is read from."""

    BUCKET = "bucket"
    BIGQUERY = "bigquery"


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    URL = "url"


def instant(text: str) -> datetime:
    """Read a day or an instant; a day is its first moment, and without a zone it is UTC.

    Raises:
        ValueError: the text is neither.
    """
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a day, 2026-01-31, nor an instant, 2026-01-31T10:00:00Z"
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)


def last_instant(text: str) -> datetime:
    """Read as `instant`, but a day is its last moment.

    Raises:
        ValueError: the text is neither.
    """
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return instant(text)
    return datetime.combine(day, time(tzinfo=UTC)) + LAST_MOMENT


def content_hash(text: str) -> str:
    """Read a Hash.

    Raises:
        ValueError: the text is none.
    """
    if HASH_RE.fullmatch(text):
        return text.lower()
    raise ValueError(f"{text!r} is no Hash, which has 32 hexadecimal digits")


WHERE = (
    Flag(
        name="bucket",
        aliases=("gcs-bucket",),
        help="name of the bucket, gs://bucket, or file:///dir",
    ),
    Flag(name="experiment", help="name of the experiment"),
    Flag(name="organization", default="", help="organization of autoload/v2"),
    Flag(
        name="gcs-data-dir",
        default="autoload/v1",
        help="directory in the bucket; with -organization autoload/v2 is looked at as well",
    ),
    Flag(
        name="datatype",
        read=words,
        help="datatypes, repeated or with commas; without any, all but rejected1",
    ),
    Flag(
        name="catalogue",
        read=one_of(Kind),
        default="bucket",
        help="what is searched: the bucket's index objects, or bigquery, its table index1",
    ),
    Flag(
        name="project", default="", help="with -catalogue bigquery: project of tables and queries"
    ),
    Flag(name="location", default="US", help="of the datasets in BigQuery"),
    Flag(name="naming", default="mlab", help="of v1 tables in BigQuery: mlab or third-party"),
    Flag(
        name="cache-dir",
        help="directory for index objects that were read; - for none"
        " (default $XDG_CACHE_HOME/jostler or ~/.cache/jostler)",
    ),
    Flag(name="cache-max", read=size, default="2GiB", help="bytes that the cache may take"),
)
"""The flags that the configuration file may set."""

WHICH = (
    Flag(name="node", read=words, help="nodes, repeated or with commas", variable=False),
    Flag(
        name="start",
        read=instant,
        help="leave out what ends before: 2026-01-31 or 2026-01-31T10:00:00Z",
        variable=False,
    ),
    Flag(
        name="end",
        read=last_instant,
        help="leave out what begins after; a day means all of it",
        variable=False,
    ),
    Flag(
        name="first-day",
        read=day,
        help="first day of the bucket's folders to search: 2026-01-31",
        variable=False,
    ),
    Flag(name="last-day", read=day, help="the last such day", variable=False),
    Flag(name="work-id", default="", help="the job that the files belong to", variable=False),
    Flag(
        name="name",
        default="",
        help="Filename or a file's own name; * ? and [...] match as in a shell, * also slashes",
        variable=False,
    ),
    Flag(name="hash", read=content_hash, help="Hash of the file's content", variable=False),
)
LIMIT = Flag(
    name="limit", read=whole, default="0", help="results at the most; 0: all", variable=False
)
NEWEST = Flag(
    name="newest-first",
    read=boolean,
    default="false",
    help="begin with the latest day",
    variable=False,
)
COLLAPSE = Flag(
    name="collapse-repeats",
    read=boolean,
    default="false",
    help="leave out files whose body is that of the file before them in time, whichever node has"
    " it: A A B A becomes A B A",
    variable=False,
)
FORMAT = Flag(
    name="format",
    read=one_of(Format),
    default="table",
    help="table, json, jsonl, csv, or url: addresses for cat and fetch",
    variable=False,
)
LOOKBACK = Flag(
    name="lookback",
    read=duration,
    default="336h",
    help="how far back to look",
    variable=False,
)
COMMON = (
    Flag(
        name="config",
        help="TOML file with flags of the first group"
        " (default $XDG_CONFIG_HOME/jostler/archive.toml or ~/.config/jostler/archive.toml)",
        variable=False,
    ),
    HELP,
)
