"""Infer the GoogleSQL types that an expression may have, from the parsed statement.

**Invariant:** the types that `may_be` returns include the one that BigQuery would infer; None means
that nothing is known.

A column's type is looked up by the last part of its name among all columns, aliases and STRUCT
fields of the statement.  If several have the name, all their types are possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.model.fields import SPELLINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from embedded.model.fields import Field

Kinds = frozenset[str] | None  # None: unknown; empty: an untyped NULL
NULL: frozenset[str] = frozenset()
META = "kinds"
ROUNDS = 8  # enough for aliases defined by other aliases; without them two rounds are enough
_NAMES = {old: new for new, old in SPELLINGS.items() if new not in {"DECIMAL", "BIGDECIMAL"}}
_TYPES = {
    "TEXT": "STRING", "VARCHAR": "STRING", "BIGINT": "INT64", "INT": "INT64", "DOUBLE": "FLOAT64",
    "FLOAT": "FLOAT64", "DECIMAL": "NUMERIC", "BIGDECIMAL": "BIGNUMERIC", "BOOLEAN": "BOOL",
    "DATE": "DATE", "DATETIME": "DATETIME", "TIMESTAMP": "DATETIME", "TIMESTAMPTZ": "TIMESTAMP",
    "TIME": "TIME", "JSON": "JSON", "VARBINARY": "BYTES", "BINARY": "BYTES", "STRUCT": "STRUCT",
    "INTERVAL": "INTERVAL",
}  # fmt: skip
# The type of functions that does not depend on the arguments, by SQLGlot's class.
_GIVEN = {
    "BOOL": """And Or Not EQ NEQ GT GTE LT LTE Is In Between Like Exists NullSafeEQ NullSafeNEQ
        Boolean LogicalOr LogicalAnd IsNan IsInf RegexpLike StartsWith EndsWith JSONBool""",
    "INT64": """Count CountIf ApproxDistinct RowNumber Rank DenseRank Ntile Length StrPosition
        DateDiff DatetimeDiff TimestampDiff TimeDiff UnixSeconds UnixMillis UnixMicros UnixDate
        ArraySize BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift
        BitwiseCount Int64 ByteLength Ascii Unicode RegexpInstr RangeBucket BitwiseAndAgg
        BitwiseOrAgg BitwiseXorAgg""",
    "FLOAT64": """Sqrt Exp Ln Log Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Cbrt Rand Float64
        Stddev StddevPop StddevSamp Variance VariancePop Corr CovarPop CovarSamp PercentRank
        CumeDist IEEEDivide""",
    "STRING": """RegexpReplace ToBase64 LowerHex Uuid ArrayToString TimeToStr JSONExtractScalar
        SessionUser JSONFormat String Format Initcap Chr Soundex Normalize ToBase32 Translate
        CodePointsToString SafeConvertBytesToString JSONType""",
    "BYTES": "FromBase64 MD5Digest SHA1Digest SHA2Digest Unhex FromBase32 CodePointsToBytes",
    "DATE": """Date CurrentDate DateTrunc TsOrDsToDate LastDay StrToDate DateFromParts
        DateFromUnixDate""",
    "DATETIME": """CurrentDatetime DatetimeAdd DatetimeSub DatetimeTrunc Datetime ParseDatetime
        TsOrDsToDatetime TimestampFromParts""",
    "TIMESTAMP": """CurrentTimestamp TimestampAdd TimestampSub TimestampTrunc Timestamp StrToTime
        TsOrDsToTimestamp UnixToTime""",
    "TIME": "CurrentTime TsOrDsToTime TimeAdd TimeSub TimeTrunc ParseTime TimeFromParts Time",
    "JSON": "ParseJSON ToJSON",
    "INTERVAL": "Interval",
    "ARRAY<STRING>": "Split RegexpExtractAll JSONValueArray",
    "ARRAY<DATE>": "GenerateDateArray",
    "ARRAY<TIMESTAMP>": "GenerateTimestampArray",
    "ARRAY<STRUCT>": "ApproxTopK ApproxTopSum",
    "ARRAY<INT64>": "ToCodePoints",
}
GIVEN = {name: frozenset({kind}) for kind, names in _GIVEN.items() for name in names.split()}
# Functions that have the type of their first argument.
_SAME = """
Paren Neg Min Max AnyValue Sum Abs Sign Nullif Lag Lead FirstValue LastValue NthValue
IgnoreNulls HavingMax PercentileDisc ArgMax ArgMin Window Order Ordered Distinct Alias Lower
Upper Trim Substring Replace Reverse Repeat Pad Left Right RegexpExtract DPipe
GroupConcat Limit JSONExtract ArrayReverse ArrayConcat Mod IntDiv Where SafeNegate
ArrayConcatAgg Filter
"""
SAME = frozenset(_SAME.split())
NUMBERS = ("INT64", "NUMERIC", "BIGNUMERIC", "FLOAT64")  # each type is coerced to the ones after it
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply)


def may_be(node: exp.Expr | None) -> Kinds:
    """Return the types that an annotated expression may have."""
    return None if node is None else node.meta.get(META)


def is_float(node: exp.Expr | None) -> bool:
    """Say whether an expression may be FLOAT64 and so NaN; a literal is never NaN."""
    while isinstance(node, exp.Paren | exp.Neg):
        node = node.this
    if isinstance(node, exp.Literal):
        return False
    kinds = may_be(node)
    return kinds is None or "FLOAT64" in kinds


def annotate(tree: exp.Expr, columns: Iterable[Field]) -> None:
    """Store the possible types in the metadata of each expression of a statement.

    Args:
        tree: the statement, before `rewritten`.
        columns: the columns of all its tables.
    """
    kinds = _Kinds(tree, columns)
    nodes = list(tree.walk())
    before: list[Kinds] = []
    for _ in range(ROUNDS):
        found = [kinds.of(node) for node in nodes]
        if found == before:
            break
        before = found
        kinds.again()
    else:
        found = [None for _ in nodes]
    for node, each in zip(nodes, found, strict=True):
        node.meta[META] = each


def kind_of(data_type: exp.Expr) -> str:
    """Return the GoogleSQL name of a parsed type; "" if it has none."""
    if not isinstance(data_type, exp.DataType):
        return ""
    name = str(getattr(data_type.this, "value", data_type.this))
    if name == "ARRAY":
        inner = kind_of(data_type.expressions[0]) if data_type.expressions else ""
        return f"ARRAY<{inner}>"
    return _TYPES.get(name, "")


def common(kinds: Iterable[Kinds]) -> Kinds:
    """Return the common supertype of some types ("Conversion rules: supertypes")."""
    every: set[str] = set()
    for each in kinds:
        if each is None:
            return None
        every |= each
    numbers = [name for name in NUMBERS if name in every]
    if len(numbers) > 1 and every <= set(NUMBERS):
        return frozenset({numbers[-1]})
    return frozenset(every)


class _Kinds:
    """Infers the types in one statement, each of them once per round."""

    def __init__(self, tree: exp.Expr, columns: Iterable[Field]) -> None:
        self._known: dict[int, Kinds] = {}
        self._before: dict[int, Kinds] = {}
        self._names: dict[str, list[Callable[[], Kinds]]] = {}
        self._add_fields(columns)
        for node in tree.walk():
            self._add(node)

    def of(self, node: exp.Expr | None) -> Kinds:
        """Return the types of an expression."""
        if not isinstance(node, exp.Expr):
            return None
        key = id(node)
        if key not in self._known:
            # An alias in its own definition has the types of the last round, at first none.
            self._known[key] = self._before.get(key, NULL)
            self._known[key] = self._worked_out(node)
        return self._known[key]

    def again(self) -> None:
        """Begin the next round."""
        self._before, self._known = self._known, {}

    def _add_fields(self, fields: Iterable[Field]) -> None:
        for field in fields:
            kind = _NAMES.get(field.type, field.type)
            found = frozenset({f"ARRAY<{kind}>" if field.repeated else kind})
            self._name(field.name, lambda found=found: found)  # type: ignore[misc]
            self._add_fields(field.fields)

    def _name(self, name: str, kinds: Callable[[], Kinds]) -> None:
        self._names.setdefault(name.lower(), []).append(kinds)

    def _add(self, node: exp.Expr) -> None:
        """Store the types of the names that a node defines."""
        if isinstance(node, exp.Alias):
            self._name(node.alias, lambda: self.of(node.this))
        elif isinstance(node, exp.PropertyEQ):
            self._name(node.this.name, lambda: self.of(node.expression))
        elif isinstance(node, exp.ColumnDef):
            kind = kind_of(node.args["kind"]) if node.args.get("kind") else ""
            self._name(node.name, lambda: frozenset({kind}) if kind else None)
        elif isinstance(node, exp.Unnest):
            self._add_unnest(node)
        elif isinstance(node, exp.TableAlias) and not isinstance(node.parent, exp.Unnest):
            rows = isinstance(node.parent, exp.Subquery | exp.CTE | exp.Table)
            self._name(node.name, lambda: frozenset({"STRUCT"}) if rows else None)
            for column in node.columns:
                self._name(column.name, lambda: None)

    def _add_unnest(self, node: exp.Unnest) -> None:
        alias = node.args.get("alias")
        for column in [*alias.columns, *([alias.this] if alias.this else [])] if alias else []:
            self._name(column.name, lambda: _elements(self.of(node.expressions[0])))
        offset = node.args.get("offset")
        if isinstance(offset, exp.Expr):
            self._name(offset.name, lambda: frozenset({"INT64"}))

    def _worked_out(self, node: exp.Expr) -> Kinds:
        name = type(node).__name__
        if name in SAME:
            return self.of(node.this if isinstance(node.this, exp.Expr) else _first(node))
        return GIVEN.get(name) or self._plain(node)

    def _plain(self, node: exp.Expr) -> Kinds:
        """Return the types of literals, columns and casts."""
        if isinstance(node, exp.Literal):
            number = "INT64" if node.is_int else "FLOAT64"
            return frozenset({"STRING" if node.is_string else number})
        if isinstance(node, exp.Null):
            return NULL
        if isinstance(node, exp.Column | exp.Dot):
            return self._path(node)
        if isinstance(node, exp.Cast):  # also TryCast
            kind = kind_of(node.args["to"])
            return frozenset({kind}) if kind else None
        return self._composed(node)

    def _composed(self, node: exp.Expr) -> Kinds:
        """Return the types of expressions that depend on several parts."""
        for classes, rule in _COMPOSED.items():
            if isinstance(node, classes):
                return rule(self, node)
        return None

    def quotient(self, node: exp.Expr) -> Kinds:
        return self._real(node.this, node.args.get("expression"))

    def rounded(self, node: exp.Expr) -> Kinds:
        return self._real(node.this)

    def any_of(self, node: exp.Expr) -> Kinds:
        first = [node.this] if node.this else []
        return common(map(self.of, [*first, *node.expressions]))

    def choice(self, node: exp.Expr) -> Kinds:
        return common([self.of(node.args["true"]), self._else(node, "false")])

    def case(self, node: exp.Expr) -> Kinds:
        results = [self.of(branch.args["true"]) for branch in node.args["ifs"]]
        return common([*results, self._else(node, "default")])

    def gathered(self, node: exp.Expr) -> Kinds:
        return _arrays(self.of(node.args.get("start") or node.this))

    def item(self, node: exp.Expr) -> Kinds:
        return _elements(self.of(node.this))

    def inner(self, node: exp.Expr) -> Kinds:
        return self.of(node.this)

    def part(self, node: exp.Expr) -> Kinds:
        part = node.this.name.upper()
        return frozenset({part if part in {"DATE", "TIME", "DATETIME"} else "INT64"})

    def _else(self, node: exp.Expr, key: str) -> Kinds:
        found = node.args.get(key)
        return NULL if found is None else self.of(found)

    def total(self, node: exp.Expr) -> Kinds:
        both = common([self.of(node.this), self.of(node.expression)])
        return both if both is not None and both <= set(NUMBERS) else None

    def _real(self, *nodes: exp.Expr | None) -> Kinds:
        """Return FLOAT64; NUMERIC or BIGNUMERIC if an argument has that type."""
        kinds = common(self.of(node) for node in nodes if node is not None)
        if kinds is None:
            return frozenset({"FLOAT64", "NUMERIC", "BIGNUMERIC"})
        exact = kinds & {"NUMERIC", "BIGNUMERIC"}
        return exact | {"FLOAT64"} if len(kinds) > 1 else exact or frozenset({"FLOAT64"})

    def array(self, node: exp.Expr) -> Kinds:
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
            return _arrays(self.of(node.expressions[0]))
        return _arrays(common(map(self.of, node.expressions)))

    def select(self, node: exp.Expr) -> Kinds:
        if node.args.get("kind"):
            return frozenset({"STRUCT"})
        return self.of(node.expressions[0]) if len(node.expressions) == 1 else None

    def _path(self, node: exp.Expr) -> Kinds:
        """Return the types of a name or path; a part of a JSON value has an unknown type."""
        parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
        names = [part.name.lower() for part in parts]
        if not names or any("JSON" in (self._named(name) or ()) for name in names[:-1]):
            return None
        return self._named(names[-1])

    def _named(self, name: str) -> Kinds:
        found = self._names.get(name)
        if not found:
            return None
        every: set[str] = set()
        for kinds in (each() for each in found):
            if kinds is None:
                return None
            every |= kinds
        return frozenset(every)


def _first(node: exp.Expr) -> exp.Expr | None:
    return node.expressions[0] if node.expressions else None


def _arrays(kinds: Kinds) -> Kinds:
    if kinds is None:
        return frozenset({"ARRAY<>"})
    return frozenset(f"ARRAY<{kind}>" for kind in kinds or {"INT64"})


def _elements(kinds: Kinds) -> Kinds:
    if kinds is None or not all(kind.startswith("ARRAY<") for kind in kinds):
        return None
    inner = frozenset(kind[6:-1] for kind in kinds)
    return inner if all(inner) else None


def _always(kind: str) -> Callable[[_Kinds, exp.Expr], Kinds]:
    return lambda _kinds, _node: frozenset({kind})


_COMPOSED: dict[tuple[type[exp.Expr], ...], Callable[[_Kinds, exp.Expr], Kinds]] = {
    ARITHMETIC: _Kinds.total,
    (exp.Div, exp.SafeDivide, exp.Avg, exp.Pow, exp.PercentileCont): _Kinds.quotient,
    (exp.Ceil, exp.Floor, exp.Round, exp.Trunc): _Kinds.rounded,
    (exp.Coalesce, exp.Greatest, exp.Least, exp.Concat): _Kinds.any_of,
    (exp.If,): _Kinds.choice,
    (exp.Case,): _Kinds.case,
    (exp.Array,): _Kinds.array,
    (exp.ArrayAgg, exp.ApproxQuantiles, exp.GenerateSeries): _Kinds.gathered,
    (exp.Bracket,): _Kinds.item,
    (exp.Struct, exp.Tuple): _always("STRUCT"),
    (exp.Subquery,): _Kinds.inner,
    (exp.Select,): _Kinds.select,
    (exp.Extract,): _Kinds.part,
    (exp.DateAdd, exp.DateSub): _always("DATE"),
    (exp.ByteString,): _always("BYTES"),
    (exp.RawString,): _always("STRING"),
}
