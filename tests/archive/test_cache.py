"""The cache of parsed index objects: it saves work and never changes an answer."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.archive import index_rows
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import FILE, IndexCache
from jostler.archive.catalogue import File, Query, Tally
from jostler.format.names import BundleName
from jostler.storage import open_storage
from tests.support.archive import DAY, PLACE, Entry, MadeArchive

if TYPE_CHECKING:
    from pathlib import Path

NAME = BundleName.parse(
    "autoload/v1/exp/index1/2026/01/02/20260102T030405.000001Z-foo1-n1-exp-index1.jsonl.gz"
)
ORIGIN = index_rows.origin_of(NAME, "gs://b", "foo1", "n1")
INSTANTS = st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - the zone is the next argument
    timezones=st.just(UTC),
)
FILES = st.builds(
    File,
    filename=st.text(max_size=30),
    size=st.integers(0, 1 << 62),
    added=INSTANTS,
    line=st.integers(1, 1 << 40),
    hash=st.text("0123456789abcdef", max_size=32),
    hash_of_raw=st.booleans(),
    offset=st.none() | st.integers(0, 1 << 40),
    length=st.none() | st.integers(0, 1 << 40),
    start=st.none() | INSTANTS,
    end=st.none() | INSTANTS,
    work_id=st.none() | st.text(max_size=9),
    origin=st.just(ORIGIN),
)


@pytest.fixture
def archive(tmp_path: Path) -> MadeArchive:
    made = MadeArchive(tmp_path / "bucket")
    for number in range(4):
        day = DAY + number * timedelta(days=1)
        made.put([Entry(name=f"{number}-{i}") for i in range(50)], day=day)
    return made


def listed(archive: MadeArchive, cache: IndexCache) -> tuple[list[str], int]:
    """Return what is found, and how many index objects were read from the bucket."""
    tally = Tally()
    with closing(BucketCatalogue(open_storage(archive.url), [PLACE], cache)) as catalogue:
        return [file.name for file in catalogue.files(Query(), tally)], tally.read


@given(st.lists(FILES, max_size=5))
def test_what_is_packed_is_unpacked(files: list[File]) -> None:
    """Every field of every file."""
    assert index_rows.unpack(index_rows.pack(files), ORIGIN) == files


@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_no_index_object_is_too_strange(plain: bytes) -> None:
    """Lines that are no index rows are told, one sentence each; nothing is raised."""
    from isal import isal_zlib  # noqa: PLC0415 - used here alone

    good = msgspec.json.encode({"Filename": "/a/foo1/2026/01/02/x", "Size": 1, "TimeAdded": "x"})
    files, problems = index_rows.parse(
        isal_zlib.compress(good + b"\n" + plain, 1, 31), NAME, "gs://b"
    )
    lines = [line for line in (good + b"\n" + plain).split(b"\n") if line]
    assert len(files) + len(problems) == len(lines)
    assert files[0].name == "x"


def test_an_object_of_another_version_is_read_again(archive: MadeArchive, tmp_path: Path) -> None:
    """A name alone proves nothing: an object may have been removed and made again."""
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30))[1] == 4
    (index,) = (tmp_path / "bucket").rglob("2026/01/02/*index1.jsonl.gz")
    other = next((tmp_path / "bucket").rglob("2026/01/03/*index1.jsonl.gz"))
    data = other.read_bytes()
    index.unlink()
    index.write_bytes(data)
    found, read = listed(archive, IndexCache(tmp_path / "c", 1 << 30))
    assert (read, found[:50]) == (1, [f"1-{i}" for i in range(50)])
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30)) == (found, 0)


def test_the_cache_has_a_bound(archive: MadeArchive, tmp_path: Path) -> None:
    """What was used least recently goes first; answers stay right."""
    bound = 96 * 1024
    full = listed(archive, IndexCache(None, 0))[0]
    assert listed(archive, IndexCache(tmp_path / "c", bound))[0] == full
    for number in range(6):
        day = DAY + (10 + number) * timedelta(days=1)
        archive.put([Entry(name=f"n{number}-{i}") for i in range(1500)], day=day)
        found = listed(archive, IndexCache(tmp_path / "c", bound))[0]
        size = sum(path.stat().st_size for path in (tmp_path / "c").iterdir())
        assert size <= 2 * bound
    assert found == listed(archive, IndexCache(None, 0))[0]


@pytest.mark.parametrize("damage", ["no database", "cut", "other tables", "bad rows"])
def test_a_damaged_cache_starts_anew(archive: MadeArchive, tmp_path: Path, damage: str) -> None:
    """The answer is the same, and the next one is cached again."""
    full = listed(archive, IndexCache(tmp_path / "c", 1 << 30))[0]
    path = tmp_path / "c" / FILE
    match damage:
        case "no database":
            path.write_bytes(b"no database" * 1000)
        case "cut":
            path.write_bytes(path.read_bytes()[:5000])
        case "other tables":
            path.unlink()
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("CREATE TABLE folders (x)")
        case "bad rows":
            with closing(sqlite3.connect(path)) as db, db:
                db.execute("UPDATE contents SET rows = x'00'")
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30))[0] == full
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30))[0] == full
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30))[1] == 0


def test_a_cache_that_cannot_be_written_is_as_none(archive: MadeArchive, tmp_path: Path) -> None:
    """A file in the place of its directory, say."""
    (tmp_path / "c").write_text("")
    full = listed(archive, IndexCache(None, 0))
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30)) == full


def test_two_processes_share_a_cache(archive: MadeArchive, tmp_path: Path) -> None:
    """Threads with a cache object each stand for them: all find the same."""
    full = listed(archive, IndexCache(None, 0))[0]
    found: list[list[str]] = []

    def search() -> None:
        directory = tmp_path / "c"
        found.extend(listed(archive, IndexCache(directory, 1 << 30))[0] for _ in range(3))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [full] * 12
    assert listed(archive, IndexCache(tmp_path / "c", 1 << 30))[1] == 0


def test_one_catalogue_serves_many_threads(archive: MadeArchive, tmp_path: Path) -> None:
    """At once, over one cache."""
    cache = IndexCache(tmp_path / "c", 1 << 30)
    results: list[int] = []
    with closing(BucketCatalogue(open_storage(archive.url), [PLACE], cache)) as catalogue:

        def search() -> None:
            results.extend(len(list(catalogue.files(Query()))) for _ in range(5))

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [200] * 20


def test_an_index_with_a_bad_line_is_not_cached(tmp_path: Path) -> None:
    """Its problem is told each time."""
    archive = MadeArchive(tmp_path / "bucket")
    name = replace(archive.put([Entry(name="a")]), node="n2")
    good = json.dumps({"Filename": "/v/foo1/2026/01/02/y", "Size": 1, "TimeAdded": "2026"})
    from isal import isal_zlib  # noqa: PLC0415 - used here alone

    packed = isal_zlib.compress(f"{good}\nno row\n".encode(), 1, 31)
    open_storage(archive.url).put_new(str(name), packed, {})
    for read in (2, 1):
        tally = Tally()
        cache = IndexCache(tmp_path / "c", 1 << 30)
        with closing(BucketCatalogue(open_storage(archive.url), [PLACE], cache)) as catalogue:
            assert [file.name for file in catalogue.files(Query(), tally)] == ["a", "y"]
        assert tally.read == read
        (problem,) = tally.problems
        assert "line 2 is no index row" in problem
