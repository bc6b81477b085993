"""The status document of a collector, `/status.json`: what runs, and the state of each feed.

**Invariant:** it has no secret.  Another thread than the event loop's reads the counts one by one,
so those of one feed may be some microseconds apart.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jostler import build
from jostler.producer.collect.feeds import shown_url
from jostler.words import rfc3339

if TYPE_CHECKING:
    from jostler.producer.collect.collector import Collector
    from jostler.producer.collect.runner import Runner


def document(collector: Collector) -> dict[str, Any]:
    """Return the status now; JSON has null where there is nothing yet."""
    space = collector.disk.space
    return {
        "now": _instant(time.time()),
        "collector": {
            "version": build.version(),
            "commit": build.commit(),
            "started": _instant(collector.started_s),
            "connections": collector.connections,
        },
        "spool": {
            "directory": str(collector.spool),
            "free_bytes": space.free_bytes,
            "min_free_bytes": space.limit_bytes,
        },
        "paused": space.why if space.lacks else None,
        "refused": collector.refused or None,
        "feeds": [_feed(runner) for runner in list(collector.runners.values())],
    }


def _feed(runner: Runner) -> dict[str, Any]:
    feed, tally, error = runner.feed, runner.tally, runner.tally.error
    return {
        "id": feed.id,
        "url": shown_url(feed.url),
        "every_s": feed.every_s,
        "attempts": tally.attempts,
        "saved": tally.saved,
        "unchanged": tally.unchanged,
        "failures": {str(failure): count for failure, count in tally.failures.items() if count},
        "received_bytes": tally.received_bytes,
        "last_success": _instant(tally.success_s),
        "last_saved": _instant(tally.saved_s),
        "error": error
        and {
            "class": str(error.failure),
            "text": error.words,
            "at": _instant(error.at_s),
            "times": error.times,
        },
    }


def _instant(unix_s: float) -> str | None:
    return rfc3339(datetime.fromtimestamp(unix_s, UTC)) if unix_s else None
