"""Why a question is refused: a stable code, a sentence, and where in the text.

**Invariant:** `0 <= start <= end <= len(text)`: both are offsets in characters, so the words that
are wrong are `text[start:end]`; an empty range is a place where something is missing.

Pure.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What is wrong with a question; the labels are stable."""

    SYNTAX = "syntax"
    UNKNOWN_TABLE = "unknown-table"
    UNKNOWN_FIELD = "unknown-field"
    UNKNOWN_FUNCTION = "unknown-function"
    UNKNOWN_COMMAND = "unknown-command"
    NOT_SUPPORTED = "not-supported"
    TYPE = "type"
    ARGUMENT = "argument"


class QueryError(Exception):
    """A question that is not asked further.

    Attributes:
        code: what is wrong.
        message: what was expected and what was found, on one line.
        start: where the wrong words begin, in characters from the start of the question.
        end: where they end; not included.
    """

    def __init__(self, code: Code, message: str, start: int, end: int) -> None:
        super().__init__(f"{code} at {start}-{end}: {message}")
        self.code, self.message, self.start, self.end = code, message, start, end
