"""The command `jostler requeue`: rejected files that are good by today's schema go into the spool.

**Invariant:** of the archive it only reads; running it again puts nothing into the spool twice.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from jostler.archive.reading import RowReader
from jostler.cli.archive_command import Archive, Command
from jostler.cli.archive_flags import WHERE, WHICH
from jostler.cli.flags import Flag, Parsed, boolean
from jostler.cli.messages import DONE, FAILED
from jostler.cli.producer_flags import FLAGS as OF_THE_AGENT
from jostler.cli.producer_flags import checks, setting
from jostler.config import Mode
from jostler.errors import ConfigError
from jostler.format.names import REJECTED
from jostler.producer.outbox import Outbox
from jostler.producer.requeue import Requeue, Result, State, alone
from jostler.words import counted, shown

if TYPE_CHECKING:
    from jostler.cli.producer_flags import Setting

ABOUT = """usage: jostler requeue -datatype D [-reason R] [-start T] [-end T] [flags]

Takes the contents of rejected files out of the archive's rejected1, judges them by today's schema,
and puts the good ones into the spool, under the Filename that they had.  What the spool or the
archive has already is left out, so it may be run again.  Their Filenames are written to standard
output.  -dry-run only says how many there are.
Exit status: 0 done; 1 something could not be read or written; 2 wrong use.

flags:"""
_ARCHIVE_HAS = {name for flag in WHERE for name in (flag.name, *flag.aliases)}
_TIMES = tuple(
    flag for flag in WHICH if flag.name in {"node", "start", "end", "first-day", "last-day"}
)
FLAGS = (
    Flag(
        name="reason",
        default="",
        help="the reason for which they were rejected, as in rejected1; all without it",
        variable=False,
    ),
    Flag(
        name="dry-run",
        read=boolean,
        default="false",
        help="say how many would be put into the spool, and write nothing",
        variable=False,
    ),
    *_TIMES,
    *(flag for flag in OF_THE_AGENT if flag.name not in _ARCHIVE_HAS),
)
WRONG = {State.NAME_TAKEN, State.UNREAD}
"""The states of files that a person must look at."""


def run(archive: Archive, _words: list[str]) -> int:
    """Put the files that the flags name into the spool.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be searched, or there is no schema.
    """
    values = archive.values
    if not values["bucket"]:
        raise ValueError("-bucket: required: the bucket with the contents")
    given = _setting(archive)
    requeue = Requeue(
        checks(given, archive.say),
        archive.closing(RowReader(archive.bucket)),
        archive.catalogue_of(values["bucket"], archive.places()),
        given.top,
        given.config.extensions,
    )
    query = replace(archive.query([REJECTED]), datatypes=(REJECTED,))
    dry_run = values["dry-run"]
    opened = nullcontext() if dry_run else Outbox(given.top, given.config.extensions)
    try:
        with opened as outbox, nullcontext() if dry_run else alone(given.top):
            files = archive.catalogue.files(query, archive.tally)
            requeue.run(files, values["reason"], outbox, lambda result: _show(archive, result))
    except OSError as exc:
        archive.say(f"{exc.filename or given.top}: {exc.strerror or exc}")
        return FAILED
    _tell_counts(archive, requeue, given)
    return FAILED if requeue.counts.states.keys() & WRONG else DONE


def _setting(archive: Archive) -> Setting:
    """Return the agent's configuration.

    Raises:
        ValueError: flags are missing or wrong.
    """
    values = {**archive.values, "gcs-bucket": archive.bucket(archive.values["bucket"]).url}
    try:
        return setting(Parsed(values, {}, [], []), Mode.SCHEMA)
    except ConfigError as exc:
        raise ValueError("; ".join(exc.problems)) from exc


def _show(archive: Archive, result: Result) -> None:
    if result.state is State.GOOD:
        sys.stdout.write(f"{result.filename}\n")
    elif result.state in WRONG or archive.values["verbose"]:
        more = f": {result.why}" if result.why else ""
        archive.say(f"{shown(result.filename)}: {result.state.value}{more}")


def _tell_counts(archive: Archive, requeue: Requeue, given: Setting) -> None:
    counts = requeue.counts
    archive.say(f"{counted(counts.looked, 'rejected file')} of {given.datatype}")
    for state in State:
        if number := counts.states[state]:
            reasons = ", ".join(f"{n} {reason}" for reason, n in counts.reasons.most_common())
            more = f" ({reasons})" if state is State.BAD else ""
            archive.say(f"  {number} {state.value}{more}")
    good = counted(counts.states[State.GOOD], "file")
    would = "would be put" if archive.values["dry-run"] else "put"
    archive.say(f"{good} {would} into {given.top}")


main = Command(name="requeue", about=ABOUT, flags=FLAGS, most_words=0, run=run).main
