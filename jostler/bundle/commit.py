"""The commit: a sealed bundle becomes durable, step by step.

**Invariant:** journal, data object, index object, journal says stored (then `cleanup` unlinks and
forgets): in this order, each only when the one before is durable.  If the process dies in between,
the journal has a record, and the next process continues under the same name.  Nothing here waits:
a step that fails ends the call, and the caller decides when the job is tried again, so that no
bundle keeps a thread from the others.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from jostler.bundle.bundle import Attempt, Bundle, Header, OpenBundle
from jostler.bundle.file import read_file
from jostler.bundle.index import index_object
from jostler.bundle.job import JOURNAL, Halt, Stage, UploadJob
from jostler.bundle.record import Record
from jostler.bundle.stored_index import describes
from jostler.errors import ConflictError, StorageError, TransientError
from jostler.format.names import display
from jostler.format.row import has_hash, instant, one_line, rejected_most
from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.bundle.confined import Confined
    from jostler.bundle.entry import Entry
    from jostler.bundle.index import IndexRows
    from jostler.bundle.journal import Journal
    from jostler.bundle.upload_stats import UploadStats
    from jostler.format.row import Rejection
    from jostler.storage import Storage

log = Log("jostler.commit")


class Commit:
    """Carries out the steps of upload jobs; several threads may use it at once.

    Args:
        open_storage: gives the bucket of a URL; an old record of the journal may name another
            bucket than the configuration does.
        journal: where records are kept.
        spool: the files of the experiment, as entries name them.
        stats: records each step that is tried.
        index_rows: writes the rows of index objects as far as it can.
    """

    def __init__(
        self,
        open_storage: Callable[[str], Storage],
        journal: Journal,
        spool: Confined,
        stats: UploadStats,
        index_rows: IndexRows | None = None,
    ) -> None:
        self._index_rows = index_rows
        self._open_storage = open_storage
        self._journal = journal
        self._spool = spool
        self._stats = stats
        self._steps: dict[Stage, Callable[[UploadJob], UploadJob]] = {
            Stage.SEALED: self._write,
            Stage.JOURNALLED: self._upload,
            Stage.TAKEN: self._ask,
            Stage.UPLOADED: self._index,
            Stage.INDEXED: self._mark,
            Stage.LOST: self._forget,
        }

    def advance(
        self, job: UploadJob, stopped: Callable[[], bool] = lambda: False
    ) -> UploadJob | Halt:
        """Carry out the steps of a job until it has ended or one fails.

        Args:
            job: what to do.
            stopped: returns whether no further step may begin.

        Returns:
            The job, ended unless it was stopped; or where it halted because a step failed.
        """
        while not job.ended and not stopped():
            self._stats.begun(job.header.name.datatype)
            try:
                job = self._steps[job.stage](job)
            except (StorageError, OSError) as exc:
                return Halt(job.parked(), self._what(job), exc, _cause(job, exc))
        return job

    def _write(self, job: UploadJob) -> UploadJob:
        self._journal.write(job.record)
        return job.written()

    def _upload(self, job: UploadJob) -> UploadJob:
        if job.data is None:
            return self._look_first(job)
        name, attempt = str(job.header.name), job.record.attempts[-1]
        begun_s = time.monotonic()
        try:
            self._storage(job).put_new(
                name, job.data, _data_metadata(attempt, job.header), digest=attempt.upload_id
            )
        except ConflictError:
            # HTTP 412 does not say whose object it is: another agent's, or this bundle's own, whose
            # reply was lost or which an earlier process stored
            # (cloud.google.com/storage/docs/request-preconditions).  So the next step asks for its
            # upload id.
            return job.taken()
        upload_s = time.monotonic() - begun_s
        return job.uploaded(attempt, object_bytes=len(job.data), upload_s=upload_s)

    def _look_first(self, job: UploadJob) -> UploadJob:
        """After a crash, look for the data object; if it is not there, make its bytes again."""
        name = str(job.header.name)
        # The bucket is asked before the files are read: if the object was stored before the crash,
        # its bytes count, and files that changed since are given back.  Sending other bytes would
        # lose a row.
        found = self._storage(job).upload_id(name)
        if found is not None:
            return self._found(job, found)
        bundle = rebuild(job.record, self._spool)
        if not bundle.attempt.entries:
            log.warning("replay.abandoned", object=name, reason="every file changed or is gone")
            return job.lost()
        # An upload that the earlier process sent may be performed only after this look.  Then this
        # one gets a 412, and the upload id says which bytes are stored.
        return job.made_again(bundle)

    def _ask(self, job: UploadJob) -> UploadJob:
        """Read the upload id of the object that has the data object's name."""
        return self._found(job, self._storage(job).upload_id(str(job.header.name)))

    def _found(self, job: UploadJob, upload_id: str | None) -> UploadJob:
        """Go on with the attempt that an upload id belongs to, or give the bundle up."""
        after = job.found(upload_id)
        if after.stage is Stage.LOST:
            log.warning(
                "bundle.name_taken",
                object=str(job.header.name),
                files=len(job.record.paths),
                next="the files are bundled again under a new name",
                hint="do two agents have the same node name?",
            )
        return after

    def _index(self, job: UploadJob) -> UploadJob:
        assert job.winner
        index = index_object(job.header, job.winner, self._index_rows)
        metadata = _metadata(job.winner, job.header)
        # The index is made from the winner, not from the newest attempt: after a crash the object
        # may hold the rows of an earlier attempt, and the index's offsets must be those of its
        # bytes.
        metadata["data-upload-id"] = job.winner.upload_id
        name = str(job.header.index_name)
        try:
            self._storage(job).put_new(name, index, metadata)
        except ConflictError:
            # A process that died here may have been another version of jostler or of a library:
            # its index says the same in other bytes.  A foreign index of our own data should not
            # exist: the conflict lasts until a person looks, and holds up this bundle alone.
            if not describes(self._storage(job).read(name).data, job.header, job.winner):
                raise
            log.info("index.found", object=name, files=len(job.winner.entries))
            return job.indexed(0)
        return job.indexed(len(index))

    def _mark(self, job: UploadJob) -> UploadJob:
        assert job.winner
        record = job.record
        # The clean-up unlinks whatever a `.stored` record lists.  So the other attempts, whose rows
        # are not in the bucket, leave the record before it gets that suffix.
        if len(record.attempts) > 1:
            record = record.settled(job.winner)
            self._journal.write(record)
        return job.stored(self._journal.mark_stored(record))

    def _forget(self, job: UploadJob) -> UploadJob:
        if not job.record.given_up:
            self._journal.remove(job.record)
            return job.given_back()
        # The files of this list are gone: nothing but the record names them.
        # Not the current time: if the record gets its name and the directory cannot be synced, this
        # step is repeated.  It must write the same record again, not leave another one behind.
        created = job.header.name.created + timedelta(seconds=1)
        name = replace(job.header.name, created=created)
        header = replace(job.header, name=name)
        listed = Record.of(rebuild(replace(job.record, header=header), self._spool))
        # The new record is durable before the old one goes.  A crash between the two leaves both,
        # and the rows may be stored twice, under two names; in the other order they could be lost.
        self._journal.write(listed, surely=True)
        self._journal.remove(job.record)
        return job.given_back(listed)

    def _storage(self, job: UploadJob) -> Storage:
        return self._open_storage(job.header.bucket)

    def _what(self, job: UploadJob) -> str:
        """Return the object that a job's next step works on, or `journal`; for messages."""
        if job.stage in {Stage.JOURNALLED, Stage.TAKEN}:
            return str(job.header.name)
        return str(job.header.index_name) if job.stage is Stage.UPLOADED else JOURNAL


def _cause(job: UploadJob, error: Exception) -> str:
    """Return what a failure is due to: only bundles that need the same wait for it."""
    # It may hit every bundle of the bucket, so all of them wait together, and `Retries` finds out
    # if it hits one alone.  A conflict always concerns one bundle only.
    if isinstance(error, TransientError):
        return job.header.bucket
    return JOURNAL if isinstance(error, OSError) else str(job.header.name)


def _data_metadata(attempt: Attempt, header: Header) -> dict[str, str]:
    """Return the data object's metadata, with the digest of the schema that judged its rows."""
    metadata = _metadata(attempt, header)
    return metadata | {"schema": header.schema} if header.schema else metadata


def _metadata(attempt: Attempt, header: Header) -> dict[str, str]:
    """Return the metadata of data and index object: counts and times of the rows."""
    first_us, last_us = attempt.entries.span_us
    return {
        "rows": str(len(attempt.entries)),
        "first-time-added": instant(first_us),
        "last-time-added": instant(last_us),
        "version": header.archiver.version,
    }


def rebuild(record: Record, spool: Confined) -> Bundle:
    """Make a bundle again, after a crash, from those of its files that have not changed.

    Equal files give equal bytes, hence the upload id of the attempt that they were sealed in,
    unless another version of a library compresses them: then this is one more attempt.
    """
    bundle = OpenBundle(record.header, opened_s=0.0)
    attempt = record.attempts[-1]
    begins = {block.line for block in attempt.blocks}
    for line, entry in enumerate(attempt.entries, 1):
        if line in begins:  # a block may have ended early, for lack of memory
            bundle.end_block()
        rejection = record.rejections.get(entry.path)
        raw = _raw_again(entry, rejection, spool, record.header.name.node)
        if raw is not None:
            bundle.add(entry, bundle.row(display(entry.filename), raw), rejection)
    return bundle.seal()


def _raw_again(
    entry: Entry, rejection: Rejection | None, spool: Confined, node: str
) -> bytes | None:
    """Read a row's `raw` from its file again; None when the file has changed or is gone."""
    content = b""
    # A file that was given up is gone, and its row has no content: the record alone makes the row.
    if rejection and rejection.given_up:
        return _rejected_again(entry, rejection, node, content)
    try:
        content = read_file(spool, entry.path, rejected_most(entry.state.size)).content
    except OSError:
        # Without a hash the row of a rejected file never had the whole content: it can be stored
        # without the file, and nothing else will report that the file was there.
        if entry.hash:
            return None
    if entry.hash and not (len(content) == entry.state.size and has_hash(content, entry.hash)):
        return None
    if not rejection:
        return one_line(content)
    return _rejected_again(entry, rejection, node, content)


def _rejected_again(entry: Entry, rejection: Rejection, node: str, content: bytes) -> bytes:
    return rejection.raw(
        filename=display(entry.filename),
        size=entry.state.size,
        added_us=entry.added_us,
        node=node,
        content=content,
    )
