"""How long the archive's pages take for a large archive, from a warm summary.

usage: python -m bench.serve [--nodes 1000] [--datatypes 3] [--requests 20]

The archive is made up: sums of nodes by days, as a catalogue gives them.  What is measured is ours:
summing up, writing the page, HTTP on loopback.
"""

from __future__ import annotations

import argparse
import http.client
import statistics
import threading
import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import uvicorn

from jostler.archive.catalogue import NodeDay, Query, Rejects, Tally
from jostler.archive.serve.app import application
from jostler.archive.serve.served import Archive
from jostler.archive.serve.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator

TODAY = date(2026, 1, 31)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class MadeCatalogue:
    """Sums of an archive that does not exist."""

    def __init__(self, nodes: int, datatypes: int) -> None:
        self._nodes = [f"mlab{n % 4 + 1}-abc{n // 4:03d}" for n in range(nodes)]
        self._datatypes = [f"type{n}" for n in range(datatypes)]

    def days(self, query: Query, _tally: Tally | None = None) -> Iterator[NodeDay]:
        day = query.first_day
        assert day
        for datatype in self._datatypes:
            for number, node in enumerate(self._nodes):
                if (number + day.toordinal()) % 50:
                    files = 20 + (number * 7 + day.toordinal() * 13) % 400
                    files = files * (2 + day.toordinal() % 7) // 8  # weeks have their shape
                    at = datetime(day.year, day.month, day.day, 11, tzinfo=UTC)
                    yield NodeDay(
                        day=day,
                        datatype=datatype,
                        node=node,
                        bundles=24,
                        files=files,
                        size_bytes=files * 4000,
                        first=at,
                        last=at,
                    )

    def rejects(self, query: Query, _tally: Tally | None = None) -> Iterator[Rejects]:
        day = query.first_day
        assert day
        if day.day % 5 == 0:
            yield Rejects(
                day=day, datatype=self._datatypes[0], node=self._nodes[0], reason="type", files=3
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--datatypes", type=int, default=3)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--keep", action="store_true", help="serve until Ctrl-C")
    given = parser.parse_args()
    catalogue = MadeCatalogue(given.nodes, given.datatypes)
    summary = Summary(catalogue, lambda: TODAY)  # type: ignore[arg-type]
    began = time.perf_counter()
    while summary.refresh(0.0):
        pass
    print(f"{given.nodes} nodes, {given.datatypes} datatypes, {len(summary.window)} days")
    print(f"summing up:      {time.perf_counter() - began:8.3f} s")
    archive = Archive(
        name="made",
        catalogue=catalogue,  # type: ignore[arg-type]
        contents=None,  # type: ignore[arg-type]
        summary=summary,
        ledger=None,
        hosts=frozenset(),
        clock=lambda: NOON,
    )
    config = uvicorn.Config(application(archive), port=0, log_level="warning", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for path in ("/", "/datatype/type0", "/datatype/type0?sort=last"):
        seconds, size = zip(*(_get(port, path) for _ in range(given.requests)), strict=True)
        print(
            f"{path:26} median {statistics.median(seconds):6.3f} s, "
            f"longest {max(seconds):6.3f} s, {size[0]:,} bytes"
        )
    if given.keep:
        print(f"http://127.0.0.1:{port}/")
        thread.join()
    server.should_exit = True
    thread.join()


def _get(port: int, path: str) -> tuple[float, int]:
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 200, body
    connection.close()
    return time.perf_counter() - began, len(body)


if __name__ == "__main__":
    main()
