"""The command `jostler audit`: is all that was stored whole, and can it be found?

**Invariant:** without -fix it only reads.  Problems are written as days are done, without control
characters from the bucket.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.audit.audit import audit
from jostler.archive.audit.days import Limits
from jostler.archive.audit.mend import Mender
from jostler.archive.audit.printer import Printer
from jostler.archive.audit.remake import fields_of
from jostler.archive.audit.scope import Scope, datatypes_of, strays
from jostler.cli.archive_command import Archive, Command
from jostler.cli.keeping import bucket_of, data_dirs_of, kept_places, staging_of, tables_of
from jostler.cli.keeping_flags import AUDIT, PLACES, PROJECT, Fix, Report
from jostler.cli.messages import DONE, FAILED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.archive.audit.bigquery_tables import AuditTables
    from jostler.storage import Storage

ABOUT = """usage: jostler audit [flags]

Reads the bundles of an archive, day by day, and reports each problem with object, line and what to
do: bundles without index, indexes without bundle, indexes that do not agree with their bundle,
damaged bundles, lines that are no rows, rows of another day, rows in two bundles, days of many
small bundles, missing table schemas, foreign objects; and with -project days whose rows in BigQuery
are not those of the bundles.  -fix mends what can be mended without loss; see docs/keeping.md.
Without -experiment all experiments of the bucket are looked at.
Exit status: 0 clean, or all mended; 1 problems are left, or there is nothing to look at and -fix
is not given; 2 wrong use.

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
    limits = Limits(
        small_bytes=values["small"], many=values["many"], today=datetime.now(UTC).date()
    )

    def line(text: str) -> None:
        archive.progress.clear()
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    printer = Printer(
        storage.url,
        scope,
        line,
        as_json=values["format"] is Report.JSONL,
        mender=_mender(values, storage, tables),
        tables=tables,
    )
    places = kept_places(archive, storage)
    for place in places if tables else ():
        printer.expect(place, datatypes_of(storage, place, scope))
    with printer.recording():
        if scope.is_whole:
            whose = values["experiment"] or values["organization"]
            printer.strays(strays(storage, [] if whose else data_dirs_of(archive), places))
        for day in audit(storage, places, scope, limits):
            archive.tally.days += 1
            archive.tally.rows += sum(day.rows.values())
            printer.day(day)
    left = printer.end(datetime.now(UTC))
    is_empty = not printer.sums.days
    if is_empty:
        archive.say(f"{storage.url} has nothing of these places, datatypes and days")
    # For -fix that is no failure: an earlier one may have been killed after it moved all away.
    return FAILED if left or (is_empty and values["fix"] is Fix.NOTHING) else DONE


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
