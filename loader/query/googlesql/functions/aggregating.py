"""The call of an aggregate function: its arguments, and what modifies it.

**Invariant:** a template has `{over}` after each aggregate of Spark, so that one rule serves for
groups and for windows; a modifier that a function does not have is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.googlesql.positions import unsupported
from loader.query.googlesql.values import Value, written

if TYPE_CHECKING:
    from collections.abc import Callable

    from loader.query.googlesql.functions.calls import Call
    from loader.query.googlesql.types import Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Modifiers:
    """What may stand in the brackets of an aggregate function beside its arguments.

    Attributes:
        distinct: DISTINCT.
        ignore_nulls: IGNORE NULLS.
        order: the items of ORDER BY.
        limit: the number of LIMIT.
        having: the expression of HAVING MAX or MIN, and whether it is MAX.
    """

    distinct: bool = False
    ignore_nulls: bool = False
    order: tuple[exp.Expr, ...] = ()
    limit: int | None = None
    having: tuple[exp.Expr, bool] | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A call of an aggregate function, its arguments without what modifies them.

    Attributes:
        call: the call.
        modifiers: what modifies it.
        over: Spark's `OVER (…)`, or nothing.
    """

    call: Call
    modifiers: Modifiers
    over: str = ""

    def made(self, template: str, kind: Type, *values: str) -> Value:
        """Fill a template, in which `{over}` stands after each aggregate.

        Its operands are not named, however long they are: no aggregate can stand in a lambda.
        """
        return Value(written(template.replace("{over}", self.over), values), kind)

    def plain(self, *allowed: str) -> None:
        """Refuse modifiers that the function does not have.

        Raises:
            QueryError: there is one.
        """
        for name, value in (
            ("distinct", self.modifiers.distinct),
            ("ignore_nulls", self.modifiers.ignore_nulls),
            ("order", self.modifiers.order),
            ("limit", self.modifiers.limit is not None),
            ("having", self.modifiers.having),
        ):
            if value and name not in allowed:
                what = name.replace("_", " ").upper()
                raise self.call.unsupported(f"{self.call.name} with {what}")
        if self.modifiers.distinct and self.over:
            raise self.call.unsupported("DISTINCT over a window")


def opened(call: Call) -> tuple[list[exp.Expr], Modifiers]:
    """Take what modifies a call off its arguments.

    Raises:
        QueryError: LIMIT is no number.
    """
    nodes: list[exp.Expr] = []
    found = Modifiers()
    for node in call.nodes:
        inner, found = _opened(node, found)
        if isinstance(inner, exp.Distinct):
            found = replace(found, distinct=True)
            for part in inner.expressions:
                # After a call SQLGlot takes IGNORE NULLS for a part of it.
                bare, found = _opened(part, found)
                nodes.append(bare)
        else:
            nodes.append(inner)
    return nodes, found


def _opened(node: exp.Expr, found: Modifiers) -> tuple[exp.Expr, Modifiers]:
    while True:
        if isinstance(node, exp.Limit):
            number = node.expression
            if not isinstance(number, exp.Literal) or not str(number.this).isdigit():
                raise unsupported("a LIMIT that is no number", node)
            found = replace(found, limit=int(str(number.this)))
        elif isinstance(node, exp.Order):
            found = replace(found, order=tuple(node.expressions))
        elif isinstance(node, exp.IgnoreNulls):
            found = replace(found, ignore_nulls=True)
        elif isinstance(node, exp.HavingMax):
            found = replace(found, having=(node.expression, bool(node.args.get("max"))))
        elif not isinstance(node, exp.RespectNulls):
            return node, found
        if node.this is None:
            raise unsupported("this form of an aggregate function", node)
        node = node.this


if TYPE_CHECKING:
    Rule = Callable[[Aggregate], Value]
