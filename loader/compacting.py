"""A whole run of `jostler-load compact`: list days, plan groups, compact them, record each merge.

**Invariant:** small work is done by threads of this process, large work by Spark; both call the
same function for a group.  The failure of one group affects no other, and the next run finishes
what a run that was killed has left.
"""

from __future__ import annotations

import secrets
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from jostler.archive.compact import FOREIGN, Done, Left
from jostler.archive.compact_days import datatypes_in, days, places_in
from jostler.archive.compact_plan import Group, groups
from jostler.archive.compact_repeats import WholeDay, divided
from jostler.build import version
from jostler.errors import StorageError
from jostler.format.names import BundleName
from loader.bigquery.appends import LedgerAppender, LedgerRow
from loader.bigquery.ledger import COMPACTIONS, Ledger
from loader.bigquery.record import STARTED
from loader.bigquery.warehouse import Warehouse
from loader.bucket import open_bucket
from loader.errors import BucketError, LoaderError
from loader.spark import failure
from loader.spark.compact import compact_group, compact_groups
from loader.spark.session import session
from loader.version import version_of_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from jostler.archive.compact import Compacted
    from jostler.archive.compact_plan import Member
    from jostler.format.names import Day, Place
    from loader.bigquery.warehouse import Json
    from loader.cli.compact_options import CompactOptions
    from loader.cli.console import Console

DRIVER_BYTES = 64 * 1024 * 1024
"""Up to this size of objects, threads of the driver do it: Spark would take longer to start."""
DRIVER_THREADS = 2
LISTERS = 8
ROWS_AT_ONCE = 1000
"""Rows in one load job of the table `compactions`."""


@dataclass(slots=True)
class Report:
    """What a run has done.

    Attributes:
        done: the merges.
        left: the bundles that were left alone.
        problems: what failed besides; also why repeats of a day were kept.
    """

    done: list[Done] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def well(self) -> bool:
        """Whether nothing is wrong; bundles of a foreign form do not count as wrong."""
        return not self.problems and all(one.reason == FOREIGN for one in self.left)


class Compactor:
    """One run.

    Args:
        options: what to do.
        console: shows events.
    """

    def __init__(self, options: CompactOptions, console: Console) -> None:
        self._options = options
        self._console = console
        self._started = datetime.now(UTC)
        self._run = f"{self._started.strftime(STARTED)}-{secrets.token_hex(3)}"
        self.report = Report()

    def plan(self) -> list[tuple[str, Group]]:
        """List the days, and return the groups to compact, each with the URL of its bucket."""
        options = self._options
        found: list[tuple[str, Group]] = []
        with ThreadPoolExecutor(LISTERS, thread_name_prefix="list") as pool:
            for url in options.bucket:
                try:
                    storage = open_bucket(url, options.patience_s).storage
                    folders = [
                        (place, datatype)
                        for place in places_in(storage, options.api, options.experiment)
                        for datatype in datatypes_in(storage, place)
                        if not options.datatype or datatype in options.datatype
                    ]
                    if not folders:
                        self._problem(url, "no bundles of such experiments and datatypes")
                except (BucketError, StorageError) as exc:
                    self._problem(url, str(exc))
                    continue
                for part in pool.map(partial(self._groups, url), folders):
                    found += [(url, group) for group in part]
        return found

    def _groups(self, url: str, folder: tuple[Place, str]) -> list[Group]:
        place, datatype = folder
        options = self._options
        found: list[Group] = []
        try:
            storage = open_bucket(url, options.patience_s).storage
            least = 1 if options.collapse_repeats else 2
            listed = days(storage, place, datatype, options.first, options.last, least=least)
            for day, members, others in listed:
                for name in others:
                    self._console.event("object.foreign", "warning", object=f"{url}/{name}")
                found += self._divided(place, datatype, day, members)
        except (BucketError, StorageError) as exc:
            self._problem(f"{url}: {datatype}", str(exc))
        return found

    def _divided(self, place: Place, datatype: str, day: Day, members: list[Member]) -> list[Group]:
        """Return what is compacted in one piece of work: groups, or the day as a whole."""
        small_bytes = self._options.small_bytes
        if not self._options.collapse_repeats:
            return groups(members, small_bytes=small_bytes, target_bytes=self._options.target_bytes)
        if not members:
            return []
        return [
            WholeDay(
                place=place,
                datatype=datatype,
                day=day,
                schema="",  # of each bundle its own
                members=tuple(members),
                small_bytes=small_bytes,
            )
        ]

    def divided(self, planned: list[tuple[str, Group]]) -> list[tuple[str, Group, int]]:
        """Return what would be merged, and how many repeats of each day would be left out."""
        found: list[tuple[str, Group, int]] = []
        for url, group in planned:
            if not isinstance(group, WholeDay):
                found.append((url, group, 0))
                continue
            storage = open_bucket(url, self._options.patience_s).storage
            plan = divided(storage, group, target_bytes=self._options.target_bytes)
            if plan.kept:
                self._kept(url, group, plan.kept)
            numbers = chain([len(plan.repeats)], repeat(0))
            found += [(url, *both) for both in zip(plan.groups, numbers, strict=False)]
        return found

    def _kept(self, url: str, group: Group, why: str) -> None:
        """Report a day whose repeats of feeds are kept."""
        what = f"{url}/{group.place.root}: {group.datatype} of {group.day.iso}"
        self._problem(what, f"repeats are kept: {why}")

    def _problem(self, what: str, why: str) -> None:
        self.report.problems.append(f"{what}: {why.removeprefix(f'{what}: ')}")
        self._console.event("compaction.failed", "error", what=what, error=why)

    def run(self) -> Report:
        """Compact, and record each merge if a project is given."""
        planned = self.plan()
        for (url, group), found in self._compacted(planned) if planned else ():
            if found.kept:
                self._kept(url, group, found.kept)
            self.report.done += found.done
            self.report.left += found.left
            for one in found.done:
                self._console.event("bundles.merged", object=one.url, **_facts(one))
            for left in found.left:
                level = "debug" if left.reason == FOREIGN else "warning"
                self._console.event(
                    "bundle.left", level, object=left.url, reason=left.reason, why=left.why
                )
        if self._options.project and self.report.done:
            self._record()
        return self.report

    def _compacted(
        self, planned: list[tuple[str, Group]]
    ) -> Iterator[tuple[tuple[str, Group], Compacted]]:
        options = self._options
        how: dict[str, Any] = {
            "target_bytes": options.target_bytes,
            "version": f"jostler@{version()}",
            "compression": options.compression,
            "patience_s": options.patience_s,
        }
        if sum(group.total_bytes for _, group in planned) <= DRIVER_BYTES:
            with ThreadPoolExecutor(DRIVER_THREADS, thread_name_prefix="compact") as pool:
                found = pool.map(lambda one: compact_group(*one, **how), planned)
                yield from zip(planned, found, strict=True)
            return
        with session(options.master, self._console.spark_line, light=True) as spark:
            try:
                yield from zip(planned, compact_groups(spark, planned, **how), strict=True)
            except Exception as exc:  # noqa: BLE001 - Py4J's, Spark's and Python's have no common base
                self._problem("Spark", failure.cause(exc))

    def _record(self) -> None:
        """Append a row for each merge to the table `compactions`."""
        options = self._options
        warehouse = Warehouse(options.project, options.location, options.patience_s)
        try:
            ledger = Ledger(warehouse, options.meta_dataset)
            ledger.prepare_compactions()
            appender = LedgerAppender(warehouse, ledger, COMPACTIONS, self._run)
            # Without a job: no other run writes these rows, so none looks whether they are there.
            rows = [LedgerRow("", "", self._row(one)) for one in self.report.done]
            for at in range(0, len(rows), ROWS_AT_ONCE):
                appender.append(self._run, rows[at : at + ROWS_AT_ONCE])
        except LoaderError as exc:
            self._problem(f"{options.project}.{options.meta_dataset}.{COMPACTIONS}", str(exc))
        finally:
            warehouse.close()

    def _row(self, one: Done) -> Json:
        url = next(url for url in self._options.bucket if one.url.startswith(f"{url}/"))
        name = BundleName.parse(one.url.removeprefix(f"{url}/"))
        return {
            "date": name.day.iso,
            "Datatype": name.datatype,
            "Place": name.place.root,
            "Started": self._started.isoformat(),
            "Finished": datetime.now(UTC).isoformat(),
            "ArchiveURL": one.url,
            "Bundles": one.inputs,
            "Rows": one.rows,
            "RowsRepeated": one.repeats,
            "RowsCollapsed": one.collapsed,
            "PlainBytes": one.plain_bytes,
            "ObjectsBefore": one.objects_before,
            "ObjectsAfter": one.objects_after,
            "BytesBefore": one.bytes_before,
            "BytesAfter": one.bytes_after,
            "RunID": self._run,
            "Host": socket.gethostname(),
            "Version": version_of_run(),
        }


def _facts(one: Done) -> dict[str, Any]:
    facts = {"bundles": one.inputs, "rows": one.rows, "repeated": one.repeats}
    return facts | ({"collapsed": one.collapsed} if one.collapsed else {})


def left_by_reason(left: Iterable[Left]) -> Counter[str]:
    """Count the bundles that were left alone."""
    return Counter(one.reason for one in left)
