"""Which table and view a datatype has: the names of m-lab's autoloader.

**Invariant:** every dataset name is one that BigQuery takes, and a name that had to be changed for
that says so; two datatypes of one run never share a table by accident (see `discover`).

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostler.format.names import Place

_NOT_DATASET_RE = re.compile(r"[^A-Za-z0-9_]")
_SUBPROJECTS = ("mlab-autojoin", "mlab-thirdparty")


class Naming(StrEnum):
    """Whose names v1 tables get; v2 has but one way."""

    MLAB = "mlab"
    THIRD_PARTY = "third-party"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table or view.

    Attributes:
        project: as given.
        dataset: letters, digits and underscores.
        table: likewise.
        wanted: what the dataset would be called if BigQuery took every name; else equal.
    """

    project: str
    dataset: str
    table: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.project}.{self.dataset}.{self.table}"

    @property
    def is_mapped(self) -> bool:
        """Whether the name had to be changed."""
        return self.dataset != self.wanted


def _named(project: str, dataset: str, table: str) -> TableName:
    safe = _NOT_DATASET_RE.sub("_", dataset)
    return TableName(project=project, dataset=safe, table=table, wanted=dataset)


def table_name(naming: Naming, project: str, place: Place, datatype: str) -> TableName:
    """Name the table of a datatype."""
    if place.organization:
        dataset = f"autoload_v2_{place.organization}_{place.experiment}"
        return _named(project, dataset, f"{datatype}_raw")
    if naming is Naming.MLAB:
        return _named(project, f"raw_{place.experiment}", datatype)
    return _named(project, place.experiment, datatype)


def view_name(
    naming: Naming, place: Place, datatype: str, *, view_project: str, project: str, bucket: str
) -> TableName:
    """Name the view of a datatype.

    Args:
        naming: for v1.
        place: of the datatype.
        datatype: its name.
        view_project: where the view is to be.
        project: where the table is; third-party views are named after it.
        bucket: its URL; v2 views are named after its subproject.
    """
    if place.organization:
        dataset = f"{subproject(bucket)}_v2_{place.experiment}"
        return _named(view_project, dataset, f"{datatype}_raw")
    if naming is Naming.MLAB:
        return _named(view_project, f"{place.experiment}_raw", datatype)
    table = _NOT_DATASET_RE.sub("_", f"{place.experiment}_{datatype}")
    return _named(view_project, project.removeprefix("mlab-"), table)


def subproject(bucket: str) -> str:
    """Return `autojoin` or `thirdparty` for M-Lab's buckets of these, `mlab` for all others."""
    name = bucket.rstrip("/").rpartition("/")[2].removeprefix("archive-")
    for known in _SUBPROJECTS:
        if name.startswith(known):
            return known.removeprefix("mlab-")
    return "mlab"
