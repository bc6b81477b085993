"""Print what an audit finds as it is found, and its sums; the same for threads and for Spark.

**Invariant:** each problem is printed once, with its end; the sums count what was printed.  The
table `audits` has it afterwards, also if the audit is interrupted or fails.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Protocol

from jostler.archive.audit import report
from jostler.archive.audit.audit import Sums
from jostler.archive.audit.mend import Mended
from jostler.archive.audit.problem import Kind, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from jostler.archive.audit.audit import DayFound
    from jostler.archive.audit.mend import Mender
    from jostler.archive.audit.scope import Scope
    from jostler.format.names import Place

ROWS_AT_ONCE = 1000
"""Rows in one load job of the table `audits`."""


class Tables(Protocol):
    """What is asked of BigQuery, and written there; see `bigquery_tables.AuditTables`."""

    def differences(self, day: DayFound, bucket: str, scope: Scope) -> list[Problem]:
        """Return how a day's rows in BigQuery differ from its bundles."""

    def gone(
        self, place: Place, datatype: str, days: Collection[date], bucket: str, scope: Scope
    ) -> Iterator[tuple[date, Problem]]:
        """Yield the days that have rows in BigQuery, and no bundle in the bucket."""

    def write(self, rows: Sequence[dict[str, object]]) -> None:
        """Append rows to the table `audits`."""


class Printer:
    """Prints the problems of one bucket.

    Args:
        bucket: its URL.
        scope: what is looked at.
        line: writes a line for the reader.
        as_json: whether lines are JSON objects.
        mender: mends what is found; None if nothing is to be mended.
        tables: BigQuery; None if it is not asked.
    """

    def __init__(
        self,
        bucket: str,
        scope: Scope,
        line: Callable[[str], None],
        *,
        as_json: bool,
        mender: Mender | None,
        tables: Tables | None,
    ) -> None:
        self.sums = Sums()
        self._bucket = bucket
        self._scope = scope
        self._line = line
        self._as_json = as_json
        self._mender = mender
        self._tables = tables
        self._left = self._mended = 0
        self._unwritten: list[tuple[Place | None, str, date, Mended]] = []
        self._seen: dict[tuple[Place, str], set[date]] = {}

    def expect(self, place: Place, datatypes: Iterable[str]) -> None:
        """Say what is looked at: a datatype of which no day is found may have rows in BigQuery."""
        for datatype in datatypes:
            self._seen.setdefault((place, datatype), set())

    def strays(self, found: Iterable[tuple[str, str]]) -> None:
        """Print what lies beside the experiments: names, each with the reason."""
        for name, why in found:
            self.sums.problems[Kind.FOREIGN] += 1
            self._print(None, "", date.max, Mended(Problem(name, 0, Kind.FOREIGN, why)))

    def day(self, day: DayFound) -> None:
        """Print the problems of a day; mend them first if that is asked."""
        listed = day.listed
        if self._tables:
            day.problems += self._tables.differences(day, self._bucket, self._scope)
        self.sums.add(day)
        if listed.bundles:
            self._seen.setdefault((listed.place, listed.datatype), set()).add(listed.day)
        for end in self._mender.mend(day) if self._mender else map(Mended, day.problems):
            self._print(listed.place, listed.datatype, listed.day, end)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Write the table of audits also if the audit does not come to its end."""
        try:
            yield
        except BaseException:  # Ctrl-C too: what was mended until then is to be found there
            self._write(datetime.now(UTC))
            raise

    def end(self, now: datetime) -> int:
        """Print the sums, and write the table of audits; return how many problems are left."""
        if self._tables:
            for (place, datatype), days in self._seen.items():
                for day, problem in self._tables.gone(
                    place, datatype, days, self._bucket, self._scope
                ):
                    self.sums.problems[problem.kind] += 1
                    self._print(place, datatype, day, Mended(problem))
        self._write(now)
        if self._as_json:
            self._line(report.json_line(report.summary(self.sums, self._left, self._mended)))
        else:
            self._line(report.last_line(self.sums, self._left, self._mended))
        return self._left

    def _write(self, now: datetime) -> None:
        ends, self._unwritten = self._unwritten, []
        if self._tables:
            self._tables.write(report.rows(ends, self._bucket, now))

    def _print(self, place: Place | None, datatype: str, day: date, end: Mended) -> None:
        self._mended += bool(end.done)
        self._left += not end.done
        if self._tables:
            self._unwritten.append((place, datatype, day, end))
            if len(self._unwritten) >= ROWS_AT_ONCE:
                self._write(datetime.now(UTC))
        # Last: whoever reads the output may have ended, as `head` does.
        self._line(report.json_line(report.facts(end)) if self._as_json else report.text(end))
