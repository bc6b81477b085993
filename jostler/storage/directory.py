"""A local directory that behaves as a bucket: objects are files below it.

**Invariant:** a file under an object's name is complete and on disk; half-written bytes exist only
in `.tmp` beside the objects.  A directory keeps no object metadata, for a file has no place for it
that every file system offers; the upload id is computed from the bytes instead.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from jostler.errors import (
    AuthError,
    ConflictError,
    MissingError,
    QuotaError,
    RefusedError,
    TransientError,
)
from jostler.storage.bucket import ObjectInfo, Stored, upload_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

TMP = ".tmp"


class DirectoryStorage:
    """A bucket in a directory, made when it is not there yet."""

    def __init__(self, root: Path) -> None:
        self.url = root.absolute().as_uri()
        self._root = root.absolute()

    def put_new(self, name: str, data: bytes, metadata: Mapping[str, str]) -> None:
        """Write a temporary file, then link it under its name: link(2) never overwrites."""
        del metadata
        path = self._path(name)
        with _translated(name):
            tmp = self._write_tmp(data)
            try:
                self._make_parents(path)
                os.link(tmp, path)
            except FileExistsError:
                if self.upload_id(name) != upload_id(data):
                    raise ConflictError(f"{self.url}/{name} already holds other bytes") from None
            finally:
                tmp.unlink()
            _sync_dir(path.parent)

    def upload_id(self, name: str) -> str | None:
        """Compute the id from the bytes."""
        try:
            return upload_id(self.read(name).data)
        except MissingError:
            return None

    def read(self, name: str) -> Stored:
        """Read a file; its version is the digest of its bytes."""
        with _translated(name):
            data = self._path(name).read_bytes()
        return Stored(data, upload_id(data))

    def read_range(self, name: str, offset: int, length: int) -> bytes:
        """Read a part of a file."""
        with _translated(name), self._path(name).open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def replace(self, name: str, data: bytes, version: str) -> None:
        """Compare and swap under a lock that every writer of this directory takes."""
        with _translated(name), self._lock():
            try:
                found = self.read(name).version
            except MissingError:
                found = "nothing"
            if found != version:
                raise ConflictError(f"{self.url}/{name} changed: {version} is now {found}")
            path = self._path(name)
            self._write_tmp(data).rename(path)
            _sync_dir(path.parent)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Walk the directories that can hold the prefix, in order of object names."""
        start = prefix.rpartition("/")[0]
        with _translated(prefix):
            yield from _walk(str(self._root / start) if start else str(self._root), start, prefix)

    def remove(self, name: str) -> None:
        """Unlink a file."""
        with _translated(name):
            self._path(name).unlink(missing_ok=True)

    def clock(self) -> datetime | None:
        """Have none: the directory's clock is this machine's."""
        return None

    def _path(self, name: str) -> Path:
        parts = name.split("/")
        if not name or {"", ".", "..", TMP} & set(parts) or "\0" in name:
            raise RefusedError(f"{name!r} cannot be the name of an object in a directory")
        return self._root.joinpath(*parts)

    def _write_tmp(self, data: bytes) -> Path:
        tmp = self._root / TMP / uuid4().hex
        tmp.parent.mkdir(parents=True, exist_ok=True)
        with tmp.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return tmp

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
        tmp = self._root / TMP
        tmp.mkdir(parents=True, exist_ok=True)
        with (tmp / "lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _walk(directory: str, name: str, prefix: str) -> Iterator[ObjectInfo]:
    entries = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(directory) as scan:
        # In a listing "a/b" comes after "a.b": a directory sorts by its name with the slash.
        entries = [(e.name + "/" if e.is_dir(follow_symlinks=False) else e.name, e) for e in scan]
    for sort_name, entry in sorted(entries, key=lambda pair: pair[0].encode()):
        full = f"{name}/{sort_name}" if name else sort_name
        if entry.name == TMP and not name:
            continue
        if full.endswith("/"):
            if full.startswith(prefix) or prefix.startswith(full):
                yield from _walk(entry.path, full[:-1], prefix)
        elif full.startswith(prefix):
            yield ObjectInfo(full, entry.stat().st_size)


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
        raise AuthError(f"{name}: {exc}", hint="give the agent's user access") from exc
    except OSError as exc:
        if exc.errno in _FULL:
            raise QuotaError(f"{name}: {exc}", hint="free some disk space") from exc
        raise TransientError(f"{name}: {exc}") from exc


_FULL = {28, 122}  # ENOSPC, EDQUOT
