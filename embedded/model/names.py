"""References to datasets, tables, partitions and jobs by their BigQuery names.

**Invariant:** the text of a reference identifies it: equal texts mean the same resource.

A name that BigQuery would refuse is an error with BigQuery's reason.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.model.errors import invalid

if TYPE_CHECKING:
    from embedded.model.wire import Json

MAX_ID = 1024
JOB_ID = re.compile(r"[A-Za-z0-9_-]{1,1024}")  # JobReference: letters, digits, _ and -
DATASET_ID = re.compile(r"[A-Za-z0-9_]{1,1024}")  # "Naming datasets": no dash
TABLE_CATEGORIES = ("L", "M", "N", "Pc", "Pd", "Zs")  # "Table naming": Unicode categories
PARTITION_ID = re.compile(r"[0-9]{8}")


@dataclass(frozen=True, slots=True, order=True)
class DatasetRef:
    """A reference to a dataset; names are case-sensitive."""

    project: str
    dataset: str

    def __str__(self) -> str:
        return f"{self.project}:{self.dataset}"

    def to_api(self) -> Json:
        """Return the reference as a DatasetReference."""
        return {"projectId": self.project, "datasetId": self.dataset}


@dataclass(frozen=True, slots=True, order=True)
class TableRef:
    """A reference to a table or view; names are case-sensitive."""

    project: str
    dataset: str
    table: str

    def __str__(self) -> str:
        return f"{self.project}:{self.dataset}.{self.table}"

    @property
    def parent(self) -> DatasetRef:
        """The dataset of the table."""
        return DatasetRef(self.project, self.dataset)

    def to_api(self) -> Json:
        """Return the reference as a TableReference."""
        return {**self.parent.to_api(), "tableId": self.table}


@dataclass(frozen=True, slots=True, order=True)
class JobRef:
    """A reference to a job; its id is unique in a project and location."""

    project: str
    location: str
    job: str

    def __str__(self) -> str:
        return f"{self.project}:{self.location}.{self.job}"

    def to_api(self) -> Json:
        """Return the reference as a JobReference."""
        return {"projectId": self.project, "jobId": self.job, "location": self.location}


def new_dataset(project: str, dataset: str) -> DatasetRef:
    """Return the reference to a new dataset.

    Raises:
        ApiError: BigQuery does not allow the name.
    """
    if not DATASET_ID.fullmatch(dataset):
        raise invalid(
            f'Invalid dataset ID "{dataset}". Dataset IDs must be alphanumeric (plus underscores) '
            "and must be at most 1024 characters long."
        )
    return DatasetRef(project, dataset)


def new_table(parent: DatasetRef, table: str) -> TableRef:
    """Return the reference to a new table.

    Raises:
        ApiError: BigQuery does not allow the name.
    """
    legal = all(unicodedata.category(c).startswith(TABLE_CATEGORIES) for c in table)
    if not table or not legal or len(table.encode()) > MAX_ID:
        raise invalid(
            f'Invalid table ID "{table}". Table IDs must be alphanumeric (plus underscores, '
            "dashes and spaces) and must be at most 1024 bytes long."
        )
    return TableRef(parent.project, parent.dataset, table)


def new_job(project: str, location: str, job: str) -> JobRef:
    """Return the reference to a new job.

    Raises:
        ApiError: BigQuery does not allow the id.
    """
    if not JOB_ID.fullmatch(job):
        raise invalid(
            f'Invalid job ID "{job}". Job IDs must be alphanumeric (plus underscores and dashes) '
            "and must be at most 1024 characters long."
        )
    return JobRef(project, location, job)


def dataset_ref(api: Json, project: str) -> DatasetRef:
    """Parse a DatasetReference; without a project, use the given one."""
    return DatasetRef(str(api.get("projectId") or project), str(api.get("datasetId") or ""))


def destination(api: Json, project: str) -> tuple[TableRef, str]:
    """Parse a TableReference; the table may have a partition decorator `$YYYYMMDD`.

    Returns:
        The table, and the partition's day as YYYY-MM-DD, or "" for the whole table.

    Raises:
        ApiError: a part is missing, or the decorator is not a day.
    """
    parent = dataset_ref(api, project)
    table, dollar, partition = str(api.get("tableId") or "").partition("$")
    if not parent.dataset or not table:
        raise invalid("Required parameter is missing: destinationTable")
    ref = TableRef(parent.project, parent.dataset, table)
    return ref, day_of_partition(partition) if dollar else ""


def day_of_partition(partition: str) -> str:
    """Convert a partition id, YYYYMMDD, to a day, YYYY-MM-DD.

    Raises:
        ApiError: it is not the id of a daily partition.
    """
    if not PARTITION_ID.fullmatch(partition):
        raise invalid(
            f"Invalid time partitioning encoding: '{partition}'. "
            "Partition decorator should be of the form YYYYMMDD."
        )
    return f"{partition[:4]}-{partition[4:6]}-{partition[6:]}"
