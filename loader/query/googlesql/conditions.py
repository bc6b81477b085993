"""Conditions, and what is chosen by them: AND, comparisons, IN, LIKE, IS, IF and CASE.

**Invariant:** what is NULL by BigQuery's rules is NULL here: a comparison with NULL, and IN where
no value is equal and one is NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import OPERATORS, compared, distinct, like, member
from loader.query.googlesql.conversions import coerced, supertype, unified, wanted
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.types import BOOL, FLOAT64, NULL
from loader.query.googlesql.values import Value, filled, literal

if TYPE_CHECKING:
    from loader.query.googlesql.places import Place, Rule


def _logic(word: str) -> Rule:
    def rule(place: Place, node: exp.Expr) -> Value:
        # A chain of ANDs is as deep as it is long.
        parts = [place.condition(part, f"an operand of {word}").sql for part in _chain(node)]
        return Value(f"({f' {word} '.join(parts)})", BOOL)

    return rule


def _chain(node: exp.Expr) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    kind, left = type(node), node
    while type(left) is kind:
        parts.append(left.args["expression"])
        left = left.this
    return [left, *reversed(parts)]


def _not(place: Place, node: exp.Expr) -> Value:
    return Value(f"(NOT {place.condition(node.this, 'the operand of NOT').sql})", BOOL)


def _comparison(place: Place, node: exp.Expr) -> Value:
    operator = OPERATORS[type(node).__name__]
    return compared(operator, place.value(node.this), place.value(node.expression), node)


def _distinct(place: Place, node: exp.Expr) -> Value:
    values = place.value(node.this), place.value(node.expression)
    return distinct(*values, node, negated=isinstance(node, exp.NullSafeEQ))


def _between(place: Place, node: exp.Expr) -> Value:
    value = place.value(node.this)
    low = compared(">=", value, place.value(node.args["low"]), node)
    high = compared("<=", value, place.value(node.args["high"]), node)
    return Value(f"({low.sql} AND {high.sql})", BOOL)


def _is(place: Place, node: exp.Expr) -> Value:
    value, what = place.value(node.this), node.expression
    negated = "NOT " if node.args.get("negate") else ""
    if isinstance(what, exp.Null):
        return Value(f"({value.sql} IS {negated}NULL)", BOOL)
    if isinstance(what, exp.Boolean):
        checked = wanted(value, BOOL, node, "the operand of IS TRUE")
        return Value(f"({checked.sql} IS {negated}{'TRUE' if what.this else 'FALSE'})", BOOL)
    raise unsupported("this form of IS", node)


def _in(place: Place, node: exp.Expr) -> Value:
    left = place.value(node.this)
    if node.args.get("query") is not None:
        found = place.work.subquery(place, node)
        return found if found.type == BOOL else in_array(left, found, node)
    if node.args.get("unnest") is not None:
        (inner,) = node.args["unnest"].expressions
        return in_array(left, place.value(inner), node)
    if node.args.get("field") is not None:
        raise unsupported("this form of IN", node)
    values = [place.value(item) for item in node.expressions]
    if not values:
        raise refusal(Code.SYNTAX, "IN needs at least one value", node)
    return member(left, values, node)


def in_array(left: Value, items: Value, node: exp.Expr) -> Value:
    """Say whether an array has a value; false for a NULL array.

    Raises:
        QueryError: the types do not fit.
    """
    if items.type.element is None:
        raise refusal(Code.TYPE, f"IN UNNEST needs an ARRAY, not {items.type}", node)
    element = Value("x", items.type.element)
    kind = supertype([Value(left.sql, left.type, left.constant), element])
    if kind is None or items.type.element not in {kind, NULL}:
        raise refusal(Code.TYPE, f"{left.type} is not compared with {items.type.element}", node)
    found = coerced(left, kind)
    assert found is not None
    if kind == FLOAT64 and node.args.get("query") is not None:
        raise unsupported("FLOAT64 IN a subquery", node)
    if kind == FLOAT64:
        template = "coalesce(exists({1}, _x -> _x = {0} AND NOT isnan(_x)), false)"
        return Value(f"({filled(template, [found.sql, items.sql])})", BOOL)
    # Spark's rule for NULL among the elements is that of IN.
    made = "coalesce(arrays_overlap({1}, array({0})), CASE WHEN {1} IS NULL THEN false END)"
    return Value(filled(made, [found.sql, items.sql]), BOOL)


def _like(place: Place, node: exp.Expr) -> Value:
    found = like(place.value(node.this), place.value(node.expression), node)
    return Value(f"(NOT {found.sql})", BOOL) if node.args.get("negate") else found


def _if(place: Place, node: exp.Expr) -> Value:
    condition = place.condition(node.this, "the condition of IF")
    yes = place.value(node.args["true"])
    no = node.args.get("false")
    if no is None:
        raise refusal(Code.ARGUMENT, "IF has three arguments", node)
    yes, other = unified([yes, place.value(no)], node, "the values of IF")
    return Value(f"CASE WHEN {condition.sql} THEN {yes.sql} ELSE {other.sql} END", yes.type)


def _case(place: Place, node: exp.Expr) -> Value:
    subject = place.value(node.this) if node.this is not None else None
    conditions, values = [], []
    for branch in node.args["ifs"]:
        if subject is None:
            conditions.append(place.condition(branch.this, "WHEN").sql)
        else:
            conditions.append(compared("=", subject, place.value(branch.this), branch).sql)
        values.append(place.value(branch.args["true"]))
    default = node.args.get("default")
    values.append(place.value(default) if default is not None else literal(None))
    values = unified(values, node, "the values of CASE")
    whens = [
        f"WHEN {condition} THEN {value.sql}"
        for condition, value in zip(conditions, values, strict=False)
    ]
    return Value(f"CASE {' '.join(whens)} ELSE {values[-1].sql} END", values[-1].type)


CONDITIONS: dict[type[exp.Expr], Rule] = {
    exp.And: _logic("AND"),
    exp.Or: _logic("OR"),
    exp.Not: _not,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _comparison),
    exp.NullSafeEQ: _distinct,
    exp.NullSafeNEQ: _distinct,
    exp.Between: _between,
    exp.Is: _is,
    exp.In: _in,
    exp.Like: _like,
    exp.If: _if,
    exp.Case: _case,
}
