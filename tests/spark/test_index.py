"""What an executor believes of an index; neither Spark nor BigQuery is needed to ask it."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostler.archive.audit.stream import header_bytes
from jostler.archive.compact_input import read_input
from jostler.archive.compact_merge import merge, planned
from jostler.archive.compact_plan import Group, member_in_memory
from jostler.archive.native_index import index_reader
from jostler.bundle import Archiver, Entry, FileState, Header, OpenBundle, content_hash
from jostler.bundle.index import index_object
from jostler.format.blocks import HEADER
from jostler.format.compression import FAST
from jostler.format.names import BundleName, Day
from jostler.format.node_table import Run, header
from jostler.schema import Use, fields_from_api, table_schema
from loader.bucket import open_bucket
from loader.spark import engine, index
from loader.spark.index import Examined, IndexTask, examined, groups
from loader.spark.verify import Task
from tests.loader.world import DAY
from tests.support.bundles import PLACE, bundle
from tests.support.spool import SCHEMA, document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
FIELDS = table_schema(fields_from_api(SCHEMA))
EMPTY = gzip.compress(b"{}\n", mtime=0)
NAME = "autoload/v1/exp/foo1/2026/01/02/20260102T030405.000001Z-foo1-node1-exp-data.jsonl.gz"


class Pair:
    """A bundle and its index in a directory."""

    node = "node1"

    def __init__(self, root: Path, files: int = 3) -> None:
        self.name = BundleName.parse(NAME)
        header = Header(
            name=self.name,
            bucket=root.as_uri(),
            archiver=Archiver(version="jostler@1", commit="c"),
            compression=FAST,
        )
        opened = OpenBundle(header, 0.0)
        for number in range(files):
            raw = document(number, size=120)
            path = f"foo1/2026/01/02/m{number}.json"
            entry = Entry(path, FileState(1, len(raw), 1, 1), 10**15, content_hash(raw))
            opened.add(entry, opened.row(entry.filename, raw))
        bundle = opened.seal()
        self.root, self.files = root, files
        self.data, self.index = root / NAME, root / str(header.index_name)
        for path, content in (
            (self.data, bundle.data),
            (self.index, index_object(header, bundle.attempt)),
        ):
            path.parent.mkdir(parents=True)
            path.write_bytes(content)

    def change(self, change: Callable[[Rows], Rows]) -> None:
        """Write the index anew, its rows changed."""
        rows = [json.loads(line) for line in gzip.decompress(self.index.read_bytes()).splitlines()]
        # Written as an agent writes it, so that the native module reads what is not changed.
        lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in change(rows)]
        self.index.write_bytes(gzip.compress("".join(lines).encode()))

    def put(self, plain: bytes) -> None:
        """Write the bundle anew, and let the index say where it ends."""
        whole = self.data.read_bytes()
        self.data.write_bytes(whole[: header_bytes(whole)] + gzip.compress(plain)[len(HEADER) :])
        size = self.data.stat().st_size
        self.change(lambda rows: raw(rows, Offset=size - 10, Length=0))

    def task(self, *, sampled: bool = False, native: Use = Use.OFF) -> IndexTask:
        bucket = open_bucket(self.root.as_uri(), 5)
        found = {entry.name: entry for entry in bucket.list("")}
        data, index = (found[str(path.relative_to(self.root))] for path in (self.data, self.index))
        return IndexTask(
            data=Task(
                ordinal=7,
                bucket=bucket.url,
                name=data.name,
                generation=data.generation,
                size_bytes=data.size_bytes,
                node=self.node,
                day=Day(DAY),
                table=0,
                native=native,
            ),
            name=index.name,
            generation=index.generation,
            size_bytes=index.size_bytes,
            rows=self.files,
            sampled=sampled,
        )

    def examine(self, *, sampled: bool = False) -> Examined:
        """Return what Python finds, which the native module changes in nothing."""
        one, same = (
            next(examined([self.task(sampled=sampled, native=use)], (FIELDS,), 5))
            for use in (Use.OFF, Use.AUTO)
        )
        assert one == same
        return one


class Merged(Pair):
    """A merged bundle of two nodes, of which one has two versions of the agent."""

    def __init__(self, root: Path, files: int = 3) -> None:
        agents = [("n1", "jostler@1"), ("n2", "jostler@2"), ("n2", "jostler@1")]
        made = [
            bundle(
                [(f"m{n}.json", document(n, size=120)) for n in range(at, files, len(agents))],
                node=node,
                number=at,
                bucket=root.as_uri(),
                version=version,
            )
            for at, (node, version) in enumerate(agents)
        ]
        members = [
            member_in_memory(BundleName.parse(data.name), data.data, index.data)
            for data, index in made
        ]
        group = Group(place=PLACE, datatype="foo1", day=Day(DAY), schema="", members=tuple(members))
        inputs = [
            read_input(member, data.data, index.data)
            for member, (data, index) in zip(members, made, strict=True)
        ]
        one = merge(group, inputs, planned(group, inputs), bucket=root.as_uri(), version="1")
        self.root, self.files, self.node = root, files, one.name.node
        self.data, self.index = root / one.data.name, root / one.index.name
        for path, content in ((self.data, one.data.data), (self.index, one.index.data)):
            path.parent.mkdir(parents=True)
            path.write_bytes(content)


def raw(rows: Rows, line: int = -1, **change: object) -> Rows:
    rows[line]["raw"].update(change)
    return rows


def without(rows: Rows, key: str) -> Rows:
    del rows[0]["raw"][key]
    return rows


@pytest.mark.parametrize("sampled", [True, False])
def test_an_index_gives_a_key_for_each_file(tmp_path: Path, *, sampled: bool) -> None:
    """The same for the same node and name, however often it is asked."""
    pair = Pair(tmp_path, 500)
    found = pair.examine(sampled=sampled)
    assert (found.ordinal, found.problem, len(found.keys)) == (7, "", 500 * 8)
    keys = {found.keys[at : at + 8] for at in range(0, len(found.keys), 8)}
    assert len(keys) == 500
    assert pair.examine() == found


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: rows[:2], "3 rows, and its index 2"),
        (lambda rows: [*rows, rows[0]], "3 rows, and its index 4"),
        (lambda rows: rows[::-1], "lines lack"),
        (lambda rows: raw(rows, Line=4), "lines lack"),
        (lambda rows: raw(rows, 1, Line=3), "lines lack"),
        (lambda rows: raw(rows, 1, Node="x"), "of other bundles"),
        (lambda rows: raw(rows, 1, ArchiveURL="gs://x"), "of other bundles"),
        (lambda rows: raw(rows, 1, Filename="2020/01/01/m"), "of another day"),
        (lambda rows: raw(rows, 0, Hash=""), "without hash"),
        (lambda rows: raw(rows, Length=1), "another size"),
        (lambda rows: raw(rows, Hash=""), "without hash"),
        (lambda rows: raw(rows, Node="x"), "of other bundles"),
        (lambda rows: raw(rows, ArchiveURL="gs://x"), "of other bundles"),
        (lambda rows: raw(rows, 0, ArchiveURL="gs://x"), "is that of gs://x"),
        (lambda rows: raw(rows, Filename="2020/01/01/m"), "of another day"),
        (lambda rows: raw(rows, Line="3"), "no row"),
        (lambda rows: without(rows, "Start"), "no row"),
        (lambda rows: without(rows, "Hash"), "no row"),
        (lambda rows: [{**rows[0], "date": "2020-01-01"}, *rows[1:]], "another date"),
        (lambda rows: [raw([row], ArchiveURL="gs://x")[0] for row in rows], "is that of gs://x"),
        (lambda _: [], "3 rows, and its index 0"),
    ],
)
def test_an_index_of_anything_else_is_not_believed(
    tmp_path: Path, change: Callable[[Rows], Rows], why: str
) -> None:
    """Without a look at the bundle, and before it."""
    pair = Pair(tmp_path)
    pair.change(change)
    for sampled in (False, True):
        found = pair.examine(sampled=sampled)
        assert why in found.problem
        assert found.keys == b""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda rows: raw(rows, Hash="0" * 32), "line 3 does not have the hash"),
        (lambda rows: raw(rows, Filename="2026/01/02/m9.json"), "line 3 is not the file"),
    ],
)
def test_what_only_the_bundle_can_show_is_seen_in_a_sample(
    tmp_path: Path, change: Callable[[Rows], Rows], why: str
) -> None:
    """Each row is held against its index row."""
    pair = Pair(tmp_path)
    pair.change(change)
    assert pair.examine().problem == ""
    assert why in pair.examine(sampled=True).problem


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"Rate":', b'"Rata":', "line 1 is a bad row"),
        (b'"date":"2026-01-02"', b'"date":"2026-01-03"', "line 1 is a bad row"),
        (b"\n", b"\n\n", "line 2 is a bad row"),
    ],
)
def test_a_sampled_bundle_is_judged(tmp_path: Path, old: bytes, new: bytes, why: str) -> None:
    """A schema that is contained in the table's makes good rows; this shows that it did."""
    pair = Pair(tmp_path)
    pair.put(gzip.decompress(pair.data.read_bytes()).replace(old, new))
    assert pair.examine().problem == ""
    assert why in pair.examine(sampled=True).problem


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: [*lines, lines[0]], "more than the 3 rows"),
        (lambda lines: lines[:2], "it has 2 rows, and its index 3"),
        (lambda lines: [lines[1], lines[0], lines[2]], "line 1 is not the file"),
    ],
)
def test_a_sampled_bundle_has_the_rows_of_its_index(
    tmp_path: Path, change: Callable[[list[bytes]], list[bytes]], why: str
) -> None:
    """All good, and the index says where the bundle ends."""
    pair = Pair(tmp_path)
    pair.put(b"".join(change(gzip.decompress(pair.data.read_bytes()).splitlines(True))))
    assert pair.examine().problem == ""
    assert why in pair.examine(sampled=True).problem


def test_a_bad_row_is_bad_though_its_index_has_its_hash(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    good = document(0, size=120)
    bad = good.replace(b'"Rate":', b'"Rata":')
    pair.change(lambda rows: raw(rows, 0, Hash=content_hash(bad).hex()))
    pair.put(gzip.decompress(pair.data.read_bytes()).replace(good, bad))
    assert "line 1 is a bad row" in pair.examine(sampled=True).problem


@pytest.mark.parametrize("data", [b"", b"no gzip", EMPTY, EMPTY[:-9]])
def test_an_index_that_is_none_is_reported(tmp_path: Path, data: bytes) -> None:
    """And so is one that is gone, or cut off."""
    pair = Pair(tmp_path)
    pair.index.write_bytes(data)
    assert pair.examine().problem.startswith(NAME)


NATIVE = index_reader(BundleName.parse(NAME), url="", index_url="")


@pytest.mark.skipif(not NATIVE, reason="the native module is not built")
@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("kind", [Pair, Merged])
def test_the_native_module_takes_what_agents_and_compactions_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Pair], *, sampled: bool
) -> None:
    """Several blocks of an index and of a bundle, and Python has nothing left to do."""
    pair = kind(tmp_path, 3_000)
    told = pair.examine(sampled=sampled)
    monkeypatch.setattr(index, "_read_index", None)
    task = pair.task(sampled=sampled, native=Use.REQUIRE)
    assert next(examined([task], (FIELDS,), 5)) == told
    assert len(told.keys) == 24_000
    assert not told.problem


@pytest.mark.skipif(not NATIVE, reason="the native module is not built")
@pytest.mark.parametrize("sampled", [True, False])
def test_only_the_rows_of_a_merged_bundle_may_be_of_other_nodes(
    tmp_path: Path, *, sampled: bool
) -> None:
    """A table of nodes in an agent's bundle changes nothing, and one that lies is told."""
    pair = Pair(tmp_path, 4)
    whole = pair.data.read_bytes()
    table = header([Run("other", 4)])
    pair.data.write_bytes(table + whole[len(HEADER) :])
    shift = len(table) - len(HEADER)
    pair.change(lambda rows: [raw([row], Node="other", Offset=row["raw"]["Offset"] + shift)[0]
                              for row in rows])  # fmt: skip
    assert "other bundles" in pair.examine(sampled=sampled).problem
    merged = Merged(tmp_path / "merged", 6)
    merged.change(lambda rows: [raw([row], Node="n3")[0] for row in rows])
    assert bool(merged.examine(sampled=sampled).problem) is sampled


@pytest.mark.skipif(not NATIVE, reason="the native module is not built")
@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("kind", [Pair, Merged])
@given(data=st.data())
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_what_is_taken_of_changed_bytes_is_what_python_takes(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    kind: type[Pair],
    *,
    sampled: bool,
) -> None:
    """Bytes of the bundle or its index are changed at random: the module never takes more."""
    pair = kind(tmp_path_factory.mktemp("pair"), 4)
    changed = data.draw(st.sampled_from([pair.index, pair.data]))
    plain = bytearray(gzip.decompress(changed.read_bytes()))
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, 9_999)) % len(plain)  # the directory's name is in it
        plain[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    if changed == pair.data:
        pair.put(bytes(plain))
    else:
        pair.index.write_bytes(gzip.compress(plain))
    pair.examine(sampled=sampled)


@given(st.lists(st.integers(0, 10**6), max_size=30), st.integers(1, 7))
def test_each_task_is_in_one_group(sizes: list[int], count: int) -> None:
    """No group is empty."""
    data = Task(
        ordinal=0,
        bucket="",
        name="",
        generation="",
        size_bytes=0,
        node="",
        day=Day(DAY),
        table=0,
    )
    tasks = [
        IndexTask(data=data, name=str(n), generation="", size_bytes=s, rows=0, sampled=False)
        for n, s in enumerate(sizes)
    ]
    made = groups(tasks, count)
    assert sorted(task.name for group in made for task in group) == sorted(t.name for t in tasks)
    assert len(made) == min(count, len(tasks))
    assert all(made)


def test_executors_find_what_the_driver_finds(tmp_path: Path, spark: SparkSession) -> None:
    """Where the indexes are many, Spark reads them, by the same function."""
    pair = Pair(tmp_path, 5)
    tasks = [pair.task(), replace(pair.task(), rows=4)]
    told = sorted(engine.examine(spark, tasks, (FIELDS,), 5), key=lambda one: one.problem)
    assert told == sorted(examined(tasks, (FIELDS,), 5), key=lambda one: one.problem)
    assert [bool(one.problem) for one in told] == [False, True]
