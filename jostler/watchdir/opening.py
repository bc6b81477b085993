"""Choosing how to watch.

**Invariant:** a watcher is always returned; the worst of them scans.  Anything less than inotify
is logged and said by `degraded`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.watchdir.arrivals import Pace
from jostler.watchdir.notices import Notices
from jostler.watchdir.roots import distinct
from jostler.watchdir.scanning import ScanArrivals
from jostler.watchdir.wanted import Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jostler.watchdir.arrivals import Arrivals


def open_arrivals(
    roots: Sequence[str | Path], *, extensions: tuple[str, ...], pace: Pace | None = None
) -> Arrivals:
    """Watch all files below `roots` whose names end with one of `extensions`.

    When it returns, everything that exists is watched and a scan is asked for: what comes from now
    on is an event, what is there already is met by the scan.

    Args:
        roots: directories, which need not exist yet; one below another is covered by it.
        extensions: such as `(".json",)`.
        pace: how often to look, how much to keep.
    """
    wanted = Wanted(extensions)
    paths = distinct(roots, wanted)
    arrivals = _best(paths, wanted, pace or Pace())
    if arrivals.degraded:
        Notices().warn("watch.degraded", why=arrivals.degraded, next="scans")
    return arrivals


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
    from watchdog.observers import Observer  # noqa: PLC0415

    from jostler.watchdir.observed import WatchdogArrivals  # noqa: PLC0415

    return WatchdogArrivals(paths, wanted, pace, why=why, observer=Observer)
