"""The services of the demo: they write measurement files, and know what they wrote.

**Invariant:** a file appears in the spool whole, under its last name, by one rename; the counts are
of what was written, and ask nobody what became of it.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from demo.measurements import Measurement

PAUSE_S = 0.0005  # between two files, so that the agent is at work while they are written


@dataclass(slots=True)
class Written:
    """What the services have written so far."""

    good: Counter[str] = field(default_factory=Counter)
    bad: Counter[tuple[str, str]] = field(default_factory=Counter)
    pretty: int = 0
    yesterday: int = 0
    size_bytes: int = 0
    example: Measurement | None = None
    """A good file of several lines: what is stored of it is on one."""

    @property
    def files(self) -> int:
        """Number of all files."""
        return self.good.total() + self.bad.total()

    def _count(self, measurement: Measurement, today: str) -> None:
        if measurement.flaw:
            self.bad[measurement.datatype, measurement.flaw] += 1
        else:
            self.good[measurement.datatype] += 1
            if measurement.pretty and not self.example:
                self.example = measurement
        self.pretty += measurement.pretty
        self.yesterday += measurement.day.isoformat() != today
        self.size_bytes += len(measurement.content)

    def write(self, experiment: Path, measurement: Measurement, today: str) -> None:
        """Write a file as services should, under a hidden name first, and count it.

        Args:
            experiment: directory in the spool.
            measurement: what to write.
            today: `2026-01-02`.
        """
        directory = experiment / measurement.datatype / f"{measurement.day:%Y/%m/%d}"
        directory.mkdir(parents=True, exist_ok=True)
        hidden = directory / f".{measurement.name}"
        hidden.write_bytes(measurement.content)
        hidden.rename(directory / measurement.name)
        self._count(measurement, today)
        time.sleep(PAUSE_S)
