"""The promise itself, over random sequences of what can happen to a tree."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.watchdir import Pace, open_arrivals

DIRECTORIES = ["", "a", "a/b", "a/b/c", "b", "b/a", ".h", ".h/a"]
FILES = [f"{directory}/{name}".strip("/") for directory in DIRECTORIES for name in ("x", "y")]

inside = st.sampled_from(["in", "out"]).flatmap(
    lambda side: st.sampled_from(DIRECTORIES).map(lambda path: f"{side}/{path}".rstrip("/"))
)
file = st.sampled_from(["in", "out"]).flatmap(
    lambda side: st.sampled_from(FILES).map(lambda path: f"{side}/{path}.json")
)
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["mkdir", "rmtree"]), inside, st.none()),
        st.tuples(st.sampled_from(["write", "link"]), file, st.none()),
        st.tuples(st.just("rename"), file, file),
        st.tuples(st.just("move"), inside, inside),
        st.tuples(st.just("take"), st.just(""), st.none()),
    ),
    max_size=25,
)


def perform(base: Path, what: str, first: str, second: str | None) -> None:
    """Do one thing, if the tree as it is allows it."""
    path = base / first
    other = base / (second or "")
    if what == "mkdir":
        path.mkdir(parents=True, exist_ok=True)
    elif what == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    elif what == "rmtree":
        shutil.rmtree(path)
    elif what == "link":
        os.link(base / "source", path)
        (base / "source").unlink()  # a write through another name gives no event, by design
        (base / "source").touch()
    else:
        path.rename(other)


def snapshot(base: Path) -> dict[str, tuple[int, int]]:
    """Tell what each file to report is, so that a change of any kind shows."""
    found = {}
    for directory, below, names in os.walk(base / "in"):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            path = f"{directory}/{name}"
            stat = os.lstat(path)
            found[path] = (stat.st_ino, stat.st_mtime_ns)
    return found


@settings(max_examples=100, deadline=None)
@given(happens=steps, buffer_limit=st.sampled_from([3, 1_000]))
def test_each_file_is_reported_after_its_last_change(
    happens: list[tuple[str, str, str | None]], buffer_limit: int
) -> None:
    """Whatever happened, and whenever it was read, no file is left without a report."""
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for side in ("in", "out"):
            (base / side).mkdir()
        (base / "source").touch()
        pace = Pace(look_every_s=0.005, hint_after_s=0.005, buffer_limit=buffer_limit)
        with open_arrivals([base / "in"], extensions=(".json",), pace=pace) as arrivals:
            while arrivals.scanning:
                arrivals.take(1)
            owed: set[str] = set()
            before: dict[str, tuple[int, int]] = {}
            for what, first, second in happens:
                if what == "take":
                    owed -= {path for path, _ in arrivals.take(2)}
                    continue
                with suppress(OSError):
                    perform(base, what, first, second)
                now = snapshot(base)
                changed = {path for path in now if before.get(path) != now[path]}
                owed, before = (owed & now.keys()) | changed, now
            deadline_s = time.monotonic() + 60
            while owed and time.monotonic() < deadline_s:
                arrivals.wait(0.05)
                owed -= {path for path, _ in arrivals.take(2)}
            assert not owed
