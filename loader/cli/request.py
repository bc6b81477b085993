"""`jostler-load request`: ask for days to be loaded anew by the next run of the loader.

**Invariant:** it inserts one row into the table `requests` and does nothing else; a wrong option is
found before anything is touched.
"""

from __future__ import annotations

import os
import sys
import uuid
from typing import TYPE_CHECKING

from jostler.format.names import Day, check_archived_datatype, check_experiment
from loader.bigquery.ledger import Ledger
from loader.bigquery.requests import STATUS, Requests
from loader.bigquery.warehouse import Warehouse
from loader.cli.archive_values import ArchiveValues
from loader.cli.console import Console
from loader.cli.options import PREFIX, variable
from loader.cli.values import Command, Help, read, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loader.bigquery.warehouse import Json

EPILOG = f"""\
The next run of jostler-load takes it; a daemon (--every) at once.  `jostler-load status`, or the
view request_status in the dataset of the ledger, says what became of it; see docs/requests.md.
Project, location and dataset may be given by the environment, as for a load: {PREFIX}PROJECT.
Exit status: 0 the request is made; 1 BigQuery refused it; 2 wrong use."""

HELP: Help = (
    ("experiment", "NAME", "", "the experiment"),
    ("datatype", "NAME", "", "the datatype; all of the experiment if not given"),
    ("first", "YYYY/MM/DD", "", "the first day to load anew"),
    ("last", "YYYY/MM/DD", "", "the last day to load anew, itself included; --first if not given"),
    ("reason", "TEXT", "", "why, for whoever looks at it later"),
    ("project", "ID", "", "project of the ledger"),
    ("location", "NAME", "US", "where a new dataset is made"),
    ("meta-dataset", "NAME", "jostler", "dataset of the ledger and of the requests"),
    ("patience", "SECONDS", "30", "how long a request to BigQuery is tried again"),
)  # fmt: skip
COMMAND = Command(
    prog="jostler-load request",
    about="Ask for days to be loaded anew.",
    epilog=EPILOG,
    options=HELP,
    prefix=PREFIX,
    shares_prefix=True,
)


def main(words: Sequence[str]) -> int:
    """Make a request; return the exit status.

    Raises:
        UsageError: with every problem of the options.
        LoaderError: BigQuery refused it, or could not be reached.
    """
    request, values = parse(words, os.environ)
    console = Console(sys.stdout, sys.stderr)
    warehouse = Warehouse(
        values.text("project"), values.text("location"), float(values.text("patience"))
    )
    try:
        ledger = Ledger(warehouse, values.text("meta-dataset"))
        ledger.prepare()
        requests = Requests(warehouse, ledger, "")
        requests.prepare()
        requests.insert(request)
        state = requests.state(request["RequestID"])
        who = f" by {state['RequestedBy']}" if state and state["RequestedBy"] else ""
        console.result(f"request {request['RequestID']} is made{who}")
        console.result(f"what becomes of it: {ledger.name(STATUS)}, or jostler-load status")
    finally:
        warehouse.close()
    return 0


def parse(words: Sequence[str], environ: Mapping[str, str]) -> tuple[Json, ArchiveValues]:
    """Read arguments and environment; return the columns of the request, and the options.

    Raises:
        UsageError: with every problem.
        SystemExit: after --help.
    """
    # An experiment in the environment selects what is loaded; a request says its own.
    shared = {variable(option) for option in ("project", "location", "meta-dataset", "patience")}
    values = ArchiveValues(COMMAND, words, {k: v for k, v in environ.items() if k in shared})
    return read(values, _request), values


def _request(values: ArchiveValues) -> Json:
    values.project()
    values.meta_dataset()
    values.one("patience", seconds)
    first = values.one("first", Day.parse)
    last = values.optional("last", Day.parse) if values.text("last") else first
    if first and last and last.date < first.date:
        values.problems.append(f"--last: {last.path} is before --first {first.path}")
    request: Json = {
        # Made here, so that a repetition by the client's retries is the same request.
        "RequestID": str(uuid.uuid4()),
        "Experiment": values.one("experiment", check_experiment),
        "StartDate": first and first.date,
        "EndDate": last and last.date,
    }
    if values.text("datatype"):
        request["Datatype"] = values.one("datatype", check_archived_datatype)
    if values.text("reason"):
        request["Reason"] = values.text("reason")
    return request
