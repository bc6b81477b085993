"""The view of a running agent: what it shows of itself, and what it remembers of a file.

**Invariant:** only the agent's own thread calls it, between two rounds of the loop.  It copies what
is there and changes nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.agent.observe.snapshot import Now, opened

if TYPE_CHECKING:
    import threading

    from jostler.agent.contents import Contents
    from jostler.agent.left import LeftFiles
    from jostler.agent.loop import Loop
    from jostler.agent.low_disk import LowDisk
    from jostler.agent.observe.status import Status
    from jostler.agent.rescans import Rescans
    from jostler.agent.why.live import Remembered
    from jostler.bundle import Confined, InFlightBundles, OpenBundles
    from jostler.config import Config
    from jostler.watchdir import Arrivals


@dataclass(frozen=True, kw_only=True)
class View:
    """The parts of an agent that say how things are.

    Attributes:
        config: what the agent does.
        status: what it shows to other threads.
        arrivals: where files come from.
        loop: its steps.
        low_disk: watches the free space of the spool's disk.
        in_flight: its bundles.
        open_bundles: those of them that take rows.
        left: the files that stay on the disk.
        rescans: say when the next scan begins.
        spool: the files of the experiment.
        contents: judges a file again.
        stop: set when the agent is to end.
    """

    config: Config
    status: Status
    arrivals: Arrivals
    loop: Loop
    low_disk: LowDisk
    in_flight: InFlightBundles
    open_bundles: OpenBundles
    left: LeftFiles
    rescans: Rescans
    spool: Confined
    contents: Contents
    stop: threading.Event

    def now(self, *, scanned: bool) -> Now:
        """Return the state of the agent now; `scanned`: whether the first scan is over."""
        return Now(
            open=tuple(map(opened, self.open_bundles.open_bundles)),
            held_bytes=self.in_flight.held_bytes,
            queue_files=self.arrivals.waiting + len(self.loop.todo),
            overdue_files=len(self.left.overdue),
            undeletable_bundles=self.in_flight.undeletable,
            holds_back=self.holds_back(),
            scanning=self.arrivals.scanning,
            scanned=scanned,
            degraded=self.arrivals.degraded,
            source=self.arrivals.source,
            counts=self.arrivals.counts,
            disk=self.low_disk.view,
        )

    def remembered(self) -> Remembered:
        """Copy what is in memory about files, for a question about one of them."""
        # Imported when somebody asks: these modules take a tenth of the time of a start.
        from jostler.agent.why.again import Again  # noqa: PLC0415 - as above
        from jostler.agent.why.journal import Upload  # noqa: PLC0415 - as above
        from jostler.agent.why.live import Remembered  # noqa: PLC0415 - as above
        from jostler.agent.why.spool import AgentView  # noqa: PLC0415 - as above

        agent = AgentView(
            runs=True, holds_back=self.holds_back(), scan=self.rescans.next(time.monotonic())
        )
        return Remembered(
            agent=agent,
            bundles=tuple((bundle, bundle.files) for bundle in self.open_bundles.open_bundles),
            limits=self.open_bundles.limits,
            spool=str(self.config.spool),
            ages=self.left.ages,
            again=Again(self.spool, self.contents),
            in_bundles=self.in_flight.paths(),
            stay={**self.left.finished, **self.left.unreadable},
            doubtful=self.left.doubtful.copy(),
            uploads={one.name: Upload(one.tries, one.error) for one in self.in_flight},
        )

    def holds_back(self) -> str:
        """Say why no file is read at the moment; nothing if files are read."""
        held = f"{self.in_flight.held_bytes} of {self.config.memory_max} bytes"
        loop = self.loop
        reasons = (
            (self.status.waits_for, f"the agent waits for {self.status.waits_for}"),
            (self.stop.is_set(), "the agent is stopping"),
            (loop.fails, "uploads fail, and until they succeed no new file is read"),
            (
                loop.lags,
                "uploads are slower than files arrive, and until one ends no new file is read",
            ),
            (
                loop.refuses,
                "the disk lacks space, and until a bundle on its way is stored no new file is read",
            ),
            (
                loop.no_room,
                f"memory is full ({held}), and until a bundle is stored no new file is read",
            ),
        )
        return next((why for holds, why in reasons if holds), "")
