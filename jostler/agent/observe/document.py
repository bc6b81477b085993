"""/status.json: the status as one JSON document; docs/status.md describes it.

**Invariant:** names and texts from outside are made printable here, and are only values, never keys
or markup.  Times are RFC 3339 in UTC or null, sizes are bytes, durations seconds.
"""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jostler import build
from jostler.agent.low_disk import DiskView
from jostler.agent.observe.history import STEP_S
from jostler.agent.observe.problem import Level
from jostler.agent.observe.survey import Waiting
from jostler.format.names import REJECTED, display
from jostler.words import duration, size

if TYPE_CHECKING:
    from jostler.agent.observe.health import Health
    from jostler.agent.observe.snapshot import (
        ClosedBundleView,
        Now,
        OpenBundleView,
        Snapshot,
        StoredBundleView,
    )
    from jostler.agent.observe.status import Status
    from jostler.agent.observe.survey import Surveyed
    from jostler.bundle import Limits, Recurring, UploadCounts

FORMAT = 1
REJECTED_SHOWN = 20
ERRORS_SHOWN = 10
OBJECTS_SHOWN = 20
CONSOLE = "https://console.cloud.google.com/storage/browser/_details/"
Json = dict[str, Any]
_ORDER = {Level.BAD: 0, Level.ATTENTION: 1, Level.OK: 2}


def document(status: Status) -> Json:
    """Return the whole document."""
    # Read once: the agent's thread replaces the snapshot each second, and the parts of the document
    # must agree with each other.
    snapshot, uploads, health = status.snapshot, status.upload_stats.counts(), status.health()
    return {
        "format": FORMAT,
        "now": instant(time.time()),
        "agent": _agent(status),
        "health": _health(health, status.config.runbook_url),
        "uploads": _uploads(status, uploads),
        "watch": _watch(snapshot),
        "spool": _spool(status.disk, snapshot.now),
        "memory": {
            "held_bytes": snapshot.now.held_bytes if snapshot.now else 0,
            "limit_bytes": status.config.memory_max,
        },
        "journal": {"entries": len(snapshot.closed), "replayed": snapshot.tally.replayed},
        "datatypes": [
            {"level": str(health.level_of(name)), **_datatype(name, status, snapshot, uploads)}
            for name in sorted(names(status), key=lambda name: _ORDER[health.level_of(name)])
        ],
        "history": _history(snapshot),
    }


def names(status: Status) -> list[str]:
    """Return the datatypes to show."""
    return [*(datatype.name for datatype in status.config.datatypes), REJECTED]


def instant(unix_s: float) -> str | None:
    """Write Unix time as RFC 3339; 0, which means never, becomes None."""
    if not unix_s:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _agent(status: Status) -> Json:
    config = status.config
    return {
        "version": build.version(),
        "commit": build.commit(),
        "native": status.native.description,
        "node": config.node,
        "experiment": config.place.experiment,
        "bucket": config.bucket,
        "mode": str(config.mode),
        "started": instant(status.started_s),
        "ready": status.ready,
        "waits_for": status.waits_for,
        "heartbeat": instant(status.heartbeat_s()),
        "local_data_dir": display(str(config.local_data_dir)),
    }


def _spool(disk: Surveyed, now: Now | None) -> Json:
    lack = now.disk if now else DiskView()
    return {
        "free_bytes": disk.free_bytes,
        "size_bytes": disk.size_bytes,
        "min_free_bytes": lack.limit_bytes,
        "lack_action": str(lack.action),
        "lacking_since": instant(lack.since_s),
        "full_in_s": None if math.isinf(disk.full_in_s) else round(disk.full_in_s),
    }


def _health(health: Health, runbook_url: str) -> Json:
    return {
        "level": str(health.level),
        "since": instant(health.since_s),
        "headline": health.headline,
        "problems": [
            {
                "code": problem.code,
                "level": str(problem.level),
                "since": instant(problem.since_s),
                "text": problem.text,
                "hint": problem.hint,
                "datatypes": list(problem.datatypes),
                "runbook": _runbook(runbook_url, problem.code),
            }
            for problem in health.problems
        ],
    }


def _runbook(url: str, code: str) -> str | None:
    """Return the address of a problem's section in the runbook; None without -runbook-url."""
    return f"{url.partition('#')[0]}#{code.replace('_', '-')}" if url else None


def _uploads(status: Status, uploads: UploadCounts) -> Json:
    return {
        "failing": bool(uploads.failing_since_s),
        "failing_since": instant(uploads.failing_since_s),
        "pending": len(status.snapshot.closed),
        "threads": status.config.upload_concurrency,
        "errors": [_error(error) for error in uploads.errors[:ERRORS_SHOWN]],
    }


def _error(error: Recurring) -> Json:
    """Write an error that hit any number of objects; `what` and `tries` are of the last one."""
    last = error.last
    return {
        "at": instant(last.at_s),
        "since": instant(error.first_s),
        "class": last.kind,
        "text": last.text,
        "hint": last.hint,
        "times": error.times,
        "failing": error.failing,
        "what": last.what,
        "tries": last.tries,
        "next_try_s": round(last.next_try_s, 1),
        "objects": list(error.objects[: -OBJECTS_SHOWN - 1 : -1]),
    }


def _watch(snapshot: Snapshot) -> Json:
    now = snapshot.now
    if not now:
        return {
            "source": "",
            "degraded": "",
            "scanning": False,
            "watches": 0,
            "unwatched": 0,
            "buffered": 0,
        }
    counts = now.counts
    return {
        "source": now.source,
        "degraded": display(now.degraded),
        "scanning": now.scanning,
        "watches": counts.watches,
        "unwatched": counts.unwatched,
        "buffered": now.queue_files,
        "events": counts.events,
        "found": counts.found,
        "overflows": counts.overflows,
        "lost": counts.lost,
        "scans": {str(reason): times for reason, times in counts.scans.items()},
    }


def _datatype(name: str, status: Status, snapshot: Snapshot, uploads: UploadCounts) -> Json:
    waiting = status.disk.waiting.get(name, Waiting())
    limits = status.config.limits
    opened = snapshot.now.open if snapshot.now else ()
    refused = snapshot.tally.refused.get(name, ())
    return {
        "name": name,
        "kind": REJECTED if name == REJECTED else "data",
        "waiting": {
            "files": waiting.files,
            "bytes": waiting.bytes,
            "oldest": instant(waiting.oldest_s),
        },
        "open": [_open(one, limits, snapshot.at_s) for one in opened if one.datatype == name],
        "uploading": [_closed(one, uploads) for one in snapshot.closed if one.datatype == name],
        "stored": [_stored(one) for one in snapshot.stored.get(name, ())],
        "rejected": [
            {
                "file": one.path,
                "reason": one.reason,
                "field": one.field,
                "detail": one.detail,
                "at": instant(one.at_s),
            }
            for one in refused[: -REJECTED_SHOWN - 1 : -1]  # the newest stands last in the tally
        ],
        "totals": _totals(name, snapshot),
        "last_arrival": instant(snapshot.last_arrival_s.get(name, 0.0)),
        "last_success": instant(snapshot.last_success_s.get(name, 0.0)),
    }


def _open(one: OpenBundleView, limits: Limits, at_s: float) -> Json:
    left_s = max(0.0, one.opened_s + limits.max_age_s - at_s)
    left_bytes = max(0, limits.max_bytes - one.row_bytes)
    return {
        "day": one.day,
        "bundle": one.name,
        "files": one.files,
        "row_bytes": one.row_bytes,
        "row_bytes_max": limits.max_bytes,
        "held_bytes": one.held_bytes,
        "opened": instant(one.opened_s),
        "seals_at": instant(one.opened_s + limits.max_age_s),
        "seals_by": f"age in {duration(left_s)}, or {size(left_bytes)} of rows more",
    }


def _closed(one: ClosedBundleView, uploads: UploadCounts) -> Json:
    return {
        "bundle": one.name,
        "files": one.files,
        "row_bytes": one.row_bytes,
        "object_bytes": one.object_bytes,
        "sealed": instant(one.sealed_s),
        "reason": one.reason or "replayed",
        "tries": uploads.tries.get(one.name, 0),
    }


def _stored(one: StoredBundleView) -> Json:
    remote = one.url.startswith("gs://")
    return {
        "bundle": one.name,
        "url": one.url,
        "link": CONSOLE + quote(one.url.removeprefix("gs://")) if remote else None,
        "files": one.files,
        "object_bytes": one.object_bytes,
        "at": instant(one.at_s),
        "seconds": round(one.seconds, 3),
    }


def _totals(name: str, snapshot: Snapshot) -> Json:
    tally = snapshot.tally

    def by_reason(counts: dict[tuple[str, str], int]) -> dict[str, int]:
        return {reason: times for (kind, reason), times in counts.items() if kind == name}

    return {
        "arrived": snapshot.arrived.get(name, 0),
        "taken": tally.taken[name],
        "archived": tally.archived[name],
        "rejected": by_reason(tally.rejected),
        "given_up": tally.given_up[name],
        "kept": by_reason(tally.kept),
        "deleted": by_reason(tally.deleted),
        "changed": tally.changed[name],
        "vanished": tally.vanished[name],
        "file_bytes": tally.file_bytes[name],
        "bundles": tally.bundles[name],
        "object_bytes": tally.object_bytes[name],
    }


def _history(snapshot: Snapshot) -> Json:
    minutes = snapshot.minutes.minutes
    return {
        "step_s": STEP_S,
        "end": instant(snapshot.minutes.end_s),
        "arrived": [minute.arrived for minute in minutes],
        "archived": [minute.archived for minute in minutes],
        "bytes": [minute.file_bytes for minute in minutes],
        "backlog": [minute.backlog for minute in minutes],
        "stored_s": [None if m.stored_s is None else round(m.stored_s, 3) for m in minutes],
    }
