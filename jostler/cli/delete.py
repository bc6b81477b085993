"""The command `jostler delete`: delete the data of a datatype's days.

**Invariant:** without -yes nothing is changed.  What is younger than -min-age is never touched.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.delete import OldDay, delete_day, old_days, rows_of
from jostler.cli.archive_command import Archive, Command
from jostler.cli.audit import scope_of
from jostler.cli.keeping import bucket_of, deleted_place, tables_of
from jostler.cli.keeping_flags import DELETE, PLACES, PROJECT
from jostler.cli.messages import DONE, FAILED, with_hint
from jostler.errors import JostlerError
from jostler.format.names import INDEX
from jostler.words import counted, rfc3339, shown, size

if TYPE_CHECKING:
    from datetime import date

    from jostler.archive.audit.bigquery_tables import AuditTables
    from jostler.archive.audit.scope import Scope
    from jostler.format.names import Place
    from jostler.storage import Storage

ABOUT = """usage: jostler delete -datatype D -start DAY -end DAY [flags]

Shows what the archive has of the datatypes and days: objects, rows, bytes; with -yes deletes it,
day by day, of each bundle the index first.  With -project the rows in BigQuery go too, the ledger
says so, and the table audits says who deleted what.  Days younger than -min-age are left.
With -organization only that organization's data goes, and without it only autoload/v1.
Exit status: 0 done, or shown; 1 something was left; 2 wrong use.

flags:"""


WHY = "jostler delete removed its objects"


def run(archive: Archive, _: list[str]) -> int:
    """Delete, or show, what the flags name.

    Raises:
        ValueError: wrong use.
        JostlerError: the bucket or BigQuery cannot be reached.
    """
    values = archive.values
    scope = scope_of(values)
    if not scope.datatypes:
        raise ValueError("-datatype: required: what to delete")
    if INDEX in scope.datatypes:
        raise ValueError(f"-datatype: {INDEX} goes with its data: name the data's datatype")
    if scope.first is None or scope.last is None:
        raise ValueError("-start and -end: required: the days to delete")
    if not values["experiment"]:
        raise ValueError("-experiment: required: whose data to delete")
    storage = bucket_of(archive)
    work = Deletion(archive, storage, tables_of(archive))
    return work.run(deleted_place(archive), scope)


class Deletion:
    """Deletes days, or shows them.

    Args:
        archive: its flags; shows progress.
        storage: the bucket.
        tables: the tables in BigQuery; None without -project.
    """

    def __init__(self, archive: Archive, storage: Storage, tables: AuditTables | None) -> None:
        self._archive = archive
        self._storage = storage
        self._tables = tables
        self._yes = bool(archive.values["yes"])
        self._objects = self._rows = self._bytes = self._days = 0
        self._rows_unknown = False
        self._left = self._partitions_found = 0

    def run(self, place: Place, scope: Scope) -> int:
        """Delete the days of a scope; return the exit status."""
        min_age = timedelta(seconds=self._archive.values["min-age"])
        now = datetime.now(UTC)
        known = {*self._storage.folders(f"{place.root}/")}
        gone: set[tuple[str, date]] = set()
        left: set[tuple[str, date]] = set()
        for day in old_days(self._storage, [place], scope, min_age=min_age, now=now):
            done = gone if self._day(day) else left
            done.add((day.listed.datatype, day.listed.day))
        for datatype in sorted(scope.datatypes) if self._tables else ():
            days = {day for name, day in gone if name == datatype}
            kept = {day for name, day in left if name == datatype}
            self._partitions(place, datatype, scope, days, kept, (now - min_age).date())
        return self._end(place, scope.datatypes - known)

    def _day(self, day: OldDay) -> bool:
        """Delete or show one day; say whether it is gone, or would be."""
        listed = day.listed
        rows = rows_of(self._storage, day)
        known = "an unknown number of rows" if rows is None else counted(rows, "row")
        text = f"{listed.folder}: {_sum(len(day.objects), known, day.size_bytes)}"
        other = day.kept or self._shared(day)
        if other:
            self._left += 1
            self._line(f"LEFT {text}: {other}")
            return False
        if self._yes:
            self._record(day, rows, "begun")
            try:
                delete_day(self._storage, day)
            except JostlerError as exc:
                self._left += 1
                self._line(f"LEFT {text}: {with_hint(exc)}; a part may be gone: delete again")
                return False
            self._record(day, rows, "done")
        self._line(f"{'DELETED' if self._yes else 'WOULD DELETE'} {text}")
        self._days += 1
        self._objects += len(day.objects)
        self._rows += rows or 0
        self._rows_unknown |= rows is None
        self._bytes += day.size_bytes
        return True

    def _shared(self, day: OldDay) -> str:
        """Return why a day's partition cannot go; empty if it can, or nobody asked for it."""
        if not self._tables:
            return ""
        table = self._tables.table(day.listed.place, day.listed.datatype)
        others = self._tables.others(table, day.listed.day, self._storage.url)
        if not others:
            return ""
        return f"its partition has rows of {', '.join(others)} too; delete without -project"

    def _partitions(  # noqa: PLR0917 - which days have which fate
        self,
        place: Place,
        datatype: str,
        scope: Scope,
        gone: set[date],
        left: set[date],
        newest: date,
    ) -> None:
        """Delete the rows of days that have no object any more, also of earlier runs."""
        assert self._tables
        table = self._tables.table(place, datatype)
        found = dict(self._tables.days(table, scope.first, scope.last))
        indexed = self._tables.index_days(place, datatype, scope.first, scope.last)
        for day in sorted({*found, *indexed, *gone} - left):
            if day >= newest:
                continue
            rows = counted(found.get(day, 0), "row") if day in found else "rows of index1"
            text = f"{table} {day}: {rows} in BigQuery"
            # Of a day that has had objects here this was asked before these went.
            others = self._tables.others(table, day, self._storage.url) if day not in gone else []
            if others:
                self._left += 1
                self._line(f"LEFT {text}: they are of {', '.join(others)}")
                continue
            if self._yes:
                self._tables.delete_day(table, day, WHY)
                self._tables.forget_index(place, datatype, day, WHY)
            if day in found or day in indexed:
                self._partitions_found += 1
                self._line(f"{'DELETED' if self._yes else 'WOULD DELETE'} {text}")

    def _record(self, day: OldDay, rows: int | None, status: str) -> None:
        if not self._tables:
            return
        listed = day.listed
        row: dict[str, Any] = {
            "Time": rfc3339(datetime.now(UTC)),
            "Command": "delete",
            "Bucket": self._storage.url,
            "Experiment": listed.place.experiment,
            "Datatype": listed.datatype,
            "date": listed.day.isoformat(),
            "Object": listed.folder,
            "Status": status,
            "Objects": len(day.objects),
            "Rows": rows,
            "Bytes": day.size_bytes,
        }
        self._tables.write([row])

    def _end(self, place: Place, unknown: frozenset[str]) -> int:
        known = f"{'at least ' if self._rows_unknown else ''}{counted(self._rows, 'row')}"
        text = _sum(self._objects, known, self._bytes)
        verb = "deleted" if self._yes else "would be deleted"
        if self._days and not self._yes:
            verb += "; -yes deletes them"
        self._line(
            f"{counted(self._days, 'day')}: {text} {verb}; {counted(self._left, 'day')} left"
        )
        if unknown and not self._partitions_found:
            names = ", ".join(sorted(unknown))
            # No failure: an earlier deletion may have been killed when all had gone.
            self._archive.say(f"{self._storage.url}/{place.root}/ has no datatype {names}")
        return FAILED if self._left else DONE

    def _line(self, text: str) -> None:
        self._archive.progress.clear()
        sys.stdout.write(f"{shown(text)}\n")
        sys.stdout.flush()


def _sum(objects: int, rows: str, size_bytes: int) -> str:
    return f"{counted(objects, 'object')}, {rows}, {size(size_bytes)}"


main = Command(
    name="delete", about=ABOUT, flags=(*PROJECT, *DELETE), most_words=0, run=run, where=PLACES
).main
