"""Find a file in the journal on disk: in a bundle that is sealed or stored and not yet cleaned up.

**Invariant:** it only reads, and takes no lock, so it may read while the agent writes.  A record
that disappears meanwhile belongs to a bundle that is finished.
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
        tries: the number of failed tries.
        error: the last failure, in words; empty if none failed.
    """

    tries: int
    error: str


def findings(
    asked: Asked, directory: Path, uploads: dict[str, Upload] | None
) -> tuple[list[Finding], Looked]:
    """Return one finding for each bundle in the journal that has the file.

    Args:
        asked: the file.
        directory: the state directory, which has the journal.
        uploads: what the running agent knows of its uploads, by name of the data object; None if no
            agent answers.

    Returns:
        The findings, and what was searched: the number of records, or why there are none.
    """
    try:
        if not directory.exists():
            return [], Looked(WHERE, False, f"{directory}: there is no such directory")
        records, unreadable = Journal(directory).load()
    except OSError as exc:
        return [], Looked(WHERE, False, f"{directory}: {exc.strerror}")
    unreadable = [(path, why) for path, why in unreadable if path.exists()]
    found = [
        _finding(_JournalRow(record, line, entry, block), directory, uploads)
        for record in records
        for line, entry, block in record.attempts[-1].lines()
        if asked.matches(entry.path)
    ]
    text = f"{directory}: {len(records)} records"
    if unreadable:
        text += f"; {len(unreadable)} cannot be read, the first is {unreadable[0][0].name}"
    return found, Looked(WHERE, True, text)


class _JournalRow(NamedTuple):
    """A file's row in a bundle of the journal: record, line from 1, entry and block."""

    record: Record
    line: int
    entry: Entry
    block: Block

    @property
    def rejection(self) -> Rejection | None:
        return self.record.rejections.get(self.entry.path)


def _finding(row: _JournalRow, directory: Path, uploads: dict[str, Upload] | None) -> Finding:
    record, entry, rejection = row.record, row.entry, row.rejection
    path = directory / (record.basename + (STORED if record.stored else SEALED))
    try:
        since = instant(path.stat().st_mtime_ns)
    except OSError:
        since = instant(entry.added_us * 1000)
    what = f"{rejection.reason}: {rejection.detail}; " if rejection else ""
    is_given_up = bool(rejection and rejection.given_up)
    state = State.STORED if record.stored else State.SEALED
    if not record.stored:
        why, following = _progress(uploads, str(record.header.name))
    elif entry.hash or is_given_up:
        why = "its row is durable, and the file itself is being unlinked"
        following = "the agent unlinks the file if it has not changed, and removes the record"
    else:
        why = "its row is durable, but does not have all bytes of the file, so the file stays"
        following = "correct or remove the file"
    return Finding(
        state=State.REJECTED if rejection else state,
        file=entry.path,
        since=since,
        why=what + why,
        next=following,
        evidence=_evidence(row, path),
    )


def _evidence(row: _JournalRow, path: Path) -> dict[str, Value]:
    evidence: dict[str, Value] = {
        "journal": str(path),
        "object": row.record.header.url,
        "line": row.line,
        "offset": row.block.offset,
        "length": row.block.length,
        "size": row.entry.state.size,
        "hash": row.entry.hash.hex(),
        "read": rfc3339(instant(row.entry.added_us * 1000)),
    }
    if found := row.rejection:
        evidence |= {"reason": found.reason, "field": found.field, "detail": found.detail}
    return evidence


def _progress(uploads: dict[str, Upload] | None, name: str) -> tuple[str, str]:
    """Return how the upload of a sealed bundle proceeds, and what happens next."""
    why = "its bundle is sealed and in the journal"
    if uploads is None:
        return (
            f"{why}; no agent answers, so nothing uploads it now",
            "the agent uploads it after its next start, under the same name",
        )
    upload = uploads.get(name)
    if upload and upload.tries:
        return (
            f"{why}; its upload failed {upload.tries} times, the last time with {upload.error}",
            "the agent tries again without help",
        )
    return f"{why}; its upload is under way", "nothing to do"


def locked_by(directory: Path) -> int | None:
    """Return the id of the process that holds the lock of a state directory; None if none is seen.

    The kernel's list of locks is read, see proc_locks(5).  To try the lock instead would mean to
    hold it for a moment, and an agent that starts in that moment would find it taken.  The list has
    only processes of this PID namespace, so a process in another container is not seen.
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
