"""The thread that writes files into the spool, as many at once as wait.

**Invariant:** an order is done when its file is durable under its name.  What cannot be written
fails alone.  The event loop never waits for the disk.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Self

from jostler.producer.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jostler.producer.outbox import Published, Staged

AT_ONCE = 1024
"""Files that are made durable together: syncing them one by one takes much longer."""
WAITING_BYTES = 32 * 1024 * 1024
"""Bytes of files that wait to be written; more are not accepted until some are."""


@dataclass(frozen=True, slots=True)
class _Order:
    filename: str
    content: bytes
    mtime_ns: int
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Published]

    def succeed(self, published: Published) -> None:
        # An asyncio future may be touched by the loop's thread alone (docs.python.org, "Concurrency
        # and Multithreading").
        self.loop.call_soon_threadsafe(_settle, self.done, published)

    def fail(self, exc: Exception) -> None:
        self.loop.call_soon_threadsafe(_settle, self.done, exc)


def _settle(done: asyncio.Future[Published], result: Published | Exception) -> None:
    if done.done():  # nobody waits for it any more
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)


class Writer:
    """Writes files of one experiment; close it when nothing is ordered any more.

    Args:
        top: the experiment's directory.
        extensions: of the files that the agent takes.

    Raises:
        OSError: no file can be written there.
    """

    def __init__(self, top: Path, extensions: Sequence[str]) -> None:
        # One for all datatypes: their files are made durable by one system call.
        self._outbox = Outbox(top, extensions)
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        # Of the event loop alone, as are their changes.
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write what was ordered, and end."""
        self._orders.put(None)
        self._thread.join()
        self._outbox.close()

    async def order(
        self, filename: str, content: bytes, mtime_ns: int
    ) -> asyncio.Future[Published]:
        """Let a file be written; wait while too many bytes of others wait for that.

        Args:
            filename: `<datatype>/yyyy/mm/dd/<name>`.
            content: its bytes.
            mtime_ns: its modification time, nanoseconds since 1970.

        Returns:
            A future that ends when the file is durable under its name, or with OSError if it
            cannot be written, or with JostlerError if other contents have all its names.
        """
        loop = asyncio.get_running_loop()
        while self._waiting_bytes and self._waiting_bytes + len(content) > WAITING_BYTES:
            self._room.clear()
            await self._room.wait()
        done: asyncio.Future[Published] = loop.create_future()
        self._waiting_bytes += len(content)
        done.add_done_callback(lambda _: self._written(len(content)))
        self._orders.put(_Order(filename, content, mtime_ns, loop, done))
        return done

    def _written(self, size_bytes: int) -> None:
        self._waiting_bytes -= size_bytes
        self._room.set()

    def _run(self) -> None:
        while (first := self._orders.get()) is not None:
            orders: list[_Order] = [first]
            ended = False
            while len(orders) < AT_ONCE and not ended:
                try:
                    more = self._orders.get_nowait()
                except Empty:
                    break
                if more is None:
                    ended = True
                else:
                    orders.append(more)
            self._write(orders)
            if ended:
                return

    def _write(self, orders: Sequence[_Order]) -> None:
        """Write files together; if that fails, each alone."""
        staged: list[Staged] = []
        try:
            for order in orders:
                one = self._outbox.stage(order.filename, order.content, mtime_ns=order.mtime_ns)
                staged.append(one)
            published = self._outbox.publish(staged, rename=True)
        except Exception as exc:  # noqa: BLE001 - passed on to whoever waits for the file
            self._outbox.discard(staged)
            if len(orders) == 1:
                orders[0].fail(exc)
                return
            for order in orders:  # a repetition finds those that were written
                self._write([order])
            return
        for order, result in zip(orders, published, strict=True):
            order.succeed(result)
