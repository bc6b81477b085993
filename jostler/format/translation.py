"""Translation expressions: `REGEX~FORMAT` makes a text of a file's name.

**Invariant:** an expression that was parsed fails for a Filename only by not matching it.

Pure.
"""

from __future__ import annotations

import re
import string

from msgspec import Struct

SEPARATOR = "~"


class UntranslatableError(ValueError):
    """A translation cannot be made of this Filename; the message says why."""


class Translation(Struct, frozen=True):
    """A parsed expression.

    Attributes:
        regex: it must match the beginning of a Filename.
        template: text and the names of groups in turn; a template begins and ends with text.
    """

    regex: re.Pattern[str]
    template: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Translation:
        """Read an expression.

        Raises:
            ValueError: it is none; the message says what is wrong.
        """
        count = text.count(SEPARATOR)
        if count != 1:
            raise ValueError(f"{text!r} has {count} times `~`; an expression is REGEX~FORMAT")
        pattern, _, form = text.partition(SEPARATOR)
        try:
            regex = re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as exc:
            raise ValueError(f"{pattern!r} is not a regular expression: {exc}") from exc
        if not regex.groupindex:
            raise ValueError(f"{pattern!r} has no named group, such as (?P<job>[a-z]+)")
        return cls(regex, _template(form, list(regex.groupindex)))

    def of(self, filename: str) -> str:
        """Return the translation of a Filename, `yyyy/mm/dd/<name>`.

        Raises:
            UntranslatableError: it has none.
        """
        found = self.regex.match(filename)
        if not found:
            raise UntranslatableError(
                f"{self.regex.pattern!r} does not match the beginning of {filename!r}"
            )
        parts = list(self.template)
        for place in range(1, len(parts), 2):
            value = found[parts[place]]
            if value is None:
                raise UntranslatableError(f"the group {parts[place]!r} matches nothing")
            parts[place] = value
        return "".join(parts)


def _template(form: str, groups: list[str]) -> tuple[str, ...]:
    """Read a FORMAT: text with `{group}`; `{{` and `}}` are braces.

    Raises:
        ValueError: it is none, or uses no group, or one that does not exist.
    """
    parts = [""]
    try:
        for text, name, spec, conversion in string.Formatter().parse(form):
            parts[-1] += text
            if name is None:
                continue
            # A conversion or a format specification is none of the group's name.
            parts += [f"{name}{'!' if conversion else ''}{':' if spec else ''}", ""]
    except ValueError as exc:
        raise ValueError(f"{form!r} is not a format: {exc}") from None
    for name in parts[1::2]:
        if name not in groups:
            known = ", ".join(f"{{{group}}}" for group in groups)
            raise ValueError(f"{form!r} is not a format: {{{name}}} is none of {known}")
    if len(parts) == 1:
        raise ValueError(f"{form!r} is not a format: it has no {{group}}")
    return tuple(parts)
