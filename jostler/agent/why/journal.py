"""The journal on disk: which sealed or stored bundles on their way hold a file.

**Invariant:** only reads, takes no lock, and may read while the agent writes: an entry that goes
away meanwhile has been finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jostler.agent.why.spool import instant
from jostler.bundle.journal import SEALED, STORED, Journal
from jostler.why.finding import Finding, Looked, State, Value
from jostler.words import rfc3339

if TYPE_CHECKING:
    from jostler.bundle import Entry, Rejection
    from jostler.bundle.record import Record
    from jostler.format.blocks import Block
    from jostler.why.asked import Asked

WHERE = "journal"
_LOCKS = Path("/proc/locks")


@dataclass(frozen=True, slots=True)
class Upload:
    """What a running agent knows about the upload of a bundle.

    Attributes:
        tries: failed so far.
        error: the last failure, in words.
    """

    tries: int
    error: str


def findings(
    asked: Asked, directory: Path, uploads: dict[str, Upload] | None
) -> tuple[list[Finding], Looked]:
    """Return what the journal's entries say of a file.

    Args:
        asked: the file.
        directory: of the journal.
        uploads: by name of the data object, what the agent that answers knows; None when no agent
            answers.
    """
    try:
        if not directory.exists():
            return [], Looked(WHERE, False, f"{directory}: there is no such directory")
        records, unreadable = Journal(directory).load()
    except OSError as exc:
        return [], Looked(WHERE, False, f"{directory}: {exc.strerror}")
    unreadable = [(path, why) for path, why in unreadable if path.exists()]
    found = [
        _finding(_Place(record, line, entry, block), directory, uploads)
        for record in records
        for line, entry, block in record.attempts[-1].lines()
        if asked.matches(entry.path)
    ]
    told = f"{directory}: {len(records)} entries"
    if unreadable:
        told += f"; {len(unreadable)} cannot be read, the first {unreadable[0][0].name}"
    return found, Looked(WHERE, True, told)


class _Place(NamedTuple):
    """Where the row of a file is in a bundle of the journal."""

    record: Record
    line: int
    entry: Entry
    block: Block

    @property
    def rejection(self) -> Rejection | None:
        return self.record.rejections.get(self.entry.path)


def _finding(place: _Place, directory: Path, uploads: dict[str, Upload] | None) -> Finding:
    record, entry, rejection = place.record, place.entry, place.rejection
    path = directory / (record.basename + (STORED if record.stored else SEALED))
    try:
        since = instant(path.stat().st_mtime_ns)
    except OSError:
        since = instant(entry.added_us * 1000)
    what = f"{rejection.reason}: {rejection.detail}; " if rejection else ""
    state = State.STORED if record.stored else State.SEALED
    if not record.stored:
        why, following = _progress(uploads, str(record.header.name))
    elif entry.hash:
        why = "its row is durable, and the file itself is being unlinked"
        following = "the agent unlinks the file if it has not changed, and forgets the entry"
    else:
        why = "its row is durable, but does not hold all bytes of the file, which stays"
        following = "mend or remove the file"
    return Finding(
        state=State.REJECTED if rejection else state,
        file=entry.path,
        since=since,
        why=what + why,
        next=following,
        evidence=_evidence(place, path),
    )


def _evidence(place: _Place, path: Path) -> dict[str, Value]:
    evidence: dict[str, Value] = {
        "journal": str(path),
        "object": place.record.header.url,
        "line": place.line,
        "offset": place.block.offset,
        "length": place.block.length,
        "size": place.entry.state.size,
        "hash": place.entry.hash.hex(),
        "read": rfc3339(instant(place.entry.added_us * 1000)),
    }
    if found := place.rejection:
        evidence |= {"reason": found.reason, "field": found.field, "detail": found.detail}
    return evidence


def _progress(uploads: dict[str, Upload] | None, name: str) -> tuple[str, str]:
    why = "its bundle is closed and in the journal"
    if uploads is None:
        return (
            f"{why}; no agent answers that would upload it",
            "the next start of the agent uploads it, under the same name",
        )
    upload = uploads.get(name)
    if upload and upload.tries:
        return (
            f"{why}; its upload failed {upload.tries} times, the last time with {upload.error}",
            "the agent tries again by itself",
        )
    return f"{why}; its upload is under way", "nothing to do"


def locked_by(directory: Path) -> int | None:
    """Return the process that holds the lock of a state directory; None when none is seen.

    The kernel's list is read; to try the lock would be to hold it for a moment.
    """
    try:
        inode = (directory / "lock").stat().st_ino
        locks = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for words in (line.split() for line in locks):  # 1: FLOCK ADVISORY WRITE 42 08:01:7 0 EOF
        kind, pid, where = words[1], words[4], words[5]
        if kind == "FLOCK" and where.rpartition(":")[2] == str(inode):
            return int(pid)
    return None
