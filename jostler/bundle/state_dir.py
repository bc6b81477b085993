"""The state directory: where it lies, whom it belongs to, and its move from its earlier place.

**Invariant:** nobody but the agent's own user can write in it: who can write a record can say which
files are unlinked.
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
    """Others than the agent's user may write in the state directory, or own it."""


def earlier(local_data_dir: Path, experiment: str) -> Path:
    """Return the place of the first versions: in a directory that producers may write."""
    return local_data_dir / experiment / ".jostler"


def default(local_data_dir: Path, experiment: str) -> Path:
    """Return where the state lies unless `-state-dir` says otherwise: beside the spool.

    It must last as long as the spool.  So where the experiment's directory is a mount of its own,
    or nothing can be made beside it, the state lies in it.
    """
    beside = local_data_dir / f".jostler-{experiment}"
    try:
        if beside.is_dir():
            return beside
        above, spool = local_data_dir.stat(), (local_data_dir / experiment).stat()
    except OSError:
        return beside  # one is not there, and the agent makes it; or nobody may look
    if above.st_dev != spool.st_dev or not os.access(local_data_dir, os.W_OK | os.X_OK):
        return earlier(local_data_dir, experiment)
    return beside


def make(directory: Path) -> None:
    """Make the directory if it is missing, and see that it is the agent's own.

    Raises:
        UnsafeError: others may write in it, or own it.
        OSError: it cannot be made.
    """
    if not directory.is_dir():
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    found = directory.lstat()
    if stat.S_ISLNK(found.st_mode):
        if found.st_uid not in {0, os.geteuid()}:
            raise UnsafeError(f"{directory} is a symbolic link of uid {found.st_uid}")
        found = directory.stat()
    if found.st_uid != os.geteuid():
        raise UnsafeError(
            f"{directory} belongs to uid {found.st_uid}, but the agent runs as uid {os.geteuid()};"
            " chown it, or name a directory in it, which the agent makes itself"
        )
    if found.st_mode & _OTHERS:
        raise UnsafeError(f"{directory} may be written by everybody; chmod go-w it")
    if found.st_mode & _GROUP:  # fsGroup of Kubernetes does that to each volume that it mounts
        directory.chmod(stat.S_IMODE(found.st_mode) & ~_GROUP)


def flaw(status: os.stat_result, owner: int) -> str:
    """Say why a file in the state directory may be another's; empty if it is the agent's own.

    Args:
        status: of the file.
        owner: uid of the directory's owner.
    """
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_uid != owner:
        return f"it belongs to uid {status.st_uid}, not to uid {owner}"
    if status.st_mode & (_GROUP | _OTHERS):
        return "others may have written it"
    return ""


def move(old: Path, new: Path, wanted: tuple[str, ...]) -> int:
    """Move what an earlier version left in its place, and remove that; return how many files.

    May be repeated after it was cut off.

    Args:
        old: the earlier place; need not exist.
        new: the directory, made.
        wanted: suffixes of what is moved; the rest can be made again.

    Raises:
        BlockingIOError: another agent still uses the old place.
        OSError: something cannot be moved.
    """
    if old == new or old.is_symlink() or not old.is_dir() or old.stat().st_uid != os.geteuid():
        return 0
    with _locked(old / "lock"):
        found = sorted(path for path in old.iterdir() if path.suffix in wanted)
        for path in found:
            _move(path, new / path.name)
        sync(new)
        for name in ("lock", "reserve"):
            with suppress(OSError):
                (old / name).unlink(missing_ok=True)
        with suppress(OSError):  # whatever else lies there is not ours
            old.rmdir()
    return len(found)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an agent that may still work in the earlier place.

    Raises:
        BlockingIOError: it does.
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
    """Rename a file, or copy it where it lies on another disk."""
    try:
        path.rename(target)
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
        part = target.with_suffix(".tmp")
        shutil.copyfile(path, part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.rename(target)
        path.unlink()


def sync(directory: Path) -> None:
    """Make names that were changed in a directory survive a crash.

    Raises:
        OSError: it is not certain that they do.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
