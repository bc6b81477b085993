"""Comparison and order of values that may be NaN, their MIN and MAX, and equality of STRUCTs.

**Invariant:** NaN equals nothing, is neither smaller nor greater than anything, comes after NULL
and before -inf in an order, and is the MIN of what it is among ("Operators", "ORDER BY").
In DuckDB, NaN equals itself and is the greatest value.

These are errors: equality of STRUCTs that are not constructors, because DuckDB treats their NULLs
as equal, and ORDER BY after DISTINCT by an expression that is not an output.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.duck import call, duck
from embedded.functions.kinds import is_float, may_be
from embedded.model.errors import ApiError, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

BODIES: dict[str, tuple[str, str]] = {
    "bq_nan": ("v", "(typeof(v) = 'DOUBLE' AND CAST(v AS VARCHAR) IN ('nan', '-nan'))"),
    "bq_eq": ("a, b", "CASE WHEN bq_nan(a) AND bq_nan(b) THEN FALSE ELSE a = b END"),
    "bq_ne": ("a, b", "CASE WHEN bq_nan(a) AND bq_nan(b) THEN TRUE ELSE a <> b END"),
    "bq_nan_key": (
        "v, l",
        "CASE WHEN v IS NULL THEN CASE WHEN l THEN 3 ELSE 0 END WHEN bq_nan(v) THEN 1 ELSE 2 END",
    ),
    "bq_sorted_values_up": ("l", "list_sort(l, 'ASC', 'NULLS FIRST')"),
    "bq_sorted_values_down": ("l", "list_sort(l, 'DESC', 'NULLS LAST')"),
    # NaN is less than any other number ("Data types: floating point"), in DuckDB greater.
    "bq_sorted_floats_up": (
        "l",
        (
            "list_filter(l, lambda e: e IS NULL) || list_filter(l, lambda e: bq_nan(e)) || "
            "list_sort(list_filter(l, lambda e: NOT bq_nan(e) AND e IS NOT NULL))"
        ),
    ),
    "bq_sorted_floats_down": ("l", "list_reverse(bq_sorted_floats_up(l))"),
}
# DuckDB's result is wrong only if the NaN is on the side that must be greater for TRUE.
GREATER: dict[type[exp.Expr], str] = {
    exp.LT: "expression",
    exp.LTE: "expression",
    exp.GT: "this",
    exp.GTE: "this",
}


def equal(node: exp.Expr) -> exp.Expr:
    """Rewrite =: STRUCTs are compared field by field, and NaN equals nothing."""
    if isinstance(node.parent, exp.Update):  # SET x = …
        return node
    left, right = node.this, node.expression
    negated = isinstance(node, exp.NEQ)
    fields = _fields(left), _fields(right)
    if fields[0] is not None and fields[1] is not None:
        same = _all_equal(fields[0], fields[1])
        return exp.Paren(this=exp.Not(this=same)) if negated else same
    if may_be(left) == frozenset({"STRUCT"}) or may_be(right) == frozenset({"STRUCT"}):
        raise unsupported("Equality of STRUCTs other than constructors (compare their fields)")
    if is_float(left) and is_float(right):
        return call("bq_ne" if negated else "bq_eq", left, right)
    return node


def _fields(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the fields of a STRUCT constructor; None for another expression."""
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Struct | exp.Tuple):
        return [
            item.expression if isinstance(item, exp.PropertyEQ) else item
            for item in node.expressions
        ]
    return None


def _all_equal(left: list[exp.Expr], right: list[exp.Expr]) -> exp.Expr:
    if len(left) != len(right):
        raise ApiError(
            "invalidQuery",
            "No matching signature for operator = for argument types: STRUCT, STRUCT",
        )
    pairs = [
        equal(exp.EQ(this=a.copy(), expression=b.copy())) for a, b in zip(left, right, strict=True)
    ]
    return exp.Paren(this=exp.and_(*pairs, copy=False))


def unequal(node: exp.Expr) -> exp.Expr:
    """Rewrite <, <=, > and >=: FALSE if an operand is NaN, NULL if one is NULL."""
    side = node.args[GREATER[type(node)]]
    if not is_float(side):
        return node
    return duck(
        "CASE WHEN bq_nan(:s) AND NOT (:a IS NULL OR :b IS NULL) THEN FALSE ELSE :whole END",
        s=side, a=node.this, b=node.expression, whole=exp.Paren(this=node.copy()),
    )  # fmt: skip


def between(node: exp.Expr) -> exp.Expr:
    """Rewrite BETWEEN: FALSE if a bound is NaN."""
    high = node.args["high"]
    if not is_float(high):
        return node
    return duck("CASE WHEN bq_nan(:h) THEN FALSE ELSE :whole END", h=high, whole=node.copy())


def within(node: exp.Expr) -> exp.Expr:
    """Rewrite IN: NaN is in no list, and STRUCTs are compared field by field."""
    value = node.this
    fields = _fields(value)
    if fields is not None and node.expressions:
        each = []
        for item in node.expressions:
            others = _fields(item)
            if others is None:
                raise unsupported("A STRUCT in a list of expressions that are no STRUCTs")
            each.append(_all_equal(fields, others))
        return exp.Paren(this=exp.or_(*each, copy=False))
    if fields is not None or may_be(value) == frozenset({"STRUCT"}):
        raise unsupported("A STRUCT in a subquery or an array (use EXISTS)")
    plain = node.expressions and all(not is_float(item) for item in node.expressions)
    if plain or not is_float(value):
        return node
    return duck("CASE WHEN bq_nan(:v) THEN FALSE ELSE :whole END", v=value, whole=node.copy())


def nullif(node: exp.Expr) -> exp.Expr:
    """Rewrite NULLIF with GoogleSQL's equality."""
    left, right = node.this, node.expression
    if not (is_float(left) and is_float(right)):
        return node
    return duck("CASE WHEN bq_eq(:a, :b) THEN NULL ELSE :a END", a=left, b=right)


def case(node: exp.Expr) -> exp.Expr:
    """Rewrite `CASE x WHEN y` with GoogleSQL's equality."""
    value = node.this
    branches = node.args["ifs"]
    if not value or not is_float(value) or not any(is_float(each.this) for each in branches):
        return node
    ifs = [
        exp.If(this=call("bq_eq", value.copy(), each.this.copy()), true=each.args["true"].copy())
        for each in branches
    ]
    return exp.Case(ifs=ifs, default=node.args.get("default"))


def least(node: exp.Expr) -> exp.Expr:
    """Rewrite LEAST: NaN if an argument is NaN; DuckDB's GREATEST needs no rewriting."""
    items = [node.this, *node.expressions]
    if not any(is_float(item) for item in items):
        return node
    tests = exp.or_(*(call("bq_nan", item.copy()) for item in items), copy=False)
    greatest = exp.Greatest(this=items[0].copy(), expressions=[i.copy() for i in items[1:]])
    return duck(
        "CASE WHEN :tests THEN :greatest ELSE :whole END",
        tests=tests, greatest=greatest, whole=node.copy(),
    )  # fmt: skip


def smallest(node: exp.Expr) -> exp.Expr:
    """Rewrite MIN: NaN if a value is NaN; DuckDB's MAX needs no rewriting."""
    over = node.parent if isinstance(node.parent, exp.Window) else None
    if over is not None or not is_float(node.this):
        return node
    return _smallest(node, exp.LogicalOr(this=call("bq_nan", node.this.copy())))


def window(node: exp.Expr) -> exp.Expr:
    """Rewrite MIN(x) OVER (…) as a whole."""
    if not isinstance(node.this, exp.Min) or not is_float(node.this.this):
        return node
    test = node.copy()
    test.set("this", exp.LogicalOr(this=call("bq_nan", node.this.this.copy())))
    return _smallest(node, test)


def _smallest(node: exp.Expr, test: exp.Expr) -> exp.Expr:
    """Return MAX if there is a NaN, which is DuckDB's greatest value; else MIN."""
    greatest = node.copy()
    if isinstance(greatest, exp.Window):
        greatest.set("this", exp.Max(this=greatest.this.this.copy()))
    else:
        greatest = exp.Max(this=node.this.copy())
    return duck(
        "CASE WHEN :test THEN :greatest ELSE :whole END",
        test=test, greatest=greatest, whole=node.copy(),
    )  # fmt: skip


def order(node: exp.Expr) -> exp.Expr:
    """Rewrite ORDER BY x: first by NULL, NaN or number, then by x."""
    keys: list[exp.Expr] = []
    for item in node.expressions:
        value = _value(item)
        if isinstance(item, exp.Ordered) and value is not None:
            last = _nulls_last(item)
            first = item.copy()
            key = call("bq_nan_key", value.copy(), exp.true() if last else exp.false())
            first.set("this", key)
            first.set("nulls_first", True)
            keys.append(first)
        keys.append(item)
    if len(keys) != len(node.expressions):
        node.set("expressions", keys)
    return node


def _nulls_last(item: exp.Ordered) -> bool:
    """Say whether NULL comes after all values in the order of the keys."""
    descending = bool(item.args.get("desc"))
    first = bool(item.args.get("nulls_first"))
    return descending == first


def _value(item: exp.Expr) -> exp.Expr | None:
    """Return the expression to order by if it may be FLOAT64; a name or number means an output."""
    value: exp.Expr = item.this
    found = item.parent.parent if item.parent is not None else None
    if isinstance(found, exp.Select) and (
        (isinstance(value, exp.Literal) and value.is_int)
        or (isinstance(value, exp.Column) and not value.table)
    ):
        value = _output(value, found)
    kinds = may_be(value)
    if isinstance(value, exp.Literal) or (kinds is not None and "FLOAT64" not in kinds):
        return None
    if found is not None and _orders_outputs(found):
        return None  # `outputs` rewrites it
    return value


def _orders_outputs(query: exp.Expr) -> bool:
    """Say whether DuckDB can order a query only by its outputs."""
    return isinstance(query, exp.SetOperation | exp.Subquery) or bool(
        isinstance(query, exp.Select) and query.args.get("distinct")
    )


def outputs(node: exp.Expr) -> exp.Expr:
    """Rewrite ORDER BY after DISTINCT or a set operation: order a subquery by keys of outputs."""
    found = node.args.get("order")
    if found is None or not _orders_outputs(node):
        return node
    first: exp.Expr = node
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    inner = node.copy()
    around = {key: inner.args[key].pop() for key in ("limit", "offset") if inner.args.get(key)}
    inner.args.pop("order")
    keys = []
    for item in found.expressions:
        value = _from_outside(item.this, first.expressions)
        last = exp.true() if _nulls_last(item) else exp.false()
        key = call("bq_nan_key", value.copy(), last)
        keys.append(exp.Ordered(this=key, desc=item.args.get("desc"), nulls_first=True))
        keys.append(exp.Ordered(**{**item.args, "this": value}))
    ordered = exp.Order(expressions=keys)
    return exp.Select(
        expressions=[exp.Star()],
        from_=exp.From(this=inner if isinstance(inner, exp.Subquery) else exp.Subquery(this=inner)),
        order=ordered,
        **around,
    )


def _from_outside(value: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """Return an expression over a query's outputs, as it must be written outside of the query."""
    if isinstance(value, exp.Literal) and value.is_int:
        return exp.PositionalColumn(this=value.copy())
    before_star = list(itertools.takewhile(lambda item: not item.is_star, items))
    for place, item in enumerate(before_star, 1):
        is_name = isinstance(value, exp.Column) and not value.table
        if value == item.unalias() or (
            is_name and item.alias_or_name.lower() == value.name.lower()
        ):
            return exp.PositionalColumn(this=exp.Literal.number(place))
    if isinstance(value, exp.Column):
        if len(before_star) == len(items):
            raise unsupported(
                f"ORDER BY {value.sql('bigquery')} after DISTINCT or a set operation, whose columns"
                " have other names"
            )
        return exp.column(value.name, quoted=True)
    outside = value.copy()
    for column in list(outside.find_all(exp.Column)):
        column.replace(_from_outside(column, items))
    return outside


def _output(value: exp.Expr, select: exp.Select) -> exp.Expr:
    if isinstance(value, exp.Literal):
        place = int(value.name) - 1
        if not 0 <= place < len(select.expressions):
            return value
        found: exp.Expr = select.expressions[place]
        return found.unalias()
    for item in select.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == value.name.lower():
            return item.unalias()
    return value


RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.EQ: equal,
    exp.NEQ: equal,
    **dict.fromkeys(GREATER, unequal),
    exp.Between: between,
    exp.In: within,
    exp.Nullif: nullif,
    exp.Case: case,
    exp.Least: least,
    exp.Min: smallest,
    exp.Window: window,
    exp.Order: order,
    **dict.fromkeys((exp.Select, exp.Subquery, exp.Union, exp.Except, exp.Intersect), outputs),
}
