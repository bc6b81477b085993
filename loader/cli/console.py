"""The loader's output for an operator: events, progress, and a table of days at the end.

**Invariant:** events and progress go to standard error, the result to standard output.  On a
terminal events are sentences, and progress is one line that is overwritten; elsewhere each event is
one JSON object on its own line.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import Accumulator, StatusTracker
    from pyspark.sql import SparkSession

TICK_S = 0.5
_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
_PREFIXES = {"info": "", "warning": "warning: ", "error": "error: "}


@dataclass(slots=True, kw_only=True)
class Progress:
    """The progress of verifying the days of a run.

    Attributes:
        days: the number of days in all.
        size_bytes: the size of all their objects.
        began_s: when verifying began, monotonic seconds.
        done_days: the number of days in earlier waves.
        done_bytes: the size of the objects of earlier waves.
        done_rows: the number of rows of earlier waves.
        now: for each wave at work, bytes and rows that are done.
        lock: held while any of these is changed.
    """

    days: int
    size_bytes: int
    began_s: float = field(default_factory=time.monotonic)
    done_days: int = 0
    done_bytes: int = 0
    done_rows: int = 0
    now: dict[str, tuple[float, int]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, days: int, size_bytes: int, rows: int) -> None:
        """Count days that are verified."""
        with self.lock:
            self.done_days += days
            self.done_bytes += size_bytes
            self.done_rows += rows

    def line(self, now_s: float) -> str:
        """Return the progress line; it counts what is done of the waves at work, too."""
        with self.lock:
            waves = list(self.now.values())
        size_bytes = self.done_bytes + sum(done for done, _ in waves)
        rows = self.done_rows + sum(count for _, count in waves)
        part = min(1.0, size_bytes / max(1, self.size_bytes))
        what = f"{self.done_days} of {self.days} days"
        return bar(what, part, max(0.001, now_s - self.began_s), self.size_bytes, rows)


class Console:
    """The console output of one run.

    Args:
        out: the stream for the result.
        err: the stream for events and progress.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._err = err or sys.stderr
        self._live = self._err.isatty()
        self._lock = threading.Lock()

    def event(self, event: str, level: str = "info", **facts: object) -> None:
        """Write an event: a constant name and its fields."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._live and level == "debug":
            return
        if self._live:
            self._write(f"\r\x1b[K{_PREFIXES[level]}{_plain(sentence(event, facts))}\n")
        else:
            line = {"time": now, "level": level, "event": event, "logger": "loader", **facts}
            self._write(json.dumps(line, default=str) + "\n")

    def spark_line(self, line: str) -> None:
        """Show a line of the log of Spark's JVM as an event; on a terminal only errors."""
        bad = " ERROR " in line or "Exception" in line
        self.event("spark.said", "warning" if bad else "debug", line=line)

    def _write(self, text: str) -> None:
        with self._lock:
            self._err.write(text)
            self._err.flush()

    def result(self, text: str) -> None:
        """Write a line of the result; names in it may have control characters, which are not."""
        with self._lock:
            self._out.write(_plain(text) + "\n")
            self._out.flush()

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Write a table with a heading; numbers are aligned to the right."""
        shown = [[_plain(cell) for cell in row] for row in rows]
        widths = [max(map(len, column)) for column in zip(head, *shown, strict=True)]
        right = [
            bool(rows) and all(isinstance(row[at], int | float) for row in rows)
            for at in range(len(head))
        ]
        for line in [list(head), *shown]:
            cells = (
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(line, widths, right, strict=True)
            )
            self.result("  ".join(cells).rstrip())

    @contextmanager
    def progress(
        self,
        spark: SparkSession,
        progress: Progress,
        wave: tuple[int, int],
        counted: Accumulator[int],
    ) -> Iterator[None]:
        """Show the run's progress on a terminal while Spark works on a wave.

        Args:
            spark: the session.
            progress: the run's progress; the wave is added to it at the end, unless it fails.
            wave: the number of the wave's days, and the size of their objects.
            counted: returns how many rows of the wave are verified so far.
        """
        with self._following(spark, progress, wave[1], counted) if self._live else nullcontext():
            yield
        progress.add(*wave, counted.value)

    @contextmanager
    def _following(
        self, spark: SparkSession, progress: Progress, size_bytes: int, counted: Accumulator[int]
    ) -> Iterator[None]:
        stop = threading.Event()
        group = f"wave-{uuid.uuid4().hex}"
        spark.sparkContext.setJobGroup(group, "verify")
        arguments = (spark, progress, (group, size_bytes), counted, stop)
        thread = threading.Thread(target=self._follow, args=arguments, name="progress")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            with progress.lock:
                progress.now.pop(group, None)
            self._write("\r\x1b[K")

    def _follow(
        self,
        spark: SparkSession,
        progress: Progress,
        wave: tuple[str, int],
        counted: Accumulator[int],
        stop: threading.Event,
    ) -> None:
        """Show the progress of the first stage, which verifies; later stages are short."""
        group, size_bytes = wave
        tracker = spark.sparkContext.statusTracker()
        first: int | None = None
        while not stop.wait(TICK_S):
            if first is None:
                first = min(_stages(tracker, group), default=None)
            stage = None if first is None else tracker.getStageInfo(first)
            if stage:
                done = size_bytes * stage.numCompletedTasks / stage.numTasks
                with progress.lock:
                    progress.now[group] = done, counted.value
                self._write("\r\x1b[K" + progress.line(time.monotonic()))


def _stages(tracker: StatusTracker, group: str) -> list[int]:
    """Return the stages of the Spark jobs of a group."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    return [stage for job in jobs if job for stage in job.stageIds]


def sentence(event: str, facts: Mapping[str, object]) -> str:
    """Write an event as a sentence: what it concerns, what happened, why; without a trace."""
    facts = {key: value for key, value in facts.items() if value != "" and key != "trace"}
    about = [
        str(facts.pop(key)) for key in ("table", "what", "view", "object", "day") if key in facts
    ]
    why = [str(facts.pop(key)) for key in ("why", "error") if key in facts]
    if event.startswith("day.") and "loaded" in facts:
        counts = ", ".join(
            f"{facts[key]} {key}" for key in ("rejected", "repeated") if facts.get(key)
        )
        rows = f"{facts['loaded']} of {facts.get('read', 0)} rows loaded"
        parts = [event.removeprefix("day."), f"{rows}, {counts}" if counts else rows]
    else:
        parts = [event.replace(".", " ").replace("_", " ")]
        parts += [f"{key} {value}" for key, value in facts.items()]
    return ": ".join(part for part in (" ".join(about), ", ".join(parts), *why) if part)


def bar(what: str, part: float, spent_s: float, size_bytes: int, rows: int) -> str:
    """Return one progress line.

    Args:
        what: what is being done.
        part: the fraction done, 0 to 1.
        spent_s: the seconds so far.
        size_bytes: the size of the whole.
        rows: the number of rows done.
    """
    filled = round(part * 20)
    drawn = "#" * filled + "." * (20 - filled)
    left = ""
    if part == 1:
        left = ", looking for repeated rows"
    elif part:
        left = f", {spent_s / part * (1 - part):.0f} s left"
    speed = f"{rows / spent_s:,.0f} rows/s, {size(size_bytes * part / spent_s)}/s packed"
    return f"{what} [{drawn}] {part:.0%} {speed}{left}"


def size(count: float) -> str:
    """Write a number of bytes for people."""
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:  # noqa: PLR2004 - of one prefix to the next
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def _plain(value: object) -> str:
    """Write a value on one line, without control characters."""
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return "".join(char if char.isprintable() else "?" for char in text)
