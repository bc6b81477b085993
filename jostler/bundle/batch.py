"""A batch: small, good files of one directory, read, judged and made into rows together.

**Invariant:** a batch holds what the same files give when they are taken one by one.  It takes only
files about which nothing has to be decided: regular, small, read whole, written by nobody, and
good.  The first file that is not like that ends the batch; the caller looks at it alone.

It reads files and changes nothing.
"""

from __future__ import annotations

import os
import stat
import time
from array import array
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from jostler.bundle.file import READ_FLAGS
from jostler.bundle.lease import has_writer
from jostler.format.row import content_hash, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostler.format.index_row import Facts

SMALL_BYTES = 64 * 1024
"""The size of the largest file in a batch; for larger ones the time per file matters little."""
BATCH_BYTES = 256 * 1024
"""Bytes of documents at which a batch ends.  Of files of 20 KiB, batches of 64 KiB took 8 % more
CPU and batches of 16 KiB 20 % more; for files of 1 KiB it makes no difference."""


class BatchRules(Struct, frozen=True, kw_only=True):
    """What the files of a batch must be like, and what their rows begin with.

    Attributes:
        head: the part of each row before the Filename, as `row_head` makes it.
        folder: the day's directory as it stands in Filenames, `2022/09/29/`.
        room_bytes: the size that all rows together may have.
        count_good: returns how many of some documents are good, from the first one on.
        facts: returns the values of index columns, given a Filename, the document and the file's
            mtime in nanoseconds; None if nothing but mtime fills them.
        ask_writer: whether to ask the kernel if a process has the file open for writing.
        lease_suffices: whether a file is taken at any age if the kernel says that nobody writes it.
        settled_ns: other files are taken, with `ask_writer`, if they did not change since this
            instant, nanoseconds since 1970.
    """

    head: bytes
    folder: str
    room_bytes: int
    count_good: Callable[[Sequence[bytes]], int]
    facts: Callable[[str, bytes, int], Facts] | None = None
    ask_writer: bool
    lease_suffices: bool
    settled_ns: int


class Batch(NamedTuple):
    """Files that were accepted, by columns, in the order in which they were asked for.

    Attributes:
        rows: whole rows, each with its line feed.
        numbers: five for each file: inode, size, mtime and ctime in nanoseconds, and when it was
            read in microseconds since 1970.
        hashes: of each file's bytes on one line.
        facts: the values of index columns, if the rules have a function for them; else empty.
        is_cut: whether it ended at a file that does not belong into a batch, or has no room.
    """

    rows: list[bytes]
    numbers: array[int]
    hashes: list[bytes]
    facts: list[Facts]
    is_cut: bool


class ReadBatch(Protocol):
    """What makes a batch: `read_batch`, or a faster function that gives the same."""

    def __call__(self, directory: int, names: Sequence[str], rules: BatchRules) -> Batch:
        """Read files of a directory, up to the first one that does not belong into a batch.

        Args:
            directory: descriptor of the directory.
            names: of files in it; each is allowed by `check_file_name`.
            rules: what the files must be like.

        Returns:
            The first files of `names`, maybe none of them.
        """
        ...


def read_batch(directory: int, names: Sequence[str], rules: BatchRules) -> Batch:
    """Read files of a directory, up to the first one that does not belong into a batch."""
    contents, numbers, is_cut = _read(directory, names, rules)
    documents = [content if content.find(b"\n") < 0 else _bare(content) for content in contents]
    good = rules.count_good(documents)
    is_cut = is_cut or good < len(documents)
    del documents[good:], numbers[5 * good :]
    begin, end = rules.head + b'"' + rules.folder.encode(), b'"},"raw":'
    rows: list[bytes] = []
    hashes: list[bytes] = []
    facts: list[Facts] = []
    room_bytes = rules.room_bytes
    for name, document in zip(names, documents, strict=False):
        raw = one_line(document)
        row = b"%b%b%b%b}\n" % (begin, name.encode(), end, raw)
        room_bytes -= len(row)
        if room_bytes < 0:
            is_cut = True
            break
        rows.append(row)
        hashes.append(content_hash(raw))
        if rules.facts:
            mtime_ns = numbers[5 * len(facts) + 2]
            facts.append(rules.facts(rules.folder + name, raw, mtime_ns))
    return Batch(rows, numbers[: 5 * len(rows)], hashes, facts, is_cut)


def _bare(content: bytes) -> bytes:
    """Return a document without line breaks at its end, which mean nothing and are usual."""
    return content.rstrip(b"\r\n")


def _read(
    directory: int, names: Sequence[str], rules: BatchRules
) -> tuple[list[bytes], array[int], bool]:
    """Read files up to the first one that is not ordinary.

    Returns:
        Their contents, their numbers, and whether there was such a file.
    """
    contents: list[bytes] = []
    numbers = array("q")
    left_bytes = min(BATCH_BYTES, rules.room_bytes)
    for name in names:
        if left_bytes <= 0:
            return contents, numbers, not contents
        at_us = time.time_ns() // 1000
        try:
            fd = os.open(name, READ_FLAGS, dir_fd=directory)
        except OSError:
            break
        try:
            status = os.fstat(fd)
            content = _content(fd, status, rules)
        except OSError:
            break
        finally:
            os.close(fd)
        if not content:
            break
        try:
            numbers.extend(
                (
                    status.st_ino,
                    len(content),
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                    at_us,
                )
            )
        except OverflowError:  # numbers that `FileState.fitted` has to make fit
            del numbers[5 * len(contents) :]
            break
        contents.append(content)
        left_bytes -= len(content)
    return contents, numbers, len(contents) < len(names)


def _content(fd: int, status: os.stat_result, rules: BatchRules) -> bytes:
    """Return the bytes of an open file; none if it does not belong into a batch."""
    size = status.st_size
    if size > SMALL_BYTES or not stat.S_ISREG(status.st_mode):
        return b""
    if rules.ask_writer:
        # Asked before the file is read: as long as the descriptor is open, nobody can begin to
        # write.
        writer = has_writer(fd)
        is_closed = writer is False and rules.lease_suffices
        touched_ns = max(status.st_mtime_ns, status.st_ctime_ns)
        if writer or not (is_closed or touched_ns <= rules.settled_ns):
            return b""
    content = os.read(fd, size + 1)  # one byte more shows a file that grows
    # A byte order mark, or white space before the object, is left to those who judge one file.
    return content if len(content) == size and content[:1] == b"{" else b""
