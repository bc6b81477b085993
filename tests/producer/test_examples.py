"""The programs of docs/producers.md: each, built and run, writes files that an agent archives."""

from __future__ import annotations

import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jostler.watchdir import open_arrivals
from tests.support.agent import once
from tests.support.bucket import problems, reasons, rows, url_of
from tests.support.spool import DATATYPE, Spool, document

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "examples/producers"
PAGE = ROOT / "docs/producers.md"
NEEDS = {"sh": "sh", "go": "go", "c": "cc"}


def built(language: str, directory: Path) -> Path:
    """Return the program, built if that is needed."""
    if not shutil.which(NEEDS[language]):
        pytest.skip(f"{NEEDS[language]} is not here")
    source = PROGRAMS / f"write.{language}"
    program = directory / "write"
    if language == "sh":
        return source
    if language == "go":
        # Without cgo and without the debugging tables: half the time, and no go.mod is needed.
        argv = ["go", "build", "-ldflags=-s -w", "-o", str(program), str(source)]
    else:
        argv = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(program), str(source)]
    subprocess.run(argv, check=True, cwd=directory)
    return program


@pytest.mark.parametrize("language", NEEDS)
def test_a_program_of_the_page_writes_a_file_that_is_archived(
    tmp_path: Path, language: str
) -> None:
    """Whole, under its name, reported by one event; a name that is taken is an error."""
    program = built(language, tmp_path)
    spool = Spool(tmp_path / "spool")
    top = spool.experiment / DATATYPE
    days = [f"{datetime.now(UTC):%Y/%m/%d}"]
    for day in days:
        (top / day).mkdir(parents=True)
    large = document(1, size=200_000)

    def write(name: str, content: bytes) -> subprocess.CompletedProcess[bytes]:
        argv = [str(program), str(top), name]
        return subprocess.run(argv, input=content, capture_output=True, check=False)

    with open_arrivals([top], extensions=(".json",)) as arrivals:
        done = write("a.json", large)
        assert (done.returncode, done.stderr) == (0, b"")
        days.append(f"{datetime.now(UTC):%Y/%m/%d}")
        arrivals.wait(5)
        names = {arrival.path.rpartition("/")[2] for arrival in arrivals.take(10)}
    assert names <= {"a.json"}
    (path,) = top.rglob("a.json")
    assert str(path.parent.relative_to(top)) in days
    assert path.read_bytes() == large
    assert path.stat().st_mode & 0o777 == 0o644
    again = write("a.json", b'{"Rate":1}')
    assert again.returncode == 1
    assert b"a.json" in again.stderr
    assert path.read_bytes() == large
    assert [path.name for path in top.glob(".tmp-*/*")] == []
    bucket = url_of(tmp_path / "bucket")
    assert once(spool, bucket).returncode == 0
    assert (problems(bucket), reasons(bucket), len(rows(bucket, DATATYPE))) == ([], {}, 1)


@pytest.mark.parametrize("language", NEEDS)
def test_the_page_shows_the_programs_as_they_are(language: str) -> None:
    """A program that is pasted from the page is the one that is tested."""
    shown = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert (PROGRAMS / f"write.{language}").read_text() in shown
