"""Choosing how to watch.

**Invariant:** with `auto` a watcher is always returned; the worst of them scans.  Anything less
than inotify is logged and said by `degraded`.  A watcher that was asked for by name is never
silently replaced by another.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from jostler.log import RateLimitedLog
from jostler.watchdir.arrivals import Pace
from jostler.watchdir.gatherer import ScanArrivals
from jostler.watchdir.roots import distinct, network_mounts
from jostler.watchdir.walk import Wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from watchdog.observers.api import BaseObserver

    from jostler.watchdir.arrivals import Arrivals


class Watch(StrEnum):
    """How arrivals are learned of, as `-watch` says it."""

    AUTO = "auto"
    """inotify; where there is none watchdog; where that fails scans."""
    INOTIFY = "inotify"
    """The Linux kernel's events."""
    WATCHDOG = "watchdog"
    """The watchdog library: its native observer, or on a network file system its polling one."""
    SCAN = "scan"
    """Scans every few seconds, and no events."""


class WatchError(Exception):
    """The watcher that was asked for cannot be had here."""


def open_arrivals(
    roots: Sequence[str | Path],
    *,
    extensions: tuple[str, ...],
    pace: Pace | None = None,
    watch: Watch = Watch.AUTO,
) -> Arrivals:
    """Watch all files below `roots` whose names end with one of `extensions`.

    When it returns, everything that exists is watched and a scan is asked for: what comes from now
    on is an event, what is there already is met by the scan.

    Args:
        roots: directories, which need not exist yet; one below another is covered by it.
        extensions: such as `(".json",)`.
        pace: how often to look, how much to keep.
        watch: where events come from.

    Raises:
        WatchError: inotify or watchdog was asked for and cannot be had.
    """
    wanted = Wanted(extensions)
    paths = distinct(roots, wanted)
    arrivals = _open(watch, paths, wanted, pace or Pace())
    if arrivals.degraded:
        log = RateLimitedLog("jostler.watchdir")
        log.warning("watch.degraded", why=arrivals.degraded, next="scans")
    return arrivals


def _open(watch: Watch, paths: tuple[str, ...], wanted: Wanted, pace: Pace) -> Arrivals:
    if watch is Watch.SCAN:
        return ScanArrivals(paths, wanted, pace, "-watch is scan")
    try:
        if watch is Watch.INOTIFY:
            return _by_inotify(paths, wanted, pace)
        if watch is Watch.WATCHDOG:
            return _by_watchdog(paths, wanted, pace, "-watch is watchdog")
    except (ImportError, OSError) as exc:
        raise WatchError(f"{watch} cannot be had here: {exc}") from exc
    return _best(paths, wanted, pace)


def _best(paths: tuple[str, ...], wanted: Wanted, pace: Pace) -> Arrivals:
    try:
        return _by_inotify(paths, wanted, pace)
    except OSError as exc:  # watchdog would ask for the same instances
        return ScanArrivals(paths, wanted, pace, f"no inotify: {exc}")
    except ImportError as exc:
        why = f"no inotify: {exc}"
    try:
        return _by_watchdog(paths, wanted, pace, why)
    except (ImportError, OSError) as exc:
        return ScanArrivals(paths, wanted, pace, f"{why}; no watchdog: {exc}")


def _by_inotify(paths: tuple[str, ...], wanted: Wanted, pace: Pace) -> Arrivals:
    # Imported here: neither can be on other systems than Linux.
    from inotify_simple import INotify  # noqa: PLC0415

    from jostler.watchdir.inotify import InotifyArrivals  # noqa: PLC0415

    kernel = INotify()  # type: ignore[no-untyped-call]
    try:
        return InotifyArrivals(paths, wanted, pace, kernel)
    except BaseException:
        kernel.close()
        raise


def scan_once(roots: Sequence[str | Path], *, extensions: tuple[str, ...]) -> Arrivals:
    """Meet all files below `roots` once: no events, one scan, then only what `scan` asks for."""
    wanted = Wanted(extensions)
    never = Pace(scan_every_s=float("inf"))
    return ScanArrivals(distinct(roots, wanted), wanted, never, "one scan was asked for")


def _by_watchdog(paths: tuple[str, ...], wanted: Wanted, pace: Pace, why: str) -> Arrivals:
    # Imported here: it is not needed, and costs threads and memory, where there is inotify.
    from jostler.watchdir.observed import WatchdogArrivals  # noqa: PLC0415

    return WatchdogArrivals(paths, wanted, pace, why=why, observer=_observer(paths, pace))


def _observer(paths: tuple[str, ...], pace: Pace) -> Callable[[], BaseObserver]:
    """Choose watchdog's observer: a network file system tells of no change made elsewhere."""
    from watchdog.observers import Observer  # noqa: PLC0415 - as above
    from watchdog.observers.polling import PollingObserver  # noqa: PLC0415 - as above

    if network_mounts(paths):
        return lambda: PollingObserver(timeout=pace.scan_every_s)
    return Observer
