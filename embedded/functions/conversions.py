"""Convert texts to values and back by GoogleSQL's rules, as DuckDB macros.

**Invariant:** a text is converted only if it has the form of "Conversion functions: CAST".
DuckDB's CAST also accepts `1_000`, `epoch`, a time after a date, and spaces.

For other texts a macro raises BigQuery's error; one with `safe` in its name returns NULL.
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
    """Return a CASE over the type of x, of which DuckDB's optimizer keeps one branch."""
    whens = " ".join(f"WHEN '{kind}' THEN {value}" for kind, value in branches.items())
    return f"CASE typeof(x) {whens} ELSE {otherwise} END"


def _full(pattern: str, text: str = TEXT) -> str:
    return f"regexp_full_match({text}, '{pattern}')"


def _whole() -> str:
    """Return the conversion of a text to INT64: decimal or hexadecimal, white space around it."""
    digits = f"regexp_replace({_BARE}, '^[+]', '')"
    # DuckDB does not accept a sign before 0x, as in `-0x1F`.
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


def _pair(name: str, kind: str, text: str, message: str, **more: str) -> dict[str, str]:
    """Return two macros: one raises an error, one returns NULL; `more` has cases by DuckDB type."""
    failure = f"error({message})"
    strict = f"CASE WHEN x IS NULL OR {text} IS NOT NULL THEN {text} ELSE {failure} END"
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


# round() rounds halves away from zero, as BigQuery does; DuckDB's CAST rounds them to even.
_ROUNDED = f"round(TRY_CAST({TEXT} AS DOUBLE))"
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
