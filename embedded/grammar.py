"""The part of GoogleSQL that is known to mean here what it means in BigQuery.

**Invariant:** a statement that passes `check` consists of these nodes only.

It refuses everything else by name, which is how a wrong answer is kept from being given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.errors import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

# Class names, so that a class which this version of SQLGlot has not is no error.
SHAPES = """
Select From Join Where Group Having Order Ordered Limit Offset Subquery CTE With Qualify
Distinct Union Except Intersect Values Tuple Table TableAlias Identifier Column Alias Star Dot
Paren Literal Null Boolean Var DataType ColumnDef Unnest Window WindowSpec Array Struct
PropertyEQ Bracket Interval Parameter JSONPath JSONPathRoot JSONPathKey JSONPathSubscript
AtTimeZone ByteString RawString IgnoreNulls HavingMax Insert Update Delete Merge When
Whens Schema TruncateTable WeekStart
"""
OPERATORS = """
And Or Not EQ NEQ GT GTE LT LTE Is In Between Like Exists NullSafeEQ NullSafeNEQ Add
Sub Mul Div IntDiv Mod Neg BitwiseAnd BitwiseOr BitwiseXor BitwiseNot DPipe Case If
"""
FUNCTIONS = """
Count CountIf Sum Avg Min Max AnyValue ArrayAgg GroupConcat LogicalOr LogicalAnd ApproxDistinct
ApproxQuantiles ArgMax ArgMin Stddev StddevPop StddevSamp Variance VariancePop Corr CovarPop
CovarSamp RowNumber Rank DenseRank PercentRank CumeDist Ntile Lag Lead FirstValue LastValue
NthValue PercentileCont Cast TryCast Coalesce Nullif Greatest Least SafeDivide Abs Ceil Floor
Round Trunc Sign Sqrt Pow Exp Ln Log Sin Cos Tan Asin Acos Atan Atan2 Rand IsNan IsInf Concat
Length Lower Upper Trim Substring StartsWith EndsWith StrPosition Replace Reverse Repeat Pad
Split RegexpLike RegexpExtract RegexpExtractAll RegexpReplace ToBase64 FromBase64 LowerHex MD5
MD5Digest SHA1Digest SHA2Digest Uuid Left Right ArrayToString ArraySize ArrayConcat ArrayReverse
GenerateSeries GenerateDateArray Date CurrentDate CurrentTimestamp CurrentDatetime CurrentTime
DateAdd DateSub DateDiff DateTrunc DatetimeAdd DatetimeSub DatetimeDiff DatetimeTrunc
TimestampAdd TimestampSub TimestampDiff TimestampTrunc Extract UnixSeconds UnixMillis UnixMicros
UnixDate DateFromParts Timestamp Datetime TsOrDsToDate TsOrDsToTimestamp TsOrDsToDatetime
TsOrDsToTime LastDay TimeToStr StrToDate StrToTime ParseDatetime UnixToTime JSONExtract
JSONExtractScalar JSONExtractArray JSONValueArray ParseJSON JSONFormat Int64 Float64 JSONBool
String
"""
ALLOWED = frozenset(f"{SHAPES} {OPERATORS} {FUNCTIONS}".split())
# What a table, a join or a SELECT may carry: a version, a sample, a pivot are none of them.
CARRIED: dict[type[exp.Expr], frozenset[str]] = {
    exp.Table: frozenset({"this", "db", "catalog", "alias", "joins"}),
    exp.Join: frozenset({"this", "side", "kind", "on", "using", "method"}),
    exp.Select: frozenset(
        [
            "with_",
            "with",
            "kind",
            "expressions",
            "distinct",
            "from_",
            "from",
            "joins",
            "where",
            "group",
            "having",
            "qualify",
            "windows",
            "order",
            "limit",
            "offset",
            "operation_modifiers",
            "laterals",
        ]
    ),
}


def check(tree: exp.Expr) -> None:
    """Hold a statement to the grammar.

    Raises:
        ApiError: it has a part whose meaning here is not known to be BigQuery's.
    """
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            raise unsupported(f"The function {str(node.this).upper()}")
        if type(node).__name__ not in ALLOWED:
            raise unsupported(f"{type(node).__name__}{_text(node)}")
        known = CARRIED.get(type(node))
        if known is not None:
            _check_carried(node, known)
        if isinstance(node, exp.Select):
            _check_star(node)


def _text(node: exp.Expr) -> str:
    try:
        return f" ({node.sql('bigquery')[:80]})"
    except ValueError:  # SQLGlot cannot write every part alone
        return ""


def _check_carried(node: exp.Expr, known: Iterable[str]) -> None:
    for key, value in node.args.items():
        if value and key not in known:
            raise unsupported(f"{key.rstrip('_').upper()}{_text(node)}")


def _check_star(node: exp.Select) -> None:
    """Refuse `*` where the columns that DuckDB makes of it are not BigQuery's.

    BigQuery spreads a STRUCT out of UNNEST and puts the columns of USING first; in a subquery
    DuckDB renames the second of two columns of one name.
    """
    if not any(isinstance(item, exp.Star) for item in node.expressions):
        return
    joins = node.args.get("joins") or []
    first = node.args.get("from_") or node.args.get("from")
    sources = [first.this] if first else []
    if any(not _is_spread(source) for source in [*sources, *(join.this for join in joins)]):
        raise unsupported("SELECT * over UNNEST (name the columns)")
    if any(join.args.get("using") for join in joins):
        raise unsupported("SELECT * over JOIN with USING (name the columns)")
    if joins and node.parent is not None:
        raise unsupported("SELECT * over joined tables in a subquery (name the columns)")


def _is_spread(source: exp.Expr) -> bool:
    if not isinstance(source, exp.Unnest) or not source.args.get("alias"):
        return True
    array = source.expressions[0]
    if isinstance(array, exp.Array):
        return all(item.is_primitive for item in array.expressions)
    return isinstance(array, exp.GenerateSeries | exp.GenerateDateArray)
