"""The requests that a run takes: which days they ask for, and what is said of those that cannot be.

**Invariant:** a request is taken with all its days or not at all, so a run that was started for
some experiments or datatypes leaves requests alone that ask for more.  What is wrong with one
request is recorded with it, and does not affect the others.

Of several requests for a day the newest is answered, and with it all older ones.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.format.names import INDEX
from loader.errors import WarehouseError
from loader.plan.discover import nearest
from loader.plan.due import KEPT
from loader.plan.window import FIRST, GIVEN, LAST, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import date

    from loader.bigquery.requests import Request, Requests
    from loader.cli.console import Console
    from loader.cli.options import Options
    from loader.plan.discover import Table
    from loader.plan.due import Asked, DayKey, Refusal, TableDay

Broken = list[tuple["Table", str]]
"""Tables that this run cannot use, and why."""
GAP = timedelta(days=7)
"""Days that are not further apart are listed together."""


class Asking:
    """The requests of a run; used by one thread, except `windows` and `wants`.

    Args:
        requests: the tables.
        options: what the run selects.
        console: shows events.
    """

    def __init__(self, requests: Requests, options: Options, console: Console) -> None:
        self._requests = requests
        self._options = options
        self._console = console
        self._open: list[Request] = []
        self._pending: dict[DayKey, list[Asked]] = {}

    def read(self) -> None:
        """Read the requests; a run for given days takes none.

        Raises:
            WarehouseError: BigQuery cannot be asked.
        """
        self._open, self._pending = [], {}
        if self._options.period == GIVEN or not self._requests.are_there():
            return
        oldest = datetime.now(UTC) - KEPT
        self._pending = self._requests.pending()
        self._open = [
            request
            for request in self._requests.open()
            if self._is_ours(request) and (request.at > oldest or not request.refused)
        ]

    def _is_ours(self, request: Request) -> bool:
        """Say whether the run selects all that a request asks for."""
        experiments, datatypes = self._options.experiment, self._options.datatype
        return (not experiments or request.experiment in experiments) and (
            not datatypes or request.datatype in datatypes
        )

    def windows(self, table: Table) -> list[Window]:
        """Return the windows in which days of a table are asked for."""
        name = str(table.name)
        days = sorted(day for key, day in self._pending if key == name)
        found: list[Window] = []
        for day in days:
            after = day + timedelta(days=1)
            if found and day - found[-1].end <= GAP:
                found[-1] = Window(start=found[-1].start, end=after)
            else:
                found.append(Window(start=day, end=after))
        return found + [_window(one) for one in self._open if _is_for(one, table)]

    def wants(self, table: Table, day: date) -> bool:
        """Return whether somebody asks for a day of a table."""
        if (str(table.name), day) in self._pending:
            return True
        return any(_is_for(one, table) and day in _window(one) for one in self._open)

    def take(
        self,
        tables: Iterable[Table],
        days: Iterable[TableDay],
        listed: Callable[[Table], bool],
        broken: Broken,
    ) -> None:
        """Take the open requests: record the days that they ask for.

        Args:
            tables: all tables of the run that are ready.
            days: their listed days.
            listed: returns whether a table's days could be listed.
            broken: the tables of the run that are not ready.
        """
        tables, days = list(tables), list(days)
        rows = []
        for request in self._open:
            of = [table for table in tables if _is_for(request, table)]
            if not all(map(listed, of)):
                continue  # which days there are is not known: the next run takes it
            wrong = [(str(table.name), why) for table, why in broken if _is_for(request, table)]
            why = _flaw(request, of, tables, wrong)
            keys = [d.key for d in days if _is_for(request, d.table) and d.date in _window(request)]
            if why or not keys:
                why = why or "no bundle of these days is in the bucket"
                rows += self._refused(request, why)
                continue
            rows += self._requests.take(request, keys)
            rows += [self._requests.refuse(request.id, (name, None), why) for name, why in wrong]
            for key in keys:
                self._pending.setdefault(key, []).append(request.asked)
                self._pending[key].sort(key=lambda asked: asked.at, reverse=True)
            self._console.event("request.taken", request=request.id, days=len(keys))
        there = {day.key for day in days}
        rows += self._gone(tables, there, listed)
        self._open = []
        self._write(rows)

    def of(self, key: DayKey) -> Asked | None:
        """Return the newest request for a day."""
        return next(iter(self._pending.get(key, ())), None)

    def refuse(self, refusals: Iterable[Refusal]) -> None:
        """Record which days that somebody asks for are not loaded, and why."""
        self._write(
            [
                self._requests.refuse(asked.id, refusal.day.key, refusal.why)
                for refusal in refusals
                for asked in self._pending.pop(refusal.day.key, ())
            ]
        )

    def _refused(self, request: Request, why: str) -> list[dict[str, object]]:
        self._console.event("request.refused", "warning", request=request.id, why=why)
        return [] if request.refused == why else [self._requests.refuse(request.id, None, why)]

    def _gone(
        self, tables: list[Table], there: set[DayKey], listed: Callable[[Table], bool]
    ) -> list[dict[str, object]]:
        """Refuse the days of tables that had bundles when they were taken, and have none now."""
        names = {str(table.name) for table in tables if listed(table)}
        gone = [key for key in self._pending if key[0] in names and key not in there]
        return [
            self._requests.refuse(asked.id, key, "its bundles are gone")
            for key in gone
            for asked in self._pending.pop(key)
        ]

    def _write(self, rows: list[dict[str, object]]) -> None:
        if not rows or self._options.dry_run:
            return
        try:
            self._requests.write(rows)
        except WarehouseError as exc:  # the days are loaded all the same, the next run records them
            self._console.event("requests.not_written", "error", error=str(exc))


def _is_for(request: Request, table: Table) -> bool:
    datatype = table.sources[0].datatype
    return request.experiment == table.experiment and request.datatype in {"", datatype}


def _window(request: Request) -> Window:
    """Return the days of a request, as far as there can be bundles: people write 9999-12-31."""
    first, last = max(request.first, FIRST), min(request.last, LAST)
    return Window(start=first, end=max(first, last + timedelta(days=1)))


def _flaw(
    request: Request,
    tables: list[Table],
    all_tables: list[Table],
    broken: list[tuple[str, str]],
) -> str:
    """Return why a request cannot be carried out; empty if it can."""
    if request.last < request.first:
        return f"EndDate {request.last} is before StartDate {request.first}"
    if tables:
        return ""
    if broken:
        return "; ".join(f"{name} cannot be loaded now: {why}" for name, why in broken)
    names = {table.experiment for table in all_tables}
    what, wanted = "experiment", request.experiment
    if wanted in names:
        of = [table for table in all_tables if table.experiment == wanted]
        names = {table.sources[0].datatype for table in of} | {INDEX}
        what, wanted = f"datatype of {wanted}", request.datatype
    return f"there is no {what} {wanted} in the bucket{nearest(wanted, names)}"
