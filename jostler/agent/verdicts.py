"""The verdicts of the intake: what is to be done with a path.

**Invariant:** a verdict is a value; nothing has been done yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jostler.bundle import Entry, FileState, InFlight, Rejection
    from jostler.format.names import Day


class Nothing(NamedTuple):
    """There is nothing to do: the file was handled before, or does not exist."""


class Gone(NamedTuple):
    """The file is gone; with `announced`, an event had reported it."""

    path: str
    announced: bool


class Written(NamedTuple):
    """A process has the file open for writing: an event will report its close."""

    path: str
    state: FileState


class Closed(NamedTuple):
    """The file is in a bundle and was closed again, so its content may have changed."""

    path: str
    bundle: InFlight


class Good(NamedTuple):
    """Archive the file; `raw` is its content on one line, `writer` as in `Read`."""

    datatype: str
    day: Day
    entry: Entry
    raw: bytes
    writer: bool | None


class Bad(NamedTuple):
    """Reject the file; `day` is None if its path has none."""

    path: str
    state: FileState
    day: Day | None
    rejection: Rejection


class Doubtful(NamedTuple):
    """The file is bad but may be half-written: wait until it changes or reaches -missed-age."""

    path: str
    state: FileState


class Early(NamedTuple):
    """The file is too young, or is growing: look again at the next scan.

    Attributes:
        path: its path below the spool.
        state: the state in which it was seen.
        grows: whether it was growing while it was read.
    """

    path: str
    state: FileState
    grows: bool


class ReadAgain(NamedTuple):
    """The file could not be read, `tries` times in a row: look again at the next scan."""

    path: str
    state: FileState
    tries: int


class AlreadyStored(NamedTuple):
    """The file is stored, was gone when it was to be unlinked, and is back: unlink it now."""

    entry: Entry


Verdict = (
    Nothing | Gone | Written | Closed | Good | Bad | Doubtful | Early | ReadAgain | AlreadyStored
)
NOTHING = Nothing()
