"""The command `jostler retrieve`: copy everything that a query matches to disk.

**Invariant:** run again, it goes on where it stopped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jostler.archive.reading import RowReader
from jostler.archive.retrieve import Layout, Retrieval, Retrieved, alone
from jostler.archive.saving import DiskError
from jostler.cli.archive_command import PROBLEMS_SHOWN, Archive, Command
from jostler.cli.archive_flags import COLLAPSE, WHICH
from jostler.cli.flags import Flag, boolean
from jostler.cli.messages import DONE, FAILED
from jostler.words import counted, duration, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeVar

    T = TypeVar("T")

ABOUT = """usage: jostler retrieve -start T -end T DIR [flags]

Copies every file that matches into DIR/<datatype>/<yyyy>/<mm>/<dd>/<name>, with Start as its
modification time.  Run again, it goes on where it stopped: what is there with its Hash is not read
again.  If two files have one name, the second one gets a part of its hash: a~526e88bf.json.
With -keep-packed it copies the bundles that have such files, as they are.
Exit status: 0 all is there; 1 something is not, and why; 2 wrong use.

flags:"""
FLAGS = (
    *WHICH,
    COLLAPSE,
    Flag(
        name="flatten-days",
        read=boolean,
        default="false",
        help="no directories for days",
        variable=False,
    ),
    Flag(
        name="flatten-datatypes",
        read=boolean,
        default="false",
        help="no directories for datatypes",
        variable=False,
    ),
    Flag(
        name="keep-packed",
        read=boolean,
        default="false",
        help="copy bundles instead of files",
        variable=False,
    ),
)


def run(archive: Archive, words: list[str]) -> int:
    """Copy the files.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be searched, or the directory not be used.
    """
    values = archive.values
    if not words:
        raise ValueError("DIR: required: the directory to copy to")
    if not all(values[side] for side in ("start", "end")) and not all(
        values[f"{side}-day"] for side in ("first", "last")
    ):
        raise ValueError("-start and -end, or -first-day and -last-day: required: what to copy")
    if values["keep-packed"] and values["collapse-repeats"]:
        raise ValueError("-keep-packed and -collapse-repeats: give one of them")
    query, catalogue, report = archive.query(), archive.catalogue, Retrieved()
    layout = Layout(
        flatten_days=values["flatten-days"], flatten_datatypes=values["flatten-datatypes"]
    )
    directory = Path(words[0])
    stopped: DiskError | None = None
    with alone(directory):
        to = Retrieval(directory, layout, archive.bucket, report)
        try:
            if values["keep-packed"]:
                found = catalogue.bundles(query, archive.tally)
                to.bundles(_watched(archive, report, found))
            else:
                reader = archive.closing(RowReader(archive.bucket, archive.moved))
                to.files(_watched(archive, report, archive.files(query)), reader)
        except DiskError as exc:
            stopped = exc
    _report(archive, report, "bundle" if values["keep-packed"] else "file")
    if not (report.written or report.already or report.problems or stopped):
        archive.say_nothing_matches()
    if stopped:
        archive.say(f"stopped, not all is there: {stopped}; run it again to go on")
    return FAILED if report.problems or stopped else DONE


def _watched(archive: Archive, report: Retrieved, found: Iterable[T]) -> Iterator[T]:
    for one in found:
        archive.progress.files = report.written
        archive.progress.size_bytes = report.written_bytes
        yield one


def _report(archive: Archive, report: Retrieved, noun: str) -> None:
    for problem in report.problems[:PROBLEMS_SHOWN]:
        archive.say(problem)
    if len(report.problems) > PROBLEMS_SHOWN:
        archive.say(f"and {counted(len(report.problems) - PROBLEMS_SHOWN, 'problem')} more")
    facts = [
        f"{counted(report.written, noun)} written, {size(report.written_bytes)}",
        f"{report.already} already there",
    ]
    if report.renamed:
        facts.append(f"{report.renamed} under another name, because two files have the same one")
    if report.unverified:
        facts.append(f"{report.unverified} without a hash to verify")
    if archive.tally.repeats:
        facts.append(f"{counted(archive.tally.repeats, 'repeat')} left out")
    facts.append(f"{len(report.problems)} not to be had")
    archive.say("; ".join(facts) + f"; {duration(archive.progress.spent_s)}")


main = Command(name="retrieve", about=ABOUT, flags=FLAGS, most_words=1, run=run).main
