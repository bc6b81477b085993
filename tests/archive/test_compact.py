"""Compaction: which bundles are merged, what a merged bundle is, and that nothing is ever lost."""

from __future__ import annotations

import gzip
import json
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.archive import compact_merge, compact_order, compact_proof, native_index
from jostler.archive.address import find_moved
from jostler.archive.audit.remake import compression_of
from jostler.archive.audit.stream import blocks_of
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.cache import IndexCache
from jostler.archive.catalogue import Query
from jostler.archive.compact import (
    DAMAGED,
    FAILED,
    FOREIGN,
    TORN,
    Compacted,
    _Compaction,
    compact,
)
from jostler.archive.compact_days import FIRST, LAST, datatypes_in, days, last_settled, places_in
from jostler.archive.compact_merge import merge, planned
from jostler.archive.compact_plan import ROWS_MOST, Member, groups, parts_of
from jostler.archive.hashes import digest
from jostler.archive.lines import lines_of
from jostler.archive.lookup import Search, findings
from jostler.archive.reading import Row, RowReader, Unread
from jostler.archive.verify import verify
from jostler.cli import cat
from jostler.errors import ConflictError, StorageError, TransientError
from jostler.format.blocks import HEADER
from jostler.format.compression import FAST, SMALL, Compression, Method
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.format.node_table import MOST_BYTES, Run, header, runs_of
from jostler.format.nodes import safe_node
from jostler.storage import open_storage
from jostler.why.asked import parse
from jostler.why.finding import State
from loader.spark import limits
from tests.support.bundles import DAY, PLACE, bundle
from tests.support.compactors import LostError, run_many
from tests.support.kept import KeptArchive, contents
from tests.support.memory_bucket import Died, MemoryBucket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from jostler.archive.keeping import Made

MIB = 1 << 20


def put(bucket: MemoryBucket, objects: Iterable[Made]) -> None:
    for one in objects:
        bucket.put_new(one.name, one.data, one.metadata)


def compact_all(
    bucket: Any,  # noqa: ANN401 - one in memory, or another
    *,
    small: int = MIB,
    target: int = 256 * MIB,
    compression: Compression | None = None,
) -> Compacted:
    """Compact every day once."""
    result = Compacted()
    for place in places_in(bucket):
        for datatype in datatypes_in(bucket, place):
            for _day, members, _others in days(bucket, place, datatype, FIRST, LAST):
                for group in groups(members, small_bytes=small, target_bytes=target):
                    found = compact(
                        bucket,
                        group,
                        target_bytes=target,
                        version="jostler@2",
                        threads=1,
                        compression=compression,
                    )
                    result.done += found.done
                    result.left += found.left
    return result


def names(bucket: MemoryBucket, datatype: str = "foo1") -> list[BundleName]:
    return [BundleName.parse(n) for n in bucket.objects if f"/{datatype}/" in n]


def rows(bucket: MemoryBucket, name: object) -> list[dict[str, Any]]:
    plain = gzip.decompress(bucket.objects[str(name)][0])
    return [json.loads(line) for line in plain.splitlines()]


def index_of(name: BundleName) -> BundleName:
    return replace(name, kind=Kind.INDEX)


def test_a_merged_bundle_has_the_rows_of_all_in_order_and_an_index_that_agrees() -> None:
    """Rows keep their bytes and their archiver, index rows their facts; the verifier agrees."""
    bucket = MemoryBucket()
    odd = b'{"v":1E2,"w":93.20,"\\u00e9":12345678901234567890123}'
    first = bundle([("b.json", odd), ("a.json", b"{}")], node="n2", number=1, version="jostler@1")
    second = bundle([("c.json", b'{"v":2}')], node="n1", number=2, version="jostler@7")
    put(bucket, [*first, *second])
    before = {r["raw"]["Filename"]: r for n in names(bucket) for r in rows(bucket, index_of(n))}

    result = compact_all(bucket)

    (name,) = names(bucket)
    assert name.is_merged
    assert not result.left
    assert [(one.inputs, one.rows, one.repeats) for one in result.done] == [(2, 3, 0)]
    found = rows(bucket, name)
    assert [r["archiver"]["Filename"] for r in found] == [f"2026/01/02/{x}.json" for x in "cab"]
    assert [r["archiver"]["Version"] for r in found] == ["jostler@7", "jostler@1", "jostler@1"]
    assert {r["archiver"]["ArchiveURL"] for r in found} == {f"{bucket.url}/{name}"}
    assert b'"raw":' + odd + b"}\n" in gzip.decompress(bucket.objects[str(name)][0])
    for line, row in enumerate(rows(bucket, index_of(name)), 1):
        old = before[row["raw"]["Filename"]]["raw"]
        kept = ("Size", "TimeAdded", "Start", "End", "WorkID", "Hash", "Node", "Datatype")
        assert {key: row["raw"][key] for key in kept} == {key: old[key] for key in kept}
        assert (row["raw"]["Line"], row["raw"]["ArchiveURL"]) == (line, f"{bucket.url}/{name}")
    assert runs_of(bucket.objects[str(name)][0]) == (Run("n1", 1), Run("n2", 2))
    assert verify(bucket, "").problems == []
    assert compact_all(bucket).done == []


def test_exact_repeats_are_left_out_and_other_contents_stay() -> None:
    """A repeat has node, Filename and bytes in common; its earliest row is the one that stays."""
    bucket = MemoryBucket()
    put(bucket, bundle([("a.json", b"1" * 3)], number=5, version="jostler@5"))
    put(bucket, bundle([("a.json", b"{}"), ("b.json", b"{}")], number=2, version="jostler@2"))
    put(bucket, bundle([("a.json", b"{}")], number=3, version="jostler@3"))
    put(bucket, bundle([("a.json", b"{}")], number=4, node="n9"))

    (done,) = compact_all(bucket).done

    (name,) = names(bucket)
    assert (done.rows, done.repeats) == (4, 1)
    found = [(r["archiver"]["Filename"][-6:], r["archiver"]["Version"]) for r in rows(bucket, name)]
    assert sorted(found[:2]) == [("a.json", "jostler@2"), ("a.json", "jostler@5")]
    assert found[2:] == [("b.json", "jostler@2"), ("a.json", "jostler@1")]
    assert bucket.objects[str(index_of(name))][2]["repeats"] == "1"


@pytest.mark.parametrize(
    "place", [PLACE, Place(data_dir="autoload/v2", organization="org", experiment="ex-p")]
)
def test_names_of_merged_bundles_parse_and_depend_on_rows_alone(place: Place) -> None:
    """Whoever merges the same rows makes the same name, whatever bundles they came in."""
    seen = set()
    for parts in (["ab", "c"], ["a", "bc"], ["a", "b", "c"]):
        bucket = MemoryBucket()
        for number, part in enumerate(parts):
            files = [(f"{name}.json", b"{}") for name in part]
            put(bucket, bundle(files, number=number, place_=place))
        compact_all(bucket)
        (name,) = names(bucket)
        assert name.place == place
        assert name.node.startswith("compacted-")
        assert BundleName.parse(str(index_of(name))).is_merged
        seen.add((str(name), tuple(r["raw"] == {} for r in rows(bucket, name))))
    assert len(seen) == 1


def cut(data: bytes) -> bytes:
    return data[:-5]


def flipped(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


@pytest.mark.parametrize("half", [0, 1], ids=["data", "index"])
@pytest.mark.parametrize("damage", [cut, flipped])
def test_a_damaged_bundle_is_left_alone_and_reported(damage: Any, half: int) -> None:  # noqa: ANN401
    """The others are merged without it."""
    bucket = MemoryBucket()
    bad = list(bundle([("bad.json", b'{"x":"yyyyyyyyyyyyyyy"}')], number=1))
    bad[half] = replace(bad[half], data=damage(bad[half].data))
    put(bucket, bad)
    for number in (2, 3):
        put(bucket, bundle([(f"{number}.json", b"{}")], number=number))
    before = dict(bucket.objects)

    result = compact_all(bucket)

    assert [(one.url, one.reason) for one in result.left] == [
        (f"{bucket.url}/{bad[0].name}", DAMAGED)
    ]
    assert all(bucket.objects[one.name] == before[one.name] for one in bad)
    assert [one.inputs for one in result.done] == [2]


def test_a_row_that_differs_from_its_index_stops_the_removal_of_its_bundle() -> None:
    """It is found while the rows are merged; the bundles are merged once more, without it."""
    bucket = MemoryBucket()
    bad, other = bundle([("a.json", b'{"v":1}')], number=1), bundle([("a.json", b'{"v":2}')])
    put(bucket, [replace(bad[0], data=other[0].data), bad[1]])
    put(bucket, bundle([("b.json", b"{}")], number=2))
    put(bucket, bundle([("c.json", b"{}")], number=3))

    result = compact_all(bucket)

    assert [one.reason for one in result.left] == [DAMAGED]
    assert bad[0].name in bucket.objects
    assert len(names(bucket)) == 2


def differing(data: Made, index: Made, name: str, number: int) -> list[Made]:
    """Return a bundle of one file with a row of another content, of which only the Hash tells."""
    others = (bundle([(name, b'{"v":%d}' % v)], number=number)[0] for v in range(2, 10))
    other = next(one for one in others if len(one.data) == len(data.data))
    return [replace(data, data=other.data), index]


@pytest.mark.parametrize("which", [0, 1], ids=["the one that stays", "the one that is left out"])
def test_a_repeat_that_differs_from_its_index_stops_the_removal_of_its_bundle(which: int) -> None:
    """Of a row that is left out, the result shows nothing: it is compared where it lies."""
    bucket = MemoryBucket()
    parts = [bundle([("a.json", b'{"v":1}')], number=n) for n in (1, 2)]
    put(bucket, parts[1 - which])
    put(bucket, differing(*parts[which], "a.json", number=which + 1))
    put(bucket, bundle([("b.json", b"{}")], number=3))

    result = compact_all(bucket)

    damaged = parts[which][0].name
    assert [(one.url, one.reason) for one in result.left] == [(f"{bucket.url}/{damaged}", DAMAGED)]
    assert [(one.inputs, one.rows, one.repeats) for one in result.done] == [(2, 2, 0)]
    assert damaged in bucket.objects


def test_a_bundle_that_differs_from_its_index_stays_although_the_result_is_there() -> None:
    """Its rows are in the merged bundle, by its index: what it has instead is in no other."""
    bucket = MemoryBucket()
    parts = [bundle([(f"{n}.json", b'{"v":1}')], number=n) for n in (1, 2)]
    for part in parts:
        put(bucket, part)
    compact_all(bucket)
    put(bucket, differing(*parts[0], "1.json", number=1))

    result = compact_all(bucket)

    assert [one.reason for one in result.left] == [DAMAGED]
    assert not result.done
    assert len(bucket.objects) == 4


def test_a_bundle_whose_index_is_no_text_is_left_alone() -> None:
    """And stops no other."""
    bucket = MemoryBucket()
    data, index = bundle([("a.json", b"{}")], number=1)
    broken = gzip.decompress(index.data).replace(b"a.json", b"\x80.json")
    put(bucket, [data, replace(index, data=gzip.compress(broken))])
    put(bucket, bundle([("b.json", b"{}")], number=2))
    put(bucket, bundle([("c.json", b"{}")], number=3))

    result = compact_all(bucket)

    assert [one.reason for one in result.left] == [DAMAGED]
    assert [one.inputs for one in result.done] == [2]


def test_bundles_of_the_go_agent_and_of_older_agents_are_left_alone() -> None:
    """They have nothing wrong, so it is no failure."""
    bucket = MemoryBucket()
    data, index = bundle([("a.json", b"{}")])
    bare = gzip.compress(
        b'{"Filename":"/var/spool/exp/foo1/2026/01/02/a.json","Size":1,"TimeAdded":"2026/01/02T000000.000000Z"}'
    )
    put(bucket, [data, replace(index, data=bare)])
    data, index = bundle([("b.json", b"{}")], number=2)
    old = gzip.decompress(index.data).partition(b',"Start"')[0] + b"}}\n"
    put(bucket, [data, replace(index, data=gzip.compress(old))])

    result = compact_all(bucket)

    assert [one.reason for one in result.left] == [FOREIGN, FOREIGN]
    assert len(bucket.objects) == 4


def test_a_bundle_without_index_goes_only_if_a_merged_bundle_holds_its_rows() -> None:
    """That is what a compactor that died has left; what an agent has left is told."""
    bucket = MemoryBucket()
    covered, waits = bundle([("a.json", b"{}")], number=1), bundle([("z.json", b"{}")], number=2)
    put(bucket, [covered[0], waits[0]])
    put(bucket, bundle([("a.json", b"{}"), ("b.json", b"{}")], number=3))

    result = compact_all(bucket)

    assert [(one.url, one.reason) for one in result.left] == [
        (f"{bucket.url}/{waits[0].name}", TORN)
    ]
    assert covered[0].name not in bucket.objects
    assert sum(name.is_merged for name in names(bucket)) == 1


def test_an_object_of_the_results_name_that_holds_other_rows_stops_everything() -> None:
    """Nothing is removed on its account."""
    bucket = MemoryBucket()
    parts = [bundle([(f"{n}.json", b"{}")], number=n) for n in (1, 2)]
    for part in parts:
        put(bucket, part)
    compact_all(bucket)
    (name,) = names(bucket)
    bucket.objects.clear()
    put(bucket, [replace(parts[0][0], name=str(name))])
    for part in parts:
        put(bucket, part)

    result = compact_all(bucket)

    assert {one.reason for one in result.left} == {DAMAGED, FAILED}
    assert not result.done
    assert all(half.name in bucket.objects for part in parts for half in part)


def test_a_whole_bundle_of_the_results_name_with_other_rows_stops_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not its name alone: its rows must be those of the inputs before these go."""
    bucket = MemoryBucket()
    parts = [bundle([(f"{n}.json", b"{}")], number=n) for n in (1, 2)]
    for part in parts:
        put(bucket, part)
    forged: list[Made] = []

    def stored_meanwhile(group: Any, inputs: Any, plan: Any, **how: Any) -> Any:  # noqa: ANN401
        if not forged:
            other = replace(planned(group, inputs[:1]), name=plan.name)
            made = merge(group, inputs[:1], other, **how)
            forged.extend((made.data, made.index))
            put(bucket, forged)
        return merge(group, inputs, plan, **how)

    monkeypatch.setattr(compact_proof, "merge", stored_meanwhile)

    result = compact_all(bucket)

    assert {one.reason for one in result.left} == {FAILED}
    assert not result.done
    assert all(half.name in bucket.objects for part in parts for half in part)


def test_repeats_of_earlier_merges_count_on() -> None:
    """The loader accepts so many rows less in index1, however often a day was merged."""
    bucket = MemoryBucket()
    for number in (1, 2, 3):
        put(bucket, bundle([("a.json", b"{}"), (f"{number}.json", b"{}")], number=number))
        compact_all(bucket)
    (name,) = names(bucket)
    index = str(replace(name, kind=Kind.INDEX))
    data, version, told = bucket.objects[index]
    assert told["repeats"] == "2"

    # A bundle that is sent again has no row that the merged one lacks: only it is removed.
    put(bucket, bundle([("a.json", b"{}"), ("3.json", b"{}")], number=4))
    (done,) = compact_all(bucket).done
    assert (done.inputs, done.objects_after) == (1, 0)
    assert names(bucket) == [name]
    again, newer, counted = bucket.objects[index]
    assert (again, counted) == (data, told | {"repeats": "4"})
    assert newer != version
    compact_all(bucket)
    assert bucket.objects[index][1] == newer


@pytest.mark.parametrize(
    ("inputs", "asked", "made"),
    [
        ([SMALL, SMALL, SMALL], None, SMALL),
        ([FAST, FAST, FAST], None, FAST),
        ([SMALL, FAST, SMALL], None, SMALL),
        ([FAST, FAST, SMALL], None, FAST),
        ([SMALL, SMALL, SMALL], FAST, FAST),
        ([FAST, FAST, FAST], Compression(Method.ZLIB_NG, 9), Compression(Method.ZLIB_NG, 9)),
    ],
)
def test_a_merged_bundle_is_as_dense_as_its_inputs_or_as_is_asked(
    tmp_path: Path, inputs: list[Compression], asked: Compression | None, made: Compression
) -> None:
    """Otherwise an archive of small bundles would grow; the index is compressed as the data."""
    archive = KeptArchive(open_storage(tmp_path.as_uri()))
    for number, one in enumerate(inputs):
        archive.put(contents(range(50 * number, 50 * number + 50), size=2000), compression=one)
    before = sum(map(len, archive.objects().values()))

    (done,) = compact_all(archive.storage, compression=asked).done

    assert done.rows == 150
    if asked is None and len(set(inputs)) == 1:
        assert sum(map(len, archive.objects().values())) < before
    name = BundleName.parse(done.url.removeprefix(f"{archive.storage.url}/"))
    for data in (archive.get(name), archive.get(index_of(name))):
        assert compression_of(data, blocks_of(data, lines_of(data))) == made


def test_an_index_that_learns_earlier_times_stays_as_dense_as_it_was(tmp_path: Path) -> None:
    """A bundle of rows that the merged one has was read earlier; the data stays as it is."""
    archive = KeptArchive(open_storage(tmp_path.as_uri()))
    early = datetime(2026, 1, 2, tzinfo=UTC)
    for first in (0, 50):
        archive.put(contents(range(first, first + 50), size=2000), added=early + timedelta(days=1))
    (done,) = compact_all(archive.storage).done
    archive.put(contents(range(10), size=2000), added=early)

    compact_all(archive.storage)

    name = BundleName.parse(done.url.removeprefix(f"{archive.storage.url}/"))
    index = archive.get(index_of(name))
    times = [json.loads(line)["raw"]["TimeAdded"] for line in lines_of(index)]
    assert [when[:10] for when in times].count("2026-01-02") == 10
    assert compression_of(index, blocks_of(index, lines_of(index))) == SMALL


def test_a_bundle_of_the_size_that_is_not_small_is_left_alone() -> None:
    bucket = MemoryBucket()
    parts = [bundle([(f"{n}.json", b'{"v":"%b"}' % (b"x" * n))], number=n) for n in (1, 2, 900)]
    for part in parts:
        put(bucket, part)
    large = parts[2][0]
    assert len(large.data) > max(len(data.data) for data, _ in parts[:2])
    (done,) = compact_all(bucket, small=len(large.data)).done
    assert done.inputs == 2
    assert large.name in bucket.objects


def test_groups_have_one_schema_and_stay_below_the_limits() -> None:
    """Bytes, rows and the table of nodes; what is large already, or alone, is in no group."""

    def made(number: int, **facts: Any) -> Member:  # noqa: ANN401
        name = BundleName.parse(
            bundle([("a.json", b"{}")], number=number, node=f"n{number}")[0].name
        )
        told: dict[str, Any] = {"size_bytes": 10, "index_bytes": 1, "rows": 100, "schema": "s"}
        return Member(name=name, version="1", index_version="2", **(told | facts))

    def planned(members: list[Member], target: int = 4000) -> list[list[int]]:
        found = groups(members, small_bytes=1000, target_bytes=target)
        return [[int(one.name.node[1:]) for one in group.members] for group in found]

    many = [made(n) for n in range(10)]
    assert planned(many) == [list(range(10))]
    assert planned(
        [*many[:2], made(20, schema="t"), made(21, schema="t"), made(22, schema="")]
    ) == [
        [0, 1],
        [20, 21],
    ]
    assert planned([*many[:2], made(3, size_bytes=1000)]) == [[0, 1]]
    assert planned([made(n, size_bytes=400) for n in range(5)]) == [[0, 1], [2, 3]]
    assert planned([made(n, rows=ROWS_MOST // 2) for n in range(4)]) == [[0, 1], [2, 3]]
    assert planned([made(0)]) == []


def test_the_plan_keeps_to_the_loaders_limits() -> None:
    """A merged bundle is never refused for its size, so its rows never are."""
    assert ROWS_MOST <= limits.BAD_MAX
    assert ROWS_MOST <= limits.ROWS_MAX


def test_rows_larger_than_the_target_go_into_several_bundles() -> None:
    """What was planned by packed sizes is divided by what the rows take."""
    bucket = MemoryBucket()
    for number in range(6):
        put(bucket, bundle([(f"{number}.json", b'{"v":"%b"}' % (b"x" * 20_000))], number=number))

    compact_all(bucket, target=62_000)

    assert sorted(len(rows(bucket, name)) for name in names(bucket)) == [3, 3]
    assert verify(bucket, "").problems == []


def test_nodes_that_do_not_fit_into_one_table_go_into_several_bundles() -> None:
    """Merged bundles have many nodes; those that both have are counted once."""

    def made(number: int, first: int) -> Any:  # noqa: ANN401 - what is asked of an input
        runs = tuple(Run(f"node{n:08}", 1) for n in range(first, first + 2000))
        return SimpleNamespace(
            member=SimpleNamespace(name=number), runs=runs, rows=2000, plain_bytes=10**6
        )

    def divided(*inputs: Any) -> list[list[int]]:  # noqa: ANN401
        found = parts_of(inputs, 256 * MIB, frozenset())
        return [[one.member.name for one in part] for part in found]

    assert divided(made(0, 0), made(1, 0), made(2, 100)) == [[0, 1, 2]]
    assert divided(made(0, 0), made(1, 2000), made(2, 2000)) == [[0], [1, 2]]


def test_a_day_is_settled_when_it_ended_long_enough_ago() -> None:
    """With a day, on the fourth of January the second has settled."""
    assert last_settled(Day.parse("2026/01/04").date, 1) == Day.parse("2026/01/02").date
    assert last_settled(Day.parse("2026/01/04").date, 0) == Day.parse("2026/01/03").date


nodes = st.sets(st.integers(0, 9999).map("a.b-{}_C".format), max_size=8)


@settings(max_examples=40)
@given(nodes, st.integers(1, 10**9), st.binary(max_size=40))
def test_a_table_of_nodes_is_read_as_it_was_written(
    found: set[str], count: int, rest: bytes
) -> None:
    """An agent's header has none; a damaged one is told."""
    runs = tuple(Run(node, count) for node in sorted(found))
    if runs:
        assert runs_of(header(runs) + rest) == runs
        with pytest.raises(ValueError, match="table of nodes"):
            runs_of(header(runs)[:-1])
    assert runs_of(HEADER + rest) == ()


def test_a_table_of_nodes_that_is_too_long_is_refused() -> None:
    """The plan keeps below that."""
    with pytest.raises(ValueError, match="does not fit"):
        header([Run(f"n{n:09}", 1) for n in range(MOST_BYTES // 11)])


def test_what_merging_made_is_read_back_before_an_input_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two rows that changed places are found, and so is a bundle that inflates to other rows."""
    write = compact_merge._write_rows

    def exchanged(writer: Any, *rest: Any) -> None:  # noqa: ANN401
        add, add_rows = writer.add, writer.add_rows

        def backwards(text: bytes, rows: int = 1) -> None:
            add(b"".join(text.splitlines(keepends=True)[::-1]), rows)

        monkeypatch.setattr(writer, "add", backwards)
        monkeypatch.setattr(writer, "add_rows", lambda rows: add_rows(rows[::-1]))
        write(writer, *rest)

    bucket = MemoryBucket()
    put(bucket, bundle([("a.json", b"{}"), ("b.json", b'{"v":1}')], number=1))
    put(bucket, bundle([("c.json", b"{}")], number=2))
    before = dict(bucket.objects)
    monkeypatch.setattr(compact_merge, "_write_rows", exchanged)

    assert [one.reason for one in compact_all(bucket).left] == [FAILED, FAILED]

    assert bucket.objects == before


def test_a_merge_that_left_out_an_input_removes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and index that agree are not enough: they must have the rows of all inputs."""

    def fewer(group: Any, inputs: Any, plan: Any, **how: Any) -> Any:  # noqa: ANN401
        return merge(group, inputs[:1], planned(group, inputs[:1]), **how)

    bucket = MemoryBucket()
    put(bucket, bundle([("a.json", b"{}")], number=1))
    put(bucket, bundle([("b.json", b"{}")], number=2))
    before = dict(bucket.objects)
    monkeypatch.setattr(compact_proof, "merge", fewer)

    assert [one.reason for one in compact_all(bucket).left] == [FAILED, FAILED]

    assert bucket.objects == before


def test_no_row_is_lost_whoever_dies_when() -> None:
    """Uploaders die and come again, compactors die anywhere; a quiet end has one object."""
    assert run_many(range(300))["rows"] > 300


def _keeps_nothing(self: _Compaction, name: BundleName, old: Any, merged: Any, each: Any) -> None:  # noqa: ANN401
    for one in old:
        self._removed(one.member)


def _without_content(identities: Iterable[tuple[str, str, bytes]]) -> str:
    told = repr(sorted({(node, filename) for node, filename, _ in identities}))
    return f"{abs(hash(told)):032x}"[:32]


def _named_without_content(monkeypatch: pytest.MonkeyPatch) -> None:
    def order_of(inputs: Any, left_out: Any = frozenset()) -> Any:  # noqa: ANN401
        order: Any = compact_order.order_of(inputs, left_out)
        order.digest = lambda: _without_content(order.identities())
        return order

    monkeypatch.setattr(compact_merge, "order_of", order_of)
    monkeypatch.setattr(compact_merge, "digest_of", _without_content)


def _removing_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Compaction, "_remove", _keeps_nothing)


@pytest.mark.parametrize("by_native", [True, False], ids=["native", "python"])
@pytest.mark.parametrize(
    "mutate",
    [_removing_the_result, _named_without_content],
    ids=["removes also what equals the result", "is named by Filenames without content"],
)
def test_the_model_sees_a_wrong_compaction(
    mutate: Callable[[pytest.MonkeyPatch], None],
    by_native: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two mistakes that are easily made lose rows, and the model finds them."""
    if not by_native:
        monkeypatch.setattr(native_index, "_classes", lambda: None)
    mutate(monkeypatch)
    with pytest.raises(LostError):
        run_many(range(200))


def stored(root: Path) -> tuple[str, list[str]]:
    """Store bundles of three nodes in a directory bucket; return its URL and a file's address."""
    storage = open_storage(root.as_uri())
    addresses = []
    for number, (node, files) in enumerate(
        [
            ("n1", ["a.json", "b.json"]),
            ("n2", ["a.json", "c.json"]),
            ("n1", ["b.json", "d.json"]),
            ("n3", ["e.json"]),
        ]
    ):
        contents = [(name, b'{"of":"%b"}' % f"{node}{name}".encode()) for name in files]
        objects = bundle(contents, node=node, number=number, bucket=storage.url)
        for one in objects:
            storage.put_new(one.name, one.data, one.metadata)
        addresses += [f"{storage.url}/{objects[0].name}#2026/01/02/{name}" for name in files]
    return storage.url, addresses


def seen(catalogue: BucketCatalogue) -> list[object]:
    """Ask a catalogue all kinds of things whose answers do not name bundles."""
    queries = [
        Query(),
        Query(nodes=("n1",)),
        Query(nodes=("n2", "n3"), datatypes=("foo1",)),
        Query(filename="a.json"),
        Query(hash=digest(b'{"of":"n3e.json"}')),
        Query(nodes=("n4",)),
    ]
    answers: list[object] = []
    for query in queries:
        found = catalogue.files(query)
        answers.append(sorted((f.node, f.path, f.hash, f.start, f.added, f.work_id) for f in found))
        answers.append(catalogue.nodes(query))
        # Bundles and files of a day are counted as they are stored, so these become fewer.
        answers.append([(d.day, d.datatype, d.node) for d in catalogue.days(query)])
    return answers


def test_a_catalogue_answers_the_same_before_and_after(tmp_path: Path) -> None:
    """With a cache, without, and with one that knows the merged bundle from the time before."""
    url, _ = stored(tmp_path / "bucket")
    storage = open_storage(url)
    cache = tmp_path / "cache"

    def ask(where: Path | None) -> list[object]:
        with closing(BucketCatalogue(storage, [PLACE], IndexCache(where, 1 << 24))) as catalogue:
            return seen(catalogue)

    before = ask(cache)
    assert len(compact_all(storage).done) == 1

    assert ask(None) == before
    assert ask(cache) == before
    assert ask(cache) == before
    with closing(BucketCatalogue(storage, [PLACE])) as catalogue:
        sums = [(one.origin.node, one.files) for one in catalogue.bundles(Query())]
        assert sums == [("n1", 3), ("n2", 2), ("n3", 1)]
        assert [one.origin.node for one in catalogue.bundles(Query(nodes=("n2",)))] == ["n2"]
        rows = closing(RowReader(lambda _url: storage))
        with rows as reader:
            for file in catalogue.files(Query()):
                assert reader.read(file).raw == b'{"of":"%b"}' % f"{file.node}{file.name}".encode()


def test_an_old_address_leads_to_the_new_place(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`cat` looks again; two nodes with the same name in common are told apart by the old one."""
    url, addresses = stored(tmp_path / "bucket")
    compact_all(open_storage(url))
    common = ["-bucket", url, "-experiment", "exp", "-cache-dir", "-"]

    assert cat.main([addresses[2], *common]) == 0
    assert capfdbinary.readouterr().out == b'{"of":"n2a.json"}'
    assert cat.main([addresses[0].replace("#2026/01/02/a", "#2026/01/02/none"), *common]) == 1
    capfdbinary.readouterr()
    (name,) = (info.name for info in open_storage(url).list("autoload/v1/exp/foo1/"))
    assert cat.main([f"{url}/{name}#2026/01/02/a.json", *common]) == 1
    told = capfdbinary.readouterr().err.decode()
    assert "names 2 files" in told
    assert cat.main([digest(b'{"of":"n1a.json"}'), "-lookback", "100000h", *common]) == 0
    assert capfdbinary.readouterr().out == b'{"of":"n1a.json"}'


def test_a_file_that_was_listed_before_a_compaction_is_read_after_it(tmp_path: Path) -> None:
    """The reader finds it again."""
    url, _ = stored(tmp_path / "bucket")
    storage = open_storage(url)
    with closing(BucketCatalogue(storage, [PLACE])) as catalogue:
        files = list(catalogue.files(Query()))
        compact_all(storage)
        moved = partial(find_moved, catalogue=catalogue)
        with closing(RowReader(lambda _url: storage, moved)) as reader:
            found = list(reader.read_all(files))
        wanted = [(file.node, file.name) for file in files]
        assert [(row.file.node, row.file.name) for row in found] == wanted
        assert all(isinstance(row, Row) and row.verified for row in found)
        assert all("compacted-" in row.file.address for row in found)
        with closing(RowReader(lambda _url: storage)) as reader:
            assert all(isinstance(row, Unread) for row in reader.read_all(files))


def test_rejected_files_keep_their_rows_and_counts(tmp_path: Path) -> None:
    """Their Hash is that of Content, and some have none: rows are told apart by their bytes."""
    storage = open_storage((tmp_path / "bucket").as_uri())
    for number in range(3):
        raw = orjson.dumps(
            {
                "TimeAdded": f"2026-01-02T00:00:0{number}.000000Z",
                "Datatype": "foo1",
                "Node": "n1",
                "Reason": "empty" if number else "name",
                "Content": "e30=",
            }
        )
        made = bundle([("x.json", raw)], number=number, datatype="rejected1", bucket=storage.url)
        plain = gzip.decompress(made[1].data).replace(digest(raw).encode(), digest(b"{}").encode())
        index = replace(made[1], data=gzip.compress(plain))
        for one in (made[0], index):
            storage.put_new(one.name, one.data, one.metadata)
    with closing(BucketCatalogue(storage, [PLACE])) as catalogue:
        before = list(catalogue.rejects(Query()))
        (done,) = compact_all(storage).done
        assert (done.rows, done.repeats) == (3, 0)
        assert list(catalogue.rejects(Query())) == before
        assert {one.reason: one.files for one in before} == {"name": 1, "empty": 2}


@pytest.mark.parametrize("fault", ["dies", "fails", "loses the reply"])
def test_a_fault_at_any_request_loses_nothing_and_the_next_run_completes_it(fault: str) -> None:
    """Each request in turn: the process dies, the request fails, or only its reply is lost."""
    for number in range(1000):
        bucket = MemoryBucket()
        for one in range(4):
            put(bucket, bundle([("a.json", b"{}"), (f"{one}.json", b"{}")], number=one))
        wanted = {r["archiver"]["Filename"] for name in names(bucket) for r in rows(bucket, name)}
        faulty = Faulty(bucket, number, fault)
        with suppress(Died, TransientError):
            compact_all(faulty)
        whole = [name for name in names(bucket) if str(index_of(name)) in bucket.objects]
        assert wanted == {
            r["archiver"]["Filename"] for name in whole for r in rows(bucket, name)
        }, f"request {number}"

        compact_all(bucket)

        assert len(names(bucket)) == 1, f"request {number}"
        assert len(bucket.objects) == 2
        assert len(rows(bucket, names(bucket)[0])) == len(wanted)
        if not faulty.met:
            break
    assert number > 15


@pytest.mark.parametrize(("error", "reasons"), [(ConflictError, []), (TransientError, [FAILED])])
def test_what_could_not_be_removed_is_not_counted_as_removed(
    monkeypatch: pytest.MonkeyPatch, error: type[StorageError], reasons: list[str]
) -> None:
    """A right that lacks, or an object that was stored again; its text index stays, too."""
    bucket = MemoryBucket()
    for number in range(3):
        put(bucket, bundle([(f"{number}.json", b"{}")], number=number))
    stays = names(bucket)[0]
    bucket.put_new(stays.token_filters, b"tokens", {})
    remove = bucket.remove

    def refusing(name: str, version: str = "") -> None:
        if name == str(index_of(stays)):
            raise error("no")
        remove(name, version)

    sizes = [len(data) for name, (data, *_) in bucket.objects.items() if "token" not in name]
    kept = len(bucket.objects[str(stays)][0]) + len(bucket.objects[str(index_of(stays))][0])
    monkeypatch.setattr(bucket, "remove", refusing)
    found = compact_all(bucket)
    (done,) = found.done
    assert [one.reason for one in found.left] == reasons
    assert (done.inputs, done.objects_before, done.objects_after) == (2, 4, 2)
    assert done.bytes_before == sum(sizes) - kept
    assert stays.token_filters in bucket.objects


class Faulty:
    """A bucket of which the request of a number meets a fault."""

    def __init__(self, bucket: MemoryBucket, number: int, fault: str) -> None:
        self._bucket, self._left, self._fault = bucket, number, fault
        self.url, self.met = bucket.url, False

    def __getattr__(self, request: str) -> Any:  # noqa: ANN401 - all of them
        ask = getattr(self._bucket, request)

        def call(*arguments: object, **named: object) -> object:
            self._left -= 1
            now, self.met = self._left == -1, self.met or self._left == -1
            if now and self._fault != "loses the reply":
                raise Died if self._fault == "dies" else TransientError("no answer")
            found = ask(*arguments, **named)
            if now:
                raise TransientError("the reply was lost")
            return found

        return call


def test_why_finds_a_file_in_its_merged_bundle(tmp_path: Path) -> None:
    """Asked of one node, or of all; the row is read and held against its hash."""
    url, _ = stored(tmp_path / "bucket")
    storage = open_storage(url)
    compact_all(storage)
    asked = parse("2026/01/02/a.json", spool="/var/spool/exp", datatypes=())
    nodes = {}
    for only in ("", "n2", "n3"):
        search = Search(
            places=(PLACE,), days=(DAY.date,), only_node=only, first_node="", most=9, show=True
        )
        found, looked = findings(asked, storage, search)
        assert looked.done
        assert all(one.state is State.STORED for one in found)
        nodes[only] = [(one.evidence["node"], one.row) for one in found]
    both = [("n1", b'{"of":"n1a.json"}'), ("n2", b'{"of":"n2a.json"}')]
    assert nodes == {"": both, "n2": both[1:], "n3": []}


def test_no_node_has_the_name_of_a_merged_bundle() -> None:
    """Its bundles would be taken for merged ones."""
    assert safe_node("compacted") == "compacted"
    with pytest.raises(ValueError, match="merged"):
        safe_node(f"compacted-{'0' * 32}")
