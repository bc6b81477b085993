"""Bundles: whatever arrives is in exactly one of them, in order, below the limits."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.bundle import (
    Archiver,
    Bundle,
    Entry,
    Facts,
    FileState,
    InFlightBundles,
    Journal,
    Limits,
    OpenBundle,
    OpenBundles,
    Put,
    Record,
    Rejection,
    SealReason,
    Stamp,
    content_hash,
)
from jostler.bundle.bundle import IndexForm
from jostler.bundle.entry import Entries
from jostler.bundle.index import index_object
from jostler.bundle.record import read
from jostler.format.compression import AUTO
from jostler.format.names import Day, Place
from jostler.format.row import one_line
from tests.support.spool import document
from tests.unit.bundle.parts import header

if TYPE_CHECKING:
    from pathlib import Path

STAMP = Stamp(
    bucket="gs://bkt",
    place=Place(data_dir="autoload/v1", organization="", experiment="exp"),
    node="node1",
    archiver=Archiver(version="jostler@1.2.3", commit="abc"),
    compression=AUTO,
    schemas={"rejected1": "5ca1ab1e"},
)
DAY = Day(date(2026, 1, 2))
numbers = st.integers(0, 2**63 - 1)
entries = st.builds(
    Entry,
    path=st.text(min_size=1).map(lambda text: f"foo1/2026/01/02/{text}"),
    state=st.builds(FileState, numbers, numbers, numbers, numbers),
    added_us=st.integers(0, 4 * 10**15),
    hash=st.one_of(st.just(b""), st.binary(min_size=16, max_size=16)),
)


class Clock:
    def __init__(self) -> None:
        self.s = 0.0

    def monotonic_s(self) -> float:
        return self.s

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def bundles_of(
    sealed: list[Bundle], clock: Clock, in_flight: InFlightBundles | None = None, **limits: int
) -> OpenBundles:
    return OpenBundles(
        STAMP,
        Limits(max_bytes=limits.get("max_bytes", 10_000), max_age_s=3600),
        in_flight or InFlightBundles(),
        memory_max=limits.get("memory_max", 10**9),
        sealed=lambda _, bundle: sealed.append(bundle),
        monotonic_s=clock.monotonic_s,
        now=clock.now,
    )


def entry(number: int, content: bytes) -> Entry:
    path = f"foo1/2026/01/02/m{number}.json"
    return Entry(path, FileState(number, len(content), 1, 1), 10**15, content_hash(content))


@settings(deadline=None)  # on a busy machine a thread that compresses may wait for long
@given(st.lists(st.integers(0, 2000), max_size=40), st.integers(1500, 9000))
def test_any_arrivals_end_in_one_bundle_each_in_order(sizes: list[int], most: int) -> None:
    """No line is lost, none is twice, and no bundle of several lines is over the limit."""
    sealed: list[Bundle] = []
    held = bundles_of(sealed, Clock(), max_bytes=most)
    taken = []
    for number, size in enumerate(sizes):
        content = document(number, size=size)
        put = held.add("foo1", DAY, entry(number, content), content)
        assert put in {Put.ADDED, Put.TOO_BIG}
        if put is Put.ADDED:
            taken.append(json.loads(content))
    held.seal_all(SealReason.SHUTDOWN)

    rows = [gzip.decompress(bundle.data) for bundle in sealed]
    assert [json.loads(line)["raw"] for part in rows for line in part.splitlines()] == taken
    assert all(len(part) <= most for part in rows)
    assert len({str(bundle.header.name) for bundle in sealed}) == len(sealed)


def test_names_differ_although_the_clock_stands_still() -> None:
    """Two bundles opened in the same microsecond must not collide."""
    sealed: list[Bundle] = []
    held = bundles_of(sealed, Clock(), max_bytes=400)
    for number in range(5):
        held.add("foo1", DAY, entry(number, b"{}"), b'{"UUID":"%s"}' % (b"x" * 100))
    held.seal_all(SealReason.SHUTDOWN)
    created = [bundle.header.name.created for bundle in sealed]
    assert created == sorted(set(created))
    assert created[1] - created[0] == timedelta(microseconds=1)


def test_a_bundle_is_sealed_when_its_first_file_is_old_enough() -> None:
    """Age counts from the first file, and `seal_aged` says when it will look again."""
    sealed: list[Bundle] = []
    clock = Clock()
    held = bundles_of(sealed, clock)
    held.add("foo1", DAY, entry(1, b"{}"), b"{}")
    clock.s = 3000
    held.add("foo1", DAY, entry(2, b"{}"), b"{}")
    assert held.seal_aged() == 600
    assert not sealed
    clock.s = 3600
    assert held.seal_aged() is None
    assert len(sealed[0].attempt.entries) == 2


def test_the_open_bundles_say_when_there_is_no_room_and_seals_the_largest() -> None:
    """What finds no room stays on disk until a sealed bundle is released."""
    sealed: list[Bundle] = []
    in_flight = InFlightBundles()
    held = bundles_of(sealed, Clock(), in_flight, max_bytes=10_000, memory_max=5_000)
    number = 0
    content = document(1, size=1000)
    while held.add("foo1", DAY, entry(number, content), content) is Put.ADDED:
        number += 1
        assert held.held_bytes <= 5_000
    assert in_flight.sealed_bytes >= 2_500
    for one in list(in_flight):
        if one.on_its_way:
            in_flight.given_back(one)
    assert in_flight.sealed_bytes == 0
    assert held.add("foo1", DAY, entry(number, content), content) is Put.ADDED


@given(st.lists(entries, max_size=20))
def test_entries_come_out_as_they_went_in(some: list[Entry]) -> None:
    """Kept by column, read by row."""
    assert list(Entries(some)) == some


def test_index_rows_follow_the_data_rows() -> None:
    """Same order, and what a reader needs to fetch one row."""
    sealed: list[Bundle] = []
    held = bundles_of(sealed, Clock(), max_bytes=10**7)
    contents = [document(number, size=2000) for number in range(400)]
    for number, content in enumerate(contents):
        held.add("foo1", DAY, entry(number, content), content)
    held.seal_all(SealReason.SHUTDOWN)
    (bundle,) = sealed

    plain = gzip.decompress(index_object(bundle.header, bundle.attempt))
    rows = [json.loads(line) for line in plain.splitlines()]

    assert [row["raw"]["Line"] for row in rows] == list(range(1, 401))
    assert [row["raw"]["Filename"] for row in rows] == [
        f"2026/01/02/m{number}.json" for number in range(400)
    ]
    assert len({row["raw"]["Offset"] for row in rows}) > 1
    assert rows[0] == {
        "date": "2026-01-02",
        "archiver": {
            "Version": "jostler@1.2.3",
            "GitCommit": "abc",
            "ArchiveURL": f"gs://bkt/{bundle.header.index_name}",
            "Filename": "2026/01/02/m0.json",
        },
        "raw": {
            "Filename": "2026/01/02/m0.json",
            "Size": len(contents[0]),
            "TimeAdded": "2001-09-09T01:46:40.000000Z",
            "Datatype": "foo1",
            "Node": "node1",
            "ArchiveURL": f"gs://bkt/{bundle.header.name}",
            "Line": 1,
            "Hash": content_hash(contents[0]).hex(),
            "Offset": bundle.attempt.blocks[0].offset,
            "Length": bundle.attempt.blocks[0].length,
            "Start": "1970-01-01T00:00:00.000000Z",
            "End": None,
            "WorkID": None,
        },
    }


def test_index_rows_have_the_facts_of_their_files() -> None:
    """Null where there is none; the file's time where no flag says another."""
    times = FileState(1, 2, 1_700_000_000_123_456_789, 5)
    facts = Facts(1_600_000_000_000_001, 1_600_000_060_000_000, "job-7")
    attempt = sealed_with(
        Entry("foo1/2026/01/02/a", times, 5, b"h"),
        Entry("foo1/2026/01/02/b", times, 5, b"h", facts),
        Entry("foo1/2026/01/02/c", times, 5, b"h", Facts(None, None, None)),
    )
    assert [(raw["Start"], raw["End"], raw["WorkID"]) for raw in indexed(attempt)] == [
        ("2023-11-14T22:13:20.123456Z", None, None),
        ("2020-09-13T12:26:40.000001Z", "2020-09-13T12:27:40.000000Z", "job-7"),
        (None, None, None),
    ]


def sealed_with(*some: Entry, form: IndexForm = IndexForm.WITH_FACTS) -> Bundle:
    one = OpenBundle(replace(header(), index_form=form), opened_s=0.0)
    for each in some:
        one.add(each, one.row(each.filename, b"{}"))
    return one.seal()


def indexed(bundle: Bundle) -> list[dict[str, Any]]:
    plain = gzip.decompress(index_object(bundle.header, bundle.attempt))
    return [json.loads(line)["raw"] for line in plain.splitlines()]


def test_a_record_of_an_earlier_version_makes_the_index_of_that_version(tmp_path: Path) -> None:
    """Its hashes are of the files' bytes, and a reader knows it by the members that lack."""
    one = entry(1, b"{}")
    bundle = sealed_with(one, form=IndexForm.BARE)
    journal = Journal(tmp_path)
    with journal.open() or pytest.fail("locked"):
        journal.write(Record.of(bundle))
        lines = (tmp_path / f"{Record.of(bundle).basename}.sealed").read_bytes().splitlines(True)
        head = json.loads(lines[0])
        del head["schema"], head["index_form"]  # which that version did not write
        found = read(iter([json.dumps(head).encode(), *lines[1:]]), stored=False)

    assert found.header == bundle.header
    (raw,) = indexed(replace(bundle, header=found.header, attempt=found.attempts[-1]))
    assert list(raw)[-2:] == ["Offset", "Length"]


@given(st.binary())
def test_one_line_loses_nothing_but_line_breaks(content: bytes) -> None:
    """And a byte order mark at the start."""
    line = one_line(content)
    assert b"\n" not in line
    assert b"\r" not in line
    assert line == content.removeprefix(b"\xef\xbb\xbf").replace(b"\r", b"").replace(b"\n", b"")


def test_the_journal_gives_back_what_was_written(tmp_path: Path) -> None:
    """Every attempt, entry, block and reason, names that are no UTF-8 included."""
    sealed: list[Bundle] = []
    held = bundles_of(sealed, Clock(), max_bytes=10**6)
    why = Rejection(datatype="foo1", reason="name", detail="odd é", field="a.b")
    odd = Entry("foo1/2026/01/02/\udcff.json", FileState(1, 2, 3, 4), 5, b"")
    held.add("rejected1", DAY, odd, b"{}", why)
    for number in range(10):
        facts = Facts(number, None, "job") if number % 3 else None
        one = entry(number, b"{}")._replace(facts=facts)
        held.add("rejected1", DAY, one, b"{}", why)
    held.seal_all(SealReason.SHUTDOWN)
    journal = Journal(tmp_path)
    lock = journal.open()
    assert lock
    with lock:
        record = Record.of(sealed[0]).with_attempt(sealed[0].attempt)
        journal.write(record)
        ((found,), unreadable) = journal.load()
        assert _plain(found) == _plain(record)
        assert not unreadable
        stored = journal.mark_stored(found)
        assert journal.load()[0][0].stored
        journal.remove(stored)
        assert journal.load() == ([], [])


def test_only_one_agent_holds_a_journal(tmp_path: Path) -> None:
    """The lock ends with the process that holds it."""
    first = Journal(tmp_path).open()
    assert first
    with first:
        assert Journal(tmp_path).open() is None
    second = Journal(tmp_path).open()
    assert second
    second.close()


def test_a_journal_entry_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """It is neither skipped in silence nor the end of the others."""
    (tmp_path / "x.sealed").write_text("{}")
    (tmp_path / "y.stored").write_text("")
    records, unreadable = Journal(tmp_path).load()
    assert records == []
    assert [path.name for path, _ in unreadable] == ["x.sealed", "y.stored"]


def _plain(record: Record) -> object:
    attempts = [(a.upload_id, list(a.entries), a.blocks) for a in record.attempts]
    return record.header, attempts, record.rejections, record.stored


def test_a_bundle_that_is_as_old_as_its_limit_when_it_is_opened_takes_its_row() -> None:
    """With a short -bundle-age-max the clock may pass it between opening and adding."""
    sealed: list[Bundle] = []
    clock = Clock()
    held = OpenBundles(
        STAMP,
        Limits(max_bytes=10_000, max_age_s=0.0),
        InFlightBundles(),
        memory_max=10**9,
        sealed=lambda _, bundle: sealed.append(bundle),
        monotonic_s=clock.monotonic_s,
        now=clock.now,
    )
    assert held.add("foo1", DAY, entry(1, b"{}"), b"{}") is Put.ADDED
    assert held.add("foo1", DAY, entry(2, b"{}"), b"{}") is Put.ADDED
    held.seal_all(SealReason.SHUTDOWN)

    assert [len(bundle.attempt.entries) for bundle in sealed] == [1, 1]


def test_many_days_with_a_small_file_each_stay_within_the_memory() -> None:
    """What an open bundle takes beside its rows counts: 30,000 day directories took 189 MiB."""
    held = bundles_of([], Clock(), max_bytes=10_000, memory_max=100_000)
    days = [Day(date(2026, 1, 1) + timedelta(days=n)) for n in range(200)]
    added = [held.add("foo1", day, entry(n, b"{}"), b"{}") for n, day in enumerate(days)]

    assert Put.NO_ROOM in added
    assert len(held.open_bundles) * 2_500 <= 100_000


def test_files_of_many_days_do_not_wait_for_uploads_as_long_as_half_of_the_memory_is_free() -> None:
    """Rows of small blocks, which do not end early, fill the memory; to seal compresses them."""
    sealed: list[Bundle] = []
    in_flight = InFlightBundles()
    held = bundles_of(sealed, Clock(), in_flight, max_bytes=10**6, memory_max=700_000)
    days = [Day(date(2026, 1, 1) + timedelta(days=n)) for n in range(50)]
    content = document(1, size=1_500)
    for number in range(450):
        put = held.add("foo1", days[number % 50], entry(number, content), content)
        assert put is Put.ADDED
        assert held.held_bytes <= 700_000
    assert sealed


def test_files_of_many_days_are_compressed_before_a_bundle_is_sealed_for_memory() -> None:
    """Rows that compress ten to one need no early seal, which would make small objects."""
    sealed: list[Bundle] = []
    held = bundles_of(sealed, Clock(), max_bytes=10**6, memory_max=400_000)
    days = [Day(date(2026, 1, 1) + timedelta(days=n)) for n in range(4)]
    content = b'{"UUID":"%s"}' % (b"x" * 4_000)
    for number in range(300):
        put = held.add("foo1", days[number % 4], entry(number, content), content)
        assert put is Put.ADDED
        assert held.held_bytes <= 400_000
    assert sum(bundle.size_bytes for bundle in held.open_bundles) > 10**6
    assert not sealed
