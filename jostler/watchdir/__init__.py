"""Watch directories: report the paths of files that were closed, renamed in, or found by scans."""

from jostler.watchdir.arrivals import Arrival, Arrivals, Counts, How, Pace, ScanReason
from jostler.watchdir.given import GivenArrivals
from jostler.watchdir.opening import Watch, WatchError, open_arrivals, scan_once
from jostler.watchdir.roots import network_devices

__all__ = [
    "Arrival",
    "Arrivals",
    "Counts",
    "GivenArrivals",
    "How",
    "Pace",
    "ScanReason",
    "Watch",
    "WatchError",
    "network_devices",
    "open_arrivals",
    "scan_once",
]
