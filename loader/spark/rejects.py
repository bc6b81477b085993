"""The bad rows of a bundle as an object of NDJSON, for a load job into `reject_rows`.

**Invariant:** equal input gives equal objects, so a task may run twice.  Every line can be loaded:
no text is longer than `TEXT_MAX` bytes, and there is no NUL and no broken UTF-8.

Pure: takes bytes, returns bytes.
"""

from __future__ import annotations

from typing import Any

import orjson
from isal import isal_zlib

from loader.spark.gunzip import salvaged
from loader.spark.limits import TEXT_MAX
from loader.spark.row import parts
from loader.spark.verdicts import Bad

CORRUPT = "corrupt-bundle"
LEVEL = 1  # staging is read once: speed over size


class Rejects:
    """The bad rows of one bundle, as NDJSON.

    Args:
        about: columns that are the same for all rows: table, date, ArchiveURL, RunID, JobID.
        most: the maximum number of rows that are kept.
    """

    def __init__(self, about: dict[str, Any], most: int) -> None:
        self._about = about
        self._most = most
        self._pack = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, 31)
        self._packed = bytearray()
        self.count = 0

    @property
    def is_full(self) -> bool:
        """Return whether the maximum number of rows is reached."""
        return self.count >= self._most

    def add(self, number: int, line: bytes, bad: Bad) -> None:
        """Add a bad row unless the maximum number is reached."""
        if self.is_full:
            return
        members = {
            "Line": number,
            "Filename": shown(bad.filename.encode(errors="replace")),
            "Field": shown(bad.field.encode(errors="replace")),
            "Reason": bad.reason,
            "Detail": shown(bad.detail.encode(errors="replace")),
            "Row": shown(line),
        }
        self._packed += self._pack.compress(orjson.dumps(self._about | members) + b"\n")
        self.count += 1

    def finish(self) -> bytes:
        """Return the object."""
        self._packed += self._pack.flush()
        return bytes(self._packed)


def shown(text: bytes) -> str:
    """Convert bytes to text for a STRING column: no NUL, no broken UTF-8, not too long."""
    return text[:TEXT_MAX].decode(errors="replace").replace("\0", "\ufffd")


def add_corrupt(rejects: Rejects, data: bytes, why: str) -> None:
    """Add each line of a corrupt bundle that can still be read, and the unreadable rest."""
    for number, line in enumerate(salvaged(data), 1):
        found = parts(line)
        name = found.filename if found else ""
        rejects.add(number, line, Bad(filename=name, reason=CORRUPT, detail=why))
        if rejects.is_full:
            return
