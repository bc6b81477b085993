"""The log-query language: `table … | search … | stats …` as one GoogleSQL text.

Its reference is docs/query-language.md.  What it writes is limited to the parts of GoogleSQL in
`emitted`, so that each engine has to know no more than these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.query.logs.compiler import compiled_question
from loader.query.logs.parser import SOURCES, parse

if TYPE_CHECKING:
    from datetime import datetime

    from loader.query.question import Question, Shapes

__all__ = ["compile", "is_log_query"]


def compile(text: str, shapes: Shapes, now: datetime) -> Question:  # noqa: A001 - read as logs.compile
    """Compile a question of the log-query language.

    Args:
        text: the question.
        shapes: the tables that there are.
        now: UTC; where a `duration` ends, and what `now()` gives.

    Raises:
        QueryError: it cannot be asked, with the place of what is wrong.
    """
    return compiled_question(text, parse(text, now), shapes, now)


def is_log_query(text: str) -> bool:
    """Say whether the first word of a text is one that begins a question of this language."""
    words = text.split(None, 1)
    return bool(words) and words[0].lower() in SOURCES
