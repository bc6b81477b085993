"""What the operator sees, on a terminal and elsewhere."""

from __future__ import annotations

import io
import json
import threading
import time
from typing import TYPE_CHECKING

import pytest
from google.api_core import exceptions as api

from loader.bigquery.warehouse import _translated
from loader.cli import console as tell
from loader.cli.console import Console, Progress, bar, sentence
from loader.errors import WarehouseError
from tests.loader.world import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_says_rows_bytes_and_time_left() -> None:
    """On one line; before the first task has ended nothing is known of the time left."""
    assert bar("3 days", 0.25, 2.0, 8_000_000, 5000) == (
        "3 days [#####...............] 25% 2,500 rows/s, 1.0 MB/s packed, 6 s left"
    )
    assert bar("3 days", 1.0, 2.0, 8_000_000, 5000).endswith("packed, looking for repeated rows")
    assert bar("1 day", 0.0, 2.0, 8, 0).endswith("0% 0 rows/s, 0 B/s packed")


def test_progress_is_of_the_whole_run_and_not_of_a_wave() -> None:
    progress = Progress(days=40, size_bytes=8_000_000, began_s=10.0)
    progress.done_days, progress.done_bytes, progress.done_rows = 16, 3_000_000, 4000

    progress.now = {"one wave": (600_000, 400), "another": (400_000, 600)}
    told = progress.line(now_s=14.0)

    assert told == (
        "16 of 40 days [##########..........] 50% 1,250 rows/s, 1.0 MB/s packed, 4 s left"
    )


def test_an_event_says_what_it_is_about_what_happened_and_why() -> None:
    loaded = {"table": "p.raw_e.x1", "day": "2026-01-02", "reason": "new", "attempt": 1}
    loaded |= {"read": 9, "loaded": 7, "rejected": 2, "repeated": 0, "why": ""}
    assert sentence("day.success", loaded) == (
        "p.raw_e.x1 2026-01-02: success, 7 of 9 rows loaded, 2 rejected"
    )
    failed = {**loaded, "loaded": 0, "rejected": 0, "why": "no such object"}
    assert sentence("day.failed", failed) == (
        "p.raw_e.x1 2026-01-02: failed, 0 of 9 rows loaded: no such object"
    )
    assert sentence("datatype.failed", {"what": "p.raw_e.x1", "error": "no date"}) == (
        "p.raw_e.x1: datatype failed: no date"
    )
    assert sentence("staging.swept", {"objects": 7}) == "staging swept, objects 7"
    assert sentence("day.crashed", {"day": "d", "error": "e", "trace": "T"}) == "d: day crashed: e"


def test_events_are_sentences_on_a_terminal_and_objects_elsewhere() -> None:
    """No text of an event moves the cursor, or ends its line."""
    screen, file = Terminal(), io.StringIO()
    for err in (screen, file):
        Console(io.StringIO(), err).event("day.failed", "error", why="a\x1b[2Jb\nc", read=2)

    assert screen.getvalue() == "\r\x1b[Kerror: day failed, read 2: a?[2Jb?c\n"
    told = json.loads(file.getvalue())
    assert (told["event"], told["level"], told["why"]) == ("day.failed", "error", "a\x1b[2Jb\nc")
    assert file.getvalue().count("\n") == 1


def test_numbers_of_a_table_stand_to_the_right() -> None:
    out = io.StringIO()
    Console(out, io.StringIO()).table(("day", "read"), [("2026-01-02", 7), ("x", 1234)])
    assert out.getvalue() == "day         read\n2026-01-02     7\nx           1234\n"


def test_progress_goes_on_while_later_stages_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It follows the first stage to its end, and does not begin anew with the next."""
    monkeypatch.setattr(tell, "TICK_S", 0.02)
    screen = Terminal()
    gates = [str(tmp_path / name) for name in ("verify", "later")]

    def waits(gate: str, number: int) -> None:
        import os  # noqa: PLC0415 - in the worker

        if number == 1:
            open(f"{gate}.waits", "w").close()  # noqa: PTH123 - as above
            while not os.path.exists(gate):  # noqa: PTH110 - as above
                time.sleep(0.01)

    def work() -> None:
        with Console(io.StringIO(), screen).progress(
            spark,
            Progress(days=1, size_bytes=10**6),
            (1, 10**6),
            spark.sparkContext.accumulator(0),
        ):
            for gate in gates:
                numbers = spark.sparkContext.parallelize(range(2), 2)
                numbers.foreach(lambda number, gate=gate: waits(gate, number))

    def shows(text: str) -> None:
        wait_until(text, lambda: text in screen.getvalue())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        shows("] 50%")
        (tmp_path / "verify").touch()
        wait_until("the next stage", (tmp_path / "later.waits").exists)
        shows("] 100%")
        before = len(screen.getvalue())
        wait_until("more of it", lambda: len(screen.getvalue()) > before + 200)
    finally:
        for name in ("verify", "later"):
            (tmp_path / name).touch()
        thread.join()

    after = screen.getvalue()[before:]
    assert "] 50%" not in after
    assert after.endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("exc", "told"),
    [
        (
            api.BadRequest("POST http://h/q?x=1: no table", errors=[{"message": "no table"}]),
            "query: BigQuery refuses (400): no table",
        ),
        (api.Forbidden("GET http://h/q: no\nway"), "query: BigQuery refuses (403): no way (grant"),
        (api.ServiceUnavailable("POST http://h/q: "), "query: BigQuery fails (503)"),
    ],
)
def test_what_bigquery_answers_is_told_without_the_request(
    exc: api.GoogleAPICallError, told: str
) -> None:
    with pytest.raises(WarehouseError) as caught, _translated("query"):
        raise exc

    assert str(caught.value).startswith(told)
    assert "http" not in str(caught.value)
