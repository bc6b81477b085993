"""The made-up archive of `jostler serve -demo`: as an agent's, with all that pages show."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from jostler.archive import sample
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.catalogue import Query, latest
from jostler.archive.reading import Row, RowReader
from jostler.archive.sample import DAYS, MISSED_DAYS_AGO, NODES, PLACE, SILENT, SILENT_DAYS
from jostler.cli.main import main
from jostler.storage import open_storage
from tests.support.agent import environment
from tests.support.serving import Answer, get

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
TODAY = NOW.date()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    bucket = open_storage(tmp_path_factory.mktemp("sample").as_uri())
    made = sample.write(bucket, NOW)
    assert made.files > 1000
    return bucket.url


@pytest.fixture(scope="module")
def catalogue(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketCatalogue]:
    cache = IndexCache(tmp_path_factory.mktemp("cache"), 1 << 30)  # each index is read once
    with closing(BucketCatalogue(open_storage(url), [PLACE], cache)) as opened:
        yield opened


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def test_every_row_is_where_its_index_says_and_has_its_hash(
    url: str, catalogue: BucketCatalogue, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rejected ones too; `jostler verify` has nothing to say."""
    files = list(catalogue.files(Query(first_day=ago(10), with_rejected=True)))
    with closing(RowReader(open_storage)) as reader:
        rows = list(reader.read_all(files))

    assert {file.datatype for file in files} == {"speed1", "ping1", "rejected1"}
    assert all(isinstance(row, Row) and row.verified for row in rows)
    assert main(["verify", url]) == 0
    assert "0 problems" in capsys.readouterr().out


def test_a_silent_node_a_missing_day_and_rejected_files_can_be_found(
    catalogue: BucketCatalogue,
) -> None:
    days = list(catalogue.days(Query()))
    of_pings = {one.day for one in days if one.datatype == "ping1"}
    newest = {file.node: file for file in latest(catalogue, Query(datatypes=("speed1",)), NOW)}

    assert {one.day for one in days} == {ago(n) for n in range(DAYS)}
    assert {ago(n) for n in range(DAYS)} - of_pings == {ago(MISSED_DAYS_AGO)}
    assert set(newest) == set(NODES)
    assert newest[SILENT].origin.day == ago(SILENT_DAYS)
    assert all(file.origin.day >= ago(1) for node, file in newest.items() if node != SILENT)
    assert all(file.finish <= NOW for file in newest.values())
    assert sum(one.files for one in catalogue.rejects(Query(datatypes=("speed1",)))) > 1


class Demo:
    """A process of `jostler serve -demo`, with a temporary directory of its own."""

    def __init__(self, tmp: Path) -> None:
        argv = ["-demo", "-listen-address=127.0.0.1:0", "-allowed-hosts=archive.example.org"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jostler", "serve", *argv],
            env={**environment(), "TMPDIR": str(tmp), "BUCKET": "gs://is-not-used"},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr
        self.told = ""
        while not (found := re.search(r"is served on http://127\.0\.0\.1:(\d+)/", self.told)):
            line = self.process.stderr.readline()
            assert line, self.told
            self.told += line
        self.port = int(found[1])

    def get(self, path: str, **parameters: object) -> Answer:
        return get(self.port, path, **parameters)  # type: ignore[arg-type]

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        with self.process:
            return self.process.wait(timeout=200)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_demo_shows_an_archive_and_leaves_nothing_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    """No flag is needed; the overview fills by itself, and files can be read."""
    demo = Demo(tmp_path)
    try:
        (made,) = tmp_path.iterdir()
        assert f"-bucket {made.as_uri()} -experiment demo" in demo.told
        until = time.monotonic() + 60
        while "not read yet, " in (page := demo.get("/").text) or "speed1" not in page:
            assert time.monotonic() < until
            time.sleep(0.05)
        record = demo.get(f"/v0/archive/latest/speed1/{NODES[0]}").json
        assert demo.get(record["data"]).json["Node"] == NODES[0]
        assert demo.get("/health/", host="archive.example.org").json["status"] == "ok"
        assert demo.get("/health/", host="other.example.org").status == 421
    finally:
        status = demo.end(number)

    assert status in {0, -number, 128 + number}
    assert list(tmp_path.iterdir()) == []
