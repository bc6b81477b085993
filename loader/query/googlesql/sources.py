"""The items of FROM: tables, subqueries, arrays, and their joins.

**Invariant:** each item gets a name of its own in Spark, so that no name of the question can mean
another thing there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import compared
from loader.query.googlesql.places import MAX_READS, Place, Used
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.scopes import Column, Source
from loader.query.googlesql.types import INT64, quoted, type_of
from loader.query.googlesql.values import Origin, Value
from loader.query.question import NODE, TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from loader.query.googlesql.scopes import Scope

HIDDEN = {TIME, NODE}  # columns that no bundle has; `*` leaves them out
TABLE_ARGS = {"this", "db", "catalog", "alias", "joins"}
JOIN_ARGS = {"this", "side", "kind", "on", "using"}


@dataclass(frozen=True, slots=True)
class Named:
    """A query that WITH names, and the names that it may use itself."""

    query: exp.Query
    names: Mapping[str, Named]


@dataclass(frozen=True, slots=True)
class Answer:
    """A translated query: its text and the columns of its answer.

    Attributes:
        sql: the query.
        columns: their values name the columns of the answer.
        whole: whether a condition on a column may leave out rows that are read.
        correlated: whether it names columns of the query around it.
    """

    sql: str
    columns: list[Column]
    whole: bool = True
    correlated: bool = False


@dataclass(slots=True)
class From:
    """FROM of one SELECT, as it is put together.

    Attributes:
        place: where its expressions stand; the scope grows with each item.
        names: the queries that WITH names.
        query: translates a subquery.
        sql: the text so far.
        optional: the sources whose rows a join may leave without a partner.
    """

    place: Place
    names: Mapping[str, Named]
    query: Callable[[exp.Query, Scope | None, Mapping[str, Named]], Answer]
    sql: str = ""
    optional: set[str] = field(default_factory=set)

    def read(self, select: exp.Select) -> None:
        """Translate FROM and JOIN.

        Raises:
            QueryError: an item is unknown or not supported.
        """
        first = select.args.get("from_") or select.args.get("from")
        if first is not None:
            self._add(first.this, None)
            for join in first.this.args.get("joins") or []:
                self._join(join)
        for join in select.args.get("joins") or []:
            self._join(join)
        if select.args.get("laterals"):
            raise unsupported("LATERAL", select)

    def _join(self, join: exp.Join) -> None:
        for key, value in join.args.items():
            if value and key not in JOIN_ARGS:
                raise unsupported(f"JOIN with {key.upper()}", join)
        self._add(join.this, join)
        for nested in join.this.args.get("joins") or []:
            self._join(nested)

    def _add(self, node: exp.Expr, join: exp.Join | None) -> None:
        name = self.place.work.name()
        lateral = False
        if isinstance(node, exp.Unnest):
            text, source = self._unnest(node, name)
            lateral = join is not None
        elif isinstance(node, exp.Subquery):
            text, source = self._subquery(node, name)
        elif isinstance(node, exp.Table):
            text, source, lateral = self._table(node, name, join)
        else:
            raise unsupported(f"{type(node).__name__} in FROM", node)
        scope = self.place.scope
        if source.alias and scope.source(source.alias) is not None:
            raise refusal(Code.ARGUMENT, f"two tables have the name {source.alias}", node)
        if join is None:
            scope.sources.append(source)
            self.sql = text
            return
        self._joined(join, f"LATERAL {text}" if lateral else text, source)

    def _joined(self, join: exp.Join, text: str, source: Source) -> None:
        side, kind = (str(join.args.get(key) or "").upper() for key in ("side", "kind"))
        if kind not in {"", "INNER", "CROSS", "OUTER"} or side not in {"", "LEFT", "RIGHT", "FULL"}:
            raise unsupported(f"{side} {kind} JOIN".strip(), join)
        scope = self.place.scope
        scope.sources.append(source)
        condition = ""
        if join.args.get("using"):
            condition = self._using(join, source, side)
        elif join.args.get("on") is not None:
            condition = self.place.condition(join.args["on"], "ON").sql
        if side and not condition:
            if isinstance(join.this, exp.Unnest) and side == "LEFT":
                condition = "true"
            else:
                raise refusal(Code.SYNTAX, f"{side} JOIN needs ON or USING", join)
        if side in {"RIGHT", "FULL"} and text.startswith("LATERAL"):
            raise unsupported(f"{side} JOIN UNNEST", join)
        word = f"{side or ('INNER' if condition else 'CROSS')} JOIN"
        self.sql += f" {word} {text}" + (f" ON {condition}" if condition else "")

    def _using(self, join: exp.Join, source: Source, side: str) -> str:
        scope, conditions = self.place.scope, []
        for item in join.args["using"]:
            name = item.name
            scope.sources.pop()
            left = scope.columns(name)
            scope.sources.append(source)
            right = source.named(name)
            if len(left) != 1 or len(right) != 1:
                raise refusal(Code.UNKNOWN_FIELD, f"{name!r} is not once on both sides", item)
            one, other = left[0].value, right[0].value
            for value in (one, other):
                self.place.work.use(value)
            conditions.append(compared("=", one, other, item).sql)
            value = other if side == "RIGHT" else one
            if side == "FULL":
                value = Value(f"coalesce({one.sql}, {other.sql})", one.type)
            scope.joined = [c for c in scope.joined if c.name.lower() != name.lower()]
            scope.joined.append(Column(left[0].name, value))
            for each in scope.sources:
                if each.named(name):
                    each.merged.add(name.lower())
        return " AND ".join(conditions)

    def _table(self, node: exp.Table, name: str, join: exp.Join | None) -> tuple[str, Source, bool]:
        for key, value in node.args.items():
            if value and key not in TABLE_ARGS:
                what = {"pivots": "PIVOT", "when": "FOR SYSTEM_TIME", "sample": "TABLESAMPLE"}
                raise unsupported(what.get(key, key.upper()), node)
        if not isinstance(node.this, exp.Identifier):
            raise unsupported("this in FROM", node)
        parts = [part.name for part in node.parts]
        alias = node.alias or parts[-1].rpartition(".")[2]
        if len(parts) == 1 and parts[0].lower() in self.names:
            named = self.names[parts[0].lower()]
            answer = self.query(named.query, None, named.names)
            return f"({answer.sql}) AS {name}", _of_answer(answer, alias, name), False
        source = self.place.scope.source(parts[0]) if len(parts) > 1 else None
        if source is not None:  # FROM t, t.array
            column: exp.Expr = exp.Column(this=node.parts[-1].copy(), table=node.parts[0].copy())
            unnest = exp.Unnest(expressions=[column], alias=node.args.get("alias"))
            text, made = self._unnest(unnest, name)
            return text, made, join is not None
        return *self._stored(node, ".".join(parts), alias, name), False

    def _stored(self, node: exp.Table, table: str, alias: str, name: str) -> tuple[str, Source]:
        work = self.place.work
        fields = work.shapes.columns(table)
        if fields is None:
            known = ", ".join(work.shapes.names())[:300]
            raise refusal(
                Code.UNKNOWN_TABLE, f"there is no table {table!r}; there are {known}", node
            )
        if len(work.uses) >= MAX_READS:
            raise unsupported(f"reading more than {MAX_READS} tables", node)
        place = len(work.uses)
        work.uses.append(Used(table))
        columns = [
            Column(
                column.name,
                Value(
                    f"{name}.{quoted(column.name)}",
                    type_of(column),
                    None,
                    Origin(place, (column.name,)),
                ),
                hidden=column.name in HIDDEN,
            )
            for column in fields
        ]
        return f"{view_name(place)} AS {name}", Source(alias, columns)

    def _subquery(self, node: exp.Subquery, name: str) -> tuple[str, Source]:
        for key, value in node.args.items():
            if value and key not in {"this", "alias", "joins"}:
                what = "PIVOT" if key == "pivots" else key.upper()
                raise unsupported(f"{what} of a subquery", node)
        if not isinstance(node.this, exp.Query):
            raise unsupported("a join in brackets", node)
        answer = self.query(node.this, None, self.names)
        return f"({answer.sql}) AS {name}", _of_answer(answer, node.alias, name)

    def _unnest(self, node: exp.Unnest, name: str) -> tuple[str, Source]:
        if len(node.expressions) != 1:
            raise unsupported("UNNEST of several arrays", node)
        alias = node.args.get("alias")
        names = [part.name for part in alias.columns] if alias is not None else []
        names = names or ([alias.name] if alias is not None and alias.this is not None else [])
        value = self.place.raw(node.expressions[0])
        if value.type.element is None:
            raise refusal(
                Code.TYPE, f"UNNEST needs an ARRAY, not {value.type}", node.expressions[0]
            )
        self.place.work.handed_on(value)
        element = Value(f"{name}._v", value.type.element, None, value.origin)
        columns = [
            Column(sub, _sub(element, sub, kind)) for sub, kind in value.type.element.fields if sub
        ] or [Column(names[0] if names else "", element)]
        offset = node.args.get("offset")
        if offset is not None and offset is not False:
            label = offset.name if isinstance(offset, exp.Expr) else "offset"
            counted = Value(f"CAST({name}._p AS BIGINT)", INT64)
            columns.append(Column(label, counted))
            return f"posexplode({value.sql}) AS {name}(_p, _v)", Source(
                names[0] if names else "", columns, element
            )
        return f"explode({value.sql}) AS {name}(_v)", Source(
            names[0] if names else "", columns, element
        )


def _sub(element: Value, name: str, kind: object) -> Value:
    from loader.query.googlesql.places import field_of  # noqa: PLC0415 - used here alone

    del kind
    found = field_of(element, name)
    assert found is not None
    return found


def view_name(place: int) -> str:
    """Return the name of the view of a reading."""
    return f"_read_{place}"


def _of_answer(answer: Answer, alias: str, name: str) -> Source:
    columns = []
    for column in answer.columns:
        value = replace(column.value, sql=f"{name}.{column.value.sql}")
        if value.origin is not None and not answer.whole:
            value = replace(value, origin=replace(value.origin, whole=False))
        columns.append(Column(column.name, value))
    return Source(alias, columns)
