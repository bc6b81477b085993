"""The names of a datatype's table and view, as m-lab's autoloader makes them.

**Invariant:** BigQuery accepts every dataset name returned here; `TableName.is_mapped` says whether
the name had to be changed for that.  Two names may become equal; `loader.plan.discover` refuses
such datatypes.

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
    """The naming rule of v1 tables; v2 has only one rule."""

    MLAB = "mlab"
    THIRD_PARTY = "third-party"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table or view.

    Attributes:
        project: as given.
        dataset: letters, digits and underscores.
        table: letters, digits and underscores.
        wanted: the dataset's name before characters that BigQuery refuses were replaced.
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
        naming: the naming rule of v1.
        place: the experiment's place in the bucket.
        datatype: the datatype's name.
        view_project: the project of the view.
        project: the project of the table; third-party views are named after it.
        bucket: the bucket's URL; v2 views are named after its subproject.
    """
    if place.organization:
        dataset = f"{subproject(bucket)}_v2_{place.experiment}"
        return _named(view_project, dataset, f"{datatype}_raw")
    if naming is Naming.MLAB:
        return _named(view_project, f"{place.experiment}_raw", datatype)
    table = _NOT_DATASET_RE.sub("_", f"{place.experiment}_{datatype}")
    return _named(view_project, project.removeprefix("mlab-"), table)


def subproject(bucket: str) -> str:
    """Return `autojoin` or `thirdparty` if the bucket is M-Lab's bucket for it, else `mlab`."""
    name = bucket.rstrip("/").rpartition("/")[2].removeprefix("archive-")
    for known in _SUBPROJECTS:
        if name.startswith(known):
            return known.removeprefix("mlab-")
    return "mlab"
