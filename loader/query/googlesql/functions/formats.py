"""FORMAT_… and PARSE_… by format elements ("Format elements for date and time parts").

**Invariant:** the format is a literal.  A text is parsed by a regular expression that has the
format's parts as groups; parts that it does not name are those of 1970-01-01 00:00:00.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from loader.query.googlesql.conversions import wanted
from loader.query.googlesql.functions.calendar import week_number
from loader.query.googlesql.functions.units import zone_of
from loader.query.googlesql.functions.zoned import KINDS, local
from loader.query.googlesql.types import DATE, DATETIME, STRING, TIMESTAMP, Type
from loader.query.googlesql.values import Value, filled, text

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function

_ELEMENT = re.compile(r"%(E[0-9*]S|E4Y|Ez|.)", re.DOTALL)
_LONGER = {
    "c": "%a %b %e %H:%M:%S %Y", "D": "%m/%d/%y", "F": "%Y-%m-%d", "R": "%H:%M", "T": "%H:%M:%S",
    "x": "%m/%d/%y", "X": "%H:%M:%S", "h": "%b", "E4Y": "%Y",
}  # fmt: skip
CLOCK = frozenset({"H", "I", "M", "S", "p", "P", "k", "l", "s", "Z", "z", "Ez"})


def _digits(value: str, width: int, fill: str = "0") -> str:
    return f"lpad(CAST({value} AS STRING), {width}, '{fill}')"


_HOUR = "(pmod(hour({0}) + 11, 12) + 1)"
_MICROS = "pmod(unix_micros(CAST({0} AS TIMESTAMP)), 1000000L)"
SHOWN = {
    "Y": "CAST(year({0}) AS STRING)", "C": _digits("year({0}) div 100", 2),
    "y": _digits("pmod(year({0}), 100)", 2), "m": _digits("month({0})", 2),
    "d": _digits("day({0})", 2), "e": _digits("day({0})", 2, " "),
    "j": _digits("dayofyear({0})", 3), "Q": "CAST(quarter({0}) AS STRING)",
    "H": _digits("hour({0})", 2), "k": _digits("hour({0})", 2, " "), "I": _digits(_HOUR, 2),
    "l": _digits(_HOUR, 2, " "), "M": _digits("minute({0})", 2), "S": _digits("second({0})", 2),
    "p": "CASE WHEN hour({0}) < 12 THEN 'AM' ELSE 'PM' END",
    "P": "CASE WHEN hour({0}) < 12 THEN 'am' ELSE 'pm' END",
    "b": "date_format({0}, 'MMM')", "B": "date_format({0}, 'MMMM')",
    "a": "date_format({0}, 'EEE')", "A": "date_format({0}, 'EEEE')",
    "w": "CAST(dayofweek({0}) - 1 AS STRING)", "u": "CAST(weekday({0}) + 1 AS STRING)",
    "V": _digits("weekofyear({0})", 2), "G": "CAST(extract(YEAROFWEEK FROM {0}) AS STRING)",
    "g": _digits("pmod(extract(YEAROFWEEK FROM {0}), 100)", 2),
    "U": _digits(week_number(1), 2), "W": _digits(week_number(2), 2),
    "s": "CAST((unix_micros({1}) - pmod(unix_micros({1}), 1000000L)) div 1000000L AS STRING)",
    "%": "'%'", "n": "'\\n'", "t": "'\\t'",
}  # fmt: skip
_OFFSET = "((unix_micros(CAST({0} AS TIMESTAMP)) - unix_micros({1})) div 60000000L)"
_SIGNED = (
    f"concat(CASE WHEN {_OFFSET} < 0L THEN '-' ELSE '+' END, "
    + _digits(f"abs({_OFFSET}) div 60L", 2)
    + ", '{colon}', "
    + _digits(f"abs({_OFFSET}) % 60L", 2)
    + ")"
)


def longer(pattern: str) -> str:
    """Replace an element that abbreviates several, such as %F, by these."""
    return _ELEMENT.sub(lambda found: _LONGER.get(found[1], found[0]), pattern)


def _shown(call: Call, name: str, zone: str | None) -> str:
    """Return the template of one element; {0} is the local DATETIME, {1} the TIMESTAMP."""
    if name in SHOWN:
        return SHOWN[name]
    if name in {"z", "Ez"}:
        return _SIGNED.replace("{colon}", ":" if name == "Ez" else "")
    if name == "Z" and zone is None:
        return "'UTC'"
    if name.startswith("E") and name.endswith("S"):
        digits = name[1]
        micros = _digits(_MICROS, 6)
        if digits == "*":
            fraction = f"regexp_replace(concat('.', {micros}), '[.]?0*$', '')"
        elif digits == "0":
            fraction = "''"
        else:
            fraction = f"concat('.', substring(rpad({micros}, 9, '0'), 1, {digits}))"
        return f"concat({SHOWN['S']}, {fraction})"
    raise call.unsupported(f"the format element %{name}", 0)


def _formatted(kind: Type) -> Function:
    def rule(call: Call) -> Value:
        call.count(2, 3 if kind == TIMESTAMP else 2)
        pattern = longer(call.text(0, "a format"))
        value = call.wanted(1, kind)
        zone = zone_of(call, 2)
        parts, at = [], 0
        for found in _ELEMENT.finditer(pattern):
            if kind == DATE and (
                found[1] in CLOCK or (found[1].endswith("S") and len(found[1]) > 1)
            ):
                raise call.refused(f"a DATE has no %{found[1]}", 0)
            if kind == DATETIME and found[1] in {"Z", "z", "Ez", "s"}:
                raise call.unsupported(f"%{found[1]} of a DATETIME", 0)
            plain = pattern[at : found.start()]
            parts += [text(plain)] if plain else []
            parts.append(_shown(call, found[1], zone))
            at = found.end()
        parts += [text(pattern[at:])] if pattern[at:] or not parts else []
        here = local(value, zone).sql if kind == TIMESTAMP else value.sql
        template = "concat(" + ", ".join(parts) + ")"
        if "{0}" not in template:
            template = f"CASE WHEN {{0}} IS NOT NULL THEN {template} END"
        return Value(filled(template, [here, value.sql]), STRING)

    return rule


_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_LONG = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_NAMES = "|".join([*_LONG, *_MONTHS])
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|wed|thu|fri|sat|sun"
# No `{4}` in these: it would be the place of an operand.
_TWO = "([0-9][0-9]?)"
READ = {
    "Y": "([0-9][0-9]?[0-9]?[0-9]?)", "y": "([0-9][0-9])", "m": _TWO, "d": _TWO, "e": f" ?{_TWO}",
    "H": _TWO, "k": f" ?{_TWO}", "I": _TWO, "M": _TWO, "S": _TWO, "p": "((?i:am|pm))",
    "s": "(-?[0-9]+)", "b": f"((?i:{_NAMES}))", "B": f"((?i:{_NAMES}))",
    "a": f"(?i:{_WEEKDAYS})", "A": f"(?i:{_WEEKDAYS})",
    "z": "([+-][0-9][0-9]:?[0-9][0-9])", "Ez": "([+-][0-9][0-9]:[0-9][0-9]|Z)", "%": "%",
    "E*S": "([0-9][0-9]?(?:[.][0-9]{1,6})?)",
}  # fmt: skip


def _expression(call: Call, pattern: str) -> tuple[str, dict[str, int]]:
    """Return a format's regular expression for Java, and the group of each element."""
    out, groups, at, count = "", {}, 0, 0
    for found in _ELEMENT.finditer(pattern):
        out += _plain(pattern[at : found.start()])
        name = re.sub(r"E[0-9*]S", "E*S", found[1])
        if name not in READ:
            raise call.unsupported(f"parsing by %{found[1]}", 0)
        key = {"e": "d", "k": "H", "B": "b", "Ez": "z"}.get(name, name)
        if re.search(r"\((?!\?)", READ[name]):
            count += 1
            if key in groups:
                raise call.unsupported(f"parsing by %{found[1]} twice", 0)
            groups[key] = count
        out += READ[name]
        at = found.end()
    return f"^\\s*{out}{_plain(pattern[at:])}\\s*$", groups


def _plain(given: str) -> str:
    return "".join(
        "\\s*" if char.isspace() else char if char.isalnum() else f"\\u{ord(char):04x}"
        for char in given
    )


def _parsed(kind: Type) -> Function:
    def rule(call: Call) -> Value:
        call.count(2, 3 if kind == TIMESTAMP else 2)
        pattern = longer(call.text(0, "a format"))
        value = wanted(call.value(1), STRING, call.nodes[1], "the text")
        regex, groups = _expression(call, pattern)
        if kind == DATE and groups.keys() & CLOCK:
            raise call.unsupported("PARSE_DATE by a time of day", 0)
        zone = zone_of(call, 2) if "z" not in groups and "s" not in groups else None
        made = _built(call, groups, text(regex))
        if zone is not None:
            made = f"convert_timezone({text(zone)}, 'UTC', {made})"
        failure = "NULL" if call.safe else f"raise_error(concat('no {kind}: ', {{0}}))"
        template = (
            f"CASE WHEN regexp_like({{0}}, {text(regex)}) THEN CAST({made} AS {kind.spark}) "
            f"WHEN {{0}} IS NOT NULL THEN {failure} END"
        )
        return Value(filled(template, [value.sql]), kind)

    return rule


def _built(call: Call, groups: dict[str, int], regex: str) -> str:
    """Return the template of the DATETIME that the groups of a text make."""

    def part(name: str, default: str) -> str:
        if name not in groups:
            return default
        return f"CAST(regexp_extract({{0}}, {regex}, {groups[name]}) AS INT)"

    def group(name: str) -> str:
        return f"regexp_extract({{0}}, {regex}, {groups[name]})"

    if "s" in groups:
        return f"timestamp_seconds(CAST({group('s')} AS BIGINT))"
    year = part("Y", "1970")
    if "y" in groups:
        year = f"({part('y', '')} + CASE WHEN {part('y', '')} < 69 THEN 2000 ELSE 1900 END)"
    month = part("m", "1")
    if "b" in groups:
        names = "".join(_MONTHS)
        month = f"CAST((instr('{names}', lower(substring({group('b')}, 1, 3))) + 2) div 3 AS INT)"
    hour = part("H", "0")
    if "I" in groups:
        noon = f"CASE WHEN lower({group('p')}) = 'pm' THEN 12 ELSE 0 END" if "p" in groups else "0"
        hour = f"(pmod({part('I', '')}, 12) + {noon})"
    second = part("S", "0")
    if "E*S" in groups:
        second = f"CAST({group('E*S')} AS DECIMAL(16, 6))"
    function = "try_make_timestamp_ntz" if call.safe else "make_timestamp_ntz"
    made = f"{function}({year}, {month}, {part('d', '1')}, {hour}, {part('M', '0')}, {second})"
    if "z" not in groups:
        return made
    zone = f"replace({group('z')}, ':', '')"
    minutes = f"(CAST(substring({zone}, 2, 2) AS INT) * 60 + CAST(substring({zone}, 4, 2) AS INT))"
    signed = (
        f"CASE WHEN {zone} = 'Z' THEN 0 WHEN {zone} LIKE '-%' THEN - {minutes} ELSE {minutes} END"
    )
    return f"({made} - make_dt_interval(0, 0, {signed}))"


FORMATS: dict[str, Function] = {
    **{f"FORMAT_{name}": _formatted(kind) for name, kind in KINDS.items()},
    **{f"PARSE_{name}": _parsed(kind) for name, kind in KINDS.items()},
}
