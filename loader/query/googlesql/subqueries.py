"""Subqueries in expressions: a value, EXISTS, ARRAY, IN.

**Invariant:** a subquery over an array of the row around it becomes a function of the array, and
never reads a table; over tables, it may not name columns of the query around it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.composites import named_struct
from loader.query.googlesql.functions.aggregates import has_aggregates
from loader.query.googlesql.places import Place, PythonInLambda, field_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.scopes import Column, Scope, Source
from loader.query.googlesql.selects import select_parts
from loader.query.googlesql.sorting import split_key
from loader.query.googlesql.types import BOOL, INT64, array, same_kind
from loader.query.googlesql.values import Value, filled

if TYPE_CHECKING:
    from loader.query.googlesql.queries import Queries
    from loader.query.googlesql.types import Type

SIMPLE = {"expressions", "from_", "from", "where", "order", "limit", "kind"}


def subquery(queries: Queries, place: Place, node: exp.Expr) -> Value:
    """Translate a subquery in an expression.

    Raises:
        QueryError: it has a form that is not supported.
    """
    if isinstance(node, exp.In):
        query = node.args["query"]
        inner = query.this if isinstance(query, exp.Subquery) else query
        return _in(queries, place, node, inner)
    inner = node.expressions[0] if isinstance(node, exp.Array) else node.this
    while isinstance(inner, exp.Subquery) and not inner.args.get("limit"):
        inner = inner.this
    if not isinstance(inner, exp.Query):
        raise unsupported("this subquery", node)
    if isinstance(inner, exp.Select) and _over_array(inner, place):
        try:
            return _by_function(place, node, inner)
        except PythonInLambda:
            if place.lambdas:
                raise
    return _by_query(queries, place, node, inner)


def _over_array(select: exp.Select, place: Place) -> bool:
    """Say whether a subquery is no more than FROM UNNEST with WHERE, and gives rows in order."""
    del place
    if any(value and key not in SIMPLE for key, value in select.args.items()):
        return False
    first = select.args.get("from_") or select.args.get("from")
    if first is None or not isinstance(first.this, exp.Unnest) or first.this.args.get("joins"):
        return False
    order = select.args.get("order")
    offset = first.this.args.get("offset")
    named = offset.name.lower() if isinstance(offset, exp.Expr) else ""
    if order is not None:
        items = order.expressions
        plain = len(items) == 1 and isinstance(items[0].this, exp.Column)
        if not plain or items[0].args.get("desc") or items[0].this.name.lower() != named:
            return False
    return len(select.expressions) >= 1 and not any(
        has_aggregates(one) for one in select.expressions
    )


def _by_function(place: Place, node: exp.Expr, select: exp.Select) -> Value:
    """Translate by functions of arrays: filter, transform, exists."""
    first = select.args.get("from_") or select.args.get("from")
    assert first is not None
    unnest = first.this
    value = place.raw(unnest.expressions[0])
    if value.type.element is None:
        raise refusal(Code.TYPE, f"UNNEST needs an ARRAY, not {value.type}", unnest)
    place.work.handed_on(value)
    held = place.work.name()
    items, inner = _named_items(place, unnest, value, held)
    body = replace(place, scope=inner, keys=None, aggregates=False, windows=False, lambdas=True)
    where = select.args.get("where")
    if where is not None:
        condition = body.condition(where.this, "WHERE").sql
        if isinstance(node, exp.Exists):
            return Value(f"coalesce(exists({items}, {held} -> {condition}), false)", BOOL)
        items = f"filter({items}, {held} -> {condition})"
    elif isinstance(node, exp.Exists):
        return Value(f"coalesce(size({items}) > 0, false)", BOOL)
    found = _selected(body, select, node)
    made = items if found.sql == held else f"transform({items}, {held} -> {found.sql})"
    limit = select.args.get("limit")
    number = str(limit.expression.this) if limit is not None else ""
    if number and not number.isdigit():
        raise unsupported("LIMIT that is no number", select)
    if isinstance(node, exp.Array):
        made = f"slice({made}, 1, {number})" if number else made
        kind = array(found.type)
        return Value(f"coalesce({made}, CAST(array() AS {kind.spark}))", kind)
    if number == "1":
        return Value(f"get({made}, 0)", found.type)
    if number:
        raise unsupported("a subquery that may give several values", node)
    failing = (
        "CASE WHEN size({0}) > 1 THEN raise_error('a subquery gave several values') "
        "ELSE get({0}, 0) END"
    )
    return Value(filled(failing, [made]), found.type)


def _named_items(place: Place, unnest: exp.Unnest, value: Value, held: str) -> tuple[str, Scope]:
    """Return the array whose items the lambdas take, and the scope of their bodies."""
    kind = value.type.element
    assert kind is not None
    alias = unnest.args.get("alias")
    names = [part.name for part in alias.columns] if alias is not None else []
    names = names or ([alias.name] if alias is not None and alias.this is not None else [""])
    offset = unnest.args.get("offset")
    items, element = value.sql, Value(held, kind, None, value.origin)
    extra = []
    if offset is not None and offset is not False and _is_named(unnest, offset):
        items = f"transform({items}, (_x, _i) -> named_struct('v', _x, 'o', CAST(_i AS BIGINT)))"
        element = replace(element, sql=f"{held}.v")
        extra = [
            Column(
                offset.name if isinstance(offset, exp.Expr) else "offset", Value(f"{held}.o", INT64)
            )
        ]
    columns = [Column(names[0], element)]
    if kind.fields:
        columns = []
        for name, _ in kind.fields:
            sub = field_of(element, name) if name else None
            if sub is not None:
                columns.append(Column(name, sub))
    source = Source(names[0], [*columns, *extra], element)
    return items, Scope(sources=[source], around=place.scope, names=place.scope.names)


def _is_named(unnest: exp.Unnest, offset: exp.Expr | bool) -> bool:
    """Say whether the offset is read by something else than ORDER BY."""
    name = offset.name.lower() if isinstance(offset, exp.Expr) else "offset"
    select = unnest.find_ancestor(exp.Select)
    order = select.args.get("order") if select is not None else None
    inside = {id(part) for part in order.walk()} if order is not None else set()
    return select is not None and any(
        column.name.lower() == name and id(column) not in inside
        for column in select.find_all(exp.Column)
    )


def _selected(place: Place, select: exp.Select, node: exp.Expr) -> Value:
    kind, nodes = select.args.get("kind"), select.expressions
    if kind == "STRUCT":
        return named_struct(place, nodes, select)
    if kind is not None or len(nodes) != 1 or isinstance(nodes[0], exp.Star):
        raise unsupported("a subquery that has not one column", node)
    inner = nodes[0].this if isinstance(nodes[0], exp.Alias) else nodes[0]
    return place.value(inner)


def _by_query(queries: Queries, place: Place, node: exp.Expr, inner: exp.Query) -> Value:
    if place.lambdas:
        raise unsupported("a subquery in a subquery over an array", node)
    if isinstance(node, exp.Array):
        return _listed(queries, place, node, inner)
    answer = queries.answer(inner, place.scope, place.scope.names)
    correlated = _check(inner, place, answer.correlated, node)
    if isinstance(node, exp.Exists):
        if correlated and not _in_filter(node):
            raise unsupported("EXISTS of columns around it, outside of WHERE", node)
        return Value(f"EXISTS ({answer.sql})", BOOL)
    if len(answer.columns) != 1:
        raise refusal(Code.ARGUMENT, "a subquery in an expression has one column", node)
    value = queries.work.use(answer.columns[0].value)
    if correlated and not (isinstance(inner, exp.Select) and _is_one_row(inner)):
        raise unsupported("a subquery of columns around it that does not aggregate", node)
    return Value(f"({answer.sql})", value.type)


def _is_one_row(select: exp.Select) -> bool:
    group = select.args.get("group")
    return group is None and any(has_aggregates(one) for one in select.expressions)


def _check(inner: exp.Query, place: Place, correlated: bool, node: exp.Expr) -> bool:
    """Refuse a subquery over tables that names columns of the query around it."""
    if correlated and any(not _is_array(table, place) for table in inner.find_all(exp.Table)):
        raise unsupported("a subquery over a table that names columns of the query around it", node)
    return correlated


def _is_array(table: exp.Table, place: Place) -> bool:
    return len(table.parts) > 1 and place.scope.source(table.parts[0].name) is not None


def _in_filter(node: exp.Expr) -> bool:
    """Say whether an expression is one of the conditions of WHERE, joined by AND."""
    around = node.parent
    while isinstance(around, exp.And | exp.Paren):
        around = around.parent
    return isinstance(around, exp.Where)


def _in(queries: Queries, place: Place, node: exp.In, inner: exp.Query) -> Value:
    left = place.value(node.this)
    if _in_filter(node) and left.type.kind != "FLOAT64":
        answer = queries.answer(inner, place.scope, place.scope.names)
        if len(answer.columns) != 1:
            raise refusal(Code.ARGUMENT, "a subquery of IN has one column", node)
        value = queries.work.use(answer.columns[0].value)
        if same_kind(value.type, left.type):
            if answer.correlated:
                raise unsupported("a subquery of IN that names columns around it", node)
            return Value(f"({left.sql} IN ({answer.sql}))", BOOL)
    return _listed(queries, place, node, inner)


def _listed(queries: Queries, place: Place, node: exp.Expr, inner: exp.Query) -> Value:
    """Return the array of a subquery's rows, in its order."""
    if isinstance(inner, exp.Select):
        parts = select_parts(queries, inner, place.scope, place.scope.names)
        if len(parts.outputs) != 1:
            raise refusal(Code.ARGUMENT, "a subquery of ARRAY or IN has one column", node)
        value, keys = queries.work.use(parts.outputs[0].value), parts.keys
        correlated, limit = parts.correlated, parts.limit
        if parts.wrapped:
            raise unsupported("DISTINCT, QUALIFY or OFFSET in a subquery of ARRAY", node)
        hidden = [f"{split_key(key)[0]} AS _k{number}" for number, key in enumerate(keys)]
        ways = [split_key(key)[1] for key in keys]
        rows = f"SELECT {', '.join([f'{value.sql} AS _v', *hidden])}{parts.clauses}"
    else:
        answer = queries.answer(inner, place.scope, place.scope.names)
        if len(answer.columns) != 1:
            raise refusal(Code.ARGUMENT, "a subquery of ARRAY or IN has one column", node)
        value, ways, limit = queries.work.use(answer.columns[0].value), [], None
        correlated = answer.correlated
        rows = f"SELECT {value.sql} AS _v FROM ({answer.sql})"  # noqa: S608 - its parts are translated
    _check(inner, place, correlated, node)
    return _collected(value.type, rows, ways, limit, correlated, node)


def _collected(  # noqa: PLR0917 - the parts of one query
    kind: Type, rows: str, ways: list[str], limit: int | None, correlated: bool, node: exp.Expr
) -> Value:
    fields = [f"'k{number}', _k{number}" for number in range(len(ways))]
    if any(way != "ASC NULLS FIRST" for way in ways):
        if correlated:
            raise unsupported("this order in a subquery of columns around it", node)
        order = ", ".join(f"_k{number} {way}" for number, way in enumerate(ways))
        rows = f"SELECT _v, row_number() OVER (ORDER BY {order}) AS _n FROM ({rows})"  # noqa: S608 - its parts are translated
        fields = ["'k0', _n"]
    listed = f"collect_list(named_struct({', '.join([*fields, chr(39) + 'v' + chr(39) + ', _v'])}))"
    if fields:
        listed = f"sort_array({listed})"
    made = f"transform({listed}, _e -> _e.v)"
    if limit is not None:
        made = f"slice({made}, 1, {limit})"
    return Value(f"(SELECT {made} FROM ({rows}))", array(kind))  # noqa: S608 - its parts are translated
