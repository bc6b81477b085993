"""`jostler audit`: each problem is made on purpose, found, mended, and found no more."""

from __future__ import annotations

import gzip
import json
import os
import random
import zlib
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from jostler.archive.audit import proof
from jostler.archive.audit.audit import audit
from jostler.archive.audit.bundle import check
from jostler.archive.audit.days import Limits
from jostler.archive.audit.mend import Mended, Mender
from jostler.archive.audit.printer import Printer
from jostler.archive.audit.problem import Kind, Problem
from jostler.archive.audit.remake import index_of as remade
from jostler.archive.audit.salvage import DoubtfulError, salvage
from jostler.archive.audit.scope import Scope
from jostler.archive.audit.stream import readable
from jostler.archive.hashes import digest
from jostler.bundle.index_fields import IndexField, IndexFields
from jostler.cli.main import main
from jostler.errors import TransientError
from jostler.format.blocks import BlockWriter
from jostler.format.compression import FAST, SMALL, Compression, Method
from jostler.format.names import BundleName
from jostler.storage import open_storage
from tests.archive.test_compact import compact_all
from tests.support.bucket import problems, url_of
from tests.support.bundles import bundle
from tests.support.kept import (
    DAY,
    PLACE,
    Dying,
    DyingError,
    KeptArchive,
    contents,
    flipped,
    index_of,
)
from tests.support.memory_bucket import MemoryBucket
from tests.support.spool import document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from jostler.storage import ObjectInfo, Storage

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIMITS = Limits(small_bytes=10**6, many=9, today=date(2026, 1, 9))
FOLDER = f"{PLACE.root}/foo1/"
QUARANTINE = "loader-staging/quarantine/"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: what is tested here is the order of changes."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def archive(tmp_path: Path) -> KeptArchive:
    return KeptArchive(open_storage(url_of(tmp_path / "bucket")))


def found(archive: KeptArchive, scope: Scope = Scope()) -> list[Problem]:  # noqa: B008 - frozen
    """Return the problems of an archive."""
    days = audit(archive.storage, [PLACE], scope, LIMITS)
    return [problem for day in days for problem in day.problems]


def mend(
    archive: KeptArchive,
    storage: Storage | None = None,
    *,
    orphans: bool = False,
    settled: timedelta = timedelta(0),
    fields: dict[str, IndexFields] | None = None,
    now: datetime = NOW,
) -> list[Mended]:
    """Audit and mend; return the end of each problem."""
    storage = storage or archive.storage
    mender = Mender(
        storage=storage,
        staging=storage,
        prefix="loader-staging/",
        now=now,
        orphans=orphans,
        settled=settled,
        fields=fields or {},
    )
    return [end for day in audit(storage, [PLACE], Scope(), LIMITS) for end in mender.mend(day)]


def kinds(problems: list[Problem]) -> list[Kind]:
    return [problem.kind for problem in problems]


def test_a_good_archive_has_no_problem(archive: KeptArchive) -> None:
    """Ours and the Go agent's, small rows and rows that are longer than a block."""
    archive.put(contents(range(50)))
    archive.put(contents(range(50, 53), size=600_000), compression=FAST)
    archive.put_go()

    (day,) = audit(archive.storage, [PLACE], Scope(), LIMITS)

    assert day.problems == []
    assert (sum(day.rows.values()), day.of_go) == (56, 1)
    assert problems(archive.storage) == []


# Data without index


@pytest.mark.parametrize(
    ("size", "compression"),
    [(150, SMALL), (150, FAST), (9000, Compression(Method.ZLIB_NG, 4)), (600_000, FAST)],
)
def test_a_lost_index_is_made_again_with_the_same_bytes_but_for_the_time(
    archive: KeptArchive, size: int, compression: Compression
) -> None:
    """TimeAdded is the data object's time; Start comes from a field, as it did when it was lost."""
    name = archive.put(contents(range(60 if size < 10**5 else 3), size), compression=compression)
    lost, told = archive.get(index_of(name)), archive.storage.metadata(str(index_of(name)))
    archive.storage.remove(str(index_of(name)))
    assert kinds(found(archive)) == [Kind.NO_INDEX]
    assert found(archive)[0].object == str(name)

    (end,) = mend(archive)

    assert end.done
    assert found(archive) == []
    (_, when), *_ = archive.storage.written(str(name))
    added = when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    expected = [json.loads(line) for line in gzip.decompress(lost).splitlines()]
    for row in expected:
        row["raw"] |= {"TimeAdded": added, "Start": None}
    made = gzip.decompress(archive.get(index_of(name))).splitlines()
    assert [json.loads(line) for line in made] == expected
    again = archive.storage.metadata(str(index_of(name)))
    assert again["data-upload-id"] == told["data-upload-id"]
    assert (again["rows"], again["version"]) == (told["rows"], told["version"])
    assert mend(archive) == []


@pytest.mark.parametrize("compression", [SMALL, FAST, Compression(Method.ZLIB_NG, 4)])
@pytest.mark.parametrize("size", [150, 9000, 400_000])
def test_an_index_whose_only_secret_is_its_time_is_made_again_byte_for_byte(
    archive: KeptArchive, monkeypatch: pytest.MonkeyPatch, compression: Compression, size: int
) -> None:
    """When the object's time is the TimeAdded of its rows, and a field fills Start."""
    files = contents(range(60 if size < 10**5 else 3), size)
    fields = IndexFields([IndexField.parse("foo1:Start=StartTime")])
    name = archive.put(files, compression=compression, added=ADDED, fields=fields)
    lost = archive.get(index_of(name))
    archive.storage.remove(str(index_of(name)))
    monkeypatch.setattr(archive.storage, "written", lambda prefix: iter([(prefix, ADDED)]))

    mend(archive, fields={"foo1": fields})

    assert archive.get(index_of(name)) == lost


ADDED = datetime(2026, 1, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_an_index_that_may_be_on_its_way_is_left_to_the_agent(archive: KeptArchive) -> None:
    """As long as the data is younger than -settled."""
    name = archive.put(contents(range(3)))
    archive.storage.remove(str(index_of(name)))

    (end,) = mend(archive, settled=timedelta(hours=1), now=datetime.now(UTC))

    assert not end.done
    assert "younger than 1:00:00" in end.why


# Index without data


class Compacted:
    """A bucket in which a compaction removes a bundle's data after so many of our requests."""

    def __init__(self, storage: Storage, data: BundleName, requests: int) -> None:
        self._storage = storage
        self._data = data
        self._left = requests

    def __getattr__(self, name: str) -> object:
        if name in {"read", "written", "put_new", "metadata", "list"}:
            if not self._left:
                self._storage.remove(str(self._data))
            self._left -= 1
        return getattr(self._storage, name)


@pytest.mark.parametrize("requests", range(6))
def test_a_bundle_that_is_merged_while_it_is_mended_leaves_nothing(
    archive: KeptArchive, requests: int
) -> None:
    """Its compactor has removed the index, and removes the data while the index is made again."""
    archive.put(contents(range(3)), node="other")
    name = archive.put(contents(range(3, 6)))
    archive.storage.remove(str(index_of(name)))
    (day,) = audit(archive.storage, [PLACE], Scope(), LIMITS)
    storage: Any = Compacted(archive.storage, name, requests)
    mender = Mender(
        storage=storage,
        staging=storage,
        prefix="loader-staging/",
        now=NOW,
        orphans=False,
        settled=timedelta(0),
        fields={},
    )
    (end,) = mender.mend(day)
    assert "it is gone" in end.done, end
    assert found(archive) == []


class Late:
    """A bucket in which an object is stored right after its folder was listed."""

    def __init__(self, storage: Storage, late: BundleName) -> None:
        self._storage = storage
        self._late = str(late)

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    def list(self, prefix: str, *more: str, **how: bool) -> Iterator[ObjectInfo]:
        hidden = self._late if prefix.endswith("/") else ""
        return (one for one in self._storage.list(prefix, *more, **how) if one.name != hidden)


def test_a_half_that_comes_while_the_days_are_listed_is_not_missed(archive: KeptArchive) -> None:
    """An agent stores the data, then the index; the folders are listed one after the other."""
    name = archive.put(contents(range(3)))
    for late, rows in ((index_of(name), [3]), (name, [])):
        storage: Any = Late(archive.storage, late)
        days = list(audit(storage, [PLACE], Scope(), LIMITS))
        assert [problem for day in days for problem in day.problems] == []
        assert [sum(day.rows.values()) for day in days] == rows


def test_an_index_without_data_is_removed_only_if_that_is_asked(archive: KeptArchive) -> None:
    """It is kept in quarantine all the same."""
    name = archive.put(contents(range(3)))
    index = archive.get(index_of(name))
    archive.storage.remove(str(name))
    assert found(archive) == [
        Problem(str(index_of(name)), 0, Kind.NO_DATA, "there is no data bundle for this index")
    ]

    assert [bool(end.done) for end in mend(archive)] == [False]
    assert archive.get(index_of(name)) == index
    assert [bool(end.done) for end in mend(archive, orphans=True)] == [True]

    assert found(archive) == []
    assert archive.get(f"{QUARANTINE}{index_of(name)}") == index


# Index and data disagree


def changed_raw(**members: object) -> Callable[[list[Any]], list[Any]]:
    """Return a change of the second row's `raw`."""

    def change(rows: list[Any]) -> list[Any]:
        rows[1]["raw"] |= members
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (changed_raw(Hash="0" * 32), 2, "is not that of its bytes"),
        (changed_raw(Line=7), 2, "index has Line 7, expected 2"),
        (changed_raw(Offset=11), 2, "block 11+"),
        (changed_raw(Length=5), 2, "does not hold the row"),
        (changed_raw(Filename="2026/01/02/x.json"), 2, "index has Filename '2026/01/02/x.json'"),
        (changed_raw(Node="n2"), 2, "index has Node 'n2', expected 'n1'"),
        (changed_raw(Size=1), 2, "the file had 1"),
        (changed_raw(Offset=None), 2, "the index row has no good Offset"),
        (lambda rows: rows[:-1], 0, "4 rows, but 3 in its index"),
        (lambda rows: [*rows, rows[0]], 0, "4 rows, but 5 in its index"),
        (lambda rows: rows[::-1], 1, "index has Filename"),
    ],
)
def test_an_index_that_disagrees_is_made_again(
    archive: KeptArchive, change: Callable[[list[Any]], list[Any]], line: int, words: str
) -> None:
    """Whatever it is that differs; what it knew of good rows is kept."""
    name = archive.put(contents(range(4)))
    good = gzip.decompress(archive.get(index_of(name)))
    archive.swap_rows(index_of(name), change)
    told = found(archive)
    assert told
    assert set(kinds(told)) == {Kind.DISAGREES}
    assert any(problem.line == line and words in problem.detail for problem in told), told

    assert all(end.done for end in mend(archive))

    assert found(archive) == []
    made = gzip.decompress(archive.get(index_of(name))).splitlines()
    same = sum(a == b for a, b in zip(made, good.splitlines(), strict=True))
    assert same >= 3
    assert archive.storage.metadata(str(index_of(name)))["rows"] == "4"


def test_an_index_that_is_no_gzip_is_made_again(archive: KeptArchive) -> None:
    """It tells nothing, so its times are lost."""
    name = archive.put(contents(range(4)))
    archive.swap(index_of(name), lambda data: data[: len(data) // 2])
    assert set(kinds(found(archive))) == {Kind.DISAGREES}
    mend(archive)
    assert found(archive) == []


def test_the_size_of_a_file_with_line_breaks_is_kept(archive: KeptArchive) -> None:
    """`raw` has none of them, so only the old index knows how many there were."""
    name = archive.put(contents(range(4)))

    def changed(rows: list[Any]) -> list[Any]:
        raws = [row["raw"] | {"Size": row["raw"]["Size"] + 7, "Line": 9} for row in rows]
        return [row | {"raw": raw} for row, raw in zip(rows, raws, strict=True)]

    sizes = [one["Size"] + 7 for one in facts(archive, index_of(name))]
    archive.swap_rows(index_of(name), changed)
    assert all(end.done for end in mend(archive))
    assert [one["Size"] for one in facts(archive, index_of(name))] == sizes


def test_the_index_of_rejected_files_has_the_hash_of_whole_contents_alone() -> None:
    """Of a large file only the beginning is in its row: a hash of that would be of nothing."""
    contents_ = [b'{"a":', b"x" * 50]
    sizes = [len(contents_[0]), 10**8]
    raws = [
        {"Size": size, "TimeAdded": f"2026-01-02T0{nth}:00:00Z", "Content": b64encode(content)}
        for nth, (content, size) in enumerate(zip(contents_, sizes, strict=True))
    ]
    files = [
        (f"{nth}.json", orjson.dumps(raw, default=bytes.decode)) for nth, raw in enumerate(raws)
    ]
    data, index = bundle(files, datatype="rejected1")
    name = BundleName.parse(data.name)
    made = remade(
        name,
        index_of(name),
        "gs://memory",
        data.data,
        known={},
        added=datetime(2026, 2, 1, tzinfo=UTC),
    )
    rows = [json.loads(line)["raw"] for line in gzip.decompress(made.data).splitlines()]
    assert [row["Hash"] for row in rows] == [digest(contents_[0]), ""]
    assert [row["Size"] for row in rows] == sizes
    assert [row["TimeAdded"][:13] for row in rows] == ["2026-01-02T00", "2026-01-02T01"]
    assert made.name == index.name


# Damaged gzip


CUTS = [lambda data: data[:-3], lambda data: data[:-40], lambda data: data[:700]]


@pytest.mark.parametrize(
    ("damage", "indexed"),
    [(flipped, True), *((cut, indexed) for cut in CUTS for indexed in (True, False))],
)
@pytest.mark.parametrize("size", [150, 5000])
def test_of_a_damaged_bundle_what_can_be_read_is_saved(
    archive: KeptArchive, damage: Callable[[bytes], bytes], indexed: bool, size: int
) -> None:
    """Each row that is saved has its own bytes; each that is not is told, if an index knows it."""
    whole = archive.put(contents(range(500, 505)))
    name = archive.put(contents(range(120), size))
    before = archive.files()
    archive.swap(name, damage)
    damaged = archive.get(name)
    if not indexed:
        archive.storage.remove(str(index_of(name)))
    assert Kind.DAMAGED in kinds(found(archive))

    ends = mend(archive)

    assert all(end.done for end in ends), ends
    told = next(end for end in ends if end.problem.kind is Kind.DAMAGED)
    saved = archive.files()
    lost = [file for file in before if file not in saved]
    assert [file for file in saved if file not in before] == []
    assert len(saved) + len(lost) == 125
    assert f"{len(saved) - 5} row" in told.done
    if indexed:
        assert ("none is lost" in told.done) == (not lost)
        assert lost == [] or "lost: line" in told.done
    else:
        assert "without a hash to verify them by" in told.done
    assert archive.get(f"{QUARANTINE}{name}") == damaged
    # The loader trusts a bundle that names its schema: only rows that a hash verifies are so good.
    new = [info.name for info in archive.storage.list(FOLDER) if info.name != str(whole)]
    schemas = {archive.storage.metadata(one).get("schema", "") for one in new}
    assert schemas <= {"5" * 32 if indexed else ""}
    assert archive.get(whole)
    assert found(archive) == []
    assert mend(archive) == []


def test_a_wrong_row_never_becomes_a_good_one(archive: KeptArchive) -> None:
    """Any byte may be flipped, with an index or without: what is saved was there before."""
    name = archive.put(contents(range(20)))
    before, whole = archive.files(), archive.get(name)
    index, told = archive.get(index_of(name)), archive.storage.metadata(str(index_of(name)))
    left = 0
    for at in range(3, len(whole), 61):
        for indexed in (True, False):
            broken = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
            archive.swap(name, lambda _, broken=broken: broken)  # type: ignore[misc]
            if not indexed:
                archive.storage.remove(str(index_of(name)))
            ends = mend(archive)
            left += not all(end.done for end in ends)
            now = [] if left and archive.objects().get(str(name)) else archive.files()
            assert [file for file in now if file not in before] == []
            for info in list(archive.storage.list("")):
                if "/tables/" not in info.name:
                    archive.storage.remove(info.name)
            archive.storage.put_new(str(name), whole, {})
            archive.storage.put_new(str(index_of(name)), index, told)
    assert left


@pytest.mark.parametrize(("count", "size"), [(1, 20), (3, 400)])
def test_what_is_found_good_is_a_gzip_stream_for_everybody(count: int, size: int) -> None:
    """Damage outside of the rows leaves each with its hash, and the stream unreadable."""
    bucket = MemoryBucket()
    archive = KeptArchive(bucket)  # type: ignore[arg-type]
    name = archive.put(contents(range(count), size))
    whole, index = archive.get(name), archive.get(index_of(name))
    assert not check(name, bucket.url, whole, index_of(name), index).problems
    damaged = 0
    for at in [*range(20), *range(len(whole) - 24, len(whole))]:
        for bit in range(8):
            broken = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
            try:
                is_good = zlib.decompress(broken, wbits=31) == zlib.decompress(whole, wbits=31)
            except zlib.error:
                is_good = False
            found = check(name, bucket.url, broken, index_of(name), index)
            assert is_good or found.problems, f"bit {bit} of byte {at} of {len(whole)}"
            damaged += not is_good
    assert damaged > 200


def test_no_flipped_bit_makes_a_wrong_row_where_no_index_knows_better() -> None:
    """Also one that makes the end of the stream be read as rows."""
    bucket = MemoryBucket()
    archive = KeptArchive(bucket)  # type: ignore[arg-type]
    saved = 0
    for seed, size in enumerate((120, 150, 3000)):
        rng = random.Random(seed)
        name = archive.put(contents(range(100 * seed, 100 * seed + 40), size))
        whole = archive.get(name)
        good = {(file[1], file[2]) for file in archive.files()}
        for _ in range(150):
            at, bit = rng.randrange(10, len(whole)), 1 << rng.randrange(8)
            broken = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
            try:
                rows = salvage(name, bucket.url, broken, None).rows
            except DoubtfulError:
                continue
            saved += len(rows)
            assert {(one.archiver["Filename"], one.raw) for one in rows} <= good
    assert saved


def test_a_flipped_byte_costs_only_rows_of_its_block(archive: KeptArchive) -> None:
    """Blocks behind it are found by the index, and without it by the flush that ends a block."""
    name = archive.put(contents(range(120), 9000))  # five blocks
    rows = len(archive.files())
    indexes = [archive.get(index_of(name))]
    archive.swap(name, flipped)
    mend(archive)
    with_index = rows - len(archive.files())
    assert 0 < with_index < 30
    assert indexes


def test_a_row_with_another_filename_is_no_row_of_the_index(archive: KeptArchive) -> None:
    """A Hash is of the file's content alone: a flipped byte of its name must not rename it."""
    name = archive.put(contents(range(5)))
    archive.swap(name, lambda data: gzip.compress(gzip.decompress(data), 0, mtime=0))
    assert all(end.done for end in mend(archive))
    before = archive.files()
    archive.swap(name, lambda data: data.replace(b'"2026/01/02/m3.json"', b'"2026/01/02/m8.json"'))
    (end,) = mend(archive)
    assert "4 rows saved; lost: line 4 (2026/01/02/m3.json)" in end.done
    assert [file for file in archive.files() if file not in before] == []


def test_a_damaged_block_without_index_is_left_as_it_is(archive: KeptArchive) -> None:
    """A row of it may be good; nobody knows which one until the index is found."""
    name = archive.put(contents(range(20)))
    archive.storage.remove(str(index_of(name)))
    archive.swap(name, lambda data: data[:600] + b"\xff" * 9 + data[609:])
    assert readable(archive.get(name)).doubtful > 1000
    before = archive.objects()
    for end in mend(archive):
        assert (end.done, end.why) == ("", "it is damaged, and no index says which rows are good")
    assert archive.objects() == before


def test_a_damaged_bundle_of_which_nothing_can_be_read_is_moved_away(archive: KeptArchive) -> None:
    """No empty bundle is written."""
    name = archive.put(contents(range(3)))
    archive.swap(name, lambda data: data[:5])
    assert all(end.done for end in mend(archive))
    assert archive.files() == []
    assert found(archive) == []
    assert f"{QUARANTINE}{name}" in archive.objects()


# What is told


@pytest.mark.parametrize("has_index", [True, False])
def test_a_bundle_without_rows_is_moved_away(archive: KeptArchive, has_index: bool) -> None:
    """No index can be made of it; what its index says is lost."""
    name = archive.put(contents(range(2)))
    archive.swap(name, lambda _: gzip.compress(b""))
    if not has_index:
        archive.storage.remove(str(index_of(name)))
    assert kinds(found(archive)) == [Kind.DAMAGED]
    (end,) = mend(archive)
    lost = "0 rows saved; lost: lines 1 to 2 (2026/01/02/m0.json, 2026/01/02/m1.json)"
    assert (lost if has_index else "it is not known which lines are lost") in end.done
    assert found(archive) == []
    assert f"{QUARANTINE}{name}" in archive.objects()


def test_a_row_in_two_bundles_is_told_of_the_later_one(archive: KeptArchive) -> None:
    """Not the same Filename with other content, nor the same row of another node."""
    first = archive.put(contents([1, 2]))
    second = archive.put(contents([3, 2]))
    archive.put(contents([2]), node="n2")
    archive.put({"m2.json": b'{"other":1}'})
    assert found(archive) == [
        Problem(str(second), 2, Kind.REPEATED, f"the same row as that of {first}, line 2")
    ]
    assert [end.done for end in mend(archive)] == [""]
    rows = {file[1:] for file in archive.files()}
    compact_all(archive.storage)
    assert found(archive) == []
    assert {file[1:] for file in archive.files()} == rows
    assert len(archive.files()) == 5


def test_many_small_bundles_of_a_past_day_are_reported(archive: KeptArchive) -> None:
    """Not those of the last two days."""
    for number in range(10):
        archive.put(contents([number]))
        archive.put(contents([number]), day=date(2026, 1, 8))
    (problem,) = found(archive)
    assert problem.kind is Kind.SMALL
    assert problem.object == "autoload/v1/exp/foo1/2026/01/02/"
    assert "10 of its 10 bundles" in problem.detail
    compact_all(archive.storage)
    assert found(archive) == []


def test_a_row_of_another_day_and_a_line_that_is_no_row_are_reported(archive: KeptArchive) -> None:
    """They stay as they are, and the index is left alone."""
    name = archive.put(contents(range(3)))

    def change(rows: list[Any]) -> list[Any]:
        rows[0]["date"] = "2026-01-03"
        rows[2]["raw"] = 7
        return rows

    archive.swap_rows(name, change)
    before = archive.objects()
    told = found(archive)
    assert {Kind.OTHER_DAY, Kind.BAD_ROW} <= set(kinds(told))
    assert [p.line for p in told if p.kind is Kind.OTHER_DAY] == [1]
    assert [p.line for p in told if p.kind is Kind.BAD_ROW] == [3]
    assert not any(end.done for end in mend(archive))
    assert archive.objects() == before


@pytest.mark.parametrize("native", [True, False])
def test_a_row_of_another_day_is_reported_although_its_index_agrees(
    archive: KeptArchive, monkeypatch: pytest.MonkeyPatch, native: bool
) -> None:
    """The bytes that prove a bundle good are not enough; nor is the index wrong, which says so."""
    if not native:
        monkeypatch.setattr(proof, "native_index", lambda *_, **__: None)

    def moved(data: bytes) -> bytes:
        writer = BlockWriter(SMALL)
        for line in gzip.decompress(data).splitlines(keepends=True):
            writer.add(line.replace(b'"2026/01/02/m1.json"', b'"2026/01/12/m1.json"'))
        return writer.finish()

    name = archive.put(contents(range(3)))
    archive.swap(name, moved)
    archive.storage.remove(str(index_of(name)))
    ends = {end.problem.kind: bool(end.done) for end in mend(archive)}
    assert ends == {Kind.NO_INDEX: True, Kind.OTHER_DAY: False}
    (problem,) = found(archive)
    assert (problem.kind, problem.line) == (Kind.OTHER_DAY, 2)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no such table schema"), (b"{", "is not a table schema"), (b"[]", "no column `date`")],
)
def test_a_table_schema_that_is_missing_or_none_is_reported(
    archive: KeptArchive, content: bytes | None, words: str
) -> None:
    """Once for the datatype, not for each day."""
    archive.put(contents([1]))
    archive.put(contents([1]), day=date(2026, 1, 3))
    name = PLACE.table_schema("foo1")
    good = archive.get(name)
    archive.storage.remove(name)
    if content is not None:
        archive.storage.put_new(name, content, {})
    (problem,) = found(archive)
    assert (problem.kind, problem.object) == (Kind.SCHEMA, name)
    assert words in problem.detail
    archive.storage.remove(name)
    archive.storage.put_new(name, good, {})
    assert found(archive) == []


def test_objects_of_others_are_reported(archive: KeptArchive) -> None:
    """In a day's folder and beside the days; not the agent's own trial objects."""
    archive.put(contents([1]))
    foreign = ["autoload/v1/exp/foo1/2026/01/02/x.json", "autoload/v1/exp/foo1/README"]
    for name in (*foreign, "autoload/v1/exp/.check/n1-00"):
        archive.storage.put_new(name, b"x", {})
    assert {(p.kind, p.object) for p in found(archive)} == {
        (Kind.FOREIGN, name) for name in foreign
    }


# The Go agent's archives


def test_a_row_of_the_go_agent_that_has_another_size_is_lost(archive: KeptArchive) -> None:
    """Its index has no Hash: size and name are all that a row can be held against."""
    name = archive.put_go()

    def longer(index: bytes) -> bytes:
        first, *rest = gzip.decompress(index).split(b"\n")
        line = json.loads(first)
        line["Size"] += 1
        return gzip.compress(b"\n".join([json.dumps(line).encode(), *rest]), mtime=0)

    archive.swap(index_of(name), longer)
    archive.swap(name, lambda data: data[:-6])
    ends = mend(archive)
    assert "2 rows saved without a hash to verify them by; lost: line 1 (" in ends[0].done, ends
    assert mend(archive) == []


def test_bundles_of_the_go_agent_are_mended_in_their_own_form(archive: KeptArchive) -> None:
    """A lost index is bare lines again; a damaged bundle's rows keep their form."""
    name = archive.put_go()
    lost = archive.get(index_of(name))
    archive.storage.remove(str(index_of(name)))
    assert kinds(found(archive)) == [Kind.NO_INDEX]
    assert all(end.done for end in mend(archive))
    assert found(archive) == []
    old, new = (
        [json.loads(line) for line in gzip.decompress(data).split(b"\n")]
        for data in (lost, archive.get(index_of(name)))
    )
    assert [{**one, "TimeAdded": ""} for one in new] == [{**one, "TimeAdded": ""} for one in old]

    before = archive.files()
    archive.swap(name, lambda data: data[:-30])
    assert kinds(found(archive)) == [Kind.DAMAGED]
    assert all(end.done for end in mend(archive))
    assert found(archive) == []
    assert set(archive.files()) < set(before)


# Interruptions


def everything_wrong(archive: KeptArchive) -> list[tuple[str, str, bytes]]:
    """Damage an archive in all ways that can be mended; return the rows that must stay."""
    archive.put(contents(range(4)))
    lost, wrong, cut, bare = (
        archive.put(contents(range(first, first + 4))) for first in (10, 20, 30, 40)
    )
    keep = [file for file in archive.files() if not file[1].startswith("2026/01/02/m3")]
    keep += [file for file in archive.files() if file[1] == "2026/01/02/m3.json"]
    gone = archive.put(contents(range(50, 54)))
    archive.storage.remove(str(index_of(lost)))
    archive.swap_rows(index_of(wrong), changed_raw(Hash="0" * 32))
    archive.swap(cut, lambda data: data[:-60])
    archive.swap(bare, lambda data: data[:-3])
    archive.storage.remove(str(gone))
    return sorted(keep)


def test_a_mend_that_dies_anywhere_and_is_repeated_ends_the_same(tmp_path: Path) -> None:
    """Before each change of the bucket: nothing is lost, and what is left is clean."""
    ended: list[set[str]] = []
    steps = 0
    while True:
        archive = KeptArchive(open_storage(url_of(tmp_path / str(steps))))
        keep = everything_wrong(archive)
        died = False
        try:
            mend(archive, Dying(archive.storage, steps), orphans=True)  # type: ignore[arg-type]
        except DyingError:
            died = True
        now = archive.storage
        kept = {info.name for info in now.list(f"{PLACE.root}/")}
        assert kept  # never all at once
        mend(archive, orphans=True)
        assert found(archive) == [], steps
        assert set(keep) <= set(archive.files())
        assert len(set(archive.files())) == len(archive.files())
        ended.append(set(archive.objects()))
        if not died:
            break
        steps += 1
    assert steps > 12
    assert all(names == ended[0] for names in ended)


def test_a_salvage_that_died_before_its_index_keeps_what_the_old_one_knew(tmp_path: Path) -> None:
    """The old index is there until the new one is."""
    for steps in range(6):
        archive = KeptArchive(open_storage(url_of(tmp_path / str(steps))))
        name = archive.put(contents(range(4)))
        known = [one["TimeAdded"] for one in facts(archive, index_of(name))]
        archive.swap(name, lambda data: data[:-3])
        with pytest.raises(DyingError):
            mend(archive, Dying(archive.storage, steps))  # type: ignore[arg-type]
        mend(archive)
        assert found(archive) == []
        (made,) = (BundleName.parse(info.name) for info in archive.storage.list(FOLDER))
        assert [one["TimeAdded"] for one in facts(archive, index_of(made))] == known, steps


def test_a_fix_that_is_repeated_after_it_has_moved_all_away_is_no_failure(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """As when the first one is killed before it can say so; without -fix, nothing is no success."""
    archive.storage.remove(str(archive.put(contents(range(3)))))
    command = ["audit", "-bucket", archive.storage.url]

    for told in ("0 problems left, 1 mended", "0 problems left, 0 mended"):
        assert main([*command, "-fix=orphans", "-settled", "0s"]) == 0
        said = capsys.readouterr()
        assert told in said.out
    assert "has nothing of these" in said.err
    assert main(command) == 1


def test_a_request_that_fails_leaves_a_problem_and_the_next_run_mends_it(
    archive: KeptArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told why."""
    name = archive.put(contents(range(3)))
    archive.storage.remove(str(index_of(name)))
    with monkeypatch.context() as patch:

        def fails(*_: object) -> None:
            raise TransientError("the bucket does not answer")

        patch.setattr(archive.storage, "put_new", fails)
        (end,) = mend(archive)
    assert (end.done, end.why) == ("", "the bucket does not answer")
    assert all(end.done for end in mend(archive))


# The command


def test_the_command_finds_mends_and_tells(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 1 while problems are left, 0 once they are mended; text and JSON say the same."""
    name = archive.put(contents(range(3)))
    archive.storage.remove(str(index_of(name)))
    bucket = ["-bucket", archive.storage.url, "-settled", "0s"]

    assert main(["audit", *bucket]) == 1
    told = capsys.readouterr().out
    assert f"PROBLEM no-index {name}: has no index bundle; -fix makes the index again" in told
    assert "1 bundle of 1 day, rows: 3 foo1" in told
    assert "1 problem left, 0 mended: no-index 1" in told
    assert main(["audit", *bucket, "-format", "jsonl", "-fix"]) == 0
    end, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert (end["kind"], end["object"], end["status"]) == ("no-index", str(name), "mended")
    assert (total["kind"], total["mended"], total["left"]) == ("summary", 1, 0)
    assert main(["audit", *bucket, "-experiment", "exp", "-datatype", "foo1", "-node", "n1"]) == 0
    assert "0 problems left, 0 mended" in capsys.readouterr().out


def test_the_command_looks_at_the_days_datatypes_and_nodes_that_are_named(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Problems elsewhere are not told; nothing at all is no success."""
    name = archive.put(contents(range(3)))
    archive.storage.remove(str(index_of(name)))
    archive.put(contents(range(3)), node="n2", day=date(2026, 1, 3))
    bucket = ["-bucket", archive.storage.url]

    assert main(["audit", *bucket, "-start", "2026-01-03"]) == 0
    assert main(["audit", *bucket, "-node", "n2"]) == 0
    assert main(["audit", *bucket, "-end", str(DAY)]) == 1
    assert main(["audit", *bucket, "-start", "2026-01-03", "-end", "9999-12-31"]) == 0
    assert main(["audit", *bucket, "-datatype", "foo2"]) == 1
    assert "has nothing of these" in capsys.readouterr().err
    assert main(["audit", *bucket, "-start", "2026-01-03", "-end", "2026-01-02"]) == 2
    assert main(["audit", *bucket, "-fix=some"]) == 2
    assert main(["audit", *bucket, "-fix", "-staging", f"{bucket[1]}/autoload/v1"]) == 2
    assert "lies among the archive's data" in capsys.readouterr().err
    assert main(["audit"]) == 2
    assert "-bucket: required" in capsys.readouterr().err


def test_the_command_looks_at_an_experiment_in_all_layouts(
    archive: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without -organization of all organizations, as `jostler-load audit` does."""
    name = archive.put(contents(range(3)))
    for organization in ("o1", "o2"):
        place = replace(PLACE, data_dir="autoload/v2", organization=organization)
        archive.storage.put_new(str(replace(name, place=place)), b"", {})
    bucket = ["-bucket", archive.storage.url, "-experiment", "exp"]

    assert main(["audit", *bucket]) == 1
    assert "3 bundles of 3 days" in capsys.readouterr().out
    assert main(["audit", *bucket, "-organization", "o1"]) == 1
    assert "2 bundles of 2 days" in capsys.readouterr().out


def test_a_datatype_with_dashes_and_an_index_of_another_are_kept_apart(
    archive: KeptArchive,
) -> None:
    """The Go agent takes such names; an index's name does not say where they end."""
    name = archive.put_go()
    other = replace(name, datatype="foo-bar", node=name.node)
    archive.storage.put_new(str(other), archive.get(name), {})
    archive.storage.put_new(str(index_of(other)), archive.get(index_of(name)), {})
    schema = archive.get(PLACE.table_schema("foo1"))
    archive.storage.put_new(PLACE.table_schema("foo-bar"), schema, {})
    assert found(archive, Scope(datatypes=frozenset({"foo1"}))) == []
    assert Kind.NO_DATA not in kinds(found(archive))
    archive.storage.remove(str(other))
    assert found(archive, Scope(datatypes=frozenset({"foo1"}))) == []
    assert kinds(found(archive)) == [Kind.NO_DATA]


# Merged bundles


@pytest.fixture
def merged(archive: KeptArchive) -> BundleName:
    """A merged bundle of two nodes, with blocks enough that a damaged one leaves others."""
    archive.put(contents(range(60), 9000))
    archive.put(contents(range(60, 120), 9000), node="n2")
    compact_all(archive.storage)
    (info,) = archive.storage.list("autoload/v1/exp/foo1/")
    return BundleName.parse(info.name)


def test_a_merged_bundle_is_clean_and_its_index_is_made_again(
    archive: KeptArchive, merged: BundleName
) -> None:
    """With the node of each row, which its header tells."""
    assert merged.is_merged
    assert found(archive) == []
    index = index_of(merged)
    lost = gzip.decompress(archive.get(index)).splitlines()
    archive.storage.remove(str(index))
    assert kinds(found(archive)) == [Kind.NO_INDEX]
    assert all(end.done for end in mend(archive))
    assert found(archive) == []
    made = gzip.decompress(archive.get(index)).splitlines()
    differ = {"TimeAdded", "Start"}
    for old, new in zip(map(json.loads, lost), map(json.loads, made), strict=True):
        raws = [{k: v for k, v in one["raw"].items() if k not in differ} for one in (old, new)]
        assert raws[0] == raws[1]


def test_files_of_one_name_in_a_merged_bundle_are_told_apart(archive: KeptArchive) -> None:
    """Two nodes have each a file of this name, and one of them has stored it twice, changed."""
    for number, node in ((1, "n1"), (2, "n2"), (3, "n2")):
        added = datetime(2026, 1, 4, number, tzinfo=UTC)
        archive.put({"a.json": document(number), f"{number}.json": b"{}"}, node=node, added=added)
    compact_all(archive.storage)
    (info,) = archive.storage.list("autoload/v1/exp/foo1/")
    merged = BundleName.parse(info.name)
    before, files = facts(archive, index_of(merged)), archive.files()

    archive.swap_rows(index_of(merged), lambda rows: [one | {"date": "2026-01-01"} for one in rows])
    assert {one.kind for one in found(archive)} == {Kind.DISAGREES}
    assert all(end.done for end in mend(archive))
    assert facts(archive, index_of(merged)) == before

    for damage in (lambda data: data[:-9], lambda data: data[:14] + b"~~" + data[16:]):
        archive.swap(merged, damage)
        assert Kind.DAMAGED in kinds(found(archive))
        ends = mend(archive)
        assert all(end.done for end in ends)
        assert "6 rows saved, none is lost" in ends[0].done, ends
        assert archive.files() == files
        assert facts(archive, index_of(merged)) == before
        assert mend(archive) == []
    for name, times in ((merged, 2), (index_of(merged), 3)):  # damaged under one name
        copies = [info.name for info in archive.storage.list(f"{QUARANTINE}{name}")]
        assert len(copies) == times
        assert copies[0] == f"{QUARANTINE}{name}"


def facts(archive: KeptArchive, index: BundleName) -> list[dict[str, Any]]:
    """Return what an index says of its files, without the length of blocks: levels differ."""
    rows = [json.loads(line)["raw"] for line in gzip.decompress(archive.get(index)).splitlines()]
    return [{key: value for key, value in row.items() if key != "Length"} for row in rows]


@pytest.mark.parametrize("damage", [flipped, lambda data: data[:-3], lambda data: data[:-20000]])
def test_of_a_damaged_merged_bundle_what_can_be_read_is_saved_under_the_name_of_its_rows(
    archive: KeptArchive, merged: BundleName, damage: Callable[[bytes], bytes]
) -> None:
    """If none is lost, that is the name that it has."""
    before = [file[1:] for file in archive.files()]
    archive.swap(merged, damage)
    damaged = archive.get(merged)
    assert kinds(found(archive)) == [Kind.DAMAGED]
    (end,) = mend(archive)
    assert end.done, end.why
    assert found(archive) == []
    saved = [file[1:] for file in archive.files()]
    assert len(saved) > 40
    assert [file for file in saved if file not in before] == []
    (info,) = archive.storage.list("autoload/v1/exp/foo1/")
    assert (info.name == str(merged)) == (len(saved) == len(before))
    assert archive.get(f"{QUARANTINE}{merged}") == damaged
    assert mend(archive) == []


@pytest.mark.parametrize("end", [KeyboardInterrupt(), TransientError("unreachable")])
def test_what_an_interrupted_audit_has_mended_is_in_the_table(
    archive: KeptArchive, end: BaseException
) -> None:
    """Whoever looks for a change finds who made it; a row is written once."""
    lost = archive.put(contents(range(3)))
    archive.put(contents(range(3, 6)), day=date(2026, 1, 3))
    archive.storage.remove(str(index_of(lost)))
    written: list[dict[str, Any]] = []

    class Tables:
        differences = gone = staticmethod(lambda *_: ())
        write = staticmethod(written.extend)

    mender = Mender(
        storage=archive.storage,
        staging=archive.storage,
        prefix="loader-staging/",
        now=NOW,
        orphans=False,
        settled=timedelta(0),
        fields={},
    )
    tables: Any = Tables()
    printer = Printer(
        archive.storage.url, Scope(), lambda _: None, as_json=False, mender=mender, tables=tables
    )
    days = audit(archive.storage, [PLACE], Scope(), LIMITS)

    def interrupted() -> None:
        with printer.recording():
            printer.day(next(days))
            raise end

    with pytest.raises(type(end)):
        interrupted()
    (row,) = written
    assert (row["Object"], row["Status"]) == (str(lost), "mended")
    assert printer.end(NOW) == 0
    assert len(written) == 1
