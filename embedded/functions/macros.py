"""GoogleSQL functions that DuckDB lacks or defines differently, as DuckDB macros.

**Invariant:** a macro returns what GoogleSQL's function reference says, for every type for which it
has an overload.  DuckDB chooses the overload by the argument's type; for other types there is none,
and the call is an error.
"""

from __future__ import annotations

import re

from embedded.functions import arithmetic, comparisons, composed, conversions, searches, texts
from embedded.functions.conversions import by_type as _by_type

N = "DECIMAL(38,9)"
OFTEN = 2  # how often a body may use a parameter before `_once` evaluates it first
NO_DIVISION = "error('division by zero')"


def _no(what: str) -> str:
    return f"error('{what} is not supported by the embedded BigQuery')"


def _is_decimal(name: str) -> str:
    return f"typeof({name}) LIKE 'DECIMAL%'"


# DuckDB binds every branch for every type, so each branch begins with a cast to text, which all
# types have.  No branch may fail for another type: DuckDB evaluates common parts before the CASE.
_TEXT = "CAST(x AS VARCHAR)"
_DOUBLE = f"TRY_CAST({_TEXT} AS DOUBLE)"
# DuckDB writes fractions without trailing zeros, BigQuery in groups of three digits.
_FRACTION = "regexp_replace(regexp_replace({0}, '\\.000000', ''), '(\\.[0-9]{{3}})000', '\\1')"
_SECONDS = "'%Y-%m-%d %H:%M:%S.%f'"
_STRING = {
    "VARCHAR": _TEXT,
    '"NULL"': _TEXT,
    "BOOLEAN": _TEXT,
    "DATE": _TEXT,
    **dict.fromkeys(("INTEGER", "BIGINT", "HUGEINT"), _TEXT),
    "BLOB": f"decode(TRY_CAST({_TEXT} AS BLOB))",
    N: f"regexp_replace({_TEXT}, '\\.?0+$', '')",
    # %.15g, or %.17g if that is not exact; with an exponent from 1e15 on, DuckDB: from 1e16.
    "DOUBLE": (
        f"CASE WHEN isnan({_DOUBLE}) THEN 'NaN' WHEN isinf({_DOUBLE}) THEN {_TEXT} "
        f"WHEN CAST(printf('%.15g', {_DOUBLE}) AS DOUBLE) = {_DOUBLE} "
        f"THEN printf('%.15g', {_DOUBLE}) ELSE printf('%.17g', {_DOUBLE}) END"
    ),
    "TIMESTAMP": _FRACTION.format(f"strftime(TRY_CAST({_TEXT} AS TIMESTAMP), {_SECONDS})"),
    "TIMESTAMP WITH TIME ZONE": (
        _FRACTION.format(
            f"strftime(CAST(TRY_CAST({_TEXT} AS TIMESTAMPTZ) AS TIMESTAMP), {_SECONDS})"
        )
        + " || '+00'"
    ),
    "TIME": _FRACTION.format(
        f"strftime(DATE '2000-01-01' + TRY_CAST({_TEXT} AS TIME), '%H:%M:%S.%f')"
    ),
}
_IS_BOOL = f"lower({_TEXT}) IN ('true', 'false')"
_ANY_DOUBLE = "'DOUBLE' IN (typeof(a), typeof(b))"
_DECIMAL_DIVISION = (
    f"({_is_decimal('a')} AND typeof(b) <> 'DOUBLE') OR "
    f"({_is_decimal('b')} AND typeof(a) <> 'DOUBLE')"
)
_BYTE_PLACE = (
    "CASE WHEN p = 0 OR -p > octet_length(s) THEN 1 WHEN p < 0 "
    "THEN 2 * (octet_length(s) + p) + 1 ELSE 2 * p - 1 END"
)
_SAME_PLACE = "CASE WHEN p = 0 OR -p > length(s) THEN 1 ELSE p END"
# A malformed JSON text has no values: google/zetasql, json.h, "Null cases" of JsonPathEvaluator.
_SCALAR = (
    "CASE WHEN NOT json_valid(j) THEN NULL "
    "WHEN json_type(j, p) IN ('OBJECT', 'ARRAY', 'NULL') THEN NULL "
    # A number of a STRING stays as it is written; a JSON has the number itself.
    "WHEN json_type(j, p) = 'DOUBLE' THEN CASE WHEN typeof(j) = 'JSON' "
    "THEN bq_string(CAST(json_extract_string(j, p) AS DOUBLE)) "
    "ELSE py_json_number(CAST(j AS VARCHAR), p) END "
    "ELSE json_extract_string(j, p) END"
)
_SCALARS = (
    "CASE WHEN json_type(j, p) = 'ARRAY' AND len(list_filter(CAST(json_extract(j, p) AS JSON[]), "
    "lambda e: json_type(e) IN ('OBJECT', 'ARRAY'))) = 0 THEN "
    "CAST(json_extract(j, p) AS VARCHAR[]) END"
)
_TO_JSON = (
    "CASE WHEN x IS NULL THEN 'null' WHEN typeof(x) IN ('VARCHAR', 'INTEGER', 'BOOLEAN', 'DATE') "
    "THEN CAST(to_json(x) AS VARCHAR) ELSE py_json(typeof(x), CAST(to_json(x) AS VARCHAR), p) END"
)
_INSTANT_TEXT = _FRACTION.format(f"strftime(CAST(x AS TIMESTAMP), {_SECONDS})") + " || '+00'"


def _json_as(types: str, value: str, noun: str) -> tuple[str, str]:
    """Return an overload that converts a JSON value only if it has one of these JSON types."""
    failure = f"error('The provided JSON input is not {noun}')"
    return (
        "j JSON",
        f"CASE WHEN json_type(j) IN ({types}) THEN {value} WHEN j IS NOT NULL THEN {failure} END",
    )


# name → overloads: (parameters, body).  DuckDB chooses an overload before it knows the type of an
# aggregate function, so a macro that may have one as argument has a single overload with typeof.
# Conversion rules: "Conversion functions: CAST".
MACROS: dict[str, list[tuple[str, str]]] = {
    "bq_safe_string": [
        (
            "x",
            _by_type(
                {**_STRING, "BLOB": f"TRY(decode(TRY_CAST({_TEXT} AS BLOB)))"},
                "error('Invalid cast to STRING from ' || typeof(x))",
            ),
        )
    ],
    "bq_string": [("x", _by_type(_STRING, "error('Invalid cast to STRING from ' || typeof(x))"))],
    "bq_bool": [
        (
            "x",
            _by_type(
                {
                    "VARCHAR": f"CASE WHEN x IS NULL OR {_IS_BOOL} THEN lower({_TEXT}) = 'true' "
                    f"ELSE error('Bad bool value: ' || {_TEXT}) END"
                },
                "CAST(x AS BOOLEAN)",
            ),
        )
    ],
    "bq_safe_bool": [
        (
            "x",
            _by_type(
                {"VARCHAR": f"CASE WHEN {_IS_BOOL} THEN lower({_TEXT}) = 'true' END"},
                "TRY_CAST(x AS BOOLEAN)",
            ),
        )
    ],
    "bq_bytes": [("x BLOB", "x"), ("x VARCHAR", "encode(x)")],
    "bq_div": [
        (
            "a, b",
            (
                f"CASE WHEN {_DECIMAL_DIVISION} THEN {_no('Division of NUMERIC')} "
                f"WHEN b = 0 THEN {NO_DIVISION} WHEN isinf(CAST(a AS DOUBLE) / CAST(b AS DOUBLE)) "
                "AND NOT isinf(CAST(a AS DOUBLE)) "
                "THEN error('double overflow: ' || a || ' / ' || b) "
                "ELSE a / b END"
            ),
        )
    ],
    "bq_safe_divide": [
        (
            "a, b",
            (
                f"CASE WHEN {_DECIMAL_DIVISION} THEN {_no('Division of NUMERIC')} "
                "WHEN b <> 0 AND NOT (isinf(CAST(a AS DOUBLE) / CAST(b AS DOUBLE)) "
                "AND NOT isinf(CAST(a AS DOUBLE))) THEN a / b END"
            ),
        )
    ],
    "bq_intdiv": [
        (
            "a, b",
            (
                f"CASE WHEN {_ANY_DOUBLE} THEN {_no('DIV of FLOAT64')} "
                f"WHEN b = 0 THEN {NO_DIVISION} ELSE a // b END"
            ),
        )
    ],
    "bq_mod": [
        (
            "a, b",
            (
                f"CASE WHEN {_ANY_DOUBLE} THEN {_no('MOD of FLOAT64')} "
                f"WHEN b = 0 THEN {NO_DIVISION} ELSE a % b END"
            ),
        )
    ],
    "bq_sub": [
        (
            "a, b",
            (
                f"CASE WHEN typeof(a) = 'DATE' AND typeof(b) = 'DATE' THEN {_no('DATE - DATE')} "
                "ELSE a - b END"
            ),
        )
    ],
    "bq_no_numeric": [
        ("x", f"CASE WHEN {_is_decimal('x')} THEN {_no('AVG of NUMERIC')} ELSE x END")
    ],
    **{
        f"bq_{name}": [
            (
                "x",
                (
                    f"CASE WHEN {_is_decimal('x')} THEN {_no(f'{name.upper()} of NUMERIC')} "
                    f"ELSE CAST({name}(x) AS DOUBLE) END"
                ),  # BigQuery returns FLOAT64 for INT64, too
            )
        ]
        for name in ("ceil", "floor", "round", "trunc")
    },
    "bq_round_to": [
        (
            "x, n",
            (
                f"CASE WHEN {_is_decimal('x')} THEN {_no('ROUND of NUMERIC')} "
                "ELSE round(CAST(x AS DOUBLE), CAST(n AS INTEGER)) END"
            ),
        )
    ],
    "bq_trunc_to": [
        (
            "x, n",
            (
                f"CASE WHEN {_is_decimal('x')} THEN {_no('TRUNC of NUMERIC')} "
                "ELSE trunc(CAST(x AS DOUBLE), CAST(n AS INTEGER)) END"
            ),
        )
    ],
    "bq_sign": [
        ("x BIGINT", "CAST(sign(x) AS BIGINT)"),
        ("x DOUBLE", "CASE WHEN isnan(x) THEN x ELSE CAST(sign(x) AS DOUBLE) END"),
    ],
    "bq_item": [
        (
            "l, i",
            (
                "CASE WHEN i < 0 OR i >= len(l) THEN error('Array index ' || i || "
                "' is out of bounds') ELSE list_extract(l, i + 1) END"
            ),
        )
    ],
    "bq_safe_item": [("l, i", "CASE WHEN i >= 0 THEN list_extract(l, i + 1) END")],
    "bq_substr": [
        ("s VARCHAR, p BIGINT", f"substr(s, {_SAME_PLACE})"),
        ("s BLOB, p BIGINT", f"unhex(substr(hex(s), {_BYTE_PLACE}))"),
        (
            "s BLOB, p BIGINT, n BIGINT",
            (
                "CASE WHEN n < 0 THEN error('Third argument in SUBSTR() cannot be negative') "
                f"ELSE unhex(substr(hex(s), {_BYTE_PLACE}, 2 * n)) END"
            ),
        ),
        (
            "s VARCHAR, p BIGINT, n BIGINT",
            (
                "CASE WHEN n < 0 THEN error('Third argument in SUBSTR() cannot be negative') "
                f"ELSE substr(s, {_SAME_PLACE}, n) END"
            ),
        ),
    ],
    "bq_length": [
        (
            "x",
            _by_type(
                {
                    "VARCHAR": f"length({_TEXT})",
                    "BLOB": f"octet_length(TRY_CAST({_TEXT} AS BLOB))",
                    '"NULL"': "NULL",
                },
                "error('No matching signature for LENGTH of ' || typeof(x))",
            ),
        )
    ],
    "bq_json_value": [("j, p", _SCALAR)],
    "bq_json_query": [
        ("j JSON, p", "json_extract(j, p)"),
        (
            "j VARCHAR, p",
            (
                "CASE WHEN json_type(j, p) = 'NULL' THEN NULL WHEN regexp_matches(j, '[0-9][.eE]') "
                "THEN py_json_part(j, p) ELSE CAST(json_extract(j, p) AS VARCHAR) END"
            ),
        ),
    ],
    "bq_json_query_array": [
        (
            "j JSON, p",
            "CASE WHEN json_type(j, p) = 'ARRAY' THEN CAST(json_extract(j, p) AS JSON[]) END",
        ),
        (
            "j VARCHAR, p",
            (
                "CASE WHEN json_type(j, p) = 'ARRAY' THEN list_transform(CAST(CASE WHEN "
                "regexp_matches(j, '[0-9][.eE]') THEN error('JSON_QUERY_ARRAY of a STRING with "
                "fractions is not supported by the embedded BigQuery (use PARSE_JSON)') "
                "ELSE json_extract(j, p) END AS JSON[]), lambda e: CAST(e AS VARCHAR)) END"
            ),
        ),
    ],
    "bq_json_value_array": [("j, p", _SCALARS)],
    "bq_json_int64": [_json_as("'BIGINT', 'UBIGINT'", "CAST(j AS BIGINT)", "an integer")],
    "bq_json_float64": [_json_as("'BIGINT', 'UBIGINT', 'DOUBLE'", "CAST(j AS DOUBLE)", "a number")],
    "bq_json_bool": [_json_as("'BOOLEAN'", "CAST(j AS BOOLEAN)", "a boolean")],
    "bq_json_string": [
        _json_as("'VARCHAR'", "json_extract_string(j, '$')", "a string"),
        ("x TIMESTAMPTZ", _INSTANT_TEXT),
        ("x DATE", "CAST(x AS VARCHAR)"),
    ],
    "bq_to_json_string": [("x, p", _TO_JSON)],
    **{
        f"bq_unix_{unit}": [("t TIMESTAMPTZ", f"CAST(floor(epoch_us(t) / {micros}) AS BIGINT)")]
        for unit, micros in (("seconds", 1_000_000), ("millis", 1_000), ("micros", 1))
    },
    **{
        f"bq_timestamp_{unit}": [("n BIGINT", f"CAST(make_timestamp(n * {micros}) AS TIMESTAMPTZ)")]
        for unit, micros in (("seconds", 1_000_000), ("millis", 1_000), ("micros", 1))
    },
}


def statements() -> list[str]:
    """Return the statements that (re)create every macro."""
    more = {
        **{name: [("x", body)] for name, body in conversions.BODIES.items()},
        **{name: [one] for name, one in comparisons.BODIES.items()},
        **{name: [one] for name, one in arithmetic.BODIES.items()},
        **{name: [one] for name, one in texts.BODIES.items()},
        **{name: [one] for name, one in composed.BODIES.items()},
        **{name: [one] for name, one in searches.BODIES.items()},
    }
    made: list[str] = []
    for name, overloads in {**more, **MACROS}.items():
        if len(overloads) == 1:
            overloads = _once(name, *overloads[0], made)  # noqa: PLW2901
        bodies = ", ".join(f"({parameters}) AS ({body})" for parameters, body in overloads)
        made.append(f"CREATE OR REPLACE MACRO {name} {bodies}")
    return made


def _once(name: str, parameters: str, body: str, made: list[str]) -> list[tuple[str, str]]:
    """Return a macro's overload so that an argument which the body uses often is evaluated once.

    DuckDB replaces each use of a parameter by the argument's expression, so nested calls grow
    exponentially.  The parameter of a lambda is evaluated once.
    """
    names = [one.split()[0] for one in parameters.split(", ")]
    if max(len(re.findall(rf"\b{one}\b", body)) for one in names) <= OFTEN:
        return [(parameters, body)]
    made.append(f"CREATE OR REPLACE MACRO {name}_of ({', '.join(names)}) AS ({body})")
    if len(names) == 1:
        value, inner = f"[{names[0]}]", "_v"
    else:
        value = "[{" + ", ".join(f"'{one}': {one}" for one in names) + "}]"
        inner = ", ".join(f"struct_extract(_v, '{one}')" for one in names)
    return [(parameters, f"list_transform({value}, lambda _v: {name}_of({inner}))[1]")]
