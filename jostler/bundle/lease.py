"""Ask the kernel, by a lease, whether a process has a file open for writing.

A read lease (fcntl(2), F_SETLEASE) is granted on a file that no process has open for writing, in
any container of this machine.  As long as it is held, a process that opens the file for writing
waits; it ends when the descriptor is closed.  The kernel grants it to the owner of the file and to
who has CAP_LEASE, and on local file systems only.
"""

from __future__ import annotations

import errno
import fcntl
import signal
from functools import cache

_SET_LEASE = getattr(fcntl, "F_SETLEASE", None)
_SET_SIGNAL = getattr(fcntl, "F_SETSIG", None)


def has_writer(fd: int) -> bool | None:
    """Return whether a file that is open for reading is open for writing too; None if unknown.

    If it is not, no process opens it for writing before the descriptor is closed.
    """
    if _SET_LEASE is None or _SET_SIGNAL is None:
        return None
    try:
        if not _ignores_signal():
            # SIGURG is ignored unless a program asks for it.
            fcntl.fcntl(fd, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(fd, _SET_LEASE, fcntl.F_RDLCK)
    except OSError as exc:
        return True if exc.errno == errno.EAGAIN else None
    return False


@cache
def _ignores_signal() -> bool:
    """Let this process ignore SIGIO; return False if it cannot, or wants the signal itself.

    The kernel sends SIGIO to the holder of a lease for which another process waits.  Its default
    would end this process.  To choose another signal for each file takes a system call each, so
    SIGIO is ignored once for all; only the main thread may do that.
    """
    try:
        if signal.getsignal(signal.SIGIO) is signal.SIG_DFL:
            signal.signal(signal.SIGIO, signal.SIG_IGN)
    except ValueError:  # not the main thread
        return False
    return signal.getsignal(signal.SIGIO) is signal.SIG_IGN
