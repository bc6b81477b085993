"""What an earlier process left: the files that stay, and the bundles that it had sealed.

**Invariant:** a record of the journal that is for another bucket or experiment stays as it is, and
so do its files; one that cannot be read holds up no other.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jostler.log import Log

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.agent.tally import Tally
    from jostler.bundle import Delivery, InFlightBundles, Journal, Record
    from jostler.config import Config

log = Log("jostler.agent")


class Recovery:
    """Belongs to the agent's thread, at its start.

    Args:
        config: the settings.
        journal: the records.
        load_left: reads which files stay on disk although they are done with.
        in_flight: gets what earlier records list.
        delivery: goes on with the bundles.
        tally: counts them.
    """

    def __init__(
        self,
        config: Config,
        journal: Journal,
        *,
        load_left: Callable[[], None],
        in_flight: InFlightBundles,
        delivery: Delivery,
        tally: Tally,
    ) -> None:
        self._config = config
        self._journal = journal
        self._load_left = load_left
        self._in_flight = in_flight
        self._delivery = delivery
        self._tally = tally

    def load(self) -> list[Record]:
        """Read what is left; return the records of the bundles, the oldest first."""
        self._load_left()
        for gone, digest in self._journal.vanished().items():
            self._in_flight.remember_vanished(gone, digest)
        records, unreadable = self._journal.load()
        for path, reason in unreadable:
            log.error(
                "journal.unreadable",
                file=str(path),
                reason=reason,
                next="its files are taken again; the loader drops what was stored twice",
            )
        return records

    def replay(self, records: list[Record]) -> None:
        """Go on with sealed bundles.  Watches already exist: nothing is missed."""
        # The oldest first: a path that two records list becomes the later one's.
        for record in records:
            if reason := record.foreign(self._config.bucket, self._config.place):
                self._leave(record, reason)
                continue
            self._delivery.replay(record)
            self._tally.replayed += 1
        if records:
            log.info("journal.replayed", entries=len(records))

    def _leave(self, record: Record, reason: str) -> None:
        """Log a record that is for another bucket, and leave it and its files alone."""
        self._in_flight.leave(record, time.monotonic())
        self._journal.renew_reserve(record)  # it may stay for ever: no other waits for its blocks
        log.error(
            "journal.foreign",
            bundle=str(record.header.name),
            reason=reason,
            files=len(record.paths),
            next="the record and its files are left as they are",
            hint="start once with that bucket, or remove the record: its files start anew",
        )
