"""Batching: which of the files in line are taken together, and which one by one.

**Invariant:** files are taken in their order.  Where batches fail they become rare, so a directory
of files that do not fit into batches costs little more than without.

Pure: no I/O, no clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections import deque

    from jostler.watchdir import Arrival, How

BATCH_FILES = 128
ALONE_MAX = 64


class Run(NamedTuple):
    """Files of one directory that stand in line one after the other.

    Attributes:
        directory: its absolute path.
        names: of the files.
        how: how all of them were found.
    """

    directory: str
    names: list[str]
    how: How


class Batching:
    """Belongs to the agent's thread."""

    def __init__(self) -> None:
        self._alone = 0
        self._penalty = 0

    def next(self, todo: deque[Arrival]) -> Run | None:
        """Return the files at the head of the line that may be taken together.

        Returns:
            At least two files; None if the first one is to be taken alone.
        """
        if self._alone:
            self._alone -= 1
            return None
        path, how = todo[0]
        directory = path.rpartition("/")[0]
        names: list[str] = []
        for other, other_how in todo:
            parent, _, name = other.rpartition("/")
            if parent != directory or other_how is not how or len(names) == BATCH_FILES:
                break
            names.append(name)
        return Run(directory, names, how) if len(names) > 1 else None

    def took(self, files: int, *, is_cut: bool) -> None:
        """Record how many files of the last run were taken.

        Args:
            files: the number.
            is_cut: whether the one after them does not belong into a batch; it is taken alone.
        """
        self._penalty = 0 if files else min(ALONE_MAX, 2 * self._penalty + 1)
        self._alone = max(int(is_cut), self._penalty)
