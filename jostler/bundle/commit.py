"""The commit: a sealed bundle becomes durable.

**Invariant:** journal, data object, index object, journal says stored (then `sweep` unlinks and
forgets): in this order, each only when the one before is durable.  Whoever dies in between leaves
a journal entry, and the next process goes on with it under the same name.  Nothing here runs on a
clock of its own: the thread that calls waits between tries.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from jostler.bundle.bundle import Attempt, Bundle, Header, OpenBundle, index_object
from jostler.bundle.cleanup import Outcome, Stored
from jostler.bundle.file import content_hash, read_file
from jostler.bundle.record import Record
from jostler.bundle.upload_stats import Trouble, UploadStats
from jostler.errors import ConflictError, JostlerError, TransientError, told
from jostler.format.names import display
from jostler.format.row import instant, one_line, rejected_most
from jostler.log import EveryMinute, Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.confined import Confined
    from jostler.bundle.entry import Entry
    from jostler.bundle.journal import Journal
    from jostler.bundle.retry import Tries
    from jostler.format.row import Rejection
    from jostler.storage import Storage

log = Log("jostler.commit")
DISK_HINT = "free disk space, check permissions"
R = TypeVar("R")


class Commit:
    """Carries out commits; may be used by several threads at once.

    Args:
        open_storage: gives the bucket of a URL; an old journal entry may name another bucket than
            the configuration does.
        journal: where entries are kept.
        spool: the files of the experiment, as entries name them.
        tries: repeats steps until they succeed or the agent stops.
        troubles: told of each step that is tried or fails.
    """

    def __init__(
        self,
        open_storage: Callable[[str], Storage],
        journal: Journal,
        spool: Confined,
        tries: Tries,
        troubles: UploadStats,
    ) -> None:
        self._open_storage = open_storage
        self._journal = journal
        self._spool = spool
        self._tries = tries
        self._troubles = troubles
        self._every_minute = EveryMinute()

    def store(self, job: Bundle | Record) -> Stored | Outcome:
        """Make a bundle that was just sealed, or that an earlier process left, durable.

        Returns:
            What a sweep goes on with; or the outcome at once when the files were given back.

        Raises:
            StoppedError: the agent stopped first; the journal, or the spool alone, remembers.
        """
        started_s = time.monotonic()
        if isinstance(job, Record):
            return self._replay(job, started_s)
        record = Record.of(job)
        self._insist("journal", record, lambda: self._journal.write(record))
        return self._upload(record, job.data, started_s)

    def _replay(self, record: Record, started_s: float) -> Stored | Outcome:
        """Go on with an entry of the journal."""
        if record.stored:
            return Stored(record=record, started_s=started_s)
        name = str(record.header.name)
        found = self._insist(name, record, lambda: self._storage(record).upload_id(name))
        if found is not None:
            return self._found(record, found, started_s)
        bundle = rebuild(record, self._spool)
        if not bundle.attempt.entries:
            log.warning("replay.abandoned", object=name, reason="every file changed or is gone")
            return self._abandon(record, started_s)
        if bundle.attempt.upload_id not in {a.upload_id for a in record.attempts}:
            record = record.with_attempt(bundle.attempt)
            self._insist("journal", record, lambda: self._journal.write(record))
        return self._upload(record, bundle.data, started_s)

    def _upload(self, record: Record, data: bytes, started_s: float) -> Stored | Outcome:
        name = str(record.header.name)
        metadata = _metadata(record.header, record.attempts[-1])

        def put() -> float:
            begun_s = time.monotonic()
            self._storage(record).put_new(name, data, metadata)
            return time.monotonic() - begun_s

        try:
            upload_s = self._insist(name, record, put)
        except ConflictError:
            found = self._insist(name, record, lambda: self._storage(record).upload_id(name))
            return self._found(record, found, started_s)
        attempt = record.attempts[-1]
        return self._finish(record, attempt, started_s, object_bytes=len(data), upload_s=upload_s)

    def _found(self, record: Record, upload_id: str | None, started_s: float) -> Stored | Outcome:
        """Decide what to do when the name is taken: by an attempt of ours, or by another's."""
        for attempt in record.attempts:
            if attempt.upload_id == upload_id:
                return self._finish(record, attempt, started_s)
        log.warning(
            "bundle.name_taken",
            object=str(record.header.name),
            files=len(record.paths),
            next="the files are bundled again under a new name",
            hint="do two agents have the same node name?",
        )
        return self._abandon(record, started_s)

    def _finish(
        self,
        record: Record,
        winner: Attempt,
        started_s: float,
        *,
        object_bytes: int = 0,
        upload_s: float = 0.0,
    ) -> Stored:
        """Store the index and say so in the journal."""
        index_name = str(record.header.index_name)
        index = index_object(record.header, winner)
        metadata = _metadata(record.header, winner)
        self._insist(
            index_name,
            record,
            lambda: self._storage(record).put_new(index_name, index, metadata),
            # A foreign index of our own data should not exist: wait for a person to look.
            again=(TransientError, ConflictError, OSError),
        )
        left = record.paths.difference(winner.entries.paths)
        if len(record.attempts) > 1:
            record = record.settled(winner)
            self._insist("journal", record, lambda: self._journal.write(record))
        stored = self._insist("journal", record, lambda: self._journal.mark_stored(record))
        return Stored(
            record=stored,
            left=frozenset(left),
            object_bytes=object_bytes,
            index_bytes=len(index),
            upload_s=upload_s,
            started_s=started_s,
        )

    def _abandon(self, record: Record, started_s: float) -> Outcome:
        """Forget an entry whose data object can no more become ours; its files start afresh."""
        self._insist("journal", record, lambda: self._journal.remove(record))
        return Outcome(
            header=record.header,
            stored=False,
            again=frozenset(record.paths),
            seconds=time.monotonic() - started_s,
        )

    def _storage(self, record: Record) -> Storage:
        return self._open_storage(record.header.bucket)

    def _insist(
        self,
        what: str,
        record: Record,
        step: Callable[[], R],
        *,
        again: tuple[type[Exception], ...] = (TransientError, OSError),
    ) -> R:
        """Repeat a step until it succeeds, saying so at once and then once a minute."""
        troubles, datatype = self._troubles, record.header.name.datatype

        def attempt() -> R:
            troubles.begun(datatype)
            return step()

        def failed(exc: Exception, failures: int, wait_s: float) -> None:
            hint = getattr(exc, "hint", "") or DISK_HINT
            trouble = Trouble.of(exc, what, hint=hint, tries=failures, next_try_s=wait_s)
            troubles.failed(datatype, str(record.header.name), trouble)
            if count := self._every_minute.due(f"{type(exc).__name__}"):
                log.warning(
                    "upload.failed" if isinstance(exc, JostlerError) else "journal.failed",
                    what=what,
                    bundle=record.basename,
                    error_class=type(exc).__name__,
                    error=told(exc),
                    tries=failures,
                    times=count,
                    next_try_s=round(wait_s, 1),
                    hint=hint,
                )

        try:
            return self._tries.until_done(attempt, again, failed)
        finally:
            troubles.ended(str(record.header.name), what)


def _metadata(header: Header, attempt: Attempt) -> dict[str, str]:
    """Return what the object itself tells of its rows."""
    first_us, last_us = attempt.entries.span_us
    return {
        "rows": str(len(attempt.entries)),
        "first-time-added": instant(first_us),
        "last-time-added": instant(last_us),
        "version": header.archiver.version,
    }


def rebuild(record: Record, spool: Confined) -> Bundle:
    """Make a bundle again, after a crash, from those of its files that have not changed.

    Equal files give equal bytes, hence the upload id of the attempt that they were sealed in.
    """
    bundle = OpenBundle(record.header, opened_s=0.0)
    for entry in record.attempts[-1].entries:
        rejection = record.rejections.get(entry.path)
        raw = _raw_again(entry, rejection, spool, record.header.name.node)
        if raw is not None:
            bundle.add(entry, bundle.row(display(entry.filename), raw), rejection)
    return bundle.seal()


def _raw_again(
    entry: Entry, rejection: Rejection | None, spool: Confined, node: str
) -> bytes | None:
    """Return a row's `raw` anew; None when the file is no longer what it was."""
    content = b""
    try:
        content = read_file(spool, entry.path, rejected_most(entry.state.size)).content
    except OSError:
        if entry.hash:
            return None
    if entry.hash and content_hash(content) != entry.hash:
        return None
    if not rejection:
        return one_line(content)
    return rejection.raw(
        filename=display(entry.filename),
        size=entry.state.size,
        added_us=entry.added_us,
        node=node,
        content=content,
    )
