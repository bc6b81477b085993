"""The upload of one bundle as a value: which steps are done, and what the next step needs.

**Invariant:** a job never changes: each step of the commit returns the next one, and a step that
failed can be repeated on the same job, by this process or, from the journal, by the next.

Pure: no disk, no bucket, no clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import Struct

from jostler.bundle.record import Record

if TYPE_CHECKING:
    from jostler.bundle.bundle import Attempt, Bundle, Header

JOURNAL = "journal"
"""The cause of failures of the state directory's disk, as opposed to those of a bucket."""


class Stage(Enum):
    """Which step of the commit was done last."""

    SEALED = "sealed"
    """The record must be written to the journal: it is new, or has changed."""
    JOURNALLED = "journalled"
    """The record is on disk; the data object may be uploaded."""
    TAKEN = "taken"
    """An object with the data object's name exists; an earlier try may have stored it."""
    UPLOADED = "uploaded"
    """The data object is durable."""
    INDEXED = "indexed"
    """Data object and index object are durable."""
    STORED = "stored"
    """The journal says that both objects are durable: the files can be unlinked."""
    LOST = "lost"
    """The bundle cannot be stored under its name; the record is still in the journal."""
    GIVEN_BACK = "given back"
    """The record is removed; the files are bundled again, under another name."""


ENDED = frozenset({Stage.STORED, Stage.GIVEN_BACK})
_UNJOURNALLED = frozenset({Stage.SEALED, Stage.GIVEN_BACK})


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadJob:
    """The upload of one bundle, between two steps.

    Attributes:
        record: what the journal says, or is to say.
        stage: what has been done.
        data: the data object's bytes; None when they must be made again from the files.
        remade: the bytes were made again after a crash, and can be once more.
        winner: the attempt whose data object is durable, from `UPLOADED` on.
        left: paths that `winner` does not hold, though another attempt did.
        instead: the record that the journal has now in place of this one's; None: none.
        started_s: monotonic seconds when the first step began.
        object_bytes: size of the data object, 0 when this process did not send it.
        index_bytes: size of the index object, 0 when this process did not send it.
        upload_s: seconds that the request took which stored the data object; 0 as above.
    """

    record: Record
    stage: Stage
    data: bytes | None
    started_s: float
    remade: bool = False
    winner: Attempt | None = None
    left: frozenset[str] = frozenset()
    instead: Record | None = None
    object_bytes: int = 0
    index_bytes: int = 0
    upload_s: float = 0.0

    @classmethod
    def of(cls, bundle: Bundle, started_s: float) -> UploadJob:
        """Make the job of a bundle that was just sealed."""
        record = Record.of(bundle)
        return cls(record=record, stage=Stage.SEALED, data=bundle.data, started_s=started_s)

    @classmethod
    def replay(cls, record: Record, started_s: float) -> UploadJob:
        """Make the job of a bundle that an earlier process left in the journal."""
        if record.stored:
            (winner,) = record.attempts
            return cls(
                record=record, stage=Stage.STORED, data=None, started_s=started_s, winner=winner
            )
        return cls(record=record, stage=Stage.JOURNALLED, data=None, started_s=started_s)

    @property
    def header(self) -> Header:
        """What the bundle's rows share."""
        return self.record.header

    @property
    def ended(self) -> bool:
        """Whether the commit has no further step for this job."""
        return self.stage in ENDED

    @property
    def entries_bytes(self) -> int:
        """Bytes of memory that the record's files take, those of all attempts."""
        return sum(attempt.entries.held_bytes for attempt in self.record.attempts)

    @property
    def journalled(self) -> bool:
        """Whether the journal has a record of the bundle."""
        return self.stage not in _UNJOURNALLED or self.remade

    def written(self) -> UploadJob:
        """Return the job after its record was written to the journal."""
        return replace(self, stage=Stage.JOURNALLED)

    def made_again(self, bundle: Bundle) -> UploadJob:
        """Return the job after its bytes were made again, from the files that have not changed.

        If the bytes differ from those of every attempt in the record, the record gets another
        attempt, which must be in the journal before the bytes are sent.
        """
        job = replace(self, data=bundle.data, remade=True)
        if bundle.attempt.upload_id in {attempt.upload_id for attempt in self.record.attempts}:
            return job
        record = self.record.with_attempt(bundle.attempt)
        return replace(job, record=record, stage=Stage.SEALED)

    def uploaded(
        self, winner: Attempt, *, object_bytes: int = 0, upload_s: float = 0.0
    ) -> UploadJob:
        """Return the job after the data object became durable, with the bytes of `winner`."""
        # Mostly there is one attempt, and a set of its 60,000 paths would take 4 MB for nothing.
        others = [attempt for attempt in self.record.attempts if attempt is not winner]
        left = {path for attempt in others for path in attempt.entries.paths}
        return replace(
            self,
            stage=Stage.UPLOADED,
            data=None,
            winner=winner,
            left=frozenset(left.difference(winner.entries.paths) if left else ()),
            object_bytes=object_bytes,
            upload_s=upload_s,
        )

    def taken(self) -> UploadJob:
        """Return the job after an upload met an object that holds other bytes."""
        return replace(self, stage=Stage.TAKEN)

    def found(self, upload_id: str | None) -> UploadJob:
        """Return the job after the upload id of the data object was read.

        If the id is that of one of our attempts, that attempt is the winner.  If it is another's,
        or there is no such object any more, the bundle is lost.
        """
        for attempt in self.record.attempts:
            if attempt.upload_id == upload_id:
                return self.uploaded(attempt)
        return self.lost()

    def indexed(self, index_bytes: int) -> UploadJob:
        """Return the job after the index object became durable."""
        return replace(self, stage=Stage.INDEXED, index_bytes=index_bytes)

    def stored(self, record: Record) -> UploadJob:
        """Return the job after the journal recorded that data and index are durable."""
        return replace(self, record=record, stage=Stage.STORED)

    def lost(self) -> UploadJob:
        """Return the job when the bundle cannot be stored under its name."""
        return replace(self, stage=Stage.LOST, data=None)

    def given_back(self, instead: Record | None = None) -> UploadJob:
        """Return the job after its record was removed from the journal.

        Args:
            instead: the record of the same files under another name, if it lists files that were
                given up.
        """
        return replace(self, stage=Stage.GIVEN_BACK, instead=instead)

    def parked(self) -> UploadJob:
        """Return the job as it waits for its next try, without bytes that can be made again.

        Otherwise each of many replayed bundles would keep its bytes while the bucket fails, and
        these bytes do not count towards `-memory-max`.
        """
        return replace(self, data=None) if self.remade else self


class Halt(Struct, frozen=True):
    """The failure of one step; the job can be tried again from there.

    Attributes:
        job: as far as it came.
        what: the object that was to be stored or asked for, or `journal`.
        error: what was raised.
        cause: what fails: `journal`, the bucket's URL, or the bundle's own name when no other
            bundle can have the same failure.
    """

    job: UploadJob
    what: str
    error: Exception
    cause: str
