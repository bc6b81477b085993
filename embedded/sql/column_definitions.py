"""Read column definitions, types and OPTIONS of DDL as the REST API's resources.

**Invariant:** a definition in SQL gives the same TableFieldSchema as a client would send for it.

Constraints, options and types that a table cannot have here are refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.kinds import kind_of
from embedded.model import fields as columns_of
from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from embedded.model.fields import Field
    from embedded.model.wire import Json

OPTIONS = {
    "description": "description",
    "friendly_name": "friendlyName",
    "labels": "labels",
    "require_partition_filter": "requirePartitionFilter",
}


def properties_of(tree: exp.Expr) -> list[exp.Expr]:
    """Return the clauses around the columns of a CREATE statement, each of OPTIONS as one."""
    found = tree.args.get("properties")
    return list(found.expressions) if found else []


def option_of(item: exp.Expr, known: dict[str, str]) -> Json:
    """Read one of OPTIONS(…) as a key of the resource; the value NULL removes the option.

    Args:
        item: the name and the value.
        known: the resource's key of each allowed option.

    Raises:
        ApiError: the option is not allowed here, or its value is no literal.
    """
    name = item.this.name.lower() if isinstance(item, exp.Property) else ""
    if name not in known:
        raise unsupported(f"The option {name or item.sql('bigquery')[:60]}")
    return {known[name]: _constant(item.args["value"])}


def _constant(value: exp.Expr) -> object:
    if isinstance(value, exp.Null):
        return None
    if isinstance(value, exp.Boolean):
        return bool(value.this)
    if isinstance(value, exp.Array):
        pairs = [[part.name for part in item.expressions] for item in value.expressions]
        return {pair[0]: pair[1] for pair in pairs}
    if isinstance(value, exp.Literal):
        return value.name
    raise unsupported(f"An option that is no literal ({value.sql('bigquery')[:60]})")


def column_definition(item: exp.Expr) -> Json:
    """Return a column's definition as a TableFieldSchema.

    Raises:
        ApiError: its type or a constraint is not supported.
    """
    if not isinstance(item, exp.ColumnDef) or not item.args.get("kind"):
        raise unsupported(f"The column definition {item.sql('bigquery')[:60]}")
    api: Json = {"name": item.name, **_typed(item.args["kind"])}
    for constraint in item.args.get("constraints") or []:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
            api["mode"] = "REQUIRED"
        elif isinstance(kind, exp.Properties):
            for option in kind.expressions:
                api |= option_of(option, {"description": "description"})
        elif isinstance(kind, exp.DefaultColumnConstraint):
            api["defaultValueExpression"] = kind.this.sql("bigquery")
        else:
            raise unsupported(f"The column constraint {kind.sql('bigquery')[:60]}")
    return api


def typed_column(name: str, data_type: exp.DataType) -> Field:
    """Return a column of a type that is written in SQL.

    Raises:
        ApiError: the type is not supported.
    """
    (found,) = columns_of.from_api({"fields": [{"name": name, **_typed(data_type)}]})
    return found


def _typed(data_type: exp.DataType) -> Json:
    kind = kind_of(data_type)
    if kind.startswith("ARRAY"):
        inner = _typed(data_type.expressions[0])
        if inner.get("mode") == "REPEATED":
            raise invalid("Arrays of arrays are not supported")
        return {**inner, "mode": "REPEATED"}
    if kind == "STRUCT":
        return {
            "type": "RECORD",
            "fields": [column_definition(item) for item in data_type.expressions],
        }
    if not kind or kind == "INTERVAL":
        raise unsupported(f"The type {data_type.sql('bigquery')}")
    numbers = [int(item.name) for item in data_type.expressions]
    if kind in {"STRING", "BYTES"}:
        return {"type": kind, **({"maxLength": str(numbers[0])} if numbers else {})}
    sizes = dict(zip(("precision", "scale"), map(str, numbers), strict=False))
    return {"type": kind, **sizes}
