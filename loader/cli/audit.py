"""The command `jostler-load audit`: the audit of `jostler audit`, on Spark.

**Invariant:** without --fix it only reads.  What is printed is as for `jostler audit`.
"""

from __future__ import annotations

import getpass
import os
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jostler.archive.audit.bigquery_tables import AuditTables, open_tables
from jostler.archive.audit.days import Limits, Schemas
from jostler.archive.audit.mend import Mender
from jostler.archive.audit.printer import Printer
from jostler.archive.audit.scope import datatypes_of, days, places_of, strays
from jostler.storage import open_storage
from loader.bucket import split_url
from loader.cli.audit_options import NO_FIX, ORPHANS, parse
from loader.cli.console import Console
from loader.errors import UsageError
from loader.spark.audit import audit_days
from loader.spark.session import session
from loader.spark.wave import WAVE_BYTES, WAVE_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from jostler.archive.audit.scope import ListedDay
    from jostler.storage import Storage
    from loader.cli.audit_options import AuditOptions

OK, LEFT = 0, 1


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status.

    Raises:
        UsageError: wrong options.
        JostlerError, LoaderError: bucket, BigQuery or Spark cannot be reached.
    """
    return command(parse(argv, os.environ), Console())


def command(options: AuditOptions, console: Console) -> int:
    """Audit what the options name; return the exit status.

    Raises:
        JostlerError, LoaderError: bucket, BigQuery or Spark cannot be reached.
    """
    tables = _tables(options)
    left = looked = 0
    try:
        with session(options.master, console.spark_line) as spark:
            for url in options.bucket:
                printer = _of_bucket(options, console, spark, url, tables)
                left += printer.end(datetime.now(UTC))
                looked += printer.sums.days
    finally:
        if tables:
            tables.close()
    if not looked:
        console.result("nothing of these buckets, experiments, datatypes and days was found")
    # For --fix that is no failure: an earlier one may have been killed after it moved all away.
    return LEFT if left or (not looked and options.fix == NO_FIX) else OK


def _of_bucket(
    options: AuditOptions,
    console: Console,
    spark: SparkSession,
    url: str,
    tables: AuditTables | None,
) -> Printer:
    storage = open_storage(url, options.patience_s)
    printer = Printer(
        url,
        options.scope,
        console.result,
        as_json=options.as_json,
        mender=_mender(options, storage, tables),
        tables=tables,
    )
    limits = Limits(
        small_bytes=options.small_bytes, many=options.many, today=datetime.now(UTC).date()
    )
    schemas = Schemas(storage)
    places = places_of(storage, _data_dirs(options), options.experiment)
    for place in places if tables else ():
        printer.expect(place, datatypes_of(storage, place, options.scope))
    with printer.recording():
        if options.scope.is_whole:
            dirs = [] if options.experiment else _data_dirs(options)
            printer.strays(strays(storage, dirs, places))
        for wave in _waves(day for place in places for day in days(storage, place, options.scope)):
            for day in audit_days(
                spark, url, wave, limits=limits, schemas=schemas, patience_s=options.patience_s
            ):
                printer.day(day)
    return printer


def _data_dirs(options: AuditOptions) -> list[str]:
    return [f"autoload/{api}" for api in options.api]


def _waves(listed: Iterable[ListedDay]) -> Iterator[list[ListedDay]]:
    """Divide days into waves that one Spark job checks."""
    wave: list[ListedDay] = []
    size_bytes = 0
    for day in listed:
        wave.append(day)
        size_bytes += sum(bundle.size_bytes for bundle in day.bundles)
        if len(wave) == WAVE_DAYS or size_bytes >= WAVE_BYTES:
            yield wave
            wave, size_bytes = [], 0
    if wave:
        yield wave


def _mender(options: AuditOptions, storage: Storage, tables: AuditTables | None) -> Mender | None:
    if options.fix == NO_FIX:
        return None
    bucket, prefix = split_url(options.staging or f"{storage.url}/loader-staging")
    try:
        return Mender(
            storage=storage,
            staging=storage if bucket == storage.url else open_storage(bucket, options.patience_s),
            prefix=f"{prefix}/" if prefix else "",
            now=datetime.now(UTC),
            orphans=options.fix == ORPHANS,
            settled=options.settled,
            fields=options.fields,
            mark=tables.mark if tables else None,
        )
    except ValueError as exc:
        raise UsageError([f"--staging: {exc}"]) from exc


def _tables(options: AuditOptions) -> AuditTables | None:
    if not options.project:
        return None
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = "?"
    return open_tables(
        project=options.project,
        location=options.location,
        naming=options.naming,
        meta_dataset=options.meta_dataset,
        who=f"{user}@{socket.gethostname()}",
    )
