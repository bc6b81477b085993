"""GoogleSQL functions that DuckDB has not, or has with another meaning, as DuckDB macros.

**Invariant:** a macro gives what the GoogleSQL function reference says, for every type that it has
an overload for; DuckDB picks the overload by the argument's type.

It refuses other types: without an overload DuckDB finds no such macro.
"""

from __future__ import annotations

N = "DECIMAL(38,9)"
NO_DIVISION = "error('division by zero')"
NO_NUMERIC = "error('NUMERIC division is not supported by the embedded BigQuery: cast to FLOAT64')"
# DuckDB prints fractions without trailing zeros, BigQuery in groups of three digits.
_FRACTION = "regexp_replace(regexp_replace({0}, '\\.000000', ''), '(\\.[0-9]{{3}})000', '\\1')"
# %.15g, or %.17g where that is not exact: exponents from 1e15 on, where DuckDB has them from 1e16.
_FLOAT_TEXT = (
    "CASE WHEN isnan(x) THEN 'NaN' WHEN isinf(x) THEN CAST(x AS VARCHAR) "
    "WHEN abs(x) >= 1e15 THEN error('FLOAT64 of 1e15 or more as STRING is not supported by the "
    "embedded BigQuery') ELSE regexp_replace(CAST(x AS VARCHAR), '\\.0$', '') END"
)
_INT_TEXT = "regexp_full_match(x, '[+-]?[0-9]+')"
_SAME_PLACE = "CASE WHEN p = 0 OR -p > length(s) THEN 1 ELSE p END"
_SCALAR = (
    "CASE WHEN json_type(j, p) IN ('OBJECT', 'ARRAY', 'NULL') THEN NULL "
    "ELSE json_extract_string(j, p) END"
)
_SCALARS = (
    "CASE WHEN json_type(j, p) = 'ARRAY' AND len(list_filter(CAST(json_extract(j, p) AS JSON[]), "
    "lambda e: json_type(e) IN ('OBJECT', 'ARRAY'))) = 0 THEN "
    "CAST(json_extract(j, p) AS VARCHAR[]) END"
)
_TO_JSON = (
    "CASE WHEN typeof(x) IN ('JSON', 'VARCHAR', 'BIGINT', 'INTEGER', 'BOOLEAN', 'DATE') "
    "THEN CAST(to_json(x) AS VARCHAR) ELSE error('TO_JSON_STRING of ' || typeof(x) || "
    "' is not supported by the embedded BigQuery') END"
)
_INSTANT_TEXT = (
    _FRACTION.format("strftime(CAST(x AS TIMESTAMP), '%Y-%m-%d %H:%M:%S.%f')") + " || '+00'"
)


def _json_as(types: str, value: str, noun: str) -> tuple[str, str]:
    """Return the overload that takes a value out of a JSON of these types only."""
    said = f"error('The provided JSON input is not {noun}')"
    return (
        "j JSON",
        f"CASE WHEN json_type(j) IN ({types}) THEN {value} WHEN j IS NOT NULL THEN {said} END",
    )


# name → overloads: (parameters, body).  Conversion rules: "Conversion functions: CAST".
MACROS: dict[str, list[tuple[str, str]]] = {
    "bq_string": [
        ("x VARCHAR", "x"),
        ("x BLOB", "decode(x)"),
        ("x BOOLEAN", "CAST(x AS VARCHAR)"),
        ("x BIGINT", "CAST(x AS VARCHAR)"),
        ("x HUGEINT", "CAST(x AS VARCHAR)"),
        ("x DATE", "CAST(x AS VARCHAR)"),
        ("x DOUBLE", _FLOAT_TEXT),
        (f"x {N}", "regexp_replace(CAST(x AS VARCHAR), '\\.?0+$', '')"),
        ("x TIMESTAMP", _FRACTION.format("strftime(x, '%Y-%m-%d %H:%M:%S.%f')")),
        ("x TIMESTAMPTZ", _INSTANT_TEXT),
        (
            "x TIME",
            _FRACTION.format("strftime(DATE '2000-01-01' + x, '%H:%M:%S.%f')"),
        ),
    ],
    "bq_int64": [
        ("x BIGINT", "x"),
        ("x HUGEINT", "CAST(x AS BIGINT)"),
        ("x BOOLEAN", "CAST(x AS BIGINT)"),
        ("x DOUBLE", "CAST(round(x) AS BIGINT)"),  # half away from zero, DuckDB's CAST to even
        (f"x {N}", "CAST(round(x) AS BIGINT)"),
        (
            "x VARCHAR",
            (
                f"CASE WHEN x IS NULL THEN NULL WHEN {_INT_TEXT} THEN CAST(x AS BIGINT) "
                "ELSE error('Bad int64 value: ' || x) END"
            ),
        ),
    ],
    "bq_safe_int64": [
        ("x BIGINT", "x"),
        ("x HUGEINT", "TRY_CAST(x AS BIGINT)"),
        ("x BOOLEAN", "CAST(x AS BIGINT)"),
        ("x DOUBLE", "TRY_CAST(round(x) AS BIGINT)"),
        (f"x {N}", "TRY_CAST(round(x) AS BIGINT)"),
        ("x VARCHAR", f"CASE WHEN {_INT_TEXT} THEN TRY_CAST(x AS BIGINT) END"),
    ],
    "bq_bool": [
        ("x BOOLEAN", "x"),
        ("x BIGINT", "x <> 0"),
        (
            "x VARCHAR",
            (
                "CASE WHEN x IS NULL THEN NULL WHEN lower(x) IN ('true', 'false') THEN "
                "lower(x) = 'true' ELSE error('Bad bool value: ' || x) END"
            ),
        ),
    ],
    "bq_safe_bool": [
        ("x BOOLEAN", "x"),
        ("x BIGINT", "x <> 0"),
        ("x VARCHAR", "CASE WHEN lower(x) IN ('true', 'false') THEN lower(x) = 'true' END"),
    ],
    "bq_bytes": [("x BLOB", "x"), ("x VARCHAR", "encode(x)")],
    "bq_div": [
        (f"a {t}, b {t}", f"CASE WHEN b = 0 THEN {NO_DIVISION} ELSE a / b END")
        for t in ("BIGINT", "HUGEINT", "DOUBLE")
    ]
    + [(f"a {N}, b {N}", NO_NUMERIC)],
    "bq_safe_divide": [
        (f"a {t}, b {t}", "CASE WHEN b <> 0 THEN a / b END")
        for t in ("BIGINT", "HUGEINT", "DOUBLE")
    ]
    + [(f"a {N}, b {N}", NO_NUMERIC)],
    "bq_intdiv": [
        (f"a {t}, b {t}", f"CASE WHEN b = 0 THEN {NO_DIVISION} ELSE a // b END")
        for t in ("BIGINT", "HUGEINT")
    ],
    "bq_mod": [
        (f"a {t}, b {t}", f"CASE WHEN b = 0 THEN {NO_DIVISION} ELSE a % b END")
        for t in ("BIGINT", "HUGEINT", N)
    ],
    "bq_mul": [
        ("a BIGINT, b BIGINT", "a * b"),
        ("a HUGEINT, b HUGEINT", "a * b"),
        ("a DOUBLE, b DOUBLE", "a * b"),
        (f"a {N}, b {N}", f"CAST(a * b AS {N})"),
    ],
    "bq_add": [("a DATE, b BIGINT", "a + CAST(b AS INTEGER)"), ("a, b", "a + b")],
    "bq_sub": [
        ("a DATE, b DATE", "error('DATE - DATE is not supported by the embedded BigQuery')"),
        ("a DATE, b BIGINT", "a - CAST(b AS INTEGER)"),
        ("a, b", "a - b"),
    ],
    "bq_no_numeric": [
        ("x BIGINT", "x"),
        ("x HUGEINT", "x"),
        ("x DOUBLE", "x"),
        (f"x {N}", NO_NUMERIC),
    ],
    **{
        f"bq_{name}": [
            ("x BIGINT", f"CAST({name}(x) AS DOUBLE)"),  # of INT64 BigQuery gives FLOAT64
            ("x DOUBLE", f"{name}(x)"),
            (f"x {N}", f"CAST({name}(x) AS {N})"),
        ]
        for name in ("ceil", "floor", "round", "trunc")
    },
    "bq_round_to": [
        ("x BIGINT, n BIGINT", "CAST(round(x, CAST(n AS INTEGER)) AS DOUBLE)"),
        ("x DOUBLE, n BIGINT", "round(x, CAST(n AS INTEGER))"),
        (
            f"x {N}, n BIGINT",
            "error('ROUND of NUMERIC to digits is not supported by the embedded BigQuery')",
        ),
    ],
    "bq_sign": [
        ("x BIGINT", "CAST(sign(x) AS BIGINT)"),
        ("x DOUBLE", "CAST(sign(x) AS DOUBLE)"),
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
        (
            "s VARCHAR, p BIGINT, n BIGINT",
            (
                "CASE WHEN n < 0 THEN error('Third argument in SUBSTR() cannot be negative') "
                f"ELSE substr(s, {_SAME_PLACE}, n) END"
            ),
        ),
    ],
    "bq_length": [("x VARCHAR", "length(x)"), ("x BLOB", "octet_length(x)")],
    "bq_json_value": [("j JSON, p", _SCALAR), ("j VARCHAR, p", _SCALAR)],
    "bq_json_query": [
        ("j JSON, p", "json_extract(j, p)"),
        ("j VARCHAR, p", "CAST(json_extract(j, p) AS VARCHAR)"),
    ],
    "bq_json_query_array": [
        (
            "j JSON, p",
            "CASE WHEN json_type(j, p) = 'ARRAY' THEN CAST(json_extract(j, p) AS JSON[]) END",
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
    "bq_to_json_string": [("x", _TO_JSON)],
    **{
        f"bq_unix_{unit}": [("t TIMESTAMPTZ", f"CAST(floor(epoch_us(t) / {micros}) AS BIGINT)")]
        for unit, micros in (("seconds", 1_000_000), ("millis", 1_000), ("micros", 1))
    },
    **{
        f"bq_timestamp_{unit}": [("n BIGINT", f"CAST(make_timestamp(n * {micros}) AS TIMESTAMPTZ)")]
        for unit, micros in (("seconds", 1_000_000), ("millis", 1_000), ("micros", 1))
    },
    "bq_nonneg": [
        (
            "x DOUBLE",
            "CASE WHEN x < 0 THEN error('Argument must not be negative') ELSE x END",
        )
    ],
}


def statements() -> list[str]:
    """Return the statements that (re)create every macro."""
    return [
        f"CREATE OR REPLACE MACRO {name} "
        + ", ".join(f"({parameters}) AS ({body})" for parameters, body in overloads)
        for name, overloads in MACROS.items()
    ]
