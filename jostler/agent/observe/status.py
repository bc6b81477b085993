"""The status that other threads may read: last snapshot, upload statistics, disk, health.

**Invariant:** the agent replaces whole values and never waits for a reader; readers never access
the agent itself.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jostler.agent.observe.health import Health, HealthChecks
from jostler.agent.observe.history import Minutes
from jostler.agent.observe.problem import Facts
from jostler.agent.observe.snapshot import Snapshot
from jostler.agent.observe.survey import Survey, Surveyed
from jostler.bundle import UploadStats
from jostler.schema.native import UNUSED

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.config import Config
    from jostler.schema import Native


class Status:
    """The current state of one agent, for the server's threads.

    Args:
        config: of the agent.
        why: returns where a file is, as JSON.
        native: the native module.

    Attributes:
        started_s: Unix time.
        beat_s: monotonic seconds at which the loop, or the wait before it, last turned.
        waits_for: what a starting agent waits for, in words; empty once it takes files.
        snapshot: the last snapshot.
        upload_stats: the upload statistics; any thread may update them.
        survey: the survey of the disk; None if there is none.
        why: returns where a file is, as JSON.
    """

    def __init__(
        self, config: Config, why: Callable[[str], dict[str, Any]], native: Native = UNUSED
    ) -> None:
        self.config = config
        self.native = native
        self.started_s = time.time()
        self.beat_s = time.monotonic()
        self.waits_for = "its start"
        self.snapshot = Snapshot(at_s=self.started_s, minutes=Minutes(self.started_s))
        self.upload_stats = UploadStats()
        self.survey: Survey | None = None
        self.why = why
        self._checks = HealthChecks(config)

    @property
    def disk(self) -> Surveyed:
        """The result of the last survey."""
        return self.survey.last if self.survey else Surveyed()

    @property
    def ready(self) -> bool:
        """Whether the first scan is over."""
        return bool(self.snapshot.now and self.snapshot.now.scanned)

    def still_s(self) -> float:
        """Return the seconds since the loop last turned."""
        return time.monotonic() - self.beat_s

    def heartbeat_s(self) -> float:
        """Return the Unix time at which the loop last turned."""
        return time.time() - self.still_s()

    def health(self) -> Health:
        """Run the health checks."""
        return self._checks.examine(
            Facts(
                now_s=time.time(),
                still_s=self.still_s(),
                started_s=self.started_s,
                waits_for=self.waits_for,
                snapshot=self.snapshot,
                uploads=self.upload_stats.counts(),
                disk=self.disk,
            )
        )
