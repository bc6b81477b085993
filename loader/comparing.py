"""`--verify-only`: the days of the window beside their index and BigQuery.

**Invariant:** nothing is changed in a bucket or in BigQuery.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from loader.bigquery.reconcile import Reconciler
from loader.plan.due import parts
from loader.spark.session import session
from loader.spark.wave import WAVE_BYTES, WAVE_DAYS, Wave

if TYPE_CHECKING:
    from loader.bigquery.reconcile import Reconciliation
    from loader.bigquery.reference import Reference
    from loader.cli.console import Console
    from loader.cli.options import Options
    from loader.planner import Planner
    from loader.spark.wave import StagingPaths


def compare(
    options: Options,
    console: Console,
    planner: Planner,
    reference: Reference,
    staging: StagingPaths,
) -> Reconciliation:
    """Compare all days of the window, wave by wave; Spark is started if there are any.

    Raises:
        RunError, BucketError, WarehouseError: the whole comparison failed.
    """
    looked = planner.look(planner.discover())
    days = [replace(day, own_max_bad=None) for t in looked for day in planner.listed(t)]
    for name in sorted({key for key, _ in (day.key for day in days)} - planner.ready.keys()):
        planner.problem(name, "there are bundles, and no such table")
    days = [day for day in days if planner.has(day.table)]
    comparer = Reconciler(planner.warehouse, reference, days, options.patience_s)
    for table in looked:
        if planner.has(table) and planner.was_listed(table):
            comparer.look_for_gone(table.name, planner.window(table))
    if days:
        fields = planner.fields()
        with session(options.master, console.spark_line, light=True) as spark:
            for part in parts(days, most=WAVE_DAYS, most_bytes=WAVE_BYTES):
                comparer.compare(spark, Wave.of(part, fields, staging, native=options.native))
    return comparer.finish()
