"""The supported part of GoogleSQL: syntax with the same meaning here as in BigQuery.

**Invariant:** a statement that passes `check` has only nodes of these classes.

Any other syntax is an error, so that no query gets a wrong answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.composed import ANONYMOUS, HLL, NET
from embedded.model.errors import unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import Token

# Names of classes, not classes, because some versions of SQLGlot lack some of them.
SHAPES = """
Select From Join Where Group Having Order Ordered Limit Offset Subquery CTE With Qualify
Distinct Union Except Intersect Values Tuple Table TableAlias Identifier Column Alias Star Dot
Paren Literal Null Boolean Var DataType ColumnDef Unnest Window WindowSpec Array Struct
PropertyEQ Bracket Interval Parameter JSONPath JSONPathRoot JSONPathKey JSONPathSubscript
AtTimeZone ByteString RawString IgnoreNulls HavingMax Insert Update Delete Merge When
Whens Schema TruncateTable WeekStart Rollup Cube GroupingSets
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
Length Lower Upper Trim Substring StartsWith EndsWith StrPosition Replace Reverse Repeat Pad Split
RegexpLike RegexpExtract RegexpExtractAll RegexpReplace ToBase64 FromBase64 LowerHex MD5 MD5Digest
SHA1Digest SHA2Digest Uuid Left Right ArrayToString ArraySize ArrayConcat ArrayReverse
GenerateSeries GenerateDateArray Date CurrentDate CurrentTimestamp CurrentDatetime CurrentTime
DateAdd DateSub DateDiff DateTrunc DatetimeAdd DatetimeSub DatetimeDiff DatetimeTrunc TimestampAdd
TimestampSub TimestampDiff TimestampTrunc Extract UnixSeconds UnixMillis UnixMicros UnixDate
DateFromParts Timestamp Datetime TsOrDsToDate TsOrDsToTimestamp TsOrDsToDatetime TsOrDsToTime
LastDay TimeToStr StrToDate StrToTime ParseDatetime UnixToTime JSONExtract JSONExtractScalar
NetFunc Host RegDomain Format ApproxTopK PercentileDisc ArrayConcatAgg Normalize ToBase32
FromBase32 SafeConvertBytesToString JSONType RangeBucket ArrayFirst ArrayLast RegexpInstr
ParseNumeric Contains TimeAdd TimeSub TimeDiff TimeTrunc TimeFromParts TimestampFromParts
DateFromUnixDate GenerateTimestampArray ParseTime BitwiseLeftShift BitwiseRightShift BitwiseCount
ByteLength Chr Initcap ToCodePoints CodePointsToString CodePointsToBytes Unhex Translate Soundex
Unicode Ascii Cbrt Sinh Cosh Tanh SafeAdd SafeSubtract SafeMultiply SafeNegate BitwiseAndAgg
BitwiseOrAgg BitwiseXorAgg JSONExtractArray JSONValueArray ParseJSON JSONFormat Int64 Float64
JSONBool String SessionUser
"""
# GoogleSQL's names of functions: SQLGlot also accepts those of other dialects (LEN, NVL, LIST).
NAMES = """
ABS ACOS ANY_VALUE APPROX_COUNT_DISTINCT APPROX_QUANTILES ARRAY ARRAY_AGG ARRAY_CONCAT
ARRAY_CONCAT_AGG ARRAY_FIRST ARRAY_LAST ARRAY_LENGTH ARRAY_REVERSE ARRAY_TO_STRING ASCII ASIN ATAN
ATAN2 AVG BYTE_LENGTH CAST CBRT CEIL CEILING CHARACTER_LENGTH CHAR_LENGTH CHR COALESCE
CODE_POINTS_TO_BYTES CODE_POINTS_TO_STRING CONCAT CORR COS COSH COUNT COUNTIF COVAR_POP COVAR_SAMP
CUME_DIST CURRENT_DATE CURRENT_DATETIME CURRENT_TIME CURRENT_TIMESTAMP DATE DATETIME DATETIME_ADD
DATETIME_DIFF DATETIME_SUB DATETIME_TRUNC DATE_ADD DATE_DIFF DATE_FROM_UNIX_DATE DATE_SUB
DATE_TRUNC DENSE_RANK ENDS_WITH EXISTS EXP EXTRACT FIRST_VALUE FLOAT64 FLOOR FORMAT FROM_BASE32
FROM_BASE64 GENERATE_DATE_ARRAY GENERATE_TIMESTAMP_ARRAY GENERATE_UUID GREATEST HOST IF IFNULL
INITCAP INSERT INT64 IS_INF IS_NAN JSON_EXTRACT JSON_EXTRACT_ARRAY JSON_EXTRACT_SCALAR JSON_TYPE
LAG LAST_DAY LAST_VALUE LEAD LEAST LEFT LENGTH LN LOG LOGICAL_AND LOGICAL_OR LOWER MAX MAX_BY MD5
MIN MIN_BY NORMALIZE NTH_VALUE NTILE NULLIF PARSE_DATETIME PARSE_JSON PARSE_NUMERIC PARSE_TIME
PERCENTILE_CONT PERCENTILE_DISC PERCENT_RANK POW POWER RAND RANGE_BUCKET RANK REG_DOMAIN
REGEXP_EXTRACT REGEXP_EXTRACT_ALL REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR REPEAT REPLACE REVERSE
RIGHT ROUND ROW_NUMBER SAFE_ADD SAFE_CONVERT_BYTES_TO_STRING SAFE_DIVIDE SAFE_MULTIPLY SAFE_NEGATE
SAFE_SUBTRACT SEARCH SESSION_USER SHA1 SIGN SIN SINH SOUNDEX SPLIT SQRT STARTS_WITH STDDEV
STDDEV_POP STDDEV_SAMP STRING STRUCT SUBSTR SUBSTRING SUM TAN TANH TIME TIMESTAMP TIMESTAMP_ADD
TIMESTAMP_DIFF TIMESTAMP_SUB TIMESTAMP_TRUNC TIME_ADD TIME_DIFF TIME_SUB TIME_TRUNC TO_BASE32
TO_BASE64 TO_CODE_POINTS TRANSLATE TRIM TRUNC UNICODE UNIX_DATE UNIX_MICROS UNIX_MILLIS
UNIX_SECONDS UNNEST UPPER VARIANCE VAR_POP VAR_SAMP WEEK
"""
FOREIGN = frozenset(exp.FUNCTION_BY_NAME) - set(NAMES.split()) - {"AND", "OR", "CASE"}  # operators
ALLOWED = frozenset(f"{SHAPES} {OPERATORS} {FUNCTIONS}".split())
# The clauses that a table, join or SELECT may have; not versions, samples and pivots.
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


def check_names(tokens: Sequence[Token]) -> None:
    """Refuse functions of other dialects by their names, which the parsed tree does not have.

    Raises:
        ApiError: there is such a function.
    """
    for before, name, after in zip([None, *tokens], tokens, tokens[1:], strict=False):
        qualified = before is not None and before.text == "."
        if after.text == "(" and name.text.upper() in FOREIGN and not qualified:
            raise unsupported(f"The function {name.text.upper()}")


def check(tree: exp.Expr) -> None:
    """Check that a statement has only supported syntax.

    Raises:
        ApiError: it has a part whose meaning in DuckDB may differ from BigQuery's.
    """
    for node in tree.walk():
        if isinstance(node, exp.Anonymous) and not _is_known(node):
            raise unsupported(f"The function {str(node.this).upper()}")
        if isinstance(node, exp.Kwarg) and not _is_search(node.parent):
            raise unsupported(f"A named argument{_text(node)}")
        if type(node).__name__ not in ALLOWED | {"Anonymous", "Kwarg"}:
            raise unsupported(f"{type(node).__name__}{_text(node)}")
        known = CARRIED.get(type(node))
        if known is not None:
            _check_carried(node, known)
        if isinstance(node, exp.Select):
            _check_star(node)


def check_source(node: exp.Table) -> None:
    """Refuse TABLESAMPLE and FOR SYSTEM_TIME; they would be lost when a view becomes a subquery.

    Raises:
        ApiError: the table has one of them.
    """
    _check_carried(node, CARRIED[exp.Table] | {"pivots"})


def _is_known(node: exp.Anonymous) -> bool:
    name, around = str(node.this).upper(), node.parent
    if isinstance(around, exp.NetFunc):
        return name in NET or name == "PUBLIC_SUFFIX"
    if isinstance(around, exp.Dot):
        left = around.this
        return isinstance(left, exp.Identifier) and left.name.upper() == "HLL_COUNT" and name in HLL
    return name in ANONYMOUS or name == "SEARCH"


def _is_search(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).upper() == "SEARCH"


def _text(node: exp.Expr) -> str:
    try:
        return f" ({node.sql('bigquery')[:80]})"
    except ValueError:  # SQLGlot cannot write every node by itself
        return ""


def _check_carried(node: exp.Expr, known: Iterable[str]) -> None:
    for key, value in node.args.items():
        if value and key not in known:
            raise unsupported(f"{key.rstrip('_').upper()}{_text(node)}")


def _check_star(node: exp.Select) -> None:
    """Refuse `*` where its columns in DuckDB differ from BigQuery's.

    BigQuery expands the STRUCTs of an UNNEST to columns, and puts the columns of USING first.  In a
    subquery DuckDB renames the second of two columns with one name.
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
