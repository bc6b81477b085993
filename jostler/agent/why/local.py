"""What one machine knows of a file: its agent's memory, the journal, the spool.

**Invariant:** a file that a bundle holds as it is on the disk is not told of as waiting too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jostler.agent.why import journal, spool
from jostler.why.finding import Answer, Finding, State

if TYPE_CHECKING:
    from jostler.agent.why.journal import Upload
    from jostler.agent.why.spool import Doer, Setting
    from jostler.why.asked import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What an agent has in its memory; of one that does not answer, only that it does not.

    Attributes:
        doer: whether and how it takes files.
        findings: files in open bundles, and those that it has looked at and left.
        uploads: by name of the data object; None when no agent answers.
    """

    doer: Doer
    findings: tuple[Finding, ...] = ()
    uploads: dict[str, Upload] | None = field(default=None)


def look(asked: Asked, setting: Setting, memory: Memory) -> Answer:
    """Look for a file in memory, journal and spool."""
    found, looked_journal = journal.findings(asked, setting.state_dir, memory.uploads)
    # Between the two looks a bundle may have come from memory into the journal.
    known = {one.file for one in found}
    found += [one for one in memory.findings if one.file not in known]
    paths, looked_spool = spool.files(asked, setting)
    for path in paths:
        held = [one for one in found if one.file == path]
        one = spool.waiting(path, setting, memory.doer)
        if one is None or any(_is_same(one, other) for other in held):
            continue
        found.append(_renewed(one) if held and one.state is State.WAITING else one)
    return Answer.of(found, [looked_journal, looked_spool])


def _is_same(waiting: Finding, held: Finding) -> bool:
    """Say whether a file on the disk is what a bundle, or the agent's memory, holds."""
    if held.state in {State.KEPT, State.WAITING}:
        return True  # the agent has compared the two itself
    here, there = waiting.evidence.get("hash"), held.evidence.get("hash")
    if here and there:
        return here == there
    return waiting.evidence.get("size") == held.evidence.get("size")


def _renewed(waiting: Finding) -> Finding:
    return replace(
        waiting,
        why="it was written anew while its earlier content was on its way",
        next="its new content is taken as a new file when the earlier one is stored",
    )
