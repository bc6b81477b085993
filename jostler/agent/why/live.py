"""Find a file in the memory of the running agent, for the threads of its HTTP server.

**Invariant:** the agent's own thread only copies what it remembers, between two rounds of its loop.
The thread of the request searches the copy.  Only one request searches at a time: several searches
at once would keep the loop waiting for the interpreter lock (GIL).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostler.agent.ages import Ages
from jostler.agent.why.local import Memory, look
from jostler.agent.why.spool import AgentView, Setting, arrived, instant, on_disk
from jostler.why import asked as question
from jostler.why.finding import Finding, Looked, State, Value
from jostler.words import duration, rfc3339

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.agent.why.again import Again, Left
    from jostler.agent.why.journal import Upload
    from jostler.agent.why.questions import Questions
    from jostler.bundle import Entry, FileState, Limits, OpenBundle
    from jostler.config import Config
    from jostler.why.asked import Asked

WHERE = "agent"
PATIENCE_S = 5.0
"""How long a request waits for its turn, and then for the agent's loop."""
_SHOWN_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A copy of what the agent remembers of files, made by its own thread.

    Attributes:
        agent: whether the agent takes files now.
        bundles: the open bundles, each with the number of its lines at the time of the copy; only
            these lines may be read, because the agent's thread appends further ones.
        limits: when a bundle is sealed.
        spool: the experiment's directory.
        ages: when a file that a scan found is taken.
        again: judges a file again.
        in_bundles: the paths of files that belong to bundles.
        stay: the states of bad files that stay, by path.
        doubtful: the states of files that are bad now and may still become good, by path.
        uploads: how the uploads proceed, by name of the data object.
    """

    agent: AgentView
    bundles: tuple[tuple[OpenBundle, int], ...]
    limits: Limits
    spool: str
    ages: Ages
    again: Again
    in_bundles: tuple[str, ...]
    stay: Mapping[str, FileState]
    doubtful: Mapping[str, FileState]
    uploads: dict[str, Upload]


def reply(
    config: Config, questions: Questions, name: str, *, waits_for: str = ""
) -> dict[str, Any]:
    """Return the JSON document of `/why.json?name=…`.

    Args:
        config: the agent's configuration.
        questions: the queue to the agent's thread.
        name: the file that the user asks about, as typed.
        waits_for: what the agent waits for before its loop begins; empty once the loop runs.

    Raises:
        ValueError: the text names no file.
    """
    setting = Setting.of(config, Ages(config.settle_age_s, config.missed_age_s))
    asked = question.parse(name, spool=str(setting.spool), datatypes=setting.datatypes)
    searched = f"node {config.node}, datatypes {', '.join(setting.datatypes)}"
    looked = Looked(WHERE, True, searched)
    with questions.turn(PATIENCE_S) as came:
        remembered = questions.ask(PATIENCE_S) if came and not waits_for else None
        if remembered:
            memory = recall(asked, remembered)
        else:
            why = _silent(waits_for, came=came)
            looked = Looked(WHERE, False, f"{searched}: {why}")
            memory = Memory(agent=AgentView(runs=True, holds_back=why))
        answer = look(asked, setting, memory)
    place = config.place
    about = {
        "bucket": config.bucket,
        "node": config.node,
        "spool": str(config.spool),
        "data_dir": place.data_dir,
        "organization": place.organization,
        "experiment": place.experiment,
        "datatypes": list(setting.datatypes),
    }
    found = answer.to_json()
    return {**found, "looked": [looked.to_json(), *found["looked"]], "agent": about}


def _silent(waits_for: str, *, came: bool) -> str:
    """Return why the agent's memory was not searched, in words."""
    if waits_for:
        return f"the agent was just started and stores no file yet: it waits for {waits_for}"
    if not came:
        return f"other requests were answered for {duration(PATIENCE_S)}: ask again"
    return f"the agent's loop has not answered for {duration(PATIENCE_S)}: it may be stuck"


def recall(asked: Asked, remembered: Remembered) -> Memory:
    """Search open bundles and what the agent remembers for a file, in the thread of the request."""
    found = [
        _open(bundle, line, bundle.entries.at(line), remembered.limits)
        for bundle, lines in remembered.bundles
        # The agent's thread appends to these lists; their first `lines` items do not change.
        for line, path in enumerate(bundle.entries.paths[:lines])
        if asked.matches(path)
    ]
    known = {one.file for one in found}
    held = [path for path in remembered.in_bundles if asked.matches(path)]
    found += [_sealed(path) for path in held[:_SHOWN_MOST] if path not in known]
    states = [(path, state, True) for path, state in remembered.stay.items()]
    states += [(path, state, False) for path, state in remembered.doubtful.items()]
    asked_for = [one for one in states if asked.matches(one[0])]
    found += [_left(one, remembered) for one in remembered.again.left(asked_for, _SHOWN_MOST)]
    return Memory(agent=remembered.agent, findings=tuple(found), uploads=remembered.uploads)


def _open(bundle: OpenBundle, line: int, entry: Entry, limits: Limits) -> Finding:
    rejection = bundle.rejection(entry.path)
    since = instant(entry.added_us * 1000)
    evidence: dict[str, Value] = {
        "object": bundle.header.url,
        "files": bundle.files,
        "line": line + 1,
        "size": entry.state.size,
        "hash": entry.hash.hex(),
    }
    if rejection:
        evidence |= {"reason": rejection.reason, "field": rejection.field}
    why = "its row is in the open bundle of its datatype and day, in memory; the file is on disk"
    left_s = limits.max_age_s - (time.monotonic() - bundle.opened_s)
    room = limits.max_bytes - bundle.size_bytes
    return Finding(
        state=State.REJECTED if rejection else State.OPEN,
        file=entry.path,
        since=since,
        why=f"{rejection.reason}: {rejection.detail}; {why}" if rejection else why,
        next=f"the bundle is uploaded in {duration(max(0.0, left_s))}, or after {room} bytes more",
        evidence=evidence | {"read": rfc3339(since)},
    )


def _sealed(path: str) -> Finding:
    """Return the finding of a file whose bundle is sealed.

    `look` drops it if it finds the bundle in the journal.
    """
    return Finding(
        state=State.SEALED,
        file=path,
        since=None,
        why="its bundle is sealed, and about to be written to the journal",
        next="the agent uploads it; if the journal cannot be written, its log has journal.failed",
    )


def _left(left: Left, remembered: Remembered) -> Finding:
    wrong = f"{left.rejection.reason}: {left.rejection.detail}" if left.rejection else "it is bad"
    evidence = on_disk(remembered.spool, left.path, left.state)
    if left.rejection:
        evidence |= {"reason": left.rejection.reason, "field": left.rejection.field}
    since = arrived(left.state)
    if left.kept:
        return Finding(
            state=State.KEPT,
            file=left.path,
            since=since,
            why=f"{wrong}; it stays on disk because of -bad-files or because of its size",
            next="correct or remove it; the agent examines it again when it changes",
            evidence=evidence,
        )
    due_s = remembered.ages.until_missed_s(left.state, time.time_ns())
    return Finding(
        state=State.WAITING,
        file=left.path,
        since=since,
        why=f"it is bad now, perhaps half written: {wrong}",
        next=f"if it does not change, it is rejected in {duration(max(0.0, due_s))} (-missed-age)",
        evidence=evidence,
    )
