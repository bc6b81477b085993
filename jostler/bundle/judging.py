"""The note of which large file is being judged; the next process reads it after a kill.

A judge that needs too much memory for a file makes the kernel kill the agent.  Without the note
every restart would judge the same file and be killed again.

**Invariant:** a file that was being judged when the agent died is judged again once; after a second
death with the file unchanged it is not judged any more.  One death proves nothing: a node may have
been switched off, a pod evicted.

The note is one small file in the state directory.  It is written in place and not synced, because
it has to survive the end of the process, not of the machine.  If it cannot be written, files are
judged without it.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from jostler.bundle.entry import FileState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.bundle.confined import Confined

NOTED_BYTES = 1 << 20
"""Files from this size are noted; a smaller one cannot take much memory."""
DEATHS_MAX = 2
"""After so many deaths a file is no longer judged."""
_REMEMBERED_MAX = 50
"""How many files the note remembers."""
_BLOCK_BYTES = 4096


class Judging:
    """The note, and the deaths in an earlier process's note; used only by the judging thread.

    Args:
        path: the path of the note, in a directory where only the agent's user may write.
        spool: gives access to the files that are judged.
    """

    def __init__(self, path: Path, spool: Confined) -> None:
        self._path = path
        self._fd = -1
        self._deaths = {
            file: (state, deaths)
            for file, state, deaths in _read(path)
            if deaths and _is_still(spool, file, state)
        }

    def is_deadly(self, file: str, state: FileState) -> bool:
        """Return whether the agent died `DEATHS_MAX` times while it judged this file, unchanged."""
        found = self._deaths.get(file)
        return found is not None and found[0] == state and found[1] >= DEATHS_MAX

    @contextmanager
    def noted(self, file: str, state: FileState) -> Iterator[None]:
        """Note the file while the `with` block judges it; remove the note at its end.

        If the process is killed in the block, the note stays, and the next process counts a death.
        """
        # The death is counted before it happens, because a killed process cannot count it.
        before = self._deaths.pop(file, None)
        deaths = before[1] if before and before[0] == state else 0
        self._write({**self._deaths, file: (state, deaths + 1)})
        try:
            yield
        finally:
            self._write(self._deaths)

    def _write(self, deaths: dict[str, tuple[FileState, int]]) -> None:
        """Write the note in place: on a full disk no new block could be allocated."""
        rows = [[file, *state, count] for file, (state, count) in deaths.items()]
        content = json.dumps(rows[-_REMEMBERED_MAX:]).encode()
        # Padded to whole blocks, so that the size rarely changes.  A kill between pwrite and
        # ftruncate leaves the end of a longer old note, and such a note is ignored as malformed.
        content = content.ljust(-(-len(content) // _BLOCK_BYTES) * _BLOCK_BYTES)
        with suppress(OSError):
            if self._fd < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._fd = os.open(self._path, flags, 0o600)
            os.pwrite(self._fd, content, 0)
            os.ftruncate(self._fd, len(content))

    def close(self) -> None:
        """Close the note's file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _read(path: Path) -> list[tuple[str, FileState, int]]:
    """Return path, state and number of deaths of each noted file; none if there is no good note."""
    try:
        rows = json.loads(path.read_bytes())
        return [(file, FileState.fitted(*state), deaths) for file, *state, deaths in rows]
    except (OSError, ValueError, TypeError):
        return []


def _is_still(spool: Confined, file: str, state: FileState) -> bool:
    try:
        return FileState.of(spool.status(file)) == state
    except OSError:
        return False
