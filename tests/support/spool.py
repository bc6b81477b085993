"""Write a spool as measurement services do, and keep a copy of every file for comparison."""

from __future__ import annotations

import json
import os
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT = "exp"
DATATYPE = "foo1"
DAY = "2026/01/02"
SCHEMA = [
    {"name": "UUID", "type": "STRING", "description": "Names the measurement."},
    {"name": "StartTime", "type": "TIMESTAMP", "description": "When it began."},
    {"name": "Rate", "type": "FLOAT", "description": "Mbit/s."},
    {
        "name": "Samples",
        "type": "RECORD",
        "mode": "REPEATED",
        "description": "What was measured.",
        "fields": [
            {"name": "T", "type": "INTEGER", "description": "Microseconds."},
            {"name": "Note", "type": "STRING", "description": "Free text."},
        ],
    },
]


def document(number: int, *, size: int = 300) -> bytes:
    """Return a valid document of about `size` bytes; equal arguments give equal bytes."""
    rng = random.Random(number)
    value: dict[str, object] = {
        "UUID": f"u-{number}-{rng.randrange(1 << 60):x}",
        "StartTime": f"2026-01-02T03:04:05.{rng.randrange(10**9):09d}Z",
        "Rate": rng.random() * 1000,
    }
    samples = [
        {"T": rng.randrange(10**9), "Note": f"é{rng.randrange(1000)}"}
        for _ in range(max(0, size - 100) // 34)
    ]
    return json.dumps({**value, "Samples": samples}, separators=(",", ":")).encode()


class Spool:
    """A spool below `root`, with datatype schemas in place.

    Args:
        root: a directory that does not exist yet or is empty.
        datatypes: names; all have the same schema.
    """

    def __init__(self, root: Path, *datatypes: str) -> None:
        self.root = root
        self.originals = root.parent / f"{root.name}.originals"
        self.datatypes = datatypes or (DATATYPE,)
        (root / "datatypes").mkdir(parents=True)
        for datatype in self.datatypes:
            self.schema_file(datatype).write_text(json.dumps(SCHEMA))
            (self.experiment / datatype).mkdir(parents=True)

    @property
    def experiment(self) -> Path:
        return self.root / EXPERIMENT

    @property
    def state_dir(self) -> Path:
        return self.root / f".jostler-{EXPERIMENT}"

    def schema_file(self, datatype: str) -> Path:
        return self.root / "datatypes" / f"{datatype}.json"

    def write(
        self,
        name: str,
        content: bytes,
        *,
        datatype: str = DATATYPE,
        day: str = DAY,
        rename: bool = False,
        keep: bool = True,
        age_s: float = 0,
    ) -> Path:
        """Write a file in place or by rename, and keep a copy beside the spool."""
        path = self.experiment / datatype / day / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if keep:
            copy = self.originals / datatype / day / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        if rename:
            hidden = path.with_name(f".{name}.part")
            hidden.write_bytes(content)
            hidden.rename(path)
        else:
            path.write_bytes(content)
        if age_s:
            when = path.stat().st_mtime - age_s
            os.utime(path, (when, when))
        return path

    def write_many(self, count: int, *, first: int = 0, size: int = 300) -> None:
        """Write valid files, half of them by rename."""
        for number in range(first, first + count):
            self.write(f"m{number}.json", document(number, size=size), rename=number % 2 == 0)

    def left(self) -> list[str]:
        """Return the files that are still in the spool."""
        found = []
        for datatype in self.datatypes:
            top = self.experiment / datatype
            found += [str(p.relative_to(top)) for p in top.rglob("*") if not p.is_dir()]
        return sorted(found)

    def journal(self) -> list[str]:
        """Return the journal's entries."""
        names = [p.name for p in self.state_dir.glob("*")] if self.state_dir.exists() else []
        return sorted(
            name for name in names if name not in {"lock", "reserve", "judging", "vanished"}
        )
