"""A large bundle is read by several tasks: each row once, and none of a damaged bundle."""

from __future__ import annotations

import gzip
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from loader.cli.main import main as load
from loader.query import pieces
from loader.query.googlesql.reads import SparkText
from loader.query.on_spark import plan
from loader.query.pieces import Pieces, divided
from loader.query.reading import Count, read_part
from loader.query.scan import parts
from tests.asking.archive import ask, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from loader.query.on_spark import Reading
    from loader.query.scan import Bundle
    from tests.asking.archive import Archive

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MOST = 200_000
Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1000)


def large(archive: Archive, rows: int = 600, **more: Any) -> str:  # noqa: ANN401 - as for `put`
    """Store a bundle of several blocks; return its name."""
    noise = random.Random(1)
    return archive.put(
        [{"UUID": noise.randbytes(1500).hex(), "Count": nth} for nth in range(rows)], **more
    )


def planned(archive: Archive, *paths: str, collapse: bool = False, **bounds: Any) -> Reading:  # noqa: ANN401
    reads = (read("foo1", "raw.Count", "raw.UUID", "_node", *paths, **bounds),)
    text = SparkText(sql="", reads=reads, columns=())
    [reading] = plan(text, archive.tables(), 5.0, collapse=collapse)
    return reading


def groups_of(reading: Reading, most: int = MOST) -> tuple[list[list[Bundle]], list[Pieces]]:
    assert reading.scan is not None
    return divided(parts(reading.scan.bundles, most), most, 100, 5.0)


def rows_of(reading: Reading, groups: list[list[Bundle]]) -> tuple[Rows, dict[str, Count]]:
    """Read as executors do, in any order of the tasks."""
    assert reading.what is not None
    counts: dict[str, Count] = {}
    found = {}
    for nth in random.Random(2).sample(range(len(groups)), len(groups)):
        batches = read_part(groups[nth], reading.what, counts)
        found[nth] = [row for batch in batches for row in batch.to_pylist()]
    return [row for nth in sorted(found) for row in found[nth]], counts


HOURS = {"begin": NOON + timedelta(microseconds=20), "end": NOON + timedelta(microseconds=470)}
FEW = {"begin": NOON + timedelta(microseconds=150), "end": NOON + timedelta(microseconds=290)}


@pytest.mark.parametrize(
    ("most", "paths", "bounds", "merged"),
    [
        (1000, (), {}, False),
        (150_000, (), {}, True),
        (400_000, ("_time",), {}, False),
        (60_000, ("_time",), {}, True),
        (60_000, ("_time",), HOURS, False),
        (400_000, (), HOURS, True),
        (400_000, (), FEW, False),
    ],
)
def test_the_pieces_have_each_row_once(
    archive: Archive,
    most: int,
    paths: tuple[str, ...],
    bounds: dict[str, datetime],
    *,
    merged: bool,
) -> None:
    """In the order of the bundle, whatever is asked and however it is divided."""
    large(archive)
    if merged:
        archive.put([{"Count": -nth, "UUID": f"{nth}"} for nth in range(300)], node="n0", at=NOON)
        assert load(["compact", "--bucket", archive.url]) == 0
    reading = planned(archive, *paths, **bounds)
    assert reading.scan is not None
    whole, _ = rows_of(reading, parts(reading.scan.bundles, most))

    groups, made = groups_of(reading, most)
    rows, counts = rows_of(reading, groups)

    assert rows == whole
    assert len(rows) >= 139
    assert len(groups) >= 2
    size_bytes = reading.scan.size_bytes
    assert all(bundle.reading_bytes < size_bytes for group in groups for bundle in group)
    assert [one.problem(counts) for one in made] == [""]
    if not bounds:
        assert all(count.check for count in counts.values())


def test_lines_that_are_left_out_are_those_of_the_whole_bundle(archive: Archive) -> None:
    """Repeats of a feed are known by their numbers in the bundle."""
    archive.put([{"UUID": f"{nth // 3:0400d}"} for nth in range(3000)], at=NOON)
    reading = planned(archive, collapse=True)
    assert reading.scan is not None
    whole, _ = rows_of(reading, parts(reading.scan.bundles, 1000))

    groups, made = groups_of(reading, 1000)
    rows, counts = rows_of(reading, groups)

    assert len(made) == 1
    assert rows == whole
    assert len(rows) == 1000
    assert sum(count.collapsed for count in counts.values()) == 2000


def test_what_other_bundles_may_repeat_stays_whole(archive: Archive) -> None:
    """As does what is not judged, has no index, is small, is another program's, or is enough."""
    large(archive, node="n1")
    large(archive, node="n1")
    large(archive, node="n2", judged=False)
    large(archive, node="n3", indexed=False)
    archive.put([{"Count": 1}], node="n4")
    name = large(archive, node="n5")
    held = archive.storage.read(name)
    archive.storage.replace(name, gzip.compress(gzip.decompress(held.data), 9), held.version)
    reading = planned(archive)
    assert reading.scan is not None

    groups, made = groups_of(reading)

    assert (groups, made) == (parts(reading.scan.bundles, MOST), [])
    last = large(archive, node="n6")
    reading = planned(archive)
    assert reading.scan is not None
    groups, made = groups_of(reading)
    assert [one.url.endswith(last) for one in made] == [True]
    few = parts(reading.scan.bundles, MOST)
    assert divided(few, MOST, len(few), 5.0) == (few, [])


def damage(archive: Archive, name: str, at: int) -> None:
    """Change a byte of a bundle; its metadata stay."""
    [info] = archive.storage.list(name, metadata=True)
    data = bytearray(archive.storage.read(name).data)
    data[at] ^= 0xFF
    archive.storage.remove(name)
    archive.storage.put_new(name, bytes(data), info.metadata)


@pytest.mark.parametrize("at", [-6, -300_000, 300_000])
def test_damage_anywhere_is_a_problem_of_the_bundle(archive: Archive, at: int) -> None:
    """Of its checksum, or in a block."""
    damage(archive, large(archive), at)
    reading = planned(archive)
    groups, [made] = groups_of(reading)

    assert made.problem(rows_of(reading, groups)[1])


def test_a_checksum_that_differs_is_a_problem(archive: Archive) -> None:
    large(archive)
    reading = planned(archive)
    groups, [made] = groups_of(reading)
    _, counts = rows_of(reading, groups)

    assert made.problem(counts) == ""
    damaged = Pieces(made.bundles, made.crc ^ 1, made.size_bytes)
    assert damaged.problem(counts) == "its rows have another checksum than its trailer"
    one = made.bundles[1].key
    assert damaged.problem({key: count for key, count in counts.items() if key != one}) == ""
    counts[one].problem = "broken"
    assert made.problem(counts) == "broken"


@pytest.mark.long
def test_spark_reads_pieces_and_no_row_of_a_damaged_bundle(
    spark: SparkSession, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where one of them is damaged, all is read once more, without pieces."""
    large(archive, node="n1")
    archive.put([{"Count": 1000}], node="n2")
    sql = "SELECT count(*), sum(raw.`Count`), count(raw.UUID) FROM t"
    made: list[list[Pieces]] = []

    def noted(*args: Any) -> tuple[list[list[Bundle]], list[Pieces]]:  # noqa: ANN401 - as `divided`
        groups, found = divided(*args)
        made.append(found)
        return groups, found

    monkeypatch.setattr("loader.query.on_spark.divided", noted)
    count = ask(spark, archive, sql, read("foo1", "raw.Count", "raw.UUID"))
    [row] = count.table().to_pylist()
    assert list(row.values()) == [601, sum(range(600)) + 1000, 600]
    notes = count.notes
    assert (notes.bundles, notes.read_rows, notes.well) == (2, 601, True)
    assert notes.done_bytes > notes.size_bytes * 0.9
    assert [len(one.bundles) for found in made for one in found] == [8]

    damage(archive, large(archive, node="n3"), -6)
    count = ask(spark, archive, sql, read("foo1", "raw.Count", "raw.UUID"))
    [row] = count.table().to_pylist()
    assert list(row.values()) == [601, sum(range(600)) + 1000, 600]
    [(url, why)] = count.notes.damaged
    assert url.endswith("-data.jsonl.gz")
    assert "CRC" in why or "broken" in why
    assert [len(found) for found in made] == [1, 2]
