"""All feeds of one process: started, changed by a new configuration, and stopped together.

**Invariant:** the feeds that run are those of the last good configuration.  A feed that did not
change keeps its counts, its due times, and the validators and hash of its last answer.
"""

from __future__ import annotations

import asyncio
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from jostler.errors import ConfigError
from jostler.log import EveryMinute, Log
from jostler.producer.collect.fetching import Fetcher
from jostler.producer.collect.places import Places
from jostler.producer.collect.runner import Means, Runner
from jostler.producer.collect.writing import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from jostler.producer.collect.disk import Disk
    from jostler.producer.collect.feeds import Feed

log = Log("jostler.collect")

RESOLVERS = 64
"""Threads that look up names: one that is never answered holds one for seconds."""
FILES_MAX = 65536
TURN_S = 1.0


class Collector:
    """Collects feeds; all of it belongs to one event loop.

    Args:
        spool: the experiment's directory.
        disk: knows whether the spool has room.
        connections: the number of fetches that may run at once.
        most_bytes: the maximum size of a bundle.
        extensions: of the files that the agent takes.

    Attributes:
        runners: by the feed's id; other threads may read it.
        disk: as given.
        refused: why the last configuration was refused; empty if it was not.
        started_s: when the collector was made, Unix time.
        turned_s: when the event loop last turned, monotonic.
        spool, connections: as given.
    """

    def __init__(
        self,
        spool: Path,
        disk: Disk,
        *,
        connections: int,
        most_bytes: int,
        extensions: Sequence[str],
    ) -> None:
        self.runners: dict[str, Runner] = {}
        self.disk = disk
        self.refused = ""
        self.started_s = time.time()
        self.turned_s = time.monotonic()
        self.connections = connections
        self.spool = spool
        self._most_bytes = most_bytes
        self._extensions = extensions
        self._tasks: set[asyncio.Task[None]] = set()
        self._means: Means | None = None

    async def run(self, feeds: Sequence[Feed], stop: asyncio.Event) -> None:
        """Collect until `stop` is set; what was fetched by then is written.

        Args:
            feeds: the first configuration; `apply` changes it.
            stop: set from this loop.

        Raises:
            OSError: nothing can be written into the spool.
        """
        _allow_files()
        resolvers = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolver")
        asyncio.get_running_loop().set_default_executor(resolvers)
        with Writer(self.spool, self._extensions) as writer:
            async with Fetcher(self._most_bytes) as fetcher:
                self._means = Means(
                    fetcher=fetcher,
                    writer=writer,
                    places=Places(self.connections),
                    disk=self.disk,
                    most_bytes=self._most_bytes,
                    every_minute=EveryMinute(),
                )
                self.apply(feeds)
                log.info("collect.started", feeds=len(feeds), directory=str(self.spool))
                try:
                    while not stop.is_set():
                        await self._turn(stop)
                finally:
                    await self._end()
        resolvers.shutdown(wait=False, cancel_futures=True)

    def apply(self, feeds: Sequence[Feed]) -> None:
        """Run these feeds from now on: begin new ones, change, leave or end those that run."""
        assert self._means
        wanted = {feed.id for feed in feeds}
        for name in [name for name in self.runners if name not in wanted]:
            self.runners.pop(name).stop()
        for feed in feeds:
            if runner := self.runners.get(feed.id):
                runner.change(feed)
                continue
            runner = self.runners[feed.id] = Runner(feed, self._means)
            task = asyncio.get_running_loop().create_task(runner.run(), name=feed.id)
            # asyncio itself keeps only weak references to tasks (docs.python.org, create_task).
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def reload(self, read: Callable[[], Sequence[Feed]]) -> None:
        """Apply the configuration as it is now; keep what runs if it is wrong.

        Args:
            read: reads it, or raises ConfigError.
        """
        try:
            feeds = await asyncio.to_thread(read)  # a thousand feeds take some tenths of a second
        except ConfigError as exc:
            self.refused = str(exc)
            log.error("collect.reload_refused", problems=exc.problems)
            return
        self.refused = ""
        before = {name: runner.feed for name, runner in self.runners.items()}
        self.apply(feeds)
        log.info(
            "collect.reloaded",
            feeds=len(feeds),
            begun=len([feed for feed in feeds if feed.id not in before]),
            changed=len([feed for feed in feeds if before.get(feed.id, feed) != feed]),
            ended=len(before.keys() - self.runners.keys()),
        )

    async def _turn(self, stop: asyncio.Event) -> None:
        """Wait a second, and note that the loop turns; look at the disk although no feed is due."""
        self.turned_s = time.monotonic()
        self.disk.lacks()
        try:
            async with asyncio.timeout(TURN_S):
                await stop.wait()
        except TimeoutError:
            return

    async def _end(self) -> None:
        """End all fetches; a file that the writer has is written."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _allow_files() -> None:
    """Allow as many open files as the system lets this process have: each connection is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
