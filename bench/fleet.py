"""A model of a fleet: what so many nodes make, what that costs, and what breaks first.

**Invariant:** every number comes from the fleet's description, a measured speed, or a published
limit; each of these stands here once, with its source.  docs/scaling.md shows what it says.

Pure, with a seeded random generator.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from itertools import pairwise

GIB = 1024**3
DAY_H = 24
MONTH_D = 30.4
DRAWS = 20_000

# What was measured here; docs/scaling.md says how, and on which machine.
AGENT_CPU_S = ((1_024, 71e-6), (20_480, 310e-6), (204_800, 2.0e-3))
"""CPU seconds of the agent (Python alone) for a file of so many bytes: docs/performance.md."""
JUDGED_ROWS_S = ((1_200, 124_000.0), (33_000, 7_800.0))
"""Rows a second and core that the loader reads in full, by their bytes: docs/loader.md."""
OBJECT_CPU_S = 0.58e-3
"""CPU seconds of the loader for one bundle of a trusted day, with its index: bench.simulate."""
REQUEST_CPU_S = 1.8e-3
"""CPU seconds of a small request through Google's client, with the stand-in that answered it."""
ROW_CPU_S = 7.8e-6
"""CPU seconds of the loader for one row of its index: bench.simulate."""
OBJECT_BYTES = 4_400
"""Memory of the driver for one bundle of a run: bench.simulate."""
DRIVER_BYTES = 180e6
"""Memory of the driver with nothing to do: docs/loader.md."""
INDEX_ROW_BYTES = 40
"""Of an index object for a file, compressed: docs/performance.md."""
MERGED_BYTES = 256 * 1024**2
"""Of rows in a merged bundle: --target of jostler-load compact."""
INDEX_OBJECT_BYTES = 400
"""Of an index object beside its rows."""

# What was assumed, for nobody has published it.
PAGE_S = 0.2
"""Seconds for one page of a listing, of 1,000 objects."""
JOB_S = 20.0
"""Seconds for a load job beside its bytes; the loader's benches take 3."""
JOB_BYTES_S = 500e6
"""Uncompressed bytes a second of one load job."""
UPLOAD_S = 2.0
"""From a sealed bundle to its stored index."""
BUSY = 0.7
"""Part of an executor's time that it works."""

# What is published: names as in the pages "Quotas and limits" of BigQuery and Cloud Storage.
PAGE_OBJECTS = 1_000
CLASS_A_DOLLARS = 0.005 / 1_000
CLASS_B_DOLLARS = 0.0004 / 1_000
GIB_MONTH_DOLLARS = 0.020


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The files of one datatype on one node.

    Attributes:
        name: of the datatype.
        files_h: files an hour.
        file_bytes: bytes of a file's row.
        ratio: of row bytes to compressed ones.
    """

    name: str
    files_h: float
    file_bytes: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet and how it is run.

    Attributes:
        nodes: how many there are.
        kinds: the datatypes that each node has.
        bundle_age_h: -bundle-age-max.
        bundle_bytes: -bundle-size-max.
        every_h: hours between two runs of the loader.
        keep_days: days that the bucket keeps.
        compacted: whether the day before yesterday is compacted each night.
        sample: --sample.
        verify_s: seconds that verifying may take in an hourly run.
        cores: of an executor.
    """

    nodes: int
    kinds: tuple[Kind, ...] = (
        Kind(name="ndt7", files_h=60, file_bytes=33_000, ratio=10),
        Kind(name="ping1", files_h=600, file_bytes=1_200, ratio=5),
    )
    bundle_age_h: float = 1.0
    bundle_bytes: float = 20 * 1024**2
    every_h: float = 1.0
    keep_days: float = 365
    compacted: bool = False
    sample: float = 0.01
    verify_s: float = 900
    cores: int = 4


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a limit is used.

    Attributes:
        what: the limit, with its source.
        used: of it.
        limit: how much there is.
        setting: what moves it.
    """

    what: str
    used: float
    limit: float
    setting: str

    @property
    def part(self) -> float:
        """The part that is used; above 1 it breaks."""
        return self.used / self.limit


@dataclass(slots=True)
class Forecast:
    """What the model says of a fleet; all counts are of one day unless the name says otherwise."""

    fleet: Fleet
    rows: float = 0
    plain_bytes: float = 0
    packed_bytes: float = 0
    bundles: float = 0
    bundles_largest: float = 0
    job_bytes_largest: float = 0
    list_calls: float = 0
    get_calls: float = 0
    put_calls: float = 0
    load_jobs: float = 0
    verify_cpu_s: float = 0
    core_hours: float = 0
    executors: int = 0
    driver_bytes: float = 0
    list_s: float = 0
    run_s: float = 0
    agent_cpu: float = 0
    dollars_month: float = 0
    seconds_50: float = 0
    seconds_99: float = 0
    uses: list[Use] = field(default_factory=list)

    @property
    def objects(self) -> float:
        """Data and index objects that agents store."""
        return 2 * self.bundles

    @property
    def objects_kept(self) -> float:
        """Objects of the bucket after `keep_days`."""
        fleet = self.fleet
        if not fleet.compacted:
            return self.objects * fleet.keep_days
        merged = 2 * max(len(fleet.kinds), self.plain_bytes / MERGED_BYTES)
        return 2 * self.objects + merged * fleet.keep_days

    @property
    def first(self) -> Use:
        """What breaks first, or is nearest to it."""
        return max(self.uses, key=lambda use: use.part)


def bundles_h(fleet: Fleet, kind: Kind) -> float:
    """Return how many bundles a node makes an hour: by age, or by size if it is full before."""
    by_size = kind.files_h * kind.file_bytes / fleet.bundle_bytes
    # A bundle opens with its first file and ends at its age; then the next file is waited for.
    by_age = 1 / (fleet.bundle_age_h + 1 / kind.files_h)
    return max(by_size, by_age)


def forecast(fleet: Fleet) -> Forecast:
    """Say what a fleet makes, costs and needs."""
    made = Forecast(fleet)
    runs = DAY_H / fleet.every_h
    # Each run loads today anew, half of it on average, and the first one of a day also yesterday.
    loads_of_day = runs * (1 + 1 / runs) / 2 + 1
    longest_list = longest_job_s = 0.0
    for kind in fleet.kinds:
        rows = fleet.nodes * kind.files_h * DAY_H
        bundles = fleet.nodes * bundles_h(fleet, kind) * DAY_H
        plain = rows * kind.file_bytes
        made.rows += rows
        made.bundles += bundles
        made.plain_bytes += plain
        index_bytes = rows * INDEX_ROW_BYTES + bundles * INDEX_OBJECT_BYTES
        made.packed_bytes += plain / kind.ratio + index_bytes
        made.bundles_largest = max(made.bundles_largest, bundles)
        made.job_bytes_largest = max(made.job_bytes_largest, plain / kind.ratio)
        made.agent_cpu += kind.files_h / 3600 * _between(AGENT_CPU_S, kind.file_bytes)
        sampled = fleet.sample * rows / _between(JUDGED_ROWS_S, kind.file_bytes)
        once_s = bundles * (OBJECT_CPU_S + REQUEST_CPU_S) + rows * ROW_CPU_S + sampled
        made.verify_cpu_s += once_s
        made.core_hours += once_s * loads_of_day / 3600
        longest_list = max(longest_list, bundles)
        longest_job_s = max(longest_job_s, JOB_S + plain / JOB_BYTES_S)
    _requests(made, runs, loads_of_day)
    # All bundles of a day are in one folder of index1, which is listed by one thread.
    made.list_s = (made.bundles / PAGE_OBJECTS + 1) * PAGE_S
    made.driver_bytes = DRIVER_BYTES + made.bundles * OBJECT_BYTES
    made.executors = math.ceil(made.verify_cpu_s / (fleet.verify_s * fleet.cores * BUSY))
    verify_s = made.verify_cpu_s / (made.executors * fleet.cores * BUSY)
    made.run_s = made.list_s + verify_s + longest_job_s
    made.seconds_50, made.seconds_99 = file_to_row(fleet, made.run_s)
    made.uses = _uses(made, runs)
    return made


def _requests(made: Forecast, runs: float, loads_of_day: float) -> None:
    """Count requests and what they cost."""
    fleet = made.fleet
    made.put_calls = made.objects
    # A run lists data and index objects of today and yesterday; a listing reads whole pages.
    made.list_calls = runs * (1.5 * made.objects / PAGE_OBJECTS + 4 * len(fleet.kinds))
    made.get_calls = loads_of_day * made.bundles * (1 + fleet.sample)
    made.load_jobs = (runs + 1) * (len(fleet.kinds) + 1)
    month = (made.put_calls + made.list_calls) * CLASS_A_DOLLARS + made.get_calls * CLASS_B_DOLLARS
    stored = made.packed_bytes * fleet.keep_days / GIB * GIB_MONTH_DOLLARS
    made.dollars_month = month * MONTH_D + stored


def _uses(made: Forecast, runs: float) -> list[Use]:
    fleet = made.fleet
    index = made.bundles
    return [
        Use(
            "objects in the source bucket of a load job: 60 million",
            made.objects_kept,
            60e6,
            "jostler-load compact each night; -bundle-age-max; a bucket for each experiment",
        ),
        Use(
            "files in a load job: 10 million (index1 has the indexes of all datatypes)",
            index,
            10e6,
            "-bundle-age-max; fewer datatypes in an experiment",
        ),
        Use(
            "bytes of a load job: 15 TB",
            made.job_bytes_largest,
            15e12,
            "a datatype or an experiment for each part of the fleet",
        ),
        Use(
            "load jobs for a table and day: 1,500",
            runs + 1,
            1_500,
            "runs less often; --jobs-per-day",
        ),
        Use(
            "load jobs for a project and day: 100,000",
            made.load_jobs,
            100_000,
            "runs less often; a project for each experiment",
        ),
        Use(
            "objects written a second before Cloud Storage adapts: 1,000",
            made.put_calls / DAY_H / 3600,
            1_000,
            "-bundle-age-max; it adapts within some 20 minutes",
        ),
        Use(
            "bytes of a row, here of the ledger: 100 MB (Objects has 8 for each object)",
            8 * index,
            100e6,
            "-bundle-age-max; fewer datatypes in an experiment",
        ),
        Use(
            "memory of the driver: 16 GB",
            made.driver_bytes,
            16e9,
            "spark.driver.memory; --experiment, a loader for each",
        ),
        Use(
            "seconds between two runs, for listing, verifying and the longest job",
            made.run_s,
            fleet.every_h * 3600,
            "runs less often; executors; --experiment, a loader for each",
        ),
    ]


def file_to_row(fleet: Fleet, run_s: float) -> tuple[float, float]:
    """Return the 50th and 99th percentile of the seconds from a file to its row.

    A file comes at any moment of its bundle's age, and the bundle at any moment between two runs.
    Bundles that are full before their age are sooner there.
    """
    rng = random.Random(1)
    age_s, every_s = fleet.bundle_age_h * 3600, fleet.every_h * 3600
    found = sorted(
        rng.uniform(0, age_s) + UPLOAD_S + rng.uniform(0, every_s) + run_s for _ in range(DRAWS)
    )
    return found[DRAWS // 2], found[DRAWS * 99 // 100]


def _between(points: tuple[tuple[float, float], ...], at: float) -> float:
    """Read a value off points of a curve, straight in logarithms and beyond its ends."""
    (x0, y0), (x1, y1) = points[0], points[1]
    for low, high in pairwise(points):
        if at >= low[0]:
            (x0, y0), (x1, y1) = low, high
    part = (math.log(at) - math.log(x0)) / (math.log(x1) - math.log(x0))
    return math.exp(math.log(y0) + part * (math.log(y1) - math.log(y0)))
