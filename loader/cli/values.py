"""Texts of arguments and environment into values; used by each command of the loader.

**Invariant:** every wrong text is one problem that names its option; nothing is raised for one.

Pure.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from loader.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from enum import StrEnum

_T = TypeVar("_T")
_Enum = TypeVar("_Enum", bound="StrEnum")
_Values = TypeVar("_Values", bound="Values")
Option = tuple[str, str, str, str]
Help = tuple[Option, ...]
"""Option, metavar ("" for a switch, "*" after it for a repeatable one), default, help."""
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION_RE = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_SIZE_RE = re.compile(r"([0-9]{1,15})(|B|KiB|MiB|GiB)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What a command takes, and what its help says.

    Attributes:
        prog: its name, as a user types it.
        about: what it does, in a sentence.
        epilog: the end of its help.
        options: its options.
        prefix: of their environment variables.
        operand: metavar and help of the one word that is no option; "" if there is none.
        shares_prefix: other commands have variables of this prefix that are not among `options`.
    """

    prog: str
    about: str
    epilog: str
    options: Help
    prefix: str
    operand: tuple[str, str] = ("", "")
    shares_prefix: bool = False


def parser_of(command: Command) -> argparse.ArgumentParser:
    """Return a parser of a command that takes values as text."""
    made = argparse.ArgumentParser(
        prog=command.prog,
        description=command.about,
        epilog=command.epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        exit_on_error=False,
    )
    metavar, text = command.operand
    if metavar:
        made.add_argument(metavar.lower(), metavar=metavar, nargs="?", help=text)
    for name, metavar, default, text in command.options:
        flag = f"--{name}"
        help_text = f"{text} (default {default})" if default not in {"", "false"} else text
        if not metavar:
            made.add_argument(flag, action="store_const", const="true", help=help_text)
        elif metavar.endswith("*"):
            made.add_argument(flag, action="append", metavar=metavar[:-1], help=help_text)
        else:
            made.add_argument(flag, metavar=metavar, help=help_text)
    return made


def variable_of(prefix: str, option: str) -> str:
    """Return the name of an option's environment variable."""
    return prefix + option.upper().replace("-", "_")


class Values:
    """Converts the given texts to values, and collects a problem for each that is wrong.

    Args:
        command: what it takes.
        argv: the words of the command line.
        environ: the environment.

    Attributes:
        problems: what was wrong so far: words and variables that are no options, wrong values.

    Raises:
        UsageError: an option lacks its value.
        SystemExit: after --help.
    """

    def __init__(self, command: Command, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        try:
            given, unknown = parser_of(command).parse_known_args(list(argv))
        except argparse.ArgumentError as exc:
            raise UsageError([str(exc)]) from exc
        self._given: dict[str, Any] = vars(given)
        self._environ = environ
        self._prefix = command.prefix
        self._defaults = {name: default for name, _, default, _ in command.options}
        known = {variable_of(self._prefix, name) for name in self._defaults}
        if not command.shares_prefix:
            unknown += [n for n in sorted(environ) if n.startswith(self._prefix) and n not in known]
        self.problems = [f"{name}: there is no such option" for name in unknown]

    def operand(self, metavar: str) -> str:
        """Return the word that is no option; "" if it was not given."""
        return self._given[metavar.lower()] or ""

    def text(self, name: str) -> str:
        """Return the text of an option; of a repeatable one, with commas."""
        given = self._given[name.replace("-", "_")]
        if given is None:
            given = self._environ.get(variable_of(self._prefix, name)) or self._defaults[name]
        return ",".join(given) if isinstance(given, list) else str(given)

    def one(self, name: str, convert: Callable[[str], _T]) -> _T | None:
        """Return the value of an option; None, and a problem, if it has none or a wrong one."""
        text = self.text(name)
        if not text:
            self._miss(name)
            return None
        try:
            return convert(text)
        except ValueError as exc:
            self.problems.append(f"--{name}: {exc}")
            return None

    def optional(self, name: str, convert: Callable[[str], _T]) -> _T | None:
        """Return the value of an option; None if it has none, or a wrong one."""
        return self.one(name, convert) if self.text(name) else None

    def needed(self, name: str, convert: Callable[[str], _T]) -> tuple[_T, ...]:
        """Return the different values of a repeatable option that must have one."""
        if not self._texts(name):
            self._miss(name)
        return tuple(dict.fromkeys(self.many(name, convert)))

    def many(self, name: str, convert: Callable[[str], _T]) -> tuple[_T, ...]:
        """Return the values of a repeatable option, but the wrong ones."""
        found = []
        for text in self._texts(name):
            try:
                found.append(convert(text))
            except ValueError as exc:
                self.problems.append(f"--{name}: {exc}")
        return tuple(found)

    def lines(self, name: str) -> tuple[str, ...]:
        """Return the texts of a repeatable option that may have commas; in the variable, lines."""
        given = self._given[name.replace("-", "_")]
        texts = given if isinstance(given, list) else self.text(name).splitlines()
        return tuple(text.strip() for text in texts if text.strip())

    def _texts(self, name: str) -> list[str]:
        return [text.strip() for text in self.text(name).split(",") if text.strip()]

    def _miss(self, name: str) -> None:
        self.problems.append(f"--{name} or {variable_of(self._prefix, name)}: is needed")


def read(values: _Values, make: Callable[[_Values], _T]) -> _T:
    """Return what a command makes of its values.

    Raises:
        UsageError: with every problem.
    """
    made = make(values)
    if values.problems:
        raise UsageError(values.problems)
    return made


def matching(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    """Return a converter that takes what matches a pattern."""

    def convert(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{text!r} is not {what}")
        return text

    return convert


def choice(*words: str) -> Callable[[str], str]:
    """Return a converter that takes one of some words."""
    return matching(re.compile("|".join(map(re.escape, words))), f"one of {', '.join(words)}")


def one_of(kinds: type[_Enum]) -> Callable[[str], _Enum]:
    """Return a converter to a member of an enum."""
    convert = choice(*kinds)
    return lambda text: kinds(convert(text))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def fraction(text: str) -> float:
    """Convert a number from 0 to 1."""
    if not 0 <= _number(text) <= 1:
        raise ValueError(f"{text!r} is not between 0 and 1")
    return float(text)


def count(most: int) -> Callable[[str], int]:
    """Return a converter that takes a number from 1 on."""

    def convert(text: str) -> int:
        if not text.isdecimal() or not 1 <= int(text) <= most:
            raise ValueError(f"{text!r} is not a number from 1 to {most}")
        return int(text)

    return convert


def seconds(text: str) -> float:
    """Convert a number of seconds above 0."""
    if not 0 < _number(text) < float("inf"):
        raise ValueError(f"{text!r} is not a number of seconds")
    return float(text)


def duration(text: str) -> float:
    """Convert a number with a unit, such as 90s, 5m, 6h or 7d, to seconds."""
    found = _DURATION_RE.fullmatch(text)
    if not found or int(found[1]) == 0:
        raise ValueError(f"{text!r} is not a time such as 90s, 5m, 6h or 7d")
    return float(int(found[1]) * _SECONDS[found[2]])


def switch(text: str) -> bool:
    """Convert true or false."""
    if text not in {"true", "false"}:
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


def size(text: str) -> int:
    """Convert a number of bytes with a unit, such as 256MiB; without one it is bytes."""
    found = _SIZE_RE.fullmatch(text)
    if not found or int(found[1]) == 0:
        raise ValueError(f"{text!r} is not a size such as 256MiB")
    return int(found[1]) * _UNITS[found[2]]
