"""FORMAT: printf for GoogleSQL ("FORMAT", "Format specifiers").

**Invariant:** a specifier accepts the types that the reference allows.  A NULL argument makes the
result NULL, except with %t and %T.

%p and %P (JSON), and unknown flags, are errors.
"""

from __future__ import annotations

import re
from typing import cast

from embedded.functions.values import Type, bytes_of, float_text, loaded, parsed_type, plain_decimal

_SPEC = re.compile(
    r"%(?P<flags>[-+ #0']*)(?P<width>\*|\d+)?(?:\.(?P<digits>\*|\d+))?(?P<kind>.)", re.DOTALL
)
_INTEGERS = frozenset("dioxX")
_REALS = frozenset("fFeEgG")


class _Null(Exception):  # noqa: N818 - it is an answer
    """An argument is NULL, so the result is NULL."""


def formatted(pattern: str | None, kinds: list[str], texts: list[str | None]) -> str | None:
    """Return the result of FORMAT.

    Raises:
        ValueError: the arguments do not match the pattern.
    """
    if pattern is None:
        return None
    args = [(parsed_type(kind), loaded(text)) for kind, text in zip(kinds, texts, strict=True)]
    out, at = [], 0
    rest = list(reversed(args))
    try:
        for found in _SPEC.finditer(pattern):
            plain = pattern[at : found.start()]
            if "%" in plain:
                raise ValueError(f"Invalid format specifier in FORMAT string: {pattern!r}")
            out += [plain, _one(found, rest)]
            at = found.end()
    except _Null:
        return None
    if "%" in pattern[at:]:
        raise ValueError(f"Invalid format specifier in FORMAT string: {pattern!r}")
    if rest:
        raise ValueError(
            "Too many arguments to FORMAT for pattern "
            f'"{pattern}"; Expected {len(args) - len(rest)}; Got {len(args)}'
        )
    return "".join(out) + pattern[at:]


def _one(found: re.Match[str], rest: list[tuple[Type, object]]) -> str:
    kind = found["kind"]
    if kind == "%":
        return "%"
    width = _number(found["width"], rest)
    digits = _number(found["digits"], rest)
    if not rest:
        raise ValueError(f'Too few arguments to FORMAT for pattern "{found.string}"')
    given, value = rest.pop()
    flags = found["flags"]
    if kind in "tT":
        return _padded(_shown(given, value, exact=kind == "T"), flags, width)
    if value is None:
        raise _Null
    if kind in _INTEGERS and given.kind == "INT64":
        return _integer(kind, int(str(value)), flags, width, digits)
    if kind in _REALS and given.kind in {"FLOAT64", "NUMERIC", "BIGNUMERIC"}:
        return _real(kind, float(str(value)), flags, width, digits)
    if kind == "s" and given.kind == "STRING":
        text = str(value)
        return _padded(text if digits is None else text[:digits], flags, width)
    if kind not in {*_INTEGERS, *_REALS, "s"}:
        raise ValueError(f"Invalid format specifier character {kind!r} in FORMAT string")
    raise ValueError(
        f"Invalid type for argument to FORMAT; Expected {_wanted(kind)}; Got {given.kind}"
    )


def _wanted(kind: str) -> str:
    return "integer" if kind in _INTEGERS else "floating point" if kind in _REALS else "string"


def _number(text: str | None, rest: list[tuple[Type, object]]) -> int | None:
    if text != "*":
        return None if text is None else int(text)
    kind, value = rest.pop() if rest else (Type("NULL"), None)
    if kind.kind != "INT64" or value is None:
        raise ValueError("A width or precision of * needs an INT64")
    return int(str(value))


def _padded(text: str, flags: str, width: int | None) -> str:
    return text.ljust(width or 0) if "-" in flags else text.rjust(width or 0)


def _integer(kind: str, value: int, flags: str, width: int | None, digits: int | None) -> str:
    if value < 0 and kind in "oxX":
        raise ValueError("FORMAT of a negative number as %o or %x is not supported")
    code = {"d": "d", "i": "d"}.get(kind, kind)
    body = format(abs(value), f",{code}" if "'" in flags and code == "d" else code)
    if digits is not None:
        body = body.rjust(digits, "0")
    prefix = {"x": "0x", "X": "0X", "o": "0"}.get(kind, "") if "#" in flags and value else ""
    sign = "-" if value < 0 else "+" if "+" in flags else " " if " " in flags else ""
    return _filled(sign + prefix, body, flags if digits is None else flags.replace("0", ""), width)


def _real(kind: str, value: float, flags: str, width: int | None, digits: int | None) -> str:
    alternate = "#" if "#" in flags else ""
    comma = "," if "'" in flags else ""
    body = format(abs(value), f"{alternate}{comma}.{6 if digits is None else digits}{kind}")
    minus = value < 0 or (value == 0 and str(value).startswith("-"))
    sign = "-" if minus else "+" if "+" in flags else " " if " " in flags else ""
    finite = body[0].isdigit()
    return _filled(sign, body, flags if finite else flags.replace("0", ""), width)


def _filled(prefix: str, body: str, flags: str, width: int | None) -> str:
    if "0" in flags and "-" not in flags:
        return prefix + body.rjust((width or 0) - len(prefix), "0")
    return _padded(prefix + body, flags, width)


def _shown(kind: Type, value: object, *, exact: bool) -> str:
    """Format a value by %t, as CAST to STRING does, or by %T, as a literal of the type."""
    if value is None:
        return "NULL"
    if kind.kind == "ARRAY":
        items = cast("list[object]", value)
        return f"[{', '.join(_shown(kind.parts[0][1], item, exact=exact) for item in items)}]"
    if kind.kind == "STRUCT":
        given = cast("dict[str, object]", value)
        inner = ", ".join(_shown(part, given.get(n), exact=exact) for n, part in kind.parts)
        return f"STRUCT({inner})" if exact and len(kind.parts) == 1 else f"({inner})"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _constant(kind.kind, str(value)) if exact else _plain(kind.kind, str(value))


def _plain(kind: str, text: str) -> str:
    if kind == "FLOAT64":
        shown = float_text(text)
        return f"{shown}.0" if shown.lstrip("-").isdigit() else shown
    if kind in {"NUMERIC", "BIGNUMERIC"}:
        return plain_decimal(text)
    if kind == "BYTES":
        return bytes_of(text).decode("utf-8", "replace")
    if kind == "JSON":
        raise ValueError("FORMAT of JSON is not supported by the embedded BigQuery")
    if kind in {"TIMESTAMP", "DATETIME", "TIME"}:
        return _fraction(text)
    return text


def _fraction(text: str) -> str:
    """Return a fraction of a second in groups of three digits, as CAST writes it."""
    found = re.fullmatch(r"(.*\d\d)\.(\d+)(\+00)?", text)
    if found is None:
        return text
    digits = found[2].rstrip("0")
    digits = digits.ljust(-(-len(digits) // 3) * 3, "0")
    return f"{found[1]}{'.' if digits else ''}{digits}{found[3] or ''}"


def _constant(kind: str, text: str) -> str:
    if kind == "FLOAT64":
        shown = _plain(kind, text)
        return f'CAST("{shown}" AS FLOAT64)' if shown[-1] in "nNf" else shown
    if kind == "STRING":
        return _quoted(text)
    if kind == "BYTES":
        data = "".join(
            chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}"  # noqa: PLR2004 - ASCII
            for b in bytes_of(text)
        )
        return f'b"{data}"'
    if kind in {"DATE", "TIME", "DATETIME", "TIMESTAMP", "NUMERIC", "BIGNUMERIC"}:
        return f'{kind} "{_plain(kind, text)}"'
    return _plain(kind, text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    escaped = escaped.replace("\t", "\\t")
    if '"' in escaped and "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', '\\"') + '"'
