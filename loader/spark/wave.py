"""A wave: days that are verified in one Spark job, and the results for each day.

**Invariant:** within a day, an earlier bundle has a smaller ordinal, so the earliest copy of a row
has the smallest position.  Groups of bundles have about equal sizes.

Pure.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostler.format.names import Day as PathDay
from jostler.schema import Use
from loader.bucket import split_url
from loader.spark.verify import Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.schema import Fields
    from loader.plan.due import TableDay

GROUP_BYTES = 32 * 1024 * 1024
GROUPS_PER_CORE = 3
WAVE_BYTES = 20_000_000_000
WAVE_DAYS = 1000
"""At most so many packed bytes and days are one wave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagingPaths:
    """The names of the objects that a run writes to staging."""

    staging: str
    run_id: str

    def of(self, day: TableDay, name: str) -> tuple[str, str]:
        """Return bucket and name for an object of a day."""
        bucket, prefix = split_url(self.staging)
        table = day.table.name
        folder = f"{table.dataset}.{table.table}/{day.date:%Y%m%d}/{self.run_id}"
        return bucket, f"{prefix}/{folder}/{name}".lstrip("/")


def refused_id(job: str, run_id: str) -> str:
    """Return the JobID in ledger and rejects for a day that this run refuses to load."""
    return f"{job}-refused-{run_id}"


@dataclass(slots=True, kw_only=True)
class Verified:
    """A verified day, with the numbers for its ledger row.

    Attributes:
        day: the day as planned.
        uris: the objects that contain exactly its good rows, each once.
        staged: bucket and name of the objects written to staging for it.
        rewritten: how many of these are copies of bundles.
        rejects: the URIs of the objects with its bad rows as NDJSON, in the columns of the rejects;
            for a refused day, with `SAMPLE_ROWS` of them.
        job: the expected id of the load job; another loader or a retry may change its number.
        error: why the day cannot be loaded; else empty.
        trusted: how many of its bundles were taken from their index.
        sampled: how many bundles were read in full and compared with their index.
        full: how many bundles were read because the day was not taken from its index.
        distrusted: why not, if its index was asked; else empty.
    """

    day: TableDay
    uris: list[str] = field(default_factory=list)
    staged: list[tuple[str, str]] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    job: str = ""
    error: str = ""
    trusted: int = 0
    sampled: int = 0
    full: int = 0
    distrusted: str = ""
    rows: int = 0
    rejected: int = 0
    repeated: int = 0
    renewed: int = 0
    rewritten: int = 0
    corrupt: int = 0
    plain_bytes: int = 0

    @property
    def good(self) -> int:
        """The number of rows that a load must write."""
        return self.rows - self.rejected - self.repeated

    @property
    def bad_fraction(self) -> float:
        """The fraction of rows that are bad."""
        return self.rejected / max(1, self.rows)

    def is_loadable(self, max_bad: float) -> bool:
        """Return whether it can be loaded, by its own largest fraction of bad rows, or this one."""
        return not self.error and self.bad_fraction <= self.day.max_bad(max_bad)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Days and all their bundles, numbered by ordinals.

    Attributes:
        days: the days, in the order given.
        tasks: one for each bundle; the index is its ordinal.
        tables: the columns of each table, to which tasks refer by index.
        staging: the names of the objects that the run writes.
    """

    days: list[Verified]
    tasks: list[Task]
    tables: tuple[Fields, ...]
    staging: StagingPaths
    owners: list[Verified]

    @classmethod
    def of(
        cls,
        days: list[TableDay],
        fields: dict[str, Fields],
        staging: StagingPaths,
        job_of: Callable[[TableDay], str] = lambda _: "",
        *,
        native: Use = Use.AUTO,
    ) -> Wave:
        """Make a wave of days and number their bundles.

        Args:
            days: the days to verify.
            fields: the columns of each table.
            staging: the names of the objects that the run writes.
            job_of: returns the expected id of a day's load job.
            native: whether executors use the native module.
        """
        names = sorted({str(day.table.name) for day in days})
        verdicts = [Verified(day=day, job=job_of(day)) for day in days]
        tasks: list[Task] = []
        owners: list[Verified] = []
        for verdict in verdicts:
            for bundle in verdict.day.bundles:
                owners.append(verdict)
                tasks.append(
                    Task(
                        ordinal=len(tasks),
                        bucket=bundle.bucket,
                        name=bundle.name,
                        generation=bundle.generation,
                        size_bytes=bundle.size_bytes,
                        node=bundle.node,
                        day=PathDay(verdict.day.date),
                        table=names.index(str(verdict.day.table.name)),
                        native=native,
                    )
                )
        tables = tuple(fields[name] for name in names)
        return cls(days=verdicts, tasks=tasks, tables=tables, staging=staging, owners=owners)

    def groups(self, cores: int) -> list[list[Task]]:
        """Distribute the bundles: the largest first, each to the group with the fewest bytes."""
        total = sum(task.size_bytes for task in self.tasks)
        wanted = max(GROUPS_PER_CORE * cores, total // GROUP_BYTES)
        heap = [(0, number) for number in range(min(len(self.tasks), wanted))]
        groups: list[list[Task]] = [[] for _ in heap]
        for task in sorted(self.tasks, key=lambda task: -task.size_bytes):
            size, number = heapq.heappop(heap)
            groups[number].append(task)
            # 1 for each object: it takes a request even if it has hardly any bytes.
            heapq.heappush(heap, (size + task.size_bytes + 1, number))
        return groups

    def copy_name(self, ordinal: int) -> tuple[str, str]:
        """Return bucket and name for the copy of a bundle."""
        name = self.tasks[ordinal].name.rpartition("/")[2]
        # The ordinal, because bundles of several buckets may have one name.
        return self.staging.of(self.owners[ordinal].day, f"{ordinal:06}-{name}")

    def rejects_name(self, ordinal: int) -> tuple[str, str]:
        """Return bucket and name for the object with the bad rows of a bundle."""
        name = self.tasks[ordinal].name.rpartition("/")[2]
        return self.staging.of(self.owners[ordinal].day, f"rejects-{ordinal:06}-{name}")
