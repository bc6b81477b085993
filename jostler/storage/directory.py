"""A local directory that behaves like a bucket: each object is a file below it.

**Invariant:** a file under an object's name is complete and durable.  Incomplete files are only in
the directory `.tmp`; the process that writes one holds a lock on it, and the next writer removes
those without a lock.

Not every file system has a place for an object's metadata, so it is a file of its own below
`.metadata`, which names the version of the object that it belongs to.  It may be lost in a crash;
the upload id, which must not be, is computed from the bytes.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson

from jostler.errors import (
    AuthError,
    ConflictError,
    MissingError,
    QuotaError,
    RefusedError,
    TransientError,
)
from jostler.storage.bucket import NO_METADATA, ObjectInfo, StoredObject, upload_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

TMP = ".tmp"
METADATA = ".metadata"
_OWN = frozenset({TMP, METADATA})
_NOT_PARTS = _OWN | {"", ".", ".."}
LOCK = "lock"
DEAD_S = 60.0
LINK_TRIES = 10


class DirectoryStorage:
    """A bucket in a directory, which is created if it does not exist."""

    def __init__(self, root: Path) -> None:
        self.url = root.absolute().as_uri()
        self._root = root.absolute()
        self._tmp_dir = self._root / TMP
        self._lock_file = self._tmp_dir / LOCK
        self._cleaned = False

    def put_new(
        self, name: str, data: bytes, metadata: Mapping[str, str], *, digest: str = ""
    ) -> None:
        """Write a temporary file, then link(2) it to its name: link(2) never overwrites."""
        path = self._path(name)
        with _translated(name):
            digest = digest or (upload_id(data) if metadata else "")
            with self._tmp(data) as tmp:
                version = _version(tmp.stat())
                try:
                    self._link(tmp, path)
                except FileExistsError:
                    version = self._same(name, digest or upload_id(data))
            # Also if the object was there already: its writer may have died before it synced the
            # name.
            _sync_dir(path.parent)
            if metadata:
                self._write_metadata(name, version, {**metadata, "upload-id": digest})

    def _same(self, name: str, digest: str) -> str:
        """Return the version of an object whose bytes have this upload id.

        Raises:
            ConflictError: it has others.
        """
        with suppress(MissingError):
            found = self.read(name)
            if upload_id(found.data) == digest:
                return found.version
        raise ConflictError(f"{self.url}/{name} already holds other bytes")

    def _write_metadata(self, name: str, version: str, metadata: Mapping[str, str]) -> None:
        """Keep the metadata of one version of an object, under its name."""
        content = {"version": version, "metadata": dict(metadata)}
        path = self._metadata_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._tmp(orjson.dumps(content), durable=False) as tmp:
            tmp.rename(path)

    def metadata(self, name: str, version: str = "") -> Mapping[str, str]:
        """Read the file that keeps it."""
        with _translated(name), self._path(name).open("rb") as file:
            return self._metadata_of(name, self._expect(name, file, version))

    def _metadata_of(self, name: str, version: str) -> Mapping[str, str]:
        """Return the metadata of a version of an object; empty if there is none."""
        try:
            described = orjson.loads(self._metadata_path(name).read_bytes())
            if described["version"] == version:
                return {str(key): str(value) for key, value in described["metadata"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            pass  # none, or cut off by a crash
        return {}

    def _link(self, tmp: Path, path: Path) -> None:
        """Link a file to its name; retry if a concurrent `remove` deletes its empty directory."""
        for left in reversed(range(LINK_TRIES)):
            try:
                self._make_parents(path)
                os.link(tmp, path)
            except FileNotFoundError:
                if not left:
                    raise
            else:
                return

    def upload_id(self, name: str) -> str | None:
        """Compute the id from the bytes."""
        try:
            return upload_id(self.read(name).data)
        except MissingError:
            return None

    def read(self, name: str, version: str = "") -> StoredObject:
        """Read a whole file; its version is described at `_version`."""
        with _translated(name), self._path(name).open("rb") as file:
            found = self._expect(name, file, version)
            return StoredObject(file.read(), found)

    def read_range(self, name: str, offset: int, length: int, version: str = "") -> bytes:
        """Read a part of a file."""
        with _translated(name), self._path(name).open("rb") as file:
            self._expect(name, file, version)
            file.seek(offset)
            return file.read(length)

    def _expect(self, name: str, file: BinaryIO, version: str) -> str:
        found = _version(os.fstat(file.fileno()))
        if version and found != version:
            raise MissingError(f"{self.url}/{name}: changed since it was listed")
        return found

    def replace(
        self, name: str, data: bytes, version: str, metadata: Mapping[str, str] = NO_METADATA
    ) -> None:
        """Compare and swap under a lock that every writer of this directory takes."""
        with _translated(name), self._lock():
            try:
                path = self._path(name)
                self._compare(name, path, version)
            except FileNotFoundError:
                raise ConflictError(f"{self.url}/{name} is gone") from None
            with self._tmp(data) as tmp:
                replaced = _version(tmp.stat())
                # rename(2) replaces the object in one step: a reader sees the old bytes or the new
                # ones.
                tmp.rename(path)
            _sync_dir(path.parent)
            if metadata:
                described = {**metadata, "upload-id": upload_id(data)}
                self._write_metadata(name, replaced, described)

    def _compare(self, name: str, path: Path, version: str) -> None:
        found = _version(path.stat())
        if found != version:
            raise ConflictError(f"{self.url}/{name} changed: {version} is now {found}")

    def list(
        self, prefix: str, start: str = "", end: str = "", *, metadata: bool = False
    ) -> Iterator[ObjectInfo]:
        """Walk the directories that can hold the prefix, in order of object names."""
        folder = prefix.rpartition("/")[0]
        with _translated(prefix):
            root = str(self._root / folder) if folder else str(self._root)
            for info in _walk(root, folder, prefix):
                if end and info.name >= end:
                    return
                if info.name >= start:
                    described = self._metadata_of(info.name, info.version) if metadata else {}
                    yield replace(info, metadata=described) if described else info

    def written(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Yield the names and modification times of files; they are set when a file is written."""
        for info in self.list(prefix):
            with suppress(FileNotFoundError):  # removed since it was listed
                yield info.name, datetime.fromtimestamp(self._path(info.name).stat().st_mtime, UTC)

    def folders(self, prefix: str) -> tuple[str, ...]:
        """List the directories right below."""
        with _translated(prefix), suppress(FileNotFoundError, NotADirectoryError):
            with os.scandir(self._root / prefix) as scan:
                found = [entry.name for entry in scan if entry.is_dir(follow_symlinks=False)]
            return tuple(sorted(name for name in found if prefix or name not in _OWN))
        return ()

    def beside(self, prefix: str) -> tuple[str, ...]:
        """List the files right below."""
        with _translated(prefix), suppress(FileNotFoundError, NotADirectoryError):
            with os.scandir(self._root / prefix) as scan:
                found = [entry.name for entry in scan if not entry.is_dir(follow_symlinks=False)]
            return tuple(f"{prefix}{name}" for name in sorted(found))
        return ()

    def remove(self, name: str, version: str = "") -> None:
        """Unlink a file and the directories that are then empty: a bucket has no directories."""
        path = self._path(name)
        with _translated(name):
            if version:
                with self._lock(), suppress(FileNotFoundError):
                    self._compare(name, path, version)
                    path.unlink()
            else:
                path.unlink(missing_ok=True)
            kept = self._metadata_path(name)
            kept.unlink(missing_ok=True)
            for gone in (path, kept):
                with suppress(OSError):  # rmdir fails at the first directory that is not empty
                    parent = gone.parent
                    for _ in range(name.count("/")):
                        parent.rmdir()
                        parent = parent.parent

    def clock(self) -> datetime | None:
        """Return None: a directory has no server; its times come from this machine."""
        return None

    def _metadata_path(self, name: str) -> Path:
        return self._root / METADATA / f"{name}.json"

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if not name or _NOT_PARTS & set(parts) or "\0" in name:
            raise RefusedError(f"{name!r} cannot be the name of an object in a directory")
        return self._root / name

    @contextmanager
    def _tmp(self, data: bytes, *, durable: bool = True) -> Iterator[Path]:
        """Write a temporary file; remove it at the end, also after an error."""
        tmp = self._tmp_dir / uuid4().hex
        tmp.parent.mkdir(parents=True, exist_ok=True)
        if not self._cleaned:
            self._cleaned = True
            _remove_dead(tmp.parent)
        try:
            with tmp.open("xb") as file:
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(file, fcntl.LOCK_SH)
                file.write(data)
                file.flush()
                # Kernels before 6.13 stamp files by the tick, up to 10 ms apart: too coarse to
                # tell a file from its successor, which may be given the same inode number.
                now_ns = time.time_ns()
                os.utime(file.fileno(), ns=(now_ns, now_ns))
                if durable:
                    os.fsync(file.fileno())
                yield tmp
        finally:
            tmp.unlink(missing_ok=True)

    def _make_parents(self, path: Path) -> None:
        missing = []
        parent = path.parent
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        for directory in reversed(missing):
            directory.mkdir(exist_ok=True)
            _sync_dir(directory.parent)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        self._tmp_dir.mkdir(parents=True, exist_ok=True)
        with self._lock_file.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _remove_dead(directory: Path) -> None:
    """Remove the temporary files of processes that died."""
    with suppress(OSError):
        for path in directory.iterdir():
            if path.name != LOCK:
                with suppress(OSError):
                    _remove_if_dead(path)


def _remove_if_dead(path: Path) -> None:
    """Remove a temporary file that is not locked and not new.

    A new one is spared because its writer creates it first and locks it a moment later.

    Raises:
        OSError: it is locked, or cannot be removed.
    """
    with path.open("rb") as file:
        if abs(time.time() - os.fstat(file.fileno()).st_mtime) >= DEAD_S:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _walk(directory: str, name: str, prefix: str) -> Iterator[ObjectInfo]:
    entries = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as scan:
        # In a listing "a/b" comes after "a.b": a directory sorts by its name with the slash.
        entries = [(e.name + "/" if e.is_dir(follow_symlinks=False) else e.name, e) for e in scan]
    for sort_name, entry in sorted(entries, key=lambda pair: pair[0].encode()):
        full = f"{name}/{sort_name}" if name else sort_name
        if entry.name in _OWN and not name:
            continue
        if full.endswith("/"):
            if full.startswith(prefix) or prefix.startswith(full):
                yield from _walk(entry.path, full[:-1], prefix)
        elif full.startswith(prefix):
            with suppress(FileNotFoundError):  # removed since the directory was read
                seen = entry.stat()
                yield ObjectInfo(full, seen.st_size, _version(seen))


def _version(seen: os.stat_result) -> str:
    """Return the version of a file: inode, modification time and size; a new file has others."""
    return f"{seen.st_ino}-{seen.st_mtime_ns}-{seen.st_size}"


def _sync_dir(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turn errors of the file system into those of a bucket."""
    try:
        yield
    except FileNotFoundError as exc:
        raise MissingError(f"there is no object {name}") from exc
    except PermissionError as exc:
        reason = f"the bucket's directory cannot be used: {exc.strerror}"
        hint = "give the agent's user access"
        raise AuthError(f"{name}: {exc}", hint=hint, cause=reason) from exc
    except OSError as exc:
        reason = f"the bucket's directory cannot be used: {exc.strerror or exc}"
        if exc.errno in _FULL:
            hint = "free some disk space"
            raise QuotaError(f"{name}: {exc}", hint=hint, cause=reason) from exc
        hint = "look at the disk or network file system that it is on"
        raise TransientError(f"{name}: {exc}", hint=hint, cause=reason) from exc


_FULL = {28, 122}  # ENOSPC, EDQUOT
