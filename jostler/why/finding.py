"""The answer of `jostler why`: where a file is, since when, why, and the evidence.

**Invariant:** text from a file's name or content is written without control characters, so it is
safe on a terminal.  A finding never changes.

Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from jostler.format.row import DISK_LACK
from jostler.words import ago, duration, rfc3339, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

FOUND_WELL, FOUND_BAD, UNKNOWN = 0, 1, 3
Value = str | int | bool


class State(StrEnum):
    """Where a file is; members are in the order in which a file passes through them."""

    IGNORED = "ignored"
    WAITING = "waiting"
    OPEN = "open"
    SEALED = "sealed"
    STORED = "stored"
    LOADED = "loaded"
    REJECTED = "rejected"
    KEPT = "kept"
    MISSING = "missing"

    @property
    def is_well(self) -> bool:
        """Whether a file in this state is safe or on its way."""
        return self not in {State.IGNORED, State.REJECTED, State.KEPT, State.MISSING}


def after_rejection(reason: str) -> str:
    """Return what can be done about a file whose row is in rejected1 for a reason."""
    if reason == DISK_LACK:
        return "nothing: the file is gone, and its content was not stored"
    return "mend the service or the schema; `jostler requeue` takes files that are good then"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One location of a file.  A file delivered more than once has several findings.

    Attributes:
        state: where the file is.
        file: its path below the experiment's spool, as far as it is known.
        since: when it entered the state, aware; None when unknown.
        why: a sentence: what the state means for this file.
        next: what happens next without help, or what a person can do.
        evidence: the facts behind the finding, by name: objects, lines, hashes, paths.
        row: the bytes of its row's `raw`, if the caller wanted them.
    """

    state: State
    file: str
    since: datetime | None
    why: str
    next: str
    evidence: dict[str, Value] = field(default_factory=dict)
    row: bytes = b""

    def to_json(self) -> dict[str, Any]:
        """Return the form that `parse` reads; `row` becomes text, which `parse` ignores."""
        row = {"row": self.row.decode(errors="backslashreplace")} if self.row else {}
        return row | {
            "state": str(self.state),
            "file": shown(self.file),
            "since": rfc3339(self.since) if self.since else None,
            "why": shown(self.why),
            "next": shown(self.next),
            "evidence": {
                key: shown(value) if isinstance(value, str) else value
                for key, value in self.evidence.items()
            },
        }

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Finding:
        """Read what `to_json` returns.

        Raises:
            ValueError, KeyError, TypeError: it is something else.
        """
        since = value["since"]
        return cls(
            state=State(value["state"]),
            file=str(value["file"]),
            since=datetime.fromisoformat(since).astimezone(UTC) if since else None,
            why=str(value["why"]),
            next=str(value["next"]),
            evidence=dict(value["evidence"]),
        )


@dataclass(frozen=True, slots=True)
class Looked:
    """One part of the system and whether it was searched.

    Attributes:
        where: agent, journal, spool, bucket or BigQuery.
        done: whether it was searched.
        text: what was searched there, or why it was not.
    """

    where: str
    done: bool
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return what `parse` reads."""
        return {"where": self.where, "done": self.done, "told": shown(self.text)}

    @classmethod
    def parse(cls, value: dict[str, Any]) -> Looked:
        """Read what `to_json` returns.

        Raises:
            KeyError, TypeError: it is something else.
        """
        return cls(str(value["where"]), bool(value["done"]), str(value["told"]))


@dataclass(frozen=True, slots=True)
class Answer:
    """All findings, newest first, and the parts of the system that were searched."""

    findings: tuple[Finding, ...]
    looked: tuple[Looked, ...]

    @classmethod
    def of(cls, findings: Iterable[Finding], looked: Iterable[Looked]) -> Answer:
        """Sort the findings: newest first, those without a time last."""
        oldest = datetime.min.replace(tzinfo=UTC)
        ordered = sorted(findings, key=lambda found: found.since or oldest, reverse=True)
        return cls(tuple(ordered), tuple(looked))

    @property
    def status(self) -> int:
        """The exit status: the newest finding decides."""
        if not self.findings:
            return UNKNOWN
        return FOUND_WELL if self.findings[0].state.is_well else FOUND_BAD

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that the agent sends and `-json` shows."""
        return {
            "format": 1,
            "state": str(self.findings[0].state) if self.findings else "unknown",
            "findings": [found.to_json() for found in self.findings],
            "looked": [looked.to_json() for looked in self.looked],
        }


def as_text(answer: Answer, asked: str, now: datetime) -> str:
    """Write an answer for people."""
    lines = [f"{shown(asked)}: unknown"] if not answer.findings else []
    for found in answer.findings:
        lines += _finding_lines(found, now)
    lines += [
        f"{'looked at' if looked.done else 'NOT looked at'} {looked.where}: {shown(looked.text)}"
        for looked in answer.looked
    ]
    return "\n".join(lines) + "\n"


def _finding_lines(found: Finding, now: datetime) -> list[str]:
    lines = [f"{str(found.state).upper()} {shown(found.file)}"]
    if found.since:
        ahead = (found.since - now).total_seconds()
        how = f"{duration(ahead)} ahead of this clock" if ahead > 0 else ago(found.since, now)
        lines += [f"  since {rfc3339(found.since)} ({how})"]
    lines += [f"  why:  {shown(found.why)}", f"  next: {shown(found.next)}"]
    width = max(map(len, found.evidence), default=0)
    lines += [f"    {key:{width}}  {shown(str(value))}" for key, value in found.evidence.items()]
    return lines


def as_json(answer: Answer) -> str:
    """Write an answer as JSON that is safe on a terminal: ASCII without control characters."""
    return json.dumps(answer.to_json(), indent=1).replace("\x7f", "\\u007f") + "\n"
