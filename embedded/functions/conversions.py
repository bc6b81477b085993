"""Texts into values and back by GoogleSQL's rules, as DuckDB macros.

**Invariant:** a text becomes a value only if it is in the form that "Conversion functions: CAST"
gives; DuckDB's own CAST also takes `1_000`, `epoch`, a time after a date, and spaces.

It refuses other texts in BigQuery's words; the macros with `safe` in their names give NULL.
"""

from __future__ import annotations

TEXT = "CAST(x AS VARCHAR)"
_BARE = f"trim({TEXT}, ' \\t\\n\\v\\f\\r')".replace("\\t", "\t").replace("\\n", "\n")
_BARE = _BARE.replace("\\v", "\v").replace("\\f", "\f").replace("\\r", "\r")
_DAY = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = r"([01]?[0-9]|2[0-3]):[0-5]?[0-9]:[0-5]?[0-9](\.[0-9]{0,6})?"
_ZONE = r"( ?[Zz]| ?[+-][0-9]{1,2}(:[0-9]{2})?| [A-Za-z][A-Za-z0-9_+/-]*)?"
_FLOAT = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_SPECIAL = r"[+-]?(inf|infinity|nan)"
_HEX = r"[+-]?0[xX][0-9a-fA-F]+"


def by_type(branches: dict[str, str], otherwise: str) -> str:
    """Return the CASE over the type of x; DuckDB folds it, so that one branch is left."""
    whens = " ".join(f"WHEN '{kind}' THEN {value}" for kind, value in branches.items())
    return f"CASE typeof(x) {whens} ELSE {otherwise} END"


def _full(pattern: str, text: str = TEXT) -> str:
    return f"regexp_full_match({text}, '{pattern}')"


def _whole() -> str:
    """A text of an INT64: decimal, or hexadecimal; white space around it does not count."""
    digits = f"regexp_replace({_BARE}, '^[+]', '')"
    # `-0x1F`: DuckDB reads no sign before 0x.
    unsigned = f"TRY_CAST(regexp_replace({_BARE}, '^[+-]', '') AS HUGEINT)"
    minus = f"CASE WHEN starts_with({_BARE}, '-') THEN -1 ELSE 1 END"
    return (
        f"CASE WHEN {_full('[+-]?[0-9]+', _BARE)} THEN TRY_CAST({digits} AS BIGINT) "
        f"WHEN {_full(_HEX, _BARE)} THEN TRY_CAST({unsigned} * {minus} AS BIGINT) END"
    )


def _real() -> str:
    value = f"TRY_CAST({_BARE} AS DOUBLE)"
    return (
        f"CASE WHEN {_full(_SPECIAL, f'lower({_BARE})')} THEN {value} "
        f"WHEN {_full(_FLOAT, _BARE)} AND NOT isinf({value}) THEN {value} END"
    )


def _exact(kind: str) -> str:
    return f"CASE WHEN {_full(_FLOAT, _BARE)} THEN TRY_CAST({_BARE} AS {kind}) END"


def _day() -> str:
    return f"CASE WHEN {_full(_DAY)} THEN TRY_CAST({TEXT} AS DATE) END"


def _datetime() -> str:
    form = f"{_DAY}([ Tt]{_CLOCK})?"
    return f"CASE WHEN {_full(form)} THEN TRY_CAST(upper({TEXT}) AS TIMESTAMP) END"


def _instant() -> str:
    form = f"{_DAY}([ Tt]{_CLOCK})?{_ZONE}"
    padded = f"regexp_replace({TEXT}, '([+-])([0-9])(:|$)', '\\10\\2\\3')"
    spaced = f"regexp_replace({padded}, '^([0-9-]+)[Tt]', '\\1 ')"
    return f"CASE WHEN {_full(form)} THEN TRY_CAST({spaced} AS TIMESTAMPTZ) END"


def _clock() -> str:
    return f"CASE WHEN {_full(_CLOCK)} THEN TRY_CAST({TEXT} AS TIME) END"


def _pair(name: str, kind: str, text: str, said: str, **more: str) -> dict[str, str]:
    """Return the macro that fails and the one that gives NULL; `more` is by DuckDB type."""
    said = f"error({said})"
    strict = f"CASE WHEN x IS NULL OR {text} IS NOT NULL THEN {text} ELSE {said} END"
    return {
        f"bq_{name}": by_type(
            {"VARCHAR": strict, **{k: v.format("CAST") for k, v in more.items()}},
            f"CAST(x AS {kind})",
        ),
        f"bq_safe_{name}": by_type(
            {"VARCHAR": text, **{k: v.format("TRY_CAST") for k, v in more.items()}},
            f"TRY_CAST(x AS {kind})",
        ),
    }


def _bad(what: str) -> str:
    return f"'{what}' || {TEXT}"


def _invalid(what: str) -> str:
    return f"'Invalid {what}: ''' || {TEXT} || ''''"


_ROUNDED = f"round(TRY_CAST({TEXT} AS DOUBLE))"  # half away from zero; DuckDB's CAST: to even
_DECIMAL_9 = "DECIMAL(38,9)"
_WHOLE_9 = f"{{0}}(round(TRY_CAST({TEXT} AS {_DECIMAL_9}), 0) AS BIGINT)"

BODIES: dict[str, str] = {
    **_pair(
        "int64",
        "BIGINT",
        _whole(),
        _bad("Bad int64 value: "),
        **{"DOUBLE": f"{{0}}({_ROUNDED} AS BIGINT)", _DECIMAL_9: _WHOLE_9},
    ),
    **_pair("float64", "DOUBLE", _real(), _bad("Bad double value: ")),
    **_pair("numeric", _DECIMAL_9, _exact(_DECIMAL_9), _bad("Invalid NUMERIC value: ")),
    **_pair("date", "DATE", _day(), _invalid("date")),
    **_pair("datetime", "TIMESTAMP", _datetime(), _invalid("datetime string")),
    **_pair("timestamp", "TIMESTAMPTZ", _instant(), _invalid("timestamp")),
    **_pair("time", "TIME", _clock(), _invalid("time string")),
}
