"""Create the tables and views of datatypes, and change them when they differ.

**Invariant:** a table only gains columns.  It is partitioned by day on `date` and requires a
partition filter.  A table created here has a label with its owner, and another label until all
existing days have been loaded once.

It refuses a schema that needs more than adding columns, a table with another partitioning, and a
table that belongs to another experiment.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jostler.schema import Relation, compare, fields_from_api, merged
from loader.bigquery.governed import kept_days
from loader.bigquery.warehouse import api_schema
from loader.errors import SchemaError

if TYPE_CHECKING:
    from google.cloud import bigquery

    from jostler.format.bigquery_names import TableName
    from jostler.schema import Field, Fields
    from loader.bigquery.warehouse import Json, Warehouse
    from loader.plan.discover import Table

RACES_MAX = 10
UNFINISHED = "jostler-first-load"
OWNER = "jostler-owner"
PARTITIONING = {"type": "DAY", "field": "date"}
_NOT_LABEL_RE = re.compile(r"[^a-z0-9_-]")
_OWNER_RE = re.compile(r" of experiment (\S+)\.$")
_RECORD_OF = "Loaded by jostler from bundles in Cloud Storage"
DATASET = f"{_RECORD_OF}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A table that is ready for load jobs.

    Attributes:
        fields: the table's columns, by which rows are judged.
        made_ms: when it was created, in ms since 1970; differs from that of an earlier table of the
            same name.
        from_beginning: whether the first load of all existing days is still to be done.
        found: the table as the service describes it.
        changes: what was changed, for the log.
    """

    fields: Fields
    made_ms: int
    from_beginning: bool
    found: bigquery.Table
    changes: tuple[str, ...] = ()

    @property
    def kept_days(self) -> float:
        """For how many days after its day a partition is kept; infinite: for ever."""
        return kept_days(self.found)


def look(warehouse: Warehouse, table: Table) -> Ready | None:
    """Check a table without changing it; return None if it does not exist.

    Raises:
        SchemaError: bundles cannot be loaded into it.
    """
    found = warehouse.get_table(table.name)
    if found is None:
        _check_no_rivals(table)
        return None
    fields, changes = _difference(table, found)
    return _ready(found, fields, tuple(changes))


def prepare(warehouse: Warehouse, table: Table) -> Ready:
    """Create the table if it does not exist, or change it if it differs from the schema.

    Raises:
        SchemaError: the table cannot be changed to the schema.
        WarehouseError: BigQuery refuses.
    """
    found = warehouse.get_table(table.name)
    made = found is None
    if found is None:
        _check_no_rivals(table)
        warehouse.make_dataset(table.name.project, table.name.dataset, DATASET)
        found = warehouse.create_table(table.name, _properties(table))
    for _ in range(RACES_MAX):
        fields, changes = _difference(table, found)
        if not changes:
            break
        if warehouse.change_table(found, changes):
            made = made or "schema" in changes
        again = warehouse.get_table(table.name)
        if again is None:
            raise SchemaError(f"{table.name}: the table went away")
        found = again
    else:
        raise SchemaError(f"{table.name}: changes too often", hint="do two releases run at once?")
    return _ready(found, fields, ("made or changed",) if made else ())


def finish_first_load(warehouse: Warehouse, name: TableName) -> None:
    """Record that all days have been loaded once; later runs load only days in their window."""
    for _ in range(RACES_MAX):
        found = warehouse.get_table(name)
        if found is None or found.labels.get(UNFINISHED) != "unfinished":
            return
        # None removes the label; leaving it out would keep it ("Deleting labels").
        if warehouse.change_table(found, {"labels": {**found.labels, UNFINISHED: None}}):
            return


def fields_of(found: bigquery.Table) -> Fields:
    """Return the columns of a table as the service describes it."""
    return fields_from_api([column.to_api_repr() for column in found.schema])


def _properties(table: Table) -> Json:
    return {
        "schema": api_schema(table.fields),
        "timePartitioning": PARTITIONING,
        "requirePartitionFilter": True,
        "description": description(table),
        "labels": {UNFINISHED: "unfinished", OWNER: owner(table)},
    }


def description(table: Table) -> str:
    """Return the description of a table of which no asset says another."""
    return (
        f"{_RECORD_OF}; one row for each file of datatype"
        f" {table.sources[0].datatype} of experiment {table.experiment}."
    )


def owner(table: Table) -> str:
    """Return the label of a table's owner: the experiment's name and a digest of its place."""
    name = _NOT_LABEL_RE.sub("-", table.experiment)[:40]
    digest = hashlib.blake2b(table.place.root.encode(), digest_size=6).hexdigest()
    return f"{name}-{digest}"


def _check_no_rivals(table: Table) -> None:
    if table.rivals:
        both = f"both {table.place.root} and {', '.join(table.rivals)}"
        hint = "rename one experiment"
        raise SchemaError(f"{table.name}: {both} would be this table", hint=hint)


def _check_owner(table: Table, found: bigquery.Table) -> None:
    """Refuse a table that belongs to another experiment: its days would be replaced."""
    label = found.labels.get(OWNER, "")
    if label == owner(table):
        return
    noted = _OWNER_RE.search(found.description or "")  # older tables have no label
    theirs = label.rpartition("-")[0] if label else noted[1] if noted else ""
    if label or (theirs and theirs != table.experiment):
        why = f"belongs to experiment {theirs}; {table.place.root} would replace its days"
        hint = "rename this experiment, or load it into another project"
        raise SchemaError(f"{table.name}: {why}", hint=hint)
    if not theirs:
        _check_no_rivals(table)


def _difference(table: Table, found: bigquery.Table) -> tuple[Fields, Json]:
    """Return the columns that the table should have, and what to change for that."""
    partitioning = found.time_partitioning
    by_date = partitioning and (partitioning.type_, partitioning.field) == ("DAY", "date")
    if found.table_type != "TABLE" or not by_date:
        raise SchemaError(
            f"{table.name}: exists and is not a table with day partitions on `date`",
            hint="load into another dataset, or remove it",
        )
    _check_owner(table, found)
    stored = fields_of(found)
    comparison = compare(stored, table.fields)
    if comparison.relation is Relation.INCOMPATIBLE:
        raise SchemaError(
            f"{table.name}: its columns cannot become those of the bucket's schema:"
            f" {'; '.join(comparison.conflicts)}",
            hint="BigQuery can only add NULLABLE or REPEATED columns: name the datatype anew",
        )
    fields = stored
    if comparison.relation is Relation.ADDITIONS:
        fields = merged(stored, table.fields)
    fields = _described(fields, table.fields)
    changes: Json = {}
    if fields != stored:
        changes["schema"] = api_schema(fields)
    if not _wants_filter(found):
        changes["requirePartitionFilter"] = True
    if OWNER not in found.labels:
        changes["labels"] = {**found.labels, OWNER: owner(table)}
    return fields, changes


def _wants_filter(table: bigquery.Table) -> bool:
    """Return whether a partition filter is required; the Go loader set the older property."""
    older = table.time_partitioning.to_api_repr().get("requirePartitionFilter", False)
    return bool(table.require_partition_filter or older)


def _described(fields: Fields, source: Fields) -> Fields:
    """Return the columns with the descriptions of the bucket's schema."""
    by_key = {field.key: field for field in source}
    return tuple(
        _describe(field, by_key[field.key]) if field.key in by_key else field for field in fields
    )


def _describe(field: Field, source: Field) -> Field:
    inner = _described(field.fields, source.fields)
    return replace(field, description=source.description or field.description, fields=inner)


def _ready(found: bigquery.Table, fields: Fields, changes: tuple[str, ...]) -> Ready:
    assert found.created is not None
    return Ready(
        fields=fields,
        made_ms=round(found.created.timestamp() * 1000),
        from_beginning=found.labels.get(UNFINISHED) == "unfinished",
        found=found,
        changes=changes,
    )
