"""ARRAY and STRUCT: how they are written, their parts, and CAST to a type that a query writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.conversions import array_of, cast, unified, wanted
from loader.query.googlesql.places import field_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import BYTES, INT64, STRING, Type, array, struct
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from loader.query.googlesql.places import Place, Rule


def _concatenation(place: Place, node: exp.Expr) -> Value:
    left, right = place.value(node.this), place.value(node.expression)
    left, right = unified([left, right], node, "the operands of ||")
    if left.type not in {STRING, BYTES} and left.type.element is None:
        raise refusal(Code.TYPE, f"|| needs STRING, BYTES or ARRAY, not {left.type}", node)
    return Value(f"concat({left.sql}, {right.sql})", left.type)


def _cast(place: Place, node: exp.Expr) -> Value:
    if node.args.get("format") is not None:
        raise unsupported("CAST with FORMAT", node)
    kind = type_named(node.args["to"])
    if isinstance(node.this, exp.Struct | exp.Tuple) and kind.kind == "STRUCT":
        return _typed_struct(place, node.this, kind)
    if isinstance(node.this, exp.Array) and kind.element is not None:
        items = [place.value(item) for item in node.this.expressions]
        cast_items = [wanted(item, kind.element, node, "an element") for item in items]
        listed = f"array({', '.join(item.sql for item in cast_items)})"
        return Value(listed if items else f"CAST(array() AS {kind.spark})", kind)
    value = place.value(node.this)
    return cast(place, value, kind, safe=isinstance(node, exp.TryCast), node=node)


def _typed_struct(place: Place, node: exp.Expr, kind: Type) -> Value:
    if len(node.expressions) != len(kind.fields):
        raise refusal(Code.ARGUMENT, f"{len(kind.fields)} fields were expected", node)
    parts = []
    for number, (item, (name, inner)) in enumerate(
        zip(node.expressions, kind.fields, strict=True), 1
    ):
        value = wanted(place.value(item), inner, node, "a field")
        parts.append(f"'{name or f'_field_{number}'}', {value.sql}")
    return Value(f"named_struct({', '.join(parts)})", kind)


TYPES = {
    "BIGINT": "INT64", "INT": "INT64", "DOUBLE": "FLOAT64", "BOOLEAN": "BOOL", "TEXT": "STRING",
    "VARCHAR": "STRING", "VARBINARY": "BYTES", "BINARY": "BYTES", "DATE": "DATE",
    "TIMESTAMPTZ": "TIMESTAMP", "TIMESTAMP": "DATETIME", "DATETIME": "DATETIME",
    "DECIMAL": "NUMERIC", "JSON": "JSON", "SMALLINT": "INT64", "TINYINT": "INT64",
}  # fmt: skip


def type_named(node: exp.Expr) -> Type:
    """Return the type that is written in a query.

    Raises:
        QueryError: Spark has no such type, or it has parameters.
    """
    name = node.this.value if isinstance(node.this, exp.DataType.Type) else str(node.this)
    if name == "ARRAY" and node.expressions:
        return array(type_named(node.expressions[0]))
    if name == "STRUCT":
        return struct(
            (item.name, type_named(item.args["kind"]))
            if isinstance(item, exp.ColumnDef)
            else ("", type_named(item))
            for item in node.expressions
        )
    if name not in TYPES:
        raise unsupported(f"the type {name}", node)
    if node.expressions:
        raise unsupported("a type with parameters", node)
    return Type(TYPES[name])


def _array(place: Place, node: exp.Expr) -> Value:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
        return place.work.subquery(place, node)
    return array_of([place.value(item) for item in node.expressions], node)


def named_struct(place: Place, items: list[exp.Expr], node: exp.Expr) -> Value:
    """Return a STRUCT of expressions, named by AS or by the column that they are.

    Raises:
        QueryError: it has no fields.
    """
    if not items:
        raise unsupported("a STRUCT without fields", node)
    names, parts, kinds = [], [], []
    for number, item in enumerate(items, 1):
        inner = item
        if isinstance(item, exp.Alias | exp.PropertyEQ):
            name, inner = (
                (item.alias, item.this)
                if isinstance(item, exp.Alias)
                else (item.this.name, item.expression)
            )
        else:
            name = item.name if isinstance(item, exp.Column | exp.Dot) else ""
        value = place.value(inner)
        names.append(name)
        kinds.append(value.type)
        spark = (name or f"_field_{number}").replace("\\", "\\\\").replace("'", "\\'")
        parts.append(f"'{spark}', {value.sql}")
    return Value(f"named_struct({', '.join(parts)})", struct(zip(names, kinds, strict=True)))


def _struct(place: Place, node: exp.Expr) -> Value:
    return named_struct(place, node.expressions, node)


def _bracket(place: Place, node: exp.Expr) -> Value:
    value = place.raw(node.this)
    if len(node.expressions) != 1 or value.type.element is None:
        raise unsupported(f"a subscript of {value.type.kind}", node)
    index = wanted(place.value(node.expressions[0]), INT64, node, "a subscript")
    start = int(node.args.get("offset") or 0)
    if node.args.get("safe"):
        template = "get({0}, CAST({1} AS INT))"
    else:
        template = (
            "CASE WHEN {1} < 0L OR {1} >= size({0}) THEN raise_error("
            "'an array index is out of bounds') ELSE get({0}, CAST({1} AS INT)) END"
        )
    place_sql = f"({index.sql} - {start}L)" if start else index.sql
    if index.constant is not None and isinstance(index.constant.value, int):
        place_sql = literal(index.constant.value - start).sql
    return Value(filled(template, [value.sql, place_sql]), value.type.element, None, value.origin)


def _dot(place: Place, node: exp.Expr) -> Value:
    call = node.expression
    if isinstance(call, exp.Anonymous):
        raise refusal(
            Code.UNKNOWN_FUNCTION,
            f"{node.this.sql('bigquery')[:40]}.{call.name} is no function",
            node,
        )
    value = place.raw(node.this)
    name = call.name
    found = field_of(value, name) if isinstance(call, exp.Identifier) else None
    if found is None:
        if value.type.kind == "JSON":
            raise unsupported("a field of JSON by its name (use JSON_VALUE)", node)
        raise refusal(Code.UNKNOWN_FIELD, f"{name!r} is no field of {value.type.kind}", call)
    return found


COMPOSITES: dict[type[exp.Expr], Rule] = {
    exp.DPipe: _concatenation,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: _array,
    exp.Struct: _struct,
    exp.Tuple: _struct,
    exp.Bracket: _bracket,
    exp.Dot: _dot,
}
