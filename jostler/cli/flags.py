"""A parser for flags as Go's flag package reads them: `-flag value`, `--flag=value`.

**Invariant:** one pass finds every problem and names its flag or variable; nothing is read but the
arguments and the environment that the caller passes in.

argparse is not used because it stops at the first problem and refuses `-switch=false`.
"""

from __future__ import annotations

import os
import re
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from jostler.cli.commands import meant
from jostler.config import MinFree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from enum import StrEnum

_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION_MAX_S = 2**63 / 1e9
"""Go counts nanoseconds in 63 bits: 292 years."""
_DURATION_RE = re.compile(r"(?:(?:\d+\.?\d*|\.\d+)(?:h|ms|m|s|us|µs|ns))+", re.ASCII)
_PART_RE = re.compile(r"(\d+\.?\d*|\.\d+)(h|ms|m|s|us|µs|ns)", re.ASCII)
_GO_INTEGER_RE = re.compile(r"[0-9][0-9a-z_]*", re.ASCII | re.IGNORECASE)
_GO_OCTAL_RE = re.compile(r"^0_?(?=[0-9])", re.ASCII)
_SIZE_RE = re.compile(r"(\d+)\s*([kmgt]i?)?b?", re.ASCII | re.IGNORECASE)
_SIZE_UNITS: dict[str, int] = {
    **{prefix: 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}i": 1024**power for power, prefix in enumerate("kmgt", 1)},
}


def duration(text: str) -> float:
    """Read a duration as Go writes it, `1h30m` or `250ms`, into seconds.

    Raises:
        ValueError: `text` is not a duration, is negative, or longer than Go's.
    """
    if text == "0":
        return 0.0
    if not _DURATION_RE.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration such as 1h30m, 10s or 250ms")
    seconds = sum(float(number) * _UNITS_S[unit] for number, unit in _PART_RE.findall(text))
    if seconds >= _DURATION_MAX_S:
        raise ValueError(f"{text!r} is longer than 292 years")
    return seconds


def size(text: str) -> int:
    """Read a number of bytes, as Go writes integers or with a unit.

    `20971520`, `20_971_520`, `0x1400000`, `0b1`, `0o17` and `017` as in Go, `30MB`, `20MiB`.

    Raises:
        ValueError: `text` is not a size.
    """
    text = text.strip()
    try:
        if _GO_INTEGER_RE.fullmatch(text):
            return int(_GO_OCTAL_RE.sub("0o", text), 0)
    except ValueError:
        pass  # an underscore in a wrong place, an 8 in an octal number
    found = _SIZE_RE.fullmatch(text)
    if not found or _GO_OCTAL_RE.match(text):
        raise ValueError(f"{text!r} is not a size such as 20971520, 0x1400000, 30MB or 20MiB")
    return int(found[1]) * _SIZE_UNITS.get((found[2] or "").lower(), 1)


def free_space(text: str) -> MinFree:
    """Read how much of a disk is to stay free: `5%`, or a size; 0 for nothing.

    Raises:
        ValueError: `text` is neither.
    """
    share = re.fullmatch(r"(\d{1,2}(?:\.\d+)?) *%", text.strip(), re.ASCII)
    if share:
        return MinFree(share=float(share[1]) / 100)
    try:
        return MinFree(size_bytes=size(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a share below 100 % such as 5%, nor a size such as 2GiB"
        ) from None


def directory(text: str) -> str:
    """Make a directory's path absolute and normal, so that all programs spell it the same way.

    A `..` after a symbolic link means the parent of the link's target, as in the kernel.
    """
    if ".." in text.split("/"):
        return os.path.realpath(text)
    return f"/{os.path.abspath(text).lstrip('/')}"  # noqa: PTH100 - links stay as they are


def boolean(text: str) -> bool:
    """Read a boolean as Go does.

    Raises:
        ValueError: `text` is not a boolean.
    """
    if text in {"1", "t", "T", "TRUE", "true", "True"}:
        return True
    if text in {"0", "f", "F", "FALSE", "false", "False"}:
        return False
    raise ValueError(f"{text!r} is not a boolean (true or false)")


def whole(text: str) -> int:
    """Read a whole number.

    Raises:
        ValueError: `text` is not a whole number.
    """
    if not re.fullmatch(r"\d{1,18}", text, re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


def words(text: str) -> list[str]:
    """Read a list with commas: `a,b`."""
    return [word.strip() for word in text.split(",") if word.strip()]


def lines(text: str) -> list[str]:
    """Read a list whose members may have commas: one a line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


_LISTS = (words, lines)


def day(text: str) -> date:
    """Read a day.

    Raises:
        ValueError: the text is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day such as 2026-01-31") from None


def one_of(kinds: type[StrEnum]) -> Callable[[str], StrEnum]:
    """Return a function that reads one of the words of an enumeration."""

    def read(text: str) -> StrEnum:
        try:
            return kinds(text)
        except ValueError:
            choices = ", ".join(kinds)
            raise ValueError(f"{text!r} is none of {choices}") from None

    return read


def host_port(text: str) -> tuple[str, int]:
    """Read `HOST:PORT`, `:PORT` or `[ADDRESS]:PORT`; the host is empty when it is not given.

    Raises:
        ValueError: `text` has none of these forms.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        port = None
    if port is None or parts.netloc != text or "@" in text:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return host, port


class Flag(Struct, frozen=True, kw_only=True):
    """One flag.

    Attributes:
        name: without a dash; its variable is the name in capitals, other characters become `_`.
        read: turns text into a value or raises ValueError.  With `boolean` the flag is a switch;
            with `words` or `lines` each use appends to a list.
        default: the default as text, shown by `-help`; None for no value.
        help: what it does, with the unit.
        aliases: other names of the same flag.
        variable: whether the environment may set it.
        alone: the text that the flag stands for without a value; then a value needs a `=`.
    """

    name: str
    read: Callable[[str], Any] = str
    default: str | None = None
    help: str
    aliases: tuple[str, ...] = ()
    variable: bool = True
    alone: str = ""

    @property
    def variables(self) -> list[str]:
        """The environment variables that may set it."""
        return [variable(name) for name in (self.name, *self.aliases) if self.variable]


HELP = Flag(
    name="help",
    aliases=("h",),
    read=boolean,
    default="false",
    help="show this and exit",
    variable=False,  # other programs use the variables HELP and H for their own purposes
)
"""The flag `-help`, which the agent and each of the commands have."""


def variable(name: str) -> str:
    """Return the environment variable of a flag's name: `bundle-size-max`, `BUNDLE_SIZE_MAX`."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


class Parsed(Struct, frozen=True):
    """The values of all flags by name, the source of each, all problems, and other arguments."""

    values: dict[str, Any]
    set_by: dict[str, str]
    problems: list[str]
    words: list[str]


def parse(
    table: Sequence[Flag], argv: Sequence[str], environ: Mapping[str, str], *, most_words: int = 0
) -> Parsed:
    """Read all flags: from the command line, else from the environment, else their defaults.

    Args:
        table: the known flags.
        argv: without the program's name.
        environ: the environment variables.
        most_words: how many arguments without a dash are allowed; after `--` all arguments are
            such.
    """
    parsed = Parsed({}, {}, [], [])
    by_name = {name: flag for flag in table for name in (flag.name, *flag.aliases)}
    _read_argv(by_name, list(argv), parsed)
    extra = parsed.words[most_words:]
    parsed.problems.extend(f"{word}: unexpected argument, flags begin with -" for word in extra)
    del parsed.words[most_words:]
    for flag in table:
        if flag.name not in parsed.set_by:
            _read_environ(flag, environ, parsed)
        if flag.name not in parsed.values:
            empty: Any = [] if flag.read in _LISTS else None
            parsed.values[flag.name] = empty if flag.default is None else flag.read(flag.default)
    return parsed


def _read_argv(by_name: Mapping[str, Flag], rest: list[str], parsed: Parsed) -> None:
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word in {"-", "--"}:
            parsed.words.extend(rest if word == "--" else [word])
            if word == "--":
                return
            continue
        name, equals, text = word.removeprefix("-").removeprefix("-").partition("=")
        flag = by_name.get(name)
        if not flag:
            like = meant(name, by_name, "-")
            parsed.problems.append(f"-{name}: no such flag{like or '; -help lists them'}")
            # Its value, if it has one, would otherwise be reported as well.
            if not equals and rest and not rest[0].startswith("-"):
                rest.pop(0)
            continue
        if not equals:
            if flag.read is boolean or flag.alone:
                text = flag.alone or "true"
            elif rest:
                text = rest.pop(0)
            else:
                parsed.problems.append(f"-{name}: needs a value")
                continue
        _set(flag, f"-{name}", text, parsed)


def _read_environ(flag: Flag, environ: Mapping[str, str], parsed: Parsed) -> None:
    for name in flag.variables:
        if text := environ.get(name, ""):
            _set(flag, name, text, parsed)


def _set(flag: Flag, source: str, text: str, parsed: Parsed) -> None:
    parsed.set_by[flag.name] = source
    try:
        value = flag.read(text)
    except ValueError as exc:
        parsed.problems.append(f"{source}: {exc}")
        return
    if flag.read in _LISTS:
        value = [*parsed.values.get(flag.name, []), *value]
    parsed.values[flag.name] = value


def usage(table: Sequence[Flag]) -> str:
    """Return the list of flags, with defaults and units, for `-help`."""
    lines = []
    for flag in table:
        names = ", ".join(f"-{name}" for name in (flag.name, *flag.aliases))
        default = f" (default {flag.default})" if flag.default not in {None, ""} else ""
        lines += [f"  {names}", f"        {flag.help}{default}"]
    return "\n".join(lines)
