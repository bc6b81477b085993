"""A producer that behaves well and badly, and remembers every content that it wrote.

**Invariant:** no two writes have equal bytes, so each content can be counted in the bucket.  What a
write leaves behind when it is cut off (a full disk) is remembered too, as a content that may be
stored or not.
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

DAYS = [f"2026/01/{day:02}" for day in range(1, 6)]
BAD = (b'{"UUID": %d', b'{"UUID": "%d", "Rate": "fast"}', b'["%d"]', b'{"Nobody": "%d"}')


class Fate(Enum):
    """What must become of a content that was written."""

    ONCE = "stored exactly once"
    AT_MOST_ONCE = "stored once or not at all: it was overwritten, moved away or cut off"


@dataclass(slots=True)
class Written:
    """What must become of one content of one path."""

    good: bool
    fate: Fate


Key = tuple[str, bytes]
"""A path below the datatype, and the digest of a content on one line."""


def key_of(path: str, content: bytes) -> Key:
    """Return what tells a path's contents apart; line breaks between tokens do not count."""
    one_line = content.replace(b"\n", b"").replace(b"\r", b"")
    return path, hashlib.blake2b(one_line, digest_size=16).digest()


@dataclass
class Producer:
    """Writes files below one datatype's directory until it is told to stop.

    Args:
        top: the datatype's directory in the spool.
        aside: a directory on the same file system that nobody watches.
        seed: of all chances.
        rate: files a second, about.
    """

    top: Path
    aside: Path
    seed: int
    rate: float
    written: dict[Key, Written] = field(default_factory=dict)
    current: dict[str, Key] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"producer-{self.seed}")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        deeds = (
            (self._write_by_rename, 50),
            (self._write_in_place, 25),
            (self._rename_over, 8),
            (self._rewrite_in_place, 8),
            (self._write_slowly, 2),
            (self._write_bad, 5),
            (self._move_day_away_and_back, 0.3),
            (self._delete, 0.5),
        )
        names, weights = zip(*deeds, strict=True)
        while not self._stop.is_set():
            (deed,) = self._random.choices(names, weights)
            try:
                deed()
            except OSError:  # the disk is full, or the agent took the file first
                self._count("failed")
            self._stop.wait(self._random.expovariate(self.rate))

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _content(self, *, good: bool = True) -> bytes:
        self._number += 1
        if not good:
            return self._random.choice(BAD) % (self.seed * 10**9 + self._number)
        size = self._random.choice((0, 0, 0, 2, 40))
        samples = [{"T": self._random.randrange(10**9), "Note": "é"} for _ in range(size)]
        uuid = f"{self.seed}-{self._number}"
        indent = self._random.choice((None, None, 2))
        return json.dumps({"UUID": uuid, "Rate": 1.5, "Samples": samples}, indent=indent).encode()

    def _new_path(self) -> str:
        # Moved as one with its folder, a name of its own keeps its content's fate apart.
        return f"{self._random.choice(DAYS)}/n{self._number + 1}.json"

    def _some_path(self) -> str:
        recent = list(self.current)[-40:]
        return self._random.choice(recent) if recent else self._new_path()

    def _remember(self, path: str, content: bytes, *, good: bool = True) -> None:
        """Note that a path has a content; the one that it had may have been taken or not."""
        before = self.current.get(path)
        if before is not None:
            self.written[before].fate = Fate.AT_MOST_ONCE
        key = key_of(path, content)
        self.written[key] = Written(good, Fate.ONCE)
        self.current[path] = key

    def _may_be_there(self, path: str, content: bytes) -> None:
        """Note bytes that a write which failed may have left for a moment."""
        for end in range(len(content) + 1):
            key = key_of(path, content[:end])
            self.written.setdefault(key, Written(end == len(content), Fate.AT_MOST_ONCE))

    def _prepare(self, path: str) -> Path:
        target = self.top / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _by_rename(self, path: str, content: bytes, *, good: bool = True) -> None:
        target = self._prepare(path)
        part = self.aside / f"part-{self.seed}"
        try:
            part.write_bytes(content)
        except OSError:
            with suppress(OSError):
                part.unlink()
            raise
        self._remember(path, content, good=good)
        try:
            part.rename(target)
        except OSError:
            self._may_be_there(path, content)
            self._forget(path, content)
            raise

    def _in_place(self, path: str, content: bytes, *, good: bool = True) -> None:
        target = self._prepare(path)
        before = self.current.get(path)
        if before is not None:
            self.written[before].fate = Fate.AT_MOST_ONCE
        try:
            with target.open("wb", buffering=0) as file:
                self._remember(path, content, good=good)
                if file.write(content) != len(content):
                    raise OSError("short write")
        except OSError:
            self._may_be_there(path, content)
            self._forget(path, content)
            with suppress(OSError):
                target.unlink()
            raise

    def _forget(self, path: str, content: bytes) -> None:
        self.current.pop(path, None)
        self.written[key_of(path, content)].fate = Fate.AT_MOST_ONCE

    def _write_by_rename(self) -> None:
        self._by_rename(self._new_path(), self._content())
        self._count("renamed in")

    def _write_in_place(self) -> None:
        self._in_place(self._new_path(), self._content())
        self._count("written")

    def _write_bad(self) -> None:
        self._by_rename(self._new_path(), self._content(good=False), good=False)
        self._count("bad")

    def _rename_over(self) -> None:
        self._by_rename(self._some_path(), self._content())
        self._count("renamed over")

    def _rewrite_in_place(self) -> None:
        self._in_place(self._some_path(), self._content())
        self._count("rewritten")

    def _write_slowly(self) -> None:
        """Keep a half-written file open for longer than a scan waits: it must never be taken."""
        path, content = self._new_path(), self._content()
        target = self._prepare(path)
        half = len(content) // 2
        try:
            with target.open("wb", buffering=0) as file:
                file.write(content[:half])
                time.sleep(self._random.uniform(0.1, 1.5))
                self._remember(path, content)
                if file.write(content[half:]) != len(content) - half:
                    raise OSError("short write")
        except OSError:
            self._may_be_there(path, content)
            self._forget(path, content) if path in self.current else None
            with suppress(OSError):
                target.unlink()
            raise
        self._count("written slowly")

    def _delete(self) -> None:
        """Take a file back; it may have been stored before."""
        path = self._some_path()
        if path in self.current:
            self.written[self.current.pop(path)].fate = Fate.AT_MOST_ONCE
            (self.top / path).unlink()
            self._count("deleted")

    def _move_day_away_and_back(self) -> None:
        """A directory goes while its files may be on their way, and comes back with them."""
        day = self.top / self._random.choice(DAYS)
        away = self.aside / f"day-{self.seed}"
        day.rename(away)
        time.sleep(self._random.uniform(0.0, 0.6))
        try:
            away.rename(day)
        except OSError:  # the agent or this producer made the day again meanwhile
            for file in away.iterdir():
                file.rename(self._prepare(str(day.relative_to(self.top) / file.name)))
            away.rmdir()
        self._count("day moved away and back")
