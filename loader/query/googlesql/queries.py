"""Queries of SELECT, WITH, set operations and brackets, as the text of a query for Spark.

**Invariant:** every clause of a query is translated or refused; none is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable
from loader.query.googlesql.conversions import coerced, same, supertype
from loader.query.googlesql.places import Place
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.scopes import Column, Scope
from loader.query.googlesql.selects import Select
from loader.query.googlesql.sorting import order_keys, ordinal
from loader.query.googlesql.sources import Answer, Named
from loader.query.googlesql.subqueries import subquery
from loader.query.googlesql.types import INT64, NULL, Type
from loader.query.googlesql.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loader.query.googlesql.places import Work
    from loader.query.googlesql.ranges import Ranges

SET_ARGS = {"with_", "with", "this", "expression", "distinct", "order", "limit", "offset"}


@dataclass(slots=True)
class Queries:
    """The translation of the queries of one question.

    Attributes:
        work: what the question's places share.
        ranges: what conditions leave of each reading.
    """

    work: Work
    ranges: Ranges

    def answer(self, node: exp.Query, around: Scope | None, names: Mapping[str, Named]) -> Answer:
        """Translate a query.

        Args:
            node: the query.
            around: the scope whose names it may use, of a subquery in an expression.
            names: the queries that WITH names around it.

        Raises:
            QueryError: it is not supported, or BigQuery would refuse it.
        """
        names = self._with(node, names)
        if isinstance(node, exp.Subquery):
            return self._bracketed(node, around, names)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, around, names)
        if not isinstance(node, exp.Select):
            raise unsupported(type(node).__name__, node)
        return Select(self, node, around, names).answer()

    def _with(self, node: exp.Query, names: Mapping[str, Named]) -> Mapping[str, Named]:
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return names
        if clause.args.get("recursive"):
            raise unsupported("WITH RECURSIVE", clause)
        found = dict(names)
        for item in clause.expressions:
            alias = item.args["alias"]
            if alias.columns or not isinstance(item.this, exp.Query):
                raise unsupported("this form of WITH", item)
            found[alias.name.lower()] = Named(item.this, dict(found))
        return found

    def _bracketed(
        self, node: exp.Subquery, around: Scope | None, names: Mapping[str, Named]
    ) -> Answer:
        inner = self.answer(node.this, around, names)
        order, limit = node.args.get("order"), self.limit(node)
        if order is None and not limit:
            return inner
        return self._sorted(inner, order, limit)

    def _sorted(self, inner: Answer, order: exp.Expr | None, limit: str) -> Answer:
        """Sort a query by the columns of its answer."""
        scope = Scope(aliases=inner.columns)
        place = Place(work=self.work, scope=scope)
        keys: list[str] = []
        for item in order.expressions if order is not None else []:
            value = ordinal(item.this, inner.columns) or place.value(item.this)
            keys += order_keys(value, item)
        clause = f" ORDER BY {', '.join(keys)}" if keys else ""
        return Answer(f"SELECT * FROM ({inner.sql}){clause}{limit}", inner.columns, False)  # noqa: S608 - its parts are translated

    def limit(self, node: exp.Expr) -> str:
        """Return LIMIT and OFFSET.

        Raises:
            QueryError: they are no numbers.
        """
        text = ""
        for key in ("limit", "offset"):
            clause = node.args.get(key)
            if clause is None:
                continue
            number = clause.expression
            if not isinstance(number, exp.Literal) or not str(number.this).isdigit():
                raise unsupported(f"{key.upper()} that is no number", clause)
            if int(str(number.this)) >= 2**31:
                if key == "offset":
                    raise unsupported("so great an OFFSET", clause)
                continue
            text += f" {key.upper()} {number.this}"
        return text

    def _set_operation(
        self, node: exp.SetOperation, around: Scope | None, names: Mapping[str, Named]
    ) -> Answer:
        for key, value in node.args.items():
            if value and key not in SET_ARGS:
                raise unsupported(f"{node.key.upper()} with {key.upper()}", node)
        sides = [self.answer(part, around, names) for part in (node.this, node.expression)]
        kinds = self._common(sides, node)
        distinct = bool(node.args.get("distinct"))
        if not distinct and not isinstance(node, exp.Union):
            raise unsupported(f"{node.key.upper()} ALL", node)
        if distinct:
            for kind in kinds:
                check_comparable(kind, node, f"{node.key.upper()} DISTINCT")
        word = f"{node.key.upper()} {'DISTINCT' if distinct else 'ALL'}"
        texts = [self._converted(side, kinds, sides[0].columns) for side in sides]
        columns = [
            Column(column.name, Value(column.value.sql, kind))
            for column, kind in zip(sides[0].columns, kinds, strict=True)
        ]
        correlated = any(side.correlated for side in sides)
        made = Answer(f"({texts[0]}) {word} ({texts[1]})", columns, False, correlated)
        order, limit = node.args.get("order"), self.limit(node)
        return made if order is None and not limit else self._sorted(made, order, limit)

    def _common(self, sides: list[Answer], node: exp.Expr) -> list[Type]:
        left, right = (side.columns for side in sides)
        if len(left) != len(right):
            message = f"the two queries have {len(left)} and {len(right)} columns"
            raise refusal(Code.ARGUMENT, message, node)
        kinds = []
        for one, other in zip(left, right, strict=True):
            kind = supertype([one.value, other.value])
            if kind is None:
                message = f"{one.value.type} and {other.value.type} have no common type"
                raise refusal(Code.TYPE, message, node)
            kinds.append(INT64 if kind == NULL else kind)
        return kinds

    def _converted(self, side: Answer, kinds: list[Type], names: list[Column]) -> str:
        """Return a query whose columns have the given types, and which reads them all."""
        parts, changed = [], False
        for column, kind, name in zip(side.columns, kinds, names, strict=True):
            self.work.use(column.value)
            value = coerced(column.value, kind)
            assert value is not None
            changed = changed or not same(column.value.type, kind)
            parts.append(f"{value.sql} AS {name.value.sql}")
        return f"SELECT {', '.join(parts)} FROM ({side.sql})" if changed else side.sql  # noqa: S608 - its parts are translated

    def in_expression(self, place: Place, node: exp.Expr) -> Value:
        """Translate a subquery in an expression: a value, EXISTS, ARRAY, or the array of IN.

        Raises:
            QueryError: it has a form that is not supported.
        """
        return subquery(self, place, node)
