"""The journal: which sealed bundles are on their way, so that a crash repeats no commit.

**Invariant:** an entry is on disk before its data object is asked for, and goes away only after
every file of it was unlinked or given back.  An entry's suffix is its state: `.sealed` until data
and index are durable, `.stored` from then on.  The journal is the agent's only state.

A reserve of disk space is held back: on a full disk the spool can only drain if the journal can
still be written.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

import orjson

from jostler.bundle.bundle import Attempt, Bundle, Header
from jostler.bundle.entry import Entries, Entry, FileState
from jostler.format.blocks import Block
from jostler.format.names import BundleName
from jostler.format.row import Archiver, Rejection

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FORMAT = 1
SEALED = ".sealed"
STORED = ".stored"
RESERVE_BYTES = 16 * 1024 * 1024
_FULL = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of the journal.

    Attributes:
        header: of the bundle.
        attempts: every sealing that may have been uploaded under the name; the last is current.
        rejections: by path, for a rejected1 bundle.
        stored: data and index are durable; `attempts` is then the one that was stored.
    """

    header: Header
    attempts: tuple[Attempt, ...]
    rejections: dict[str, Rejection]
    stored: bool = False

    @classmethod
    def of(cls, bundle: Bundle) -> Record:
        """Make the entry of a bundle that was just sealed."""
        return cls(header=bundle.header, attempts=(bundle.attempt,), rejections=bundle.rejections)

    @property
    def basename(self) -> str:
        """The entry's file without its suffix: the data object's own, which no other shares."""
        return str(self.header.name).rpartition("/")[2]

    @property
    def paths(self) -> set[str]:
        """The paths of all files in any attempt."""
        return {path for attempt in self.attempts for path in attempt.entries.paths}

    def settled(self, winner: Attempt) -> Record:
        """Return the entry that remembers `winner` as the attempt that was stored."""
        return replace(self, attempts=(winner,))

    def with_attempt(self, attempt: Attempt) -> Record:
        """Return the entry with one more attempt."""
        return replace(self, attempts=(*self.attempts, attempt))


class Journal:
    """The entries in one directory, which one agent at a time may use."""

    def __init__(self, directory: Path) -> None:
        self._dir = directory
        self._reserve = directory / "reserve"

    def open(self) -> IO[bytes] | None:
        """Make the directory, take its lock and the reserve; None when another agent has it.

        The lock lives as long as the returned file is open.

        Raises:
            OSError: the directory cannot be made or written.
        """
        self._dir.mkdir(parents=True, exist_ok=True)
        lock = (self._dir / "lock").open("wb")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        for leftover in self._dir.glob("*.tmp"):
            leftover.unlink()
        self._take_reserve()
        return lock

    def write(self, record: Record) -> None:
        """Write or replace an entry; returning means it survives a crash.

        Raises:
            OSError: it could not be written; nothing changed.
        """
        with self._room():
            tmp = self._dir / f"{record.basename}.tmp"
            try:
                with tmp.open("wb") as file:
                    file.writelines(_lines(record))
                    file.flush()
                    os.fsync(file.fileno())
                tmp.rename(self._path(record))
            except OSError:
                with suppress(OSError):
                    tmp.unlink(missing_ok=True)
                raise
            self._sync()

    def mark_stored(self, record: Record) -> Record:
        """Say that data and index are durable.  A call that failed can be repeated.

        Raises:
            OSError: it is not certain to survive a crash.
        """
        stored = replace(record, stored=True)
        with self._room():
            try:
                self._path(record).rename(self._path(stored))
            except FileNotFoundError:
                # An earlier call renamed the entry and then could not sync the directory; or
                # somebody removed the entry, and its files are still to be unlinked.
                if not self._path(stored).exists():
                    self.write(stored)
            self._sync()
        return stored

    def remove(self, record: Record) -> None:
        """Forget an entry; one that a crash brings back finds its files gone and is harmless.

        Raises:
            OSError: it could not be removed.
        """
        self._path(record).unlink(missing_ok=True)
        self._take_reserve()

    def load(self) -> tuple[list[Record], list[tuple[Path, str]]]:
        """Return all entries, oldest first, and those that cannot be read, each with the reason."""
        records = []
        unreadable = []
        found = [p for p in self._dir.iterdir() if p.suffix in {SEALED, STORED}]
        for path in sorted(found):
            try:
                with path.open("rb") as file:
                    record = _parse(iter(file), stored=path.suffix == STORED)
            except (ValueError, TypeError, KeyError, StopIteration, OSError) as exc:
                unreadable.append((path, f"{type(exc).__name__}: {exc}"))
            else:
                records.append(record)
        return records, unreadable

    def _path(self, record: Record) -> Path:
        return self._dir / (record.basename + (STORED if record.stored else SEALED))

    def _sync(self) -> None:
        fd = os.open(self._dir, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _take_reserve(self) -> None:
        """Hold the reserve again; on a full disk there is none to take, and none is needed yet."""
        if self._reserve.exists():
            return
        try:
            with self._reserve.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, RESERVE_BYTES)
        except OSError:
            with suppress(OSError):
                self._reserve.unlink(missing_ok=True)

    @contextmanager
    def _room(self) -> Iterator[None]:
        """On a full disk, give the reserve back so that the next try finds room."""
        try:
            yield
        except OSError as exc:
            if exc.errno in _FULL:
                self._reserve.unlink(missing_ok=True)
            raise


def _lines(record: Record) -> Iterator[bytes]:
    """Write an entry as lines: the header, then each attempt and its files."""
    header = record.header
    yield _dumps(
        {
            "format": FORMAT,
            "name": str(header.name),
            "bucket": header.bucket,
            "archiver": [header.archiver.version, header.archiver.commit],
            "level": header.level,
            "rejections": {
                path: [r.datatype, r.reason, r.detail, r.field]
                for path, r in record.rejections.items()
            },
        }
    )
    for attempt in record.attempts:
        blocks = [tuple(block) for block in attempt.blocks]
        yield _dumps({"upload_id": attempt.upload_id, "blocks": blocks})
        for path, state, added_us, digest in attempt.entries:
            yield _dumps([path, *state, added_us, digest.hex()])


def _dumps(value: object) -> bytes:
    try:
        return orjson.dumps(value) + b"\n"
    except TypeError:  # a file's name that is no UTF-8: only json writes lone surrogates
        return json.dumps(value).encode() + b"\n"


def _parse(lines: Iterator[bytes], *, stored: bool) -> Record:
    """Read what `_lines` writes.

    Raises:
        ValueError, TypeError, KeyError, StopIteration: it is something else.
    """
    data = json.loads(next(lines))
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r}, expected {FORMAT}")
    version, commit = data["archiver"]
    return Record(
        header=Header(
            name=BundleName.parse(data["name"]),
            bucket=data["bucket"],
            archiver=Archiver(version=version, commit=commit),
            level=data["level"],
        ),
        attempts=tuple(_attempts(lines)),
        rejections={
            path: Rejection(datatype=datatype, reason=reason, detail=detail, field=field)
            for path, (datatype, reason, detail, field) in data["rejections"].items()
        },
        stored=stored,
    )


def _attempts(lines: Iterator[bytes]) -> Iterator[Attempt]:
    entries = Entries()
    for line in lines:
        value = json.loads(line)
        if isinstance(value, dict):
            entries = Entries()
            blocks = tuple(Block(*block) for block in value["blocks"])
            yield Attempt(upload_id=value["upload_id"], entries=entries, blocks=blocks)
        else:
            path, inode, size, mtime_ns, ctime_ns, added_us, digest = value
            state = FileState.fitted(inode, size, mtime_ns, ctime_ns)
            entries.append(Entry(path, state, added_us, bytes.fromhex(digest)))
