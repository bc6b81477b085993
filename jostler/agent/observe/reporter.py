"""The reporter: the agent's thread calls it on each change, and it updates the status.

**Invariant:** it does no work per file, except for files that only a scan found.  It makes a
snapshot at most once a second.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from jostler.agent.observe.arrived import Arrived
from jostler.agent.observe.history import History, Totals
from jostler.agent.observe.shares import Share, ShareHistory
from jostler.agent.observe.snapshot import ClosedBundleView, Now, Snapshot, StoredBundleView, Times
from jostler.format.names import INDEX, REJECTED

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.agent.observe.status import Status
    from jostler.agent.tally import Tally
    from jostler.bundle import InFlight, InFlightBundles, UploadJob

EVERY_S = 1.0
STORED_KEPT = 10


class Reporter:
    """Updates the status; used only by the agent's thread.

    Args:
        status: the status to update.
        tally: the agent's counts.
        in_flight: the agent's bundles.
        on_stored: called with the upload of each bundle that became durable.
    """

    def __init__(
        self,
        status: Status,
        tally: Tally,
        in_flight: InFlightBundles,
        on_stored: Callable[[UploadJob], None] | None = None,
    ) -> None:
        self._on_stored = on_stored
        self._status = status
        self._tally = tally
        self._in_flight = in_flight
        names = [*(datatype.name for datatype in status.config.datatypes), REJECTED]
        self._times = {name: Times() for name in (*names, INDEX)}
        self._stored: dict[str, deque[StoredBundleView]] = {
            name: deque(maxlen=STORED_KEPT) for name in names
        }
        self._arrived = Arrived(str(status.config.spool))
        self._last_success_s: dict[str, float] = {}
        self._history = History(time.monotonic(), time.time())
        self._shares = ShareHistory()
        self._overflows = 0
        self._overflow_s = 0.0
        self._due_s = 0.0

    def waits_for(self, what: str) -> None:
        """Set what a starting agent waits for; empty once it takes files."""
        self._status.beat_s = time.monotonic()
        self._status.waits_for = what

    def met(self, path: str, files: int = 1) -> None:
        """Count files that a scan found and that were archived or rejected.

        Args:
            path: of one of them, absolute.
            files: how many, all of one datatype.
        """
        self._arrived.met(path, files)

    def sealed(self, bundle: InFlight) -> None:
        """Record that a bundle was sealed."""
        self._tally.sealed[bundle.header.name.datatype, bundle.reason] += 1

    def stored(self, job: UploadJob) -> None:
        """Record that a bundle is durable."""
        if self._on_stored:
            self._on_stored(job)
        name, now_ns = job.header.name, time.time_ns()
        now_s = now_ns / 1e9
        entries = job.record.attempts[-1].entries
        datatype = name.datatype
        if datatype not in self._times:  # an earlier process with other datatypes made it
            self._times[datatype] = Times()
            self._stored[datatype] = deque(maxlen=STORED_KEPT)
        times = self._times[datatype]
        for kind, size in ((datatype, job.object_bytes), (INDEX, job.index_bytes)):
            if size:
                self._times[kind].object_bytes.add([size])
        if job.upload_s:
            times.upload_s.add([job.upload_s])
        times.stored_s.add_since(now_ns, entries.written_ns)
        self._last_success_s[datatype] = now_s
        self._stored[datatype].appendleft(
            StoredBundleView(
                name=str(name),
                url=job.header.url,
                datatype=datatype,
                files=len(entries),
                object_bytes=job.object_bytes,
                at_s=now_s,
                seconds=time.monotonic() - job.started_s,
            )
        )

    def turned(self, now: Callable[[], Now]) -> None:
        """Record that the loop turned; make a new snapshot if the last one is a second old."""
        now_s = time.monotonic()
        self._status.beat_s = now_s  # before the snapshot: /healthz must not depend on its cost
        if now_s >= self._due_s:
            self._due_s = now_s + EVERY_S
            self._show(now_s, now())

    def _show(self, now_s: float, now: Now) -> None:
        wall_s = time.time()
        if now.counts.overflows > self._overflows:
            self._overflows, self._overflow_s = now.counts.overflows, wall_s
        self._arrived.note(now.counts.closed, now.counts.unheld, wall_s)
        disk = self._status.disk
        backlog = sum(w.files for w in disk.waiting.values()) if disk.at_s else None
        self._status.snapshot = Snapshot(
            at_s=wall_s,
            now=now,
            tally=self._tally.copy(),
            arrived=self._arrived.files.copy(),
            last_arrival_s=self._arrived.last_s.copy(),
            closed=tuple(_closed(one) for one in self._in_flight if one.on_its_way),
            stored={name: tuple(bundles) for name, bundles in self._stored.items()},
            times={name: times.copy() for name, times in self._times.items()},
            last_success_s=self._last_success_s.copy(),
            overflow_s=self._overflow_s,
            minutes=self._history.note(now_s, wall_s, self._totals(), backlog),
            shares=self._shares.note(now_s, self._sums()),
        )
        self._status.health()  # evaluated each time, so that it knows since when a problem exists

    def _sums(self) -> dict[str, Share]:
        """Count good and bad files by datatype, whatever was done with the bad ones."""
        tally = self._tally
        bad: Counter[str] = Counter()
        for counts in (tally.rejected, tally.kept, tally.deleted):
            for (datatype, _reason), files in counts.items():
                bad[datatype] += files
        return {name: Share(tally.taken[name], bad[name]) for name in tally.taken.keys() | bad}

    def _totals(self) -> Totals:
        tally = self._tally
        stored = [times.stored_s for times in self._times.values()]
        return Totals(
            arrived=self._arrived.files.total(),
            archived=tally.archived.total(),
            file_bytes=tally.file_bytes.total(),
            stored_files=sum(one.count for one in stored),
            stored_s=sum(one.sum for one in stored),
        )


def _closed(one: InFlight) -> ClosedBundleView:
    """Copy the state of a bundle that is on its way to the bucket."""
    return ClosedBundleView(
        name=one.name,
        datatype=one.header.name.datatype,
        files=one.files,
        row_bytes=one.row_bytes,
        object_bytes=one.data_bytes,
        sealed_s=time.time() - (time.monotonic() - one.sealed_s),
        reason=one.reason,
    )
