"""The command `jostler list`: the files of an archive, its bundles, or its days.

**Invariant:** it only reads; what it finds is written as it is found.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from jostler.archive.totals import day_totals
from jostler.cli import streams
from jostler.cli.archive_command import Archive, Command
from jostler.cli.archive_flags import COLLAPSE, FORMAT, LIMIT, NEWEST, WHICH
from jostler.cli.flags import Flag, boolean
from jostler.cli.flags import words as with_commas
from jostler.cli.messages import DONE
from jostler.cli.records import BUNDLES, DAYS, FILES, Kind, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")
DATATYPES_MOST = 1000
ABOUT = """usage: jostler list [DATATYPE...] [flags]

Lists the stored files of an experiment, day by day; with -bundles the bundles that have them, with
-days one line for each day and datatype: files, bytes, nodes, rejected files, first and last.
A file that was stored twice is listed once; -bundles and -days count it twice.
Exit status: 0 all was searched; 1 something could not be read; 2 wrong use.

flags:"""
FLAGS = (
    *WHICH,
    Flag(name="bundles", read=boolean, default="false", help="list bundles", variable=False),
    Flag(name="days", read=boolean, default="false", help="list days", variable=False),
    COLLAPSE,
    LIMIT,
    NEWEST,
    FORMAT,
)


def run(archive: Archive, words: list[str]) -> int:
    """List what the flags name.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be searched.
    """
    values = archive.values
    datatypes = [datatype for word in words for datatype in with_commas(word)]
    query, catalogue = archive.query(datatypes), archive.catalogue
    if values["bundles"] and values["days"]:
        raise ValueError("-bundles and -days: give one of them")
    if values["collapse-repeats"] and (values["bundles"] or values["days"]):
        raise ValueError("-collapse-repeats: is for files, not for -bundles or -days")
    if values["days"]:
        if query.asks_files:
            raise ValueError("-days: files cannot be told apart by -work-id, -name or -hash")
        write(archive, _first(day_totals(catalogue, query, archive.tally), query.limit), DAYS)
    elif values["bundles"]:
        write(archive, catalogue.bundles(query, archive.tally), BUNDLES)
    else:
        write(archive, archive.files(query), FILES)
    if not archive.progress.files:
        archive.say_nothing_matches()
    return DONE


def write(archive: Archive, records: Iterable[T], kind: Kind[T]) -> None:
    """Write records to standard output in the format that the flags name."""
    how = archive.values["format"]
    for text in written(_counted(archive, records), kind, how, datetime.now(UTC)):
        streams.write(text)
    streams.finish()


def _counted(archive: Archive, records: Iterable[T]) -> Iterator[T]:
    """Count the results; progress ends when the first one is about to appear beside it."""
    is_terminal = sys.stdout.isatty()
    for number, record in enumerate(records, 1):
        if number == 1 and is_terminal:
            archive.progress.stop()
        archive.progress.files = number
        yield record


def _first(records: Iterator[T], limit: int) -> Iterator[T]:
    for number, record in enumerate(records, 1):
        yield record
        if number == limit:
            return


main = Command(name="list", about=ABOUT, flags=FLAGS, most_words=DATATYPES_MOST, run=run).main
