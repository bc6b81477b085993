"""One feed: wait, fetch, save what is new, count, again.

**Invariant:** two fetches of one feed never overlap.  A body counts as the last one only when its
file is durable, so a file that could not be written is fetched again.  Nothing that a feed does
ends its runner.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.errors import JostlerError, stable_text
from jostler.log import EveryMinute, Log
from jostler.producer.collect.answers import Failure, FetchError, Validators
from jostler.producer.collect.contents import check, content_of, filename_of
from jostler.producer.collect.places import SLOW_S
from jostler.producer.collect.tally import Tally

if TYPE_CHECKING:
    from jostler.producer.collect.answers import Answer
    from jostler.producer.collect.disk import Disk
    from jostler.producer.collect.feeds import Feed
    from jostler.producer.collect.fetching import Fetcher, Room
    from jostler.producer.collect.places import Places
    from jostler.producer.collect.writing import Writer
    from jostler.producer.outbox import Published

log = Log("jostler.collect")

JITTER_MAX_S = 10.0
_UNANSWERED = frozenset({Failure.CONNECT, Failure.TLS, Failure.TIMEOUT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What all runners share.

    Attributes:
        most_bytes: the maximum size of a bundle, and so of a row.
    """

    fetcher: Fetcher
    writer: Writer
    places: Places
    disk: Disk
    most_bytes: int
    every_minute: EveryMinute


class Runner:
    """Collects one feed until it is stopped.

    Args:
        feed: the feed; `change` replaces it.
        means: what all runners share.

    Attributes:
        tally: what was counted of the feed.
    """

    def __init__(self, feed: Feed, means: Means) -> None:
        self.feed = feed
        self.tally = Tally()
        self._means = means
        self._validators = Validators()
        self._last = b""
        self._slow = False
        self._stopped = False
        self._changed = False
        self._alarm: asyncio.Future[None] | None = None

    def change(self, feed: Feed) -> None:
        """Collect by another configuration of the same id from now on."""
        if feed == self.feed:
            return
        if (feed.url, feed.headers, feed.dedup) != (
            self.feed.url,
            self.feed.headers,
            self.feed.dedup,
        ):
            self._validators = Validators()  # they may be another document's
        self.feed = feed
        self._changed = True
        self._wake()

    def stop(self) -> None:
        """Let `run` return after the fetch that is under way, if there is one."""
        self._stopped = True
        self._wake()

    async def run(self) -> None:
        """Fetch at each due time; times that pass during a fetch are left out."""
        loop = asyncio.get_running_loop()
        due_s = loop.time() + random.uniform(0, min(self.feed.every_s, JITTER_MAX_S))  # noqa: S311 - spreads load
        while True:
            await self._sleep_until(due_s)
            if self._stopped:
                return
            now_s = loop.time()
            if self._changed:
                self._changed = False
                due_s = min(due_s, now_s + self.feed.every_s)
                continue
            pause_s = 0.0 if self._means.disk.lacks() else await self._attempt()
            # The due times stay multiples of the interval: a slow answer does not shift all later
            # ones.
            late = max(0.0, loop.time() - due_s) // self.feed.every_s
            due_s += (late + 1) * self.feed.every_s
            due_s = max(due_s, loop.time() + pause_s) if pause_s else due_s

    async def _sleep_until(self, due_s: float) -> None:
        """Sleep until a time of the loop's clock, or until woken."""
        loop = asyncio.get_running_loop()
        if self._stopped or self._changed or loop.time() >= due_s:
            # Even so the loop must get its turn: a feed whose time has always come would keep out
            # the others.
            await asyncio.sleep(0)
            return
        self._alarm = loop.create_future()
        timer = loop.call_at(due_s, self._wake)
        try:
            await self._alarm
        finally:
            timer.cancel()
            self._alarm = None

    def _wake(self) -> None:
        if self._alarm and not self._alarm.done():
            self._alarm.set_result(None)

    async def _attempt(self) -> float:
        """Fetch once and count how it ended; return how long the server asks to be left alone."""
        feed, tally = self.feed, self.tally
        began_s = 0.0
        try:
            with self._means.fetcher.room() as room:
                async with self._means.places.one(slow=self._slow):
                    tally.attempts += 1
                    began_s = time.perf_counter()
                    answer, written = await self._collect(feed, room)
                # Others may fetch while the disk is at work.
                if written:
                    await written
            self._succeed(feed, answer, saved=written is not None)
        except FetchError as exc:
            self._slow = exc.failure in _UNANSWERED
            self._fail(feed, exc.failure, str(exc))
            return exc.retry_after_s
        except (OSError, JostlerError) as exc:
            self._fail(feed, Failure.SPOOL, stable_text(exc))
        except Exception as exc:
            log.exception("feed.crashed", feed=feed.id)
            self._fail(feed, Failure.UNFORESEEN, type(exc).__name__)
        finally:
            tally.seconds += time.perf_counter() - began_s if began_s else 0.0
        return 0.0

    async def _collect(
        self, feed: Feed, room: Room
    ) -> tuple[Answer, asyncio.Future[Published] | None]:
        """Fetch a feed; return its answer, and its file that is being written if it brings news.

        Raises:
            FetchError: there is no answer that can be saved.
        """
        means = self._means
        began_s = time.perf_counter()
        answer = await means.fetcher.fetch(feed, self._validators, room)
        self._slow = time.perf_counter() - began_s > SLOW_S
        self.tally.received_bytes += answer.received_bytes
        if answer.unmodified or (feed.dedup and answer.body_hash == self._last):
            return answer, None
        content = content_of(feed, answer)
        filename = filename_of(feed, answer)
        check(feed, filename, content, means.most_bytes)
        mtime_ns = round(answer.at.timestamp() * 1000) * 1_000_000
        return answer, await means.writer.order(f"{feed.id}/{filename}", content, mtime_ns)

    def _succeed(self, feed: Feed, answer: Answer, *, saved: bool) -> None:
        """Count a success, and remember the answer, which is durable now."""
        if saved:
            log.debug("feed.saved", feed=feed.id, bytes=len(answer.body))
        if self.tally.error:
            log.info("feed.recovered", feed=feed.id, failures=self.tally.error.times)
        self.tally.succeed(answer.at.timestamp(), saved=saved)
        if answer.unmodified:
            return
        self._last = answer.body_hash
        # Without dedup each sample is wanted with its body, which 304 does not bring.
        same = feed.dedup and (feed.url, feed.headers) == (self.feed.url, self.feed.headers)
        self._validators = answer.validators if same else Validators()

    def _fail(self, feed: Feed, failure: Failure, words: str) -> None:
        self.tally.fail(failure, words, time.time())
        if times := self._means.every_minute.due(feed.id):
            facts = {"class": str(failure), "why": words, "times": times}
            log.warning("feed.failed", feed=feed.id, **facts)
