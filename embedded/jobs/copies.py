"""Copy jobs: copy the rows of one or more tables into a table.

**Invariant:** the destination gets the rows of all sources as of one transaction, or none.

Snapshots, clones, restores, and a copy of a table to itself are errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from embedded.model.columns import literal, quoted
from embedded.model.errors import invalid, unsupported
from embedded.model.names import destination
from embedded.store.catalog import find_table, table_or_none
from embedded.store.datasets import find_dataset
from embedded.store.landing import Landing

if TYPE_CHECKING:
    import duckdb

    from embedded.jobs.jobs import Effect, Job
    from embedded.model.names import TableRef
    from embedded.model.wire import Json
    from embedded.store.database import Store

_KEYS = "sourceTable sourceTables destinationTable createDisposition writeDisposition operationType"
KEYS = frozenset(_KEYS.split())
LAYOUT = ("timePartitioning", "clustering", "requirePartitionFilter")


@dataclass(frozen=True, slots=True)
class Copies:
    """Runs copy jobs."""

    store: Store

    def check(self, project: str, config: Json) -> str:
        """Check a copy job before it gets an id; return its destination's location."""
        copy = config["copy"]
        for key, value in copy.items():
            if key not in KEYS and value not in (None, "", {}, [], False):
                raise unsupported(f"{key} of a copy job")
        if copy.get("operationType") not in {None, "", "COPY", "OPERATION_TYPE_UNSPECIFIED"}:
            raise unsupported(f"A copy job of type {copy['operationType']}")
        ref, _ = destination(copy.get("destinationTable") or {}, project)
        if ref in {source for source, _ in _sources(copy, project)}:
            raise invalid(f"Cannot copy {ref} onto itself")
        with self.store.reading() as cursor:
            return str(find_dataset(cursor, ref.parent)["location"])

    def dry_run(self, project: str, config: Json) -> Json:
        """Raise ApiError: BigQuery has no dry run of a copy job."""
        raise unsupported(f"A dry run of a copy job ({project}, {sorted(config)})")

    def run(self, job: Job) -> Effect:
        """Return the effect that copies all rows in the job's transaction."""
        copy = job.config["copy"]
        project = job.ref.project

        def effect(cursor: duckdb.DuckDBPyConnection) -> Json:
            rows = 0
            write = str(copy.get("writeDisposition") or "WRITE_EMPTY")
            for source, day in _sources(copy, project):
                rows += _copied(cursor, copy, project, (source, day), write)
                # Only the first source meets the table as it was before the job.
                write = "WRITE_APPEND"
            return {"copy": {"copiedRows": str(rows)}}

        return effect


def _sources(copy: Json, project: str) -> list[tuple[TableRef, str]]:
    given = copy.get("sourceTables") or [copy.get("sourceTable") or {}]
    return [destination(api, project) for api in given]


def _copied(
    cursor: duckdb.DuckDBPyConnection,
    copy: Json,
    project: str,
    source: tuple[TableRef, str],
    write: str,
) -> int:
    table = find_table(cursor, source[0])
    if table.view_sql:
        raise invalid(f"{table.ref} is a view and cannot be copied")
    ref, day = destination(copy["destinationTable"], project)
    landing = Landing(
        ref=ref,
        day=day,
        write=write,
        create=str(copy.get("createDisposition") or "CREATE_IF_NEEDED"),
        schema=table.fields,
        layout={key: table.body[key] for key in LAYOUT if key in table.body},
        properties={},
    )
    if table_or_none(cursor, ref) is not None:
        landing = replace(landing, layout={})  # a table that exists keeps its own layout
    which = ""
    if source[1]:
        column = quoted(table.partition_column)
        which = f" WHERE CAST({column} AS DATE) = DATE {literal(source[1])}"
    found = cursor.execute(f"SELECT count(*) FROM {table.storage}{which}").fetchone()  # noqa: S608
    landing.put(cursor, [field.name for field in table.fields], table.storage + which)
    return int(found[0]) if found else 0
