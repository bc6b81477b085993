"""What is wrong with a document: a label, the path of the field, and a sentence.

**Invariant:** reason, field and detail are short and can be encoded as UTF-8 whatever the document
contains, so a flaw can be logged, counted and archived without further checks.

Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

_SHOWN = 60
_PLAIN_KEY_RE = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)


class Reason(StrEnum):
    """Why a document is refused; the labels are stable, because alerts and queries use them."""

    EMPTY = "empty"
    NOT_UTF8 = "not-utf8"
    NOT_JSON = "not-json"
    NOT_OBJECT = "not-object"
    TOO_DEEP = "too-deep"
    TOO_COMPLEX = "too-complex"
    LONE_SURROGATE = "lone-surrogate"
    NUL_CHARACTER = "nul-character"
    UNKNOWN_FIELD = "unknown-field"
    DUPLICATE_KEY = "duplicate-key"
    MISSING_REQUIRED = "missing-required"
    NULL_REQUIRED = "null-required"
    NULL_ELEMENT = "null-element"
    WRONG_TYPE = "wrong-type"
    OUT_OF_RANGE = "out-of-range"
    TOO_LONG = "too-long"
    BAD_BASE64 = "bad-base64"
    BAD_DATE = "bad-date"
    BAD_TIME = "bad-time"
    BAD_DATETIME = "bad-datetime"
    BAD_TIMESTAMP = "bad-timestamp"
    BAD_GEOGRAPHY = "bad-geography"
    BAD_RANGE = "bad-range"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """The first reason, in the order of the document, for which BigQuery would refuse the row.

    Attributes:
        reason: a short label.
        field: path like `Download.ServerMeasurements[3].TCPInfo.RTT`; empty for the document.
        detail: what was expected and what was found.
    """

    reason: Reason
    field: str
    detail: str

    def inside(self, step: str) -> Flaw:
        """Return the flaw with its path extended by a key, or by an index in brackets."""
        dot = "." if self.field and not self.field.startswith("[") else ""
        return replace(self, field=f"{step}{dot}{self.field}")


def shown(value: object) -> str:
    """Describe a parsed value (see `document`) in a few characters."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"number {_cut(value[: _SHOWN + 1].decode())}"
    if isinstance(value, str):
        return f"string {_cut(value[: _SHOWN + 1])!r}"
    if isinstance(value, list | tuple):
        return "an object" if isinstance(value, tuple) else "an array"
    return str(value)  # a container of `stream`


def key_step(key: str) -> str:
    """Write a key of the document as a step of a path; unusual keys are quoted and cut."""
    return key if _PLAIN_KEY_RE.fullmatch(key) else repr(_cut(key[: _SHOWN + 1]))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
