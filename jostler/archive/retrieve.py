"""Copy everything that a query matches into a directory.

**Invariant:** it can be stopped at any moment and run again: what is there with its Hash is not
read again, and nothing under a final name is half written.  Two files of one name both arrive, the
second one with a part of its hash in its name; no file is overwritten.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from isal import isal_zlib

from jostler.archive.hashes import digest
from jostler.archive.reading import READERS, RowReader, Unread
from jostler.archive.saving import (
    Directory,
    DiskError,
    Saved,
    SaveError,
    TakenError,
    with_mark,
)
from jostler.errors import DamageError, JostlerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from jostler.archive.files import Bundle, File
    from jostler.archive.reading import Row
    from jostler.storage import Storage

MARK = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where files go: `<datatype>/<yyyy>/<mm>/<dd>/<name>`, or less.

    Attributes:
        flatten_days: whether to leave out the directories of days.
        flatten_datatypes: whether to leave out those of datatypes.
    """

    flatten_days: bool = False
    flatten_datatypes: bool = False

    def relative(self, datatype: str, day_path: str, name: str) -> str:
        """Return the path of a file below the directory."""
        if self.flatten_datatypes:
            return name if self.flatten_days else f"{day_path}/{name}"
        return f"{datatype}/{name}" if self.flatten_days else f"{datatype}/{day_path}/{name}"


@dataclass(slots=True)
class Retrieved:
    """What was retrieved; files, or bundles if they are kept packed.

    Attributes:
        written: the number written.
        written_bytes: their bytes.
        already: the number that was there already.
        renamed: the number that got another name, because another file has theirs.
        unverified: the number written that the index has no hash for.
        problems: one sentence for each that could not be had.
    """

    written: int = 0
    written_bytes: int = 0
    already: int = 0
    renamed: int = 0
    unverified: int = 0
    problems: list[str] = field(default_factory=list)


class Retrieval:
    """One run into one directory.

    Args:
        directory: where to; nobody else may write there meanwhile, see `alone`.
        layout: where files go.
        bucket: opens the bucket of a URL.
        report: is added to.
    """

    def __init__(
        self, directory: Path, layout: Layout, bucket: Callable[[str], Storage], report: Retrieved
    ) -> None:
        self._to = Directory(directory, alone=True)
        self._layout = layout
        self._bucket = bucket
        self._report = report

    def files(self, files: Iterable[File], reader: RowReader) -> None:
        """Write the files that are not there yet.

        Raises:
            DiskError: the disk is full or read-only.
        """
        if not self._to.was_empty:
            files = (file for file in files if not self._is_there(file))
        for row in reader.read_all(files):
            if isinstance(row, Unread):
                self._report.problems.append(str(row.error))
                continue
            try:
                self._save(row)
            except DiskError:
                raise
            except SaveError as exc:
                self._report.problems.append(str(exc))

    def _path(self, file: File) -> str:
        own_day, slash, name = file.path.rpartition("/")
        day = own_day if slash else f"{file.origin.day:%Y/%m/%d}"
        return self._to.path(self._layout.relative(file.datatype, day, name or file.path))

    def _is_there(self, file: File) -> bool:
        try:
            path = self._path(file)
        except SaveError as exc:
            self._report.problems.append(str(exc))
            return True  # it can never be written
        # Some hashes are those of bytes that are not stored: such a file is read again, and
        # compared when it is saved.
        is_there = (
            bool(file.hash)
            and self._to.has(path)
            and (
                self._to.has(path, file.hash)
                or self._to.has(with_mark(path, file.hash[:MARK]), file.hash)
            )
        )
        self._report.already += is_there
        return is_there

    def _save(self, row: Row) -> None:
        report, path, when = self._report, self._path(row.file), row.file.begin
        try:
            saved = self._to.save(path, row.raw, when)
        except TakenError:
            saved = self._to.save(with_mark(path, digest(row.raw)[:MARK]), row.raw, when)
            report.renamed += saved is Saved.WRITTEN
        if saved is Saved.ALREADY:
            report.already += 1
            return
        report.written += 1
        report.written_bytes += len(row.raw)
        report.unverified += not row.verified

    def bundles(self, bundles: Iterable[Bundle]) -> None:
        """Write the data objects that are not there yet, as they are.

        Raises:
            DiskError: the disk is full or read-only.
        """
        pool = ThreadPoolExecutor(READERS, thread_name_prefix="bundles")
        ahead: deque[tuple[Bundle, str, Future[bytes]]] = deque()
        try:
            for bundle in bundles:
                path = self._path_of(bundle)
                if self._to.has(path):  # an object never changes, and the copy is whole
                    self._report.already += 1
                    continue
                ahead.append((bundle, path, pool.submit(self._packed, bundle)))
                if len(ahead) > READERS:
                    self._save_bundle(*ahead.popleft())
            while ahead:
                self._save_bundle(*ahead.popleft())
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _path_of(self, bundle: Bundle) -> str:
        origin = bundle.origin
        name = origin.data.rpartition("/")[2]
        day = f"{origin.day:%Y/%m/%d}"
        return self._to.path(self._layout.relative(origin.datatype, day, name))

    def _packed(self, bundle: Bundle) -> bytes:
        """Read a data object, and check that it is one whole gzip stream.

        Raises:
            JostlerError: it cannot be read, or is damaged.
        """
        origin = bundle.origin
        data = self._bucket(origin.bucket).read(origin.data).data
        try:
            isal_zlib.decompress(data, wbits=31)  # compares the checksum
        except (isal_zlib.error, zlib.error, EOFError) as exc:  # type: ignore[misc]
            raise DamageError(f"{origin.url} does not decompress: {exc}") from exc
        return data

    def _save_bundle(self, bundle: Bundle, path: str, future: Future[bytes]) -> None:
        try:
            data = future.result()
            saved = self._to.save(path, data, bundle.last)
        except DiskError:
            raise
        except JostlerError as exc:
            self._report.problems.append(str(exc))
            return
        self._report.written += saved is Saved.WRITTEN
        self._report.written_bytes += len(data)


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Make the directory, and lock it against another run.

    Raises:
        SaveError: it cannot be made, or another run writes there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileExistsError, NotADirectoryError) as exc:
        raise SaveError(f"{exc.filename} is no directory") from exc
    except OSError as exc:
        raise SaveError(f"{directory}: {exc.strerror or exc}") from exc
    try:
        with suppress(OSError):
            try:
                # flock(2) takes a directory's descriptor, too: no lock file lies among the files.
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SaveError(f"{directory}: another retrieve writes there") from None
        yield
    finally:
        os.close(fd)
