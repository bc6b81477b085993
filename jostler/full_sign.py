"""The sign that asks services to write no more files: `.jostler/FULL` in the experiment's spool.

**Invariant:** the file has no bytes and is no measurement file: it lies in no datatype's directory,
below a hidden one.  While it stands, its time is renewed each minute; one that is older was left
by an agent that was killed, and means nothing.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from jostler.log import Log

if TYPE_CHECKING:
    from pathlib import Path

log = Log("jostler.disk")

RENEW_S = 60.0
STALE_S = 300.0
"""The age from which the sign means nothing."""


def path_of(spool: Path) -> Path:
    """Return where the sign of an experiment's spool stands."""
    return spool / ".jostler" / "FULL"


def is_full(spool: Path) -> bool:
    """Return whether an agent that runs asks services to write no more files into this spool."""
    try:
        age_s = time.time() - path_of(spool).stat().st_mtime
    except OSError:
        return False
    return age_s < STALE_S


class FullSign:
    """Sets and takes away the sign; belongs to one thread.

    Args:
        spool: the experiment's directory.
    """

    def __init__(self, spool: Path) -> None:
        self._path = path_of(spool)
        self._renew_s = 0.0
        self._shown = False

    def prepare(self) -> None:
        """Make its directory, for which a full disk would have no room."""
        try:
            self._path.parent.mkdir(mode=0o755, exist_ok=True)
        except OSError as exc:
            self._failed(exc)

    def show(self, now_s: float) -> None:
        """Let the sign stand, and renew it each minute; `now_s` is monotonic."""
        if self._shown and now_s < self._renew_s:
            return
        self._shown, self._renew_s = True, now_s + RENEW_S
        try:
            self._path.parent.mkdir(mode=0o755, exist_ok=True)
            # Services run as other users, and must be able to see it.
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(self._path, flags, 0o644))
            os.utime(self._path)
        except OSError as exc:
            self._failed(exc)

    def clear(self) -> None:
        """Take the sign away if it stands, be it an earlier process's."""
        self._shown = False
        try:
            self._path.unlink(missing_ok=True)
        except OSError as exc:
            self._failed(exc)

    def _failed(self, exc: OSError) -> None:
        log.warning("disk.sign_failed", file=str(self._path), error=str(exc))
