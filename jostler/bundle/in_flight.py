"""One bundle in flight: from its first file until its last one is unlinked or given back.

**Invariant:** a bundle has one state, and each transition is a method that refuses any other state:

    open ── seal ──▶ sealed ── halted ──▶ journalled ── stored ──▶ stored ── cleaned ──▶ gone
                        └──────────┴── given_back ──▶ given back

One thread owns it.  No disk, no clock.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from enum import StrEnum
from typing import TYPE_CHECKING

from jostler.bundle.bundle import BUNDLE_BYTES, Bundle, Header, OpenBundle
from jostler.bundle.entry import Entries
from jostler.bundle.job import Stage, UploadJob

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.bundle.bundle import SealReason
    from jostler.bundle.record import Record

ASIDE_BYTES = 8


class State(StrEnum):
    """Where a bundle is."""

    OPEN = "open"
    """It takes rows; its files are on the disk."""
    SEALED = "sealed"
    """It is on its way to the journal."""
    JOURNALLED = "journalled"
    """It is on its way to the bucket, and the next process would go on with it."""
    STORED = "stored"
    """Data and index are durable; its files are to be unlinked."""
    FOREIGN = "foreign"
    """An earlier process left it for another bucket: it is left as it is, and so are its files."""
    GONE = "gone"
    """None of its files is left to unlink."""
    GIVEN_BACK = "given back"
    """It could not become durable; its files start afresh."""


_ON_ITS_WAY = frozenset({State.SEALED, State.JOURNALLED})


class InFlight:
    """One bundle in flight.

    Attributes:
        header: what its rows share.
        state: where it is.
        opened: the rows so far, while it is open.
        job: the work of its upload, once it is sealed; None when its files were set aside.
        files: in it, once it is sealed.
        row_bytes: of the uncompressed rows, once it is sealed; 0 of an earlier process's.
        data_bytes: of the data object, as above.
        reason: why it takes no more rows; empty of an earlier process's.
        tries: how often a step of its upload failed.
        what: the object, or `journal`, that the last failure was about; empty without one.
        error: the last failure, in words.
        counted: it was counted as stored; what comes of it later is the same bundle.
        closed: its paths that were closed while they were its.
    """

    __slots__ = (
        "_aside",
        "_held_bytes",
        "closed",
        "counted",
        "data_bytes",
        "error",
        "files",
        "header",
        "job",
        "opened",
        "reason",
        "row_bytes",
        "state",
        "tries",
        "what",
    )

    def __init__(self, header: Header, opened_s: float) -> None:
        self.header = header
        self.state = State.OPEN
        self.opened: OpenBundle | None = OpenBundle(header, opened_s)
        self.job: UploadJob | None = None
        self.files = self.row_bytes = self.data_bytes = 0
        self.reason = ""
        self.tries = 0
        self.what = ""
        self.error = ""
        self.counted = False
        self.closed: set[str] = set()
        self._held_bytes = 0
        self._aside = array("q")

    @classmethod
    def replayed(cls, record: Record, now_s: float) -> InFlight:
        """Go on with a bundle of an earlier process."""
        one = cls(record.header, now_s)
        one.opened = None
        one.job = UploadJob.replay(record, now_s)
        one.state = State.STORED if record.stored else State.JOURNALLED
        one.files = len(record.paths)
        one._held_bytes = one.job.entries_bytes + BUNDLE_BYTES
        return one

    @classmethod
    def foreign(cls, record: Record, now_s: float) -> InFlight:
        """Remember the paths of a bundle for another bucket, so that they are left alone."""
        one = cls(record.header, now_s)
        one.opened = None
        one.state = State.FOREIGN
        one._set_aside(record.paths)
        return one

    @property
    def name(self) -> str:
        """The data object's name, which no other bundle has."""
        return str(self.header.name)

    @property
    def held_bytes(self) -> int:
        """Bytes of memory that it takes."""
        if self.opened:
            return self.opened.held_bytes + self.opened.entries.held_bytes + BUNDLE_BYTES
        return self._held_bytes

    @property
    def entries(self) -> Entries:
        """Its files, as far as they are in memory."""
        if self.opened:
            return self.opened.entries
        if self.job is None:
            return Entries()
        return (self.job.winner or self.job.record.attempts[-1]).entries

    @property
    def on_its_way(self) -> bool:
        """Whether it is sealed and not yet stored."""
        return self.state in _ON_ITS_WAY

    @property
    def sealed_s(self) -> float:
        """When it was sealed, or an earlier process's was found; monotonic seconds."""
        return self.job.started_s if self.job else 0.0

    @property
    def set_aside(self) -> int:
        """How many of its files cannot be unlinked, and are remembered by a number each."""
        return len(self._aside)

    def owns_aside(self, number: int) -> bool:
        """Say whether a path's number is among those of its files that cannot be unlinked."""
        at = bisect_left(self._aside, number)
        return at < len(self._aside) and self._aside[at] == number

    # Transitions

    def seal(self, reason: SealReason, now_s: float) -> Bundle:
        """It takes no more rows: open → sealed."""
        self._expect(State.OPEN)
        assert self.opened
        bundle = self.opened.seal(reason)
        self.opened, self.state = None, State.SEALED
        self.job = UploadJob.of(bundle, now_s)
        self._held_bytes = bundle.held_bytes + BUNDLE_BYTES
        self.files, self.row_bytes = len(bundle.attempt.entries), bundle.row_bytes
        self.data_bytes, self.reason = len(bundle.data), str(reason)
        return bundle

    def halted(self, job: UploadJob, what: str, error: str) -> None:
        """A step of its upload failed: it stays what the steps before it have made it."""
        self._expect(State.SEALED, State.JOURNALLED)
        self.tries += 1
        self.what, self.error = what, error
        self.job = job
        data_bytes = len(job.data) if job.data else 0
        self._held_bytes = data_bytes + job.entries_bytes + BUNDLE_BYTES
        if job.journalled:
            self.state = State.JOURNALLED

    def stored(self, job: UploadJob) -> None:
        """Data and index are durable, and the journal says so: → stored."""
        self._expect(State.SEALED, State.JOURNALLED)
        assert job.stage is Stage.STORED
        assert job.winner
        self.job, self.state = job, State.STORED
        # The data was dropped when the upload ended; the entries stay until the files are unlinked.
        self._held_bytes = job.winner.entries.held_bytes

    def given_back(self) -> None:
        """It cannot become durable any more: → given back."""
        self._expect(State.SEALED, State.JOURNALLED)
        self.state = State.GIVEN_BACK
        self._held_bytes = 0

    def cleaned(self, failed: Iterable[str]) -> None:
        """Its files were looked at: stored → gone, or set aside if some cannot be unlinked.

        What is set aside needs no more than a number for each path: the journal has the rest.
        """
        self._expect(State.STORED)
        self._set_aside(failed)
        self.job = None
        if not self._aside:
            self.state = State.GONE

    def taken_up(self, record: Record, now_s: float) -> None:
        """Its files that were set aside are looked at once more."""
        self._expect(State.STORED)
        self.job = UploadJob.replay(record, now_s)

    def _set_aside(self, paths: Iterable[str]) -> None:
        # Eight bytes a path, for there may be a million that cannot be unlinked.  If two paths have
        # the same hash, a new file waits until the old one is unlinked; none is lost.
        self._aside = array("q", sorted(map(hash, paths)))
        self._held_bytes = len(self._aside) * ASIDE_BYTES

    def _expect(self, *states: State) -> None:
        if self.state not in states:
            raise AssertionError(f"{self.name} is {self.state}")
