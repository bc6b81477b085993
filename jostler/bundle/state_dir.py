"""The state directory: its path, its owner and mode, and its move from the path of old versions.

**Invariant:** only the agent's user can write in it.  The agent unlinks the files that a journal
record names, so whoever can write a record can make the agent delete files.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_OTHERS = stat.S_IWOTH
_GROUP = stat.S_IWGRP


class UnsafeError(OSError):
    """A user other than the agent's owns the state directory or may write in it."""


def earlier(local_data_dir: Path, experiment: str) -> Path:
    """Return the path that the first versions used, in a directory where services may write."""
    return local_data_dir / experiment / ".jostler"


def default(local_data_dir: Path, experiment: str) -> Path:
    """Return the default of `-state-dir`: a directory beside the experiment's.

    The state must last as long as the spool: if it were lost and the files stayed, stored files
    would be stored again.  So if the experiment's directory is a mount of its own, or the agent
    cannot create a directory beside it, the path is in that directory.
    """
    beside = local_data_dir / f".jostler-{experiment}"
    try:
        if beside.is_dir():
            return beside
        above, spool = local_data_dir.stat(), (local_data_dir / experiment).stat()
    except OSError:
        return beside  # a directory does not exist yet, or may not be read: `make` reports that
    if above.st_dev != spool.st_dev or not os.access(local_data_dir, os.W_OK | os.X_OK):
        return earlier(local_data_dir, experiment)
    return beside


def make(directory: Path) -> None:
    """Create the directory if it does not exist; check that only the agent's user can write in it.

    A group's permission to write is removed.

    Raises:
        UnsafeError: another user owns the directory, or everybody may write in it.
        OSError: it cannot be created.
    """
    if not directory.is_dir():
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        # A link of another user could be pointed to another directory after this check.
        if found.st_uid not in {0, os.geteuid()}:
            raise UnsafeError(f"{directory} is a symbolic link of uid {found.st_uid}")
        found = directory.stat()
    if found.st_uid != os.geteuid():
        raise UnsafeError(
            f"{directory} belongs to uid {found.st_uid}, but the agent runs as uid {os.geteuid()};"
            " chown it, or name a directory below it, which the agent then creates"
        )
    if found.st_mode & _OTHERS:
        raise UnsafeError(f"everybody may write in {directory}; chmod go-w it")
    # With fsGroup the kubelet makes each volume writable for the group
    # (https://kubernetes.io/docs/tasks/configure-pod-container/security-context/).
    if found.st_mode & _GROUP:
        directory.chmod(stat.S_IMODE(found.st_mode) & ~_GROUP)


def flaw(status: os.stat_result, owner: int) -> str:
    """Return why a file in the state directory cannot be trusted; empty if it can be.

    A file can be trusted if no other user can have written it.

    Args:
        status: the status of the file itself, not of what a link points to.
        owner: the uid of the directory's owner.
    """
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_uid != owner:
        return f"it belongs to uid {status.st_uid}, not to uid {owner}"
    if status.st_mode & (_GROUP | _OTHERS):
        return "others may have written it"
    return ""


def move(old: Path, new: Path, wanted: tuple[str, ...]) -> int:
    """Move the files of an earlier version's state directory; return how many were moved.

    The old directory is removed if nothing else is in it.  After an interruption the call can be
    repeated.

    Args:
        old: the earlier directory; it need not exist.
        new: the current directory; it must exist.
        wanted: the suffixes of the files to move, beside what is remembered of vanished files;
            the agent can create the others again.

    Raises:
        BlockingIOError: another agent still uses the old directory.
        OSError: a file cannot be moved.
    """
    if old == new or old.is_symlink() or not old.is_dir() or old.stat().st_uid != os.geteuid():
        return 0
    with _locked(old / "lock"):
        found = sorted(path for path in old.iterdir() if path.suffix in wanted)
        for path in found:
            _move(path, new / path.name)
        if (old / "vanished").is_file() and not (new / "vanished").exists():
            _move(old / "vanished", new / "vanished")
        sync(new)
        for name in ("lock", "reserve"):
            with suppress(OSError):
                (old / name).unlink(missing_ok=True)
        with suppress(OSError):  # files of others are in it: it stays
            old.rmdir()
    return len(found)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file of the earlier directory, so that no agent of an old version starts there.

    Raises:
        BlockingIOError: an agent that runs holds it.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        yield
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _move(path: Path, target: Path) -> None:
    """Rename a file; copy it if the target is on another file system."""
    try:
        path.rename(target)
    except OSError as exc:
        if exc.errno != errno.EXDEV:  # rename(2): not on the same mounted file system
            raise
        # The copy gets its name only when it is durable, and the original goes last: a crash
        # leaves the original, or both.
        part = target.with_suffix(".tmp")
        shutil.copyfile(path, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(target)
        path.unlink()


def sync(directory: Path) -> None:
    """Make the created, renamed and removed names of a directory durable.

    fsync(2) of a file does not cover its name: the directory needs its own fsync.

    Raises:
        OSError: the names may be lost in a crash.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
