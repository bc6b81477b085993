"""SELECT, set operations, WITH: from SQLGlot's tree to the text of a query for Spark.

**Invariant:** every clause of a query is translated or refused; none is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.comparisons import check_comparable, sorted_by
from loader.query.googlesql.conversions import coerced, same, supertype
from loader.query.googlesql.functions.aggregates import AGGREGATES
from loader.query.googlesql.places import Place, field_of
from loader.query.googlesql.positions import refusal, unsupported
from loader.query.googlesql.ranges import narrow
from loader.query.googlesql.scopes import Column, Scope
from loader.query.googlesql.sources import Answer, From, Named
from loader.query.googlesql.types import INT64, NULL, Type, quoted, struct
from loader.query.googlesql.values import Origin, Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loader.query.googlesql.places import Work
    from loader.query.googlesql.ranges import Ranges

SELECT_ARGS = {
    "with_", "with", "kind", "expressions", "distinct", "from_", "from", "joins", "where", "group",
    "having", "qualify", "order", "limit", "offset",
}  # fmt: skip
SET_ARGS = {"with_", "with", "this", "expression", "distinct", "order", "limit", "offset"}
GROUP_ARGS = {"expressions", "all"}


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
        return _Select(self, node, around, names).answer()

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
        from loader.query.googlesql.subqueries import subquery  # noqa: PLC0415 - it uses this module

        return subquery(self, place, node)


def ordinal(node: exp.Expr, columns: list[Column]) -> Value | None:
    """Return the column of a place, of `ORDER BY 1`.

    Raises:
        QueryError: there is no such place.
    """
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    digits = str(node.this)
    if not digits.isdigit() or not 1 <= int(digits) <= len(columns):
        raise refusal(Code.ARGUMENT, f"there is no column {digits}", node)
    return columns[int(digits) - 1].value


def order_keys(value: Value, item: exp.Expr) -> list[str]:
    """Return Spark's keys for an item of ORDER BY."""
    return sorted_by(
        value,
        item,
        descending=bool(item.args.get("desc")),
        nulls_first=bool(item.args.get("nulls_first")),
    )


@dataclass(slots=True)
class _Item:
    """An item of SELECT: an expression that is not translated yet, or a column of `*`."""

    name: str
    node: exp.Expr
    column: Column | None = None


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
    return _Select(queries, node, around, names).parts()


class _Select:
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
        items = self._items()
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

    def _items(self) -> list[_Item]:
        items: list[_Item] = []
        for node in self.node.expressions:
            star = node.this if isinstance(node, exp.Column | exp.Dot) else node
            star = node.expression if isinstance(node, exp.Dot) else star
            if isinstance(star, exp.Star):
                items += self._star(node, star)
            else:
                name = node.alias if isinstance(node, exp.Alias) else _own_name(node)
                items.append(_Item(name, node.this if isinstance(node, exp.Alias) else node))
        if not items:
            raise refusal(Code.SYNTAX, "SELECT has no columns", self.node)
        return items

    def _star(self, node: exp.Expr, star: exp.Star) -> list[_Item]:
        for key, value in star.args.items():
            if value and key not in {"except_", "except", "replace"}:
                raise unsupported(f"* with {key.upper()}", node)
        columns = self._star_columns(node)
        if any(column.hidden for source in self.scope.sources for column in source.columns):
            self.queries.work.stars.append((node, columns))
        left_out = star.args.get("except_") or star.args.get("except") or []
        for name in left_out:
            kept = [column for column in columns if column.name.lower() != name.name.lower()]
            if len(kept) == len(columns):
                raise refusal(Code.UNKNOWN_FIELD, f"* has no column {name.name!r}", name)
            columns = kept
        replaced = {}
        for item in star.args.get("replace") or []:
            if not any(column.name.lower() == item.alias.lower() for column in columns):
                raise refusal(Code.UNKNOWN_FIELD, f"* has no column {item.alias!r}", item)
            replaced[item.alias.lower()] = item.this
        return [
            _Item(column.name, replaced[column.name.lower()])
            if column.name.lower() in replaced
            else _Item(column.name, node, column)
            for column in columns
        ]

    def _star_columns(self, node: exp.Expr) -> list[Column]:
        if isinstance(node, exp.Star):
            if not self.scope.sources:
                raise refusal(Code.ARGUMENT, "* needs FROM", node)
            return self.scope.all_columns()
        if isinstance(node, exp.Column) and len(node.parts) == 2:  # noqa: PLR2004 - t.*
            source = self.scope.source(node.parts[0].name)
            if source is not None:
                return [column for column in source.columns if not column.hidden]
        if isinstance(node, exp.Dot):
            inner = node.this
        else:
            assert isinstance(node, exp.Column)
            inner = _column_of([part.copy() for part in node.parts[:-1]])
        value = self.place.raw(inner)
        if value.type.kind != "STRUCT":
            raise refusal(Code.TYPE, f".* needs a STRUCT, not {value.type}", node)
        found = []
        for name, _ in value.type.fields:
            sub = field_of(value, name)
            assert sub is not None
            found.append(Column(name, sub))
        return found

    def _has_aggregates(self) -> bool:
        clauses = (self.node.args.get(key) for key in ("having", "qualify", "order"))
        parts = [*self.node.expressions, *(one for one in clauses if one is not None)]
        return self.node.args.get("having") is not None or any(aggregates(part) for part in parts)

    def _keys(self, items: list[_Item]) -> list[str] | None:
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
                item.node for item in items if item.column is None and not aggregates(item.node)
            ]
        keys = []
        for node in nodes:
            value = self._key(node, items)
            check_comparable(value.type, node, "GROUP BY")
            keys.append(value.sql)
        return keys

    def _key(self, node: exp.Expr, items: list[_Item]) -> Value:
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

    def _item_key(self, item: _Item) -> Value:
        if item.column is not None:
            return self.queries.work.use(item.column.value)
        return self.place.value(item.node)

    def _output(self, item: _Item, place: Place) -> Column:
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


def _column_of(parts: list[exp.Expr]) -> exp.Expr:
    """Return the column, or field of a column, that a name's parts name."""
    if len(parts) == 1:
        return exp.Column(this=parts[0])
    return exp.Dot(this=_column_of(parts[:-1]), expression=parts[-1])


def split_key(key: str) -> tuple[str, str]:
    """Return the value of a key of ORDER BY and its way, such as `ASC NULLS FIRST`."""
    value, way, _, nulls = key.rsplit(" ", 3)
    return value, f"{way} NULLS {nulls}"


def _own_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Column | exp.Dot):
        last = node.parts[-1] if isinstance(node, exp.Column) else node.expression
        return last.name if isinstance(last, exp.Identifier) else ""
    return ""


def aggregates(node: exp.Expr) -> bool:
    """Say whether an expression has an aggregate function of this query, not of a subquery."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner = node.this
        parts = [*inner.expressions, *node.args.get("partition_by", [])]
        if node.args.get("order") is not None:
            parts.append(node.args["order"])
        return any(aggregates(part) for part in parts if isinstance(part, exp.Expr))
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in AGGREGATES:
        return not isinstance(node.parent, exp.NetFunc | exp.SafeFunc)
    return any(aggregates(part) for part in node.iter_expressions())
