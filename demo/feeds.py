"""A feed of the demo: served here, collected by two replicas, loaded, and seen once by a query.

**Invariant:** the feed shows its next version only when both replicas have saved the present one,
so what must be loaded is known exactly.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

from demo.processes import DemoError
from loader.cli.sql import as_table

if TYPE_CHECKING:
    from pathlib import Path

    from demo.page import Page
    from demo.processes import Process, Processes
    from demo.questions import Questions

DATATYPE = "board1"
REPLICAS = ("north", "south")
VERSIONS = ("Airport", "City", "Airport", "Harbour")
"""What the feed shows, one after the other; the first one comes back, which is no repeat."""
SAVED_S = 30.0
TICK_S = 0.02
SCHEMA = [{"name": "Next", "type": "STRING", "description": "Where the next bus goes."}]
CONFIG = """\
[[feed]]
id = "{datatype}"
url = "{url}"
every = "100ms"
"""
SQL = """\
WITH saved AS (
  SELECT
    REGEXP_EXTRACT(archiver.Filename, r'_([0-9]{8}T[0-9.]+)Z_') AS fetched,
    REGEXP_EXTRACT(archiver.Filename, r'Z_([a-z2-7]{12})') AS body,
    raw.Next AS next
  FROM demo_raw.board1
  WHERE date > '2000-01-01'
)
SELECT fetched, next
FROM saved
WHERE TRUE
QUALIFY body IS DISTINCT FROM LAG(body) OVER (ORDER BY fetched, body)
ORDER BY fetched"""


class Feed:
    """An HTTP server on loopback with one JSON document, which `show` replaces."""

    def __init__(self) -> None:
        handler = type("Handler", (_Handler,), {"feed": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self.url = f"http://127.0.0.1:{self._server.server_port}/board.json"
        self.show(VERSIONS[0])

    def show(self, text: str) -> None:
        """Answer this from now on."""
        self.body = json.dumps({"Next": text}).encode()
        self.etag = f'"{text}"'

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Answers the document, or 304 to who has it."""

    feed: Feed

    def do_GET(self) -> None:
        """Answer."""
        etag, body = self.feed.etag, self.feed.body
        known = self.headers.get("If-None-Match") == etag
        self.send_response(304 if known else 200)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", "0" if known else str(len(body)))
        self.end_headers()
        if not known:
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""


class Replicas:
    """The collectors of one feed, each with a spool and an agent of its own.

    Args:
        home: the demo's directory.
        experiment: whose datatype the feed is.
    """

    def __init__(self, home: Path, experiment: str) -> None:
        self._home = home
        self._experiment = experiment
        self._spools = {name: home / f"spool-{name}" for name in REPLICAS}

    def collect(self, processes: Processes, page: Page, bucket: str) -> None:
        """Collect all versions twice, and archive them.

        Raises:
            DemoError: something is not saved, or not archived.
        """
        page.step("A feed that others publish: jostler collect, on two machines")
        with Feed() as feed:
            config = self._home / "feeds.toml"
            config.write_text(CONFIG.format(datatype=DATATYPE, url=feed.url), encoding="utf-8")
            page.block(config.read_text(encoding="utf-8"))
            collectors = [self._collector(processes, name, config) for name in REPLICAS]
            for count, version in enumerate(VERSIONS, 1):
                feed.show(version)
                self._until_saved(collectors, count)
        if any(one.stop() for one in collectors):
            raise DemoError("a collector did not end with status 0: see collect-*.log")
        agents = [self._agent(processes, name, bucket) for name in REPLICAS]
        for agent in agents:
            if status := agent.wait(SAVED_S):
                raise DemoError(f"{agent.name} ended with status {status}: see {agent.log.name}")
        page.say(
            f"The feed showed {', '.join(VERSIONS)}: each replica saved {len(VERSIONS)} files,"
        )
        page.say("and its agent stored them under its own node.")

    def ask(self, questions: Questions, page: Page) -> None:
        """Query what both have, each version once.

        Raises:
            DemoError: it is not what the feed showed.
        """
        page.step("What the feed showed: both replicas' rows, without repeats")
        rows = questions.count("SELECT COUNT(*) FROM demo_raw.board1 WHERE date > '2000-01-01'")
        answer = questions.query(SQL)
        page.block(SQL)
        page.say("")
        page.block(as_table(answer))
        if tuple(row[1] for row in answer.rows) != VERSIONS or rows != 2 * len(VERSIONS):
            raise DemoError(f"{rows} rows, which are not twice what the feed showed: {VERSIONS}")
        page.say(
            f"{rows} rows of two replicas are {len(VERSIONS)} versions; the Airport came back."
        )

    def _collector(self, processes: Processes, name: str, config: Path) -> Process:
        schemas = self._spools[name] / "datatypes"
        schemas.mkdir(parents=True)
        (schemas / f"{DATATYPE}.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
        return processes.python(
            f"collect-{name}",
            "jostler",
            *("collect", "-config", str(config), "-experiment", self._experiment),
            *("-local-data-dir", str(self._spools[name]), "-min-free-disk", "0"),
            *("-log-format", "json", "-prometheusx.listen-address", ""),
        )

    def _agent(self, processes: Processes, name: str, bucket: str) -> Process:
        return processes.python(
            f"agent-{name}",
            "jostler",
            *("-gcs-bucket", bucket, "-node-name", name, "-experiment", self._experiment),
            *("-datatype", DATATYPE, "-local-data-dir", str(self._spools[name])),
            *("-once", "-missed-age", "0s", "-log-format", "json"),
        )

    def _until_saved(self, collectors: list[Process], count: int) -> None:
        until = time.monotonic() + SAVED_S
        while any(self._saved(name) < count for name in REPLICAS):
            if time.monotonic() > until or not all(one.is_running() for one in collectors):
                raise DemoError("a version of the feed is not saved: see collect-*.log")
            time.sleep(TICK_S)

    def _saved(self, name: str) -> int:
        return len(list((self._spools[name] / self._experiment / DATATYPE).rglob("*.json")))
