"""A spool, a watcher of it, and a patient reader."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from jostler.watchdir import Arrival, Pace, ScanReason, open_arrivals
from jostler.watchdir.gatherer import Gatherer
from jostler.watchdir.inotify import InotifyArrivals

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from jostler.watchdir.arrivals import Arrivals

    Watch = Callable[..., "Reader"]

QUICK = Pace(scan_every_s=0.1, look_every_s=0.05, hint_after_s=0.05)


class Reader:
    """Takes from a watcher, with paths relative to the spool."""

    def __init__(self, arrivals: Arrivals, root: Path) -> None:
        self.arrivals = arrivals
        self.root = root

    def until(
        self, enough: Callable[[list[Arrival]], bool], *, timeout_s: float = 60, most: int = 1_000
    ) -> list[Arrival]:
        """Take until it is enough; what was taken by then, be it enough or not."""
        deadline_s = time.monotonic() + timeout_s
        taken: list[Arrival] = []
        while not enough(taken) and (left_s := deadline_s - time.monotonic()) > 0:
            self.arrivals.wait(min(left_s, 0.02))  # `enough` may look at more than files
            taken += [
                Arrival(os.path.relpath(path, self.root), how)
                for path, how in self.arrivals.take(most)
            ]
        return taken

    def until_seen(self, names: set[str], *, timeout_s: float = 60) -> list[Arrival]:
        """Take until each of `names` was reported."""
        return self.until(lambda taken: names <= {a.path for a in taken}, timeout_s=timeout_s)

    def until_idle(self) -> list[Arrival]:
        """Take what is there and what the scans that are asked for meet."""
        arrivals = self.arrivals
        arrivals.take(0)
        return self.until(lambda _: not arrivals.scanning and not arrivals.waiting)

    def until_linked(self) -> list[Arrival]:
        """Take until a link made now is reported: by then all that happened before it is too."""
        source = self.root.parent / "source"
        source.touch()
        os.link(source, self.root / "last.json")
        taken = self.until(lambda taken: any(a.path == "last.json" for a in taken))
        (self.root / "last.json").unlink()
        return [a for a in taken if a.path != "last.json"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty spool, with room beside it on the same file system."""
    root = tmp_path / "spool"
    root.mkdir()
    return root


@pytest.fixture
def watch(root: Path) -> Iterator[Watch]:
    """Open watchers of the spool; the first scan is behind them."""
    with ExitStack() as stack:

        def open_(pace: Pace = QUICK, arrivals: Arrivals | None = None) -> Reader:
            if arrivals is None:
                arrivals = open_arrivals([root], extensions=(".json",), pace=pace)
                assert isinstance(arrivals, InotifyArrivals)
            assert isinstance(arrivals, Gatherer)
            reader = Reader(stack.enter_context(arrivals), root)
            reader.until_idle()
            assert arrivals.counts.scans[ScanReason.START] == 1
            return reader

        yield open_


@pytest.fixture
def reader(watch: Watch) -> Reader:
    """Read an inotify watcher of the empty spool."""
    return watch()
