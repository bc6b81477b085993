"""Find the function that a call names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import Code
from loader.query.googlesql.composites import named_struct
from loader.query.googlesql.functions.aggregates import AGGREGATES, aggregate
from loader.query.googlesql.functions.aggregating import Aggregate, opened
from loader.query.googlesql.functions.arrays import ARRAYS
from loader.query.googlesql.functions.calendar import CALENDAR, extract
from loader.query.googlesql.functions.calls import Call
from loader.query.googlesql.functions.collecting import quantiles
from loader.query.googlesql.functions.conditions import CONDITIONS
from loader.query.googlesql.functions.formats import FORMATS
from loader.query.googlesql.functions.intervals import INTERVALS
from loader.query.googlesql.functions.jsons import JSONS
from loader.query.googlesql.functions.nets import NETS
from loader.query.googlesql.functions.numbers import NUMBERS
from loader.query.googlesql.functions.searches import SEARCHES
from loader.query.googlesql.functions.texts import TEXTS
from loader.query.googlesql.functions.times import TIMES
from loader.query.googlesql.functions.windows import RANKS, VALUES, windowed
from loader.query.googlesql.operators import RULES as OPERATORS
from loader.query.googlesql.positions import refusal

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Function
    from loader.query.googlesql.places import Place, Rule
    from loader.query.googlesql.values import Value


def _struct(call: Call) -> Value:
    return named_struct(call.place, call.nodes, call.node)


FUNCTIONS: dict[str, Function] = {
    **NUMBERS,
    **TEXTS,
    **CONDITIONS,
    **TIMES,
    **INTERVALS,
    **CALENDAR,
    **FORMATS,
    **ARRAYS,
    **JSONS,
    **SEARCHES,
    "STRUCT": _struct,
}
_OTHERS = """
APPROX_TOP_COUNT APPROX_TOP_SUM ARRAY_CONCAT_AGG ARRAY_FILTER ARRAY_INCLUDES ARRAY_IS_DISTINCT
ARRAY_SLICE ARRAY_TRANSFORM BIT_CAST_TO_INT64 BOOL BOOL_ARRAY CODE_POINTS_TO_BYTES
CODE_POINTS_TO_STRING COLLATE CONTAINS_SUBSTR COSINE_DISTANCE COT COTH CSC CSCH CHR CURRENT_TIME
EDIT_DISTANCE ERROR EUCLIDEAN_DISTANCE FARM_FINGERPRINT FLOAT64 FORMAT FORMAT_TIME FROM_BASE32
GENERATE_RANGE_ARRAY GROUPING INITCAP INSTR INT64 IS_FIRST IS_LAST JSON_ARRAY JSON_ARRAY_APPEND
JSON_KEYS JSON_OBJECT JSON_REMOVE JSON_SET JSON_STRIP_NULLS JSON_TYPE JUSTIFY_DAYS JUSTIFY_HOURS
LAX_BOOL LAX_FLOAT64 LAX_INT64 LAX_STRING MAKE_INTERVAL NORMALIZE NORMALIZE_AND_CASEFOLD
PARSE_BIGNUMERIC PARSE_JSON PARSE_NUMERIC PARSE_TIME PERCENTILE_CONT PERCENTILE_DISC
RANGE_BUCKET RANGE_CONTAINS RANGE_END RANGE_INTERSECT RANGE_OVERLAPS RANGE_START REGEXP_INSTR SEC
SECH SESSION_USER SOUNDEX STRING STRING_ARRAY TIME TIME_ADD TIME_DIFF TIME_SUB TIME_TRUNC
TO_BASE32 TO_CODE_POINTS TO_JSON TRANSLATE TYPEOF VECTOR_SEARCH
"""
REFUSED = frozenset(_OTHERS.split())
"""BigQuery's functions without a translation: another error than for what is no function."""
NAMES = frozenset(FUNCTIONS) | frozenset(AGGREGATES) | RANKS.keys() | VALUES


def _call(place: Place, node: exp.Expr, *, safe: bool = False) -> Call:
    return Call(place, str(node.this).upper(), node, list(node.expressions), safe)


def _anonymous(place: Place, node: exp.Expr) -> Value:
    return _called(_call(place, node))


def _called(call: Call) -> Value:
    name = call.name
    if name in FUNCTIONS:
        return FUNCTIONS[name](call)
    if name in AGGREGATES:
        return aggregate(call)
    if name in RANKS or name in VALUES:
        raise call.refused(f"{name} needs OVER")
    if name in REFUSED or name.startswith("ST_"):
        raise call.unsupported(f"the function {name}")
    raise refusal(Code.UNKNOWN_FUNCTION, f"{name} is no function", call.node)


def _safe(place: Place, node: exp.Expr) -> Value:
    inner = node.this
    if not isinstance(inner, exp.Anonymous):
        raise refusal(Code.NOT_SUPPORTED, "SAFE of this is not supported", node)
    call = _call(place, inner, safe=True)
    if call.name in SAFE_BY_THEMSELVES:
        return _called(call)
    raise call.unsupported(f"SAFE.{call.name}")


_SAFE = """
LENGTH LOWER UPPER STRPOS STARTS_WITH ENDS_WITH TO_HEX TO_BASE64 MD5 SHA1 SHA256 SHA512
PARSE_TIMESTAMP PARSE_DATE PARSE_DATETIME UNIX_SECONDS UNIX_MILLIS UNIX_MICROS REVERSE
"""
SAFE_BY_THEMSELVES = frozenset(_SAFE.split())


def _net(place: Place, node: exp.Expr) -> Value:
    inner = node.this
    name = str(inner.this).upper() if isinstance(inner, exp.Anonymous) else ""
    if name not in NETS:
        raise refusal(Code.NOT_SUPPORTED, f"the function NET.{name} is not supported", node)
    return NETS[name](_call(place, inner))


def _window(place: Place, node: exp.Expr) -> Value:
    inner = node.this
    if not isinstance(inner, exp.Anonymous):
        raise refusal(Code.NOT_SUPPORTED, "OVER after this is not supported", node)
    return windowed(place, _call(place, inner), node)


def _without_brackets(name: str) -> Rule:
    """CURRENT_DATE without brackets."""
    return lambda place, node: FUNCTIONS[name](
        Call(place, name, node, [node.this] if node.this is not None else [])
    )


def _bracket(place: Place, node: exp.Expr) -> Value:
    """Take one of APPROX_QUANTILES without computing the others."""
    inner = node.this
    if isinstance(inner, exp.Anonymous) and str(inner.this).upper() == "APPROX_QUANTILES":
        call = _call(place, inner)
        index = node.expressions[0]
        steps = call.whole(1, "a number of quantiles") if len(call.nodes) == 2 else 0  # noqa: PLR2004
        if place.aggregates and isinstance(index, exp.Literal) and str(index.this).isdigit():
            picked = int(str(index.this)) - int(node.args.get("offset") or 0)
            nodes, modifiers = opened(call)
            if 0 <= picked <= steps:
                inner_call = Call(place.inside(), call.name, inner, nodes)
                return quantiles(Aggregate(inner_call, modifiers), picked)
    return OPERATORS[exp.Bracket](place, node)


RULES: dict[type[exp.Expr], Rule] = {
    **OPERATORS,
    exp.Anonymous: _anonymous,
    exp.SafeFunc: _safe,
    exp.NetFunc: _net,
    exp.Window: _window,
    exp.Extract: extract,
    exp.Bracket: _bracket,
    exp.CurrentDate: _without_brackets("CURRENT_DATE"),
    exp.CurrentDatetime: _without_brackets("CURRENT_DATETIME"),
    exp.CurrentTimestamp: _without_brackets("CURRENT_TIMESTAMP"),
}
