"""Repeats: bodies that equal the one before them, as several collectors of one feed save them.

Of A A B A, the second A is a repeat; the last one is none, for the feed had changed in between.

**Invariant:** the first of each run of equal bodies is kept, whichever node saved it.

Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from jostler.archive.files import File, Position

T = TypeVar("T")
Identity = tuple[str, str, bytes]
"""Node, Filename and hash of `raw`."""
_TIMED_RE = re.compile(
    r"(?P<prefix>.*)(?P<time>\d{8}T\d{6}\.\d{3}Z)_(?P<body>[a-z2-7]{12})[^a-z2-7].*"
)
"""A name with the time and the hash of a body, as `jostler collect` writes it."""


class Timed(NamedTuple):
    """What the name of a collector's file says.

    Attributes:
        feed: the prefix of the feed's names.
        time: of the fetch, in UTC; as text, which sorts.
        body: the hash of the body.
    """

    feed: str
    time: str
    body: str


def timed(filename: str) -> Timed | None:
    """Return what a file's name says; None if no collector has named it."""
    found = _TIMED_RE.fullmatch(filename.rpartition("/")[2])
    return Timed(found["prefix"], found["time"], found["body"]) if found else None


class Repeats:
    """Finds repeats among rows in the order of time, of any number of feeds."""

    def __init__(self) -> None:
        self._last: dict[Hashable, Hashable] = {}

    def is_repeat(self, feed: Hashable, body: Hashable) -> bool:
        """Say whether the feed's last body was this one; it is from now on.

        Args:
            feed: what the row is of; rows of other feeds do not interrupt a run.
            body: what is equal for equal bodies.
        """
        if feed in self._last and self._last[feed] == body:
            return True
        self._last[feed] = body
        return False


def collapse_repeats(
    rows: Iterable[T], feed: Callable[[T], Hashable], body: Callable[[T], Hashable]
) -> Iterator[T]:
    """Yield the rows without repeats.

    Args:
        rows: in the order of time.
        feed: returns what a row is of.
        body: returns what is equal for equal bodies.
    """
    repeats = Repeats()
    return (row for row in rows if not repeats.is_repeat(feed(row), body(row)))


def identity(filename: str, digest: str) -> tuple[str, str]:
    """Return the feed and the body of a file: equal bodies of one feed have equal ones.

    A wrapped answer has its time in it, so its own Hash says nothing; its name has the hash of the
    body.  Files that no collector named are of one feed, and equal if their Hashes are.

    Args:
        filename: the file's path or name.
        digest: its Hash; if it is empty, the file is like no other.
    """
    if found := timed(filename):
        return found.feed, found.body
    return "", digest or f"/{filename}"


def repeated(rows: Iterable[Identity]) -> frozenset[Identity]:
    """Return which of a day's rows are repeats, by what their names say.

    Rows that no collector has named are none.  Neither are those whose node and Filename have
    several contents: one of them is not what its name says, and it is not known which.

    Args:
        rows: of one day and datatype, in any order; the same may come several times.
    """
    unique = set(rows)
    names = Counter((node, filename) for node, filename, _ in unique)
    found = []
    for row in unique:
        node, filename, _ = row
        if says := timed(filename):
            found.append((says.time, filename, node, says, row))
    found.sort(key=lambda one: one[:3])
    repeats = Repeats()
    return frozenset(
        row
        for *_, says, row in found
        if repeats.is_repeat(says.feed, says.body) and names[row[:2]] == 1
    )


def without_repeats(files: Iterable[File]) -> Iterator[File]:
    """Yield the files without repeats, in the order in which they come.

    Args:
        files: days in order, as a catalogue yields them; one day at a time is held in memory.
    """
    repeats = Repeats()
    for _, day in groupby(files, key=lambda file: file.origin.day):
        found = list(day)
        kept = kept_of_day(found, repeats)
        yield from (file for file in found if file.position in kept)


def kept_of_day(files: Iterable[File], repeats: Repeats) -> set[Position]:
    """Return the positions of the files of a day that are no repeats.

    Args:
        files: all of one day, in any order.
        repeats: knows the days before.
    """
    kept = set()
    for file in sorted(files, key=lambda file: (file.begin, file.name, file.node)):
        prefix, body = identity(file.filename, file.hash)
        if not repeats.is_repeat((file.datatype, prefix), body):
            kept.add(file.position)
    return kept
