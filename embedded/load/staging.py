"""Write the good rows of one load job to a staging file, which DuckDB then loads.

**Invariant:** the file has exactly the good rows; memory has one row at a time.

The job fails if a row has another day than the partition, if there are more bad rows than allowed,
or if some sources are compressed and others not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embedded.load.judge import encoded
from embedded.load.scalars import Flaw
from embedded.load.sources import unpacked
from embedded.model.errors import ApiError, invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from embedded.load.judge import Row, RowJudge
    from embedded.load.sources import Source

    Line = tuple[int, bytes | Flaw]  # the position of a row, and the row or why it is malformed

MAX_ERRORS = 5  # "at most five errors are returned per job"
MAX_PARTITIONS = 4000  # "Partitions modified by a single job"
CHECK_EVERY = 1000


@dataclass(slots=True)
class Tally:
    """The counts and errors of a job so far; used by one thread."""

    rows: int = 0
    bad: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    longest: int = 0
    compressed: set[bool] = field(default_factory=set)
    days: set[str] = field(default_factory=set)
    errors: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Reads the sources of one job and writes its staging file.

    Args:
        judge: decides whether a line is a row, and converts it.
        max_bad: the maximum number of bad rows (maxBadRecords).
        partition_column: the column by which the table is partitioned; "" for none.
        target: the destination with its partition decorator, for messages.
        day: the only day that rows may have; "" for any.
        format: the sources' format, for messages.
        check: called from time to time; raises if the job was cancelled.
        reader: converts a source's bytes to lines of JSON.
    """

    judge: RowJudge
    max_bad: int
    partition_column: str
    target: str
    day: str
    format: str
    check: Callable[[], None]
    reader: Callable[[Source, BinaryIO], Iterator[Line]]

    def write(self, sources: list[Source], path: Path) -> Tally:
        """Judge every row of the sources, and write the good ones.

        Raises:
            ApiError: the job fails.
        """
        tally = Tally()
        with path.open("wb", buffering=1 << 20) as out:
            for source in sources:
                with source.open() as raw:
                    tally.read_bytes += source.size_bytes
                    self._read(source, raw, out, tally)
        return tally

    def _read(self, source: Source, raw: BinaryIO, out: BinaryIO, tally: Tally) -> None:
        try:
            lines, compressed = unpacked(raw)
            tally.compressed.add(compressed)
            if len(tally.compressed) > 1:
                raise invalid("Compressed and uncompressed files cannot be loaded in one job")
            with lines:
                for number, (position, line) in enumerate(self.reader(source, lines)):
                    if number % CHECK_EVERY == 0:
                        self.check()
                    self._take(source, line, position, out, tally)
        except (OSError, EOFError) as exc:
            raise ApiError(
                "invalid",
                f"Error while reading data, error message: {exc}. File: {source.uri}",
                location=source.uri,
            ) from exc

    def _take(
        self, source: Source, line: bytes | Flaw, position: int, out: BinaryIO, tally: Tally
    ) -> None:
        try:
            if isinstance(line, Flaw):
                raise line
            line = line.strip(b" \t\r\n")
            if not line:
                return
            row = self.judge.row(line)
            text = encoded(row)
        except Flaw as flaw:
            self._reject(source, position, flaw, tally)
            return
        self._check_day(row, tally)
        out.write(text)
        tally.rows += 1
        tally.written_bytes += len(text)
        tally.longest = max(tally.longest, len(text))

    def _check_day(self, row: Row, tally: Tally) -> None:
        if not self.partition_column:
            return
        day = str(row.get(self.partition_column) or "__NULL__")[:10]
        tally.days.add(day)
        if self.day and day != self.day:
            raise invalid(
                "Some rows belong to different partitions rather than destination partition "
                f"{self.target}"
            )
        if len(tally.days) > MAX_PARTITIONS:
            raise invalid(
                f"Too many partitions produced by query, allowed {MAX_PARTITIONS}, "
                f"query modifies at least {len(tally.days)} partitions"
            )

    def _reject(self, source: Source, position: int, flaw: Flaw, tally: Tally) -> None:
        tally.bad += 1
        if len(tally.errors) < MAX_ERRORS:
            message = (
                "Error while reading data, error message: "
                f"{self.format} parsing error in row starting at position {position}: {flaw}"
            )
            tally.errors.append(
                {
                    "reason": "invalid",
                    "location": source.uri,
                    "message": f"{message} File: {source.uri}",
                }
            )
        if tally.bad > self.max_bad:
            raise ApiError(
                "invalid",
                "Error while reading data, error message: "
                f"{self.format} table encountered too many errors, giving up. "
                f"Rows: {tally.rows + tally.bad}; errors: {tally.bad}. "
                "Please look into the errors[] collection for more details.",
                location=source.uri,
                more=tuple(tally.errors[: MAX_ERRORS - 1]),
            )
