"""SELECT: its columns, groups, and the order of its rows.

**Invariant:** every clause is translated or refused; none is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable
from loader.query.googlesql.functions.aggregates import has_aggregates
from loader.query.googlesql.items import items_of
from loader.query.googlesql.places import Place
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.ranges import narrow
from loader.query.googlesql.scopes import Column, Scope
from loader.query.googlesql.sorting import order_keys, ordinal, split_key
from loader.query.googlesql.sources import Answer, From, Named
from loader.query.googlesql.types import quoted, struct
from loader.query.googlesql.values import Origin, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loader.query.googlesql.items import Item
    from loader.query.googlesql.queries import Queries

SELECT_ARGS = {
    "with_", "with", "kind", "expressions", "distinct", "from_", "from", "joins", "where", "group",
    "having", "qualify", "order", "limit", "offset",
}  # fmt: skip
GROUP_ARGS = {"expressions", "all"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A SELECT before its rows are sorted.

    Attributes:
        clauses: FROM, WHERE, GROUP BY and HAVING.
        outputs: the columns of its answer, as expressions.
        keys: Spark's keys of ORDER BY.
        limit: the number of LIMIT.
        correlated: whether it names columns of the query around it.
        wrapped: whether it has clauses besides these.
    """

    clauses: str
    outputs: list[Column]
    keys: list[str]
    limit: int | None
    correlated: bool
    wrapped: bool


def select_parts(
    queries: Queries, node: exp.Select, around: Scope | None, names: Mapping[str, Named]
) -> Parts:
    """Translate a SELECT whose rows become an array.

    Raises:
        QueryError: it is not supported, or BigQuery would refuse it.
    """
    if node.args.get("with_") or node.args.get("with"):
        raise unsupported("WITH in a subquery of ARRAY", node)
    return Select(queries, node, around, names).parts()


class Select:
    """One SELECT as it is translated.

    Args:
        queries: translates the queries in it.
        node: the SELECT.
        around: the scope whose names it may use, of a subquery in an expression.
        names: the queries that WITH names.

    Raises:
        QueryError: it has a clause that is not supported.
    """

    def __init__(
        self,
        queries: Queries,
        node: exp.Select,
        around: Scope | None,
        names: Mapping[str, Named],
    ) -> None:
        for key, value in node.args.items():
            if value and key not in SELECT_ARGS:
                raise unsupported(f"SELECT with {key.rstrip('_').upper()}", node)
        self.queries, self.node, self.names = queries, node, names
        self.scope = Scope(around=around, names=names)
        self.place = Place(work=queries.work, scope=self.scope)
        self.grouped = False

    def answer(self) -> Answer:
        """Translate it, with the order and the limit of its rows.

        Raises:
            QueryError: it is not supported, or BigQuery would refuse it.
        """
        clauses, outputs, place = self._clauses()
        answer = self._put_together(clauses, outputs, place)
        return replace(answer, correlated=self.scope.correlated)

    def parts(self) -> Parts:
        """Translate for ARRAY, which sorts and limits by itself."""
        clauses, outputs, place = self._clauses()
        if self.node.args.get("kind") == "STRUCT":
            outputs = [self._as_struct(outputs)]
        keys = self._order(place, outputs, outputs, distinct=False)
        text = self.queries.limit(self.node).removeprefix(" LIMIT ")
        wrapped = any(self.node.args.get(key) for key in ("distinct", "qualify", "offset"))
        return Parts(
            clauses=clauses,
            outputs=outputs,
            keys=keys,
            limit=int(text) if text.isdigit() else None,
            correlated=self.scope.correlated,
            wrapped=wrapped,
        )

    def _clauses(self) -> tuple[str, list[Column], Place]:
        source = From(self.place, self.names, self.queries.answer)
        source.read(self.node)
        where = self._where()
        items = items_of(self.place, self.node)
        keys = self._keys(items)
        self.grouped = keys is not None
        place = replace(
            self.place,
            keys=frozenset(keys) if keys is not None else None,
            aggregates=True,
            windows=True,
        )
        outputs = [self._output(item, place) for item in items]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = self._having(place, outputs)
        clauses = f"{f' FROM {source.sql}' if source.sql else ''}{where}{group}{having}"
        return clauses, outputs, place

    def _where(self) -> str:
        clause = self.node.args.get("where")
        if clause is None:
            return ""
        condition = self.place.condition(clause.this, "WHERE")
        narrow(self.queries.ranges, self.place, clause.this)
        return f" WHERE {condition.sql}"

    def _has_aggregates(self) -> bool:
        clauses = (self.node.args.get(key) for key in ("having", "qualify", "order"))
        parts = [*self.node.expressions, *(one for one in clauses if one is not None)]
        return self.node.args.get("having") is not None or any(
            has_aggregates(part) for part in parts
        )

    def _keys(self, items: list[Item]) -> list[str] | None:
        """Return the keys of GROUP BY; None if there are no groups."""
        group = self.node.args.get("group")
        if group is None:
            return [] if self._has_aggregates() else None
        for key, value in group.args.items():
            if value and key not in GROUP_ARGS:
                raise unsupported(f"GROUP BY with {key.upper()}", group)
        nodes: list[exp.Expr] = list(group.expressions)
        if group.args.get("all"):
            nodes = [
                item.node for item in items if item.column is None and not has_aggregates(item.node)
            ]
        keys = []
        for node in nodes:
            value = self._key(node, items)
            check_comparable(value.type, node, "GROUP BY")
            keys.append(value.sql)
        return keys

    def _key(self, node: exp.Expr, items: list[Item]) -> Value:
        if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
            place = int(str(node.this))
            if not 1 <= place <= len(items):
                raise refusal(Code.ARGUMENT, f"there is no column {place}", node)
            return self._item_key(items[place - 1])
        if isinstance(node, exp.Column) and len(node.parts) == 1:
            named = [item for item in items if item.name.lower() == node.name.lower()]
            if named and not self.scope.columns(node.name):
                return self._item_key(named[0])
        return self.place.value(node)

    def _item_key(self, item: Item) -> Value:
        if item.column is not None:
            return self.queries.work.use(item.column.value)
        return self.place.value(item.node)

    def _output(self, item: Item, place: Place) -> Column:
        if item.column is None:
            return Column(item.name, place.raw(item.node))
        value = item.column.value
        if place.keys is not None and value.sql not in place.keys:
            message = f"{item.name} is neither grouped nor aggregated"
            raise refusal(Code.ARGUMENT, message, item.node)
        return Column(item.name, value)

    def _aliases(self, outputs: list[Column]) -> Scope:
        """Return the scope of HAVING, QUALIFY and ORDER BY, which may name the answer's columns."""
        return replace(self.scope, aliases=[column for column in outputs if column.name])

    def _having(self, place: Place, outputs: list[Column]) -> str:
        clause = self.node.args.get("having")
        if clause is None:
            return ""
        if not self.grouped:
            raise refusal(Code.ARGUMENT, "HAVING needs GROUP BY", clause)
        inner = replace(place, scope=self._aliases(outputs), windows=False)
        return f" HAVING {inner.condition(clause.this, 'HAVING').sql}"

    def _put_together(self, clauses: str, outputs: list[Column], place: Place) -> Answer:
        """Add DISTINCT, QUALIFY, ORDER BY and LIMIT; those that need it, around a subquery."""
        distinct = self.node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise unsupported("DISTINCT ON", distinct)
        if self.node.args.get("kind") not in {None, "STRUCT"}:
            raise unsupported(f"SELECT AS {self.node.args['kind']}", self.node)
        if self.node.args.get("kind") == "STRUCT":
            outputs = [self._as_struct(outputs)]
        answers = self._physical(outputs, consumed=distinct is not None)
        selected = [
            f"{output.value.sql} AS {column.value.sql}"
            for output, column in zip(outputs, answers, strict=True)
        ]
        if distinct is not None:
            for column in outputs:
                check_comparable(column.value.type, self.node, "SELECT DISTINCT")
        qualify = self._qualify(place, outputs)
        keys = self._order(place, outputs, answers, distinct=distinct is not None)
        limit = self.queries.limit(self.node)
        word = "DISTINCT " if distinct is not None and not qualify else ""
        order = f" ORDER BY {', '.join(keys)}" if keys else ""
        sql = f"SELECT {word}{', '.join(selected)}{clauses}{order}{limit}"
        if qualify:
            hidden = [f"{qualify} AS _qualify"]
            bare = []
            for number, key in enumerate(keys):
                value, way = split_key(key)
                hidden.append(f"{value} AS _order{number}")
                bare.append(f"_order{number} {way}")
            names = ", ".join(column.value.sql for column in answers)
            again = "DISTINCT " if distinct is not None else ""
            order = f" ORDER BY {', '.join(bare)}" if bare else ""
            if again and bare:
                raise unsupported("QUALIFY with DISTINCT and ORDER BY", self.node)
            inner = f"SELECT {', '.join([*selected, *hidden])}{clauses}"
            sql = f"SELECT {again}{names} FROM ({inner}) WHERE _qualify{order}{limit}"  # noqa: S608 - its parts are translated
        windows = any(True for _ in self.node.find_all(exp.Window))
        whole = not (limit or windows or self.grouped or qualify)
        return Answer(sql, answers, whole)

    def _as_struct(self, outputs: list[Column]) -> Column:
        for column in outputs:
            self.queries.work.use(column.value)
        parts = [
            f"'{(column.name or f'_field_{number}')}', {column.value.sql}"
            for number, column in enumerate(outputs, 1)
        ]
        kind = struct((column.name, column.value.type) for column in outputs)
        return Column("", Value(f"named_struct({', '.join(parts)})", kind))

    def _physical(self, outputs: list[Column], *, consumed: bool) -> list[Column]:
        """Return the columns of the answer, whose names in Spark are different from each other."""
        taken: set[str] = set()
        columns = []
        for number, column in enumerate(outputs):
            name = column.name or f"f{number}_"
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            origin: Origin | None = column.value.origin
            if consumed:
                self.queries.work.use(column.value)
            else:
                self.queries.work.handed_on(column.value)
            if self.grouped:
                self.queries.work.use(column.value)
            kept = None if consumed else origin
            value = Value(quoted(name), column.value.type, None, kept)
            columns.append(Column(column.name, value))
        return columns

    def _qualify(self, place: Place, outputs: list[Column]) -> str:
        clause = self.node.args.get("qualify")
        if clause is None:
            return ""
        inner = replace(place, scope=self._aliases(outputs))
        return inner.condition(clause.this, "QUALIFY").sql

    def _order(
        self, place: Place, outputs: list[Column], answers: list[Column], *, distinct: bool
    ) -> list[str]:
        clause = self.node.args.get("order")
        keys: list[str] = []
        for item in clause.expressions if clause is not None else []:
            node = item.this
            # Spark sorts by the columns of the answer; QUALIFY needs the expressions.
            columns = outputs if self.node.args.get("qualify") else answers
            value = ordinal(node, columns)
            if value is None:
                inner = replace(place, scope=self._aliases(columns))
                value = inner.value(node)
            if distinct:
                pairs = zip(outputs, answers, strict=True)
                shown = {output.value.sql: answer for output, answer in pairs}
                found = shown.get(value.sql)
                value = replace(found.value, type=value.type) if found is not None else value
            self.queries.work.use(value)
            keys += order_keys(value, item)
        return keys
