"""Store sealed bundles and unlink their files.

**Invariant:** every sealed bundle is in one of four places: with the uploads, waiting for a second
try, in line for the clean-up, or waiting until files that cannot be unlinked are looked at once
more.  A bundle waits for another one only if both wait for the same cause.

One thread owns it.  It returns what happened as events, which also list the paths that belong to no
bundle any more.
"""

from __future__ import annotations

import random
import time
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from jostler.bundle.cleaning import InTurn
from jostler.bundle.cleanup import Cleanup
from jostler.bundle.events import CleanedUp, GivenBack, Stored
from jostler.bundle.in_flight import InFlight, State
from jostler.bundle.in_flight_bundles import InFlightBundles, Released
from jostler.bundle.job import JOURNAL, Halt, Stage, UploadJob
from jostler.bundle.later import Later
from jostler.bundle.retry import Backoff, Retries
from jostler.bundle.upload_stats import FailedAttempt
from jostler.bundle.uploads import Crash
from jostler.errors import JostlerError
from jostler.log import EveryMinute, Log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jostler.bundle.cleaning import Cleaning
    from jostler.bundle.cleanup import Cleaned
    from jostler.bundle.confined import Confined
    from jostler.bundle.entry import FileState
    from jostler.bundle.events import Event
    from jostler.bundle.journal import Journal
    from jostler.bundle.record import Record
    from jostler.bundle.upload_stats import UploadStats
    from jostler.format.row import Rejection
    from jostler.schema.native import UnlinkMany

log = Log("jostler.delivery")

COMMIT = "commit"
DISK_HINT = "free disk space, check permissions"
LATER_S = 60.0
LAG_FILES = 100_000
"""Files that may wait to be unlinked while more are read; they take 300 bytes each."""
UNLINK_AGAIN = Backoff(first_s=2 * LATER_S, cap_s=30 * LATER_S)


class Carriers(Protocol):
    """Carries out jobs: `Uploads`, or a test that does it step by step."""

    @property
    def pending(self) -> int:
        """Jobs whose outcome has not been taken."""
        ...

    def put(self, job: UploadJob) -> None:
        """Hand in a job."""

    def take(self) -> list[UploadJob | Halt | Crash]:
        """Return the outcomes that have come since the last call."""
        ...


class Delivery:
    """From the seal to the last unlinked file.

    Args:
        in_flight: all bundles.
        uploads: carry out the jobs.
        journal: that holds the records.
        spool: the files of the experiment, as entries name them.
        stats: records each step that failed.
        keep: remembers rejected files that stay on the disk, with the state and the rejection of
            each by path; called before the record that names them is removed.
        cleaning: carries out clean-ups; without, this thread does.
        unlink_many: the native module's way to unlink.
        monotonic_s: the clock.
    """

    def __init__(
        self,
        in_flight: InFlightBundles,
        uploads: Carriers,
        journal: Journal,
        spool: Confined,
        stats: UploadStats,
        *,
        keep: Callable[[Mapping[str, FileState], Mapping[str, Rejection]], None],
        cleaning: Cleaning | None = None,
        unlink_many: UnlinkMany | None = None,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._in_flight = in_flight
        self._uploads = uploads
        self._journal = journal
        self._spool = spool
        self._stats = stats
        self._keep = keep
        self._cleaning = cleaning or InTurn()
        self._unlink_many = unlink_many
        self._monotonic_s = monotonic_s
        self._retries = Retries()
        self._cleanups: deque[tuple[InFlight, Cleanup]] = deque()
        self._later = Later()
        self._events: list[Event] = []
        self._unlink_tries: dict[str, int] = {}
        self._every_minute = EveryMinute()

    @property
    def busy(self) -> bool:
        """Whether something can still be done for a bundle without waiting for a person."""
        return bool(self._uploads.pending or self._cleanups or len(self._retries))

    @property
    def unfinished(self) -> bool:
        """Whether anything is left to do, now or later."""
        return self.busy or bool(self._later)

    def fails(self, bucket: str) -> bool:
        """Say whether what a new bundle of this bucket needs fails at the moment."""
        return self._retries.fails({JOURNAL, bucket}, self._monotonic_s())

    def next_s(self) -> float:
        """Return the seconds until something is due; inf if nothing is."""
        due_s = min(self._retries.next_s(), self._later.next_s)
        return max(0.0, due_s - self._monotonic_s())

    def start(self, one: InFlight) -> None:
        """Begin with a bundle that was just sealed."""
        assert one.job
        self._uploads.put(one.job)

    def replay(self, record: Record) -> InFlight:
        """Go on with a bundle that an earlier process left in the journal; the oldest first."""
        one = self._in_flight.replay(record, self._monotonic_s())
        assert one.job
        if one.state is State.STORED:
            # The earlier process may have died before it unlinked anything, or in the middle: the
            # whole clean-up is done again, and files that are gone by then count as vanished.
            self._events.append(Stored(bundle=one, job=one.job, released=Released()))
            self._clean_up_later(one)
        else:
            self._uploads.put(one.job)
        return one

    def hurry(self) -> None:
        """Try everything that waits at once: there is little time left."""
        self._retries.try_all_now()

    def do_due(self) -> None:
        """Start the second tries that are due."""
        now_s = self._monotonic_s()
        for name in self._retries.due(now_s):
            one = self._in_flight.find(name)
            assert one
            assert one.job
            self._uploads.put(one.job)
        self._later.run_due(now_s)

    # Uploads

    def collect(self) -> list[Event]:
        """Take the outcomes of uploads; return the events that follow."""
        events, self._events = self._events, []
        learned = (self._learn(outcome) for outcome in self._uploads.take())
        return [*events, *(event for event in learned if event)]

    def _learn(self, outcome: UploadJob | Halt | Crash) -> Event | None:
        if isinstance(outcome, Halt):
            self._halted(outcome)
        elif isinstance(outcome, Crash):
            self._crashed_on(outcome)
        elif outcome.ended:  # else the agent is stopping: the journal remembers
            return self._ended(outcome)
        return None

    def _ended(self, job: UploadJob) -> Event:
        one = self._bundle(job)
        self._retries.works(JOURNAL)
        self._forget_failures(one)
        if job.stage is Stage.GIVEN_BACK:
            released = self._in_flight.given_back(one)
            # The record is in the journal already (`Commit._forget`), so it is taken up like one of
            # an earlier process; without this it would wait for the next start.
            # If an earlier process died before the old record went, it is in flight already.
            if job.instead and not self._in_flight.take_over(job.instead):
                self.replay(job.instead)
            return GivenBack(bundle=one, released=released)
        self._retries.works(job.header.bucket)
        released = self._in_flight.stored(one, job)
        self._clean_up_later(one)
        return Stored(bundle=one, job=job, released=released)

    def _halted(self, halt: Halt) -> None:
        """Record that a step failed, and wait until its cause works again."""
        job, one = halt.job, self._bundle(halt.job)
        # The state is that before this call and the job that after it: the record was written in
        # between, so the journal works, whatever failed next.
        if one.state is State.SEALED and job.journalled:
            self._retries.works(JOURNAL)
        wait_s = self._retries.failed(
            one.name,
            halt.cause,
            self._monotonic_s(),
            random.random(),  # noqa: S311 - jitter
        )
        if one.what and one.what != halt.what:
            self._stats.ended(one.name, one.what)
        failure = FailedAttempt.of(
            halt.error,
            halt.what,
            hint=getattr(halt.error, "hint", "") or DISK_HINT,
            tries=one.tries + 1,
            next_try_s=wait_s,
        )
        self._in_flight.halted(one, job, halt.what, f"{failure.kind}: {failure.text}")
        self._stats.failed(one.header.name.datatype, one.name, failure)
        self._say_failed(halt, failure)

    def _say_failed(self, halt: Halt, failure: FailedAttempt) -> None:
        error_class = type(halt.error).__name__
        if count := self._every_minute.due(error_class):
            log.warning(
                "upload.failed" if isinstance(halt.error, JostlerError) else "journal.failed",
                what=halt.what,
                bundle=halt.job.record.basename,
                error_class=error_class,
                error=failure.text,
                tries=failure.tries,
                times=count,
                next_try_s=round(failure.next_try_s, 1),
                hint=failure.hint,
            )

    def _crashed_on(self, crash: Crash) -> None:
        """Set aside for a while the bundle that had an unforeseen error, and no other."""
        one = self._bundle(crash.job)
        self._retries.forget(one.name)
        self._in_flight.halted(
            one, crash.job, COMMIT, f"{type(crash.error).__name__}: {crash.error}"
        )
        failure = FailedAttempt.of(
            crash.error, COMMIT, hint="report it", tries=one.tries, next_try_s=LATER_S
        )
        self._stats.failed(one.header.name.datatype, one.name, failure)
        # The job as it was handed in, although some of its steps may have been done: each step can
        # be repeated.
        self._do_later(LATER_S, lambda: self._uploads.put(crash.job))

    def _bundle(self, job: UploadJob) -> InFlight:
        one = self._in_flight.find(str(job.header.name))
        assert one
        return one

    def _forget_failures(self, one: InFlight) -> None:
        self._retries.forget(one.name)
        if one.what:
            self._stats.ended(one.name, one.what)
        self._stats.forget(one.name)

    # Clean-up

    def clean_up(self) -> list[Event]:
        """Look at some files of stored bundles."""
        if not self._cleanups:
            return []
        one, cleanup = self._cleanups[0]
        if not self._cleaning.step(cleanup):
            return []
        self._cleanups.popleft()
        return [self._cleaned_up(one, cleanup.cleaned)]

    def skip_file(self, error: Exception) -> None:
        """Go on with the next file after an unforeseen error with the one looked at last."""
        _, cleanup = self._cleanups[0]
        cleanup.skip(error)

    @property
    def cleans_up(self) -> bool:
        """Whether `clean_up` has something to do now."""
        return bool(self._cleanups) and not self._cleaning.is_at_work

    @property
    def cleanups_lag(self) -> bool:
        """Whether so many files wait to be unlinked that those which are read would pile up."""
        if not self._cleaning.is_at_work:
            return False
        return sum(cleanup.left for _, cleanup in self._cleanups) > LAG_FILES

    def _clean_up_later(self, one: InFlight) -> None:
        is_mine = self._in_flight.owned_by(one)
        assert one.job
        given_up = one.job.record.given_up
        cleanup = Cleanup(
            one.entries, is_mine, self._spool, given_up, unlink_many=self._unlink_many
        )
        self._cleanups.append((one, cleanup))

    def _cleaned_up(self, one: InFlight, cleaned: Cleaned) -> CleanedUp:
        job = one.job
        assert job
        # Undeletable files bring a bundle here again and again; it was stored only once.
        first, one.counted = not one.counted, True
        released = self._in_flight.cleaned(one, cleaned)
        # Before the record goes: if the process dies in between, the next one still finds the
        # record, cleans up once more, and does not reject these files a second time.
        self._keep(released.kept, job.record.rejections)
        if cleaned.failed:
            self._say_undeletable(one, cleaned)
            self._journal.renew_reserve(job.record)  # no other bundle waits until they are gone
            self._unlink_later(one, job.record)
        else:
            self._unlink_tries.pop(one.name, None)
            self._forget(job.record, cleaned.vanished)
        log.info(
            "bundle.stored",
            object=one.name,
            files=one.files,
            bytes=job.object_bytes,
            unlinked=len(cleaned.unlinked) + len(cleaned.vanished),
            changed=len(cleaned.changed),
            kept=len(cleaned.kept),
            seconds=round(self._monotonic_s() - job.started_s, 3),
        )
        return CleanedUp(bundle=one, job=job, first=first, cleaned=cleaned, released=released)

    def _forget(self, record: Record, vanished: Mapping[str, bytes] | None = None) -> None:
        """Remove a record from the journal; while it stays it only costs its place.

        Args:
            record: of a bundle whose files are gone.
            vanished: hashes of those that were gone by themselves, which outlive the record.
        """
        try:
            # The hashes are written first: if the process dies before the record is removed, the
            # record is cleaned up once more and adds them again.  The other way round they would be
            # lost, and a directory that is moved back would be archived twice.
            self._journal.add_vanished(vanished or {})
            self._journal.remove(record)
        except OSError as exc:
            if count := self._every_minute.due("remove"):
                log.error(
                    "journal.failed",
                    what="remove",
                    error=str(exc),
                    times=count,
                    next_try_s=LATER_S,
                )
            self._do_later(LATER_S, lambda: self._forget(record, vanished))

    def _unlink_later(self, one: InFlight, record: Record) -> None:
        """Look again at files that could not be unlinked; their entries are in the journal."""
        # If the journal has the record, nothing but its name is remembered here; it has none of
        # a bundle that went without on a full disk, or whose record somebody removed.
        held = self._journal.holds(record)
        head = replace(record, attempts=(), rejections={}) if held else record
        tries = self._unlink_tries[one.name] = self._unlink_tries.get(one.name, 0) + 1

        def again() -> None:
            try:
                found = self._journal.read(head) if held else head
            except (OSError, ValueError) as exc:
                log.error("journal.failed", what="read", error=str(exc), next_try_s=LATER_S)
                self._do_later(LATER_S, again)
                return
            # The record lists all files of the bundle; `owned_by` passes only those that failed.
            one.taken_up(found, self._monotonic_s())
            self._clean_up_later(one)

        self._do_later(UNLINK_AGAIN.wait_s(tries, 0.0), again)

    def _say_undeletable(self, one: InFlight, cleaned: Cleaned) -> None:
        if count := self._every_minute.due("unlink"):
            log.error(
                "files.undeletable",
                object=one.name,
                files=len(cleaned.failed),
                first=cleaned.failed[0],
                error=cleaned.error,
                times=count,
                next="stored once, kept in the journal, unlinked when it becomes possible",
                hint="same runAsUser as the service, or umask 002 there and a common fsGroup",
            )

    def _do_later(self, seconds: float, do: Callable[[], None]) -> None:
        self._later.add(self._monotonic_s() + seconds, do)
