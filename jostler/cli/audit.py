"""The command `jostler audit`: is all that was stored whole, and can it be found?

**Invariant:** without -fix it only reads.  Problems are written as days are done, without control
characters from the bucket.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.audit import report
from jostler.archive.audit.audit import Sums, audit
from jostler.archive.audit.days import Limits
from jostler.archive.audit.mend import Mended, Mender
from jostler.archive.audit.scope import Scope
from jostler.bundle.index_fields import IndexField, IndexFields
from jostler.cli.archive_command import DONE, FAILED, Archive, Command
from jostler.cli.keeping import bucket_of, kept_places, staging_of, tables_of
from jostler.cli.keeping_flags import AUDIT, PLACES, PROJECT, Fix, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date

    from jostler.archive.audit.audit import DayFound
    from jostler.archive.audit.tables import AuditTables
    from jostler.format.names import Place
    from jostler.storage import Storage

ABOUT = """usage: jostler audit [flags]

Reads the bundles of an archive, day by day, and tells each problem with its object, line and what
to do: bundles without index, indexes without bundle, indexes that do not agree with their bundle,
damaged bundles, rows that are none or of another day, rows in two bundles, days of many small
bundles, table schemas that are missing, objects of others; and with -project days whose rows in
BigQuery are not those of the bundles.  -fix mends what can be mended without loss; see
docs/keeping.md.  Without -experiment all experiments of the bucket are looked at.
Exit status: 0 clean, or all mended; 1 problems are left, or there is nothing to look at; 2 wrong
use.

flags:"""


def run(archive: Archive, _: list[str]) -> int:
    """Audit what the flags name.

    Raises:
        ValueError: wrong use.
        JostlerError: the bucket or BigQuery cannot be reached.
    """
    values = archive.values
    storage = bucket_of(archive)
    scope = scope_of(values)
    tables = tables_of(archive)
    mender = _mender(values, storage, tables)
    limits = Limits(
        small_bytes=values["small"], many=values["many"], today=datetime.now(UTC).date()
    )
    told = _Told(archive, storage.url)
    for day in audit(storage, kept_places(archive, storage), scope, limits):
        if tables:
            day.problems += tables.differences(day, storage.url, scope)
        told.day(day, mender)
    if tables:
        told.gone(tables, scope)
        tables.write(report.rows(told.ends, storage.url, datetime.now(UTC)))
    return told.end()


class _Told:
    """Writes what was found, and counts it."""

    def __init__(self, archive: Archive, bucket: str) -> None:
        self.ends: list[tuple[Place, str, date, Mended]] = []
        self._archive = archive
        self._bucket = bucket
        self._sums = Sums()
        self._seen: dict[tuple[Place, str], set[date]] = {}

    def day(self, day: DayFound, mender: Mender | None) -> None:
        """Write the problems of a day; mend them if that is asked."""
        self._sums.add(day)
        self._archive.tally.days += 1
        self._archive.tally.rows += sum(day.rows.values())
        listed = day.listed
        self._seen.setdefault((listed.place, listed.datatype), set()).add(listed.day)
        for end in mender.mend(day) if mender else map(Mended, day.problems):
            self._write(end)
            self.ends.append((listed.place, listed.datatype, listed.day, end))

    def gone(self, tables: AuditTables, scope: Scope) -> None:
        """Write which days have rows in BigQuery, and no bundle."""
        for (place, datatype), days in self._seen.items():
            for day, problem in tables.gone(place, datatype, days, scope):
                self._sums.problems[problem.kind] += 1
                self._write(Mended(problem))
                self.ends.append((place, datatype, day, Mended(problem)))

    def end(self) -> int:
        """Write the sums; return the exit status."""
        sums, mended = self._sums, sum(bool(end.done) for *_, end in self.ends)
        left = len(self.ends) - mended
        if self._is_json:
            self._line(report.json_line(report.summary(sums, left, mended)))
        else:
            self._line(report.last_line(sums, left, mended))
        if not sums.days:
            self._archive.say(f"{self._bucket} has nothing of these places, datatypes and days")
            return FAILED
        return FAILED if left else DONE

    @property
    def _is_json(self) -> bool:
        return self._archive.values["format"] is Report.JSONL

    def _write(self, end: Mended) -> None:
        self._line(report.json_line(report.facts(end)) if self._is_json else report.text(end))

    def _line(self, text: str) -> None:
        self._archive.progress.clear()
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def scope_of(values: Mapping[str, Any]) -> Scope:
    """Return what the flags say is to be looked at.

    Raises:
        ValueError: the first day comes after the last one.
    """
    if values["start"] and values["end"] and values["start"] > values["end"]:
        raise ValueError(f"-start: {values['start']} is after -end {values['end']}")
    return Scope(
        datatypes=frozenset(values["datatype"]),
        nodes=frozenset(values.get("node") or ()),
        first=values["start"],
        last=values["end"],
    )


def fields_of(texts: Iterable[str]) -> dict[str, IndexFields]:
    """Return what fills an index that is made again, by datatype.

    Raises:
        ValueError: a text is no `DATATYPE:Column=SOURCE`.
    """
    by_datatype: dict[str, list[IndexField]] = {}
    for text in texts:
        field = IndexField.parse(text)
        by_datatype.setdefault(field.datatype, []).append(field)
    return {datatype: IndexFields(fields) for datatype, fields in by_datatype.items()}


def _mender(
    values: Mapping[str, Any], storage: Storage, tables: AuditTables | None
) -> Mender | None:
    fields = fields_of(values["index-field"])
    if values["fix"] is Fix.NOTHING:
        return None
    staging, prefix = staging_of(values["staging"], storage)
    return Mender(
        storage=storage,
        staging=staging,
        prefix=prefix,
        now=datetime.now(UTC),
        orphans=values["fix"] is Fix.ORPHANS,
        settled=timedelta(seconds=values["settled"]),
        fields=fields,
        mark=tables.mark if tables else None,
    )


main = Command(
    name="audit",
    about=ABOUT,
    flags=(*PROJECT, *AUDIT),
    most_words=0,
    run=run,
    where=PLACES,
).main
