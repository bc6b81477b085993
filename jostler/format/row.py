"""One row of a bundle: a file's own bytes, wrapped in the standard columns.

**Invariant:** the value of `raw` is the file's bytes without CR, LF and byte order mark.  It is
never parsed and written again: that would change `1E2`, `1.10`, big integers and escapes.

Pure: no I/O, no clock, no compression.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

if TYPE_CHECKING:
    from jostler.format.names import Day

# A rejected1 row contains the file's bytes in base64.  Up to 32 MiB it contains all of them, which
# keeps the row well below BigQuery's limit of 100 MB.  Of a bigger file it contains a sample, and
# the file stays on disk.
REJECT_WHOLE_BYTES = 32 * 1024 * 1024
REJECT_SAMPLE_BYTES = 64 * 1024

DISK_LACK = "disk-lack"
"""The reason of a file that was given up unsent because the disk lacked space; it is not bad."""

BOM = b"\xef\xbb\xbf"
BREAKS = b"\r\n"
HASH_BYTES = 16


class Archiver(Struct, frozen=True, kw_only=True):
    """The program that archives: values that are the same in every row.

    Attributes:
        version: `jostler@<version>`.
        commit: the commit that the agent was built from; never empty.
    """

    version: str
    commit: str


def one_line(content: bytes) -> bytes:
    """Put valid JSON on one line by removing CR and LF.

    Inside strings they must be escaped (RFC 8259 §7), so unescaped ones are white space without
    meaning.
    """
    content = content.removeprefix(BOM)
    if b"\n" in content or b"\r" in content:
        return content.translate(None, BREAKS)
    return content


def content_hash(content: bytes | memoryview) -> bytes:
    """Return the hash that index rows carry, BLAKE2b of 16 bytes.

    Args:
        content: `raw` of a data row, which is the file's bytes on one line; or of a rejected
            file the bytes as they are.
    """
    return hashlib.blake2b(content, digest_size=HASH_BYTES).digest()


def has_hash(content: bytes, digest: bytes) -> bool:
    """Return whether a file's bytes are the ones that a hash stands for, on one line or as is.

    As they are: the file was rejected, or an earlier version of jostler stored it.
    """
    return content_hash(content) == digest or content_hash(one_line(content)) == digest


def row_head(archiver: Archiver, day: Day, archive_url: str) -> bytes:
    """Return the part of a row before the file's name; it is the same in all rows of a bundle."""
    columns = {
        "date": day.iso,
        "archiver": {
            "Version": archiver.version,
            "GitCommit": archiver.commit,
            "ArchiveURL": archive_url,
            "Filename": "",
        },
    }
    return orjson.dumps(columns).removesuffix(b'""}}')


def row(head: bytes, filename: bytes, raw: bytes) -> bytes:
    """Return the whole row with its line feed.

    Args:
        head: what `row_head` returned.
        filename: relative to the datatype's directory, `2022/09/29/<name>.json`, as JSON.
        raw: one JSON object on one line.
    """
    return b'%b%b},"raw":%b}\n' % (head, filename, raw)


def instant(micros: int) -> str:
    """Write microseconds since 1970 in the form of a BigQuery TIMESTAMP."""
    whole, micro = divmod(micros, 1_000_000)
    return f"{_second(whole)}.{micro:06d}Z"


@lru_cache(maxsize=1024)  # of a backlog, the files' times differ by more than that of the clock
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def rejected_most(size: int) -> int:
    """Return how many bytes of a file of `size` bytes to read for its rejected1 row."""
    return size + 1 if size <= REJECT_WHOLE_BYTES else REJECT_SAMPLE_BYTES


class Rejection(Struct, frozen=True, kw_only=True):
    """Why a file cannot be archived as data.

    Attributes:
        datatype: the datatype whose directory the file lies in.
        reason: a short stable label, also used in metrics.
        detail: a sentence for people, with what was expected and found.
        field: the path of the field at fault; empty if it is the whole file.
    """

    datatype: str
    reason: str
    detail: str
    field: str = ""

    @property
    def given_up(self) -> bool:
        """Whether the file goes without its content being stored."""
        return self.reason == DISK_LACK

    def raw(self, *, filename: str, size: int, added_us: int, node: str, content: bytes) -> bytes:
        """Return the rejected1 row's `raw`; `content` is the file's bytes, whole or a sample."""
        return orjson.dumps(
            {
                "Filename": filename,
                "Size": size,
                "TimeAdded": instant(added_us),
                "Datatype": self.datatype,
                "Node": node,
                "Reason": self.reason,
                "Detail": self.detail,
                "Field": self.field,
                "Content": base64.b64encode(content).decode(),
            }
        )
