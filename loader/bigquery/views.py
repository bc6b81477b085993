"""Views over the loaded tables; in v2 the tables of all organizations may share one.

**Invariant:** a view has the columns of its tables, which are equal; otherwise it is left as it is.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from jostler.format.bigquery_names import TableName
from jostler.schema import compare
from loader.bigquery.tables import fields_of
from loader.errors import WarehouseError
from loader.plan.due import schema_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jostler.schema import Fields
    from loader.bigquery.tables import Ready
    from loader.bigquery.warehouse import Warehouse
    from loader.plan.discover import Table

VIEWS = "Views of tables loaded by jostler."
_SELECT_RE = re.compile(r"^SELECT \* FROM `([^`.]+)\.([^`.]+)\.([^`.]+)`$", re.MULTILINE)


def prepare_views(
    warehouse: Warehouse,
    tables: Iterable[tuple[Table, Ready]],
    problem: Callable[[str, str], None],
) -> Iterator[TableName]:
    """Create or change the views of tables; return each that was changed.

    Args:
        warehouse: the BigQuery project.
        tables: the tables, which are ready for load jobs.
        problem: is told of each view that could not be prepared, and why.
    """
    shared: dict[TableName, list[tuple[Table, Ready]]] = defaultdict(list)
    for table, ready in tables:
        shared[table.view].append((table, ready))
    for view, members in shared.items():
        columns = [(table.name, ready.fields) for table, ready in members]
        try:
            if members[0][0].place.organization:
                columns += _others(warehouse, view, columns)
            if len({schema_digest(fields) for _, fields in columns}) > 1:
                problem(str(view), "its tables have different columns: left as it is")
                continue
            changed = _prepare(warehouse, view, columns)
        except WarehouseError as exc:
            problem(str(view), str(exc))
            continue
        if changed:
            yield view


def _prepare(warehouse: Warehouse, view: TableName, tables: list[tuple[TableName, Fields]]) -> bool:
    """Create or change a view over tables of equal columns; return whether it was changed.

    Raises:
        WarehouseError: BigQuery refuses.
    """
    # Table names come from `bigquery_names` and have only letters, digits and underscores.
    selects = [f"SELECT * FROM `{name}`" for name, _ in sorted(tables, key=lambda t: str(t[0]))]  # noqa: S608 - as above
    sql = "\nUNION ALL\n".join(selects)
    wanted = {"view": {"query": sql, "useLegacySql": False}}
    found = warehouse.get_table(view)
    if found is None:
        warehouse.make_dataset(view.project, view.dataset, VIEWS)
        description = f"All rows of {', '.join(str(name) for name, _ in tables)}."
        warehouse.create_table(view, {**wanted, "description": description})
        return True
    # BigQuery fixes a view's columns when it is created, so it is replaced when the table has more.
    frozen = fields_of(found)
    if found.view_query == sql and not compare(frozen, tables[0][1]).added:
        return False
    return warehouse.change_table(found, wanted) is not None


def _others(
    warehouse: Warehouse, view: TableName, tables: list[tuple[TableName, Fields]]
) -> list[tuple[TableName, Fields]]:
    """Return the tables that a view has besides these: those of organizations that failed now.

    Raises:
        WarehouseError: BigQuery refuses.
    """
    found = warehouse.get_table(view)
    names = set(_SELECT_RE.findall((found.view_query or "") if found else ""))
    others = []
    for parts in sorted(names - {(n.project, n.dataset, n.table) for n, _ in tables}):
        name = TableName(project=parts[0], dataset=parts[1], table=parts[2], wanted=parts[1])
        if there := warehouse.get_table(name):
            others.append((name, fields_of(there)))
    return others
