"""What fleets of 100 to 100,000 nodes make, cost and need, and what breaks first.

usage: python -m bench.simulate [--nodes 100,1000,10000,100000] [--bundle-age-h 1] [--every-h 1]
           [--keep-days 365] [--compacted]
       python -m bench.simulate --page docs/scaling.md
       python -m bench.simulate --measure 500x10,1000x10,1000x60,2000x30

The model is bench/fleet.py; docs/scaling.md shows its tables, and what they rest on.

--measure makes archives of one day, of so many bundles x so many files in each, lists each and
loads it with the embedded BigQuery.  The first three give the loader's CPU seconds for a run, a
bundle and a row; the last one is predicted from these and compared.  CPU seconds and memory are the
loader's own, without BigQuery's; 10,000 nodes of one bundle are 10000x10.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.bundles import DAY, PLACE, put_files, put_schema
from bench.fleet import Fleet, Forecast, forecast
from bench.server import bigquery
from bench.watched import watched_load
from jostler.storage.directory import DirectoryStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

NODES = (100, 1_000, 10_000, 100_000)
NEAR = 0.5
"""A limit is named when so much of it is used."""


def main() -> None:
    """Print the tables, or measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", default=",".join(map(str, NODES)))
    parser.add_argument("--bundle-age-h", type=float, default=1.0)
    parser.add_argument("--every-h", type=float, default=1.0)
    parser.add_argument("--keep-days", type=float, default=365.0)
    parser.add_argument("--compacted", action="store_true")
    parser.add_argument("--page", default="", help="write the tables of the defaults into it")
    parser.add_argument("--measure", default="", metavar="BUNDLESxFILES,…")
    parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    options = parser.parse_args()
    if options.measure:
        sizes = [tuple(map(int, size.split("x"))) for size in options.measure.split(",")]
        with tempfile.TemporaryDirectory(prefix="jostler-bench-", dir=options.dir) as home:
            print(compared([measured(Path(home), *size) for size in sizes]))
        return
    fleet = Fleet(
        nodes=1,
        bundle_age_h=options.bundle_age_h,
        every_h=options.every_h,
        keep_days=options.keep_days,
        compacted=options.compacted,
    )
    if options.page:
        write_page(Path(options.page))
        return
    made = [forecast(replace(fleet, nodes=int(n))) for n in options.nodes.split(",")]
    print(f"{numbers(made)}\n\n{limits(made)}")


def write_page(page: Path) -> None:
    """Write the tables of the model into docs/scaling.md, between their comments."""
    made = [forecast(Fleet(nodes=nodes)) for nodes in NODES]
    compacted = [forecast(Fleet(nodes=nodes, compacted=True)) for nodes in NODES]
    tables = {"numbers": numbers(made), "limits": limits(made)}
    text = page.read_text()
    for name, table in (tables | {"limits compacted": limits(compacted)}).items():
        head, _, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition(f"<!-- end of {name} -->")
        assert end, f"{page} has no place for {name}"
        text = f"{head}<!-- {name} -->\n{table}\n{end}{tail}"
    page.write_text(text)


def numbers(made: Sequence[Forecast]) -> str:
    """Return what the model says of fleets as a table of Markdown, a column for each fleet."""
    rows = [
        ("rows a day", [f"{one.rows:,.0f}" for one in made]),
        ("bytes a day, plain", [_size(one.plain_bytes) for one in made]),
        ("bytes a day, stored", [_size(one.packed_bytes) for one in made]),
        ("objects a day", [f"{one.objects:,.0f}" for one in made]),
        ("objects kept", [f"{one.objects_kept:,.0f}" for one in made]),
        ("bundles of the largest table's day", [f"{one.bundles_largest:,.0f}" for one in made]),
        ("objects stored a second", [f"{one.put_calls / 86400:,.1f}" for one in made]),
        ("listing calls a day", [f"{one.list_calls:,.0f}" for one in made]),
        ("index reads a day", [f"{one.get_calls:,.0f}" for one in made]),
        ("load jobs a day", [f"{one.load_jobs:,.0f}" for one in made]),
        ("CPU of one agent for files, s a day", [f"{one.agent_cpu * 86400:.1f}" for one in made]),
        ("CPU of the last hourly run, core-seconds", [f"{one.verify_cpu_s:,.0f}" for one in made]),
        ("core-hours of the loader a day", [f"{one.core_hours:,.1f}" for one in made]),
        ("executors of 4 cores for that run", [f"{one.executors:,}" for one in made]),
        ("memory of the driver", [_size(one.driver_bytes) for one in made]),
        ("dollars a month, Cloud Storage", [f"{one.dollars_month:,.0f}" for one in made]),
        ("minutes of that run", [f"{one.run_s / 60:,.1f}" for one in made]),
        ("minutes from file to row, median", [f"{one.seconds_50 / 60:,.0f}" for one in made]),
        ("and 99th percentile", [f"{one.seconds_99 / 60:,.0f}" for one in made]),
    ]
    head = "| |" + "".join(f" {one.fleet.nodes:,} nodes |" for one in made)
    lines = [head, "|---|" + "---:|" * len(made)]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(cells)} |" for name, cells in rows)])


def limits(made: Sequence[Forecast]) -> str:
    """Return which limits are used how far, with what moves them, as a table of Markdown."""
    lines = ["| nodes | nearest limit | used | what moves it |", "|---:|---|---:|---|"]
    for one in made:
        near = [use for use in one.uses if use.part >= NEAR] or [one.first]
        for use in sorted(near, key=lambda use: -use.part):
            cells = (f"{one.fleet.nodes:,}", use.what, f"{use.part:.2%}", use.setting)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What loading one day has taken.

    Attributes:
        bundles: of the day.
        files: in each bundle.
        make_cpu_s: CPU seconds for making bundles and indexes by the agent's code.
        list_s: seconds to list them, in a directory.
        wall_s: seconds of the loader's process.
        cpu_s: its CPU seconds.
        rss_bytes: its highest resident memory.
    """

    bundles: int
    files: int
    make_cpu_s: float
    list_s: float
    wall_s: float
    cpu_s: float
    rss_bytes: int

    @property
    def rows(self) -> int:
        return self.bundles * self.files


def measured(home: Path, bundles: int, files: int) -> Measured:
    """Make an archive of one day, list it and load it."""
    root = home / f"{bundles}x{files}"
    bucket = DirectoryStorage(root)
    put_schema(bucket)
    began_s = time.process_time()
    for number in range(bundles):
        put_files(bucket, number, DAY, files)
    make_cpu_s = time.process_time() - began_s
    began_s = time.perf_counter()
    listed = sum(1 for _ in bucket.list(f"{PLACE.root}/"))
    list_s = time.perf_counter() - began_s
    assert listed >= 2 * bundles
    with bigquery(home / f"{bundles}x{files}-bq") as url:
        done = watched_load(bucket.url, url, "--datatype", "foo1")
    assert f" {bundles * files} " in done.output, done.output
    return Measured(
        bundles=bundles,
        files=files,
        make_cpu_s=make_cpu_s,
        list_s=list_s,
        wall_s=done.wall_s,
        cpu_s=done.cpu_s,
        rss_bytes=done.memory.driver,
    )


def fitted(found: Sequence[Measured]) -> tuple[float, float, float]:
    """Return the CPU seconds of a run, of a bundle and of a row, from three measurements.

    The first two differ in bundles and rows, the second and the third in rows alone.
    """
    few, more, longer = found[:3]
    row_s = (longer.cpu_s - more.cpu_s) / (longer.rows - more.rows)
    rest_s = more.cpu_s - few.cpu_s - row_s * (more.rows - few.rows)
    bundle_s = rest_s / (more.bundles - few.bundles)
    return few.cpu_s - bundle_s * few.bundles - row_s * few.rows, bundle_s, row_s


def compared(found: Sequence[Measured]) -> str:
    """Return measurements as a table, with what the first three say of the others."""
    lines = [
        "| bundles | rows | made, CPU s | listed, s | loaded, s | CPU s | memory, MB | predicted |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    run_s, bundle_s, row_s = fitted(found)
    for at, one in enumerate(found):
        says = run_s + bundle_s * one.bundles + row_s * one.rows
        cells = (
            *(f"{one.bundles:,}", f"{one.rows:,}", f"{one.make_cpu_s:.2f}", f"{one.list_s:.2f}"),
            *(f"{one.wall_s:.1f}", f"{one.cpu_s:.2f}", f"{one.rss_bytes / 1e6:.0f}"),
            f"{says:.2f}" if at >= 3 else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    memory = (found[-1].rss_bytes - found[0].rss_bytes) / (found[-1].bundles - found[0].bundles)
    lines.append(
        f"\na run {run_s:.2f} s, a bundle {bundle_s * 1e3:.2f} ms, a row {row_s * 1e6:.1f} µs,"
        f" a bundle {memory / 1e3:.1f} KB"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
