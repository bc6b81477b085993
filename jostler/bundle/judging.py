"""Which large file is judged at the moment: a note that survives the agent.

**Invariant:** a file during whose judgement the agent died twice, in the same state, is not judged
a third time.  Once proves little: a node is switched off, a pod is evicted.

The note is one small file in the state directory, written over in place and not synced: what it is
for is a killed process, not a failed machine.  Where it cannot be written there is none.
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
"""Smaller files are not noted: none of them takes much memory or time."""
DEATHS_MAX = 2
_REMEMBERED_MAX = 50
_BLOCK_BYTES = 4096


class Judging:
    """The note; belongs to the thread that judges.

    Args:
        path: of the note; only the agent's user may write there.
        spool: the files that it tells of.
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
        """Say whether the agent died too often while it judged a file as it now is."""
        found = self._deaths.get(file)
        return found is not None and found[0] == state and found[1] >= DEATHS_MAX

    @contextmanager
    def noted(self, file: str, state: FileState) -> Iterator[None]:
        """Note that a file is judged; if the process dies meanwhile, the next one finds that."""
        before = self._deaths.pop(file, None)
        deaths = before[1] if before and before[0] == state else 0
        self._write({**self._deaths, file: (state, deaths + 1)})
        try:
            yield
        finally:
            self._write(self._deaths)

    def _write(self, deaths: dict[str, tuple[FileState, int]]) -> None:
        """Write over the note, so that a full disk needs no new block for it."""
        rows = [[file, *state, count] for file, (state, count) in deaths.items()]
        content = json.dumps(rows[-_REMEMBERED_MAX:]).encode()
        content = content.ljust(-(-len(content) // _BLOCK_BYTES) * _BLOCK_BYTES)
        with suppress(OSError):
            if self._fd < 0:
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._fd = os.open(self._path, flags, 0o600)
            os.pwrite(self._fd, content, 0)
            os.ftruncate(self._fd, len(content))

    def close(self) -> None:
        """Let go of the note."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _read(path: Path) -> list[tuple[str, FileState, int]]:
    """Return what an earlier process noted; nothing if that cannot be told."""
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
