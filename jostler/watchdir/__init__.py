"""Which paths may have something: files closed, renamed in or met below some directories."""

from jostler.watchdir.arrivals import Arrival, Arrivals, Counts, How, Pace, ScanReason
from jostler.watchdir.opening import Watch, WatchError, open_arrivals, scan_once

__all__ = [
    "Arrival",
    "Arrivals",
    "Counts",
    "How",
    "Pace",
    "ScanReason",
    "Watch",
    "WatchError",
    "open_arrivals",
    "scan_once",
]
