"""What a collector of many feeds takes: CPU for a fetch, memory, and whether it keeps up.

usage: python -m bench.collect [--feeds 1000] [--every 1s] [--seconds 20] [--new 0.1]
       python -m bench.collect --libraries [--fetches 5000]

The feeds are served by another process on this machine, over loopback without TLS: 1 KiB of JSON
each, which has changed with the probability --new, else 304.  The CPU is that of the collector
alone.  With --libraries only the HTTP client is measured, beside httpx if that is installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.programs import cpu_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

PAD = "x" * 950
AT_ONCE = 100
SETTLE_S = 10.0


class Server(asyncio.Protocol):
    """Answers each request at once; parses nothing but the end of its head."""

    new = 0.1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._head = transport, b""

    def data_received(self, data: bytes) -> None:
        self._head += data
        while b"\r\n\r\n" in self._head:
            head, _, self._head = self._head.partition(b"\r\n\r\n")
            if b"\r\nIf-None-Match:" in head and random.random() >= self.new:
                self._transport.write(b'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\n\r\n')
                continue
            body = b'{"n": %d, "pad": "%b"}' % (time.monotonic_ns(), PAD.encode())
            lines = b'HTTP/1.1 200 OK\r\nETag: "e"\r\nContent-Length: %d\r\n\r\n' % len(body)
            self._transport.write(lines + body)


async def serve(new: float) -> None:
    """Serve until killed; print the port."""
    Server.new = new
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def served(new: float) -> Iterator[str]:
    """Run the server; return its URL."""
    argv = [sys.executable, "-m", "bench.collect", "--serve", "--new", str(new)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def collector(feeds: int, every: str, seconds: float, new: float, home: Path) -> dict[str, float]:
    """Run a collector; return what it took in the time after its start."""
    with served(new) as url:
        (home / "feeds.toml").write_text(
            "".join(
                f'[[feed]]\nid = "f{n}"\nurl = "{url}/{n}"\nevery = "{every}"\n'
                for n in range(feeds)
            )
        )
        argv = [sys.executable, "-m", "jostler", "collect", "-config", str(home / "feeds.toml")]
        argv += ["-experiment", "bench", "-local-data-dir", str(home), "-min-free-disk", "0"]
        argv += ["-log-format", "json", "-prometheusx.listen-address", "127.0.0.1:0"]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            try:
                return _watched(process, seconds)
            finally:
                process.terminate()


def _watched(process: subprocess.Popen[str], seconds: float) -> dict[str, float]:
    assert process.stdout
    port = 0
    for line in process.stdout:
        found = json.loads(line)
        port = found.get("port", port)
        if found["event"] == "collect.started":
            break
    time.sleep(SETTLE_S)  # jitter, and each feed's first file
    # The status is not asked between the two looks at the clock: it takes CPU, too.
    before = _sums(port)
    began_s, cpu_s = time.monotonic(), cpu_of(process.pid)
    time.sleep(seconds)
    spent_s, cpu_s = time.monotonic() - began_s, cpu_of(process.pid) - cpu_s
    after = _sums(port)
    fetches = after["attempts"] - before["attempts"]
    status = Path(f"/proc/{process.pid}/status").read_text()
    peak_kib = int(status.partition("VmHWM:")[2].split()[0])
    return {
        "fetches_per_s": fetches / spent_s,
        "saved_per_s": (after["saved"] - before["saved"]) / spent_s,
        "failed": after["failed"],
        "cpu_us_per_fetch": cpu_s / max(1, fetches) * 1e6,
        "cores": cpu_s / spent_s,
        "peak_mib": peak_kib / 1024,
    }


def _sums(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status.json", timeout=60) as reply:
        feeds: list[dict[str, Any]] = json.load(reply)["feeds"]
    return {
        "attempts": sum(feed["attempts"] for feed in feeds),
        "saved": sum(feed["saved"] for feed in feeds),
        "failed": sum(sum(feed["failures"].values()) for feed in feeds),
    }


async def library(name: str, url: str, fetches: int) -> float:
    """Return the microseconds of CPU that a library takes for a fetch, 100 at once."""
    if name == "aiohttp":
        import aiohttp  # noqa: PLC0415 - one of two

        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:

            async def get(path: str) -> bytes:
                async with session.get(path) as reply:
                    return await reply.read()

            return await _timed(get, url, fetches)
    import httpx  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - not a dependency

    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=AT_ONCE)) as client:

        async def get_slowly(path: str) -> bytes:
            content: bytes = (await client.get(path)).content
            return content

        return await _timed(get_slowly, url, fetches)


async def _timed(get: Callable[[str], Awaitable[bytes]], url: str, fetches: int) -> float:
    numbers = iter(range(fetches))

    async def work() -> None:
        for number in numbers:
            await get(f"{url}/{number % 1000}")

    await asyncio.gather(*(get(url) for _ in range(AT_ONCE)))  # connect first
    began_s = time.process_time()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return (time.process_time() - began_s) / fetches * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feeds", type=int, default=1000)
    parser.add_argument("--every", default="1s")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--new", type=float, default=0.1)
    parser.add_argument("--libraries", action="store_true")
    parser.add_argument("--fetches", type=int, default=5000)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.new))
        return
    print(f"load before: {os.getloadavg()[0]:.1f}, of {os.cpu_count()} processors")
    if given.libraries:
        with served(1.0) as url:
            for name in ("aiohttp", "httpx"):
                if find_spec(name):
                    took_us = asyncio.run(library(name, url, given.fetches))
                    print(f"{name}: {took_us:.0f} µs of CPU for a fetch")
        return
    with tempfile.TemporaryDirectory() as home:
        found = collector(given.feeds, given.every, given.seconds, given.new, Path(home))
    print(f"{given.feeds} feeds, every {given.every}, {given.new:.0%} of the answers new:")
    for name, value in found.items():
        print(f"  {name:18} {value:,.2f}")


if __name__ == "__main__":
    main()
