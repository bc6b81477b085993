"""HTML that data cannot inject markup into: `tag` makes elements, plain strings are escaped.

**Invariant:** only `tag`, `join`, `lines` and `asset` create `Html`; everything else is escaped,
and invisible characters (controls, bidirectional overrides, lone surrogates) are replaced by
escapes.

Pure: no I/O, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from jostler.words import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

_EMPTY_ELEMENTS = frozenset({"input", "link", "meta"})


@dataclass(frozen=True, slots=True)
class Html:
    """Markup, as opposed to text."""

    markup: str

    def __bool__(self) -> bool:
        """Whether there is any markup."""
        return bool(self.markup)


Content = Html | str | int | None
Attribute = str | int | float | bool | None
NOTHING = Html("")


def tag(name: str, /, *children: Content, **attributes: Attribute) -> Html:
    """Make an element.

    Args:
        name: the element's name; a constant, never from data.
        children: markup, text to be escaped, or None for nothing.
        attributes: named as in HTML, with `_` for `-` and one `_` after a Python keyword; None
            and False leave one out, True gives it no value.
    """
    parts = ["<", name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        parts.append(f" {key.rstrip('_').replace('_', '-')}")
        if value is not True:
            parts.append(f'="{_text(str(value))}"')
    parts.append(">")
    if name not in _EMPTY_ELEMENTS:
        parts += (join(children).markup, f"</{name}>")
    return Html("".join(parts))


def join(children: Iterable[Content]) -> Html:
    """Concatenate markup and text."""
    return Html("".join(_one(child) for child in children))


def lines(text: str) -> Html:
    """Escape text, but keep its line breaks, for an element that shows them."""
    return Html("\n".join(map(_text, text.split("\n"))))


def asset(name: str, content: str) -> Html:
    """Make a script or style element; the content security policy has the hash of its text.

    Args:
        name: `script` or `style`.
        content: a constant, never from data; must not contain the element's end tag.
    """
    assert f"</{name}" not in content
    return Html(f"<{name}>{content}</{name}>")


def _one(child: Content) -> str:
    if child is None:
        return ""
    return child.markup if isinstance(child, Html) else _text(str(child))


def _text(text: str) -> str:
    return escape(visible(text))
