"""Patterns in texts: `*` as a wildcard, regular expressions, formats of times.

**Invariant:** a regular expression that passes has the same meaning in RE2 (BigQuery) and in Java
(Spark): no look-around, no back reference, no possessive repetition.

Pure; messages of `ValueError` say what is expected.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

MAX_REGEX = 1_000
MAX_GROUPS = 50
MAX_REPEATS = 1_000
MAX_NESTED = 20

_STARS = re.compile(r"\\\*|\*|[^\\*]+|\\")
_GROUP_NAME = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
_UNNAMED = re.compile(r"\(\?[ims]*:")
_FLAGS = re.compile(r"\(\?[ims]+\)")
_CLASS = re.compile(r"\[\^?\]?")
_REFERENCE = re.compile(r"\\[1-9k]|\(\?P=")
_COUNT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_ONLY_SOMEWHERE = re.compile(r"\\[^\w\s]|\\[dDwWsSbBntrfvAzpPxQE]")


def is_wild(text: str) -> bool:
    """Say whether a text has a `*` that stands for any characters."""
    return "*" in _STARS.findall(text)


def like(text: str) -> str:
    """Return the pattern of LIKE for a text with wildcards; a star behind a backslash is one."""
    parts = []
    for part in _STARS.findall(text):
        escaped = re.sub(r"([\\%_])", r"\\\1", part)
        parts.append({"*": "%", "\\*": "*"}.get(part, escaped))
    return "".join(parts)


def plain(text: str) -> str:
    """Return a text without wildcards as it is compared."""
    return text.replace("\\*", "*")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a regular expression: `opening` of a group, its end, or anything else."""

    text: str
    opening: bool = False
    group: str = ""


def check_regex(text: str) -> None:
    """Check a regular expression.

    Raises:
        ValueError: it is none, or has a part that RE2 does not have.
    """
    _pieces(text)


def group_names(text: str) -> tuple[str, ...]:
    """Return the names of the groups `(?<name>…)` of a regular expression.

    Raises:
        ValueError: it is no regular expression.
    """
    return tuple(piece.group for piece in _pieces(text) if piece.group)


def only_group(text: str, wanted: str) -> str:
    """Return a regular expression in which one named group is the only one that captures."""
    parts = []
    for piece in _pieces(text):
        if not piece.opening:
            parts.append(piece.text)
        elif piece.group == wanted:
            parts.append("(")
        else:
            parts.append("(?:" if piece.group or piece.text == "(" else piece.text)
    return "".join(parts)


def _pieces(text: str) -> list[_Piece]:
    if len(text) > MAX_REGEX:
        raise ValueError(f"expected a regular expression of at most {MAX_REGEX:,} characters")
    pieces = list(_split(text))
    groups = [piece for piece in pieces if piece.opening]
    if len(groups) > MAX_GROUPS:
        raise ValueError(f"expected a regular expression of at most {MAX_GROUPS} groups")
    for match in _COUNT.finditer(text):
        if max(int(number[:9] or 0) for number in match.groups("0")) > MAX_REPEATS:
            raise ValueError(f"expected at most {MAX_REPEATS:,} repetitions, found {match[0]}")
    names = [piece.group for piece in groups if piece.group]
    if len({each.lower() for each in names}) < len(names):
        raise ValueError("expected groups of different names")
    _try("".join(f"(?P<{piece.group}>" if piece.group else piece.text for piece in pieces))
    return pieces


def _split(text: str) -> list[_Piece]:
    pieces: list[_Piece] = []
    at, depth, in_class = 0, 0, False
    while at < len(text):
        piece, in_class = _piece(text, at, in_class)
        pieces.append(piece)
        at += len(piece.text)
        depth += piece.opening - (piece.text == ")" and not in_class)
        if depth > MAX_NESTED:
            raise ValueError(f"expected at most {MAX_NESTED} groups in one another")
    return pieces


def _piece(text: str, at: int, in_class: bool) -> tuple[_Piece, bool]:
    """Return the piece at a place, and whether a class of characters is open behind it."""
    char = text[at]
    if char == "\\":
        return _Piece(_escape(text, at)), in_class
    if in_class:
        if char == "[" or text.startswith("&&", at):
            raise ValueError(f"expected a backslash before {char!r} in a class: engines differ")
        return _Piece(char), char != "]"
    if char == "[":
        # A `]` that comes first belongs to the class.
        first = _CLASS.match(text, at)
        return _Piece(first[0] if first else char), True
    return _group(text, at) if char == "(" else _Piece(char), False


def _group(text: str, at: int) -> _Piece:
    """Return the opening of a group, or the flags at the beginning."""
    if match := _GROUP_NAME.match(text, at):
        return _Piece(match[0], opening=True, group=match[1])
    if at == 0 and (flags := _FLAGS.match(text)):
        return _Piece(flags[0])
    if not text.startswith("(?", at):
        return _Piece("(", opening=True)
    found = _UNNAMED.match(text, at)
    if found is None:
        raise ValueError("expected (?<name>…), (?:…) or (…): RE2 has no other groups")
    return _Piece(found[0], opening=True)


def _escape(text: str, at: int) -> str:
    if _REFERENCE.match(text, at):
        raise ValueError("expected no back reference: RE2 has none")
    match = _ONLY_SOMEWHERE.match(text, at)
    if match is None or match[0][1] in "QE":
        raise ValueError(f"expected another escape than {text[at : at + 2]!r}")
    return match[0]


def _try(pattern: str) -> None:
    """Compile a regular expression with Python's engine, which finds what is not well formed."""
    if re.search(r"[*+?}][+]", re.sub(r"\\.|\[[^\]]*\]", "x", pattern)):
        raise ValueError("expected no possessive repetition: RE2 has none")
    known = re.sub(r"\\[pP](?:\{\^?\w+\}|\w)|\\z", r"\\w", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets of characters, which Python does not have
            re.compile(known)
    except (re.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"expected a regular expression: {exc}") from exc


_FORMAT = re.compile(r"'([^']*)'|ss\.SSS|yyyy|([A-Za-z])\2*|[^A-Za-z']+")
_PRINTED = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "dd": "%d", "HH": "%H", "mm": "%M",
    "ss": "%S", "ss.SSS": "%E3S", "EEE": "%a", "Z": "%z",
}  # fmt: skip
_READ = {
    "yyyy": r"(\d{4})", "MM": r"(\d{2})", "dd": r"(\d{2})", "HH": r"(\d{2})", "mm": r"(\d{2})",
    "ss": r"(\d{2})", "ss.SSS": r"(\d{2}\.\d{3})", "Z": r"([+-]\d{2}):?(\d{2})",
}  # fmt: skip
_ORDER = ("yyyy", "MM", "dd", "HH", "mm", "ss")


def _format_parts(text: str, known: dict[str, str]) -> list[tuple[str, str]]:
    """Return the letters of a format and the texts between, as (letters, text)."""
    parts: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _FORMAT.match(text, at)
        if match is None:
            raise ValueError("expected a quote that ends a text in the format")
        if match[1] is not None:
            parts.append(("", match[1] or "'"))
        elif match[0] in known:
            parts.append((match[0], ""))
        elif match[0][0].isascii() and match[0][0].isalpha():
            raise ValueError(f"expected {', '.join(known)}, found {match[0]}")
        else:
            parts.append(("", match[0]))
        at = match.end()
    return parts


def strftime(text: str) -> str:
    """Return the format of FORMAT_TIMESTAMP for one as `yyyy-MM-dd HH:mm:ss`.

    Raises:
        ValueError: it has other letters.
    """
    parts = _format_parts(text, _PRINTED)
    return "".join(_PRINTED[key] if key else plain_.replace("%", "%%") for key, plain_ in parts)


def time_regex(text: str) -> tuple[str, str]:
    """Return a regular expression of times of a format, and what REGEXP_REPLACE makes of one.

    Raises:
        ValueError: the format has other letters, one twice, or no year.
    """
    places: dict[str, int] = {}
    pattern, groups = "", 0
    for key, between in _format_parts(text, _READ):
        pattern += _READ[key] if key else re.sub(r"([^\w\s])", r"\\\1", between)
        if key:
            unit = "ss" if key == "ss.SSS" else key
            if unit in places:
                raise ValueError(f"expected {unit} once")
            places[unit] = groups + 1
            groups += 2 if key == "Z" else 1
    if "yyyy" not in places or groups > 8:  # noqa: PLR2004 - \9 is the last one that can be named
        raise ValueError("expected a format with yyyy")
    values = [f"\\{places[unit]}" if unit in places else "" for unit in _ORDER]
    year, month, day, hour, minute, second = (
        value or default
        for value, default in zip(values, ["", "01", "01", *["00"] * 3], strict=True)
    )
    zone = f"\\{places['Z']}:\\{places['Z'] + 1}" if "Z" in places else "+00"
    return f"^{pattern}$", f"{year}-{month}-{day} {hour}:{minute}:{second}{zone}"
