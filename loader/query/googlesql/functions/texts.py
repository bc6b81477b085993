"""Functions of STRING and BYTES ("String functions", "Hash functions")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql.characters import RegexError
from loader.query.googlesql.conversions import cast, unified, wanted
from loader.query.googlesql.functions.calls import by_signature
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.regexps import Regex, replacement, translated
from loader.query.googlesql.types import BOOL, BYTES, INT64, NULL, STRING, array
from loader.query.googlesql.values import Value, filled, text

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function

# Unicode's White_Space, which TRIM removes if no characters are given.
WHITE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def _concat(call: Call) -> Value:
    call.count(1, 1000)
    values = call.values()
    if all(value.type in {BYTES, NULL} for value in values):
        values = unified(values, call.node, "the arguments of CONCAT")
    else:
        # BigQuery's CONCAT takes values of all types that CAST makes a STRING.
        values = [
            value
            if value.type in {STRING, NULL}
            else cast(call.place, value, STRING, safe=False, node=node)
            for value, node in zip(values, call.nodes, strict=True)
        ]
    kind = next((value.type for value in values if value.type != NULL), STRING)
    return Value(f"concat({', '.join(value.sql for value in values)})", kind)


def _substr(call: Call) -> Value:
    call.count(2, 3)
    value = call.value(0)
    if value.type not in {STRING, BYTES, NULL}:
        raise refusal(Code.TYPE, f"{call.name} needs STRING or BYTES, not {value.type}", call.node)
    start = call.wanted(1, INT64)
    sqls = [value.sql, start.sql]
    at = "{1}"
    if (
        start.constant is None
        or not isinstance(start.constant.value, int)
        or start.constant.value < 0
    ):
        at = (
            "CASE WHEN {1} < - length({0}) THEN 1L "
            "WHEN {1} > 2147483647L THEN 2147483647L ELSE {1} END"
        )
    made = f"substring({{0}}, CAST({at} AS INT)"
    if len(call.nodes) == 3:  # noqa: PLR2004 - text, start, length
        length = call.wanted(2, INT64)
        sqls.append(length.sql)
        constant = length.constant.value if length.constant is not None else None
        if isinstance(constant, int) and constant < 0:
            raise call.refused("the length must not be negative", 2)
        made += ", CAST(least({2}, 2147483647L) AS INT))"
        if constant is None:
            made = (
                f"CASE WHEN {{2}} < 0L THEN raise_error('a length of SUBSTR is negative') "
                f"WHEN {{2}} IS NOT NULL THEN {made} END"
            )
    else:
        made += ")"
    return Value(filled(made, sqls), value.type if value.type != NULL else STRING)


def _side(call: Call) -> Value:
    """LEFT and RIGHT."""
    call.count(2, 2)
    value, length = call.value(0), call.wanted(1, INT64)
    if value.type not in {STRING, BYTES}:
        raise refusal(Code.TYPE, f"{call.name} needs STRING or BYTES, not {value.type}", call.node)
    made = "substring({0}, 1, CAST(least({1}, 2147483647L) AS INT))"
    if call.name == "RIGHT":
        made = (
            "CASE WHEN {1} = 0L THEN substring({0}, 1, 0) WHEN {1} >= length({0}) THEN {0} "
            "ELSE substring({0}, CAST(- {1} AS INT)) END"
        )
    failing = (
        f"CASE WHEN {{1}} < 0L THEN raise_error('a length of {call.name} is negative') "
        f"WHEN {{1}} IS NOT NULL THEN {made} END"
    )
    return Value(filled(failing, [value.sql, length.sql]), value.type)


def _trim(call: Call) -> Value:
    call.count(1, 2)
    value = call.value(0)
    if value.type not in {STRING, NULL}:
        raise call.unsupported(f"{call.name} of {value.type}")
    chars = call.wanted(1, STRING).sql if len(call.nodes) > 1 else text(WHITE)
    where = {"TRIM": "BOTH", "LTRIM": "LEADING", "RTRIM": "TRAILING"}[call.name]
    return Value(f"trim({where} {chars} FROM {value.sql})", STRING)


def _split(call: Call) -> Value:
    call.count(1, 2)
    value = wanted(call.value(0), STRING, call.nodes[0], "the argument of SPLIT")
    mark = call.text(1, "a delimiter of SPLIT") if len(call.nodes) > 1 else ","
    if mark:
        pattern = text("".join(f"\\x{{{ord(char):X}}}" for char in mark))
        return Value(f"split({value.sql}, {pattern}, -1)", array(STRING))
    characters = "CASE WHEN {0} = '' THEN array('') ELSE regexp_extract_all({0}, '(?s).', 0) END"
    return Value(filled(characters, [value.sql]), array(STRING))


def _replace(call: Call) -> Value:
    call.count(3, 3)
    values = [call.wanted(at, STRING) for at in range(3)]
    return Value(filled("replace({0}, {1}, {2})", [value.sql for value in values]), STRING)


def _pad(call: Call) -> Value:
    call.count(2, 3)
    value, length = call.wanted(0, STRING), call.wanted(1, INT64)
    fill = call.wanted(2, STRING).sql if len(call.nodes) > 2 else "' '"  # noqa: PLR2004
    made = (
        f"CASE WHEN {{1}} < 0L THEN raise_error('a size of {call.name} is negative') "
        f"WHEN {{2}} = '' THEN raise_error('a pattern of {call.name} is empty') "
        f"ELSE {call.name.lower()}({{0}}, CAST({{1}} AS INT), {{2}}) END"
    )
    return Value(filled(made, [value.sql, length.sql, fill]), STRING)


def _regex(call: Call, at: int = 1) -> Regex:
    pattern = call.text(at, "a regular expression")
    try:
        return translated(pattern)
    except RegexError as exc:
        raise call.refused(
            f"this regular expression is not supported: {exc} (at {exc.at})", at
        ) from exc


def _text_of(call: Call) -> Value:
    value = call.value(0)
    if value.type == BYTES:
        raise call.unsupported(f"{call.name} of BYTES")
    return wanted(value, STRING, call.nodes[0], f"the first argument of {call.name}")


def _contains(call: Call) -> Value:
    call.count(2, 2)
    return Value(f"regexp_like({_text_of(call).sql}, {text(_regex(call).java)})", BOOL)


def _group(call: Call, regex: Regex) -> int:
    if regex.groups > 1:
        raise call.refused(f"{call.name} takes at most one group", 1)
    if not regex.sure:
        raise call.unsupported("a group that is not part of each match", 1)
    return regex.groups


def _extract(call: Call) -> Value:
    call.count(2, 4)
    value, regex = _text_of(call), _regex(call)
    group = _group(call, regex)
    pattern = text(regex.java)
    if len(call.nodes) > 2 and call.whole(2, "a position") != 1:  # noqa: PLR2004
        raise call.unsupported("another position than 1", 2)
    if len(call.nodes) == 4:  # noqa: PLR2004 - text, expression, position, occurrence
        if regex.empty:
            raise call.unsupported("an occurrence of an expression that matches nothing", 1)
        nth = call.whole(3, "an occurrence")
        if nth < 1:
            raise call.refused("an occurrence is positive", 3)
        return Value(f"get(regexp_extract_all({value.sql}, {pattern}, {group}), {nth - 1})", STRING)
    made = "CASE WHEN regexp_like({0}, {1}) THEN regexp_extract({0}, {1}, " + f"{group}) END"
    return Value(filled(made, [value.sql, pattern]), STRING)


def _extract_all(call: Call) -> Value:
    call.count(2, 2)
    value, regex = _text_of(call), _regex(call)
    group = _group(call, regex)
    if regex.empty:
        raise call.unsupported(f"{call.name} of an expression that matches nothing", 1)
    return Value(f"regexp_extract_all({value.sql}, {text(regex.java)}, {group})", array(STRING))


def _regexp_replace(call: Call) -> Value:
    call.count(3, 3)
    value, regex = _text_of(call), _regex(call)
    if regex.empty:
        raise call.unsupported("REGEXP_REPLACE of an expression that matches nothing", 1)
    if not regex.sure:
        raise call.unsupported("a group that is not part of each match", 1)
    java = replacement(call.text(2, "a replacement"), regex.groups)
    if java is None:
        raise call.refused("this replacement names no group of the expression", 2)
    return Value(f"regexp_replace({value.sql}, {text(regex.java)}, {text(java)})", STRING)


def _hashed(function: str) -> Function:
    return by_signature([(kind, "Y", f"unhex({function})") for kind in ("S", "Y")], total=True)


TEXTS: dict[str, Function] = {
    **dict.fromkeys(
        ("LENGTH",),
        by_signature(
            [("S", "I", "CAST(length({0}) AS BIGINT)"), ("Y", "I", "CAST(length({0}) AS BIGINT)")],
            total=True,
        ),
    ),
    **dict.fromkeys(
        ("CHAR_LENGTH", "CHARACTER_LENGTH"),
        by_signature([("S", "I", "CAST(length({0}) AS BIGINT)")], total=True),
    ),
    **dict.fromkeys(
        ("BYTE_LENGTH", "OCTET_LENGTH"),
        by_signature(
            [(kind, "I", "CAST(octet_length({0}) AS BIGINT)") for kind in ("S", "Y")], total=True
        ),
    ),
    "LOWER": by_signature([("S", "S", "lower({0})")], total=True),
    "UPPER": by_signature([("S", "S", "upper({0})")], total=True),
    "CONCAT": _concat,
    **dict.fromkeys(("SUBSTR", "SUBSTRING"), _substr),
    **dict.fromkeys(("LEFT", "RIGHT"), _side),
    **dict.fromkeys(("TRIM", "LTRIM", "RTRIM"), _trim),
    **dict.fromkeys(("LPAD", "RPAD"), _pad),
    "SPLIT": _split,
    "REPLACE": _replace,
    "STARTS_WITH": by_signature([("SS", "B", "startswith({0}, {1})")], total=True),
    "ENDS_WITH": by_signature([("SS", "B", "endswith({0}, {1})")], total=True),
    "STRPOS": by_signature([("SS", "I", "CAST(instr({0}, {1}) AS BIGINT)")], total=True),
    "REVERSE": by_signature([("S", "S", "reverse({0})")], total=True),
    "REPEAT": by_signature(
        [
            (
                "SI",
                "S",
                (
                    "CASE WHEN {1} < 0L THEN raise_error('a number of REPEAT is negative') "
                    "ELSE repeat({0}, CAST({1} AS INT)) END"
                ),
            )
        ]
    ),
    "ASCII": by_signature(
        [
            (
                "S",
                "I",
                (
                    "CASE WHEN ascii({0}) > 127 THEN raise_error('ASCII of no ASCII character') "
                    "ELSE CAST(ascii({0}) AS BIGINT) END"
                ),
            )
        ]
    ),
    "UNICODE": by_signature([("S", "I", "CAST(ascii({0}) AS BIGINT)")], total=True),
    "REGEXP_CONTAINS": _contains,
    **dict.fromkeys(("REGEXP_EXTRACT", "REGEXP_SUBSTR"), _extract),
    "REGEXP_EXTRACT_ALL": _extract_all,
    "REGEXP_REPLACE": _regexp_replace,
    "TO_BASE64": by_signature(
        [("Y", "S", "regexp_replace(base64({0}), '[\\\\r\\\\n]', '')")], total=True
    ),
    "FROM_BASE64": by_signature([("S", "Y", "unbase64({0})")]),
    "TO_HEX": by_signature([("Y", "S", "lower(hex({0}))")], total=True),
    "FROM_HEX": by_signature(
        [
            (
                "S",
                "Y",
                (
                    "CASE WHEN {0} RLIKE '^[0-9a-fA-F]*$' THEN unhex({0}) WHEN {0} IS NOT NULL "
                    "THEN raise_error('FROM_HEX of another text than hexadecimal digits') END"
                ),
            )
        ]
    ),
    "MD5": _hashed("md5({0})"),
    "SHA1": _hashed("sha1({0})"),
    "SHA256": _hashed("sha2({0}, 256)"),
    "SHA512": _hashed("sha2({0}, 512)"),
    "SAFE_CONVERT_BYTES_TO_STRING": by_signature(
        [("Y", "S", "make_valid_utf8(CAST({0} AS STRING))")], total=True
    ),
    "GENERATE_UUID": by_signature([("", "S", "uuid()")], total=True),
}
