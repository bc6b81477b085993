"""The options that several commands of the loader have: which archive, which days, which tables.

**Invariant:** every wrong text is one problem that names its option; nothing is raised for one.

Pure.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jostler.format.bigquery_names import Naming
from jostler.format.names import Day, check_experiment
from loader.cli.values import Values, choice, matching, one_of, seconds

if TYPE_CHECKING:
    from datetime import date

    from loader.cli.values import Option

DATASET_RE = re.compile(r"[A-Za-z0-9_]{1,1024}", re.ASCII)
PROJECT_RE = re.compile(r"[a-z0-9.:-]{1,100}", re.ASCII)
BUCKET_RE = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,220}/?|file:///.+", re.ASCII)
METRICS_RE = re.compile(r"file:///.+|https?://[^/?#]+(:\d+)?(/[^?#]*)?", re.ASCII)

MASTER = ("master", "URL", "", "Spark master; that of spark-submit, else local[*], if not given")
NAMINGS = "|".join(Naming)


def patience(default_s: str) -> Option:
    """Return the option --patience of a command that asks bucket and BigQuery."""
    about = "how long a request to bucket or BigQuery is tried again"
    return "patience", "SECONDS", default_s, about


class ArchiveValues(Values):
    """Values of a command, and its readers of what several commands have."""

    def buckets(self) -> tuple[str, ...]:
        """Return the URLs of --bucket, at least one, without a slash at the end."""
        return self.needed("bucket", _bucket)

    def layouts(self) -> tuple[str, ...]:
        """Return the layouts of the bucket that --api selects."""
        api = self.one("api", choice("v1", "v2", "all"))
        return ("v1", "v2") if api == "all" else (str(api),)

    def experiments(self) -> frozenset[str]:
        """Return those of --experiment; none for all."""
        return frozenset(self.many("experiment", check_experiment))

    def days(self) -> tuple[date | None, date | None]:
        """Return --start and --end, the day after the last; None for one that is not given."""
        start, end = self.optional("start", Day.parse), self.optional("end", Day.parse)
        if start and end and start.date >= end.date:
            self.problems.append(f"--start: {start.path} is not before --end {end.path}")
        return start and start.date, end and end.date

    def project(self) -> str:
        """Return --project, which must be given."""
        return str(self.one("project", matching(PROJECT_RE, "a project id")))

    def project_if_any(self) -> str:
        """Return --project; "" if it is not given."""
        return self.optional("project", matching(PROJECT_RE, "a project id")) or ""

    def naming(self) -> Naming:
        """Return --naming."""
        return self.one("naming", one_of(Naming)) or Naming.MLAB

    def patience_s(self) -> float:
        """Return --patience, in seconds."""
        return self.one("patience", seconds) or 0.0

    def meta_dataset(self) -> str:
        """Return --meta-dataset."""
        return str(self.one("meta-dataset", matching(DATASET_RE, "a dataset name")))


def _bucket(text: str) -> str:
    return matching(BUCKET_RE, "gs://NAME or file:///DIR")(text).rstrip("/")
