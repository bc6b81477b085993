"""One row of a bundle: a file's own bytes, wrapped in the standard columns.

**Invariant:** the value of `raw` is the file's bytes without CR, LF and byte order mark; no parser
ever writes them again, for a parser changes `1E2`, `1.10`, big integers and escapes.

Pure: knows nothing of files, clocks or compression.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from jostler.format.names import Day

# A bad file's bytes travel in its rejected1 row, whole up to 32 MiB: in base64 such a row stays
# well below the 100 MB that BigQuery allows.  Of a bigger file only a sample does; the file stays.
REJECT_WHOLE_BYTES = 32 * 1024 * 1024
REJECT_SAMPLE_BYTES = 64 * 1024

BOM = b"\xef\xbb\xbf"
_BREAKS = b"\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archiver:
    """Who archives: the columns that are the same in every row.

    Attributes:
        version: `jostler@<version>`.
        commit: the commit that the agent was built from; never empty.
    """

    version: str
    commit: str


def one_line(content: bytes) -> bytes:
    """Put valid JSON on one line.

    Raw CR and LF can only be insignificant white space: inside strings they must be escaped
    (RFC 8259 §7), so leaving them out loses nothing.
    """
    content = content.removeprefix(BOM)
    if b"\n" in content or b"\r" in content:
        return content.translate(None, _BREAKS)
    return content


def row_head(archiver: Archiver, day: Day, archive_url: str) -> bytes:
    """Return the part of a row before the file's name, which all rows of a bundle share."""
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
    """Return the whole row, its line feed included.

    Args:
        head: what `row_head` returned.
        filename: relative to the datatype's directory, `2022/09/29/<name>.json`, as JSON.
        raw: one JSON object on one line.
    """
    return b'%b%b},"raw":%b}\n' % (head, filename, raw)


def instant(micros: int) -> str:
    """Write microseconds since 1970 as BigQuery's TIMESTAMP takes them."""
    whole, micro = divmod(micros, 1_000_000)
    return f"{_second(whole)}.{micro:06d}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def rejected_most(size: int) -> int:
    """Return how many bytes of a file of `size` bytes to read for its rejected1 row."""
    return size + 1 if size <= REJECT_WHOLE_BYTES else REJECT_SAMPLE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Why a file cannot be archived as data.

    Attributes:
        datatype: whose directory the file lies in.
        reason: short and stable; a label of metrics.
        detail: a sentence for people, with what was expected and found.
        field: the path of the field at fault; empty when it is the file as a whole.
    """

    datatype: str
    reason: str
    detail: str
    field: str = ""

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
