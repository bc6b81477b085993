"""Find a file on one machine: in the agent's memory, in the journal and in the spool.

**Invariant:** a file that is on the disk exactly as a bundle has it gives one finding, that of the
bundle.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jostler.agent.why import journal, spool
from jostler.why.finding import Answer, Finding, State

if TYPE_CHECKING:
    from jostler.agent.why.journal import Upload
    from jostler.agent.why.spool import AgentView, Setting
    from jostler.why.asked import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The part of the answer that comes from the agent's memory.

    Attributes:
        agent: whether the agent takes files now; also given if no agent answers.
        findings: the findings in open bundles and among the files that the agent left on the disk.
        uploads: how the uploads proceed, by name of the data object; None if no agent answers.
    """

    agent: AgentView
    findings: tuple[Finding, ...] = ()
    uploads: dict[str, Upload] | None = field(default=None)


def look(asked: Asked, setting: Setting, memory: Memory) -> Answer:
    """Combine the agent's memory with the journal and the spool on disk."""
    found, looked_journal = journal.findings(asked, setting.state_dir, memory.uploads)
    # The memory was copied before the journal was read.  A bundle that was sealed in between is in
    # both: the journal's finding is the newer one.
    known = {one.file for one in found}
    found += [one for one in memory.findings if one.file not in known]
    paths, looked_spool = spool.files(asked, setting)
    for path in paths:
        held = [one for one in found if one.file == path]
        one = spool.waiting(path, setting, memory.agent)
        if one is None or any(_is_same(one, other) for other in held):
            continue
        found.append(_renewed(one) if held and one.state is State.WAITING else one)
    return Answer.of(found, [looked_journal, looked_spool])


def _is_same(waiting: Finding, held: Finding) -> bool:
    """Return whether a file on the disk has the content that another finding is about."""
    if held.state in {State.KEPT, State.WAITING}:
        return True  # the agent compared the two before it answered
    here, there = waiting.evidence.get("hash"), held.evidence.get("hash")
    if here and there:
        return here == there
    return waiting.evidence.get("size") == held.evidence.get("size")


def _renewed(waiting: Finding) -> Finding:
    """Return the finding of a file that changed after a bundle had taken its earlier content."""
    return replace(
        waiting,
        why="it was written anew while its earlier content was on its way",
        next="when its earlier content is stored, its new content is taken as a new file",
    )
