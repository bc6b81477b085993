"""A place in a query where an expression stands, and the translation of the expression.

**Invariant:** an expression is translated by the rule of its class in `rules.RULES`, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import BOOL, NULL, Type, quoted
from loader.query.googlesql.values import Constant, Origin, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from sqlglot import exp

    from loader.query.googlesql.scopes import Column, Scope
    from loader.query.question import Shapes

    Rule = Callable[["Place", exp.Expr], Value]

PLAIN_ARGS = frozenset({"this", "expression", "expressions"})
# What the rules of other classes look at; SQLGlot may put a NOT, say, into an argument.
ARGS = {
    name: frozenset(keys.split())
    for name, keys in {
        "Literal": "this is_string",
        "HexString": "this is_integer",
        "ByteString": "this is_bytes",
        "DPipe": "this expression safe",
        "Like": "this expression negate",
        "Is": "this expression negate",
        "In": "this expressions query unnest field",
        "Between": "this low high",
        "If": "this true false",
        "Case": "this ifs default",
        "Cast": "this to safe",
        "TryCast": "this to safe",
        "Array": "expressions bracket_notation struct_name_inheritance",
        "Bracket": "this expressions offset safe",
        "Column": "this table db catalog",
        "Window": "this partition_by order spec over alias first",
        "Subquery": "this limit offset order",
    }.items()
}
MAX_SQL = 2_000_000
MAX_READS = 64  # a query WITH names is translated anew wherever it is named


@dataclass(slots=True)
class Used:
    """What a question has used so far of one reading of a table.

    Attributes:
        table: its name.
        columns: the names of its columns in the schema's spelling, by those in lower case.
        paths: what is read of it.
        passed: columns that a subquery hands on, which nobody may read.
    """

    table: str
    paths: set[tuple[str, ...]] = field(default_factory=set)
    passed: set[tuple[str, ...]] = field(default_factory=set)


@dataclass(slots=True)
class Work:
    """What is the same in all places of one question.

    Attributes:
        shapes: the tables.
        now: the instant that CURRENT_TIMESTAMP is, for the whole question.
        rules: how each class of expressions is translated.
        subquery: translates a subquery in an expression.
        uses: what is read, one for each place where a table is named.
        functions: functions of Python that are called.
        names: how many sources have been named.
        stars: each `*` over a table with hidden columns, and the columns that it is.
    """

    shapes: Shapes
    now: datetime
    rules: Mapping[type[exp.Expr], Rule]
    subquery: Rule
    uses: list[Used] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    names: int = 0
    stars: list[tuple[exp.Expr, list[Column]]] = field(default_factory=list)

    def name(self) -> str:
        """Return a new name for a source."""
        self.names += 1
        return f"_t{self.names}"

    def use(self, value: Value) -> Value:
        """Note that a column is read."""
        if value.origin is not None:
            self.uses[value.origin.read].paths.add(value.origin.path)
        return value

    def handed_on(self, value: Value) -> Value:
        """Note that a column is part of a subquery's answer; whoever reads it uses it."""
        if value.origin is not None:
            self.uses[value.origin.read].passed.add(value.origin.path)
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an expression stands.

    Attributes:
        work: what all places share.
        scope: what names mean.
        keys: the Spark SQL of the keys of GROUP BY; None where there are no groups.
        aggregates: whether aggregate functions may stand here.
        windows: whether functions with OVER may stand here.
        lambdas: whether this is in a lambda, which cannot call Python.
    """

    work: Work
    scope: Scope
    keys: frozenset[str] | None = None
    aggregates: bool = False
    windows: bool = False
    lambdas: bool = False

    def raw(self, node: exp.Expr) -> Value:
        """Translate an expression, of which a part may be taken before it is read.

        Raises:
            QueryError: it is not supported, or BigQuery would refuse it.
        """
        rule = self.work.rules.get(type(node))
        if rule is None:
            what = type(node).__name__
            raise refusal(Code.NOT_SUPPORTED, f"{what} is not supported", node)
        known = ARGS.get(type(node).__name__, PLAIN_ARGS)
        for key, part in node.args.items():
            if part and key not in known:
                what = f"{type(node).__name__} with {key.rstrip('_').upper()}"
                raise refusal(Code.NOT_SUPPORTED, f"{what} is not supported", node)
        if self.keys:
            whole = replace(self, keys=None).attempt(node, rule)
            if whole is not None and whole.sql in self.keys:
                return whole.plain()
        found = rule(self, node)
        # An operand may be written several times, and its own operands in it.
        if len(found.sql) > MAX_SQL:
            raise too_long(node)
        return found

    def attempt(self, node: exp.Expr, rule: Rule) -> Value | None:
        """Translate as if there were no groups; None if that is refused."""
        try:
            return rule(self, node)
        except QueryError:
            return None

    def value(self, node: exp.Expr) -> Value:
        """Translate an expression that is read as a whole."""
        return self.work.use(self.raw(node))

    def inside(self) -> Place:
        """Return the place of an aggregate function's arguments."""
        return replace(self, keys=None, aggregates=False, windows=False)

    def condition(self, node: exp.Expr, what: str) -> Value:
        """Translate a BOOL.

        Raises:
            QueryError: it has another type, or as `value`.
        """
        found = self.value(node)
        if found.type not in {BOOL, NULL}:
            raise refusal(Code.TYPE, f"{what} must be a BOOL, not {found.type}", node)
        return found if found.type == BOOL else Value("CAST(NULL AS BOOLEAN)", BOOL)

    def python(self, function: str, node: exp.Expr) -> str:
        """Return the name of a function of Python, and note that it is called.

        Raises:
            QueryError: the call stands in a lambda, where Spark cannot call Python.
        """
        if self.lambdas:
            raise PythonInLambda(function, node)
        self.work.functions.add(function)
        return function


class PythonInLambda(Exception):  # noqa: N818 - says where to go on, not that something is wrong
    """A function of Python is called in a lambda; another translation is possible."""

    def __init__(self, function: str, node: exp.Expr) -> None:
        super().__init__(function)
        self.node = node


def too_long(node: exp.Expr) -> QueryError:
    """Return the error for what becomes more Spark SQL than is run."""
    message = f"this becomes more than {MAX_SQL:,} characters of Spark SQL"
    return refusal(Code.NOT_SUPPORTED, message, node)


def field_of(value: Value, name: str) -> Value | None:
    """Return a field of a STRUCT; None if it has no such field."""
    for place, (known, kind) in enumerate(value.type.fields, 1):
        if known.lower() == name.lower():
            origin = value.origin
            if origin is not None:
                origin = Origin(origin.read, (*origin.path, known), origin.whole)
            return Value(f"{value.sql}.{quoted(known or f'_field_{place}')}", kind, None, origin)
    return None


def null_of(kind: Type) -> Value:
    """Return a NULL of a type."""
    return Value(f"CAST(NULL AS {kind.spark})", kind, Constant(None))
