"""Judge files again that the agent examined and left on the disk: what is wrong with them now?

**Invariant:** it only reads; any thread may call it.  The agent remembers only the state of such a
file, so that many of them take little memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from jostler.agent.paths import placed
from jostler.bundle import Confined, FileState, Rejection, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.agent.contents import Contents


class Left(NamedTuple):
    """A file that was examined and left on the disk.

    Attributes:
        path: its path below the spool.
        state: the state in which it was examined.
        kept: whether it is bad and stays; else it may still become good.
        rejection: what is wrong with it, if that is still known.
    """

    path: str
    state: FileState
    kept: bool
    rejection: Rejection | None


class Again:
    """Judges files again.

    Args:
        spool: the files of the experiment.
        contents: judges their bytes.
    """

    def __init__(self, spool: Confined, contents: Contents) -> None:
        self._spool = spool
        self._contents = contents

    def left(self, states: Iterable[tuple[str, FileState, bool]], most: int) -> list[Left]:
        """Return those of some files that are still in the state in which they were left.

        This reads and judges them again, so it may be slow; any thread may call it.

        Args:
            states: path, state, and whether the file stays.
            most: the maximum number of files to return.
        """
        found: list[Left] = []
        for path, state, kept in states:
            if len(found) < most and self._is_still(path, state):
                found.append(Left(path, state, kept, self._judged_again(path, state)))
        return found

    def _is_still(self, path: str, state: FileState) -> bool:
        try:
            return FileState.of(self._spool.status(path)) == state
        except OSError:
            return False

    def _judged_again(self, path: str, state: FileState) -> Rejection | None:
        """Return what is wrong with a file by judging it again; only its state was remembered."""
        datatype, _, filename = path.partition("/")
        try:
            read = read_file(self._spool, path, self._contents.max_bytes + 1)
        except OSError:
            return None
        if read.state != state:
            return None
        return (
            placed(datatype, filename)[1]
            or self._contents.deadly(path, datatype, state)
            or self._contents.flaw(datatype, read)
        )
