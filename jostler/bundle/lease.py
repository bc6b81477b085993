"""Whether somebody has a file open for writing: the kernel knows, and tells by a lease.

A read lease (fcntl(2), F_SETLEASE) is given on a file that nobody has open for writing, in any
container of this machine.  As long as it is held, whoever opens the file for writing waits; it ends
when the descriptor is closed.  It is given to the owner of the file and to who has CAP_LEASE, and
by local file systems only.
"""

from __future__ import annotations

import errno
import fcntl
import signal

_SET_LEASE = getattr(fcntl, "F_SETLEASE", None)
_SET_SIGNAL = getattr(fcntl, "F_SETSIG", None)


def has_writer(fd: int) -> bool | None:
    """Say whether a file that is open for reading is open for writing as well; None: not known.

    If nobody writes, nobody begins before the descriptor is closed.
    """
    if _SET_LEASE is None or _SET_SIGNAL is None:
        return None
    try:
        # Who waits for the lease has the kernel send a signal.  Its default, SIGIO, would end the
        # process; SIGURG is ignored unless somebody asks for it.
        fcntl.fcntl(fd, _SET_SIGNAL, signal.SIGURG)
        fcntl.fcntl(fd, _SET_LEASE, fcntl.F_RDLCK)
    except OSError as exc:
        return True if exc.errno == errno.EAGAIN else None
    return False
