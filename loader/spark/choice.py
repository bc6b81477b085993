"""Decide from the results of a wave's bundles what its days load, and what is written before.

**Invariant:** it decides the same whichever engine found the results: Spark, or the driver alone.

Pure; it changes the days of the wave that it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loader.spark.limits import SAMPLE_ROWS
from loader.spark.rewrite import Copy
from loader.spark.wave import refused_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loader.spark.wave import Verified, Wave


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleResult:
    """The result for a bundle: `findings.Whole`, and what comparing it with others has shown.

    Attributes:
        bundle: its number in the wave.
        repeated: how many of its rows are in an earlier bundle, or earlier in this one.
        renewed: how many have a Filename that another row has with other contents.
    """

    bundle: int
    rows: int
    bad: int
    bare: int
    plain_bytes: int
    packed_bytes: int
    corrupt: str
    unreadable: str
    repeated: int
    renewed: int


def summed(
    wholes: Iterable[tuple[int, Mapping[str, Any]]],
    repeated: Mapping[int, int],
    renewed: Mapping[int, int],
) -> list[BundleResult]:
    """Return the result of each bundle, in order.

    Args:
        wholes: each bundle's number and `findings.Whole`.
        repeated: how many rows of a bundle are repeated, where some are.
        renewed: how many are renewed, where some are.
    """
    return [
        BundleResult(
            bundle=number,
            repeated=repeated.get(number, 0),
            renewed=renewed.get(number, 0),
            **whole,
        )
        for number, whole in sorted(wholes, key=lambda one: one[0])
    ]


def count(wave: Wave, bundle: BundleResult) -> None:
    """Add a bundle's results to those of its day."""
    verdict = wave.owners[bundle.bundle]
    if bundle.unreadable:
        verdict.error = verdict.error or bundle.unreadable
    verdict.rows += bundle.rows
    verdict.plain_bytes += bundle.plain_bytes
    verdict.rejected += bundle.bad
    verdict.repeated += bundle.repeated
    verdict.renewed += bundle.renewed
    verdict.corrupt += bool(bundle.corrupt)


def choose(
    wave: Wave, bundles: list[BundleResult], max_bad: float, *, rejects: bool
) -> dict[int, Copy]:
    """Set the objects to load for each day; return what must be written to staging first."""
    copies: dict[int, Copy] = {}
    left = {id(day): day.rejected if day.is_loadable(max_bad) else SAMPLE_ROWS for day in wave.days}
    for bundle in sorted(bundles, key=lambda bundle: bundle.bundle):
        verdict, task = wave.owners[bundle.bundle], wave.tasks[bundle.bundle]
        if verdict.error:
            continue
        most = min(bundle.bad, left[id(verdict)]) if rejects else 0
        left[id(verdict)] -= most
        unwanted = bundle.bad + bundle.repeated
        loads = verdict.is_loadable(max_bad) and (not unwanted or unwanted < bundle.rows)
        if loads and not unwanted and not bundle.bare:
            verdict.uris.append(f"{task.bucket}/{task.name}")
        elif loads or most:
            copies[bundle.bundle] = _copy(wave, bundle, most, max_bad, loads=loads)
    return copies


def _copy(wave: Wave, bundle: BundleResult, most: int, max_bad: float, *, loads: bool) -> Copy:
    """Return which objects to write for a bundle, and add them to its day."""
    verdict, task = wave.owners[bundle.bundle], wave.tasks[bundle.bundle]
    refused = refused_id(verdict.job, wave.staging.run_id)
    copy = rejects = ""
    bucket, name = wave.copy_name(bundle.bundle)
    if loads:
        copy = name
        # Noted before it is written, so that it is removed also if a task fails after writing it.
        verdict.staged.append((bucket, name))
        verdict.rewritten += 1
        verdict.uris.append(f"{bucket}/{name}")
    if most:
        bucket, rejects = wave.rejects_name(bundle.bundle)
        verdict.staged.append((bucket, rejects))
        verdict.rejects.append(f"{bucket}/{rejects}")
    return Copy(
        task=task,
        bucket=bucket,
        copy=copy,
        bare=bool(bundle.bare),
        corrupt=bundle.corrupt,
        rejects=rejects,
        most=most,
        about={
            "table": str(verdict.day.table.name),
            "date": verdict.day.date.isoformat(),
            "ArchiveURL": f"{task.bucket}/{task.name}",
            "RunID": wave.staging.run_id,
            "JobID": verdict.job if verdict.is_loadable(max_bad) else refused,
        },
    )


def note_written(
    wave: Wave, copies: dict[int, Copy], bundle: int, rejects: int, problem: str
) -> None:
    """Note how the objects of a bundle were written: a failure fails its day.

    Args:
        wave: the wave.
        copies: what was to be written.
        bundle: the bundle's number.
        rejects: how many bad rows were written.
        problem: why they could not be written; else empty.
    """
    verdict: Verified = wave.owners[bundle]
    if problem:
        verdict.error = verdict.error or problem
    elif rejects != copies[bundle].most:
        verdict.error = verdict.error or f"Rejects: {rejects} rows were written"
