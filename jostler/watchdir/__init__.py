"""Watch directories: report the paths of files that were closed, renamed in, or found by scans."""

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
