"""Choose and open a watcher.

**Invariant:** with `auto` a watcher is always returned, if need be one that only scans.  Anything
else than inotify is logged and described by `degraded`.  A watcher that was requested by name is
never replaced by another.
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
    """How arrivals are found: the values of `-watch`."""

    AUTO = "auto"
    """inotify; if it is not available, watchdog; if that fails, scans."""
    INOTIFY = "inotify"
    """The Linux kernel's file events."""
    WATCHDOG = "watchdog"
    """The watchdog library: its native observer, or its polling one on a network file system."""
    SCAN = "scan"
    """Scans every few seconds, and no events."""


class WatchError(Exception):
    """The requested watcher does not work on this system."""


def open_arrivals(
    roots: Sequence[str | Path],
    *,
    extensions: tuple[str, ...],
    pace: Pace | None = None,
    watch: Watch = Watch.AUTO,
) -> Arrivals:
    """Watch all files below `roots` whose names end with one of `extensions`.

    When it returns, all existing directories are watched and a scan is requested: later files give
    events, and the scan finds earlier ones.

    Args:
        roots: directories, which need not exist yet; a root below another one is redundant.
        extensions: the wanted extensions, such as `(".json",)`.
        pace: how often to look, how much to keep.
        watch: where events come from.

    Raises:
        WatchError: inotify or watchdog was requested and does not work here.
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
    except OSError as exc:  # watchdog would fail too, as it needs the same inotify instances
        return ScanArrivals(paths, wanted, pace, f"no inotify: {exc}")
    except ImportError as exc:
        why = f"no inotify: {exc}"
    try:
        return _by_watchdog(paths, wanted, pace, why)
    except (ImportError, OSError) as exc:
        return ScanArrivals(paths, wanted, pace, f"{why}; no watchdog: {exc}")


def _by_inotify(paths: tuple[str, ...], wanted: Wanted, pace: Pace) -> Arrivals:
    # Imported here, because both work only on Linux.
    from inotify_simple import INotify  # noqa: PLC0415

    from jostler.watchdir.inotify import InotifyArrivals  # noqa: PLC0415

    kernel = INotify()  # type: ignore[no-untyped-call]
    try:
        return InotifyArrivals(paths, wanted, pace, kernel)
    except BaseException:
        kernel.close()
        raise


def scan_once(roots: Sequence[str | Path], *, extensions: tuple[str, ...]) -> Arrivals:
    """Find all files below `roots` by one scan, without events; more scans only by `scan`."""
    wanted = Wanted(extensions)
    never = Pace(scan_every_s=float("inf"))
    return ScanArrivals(distinct(roots, wanted), wanted, never, "one scan was asked for")


def _by_watchdog(paths: tuple[str, ...], wanted: Wanted, pace: Pace, why: str) -> Arrivals:
    # Imported here, because it takes threads and memory and is not needed where inotify works.
    from jostler.watchdir.observed import WatchdogArrivals  # noqa: PLC0415

    return WatchdogArrivals(paths, wanted, pace, why=why, observer=_observer(paths, pace))


def _observer(paths: tuple[str, ...], pace: Pace) -> Callable[[], BaseObserver]:
    """Choose watchdog's observer: network file systems give no events for changes elsewhere."""
    from watchdog.observers import Observer  # noqa: PLC0415 - as above
    from watchdog.observers.polling import PollingObserver  # noqa: PLC0415 - as above

    if network_mounts(paths):
        return lambda: PollingObserver(timeout=pace.scan_every_s)
    return Observer
