"""Loads without Spark: what is tested is the planner, the load jobs, the ledger and the rejects."""

from __future__ import annotations

import gzip
import io
import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loader.cli.command import command
from loader.cli.console import Console
from loader.cli.options import parse
from loader.errors import LoaderError
from loader.run import Loader
from loader.spark.wave import Verified
from tests.loader.world import Ran

if TYPE_CHECKING:
    from loader.plan.due import TableDay
    from tests.loader.world import World


REFUSED = b"refused"
"""A bad row that the table of rejects cannot take either."""


def load(world: World, *more: str) -> Ran:
    """Run the loader in this process; a line that is no JSON is a bad row, all others are good.

    A bundle has good rows or bad ones, for nothing is written again.
    """
    options = parse(world.arguments(*more), {}, datetime.now(UTC).date())
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)
    loader = Loader(
        options, console, lambda days: [verified(world, day, loader.run_id) for day in days]
    )
    try:
        code = command(options, loader, console)
    except LoaderError as exc:
        code = 1
        err.write(f"jostler-load: {exc}\n")
    return Ran(code, out.getvalue(), err.getvalue())


def verified(world: World, day: TableDay, run_id: str) -> Verified:
    """Read the bundles of a day."""
    found = Verified(day=day)
    for bundle in day.bundles:
        lines = gzip.decompress(
            world.get(bundle.name, bundle.bucket.removeprefix("gs://"))
        ).splitlines()
        bad = [(n, line) for n, line in enumerate(lines, 1) if not line.startswith(b"{")]
        found.rows += len(lines)
        found.rejected += len(bad)
        if not bad:
            found.uris.append(bundle.url)
            continue
        assert len(bad) == len(lines)
        told_of = []
        for number, line in bad:
            told = {
                "table": str(day.table.name),
                "date": day.date.isoformat(),
                "ArchiveURL": bundle.url,
                "Line": "x" if line == REFUSED else number,
                "Reason": "not-json",
                "Row": line.decode(),
                "RunID": run_id,
            }
            told_of.append(json.dumps(told).encode() + b"\n")
        name = f"loader-staging/{run_id}/{uuid.uuid4().hex}.jsonl"
        world.put(name, b"".join(told_of))
        found.rejects.append(f"{world.url}/{name}")
        found.staged.append((world.url, name))
    return found
