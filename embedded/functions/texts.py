"""Functions of STRING and BYTES that DuckDB lacks or defines differently.

**Invariant:** the result is as "String functions" says.

These are errors: negative lengths and positions, regular expressions with two groups, and BYTES
where DuckDB would treat them as text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from embedded.functions.duck import call, duck
from embedded.model.columns import literal
from embedded.model.errors import ApiError, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

# Unicode's White_Space, which TRIM removes if no characters are given.
WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
)
WHITE += "\u2028\u2029\u202f\u205f\u3000"
_DELIMITERS = r"\s\[\](){}/|<>!?@\"^#$&~_,.:;*%+\-"
BODIES: dict[str, tuple[str, str]] = {
    "bq_repeat": (
        "s, n",
        (
            "CASE WHEN n < 0 THEN error('Second argument in REPEAT must be non-negative') "
            "ELSE repeat(s, CAST(n AS BIGINT)) END"
        ),
    ),
    **{
        f"bq_{name}": (
            "s, n, f",
            (
                f"CASE WHEN n < 0 THEN error('Second argument (output size) for {name.upper()} "
                f"cannot be negative') WHEN f = '' THEN error('Third argument (pad pattern) for "
                f"{name.upper()} cannot be empty') ELSE {name}(s, CAST(n AS INTEGER), f) END"
            ),
        )
        for name in ("lpad", "rpad")
    },
    **{
        f"bq_{name}": (
            "s, n",
            (
                f"CASE WHEN n < 0 THEN error('Second argument in {name.upper()}() cannot be "
                f"negative') ELSE {name}(s, CAST(n AS BIGINT)) END"
            ),
        )
        for name in ("left", "right")
    },
    "bq_byte_length": (
        "x",
        (
            "CASE typeof(x) WHEN 'BLOB' THEN octet_length(TRY_CAST(CAST(x AS VARCHAR) AS BLOB)) "
            "ELSE CAST(strlen(CAST(x AS VARCHAR)) AS BIGINT) END"
        ),
    ),
    "bq_instr": (
        "s, w, p, n",
        (
            "CASE WHEN p = 0 THEN error('Third argument in INSTR must not be 0') WHEN p < 0 THEN "
            "error('INSTR from the end is not supported by the embedded BigQuery') WHEN n < 1 THEN "
            "error('Fourth argument in INSTR must be positive') ELSE coalesce(list_filter(range("
            "CAST(p AS BIGINT), CAST(length(s) + 2 - length(w) AS BIGINT)), "
            "lambda i: substr(s, i, length(w)) = w)[n], CASE WHEN s IS NOT NULL AND w IS NOT NULL "
            "THEN 0 END) END"
        ),
    ),
    "bq_chr": (
        "n",
        (
            "CASE WHEN n < 0 OR n > 1114111 OR n BETWEEN 55296 AND 57343 THEN "
            "error('Invalid codepoint ' || n) WHEN n = 0 THEN '' ELSE chr(CAST(n AS INTEGER)) END"
        ),
    ),
    "bq_initcap": (
        "s",
        (
            f"array_to_string(list_transform(regexp_extract_all(s, '[{_DELIMITERS}]+|"
            f"[^{_DELIMITERS}]+'), lambda w: upper(w[1]) || lower(w[2:])), '')"
        ),
    ),
    "bq_code_points": (
        "s",
        (
            "list_transform(CASE WHEN s = '' THEN [] ELSE string_split(s, '') END, "
            "lambda c: CAST(unicode(c) AS BIGINT))"
        ),
    ),
    "bq_from_code_points": (
        "l",
        "array_to_string(list_transform(l, lambda n: bq_chr(n)), '')",
    ),
    "bq_bytes_of_code_points": (
        "l",
        (
            "unhex(array_to_string(list_transform(l, lambda n: CASE WHEN n BETWEEN 0 AND 255 THEN "
            "printf('%02x', CAST(n AS INTEGER)) "
            "ELSE error('Invalid extended ASCII code points ' || n) END), ''))"
        ),
    ),
    "bq_from_hex": (
        "s",
        (
            "CASE WHEN regexp_full_match(s, '[0-9a-fA-F]*') THEN "
            "unhex(CASE WHEN length(s) % 2 = 1 THEN '0' || s ELSE s END) "
            "WHEN s IS NOT NULL "
            "THEN error('Failed to decode invalid hexadecimal string: ' || s) END"
        ),
    ),
    "bq_array_text": (
        "l, d, n",
        "array_to_string(list_transform(l, lambda e: coalesce(e, n)), d)",
    ),
    "bq_array_join": (  # DuckDB's array_to_string takes a constant alone
        "l, d",
        (
            "CASE WHEN d IS NULL OR l IS NULL THEN NULL WHEN len(list_filter(l, lambda e: "
            "e IS NOT NULL)) = 0 THEN '' ELSE list_reduce(list_filter(l, lambda e: "
            "e IS NOT NULL), lambda one, two: one || d || two) END"
        ),
    ),
    "bq_contains_words": (
        "s, w",
        "contains(lower(nfc_normalize(s)), lower(nfc_normalize(w)))",
    ),
}


def trim(node: exp.Expr) -> exp.Expr:
    """Rewrite TRIM to remove all white space of Unicode; DuckDB's trim removes only spaces."""
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
    chars = node.args.get("expression") or exp.Literal.string(WHITE)
    return call(name, node.this, chars)


def pad(node: exp.Expr) -> exp.Expr:
    """Rewrite LPAD and RPAD; the default pattern is a space."""
    name = "bq_lpad" if node.args.get("is_left") else "bq_rpad"
    fill = node.args.get("fill_pattern") or exp.Literal.string(" ")
    return call(name, node.this, node.expression, fill)


def position(node: exp.Expr) -> exp.Expr:
    """Rewrite STRPOS, and INSTR with a start position and an occurrence."""
    start, nth = node.args.get("position"), node.args.get("occurrence")
    if start is None and nth is None:
        return node
    one = exp.Literal.number(1)
    return call("bq_instr", node.this, node.args["substr"], start or one, nth or one.copy())


def groups(node: exp.Expr) -> exp.Expr:
    """Rewrite REGEXP_EXTRACT…: return the group of the expression, or the match if it has none."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal | exp.RawString):
        raise unsupported(f"{node.key.upper()} with an expression that is no literal")
    count = _groups(pattern.name)
    if count > 1:
        raise ApiError(
            "invalidQuery",
            "Regular expressions passed into extraction functions must not have more than 1 "
            "capturing group",
        )
    place, nth = node.args.get("position"), node.args.get("occurrence")
    found = f"regexp_extract_all(:s, {literal(pattern.name)}, {count})"
    if isinstance(node, exp.RegexpExtractAll):
        return duck(found, s=node.this)
    if place is not None and place.name != "1":
        raise unsupported("REGEXP_EXTRACT from another position than 1")
    return duck(f"list_extract({found}, :n)", s=node.this, n=nth or exp.Literal.number(1))


def _groups(pattern: str) -> int:
    """Count the capturing groups of an RE2 expression."""
    count, escaped, in_class = 0, False, False
    for at, char in enumerate(pattern):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "(":
            after = pattern[at + 1 : at + 4]
            count += not after.startswith("?") or after.startswith(("?P<", "?<"))
    return count


def _macro(name: str, *keys: str) -> Callable[[exp.Expr], exp.Expr]:
    return lambda node: call(name, *(node.args[key] for key in ("this", *keys)))


def _array_text(node: exp.Expr) -> exp.Expr:
    """Rewrite ARRAY_TO_STRING, in which a separator that is null gives null."""
    if node.args.get("null") is None:
        known = isinstance(node.expression, exp.Literal)
        return node if known else call("bq_array_join", node.this, node.expression)
    return call("bq_array_text", node.this, node.expression, node.args["null"])


RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Trim: trim,
    exp.Pad: pad,
    exp.StrPosition: position,
    exp.RegexpExtract: groups,
    exp.RegexpExtractAll: groups,
    exp.Repeat: lambda node: call("bq_repeat", node.this, node.args["times"]),
    exp.Left: _macro("bq_left", "expression"),
    exp.Right: _macro("bq_right", "expression"),
    exp.ByteLength: _macro("bq_byte_length"),
    exp.Chr: lambda node: call("bq_chr", node.expressions[0]),
    exp.Initcap: _macro("bq_initcap"),
    exp.ToCodePoints: _macro("bq_code_points"),
    exp.CodePointsToString: _macro("bq_from_code_points"),
    exp.CodePointsToBytes: _macro("bq_bytes_of_code_points"),
    exp.Unhex: _macro("bq_from_hex"),
    exp.ArrayToString: _array_text,
}
