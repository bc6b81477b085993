"""Rewrite PIVOT and UNPIVOT as ordinary queries ("PIVOT operator", "UNPIVOT operator").

**Invariant:** PIVOT groups by the columns that it does not name.  UNPIVOT returns the other
columns, the value and the name; rows with a NULL value only with INCLUDE NULLS.

These are errors: sources with unknown columns, values without a name, and aggregates that do not
ignore NULL.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from embedded.store.catalog import Table

AGGREGATES = (exp.Sum, exp.Count, exp.Avg, exp.Min, exp.Max, exp.AnyValue)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def without_pivots(tree: exp.Expr, tables: dict[str, Table]) -> None:
    """Replace every PIVOT and UNPIVOT of a resolved statement.

    Raises:
        ApiError: one of them has no equivalent query.
    """
    for node in list(tree.find_all(exp.Table, exp.Subquery)):
        pivots = node.args.get("pivots")
        if not pivots:
            continue
        if len(pivots) != 1:
            raise unsupported("Several PIVOT operators of one table")
        (pivot,) = pivots
        columns = _columns(node, tables)
        source = node.copy()
        source.set("pivots", None)
        source.set("joins", None)
        query = (_unpivot if pivot.args.get("unpivot") else _pivot)(pivot, source, columns)
        alias = pivot.args.get("alias") or node.args.get("alias")
        if alias is None:
            alias = exp.TableAlias(this=exp.to_identifier(node.alias_or_name or "_pivot"))
        node.replace(exp.Subquery(this=query, alias=alias.copy(), joins=node.args.get("joins")))


def _columns(node: exp.Expr, tables: dict[str, Table]) -> list[str]:
    key = node.meta.get("table")
    if key is not None:
        return [field.name for field in tables[key].fields]
    query = node.this if isinstance(node, exp.Subquery) else None
    if isinstance(query, exp.Select) and not any(item.is_star for item in query.expressions):
        names = [item.alias_or_name for item in query.expressions]
        if all(names):
            return names
    raise unsupported("PIVOT of a source whose columns are not named (name them in a subquery)")


def _pivot(pivot: exp.Expr, source: exp.Expr, columns: list[str]) -> exp.Select:
    (field,) = pivot.args["fields"]
    aggregates = pivot.expressions
    if len(aggregates) > 1 and not all(isinstance(item, exp.Alias) for item in aggregates):
        raise invalid("PIVOT with several aggregates needs an alias for each")
    used = {column.name.lower() for item in aggregates for column in item.find_all(exp.Column)}
    used |= {column.name.lower() for column in field.this.find_all(exp.Column)}
    kept = [exp.column(name, quoted=True) for name in columns if name.lower() not in used]
    made: list[exp.Expr] = []
    for item in field.expressions:
        value, name = _value(item)
        for aggregate in aggregates:
            is_named = isinstance(aggregate, exp.Alias)
            shown = f"{aggregate.alias}_{name}" if is_named else name
            bare = aggregate.this if is_named else aggregate
            made.append(exp.alias_(_only(bare, field.this, value), shown, quoted=True))
    select = exp.Select(expressions=[*kept, *made]).from_(source)
    if kept:
        select.set("group", exp.Group(expressions=[column.copy() for column in kept]))
    return select


def _value(item: exp.Expr) -> tuple[exp.Expr, str]:
    if isinstance(item, exp.PivotAlias):
        return item.this, item.args["alias"].name
    if isinstance(item, exp.Literal) and item.is_string and _PLAIN.fullmatch(item.name):
        return item, item.name
    raise unsupported(f"A value of PIVOT without an alias ({item.sql('bigquery')[:40]})")


def _only(aggregate: exp.Expr, key: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return the aggregate over the rows that have one value of the pivot column."""
    if not isinstance(aggregate, AGGREGATES):
        raise unsupported(f"PIVOT with {aggregate.key.upper()}")
    here = exp.EQ(this=key.copy(), expression=value.copy())
    if isinstance(aggregate, exp.Count) and isinstance(aggregate.this, exp.Star):
        return exp.CountIf(this=here)
    after = aggregate.copy()
    inner = after.this
    holder = inner if isinstance(inner, exp.Distinct) else None
    bare = holder.expressions[0] if holder is not None else inner
    chosen = exp.If(this=here, true=bare.copy(), false=exp.null())
    bare.replace(chosen)
    return after


def _unpivot(pivot: exp.Expr, source: exp.Expr, columns: list[str]) -> exp.Expr:
    (field,) = pivot.args["fields"]
    (value,) = pivot.expressions
    if not isinstance(value, exp.Identifier):
        raise unsupported("UNPIVOT of several columns at once")
    named = []
    for item in field.expressions:
        column = item.this if isinstance(item, exp.PivotAlias) else item
        label = item.args["alias"] if isinstance(item, exp.PivotAlias) else None
        if not isinstance(column, exp.Column):
            raise unsupported("UNPIVOT of several columns at once")
        if label is not None and not (isinstance(label, exp.Literal) and label.is_string):
            raise unsupported("UNPIVOT with a name that is no STRING")
        named.append((column.name, label.name if label is not None else column.name))
    gone = {name.lower() for name, _ in named}
    kept = [name for name in columns if name.lower() not in gone]
    selects = []
    for column, label in named:
        items = [exp.column(name, quoted=True) for name in kept]
        own = exp.column(column, quoted=True)
        select = exp.Select(
            expressions=[
                *items,
                exp.alias_(own, value.name, quoted=True),
                exp.alias_(exp.Literal.string(label), field.this.name, quoted=True),
            ]
        ).from_(source.copy())
        if not pivot.args.get("include_nulls"):
            select = select.where(own.copy().is_(exp.null()).not_())
        selects.append(select)
    union: exp.Expr = selects[0]
    for select in selects[1:]:
        union = exp.Union(this=union, expression=select, distinct=False)
    return union
