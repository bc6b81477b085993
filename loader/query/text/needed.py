"""Which words a row must have to answer a question.

**Invariant:** a row of which `may_answer` says no cannot fulfil the condition; a condition that is
not understood, and every `NOT`, is no need at all (None), and leaves all rows.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.query.text.words import pieces

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Pieces:
    """A row must have all of these.

    Attributes:
        utf8: pieces of words, at least one.
    """

    utf8: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class AllOf:
    """A row must fulfil all of these."""

    parts: frozenset[Need]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A row must fulfil one of these."""

    parts: frozenset[Need]


Need = Pieces | AllOf | AnyOf


def of_words(words: tuple[str, ...]) -> Need | None:
    """Return the need of some words, all in one text."""
    found = frozenset(piece.encode() for word in words for piece in pieces(word))
    return Pieces(found) if found else None


def both(one: Need | None, other: Need | None) -> Need | None:
    """Return the need of two conditions with AND between."""
    parts = frozenset(part for part in (one, other) if part is not None)
    return AllOf(parts) if len(parts) > 1 else next(iter(parts), None)


def either(one: Need | None, other: Need | None) -> Need | None:
    """Return the need of two conditions with OR between; of one that needs nothing none."""
    if one is None or other is None:
        return None
    return one if one == other else AnyOf(frozenset((one, other)))


def may_answer(need: Need, has: Callable[[bytes], bool]) -> bool:
    """Return whether rows can fulfil a need.

    Args:
        need: the need.
        has: whether they may have a piece.
    """
    match need:
        case Pieces(utf8):
            return all(map(has, utf8))
        case AllOf(parts):
            return all(may_answer(part, has) for part in parts)
        case AnyOf(parts):
            return any(may_answer(part, has) for part in parts)


def texts(need: Need) -> str:
    """Return a need for people."""
    match need:
        case Pieces(utf8):
            return " and ".join(sorted(f'"{one.decode()}"' for one in utf8))
        case AllOf(parts):
            return " and ".join(sorted(f"({texts(part)})" for part in parts))
        case AnyOf(parts):
            return " or ".join(sorted(f"({texts(part)})" for part in parts))
