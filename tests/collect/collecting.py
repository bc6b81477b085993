"""One feed, fetched as often as a test says, by the parts that `jostler collect` has."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from jostler.log import EveryMinute
from jostler.producer.collect.disk import Disk
from jostler.producer.collect.feeds import Feed
from jostler.producer.collect.fetching import Fetcher
from jostler.producer.collect.places import Places
from jostler.producer.collect.runner import Means, Runner
from jostler.producer.collect.writing import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

MOST_BYTES = 20 * 1024 * 1024


def feed(url: str, **other: object) -> Feed:
    """Return a feed with the defaults of the configuration."""
    values: dict[str, Any] = {
        "id": "bus",
        "every_s": 0.1,
        "timeout_s": 30.0,
        "prefix": "bus_",
        "postfix": ".json",
    }
    return Feed(url=url, **(values | other))


@asynccontextmanager
async def means(
    spool: Path, *, most_bytes: int = MOST_BYTES, connections: int = 100, min_free: int = 0
) -> AsyncIterator[Means]:
    """Open what runners share."""
    with Writer(spool, (".json",)) as writer:
        async with Fetcher(most_bytes) as fetcher:
            yield Means(
                fetcher=fetcher,
                writer=writer,
                places=Places(connections),
                disk=Disk(spool, lambda _: min_free, lambda _: False),
                most_bytes=most_bytes,
                every_minute=EveryMinute(),
            )


def files(spool: Path, name: str = "bus") -> list[Path]:
    """Return the files of a feed, oldest first; there is nothing else in its directory."""
    return sorted((spool / name).rglob("*.*"))


async def attempts(runner: Runner, count: int = 1) -> None:
    """Fetch so many times, one after the other, at least a millisecond apart."""
    for _ in range(count):
        await runner._attempt()
        await asyncio.sleep(0.002)
