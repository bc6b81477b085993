"""The command `jostler-load status`: how the loads stand, short or long.

**Invariant:** it only reads, and starts no Spark.  The exit status is 0 only if no day fails, was
refused or given up.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.load_status import LoadStatus, TableStatus, load_status, open_requests
from jostler.format.urls import is_bucket_url
from loader.bigquery.ledger import LOADS, Ledger
from loader.bigquery.notifications import Flaws, Notifications, day_key
from loader.bigquery.warehouse import Warehouse
from loader.cli import options as of_load
from loader.cli.console import Console
from loader.cli.status_options import StatusOptions, parse
from loader.explain import advice, class_of, sentence
from loader.run import Loader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OK, FAILING = 0, 1
SENTENCES = 5
DUE_DAYS = 31
REQUEST_STATUS = "request_status"


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status.

    Raises:
        UsageError: wrong options.
        LoaderError: the ledger cannot be asked.
    """
    return command(parse(argv, os.environ), Console())


def command(options: StatusOptions, console: Console) -> int:
    """Ask and print; return the exit status.

    Raises:
        LoaderError: the ledger cannot be asked.
    """
    status, flaws = _asked(options)
    due = _due(options, console) if options.bucket else None
    if options.as_json:
        console.result(json.dumps(as_json(status, due, flaws), default=str))
    elif not status.tables:
        of = f" of {options.experiment}" if options.experiment else ""
        console.result(f"the ledger of {options.project}.{options.meta_dataset} has no row{of}")
    else:
        _print(status, due, flaws, console, verbose=options.verbose)
    failing = any(table.failing for table in status.tables)
    return FAILING if failing or not status.tables else OK


def _asked(options: StatusOptions) -> tuple[LoadStatus, Flaws]:
    """Return what the ledger says, and the first bad rows of the days that it has refused."""
    warehouse = Warehouse(options.project, options.location, options.patience_s)
    try:
        ledger = Ledger(warehouse, options.meta_dataset)
        loads, requests = ledger.name(LOADS), ledger.name(REQUEST_STATUS)
        found = warehouse.get_table(loads)
        if found is None:
            return LoadStatus(), {}
        status = load_status(
            warehouse.rows,
            loads=str(loads),
            columns={column.name for column in found.schema},
            requests=str(requests) if warehouse.get_table(requests) else "",
            experiment=options.experiment,
            today=datetime.now(UTC).date(),
        )
        refused = [one.row for table in status.tables for one in table.failing]
        return status, Notifications(warehouse, ledger, run="").flaws(refused)
    finally:
        warehouse.close()


def _due(options: StatusOptions, console: Console) -> Counter[str]:
    """Count the days of the last month that a run of now would load, by table."""
    now = datetime.now(UTC)
    first, end = now - timedelta(days=DUE_DAYS), now + timedelta(days=1)
    argv = [word for url in options.bucket for word in ("--bucket", url)]
    argv += ["--project", options.project, "--meta-dataset", options.meta_dataset]
    argv += ["--naming", options.naming, "--location", options.location]
    argv += ["--start", f"{first:%Y/%m/%d}", "--end", f"{end:%Y/%m/%d}"]
    argv += ["--patience", str(options.patience_s), "--allow-empty", "--dry-run"]
    argv += ["--experiment", options.experiment] if options.experiment else []
    loader = Loader(of_load.parse(argv, {}, now.date()), console)
    try:
        planner = loader.planner
        due, _ = planner.plan(planner.look(planner.discover()), force=False)
    finally:
        loader.close()
    return Counter(str(day.table.name) for day in due)


def _print(
    status: LoadStatus,
    due: Mapping[str, int] | None,
    flaws: Flaws,
    console: Console,
    *,
    verbose: bool,
) -> None:
    waiting = open_requests(status)
    asked = Counter((row.get("Experiment"), row.get("Datatype")) for row in waiting)
    rows = [
        (
            table.table if is_bucket_url(table.table) else table.table.partition(".")[2],
            _instant(table.success),
            table.newest or "never",
            _waiting(table) if due is None else due.get(table.table, 0),
            len(table.failing),
            "-" if table.rejected is None else f"{table.rejected:.2%}",
            asked[table.experiment, table.datatype] + asked[table.experiment, None],
        )
        for table in status.tables
    ]
    head = ("table", "last success", "newest day", "due", "failing", "rejected", "requests")
    console.table(head, rows)
    failing = [one for table in status.tables for one in table.failing]
    for one in failing if verbose else failing[:SENTENCES]:
        since = f", since {_instant(one.since)}, {one.times} times" if one.since else ""
        console.result("")
        flaw = flaws.get(day_key(one.row))
        console.result(f"{sentence(one.row, flaw)}{since}")
        if verbose:
            console.result(f"  {advice(one.row, flaw)}")
    if not verbose and len(failing) > SENTENCES:
        console.result(f"and {len(failing) - SENTENCES} more: see -v")
    if verbose and status.requests:
        keys = list(status.requests[0])
        console.result("")
        console.table(keys, [[row[key] for key in keys] for row in status.requests])
    elif verbose and status.requests is not None:
        console.result("no requests")


def _waiting(table: TableStatus) -> int:
    """Return how many days the ledger knows that the next run loads again."""
    return sum(one.is_waiting for one in table.failing)


def as_json(status: LoadStatus, due: Mapping[str, int] | None, flaws: Flaws) -> dict[str, Any]:
    """Return the status as one JSON object, for programs."""
    return {
        "tables": [
            {
                "table": table.table,
                "experiment": table.experiment,
                "datatype": table.datatype,
                "last_success": table.success,
                "newest_day": table.newest,
                "due": _waiting(table) if due is None else due.get(table.table, 0),
                "rejected_fraction": table.rejected,
                "failing": [
                    {
                        "date": one.row["date"],
                        "status": one.row["Status"],
                        "class": class_of(one.row),
                        "since": one.since,
                        "times": one.times,
                        "summary": sentence(one.row, flaws.get(day_key(one.row))),
                        "advice": advice(one.row, flaws.get(day_key(one.row))),
                    }
                    for one in table.failing
                ],
            }
            for table in status.tables
        ],
        "requests": status.requests,
    }


def _instant(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC" if when else "never"
