"""The journal: which sealed bundles are being stored, so that a crash repeats no commit.

**Invariant:** a record is on disk before its data object is asked for, and goes away only after
every file of it was unlinked or given back.  A record's suffix is its state: `.sealed` until data
and index are durable, `.stored` from then on.  The journal is the agent's only state.

One exception: on a full disk on which no reserve could ever be taken, one bundle at a time is
stored without a record; otherwise the disk would stay full.  A crash may then store it twice;
nothing is lost.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from contextlib import suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from jostler.bundle import record as written
from jostler.bundle import state_dir, vanished
from jostler.bundle.reserve import Reserve, holds_blocks
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from jostler.bundle.record import Record

log = Log("jostler.journal")

SEALED = ".sealed"
STORED = ".stored"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# O_NONBLOCK: open(2) of a pipe would wait for a writer; `state_dir.flaw` then refuses it.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """The records in one directory, which one agent at a time may use.

    Args:
        directory: where they lie.
        old: where an earlier version left them, if somewhere else.

    Attributes:
        without: the bundle, by its record's name, that goes without one; empty: none.
    """

    def __init__(self, directory: Path, old: Path | None = None) -> None:
        self._dir = directory
        self._old = old
        self._reserve = Reserve(directory / "reserve")
        self._vanished = directory / "vanished"
        self._busy = threading.RLock()  # uploads write from several threads
        self._lent: set[str] = set()  # whose records lie in the blocks of a reserve
        self._remembers = False  # whether space for vanished files is allocated
        self.without = ""

    def open(self) -> IO[bytes] | None:
        """Make the directory, take its lock and the reserve; None when another agent has it.

        The lock lives as long as the returned file is open.

        Raises:
            OSError: the directory cannot be made or written, or is not the agent's alone.
        """
        try:
            state_dir.make(self._dir)
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
            # A full disk has no block for a directory; a file without bytes needs none.
            return self._locked(self._dir.with_name(f"{self._dir.name}.lock"))
        lock = self._locked(self._dir / "lock")
        if lock is None:
            return None
        try:
            self._take_in(self._old)
        except BlockingIOError:
            lock.close()
            return None
        for leftover in self._dir.glob("*.tmp"):
            # The write of this record had not returned, so nothing was sent for it.
            leftover.unlink()
        self._reserve.take()
        self._remembers = vanished.take_room(self._vanished)
        return lock

    def write(self, record: Record, *, surely: bool = False) -> None:
        """Write or replace a record; returning means it survives a crash.

        Args:
            record: of a bundle.
            surely: never go without a record, however full the disk is.

        Raises:
            OSError: it could not be written; nothing changed.
        """
        try:
            try:
                self._write(record)
            except FileNotFoundError:
                self._make_again()
                self._write(record)
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
            with self._busy:
                self._write_on_a_full_disk(record, exc, surely=surely)
        else:
            self._forget(record)

    def mark_stored(self, record: Record) -> Record:
        """Say that data and index are durable.  A call that failed can be repeated.

        Raises:
            OSError: it is not certain to survive a crash.
        """
        stored = replace(record, stored=True)
        if self.without == record.basename:
            return stored
        try:
            # The state is in the name because rename(2) is atomic and needs no space for a new
            # record.
            self._path(record).rename(self._path(stored))
        except FileNotFoundError:
            # An earlier call renamed the record and then could not sync the directory; or
            # somebody removed the record, and its files are still to be unlinked.
            if not self._path(stored).exists():
                self.write(stored)
        with suppress(FileNotFoundError):  # on a full disk there may be no directory yet
            state_dir.sync(self._dir)
        return stored

    def remove(self, record: Record) -> None:
        """Forget a record; one that a crash brings back finds its files gone and is harmless.

        Raises:
            OSError: it could not be removed.
        """
        with self._busy:
            for state in (record, replace(record, stored=not record.stored)):
                # A rename that could not be synced may have left the record under either name.
                if not self._reserve.take_over(self._path(state)):
                    self._path(state).unlink(missing_ok=True)
            self._forget(record)
            self._lent.discard(record.basename)
            self._reserve.take()
            self._remembers = self._remembers or vanished.take_room(self._vanished)

    def add_vanished(self, hashes: Mapping[str, bytes]) -> None:
        """Remember stored files whose path was gone, before the record that named them goes.

        On a full disk they go into space that was allocated before.  If there is none left they
        are not remembered: then it is more important that the record goes.

        Raises:
            OSError: they could not be written.
        """
        try:
            if hashes:
                vanished.append(self._vanished, hashes)
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
            self._remembers = False
            log.error(
                "vanished.forgotten",
                files=len(hashes),
                error=str(exc),
                next="if they come back after a restart, they are stored twice",
            )

    def vanished(self) -> dict[str, bytes]:
        """Return the hashes of stored files whose path was gone, by path.

        Raises:
            OSError: they are there and cannot be read.
        """
        return vanished.read(self._vanished)

    def renew_reserve(self, record: Record) -> None:
        """Take a new reserve, if there is space, in place of the one that a record has and keeps.

        Its blocks are not waited for any more; they come back if the record goes.
        """
        with self._busy:
            self._lent.discard(record.basename)
            self._reserve.take()

    def holds(self, record: Record) -> bool:
        """Say whether the record of a stored bundle is on disk."""
        return self._path(replace(record, stored=True)).exists()

    def read(self, record: Record) -> Record:
        """Return the record of a sealed or stored bundle as it is on disk.

        Raises:
            OSError: it is gone or cannot be read.
            ValueError: it is something else than a record.
        """
        path = self._path(record)
        try:
            return _read(path, self._dir.stat().st_uid)
        except (TypeError, KeyError, StopIteration) as exc:
            raise ValueError(f"{path.name}: {type(exc).__name__}: {exc}") from exc

    def load(self) -> tuple[list[Record], list[tuple[Path, str]]]:
        """Return all records, oldest first, and those that cannot be read, each with the reason."""
        records = []
        unreadable = []
        try:
            owner = self._dir.stat().st_uid
            found = [p for p in self._dir.iterdir() if p.suffix in {SEALED, STORED}]
        except FileNotFoundError:  # a full disk had no room for the directory
            return [], []
        stored = {path.stem for path in found if path.suffix == STORED}
        for path in sorted(found):
            # A list of given-up files may be written again after a crash when it is stored already.
            if path.suffix == SEALED and path.stem in stored:
                continue
            try:
                records.append(_read(path, owner))
                # An earlier process wrote it over the reserve, which comes back when it goes.
                if holds_blocks(path):
                    self._lent.add(path.stem)
            except (ValueError, TypeError, KeyError, StopIteration, OSError) as exc:
                unreadable.append((path, f"{type(exc).__name__}: {exc}"))
        return records, unreadable

    def _path(self, record: Record) -> Path:
        return self._dir / (record.basename + (STORED if record.stored else SEALED))

    def _locked(self, path: Path) -> IO[bytes] | None:
        """Take the lock that is a file; None when another agent has it."""
        # The file is never unlinked: else two agents could each lock a file of this name.  The
        # kernel releases the lock when the process ends, however it ends (flock(2)).
        lock = path.open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock

    def _take_in(self, old: Path | None) -> None:
        """Move the records of an earlier version here.

        Raises:
            BlockingIOError: an agent of that version still runs.
        """
        if old is not None:
            moved = state_dir.move(old, self._dir, (SEALED, STORED))
            if moved:
                log.info("state.moved", old=str(old), new=str(self._dir), records=moved)

    def _make_again(self) -> None:
        """Make the directory and its lock again: somebody removed them while the agent runs.

        Raises:
            OSError: it cannot be made, or another agent has taken it meanwhile.
        """
        with self._busy:
            if self._dir.is_dir():
                return
            state_dir.make(self._dir)
            lock = self._locked(self._dir / "lock")
            if lock is None:
                raise BlockingIOError(errno.EAGAIN, "another agent uses it", str(self._dir))
            with lock:
                # A duplicate refers to the same lock, which lasts until all of them are closed
                # (flock(2)).  The old lock excludes nobody any more: its file went with the
                # directory.
                os.dup(lock.fileno())  # holds the lock until the process ends
            self._reserve.take()
            log.warning("state.made_again", dir=str(self._dir))

    def _write(self, record: Record) -> None:
        tmp = self._dir / f"{record.basename}.tmp"
        try:
            with tmp.open("wb") as file:
                file.writelines(written.lines(record))
                file.flush()
                # Bytes before the name: after a power failure a file that was renamed without
                # fsync(2) may be empty, and the record of a bundle that is in the bucket would be
                # lost.
                os.fsync(file.fileno())
            tmp.rename(self._path(record))
        except OSError:
            with suppress(OSError):
                tmp.unlink(missing_ok=True)
            raise
        state_dir.sync(self._dir)

    def _write_on_a_full_disk(self, record: Record, error: OSError, *, surely: bool) -> None:
        """Write a record over the reserve, or go without one where there never was a reserve.

        Raises:
            OSError: the disk is full, and another record has the reserve; it comes back.
        """
        try:
            in_reserve = self._reserve.write(self._path(record), written.lines(record))
        except OSError as exc:
            if exc.errno in _FULL:  # the file system does not write in place
                self._reserve.give_back()
            raise
        if in_reserve:
            self._lent.add(record.basename)
            self._forget(record)
            state_dir.sync(self._dir)
            return
        # Only one bundle at a time: a crash can then store no more than that one twice.
        if surely or (self._lent | {self.without}) - {"", record.basename}:
            raise error
        self.without = record.basename
        log.error(
            "journal.full",
            bundle=record.basename,
            error=str(error),
            next="stored without a record, to free the disk; a crash now may store it twice",
        )

    def _forget(self, record: Record) -> None:
        """Note that a record is on disk, or needed no more."""
        if self.without == record.basename:
            self.without = ""


def _read(path: Path, owner: int) -> Record:
    """Read a record, if the directory's owner wrote it.

    Raises:
        ValueError, TypeError, KeyError, StopIteration: it is no record.
        OSError: it cannot be read.
    """
    with os.fdopen(os.open(path, _READ), "rb") as file:
        if flaw := state_dir.flaw(os.fstat(file.fileno()), owner):
            raise ValueError(flaw)
        record = written.read(iter(file), stored=path.suffix == STORED)
    if path.stem != record.basename:
        raise ValueError(f"it is a record of {record.basename}")
    return record
