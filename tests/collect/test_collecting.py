"""What is saved of good answers, what is skipped, and that no feed disturbs another."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jostler.format.names import parse_file
from jostler.full_sign import FullSign, is_full
from jostler.producer.collect.answers import Failure
from jostler.producer.collect.disk import Disk
from jostler.producer.collect.feeds import Header, Shape
from jostler.producer.collect.runner import Runner
from jostler.schema import Judge, parse_datatype_schema
from tests.collect.collecting import attempts, feed, files, means
from tests.support.feeds import FeedServer, chunked, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.feeds import Asked

SCHEMA = Path(__file__).parents[2] / "examples/wrapped.json"
GOOD = b'{ "bus": [1, 1.0, 1E2],\n "text": "\xc3\xa9" }\n'
OTHER = b'{"bus": 2}'
TIMES = 9


async def until(holds: Callable[[], object]) -> None:
    """Let the loop work until something holds."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - a server or a thread makes it hold, which sets no event
            await asyncio.sleep(0.01)


def collected(
    spool: Path, answer: Callable[[Asked], bytes | None], times: int = 1, **other: object
) -> tuple[Runner, list[Asked]]:
    """Fetch a feed so many times; return what collected it, and what was asked."""

    async def run() -> tuple[Runner, list[Asked]]:
        async with FeedServer(keep=True) as server, means(spool) as shared:
            runner = Runner(feed(f"{server.by('/feed', answer)}?a=1", **other), shared)
            await attempts(runner, times)
            return runner, server.asked

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "received"),
    [
        (reply(GOOD), len(GOOD)),
        (chunked(GOOD[:7], GOOD[7:8], GOOD[8:]), len(GOOD)),
        (reply(gzip.compress(GOOD), Content_Encoding="gzip"), len(gzip.compress(GOOD))),
        (
            chunked(gzip.compress(GOOD[:9]), gzip.compress(GOOD[9:]), Content_Encoding="gzip"),
            len(gzip.compress(GOOD[:9]) + gzip.compress(GOOD[9:])),
        ),
    ],
    ids=["length", "chunks", "gzip", "two members"],
)
def test_a_body_goes_in_untouched(tmp_path: Path, answer: bytes, received: int) -> None:
    """Byte for byte, by the name and the time of its fetch."""
    before = datetime.now(UTC)
    runner, _ = collected(tmp_path, lambda _: answer)

    (file,) = files(tmp_path)
    assert file.read_bytes() == GOOD
    day, name = parse_file(str(file.relative_to(tmp_path / "bus")))
    digest = base64.b32encode(hashlib.sha256(GOOD).digest()).decode().lower()[:12]
    found = re.fullmatch(rf"bus_(\d{{8}}T\d{{6}}\.\d{{3}})Z_{digest}\.json", name)
    assert found
    at = datetime.strptime(f"{found[1]}+0000", "%Y%m%dT%H%M%S.%f%z")
    assert -0.002 < (at - before).total_seconds() < 5
    assert file.stat().st_mtime_ns == round(at.timestamp() * 1000) * 1_000_000
    assert day.date == at.date()
    assert (runner.tally.saved, runner.tally.received_bytes) == (1, received)
    assert runner.tally.success_s == runner.tally.saved_s == at.timestamp()
    assert runner.tally.seconds > 0


def test_a_body_of_10_megabytes(tmp_path: Path) -> None:
    """It fits a bundle, and its kind waits for a place of its own."""
    body = json.dumps({"x": "y" * 10_000_000}).encode()
    runner, _ = collected(tmp_path, lambda _: reply(body))

    (file,) = files(tmp_path)
    assert file.read_bytes() == body
    assert runner.tally.received_bytes == len(body)


def test_a_body_is_wrapped_with_what_is_known_of_it(tmp_path: Path) -> None:
    """Any bytes; with the URL without its secrets; good by the example's schema."""
    body = bytes(range(256))
    answer = reply(body, ETag='"v1"', Content_Type="application/x-protobuf")
    _, asked = collected(tmp_path, lambda _: answer, shape=Shape.WRAPPED)

    (file,) = files(tmp_path)
    wrapped = json.loads(file.read_bytes())
    assert base64.b64decode(wrapped.pop("Content")) == body
    at = datetime.fromisoformat(wrapped.pop("FetchedAt"))
    assert file.name.startswith(f"bus_{at:%Y%m%dT%H%M%S}.{at.microsecond // 1000:03d}Z_")
    host = asked[0].headers["host"]
    assert wrapped == {
        "URL": f"http://{host}/feed?a=***",
        "Status": 200,
        "ContentType": "application/x-protobuf",
        "ETag": '"v1"',
    }
    judge = Judge(parse_datatype_schema(SCHEMA.read_bytes(), source="wrapped"))
    assert judge.flaw(file.read_bytes()) is None


def test_a_body_that_equals_the_last_one_is_skipped(tmp_path: Path) -> None:
    """A A B A is saved as A B A: only the last one counts."""
    bodies = iter([GOOD, GOOD, OTHER, GOOD])
    runner, _ = collected(tmp_path, lambda _: reply(next(bodies)), times=4)

    assert [file.read_bytes() for file in files(tmp_path)] == [GOOD, OTHER, GOOD]
    assert (runner.tally.attempts, runner.tally.saved, runner.tally.unchanged) == (4, 3, 1)


@pytest.mark.parametrize(
    ("given", "asked_by"),
    [
        ({"ETag": 'W/"v1"'}, {"if-none-match": 'W/"v1"'}),
        (
            {"Last_Modified": "Sun, 22 Nov 2026 10:00:00 GMT"},
            {"if-modified-since": "Sun, 22 Nov 2026 10:00:00 GMT"},
        ),
    ],
    ids=["etag", "date"],
)
def test_what_a_server_gave_is_asked_by(
    tmp_path: Path, given: dict[str, str], asked_by: dict[str, str]
) -> None:
    """The second request has the condition, and 304 saves nothing."""

    def answer(asked: Asked) -> bytes:
        knows = asked_by.items() <= asked.headers.items()
        return reply(status="304 Not Modified", **given) if knows else reply(GOOD, **given)

    runner, asked = collected(tmp_path, answer, times=3)

    assert not asked_by.keys() & asked[0].headers.keys()
    assert all(asked_by.items() <= one.headers.items() for one in asked[1:])
    assert runner.tally.received_bytes == len(GOOD)
    assert len(files(tmp_path)) == 1
    assert (runner.tally.saved, runner.tally.unchanged, runner.tally.error) == (1, 2, None)
    assert runner.tally.success_s > runner.tally.saved_s


def test_without_dedup_each_sample_is_saved(tmp_path: Path) -> None:
    """No condition is sent, for 304 has no body."""
    runner, asked = collected(tmp_path, lambda _: reply(GOOD, ETag='"v"'), times=3, dedup=False)

    assert [file.read_bytes() for file in files(tmp_path)] == [GOOD] * 3
    assert not any("if-none-match" in one.headers for one in asked)
    assert runner.tally.unchanged == 0


def test_a_redirect_is_followed(tmp_path: Path) -> None:
    """With the feed's headers, as long as it stays with the same server."""

    async def run() -> list[Asked]:
        async with FeedServer() as server, means(tmp_path) as shared:
            server.always("/new", reply(GOOD))
            url = server.always("/old", reply(status="308 Permanent Redirect", Location="new"))
            headers = (Header(name="Authorization", value="Bearer t"),)
            await attempts(Runner(feed(url, headers=headers), shared))
            return server.asked

    asked = asyncio.run(run())

    assert [one.path for one in asked] == ["/old", "/new"]
    assert {one.headers["authorization"] for one in asked} == {"Bearer t"}
    assert files(tmp_path)[0].read_bytes() == GOOD


def test_a_file_that_cannot_be_written_is_fetched_again(tmp_path: Path) -> None:
    """Neither its hash nor its ETag counts as known before it is durable."""
    in_the_way = tmp_path / "bus"
    in_the_way.write_text("where the directory should be")

    async def run() -> tuple[Runner, list[Asked]]:
        async with FeedServer() as server, means(tmp_path) as shared:
            url = server.always("/feed", reply(GOOD, ETag='"v"'))
            runner = Runner(feed(url), shared)
            await attempts(runner)
            in_the_way.unlink()
            await attempts(runner)
            return runner, server.asked

    runner, asked = asyncio.run(run())

    assert runner.tally.failures[Failure.SPOOL] == 1
    assert "if-none-match" not in asked[1].headers
    assert [file.read_bytes() for file in files(tmp_path)] == [GOOD]


def test_a_file_that_cannot_be_written_keeps_no_other_back(tmp_path: Path) -> None:
    """Files are made durable together, and fail alone."""
    (tmp_path / "bus").write_text("in the way of the directory")

    async def run() -> list[Runner]:
        async with FeedServer() as server, means(tmp_path) as shared:
            url = server.always("/feed", reply(GOOD))
            names = ["bus", *(f"f{number}" for number in range(20))]
            runners = [Runner(feed(url, id=name), shared) for name in names]
            await asyncio.gather(*(attempts(runner) for runner in runners))
            return runners

    bad, *good = asyncio.run(run())

    assert bad.tally.failures[Failure.SPOOL] == 1
    assert {runner.tally.saved for runner in good} == {1}
    assert all(len(files(tmp_path, f"f{number}")) == 1 for number in range(20))


def test_dead_feeds_delay_no_other(tmp_path: Path) -> None:
    """Once known as slow, they share half of the places, and the others have the rest."""

    async def run() -> tuple[Runner, list[Runner]]:
        async with FeedServer(keep=True) as server, means(tmp_path, connections=4) as shared:
            dead_url = server.always("/dead", None)
            good = Runner(feed(server.always("/good", reply(GOOD))), shared)
            dead = [Runner(feed(dead_url, id=f"d{n}", timeout_s=0.1), shared) for n in range(8)]
            await asyncio.gather(*(attempts(runner) for runner in dead))  # they are known now
            for runner in dead:
                runner.feed = feed(dead_url, id=runner.feed.id, timeout_s=60.0)
            hanging = [asyncio.create_task(attempts(runner)) for runner in dead]
            await until(lambda: sum(runner.tally.attempts == 2 for runner in dead) == 2)
            async with asyncio.timeout(60):
                await attempts(good, 20)
            assert sum(runner.tally.attempts == 2 for runner in dead) == 2
            for task in hanging:
                task.cancel()
            await asyncio.gather(*hanging, return_exceptions=True)
            return good, dead

    good, dead = asyncio.run(run())

    assert (good.tally.saved, good.tally.unchanged) == (1, 19)
    assert {runner.tally.failures[Failure.TIMEOUT] for runner in dead} == {1}


def test_each_feed_has_its_own_rhythm(tmp_path: Path) -> None:
    """A feed that hangs delays no other; one that was slow once leaves out what it missed."""
    first = iter([None])

    async def run() -> tuple[Runner, float]:
        async with FeedServer(keep=True) as server, means(tmp_path) as shared:
            url = server.by("/late", lambda _: next(first, reply(GOOD)))
            late = Runner(feed(url, id="late", timeout_s=0.35), shared)
            fast = Runner(feed(server.always("/fast", reply(GOOD))), shared)
            dead = Runner(feed(server.always("/dead", None), id="dead", timeout_s=600.0), shared)
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            tasks = [asyncio.create_task(runner.run()) for runner in (late, fast, dead)]
            await until(lambda: min(late.tally.attempts, fast.tally.attempts) == TIMES)
            took_s = loop.time() - began_s
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return dead, took_s

    dead, took_s = asyncio.run(run())

    assert dead.tally.attempts == 1
    # Its first fetch took up the times of two others.
    assert took_s > 0.1 * (TIMES - 1 + 2)


def test_a_server_that_asks_for_a_pause_gets_it(tmp_path: Path) -> None:
    """Retry-After of 503 holds, though the feed would be due long before."""

    async def run() -> tuple[int, Runner]:
        async with FeedServer() as server, means(tmp_path) as shared:
            url = server.always("/feed", reply(status="503 Busy", Retry_After="60"))
            runner = Runner(feed(url), shared)
            task = asyncio.create_task(runner.run())
            await until(lambda: server.asked)
            await asyncio.sleep(0.3)
            runner.stop()
            await task
            return len(server.asked), runner

    asked, runner = asyncio.run(run())

    assert asked == runner.tally.attempts == 1


def test_on_a_full_disk_nothing_is_fetched(tmp_path: Path) -> None:
    """And it goes on by itself when there is room again."""
    wanted = 1 << 62

    async def run() -> int:
        async with FeedServer() as server, means(tmp_path) as shared:
            disk = Disk(tmp_path, lambda _: wanted, lambda _: False, look_every_s=0.01)
            object.__setattr__(shared, "disk", disk)
            runner = Runner(feed(server.always("/feed", reply(GOOD))), shared)
            task = asyncio.create_task(runner.run())
            await until(lambda: disk.space.why)
            await asyncio.sleep(0.3)
            before = len(server.asked)
            assert disk.space.why == "the spool's disk is nearly full"
            make_room()
            await until(lambda: server.asked)
            runner.stop()
            await task
            return before

    def make_room() -> None:
        nonlocal wanted
        wanted = 0

    assert asyncio.run(run()) == 0


def test_the_agents_sign_stops_fetching(tmp_path: Path) -> None:
    """Whatever the disk says, until the agent takes it away."""
    sign, disk = FullSign(tmp_path), Disk(tmp_path, lambda _: 0, is_full, look_every_s=0.0)
    sign.show(0.0)

    assert disk.lacks()
    assert disk.space.why == "the agent asks for no more files"

    sign.clear()
    assert not disk.lacks()
