"""The health checks: what is wrong, since when, and what to do, in words.

**Invariant:** each problem has a code and a section of that name in docs/runbook.md.  An outage of
the bucket never makes /healthz fail.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from jostler.agent.observe.disk_checks import disk_problems
from jostler.agent.observe.problem import HOUR_S, Facts, Level, Problem, files_of
from jostler.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.agent.observe.shares import Shares
    from jostler.config import Config

STUCK_S = 60.0
PATIENT_S = 120.0
FEW_REJECTS = 3
MANY_REJECTS = 10
SOME_REJECTED = 0.01
MOST_REJECTED = 0.5
KNOWN_FILES = 100
ROSE_TIMES = 3
SLACK_S = 120.0
LOSES = frozenset({"rejects", "files_given_up"})
"""The problems in which files may be lost."""


class Health(Struct, frozen=True, kw_only=True):
    """All problems, the worst first; `headline` sums them up in a sentence or two."""

    level: Level
    since_s: float
    headline: str
    problems: tuple[Problem, ...]

    def level_of(self, datatype: str) -> Level:
        """Return the worst level among the problems that concern a datatype."""
        levels = {problem.level for problem in self.problems if datatype in problem.datatypes}
        return next((level for level in (Level.BAD, Level.ATTENTION) if level in levels), Level.OK)


class HealthChecks:
    """Finds problems and remembers since when each exists; any thread may call it.

    Args:
        config: its ages determine how old a waiting file may become.
    """

    def __init__(self, config: Config) -> None:
        # A file without event waits until the first scan after it has reached -missed-age.
        self._oldest_s = max(
            HOUR_S, config.missed_age_s + 1.25 * config.missed_interval_s + SLACK_S
        )
        self._lock = threading.Lock()
        self._since_s: dict[str, float] = {}
        self._bad_since_s = 0.0
        self._once = config.mode == "once"

    def examine(self, facts: Facts) -> Health:
        """Run all checks; return the agent's health."""
        found = sorted(self._problems(facts), key=lambda p: p.level is not Level.BAD)
        with self._lock:
            self._since_s = {
                p.code: self._since_s.get(p.code, p.since_s or facts.now_s) for p in found
            }
            since = self._since_s
        problems = tuple(_dated(p, since[p.code]) for p in found)
        if not problems:
            return Health(level=Level.OK, since_s=0.0, headline=_well(facts), problems=())
        worst = problems[0]
        return Health(
            level=worst.level,
            since_s=min(p.since_s for p in problems if p.level is worst.level),
            headline=_headline(worst, facts),
            problems=problems,
        )

    def _problems(self, facts: Facts) -> Iterator[Problem]:
        yield from _loop(facts)
        yield from _uploads(facts)  # before its consequences: the first problem is the headline
        yield from _start(facts)
        yield from disk_problems(facts)
        yield from self._oldest(facts)
        yield from _memory(facts)
        yield from _watch(facts)
        yield from _rejects(facts)
        yield from _undeletable(facts)

    def _oldest(self, facts: Facts) -> Iterator[Problem]:
        since_s = {name: w.oldest_s for name, w in facts.disk.waiting.items() if w.files}
        oldest_s = min(since_s.values(), default=0.0)
        age_s = facts.now_s - oldest_s
        if oldest_s and age_s > self._oldest_s and not facts.uploads.failing_since_s:
            late = [name for name, at_s in since_s.items() if facts.now_s - at_s > self._oldest_s]
            yield Problem(
                code="oldest_too_old",
                level=Level.BAD,
                since_s=oldest_s + self._oldest_s,
                text=f"A file has been waiting for {duration(age_s)}",
                hint="`jostler why NAME` gives the reason; the log names unreadable files.",
                datatypes=tuple(late),
            )


def _loop(facts: Facts) -> Iterator[Problem]:
    if facts.still_s > STUCK_S:
        yield Problem(
            code="agent_stuck",
            level=Level.BAD,
            since_s=facts.now_s - facts.still_s,
            text=f"The agent's loop has not turned for {duration(facts.still_s)}",
            hint="The usual cause is a disk that does not answer. Nothing is lost; Kubernetes "
            "restarts the agent.",
        )


def _start(facts: Facts) -> Iterator[Problem]:
    if facts.waits_for:
        waited_s = facts.now_s - facts.started_s
        yield Problem(
            code="not_ready",
            level=Level.BAD if waited_s > PATIENT_S else Level.ATTENTION,
            since_s=facts.started_s,
            text=f"The agent has not begun to store files: it waits for {facts.waits_for}",
            hint="Files wait on disk, and are stored when the wait is over.",
        )


def _uploads(facts: Facts) -> Iterator[Problem]:
    since_s = facts.uploads.failing_since_s
    if not since_s:
        return
    last = facts.uploads.last_failures[-1] if facts.uploads.last_failures else None
    age_s = max(0.0, facts.now_s - since_s)
    text = f"Uploads have been failing for {duration(age_s)}"
    yield Problem(
        code="uploads_failing",
        level=Level.BAD if age_s > PATIENT_S else Level.ATTENTION,
        since_s=since_s,
        text=f"{text}: {last.text}" if last else text,
        hint=(last.hint if last else "") or "The agent tries again without end; nothing is lost.",
        datatypes=tuple(
            dict.fromkeys(
                one.datatype for one in facts.snapshot.closed if one.name in facts.uploads.tries
            )
        ),
    )


def _memory(facts: Facts) -> Iterator[Problem]:
    now = facts.snapshot.now
    if now and now.holds_back.startswith("memory") and not facts.uploads.failing_since_s:
        yield Problem(
            code="memory_full",
            level=Level.ATTENTION,
            since_s=0.0,
            text="No file is read, because bundles use all of -memory-max",
            hint="More files arrive than are uploaded: raise -memory-max or -upload-concurrency.",
        )


def _watch(facts: Facts) -> Iterator[Problem]:
    now = facts.snapshot.now
    if now and now.degraded:
        yield Problem(
            code="watch_degraded",
            level=Level.ATTENTION,
            since_s=0.0,
            text=f"Files are found by scans, not by events: {now.degraded}",
            hint="Files are taken later than with events. Raise the fs.inotify limits, or use a "
            "local file system.",
        )
    if now and facts.now_s - facts.snapshot.overflow_s < HOUR_S:
        yield Problem(
            code="overflow",
            level=Level.ATTENTION,
            since_s=facts.snapshot.overflow_s,
            text="The kernel's event queue overflowed within the last hour",
            hint="A scan finds the files whose events were dropped. If it recurs, give the agent "
            "more CPU.",
        )


def rejects_level(shares: Shares) -> Level:
    """Rate the rejected files of a datatype by their share and its change.

    A few bad files are normal for many services and are no problem.
    """
    recent, before = shares
    if recent.bad >= FEW_REJECTS and recent.of_bad >= MOST_REJECTED:
        return Level.BAD
    if recent.bad >= FEW_REJECTS and recent.of_bad >= SOME_REJECTED:
        return Level.ATTENTION
    rose = before.files >= KNOWN_FILES and recent.of_bad >= ROSE_TIMES * before.of_bad
    return Level.ATTENTION if rose and recent.bad >= MANY_REJECTS else Level.OK


def _rejects(facts: Facts) -> Iterator[Problem]:
    levels = {name: rejects_level(shares) for name, shares in facts.snapshot.shares.items()}
    wrong = [name for name, level in levels.items() if level is not Level.OK]
    if not wrong:
        return
    wrong.sort(key=lambda name: -facts.snapshot.shares[name].recent.of_bad)
    worst, recent = wrong[0], facts.snapshot.shares[wrong[0]].recent
    refused = facts.snapshot.tally.refused.get(worst, ())
    for_what = f", the last one for {refused[-1].reason}" if refused else ""
    others = f"; so were files of {', '.join(wrong[1:])}" if wrong[1:] else ""
    yield Problem(
        code="rejects",
        level=Level.BAD if Level.BAD in levels.values() else Level.ATTENTION,
        since_s=0.0,
        text=f"{recent.bad:,} of {files_of(recent.files)} of {worst} ({_percent(recent.of_bad)})"
        f" were rejected in the last hour{for_what}{others}",
        hint="Tell the owner of the service; the reasons are below and in rejected1.",
        datatypes=tuple(wrong),
    )


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"  # noqa: PLR2004


def _undeletable(facts: Facts) -> Iterator[Problem]:
    now = facts.snapshot.now
    if now and now.undeletable_bundles:
        yield Problem(
            code="undeletable",
            level=Level.BAD,
            since_s=0.0,
            text=f"Files of {now.undeletable_bundles} stored bundles cannot be deleted",
            hint="Run agent and service as the same user, or give the service umask 002 and both "
            "a common group.",
        )


def _dated(problem: Problem, since_s: float) -> Problem:
    return replace(problem, since_s=problem.since_s or since_s)


def _waiting(facts: Facts) -> str:
    files = sum(w.files for w in facts.disk.waiting.values())
    return f"{files:,} file{'' if files == 1 else 's'} wait on disk" if files else ""


def _headline(worst: Problem, facts: Facts) -> str:
    begun = datetime.fromtimestamp(worst.since_s, UTC)
    waiting = _waiting(facts)
    kept = f" Nothing is lost: {waiting}." if waiting and worst.code not in LOSES else ""
    return f"{worst.text} (since {begun:%Y-%m-%d %H:%M} UTC).{kept}"


def _well(facts: Facts) -> str:
    last_s = max(facts.snapshot.last_success_s.values(), default=0.0)
    if not last_s:
        return "All is well; no bundle had to be stored yet."
    return (
        f"All is well. The last bundle was stored {duration(max(0.0, facts.now_s - last_s))} ago."
    )
