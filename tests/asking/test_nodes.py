"""A question for some nodes reads no bundle of the others, and loses no row of theirs."""

from __future__ import annotations

import gzip
import random
from datetime import UTC, date, datetime
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

import jostler
from jostler.format.names import BundleName
from loader.cli.main import main as load
from loader.cli.query import main as query
from loader.query.googlesql.reads import SparkText
from loader.query.on_spark import plan
from loader.query.reading import Count, read_part
from loader.query.scan import parts
from tests.asking.archive import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.asking.archive import Archive

NODES = ("n1", "n-1", "1", "a.b", "n1-exp", "nowhere")
NEXT = date(2026, 1, 3)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
Rows = list[dict[str, Any]]


def asked(
    archive: Archive,
    table: str,
    nodes: frozenset[str] | None,
    *,
    collapse: bool = False,
    more: tuple[str, ...] = (),
) -> tuple[Rows, dict[str, Count]]:
    """Return the rows of some nodes as executors read them, and what they counted."""
    columns = ("raw.Filename",) if table == "index1" else ("raw.UUID",)
    reads = (read(table, "_node", *columns, *more, nodes=nodes),)
    [reading] = plan(
        SparkText(sql="", reads=reads, columns=()), archive.tables(), 5.0, collapse=collapse
    )
    assert reading.scan is not None
    assert reading.what is not None
    counts: dict[str, Count] = {}
    rows: Rows = []
    for part in parts(reading.scan.bundles, 1000):
        for batch in read_part(part, reading.what, counts):
            rows += batch.to_pylist()
    wanted = rows if nodes is None else [row for row in rows if row["_node"] in nodes]
    return sorted(wanted, key=str), counts


@pytest.fixture
def mixed(archive: Archive) -> Archive:
    """Bundles of agents, merged, late, repeated, not judged, without index, of other programs."""
    for nth, node in enumerate(NODES[:-1]):
        archive.put([{"UUID": f"{node} {nth}"}, {"UUID": "same"}], node=node, at=NOON)
        archive.put([{"UUID": f"next {nth}"}], node=node, day=NEXT)
    assert load(["compact", "--bucket", archive.url, "--end", "2026/01/03"]) == 0
    names = [info.name for info in archive.storage.list("autoload/v1/exp/foo1/2026/01/02/")]
    assert [BundleName.parse(name).is_merged for name in names] == [True]
    archive.put([{"UUID": "late"}], node="n1", at=NOON)
    archive.put([{"UUID": "n1 0"}, {"UUID": "1 2"}], node="1", names=["x.json", "5-0.json"])
    archive.put([{"UUID": "z"}, {"Other": 1}], node="a.b", judged=False, day=NEXT)
    archive.put([{"UUID": "z"}], node="n-1", indexed=False, day=NEXT)
    foreign = b"".join(
        b'{"date":"2026-01-03","archiver":{"Filename":"%b"},"raw":{"Filename":"%b","Node":"%b"}}\n'
        % (name, name, node)
        for name, node in ((b"a", b"n1"), (b"b", b"1"))
    )
    path = "autoload/v1/exp/index1/2026/01/03/20260103T000000.000000Z-bar1-other-exp-index1"
    archive.storage.put_new(f"{path}.jsonl.gz", gzip.compress(foreign), {})
    return archive


@pytest.mark.parametrize("table", ["foo1", "index1"])
def test_what_is_left_out_has_no_row_of_the_nodes(mixed: Archive, table: str) -> None:
    """Whichever nodes, by any number of them: the rows are those of a reading of everything."""
    everything, all_counts = asked(mixed, table, None)
    assert {row["_node"] for row in everything} == set(NODES[:-1])
    whole = sum(count.read_bytes for count in all_counts.values())

    for nodes in (frozenset(some) for size in range(4) for some in combinations(NODES, size)):
        rows, counts = asked(mixed, table, nodes)
        assert rows == [row for row in everything if row["_node"] in nodes], nodes
        assert sum(count.read_bytes for count in counts.values()) < whole


def test_repeats_over_nodes_are_found_before_nodes_are_left_out(archive: Archive) -> None:
    """The row of n2 repeats that of n1, which nobody asks for."""
    archive.put([{"UUID": "same"}], node="n1", at=NOON)
    archive.put([{"UUID": "same"}], node="n2", at=NOON.replace(minute=1))

    assert asked(archive, "foo1", frozenset(["n2"]), collapse=True)[0] == []
    assert len(asked(archive, "foo1", frozenset(["n1"]), collapse=True)[0]) == 1


@pytest.mark.parametrize("more", [(), ("_time",)])
def test_of_a_merged_bundle_only_the_blocks_of_the_nodes_are_read(
    archive: Archive, more: tuple[str, ...]
) -> None:
    """By its index; the rows of one node lie together."""
    noise = random.Random(1)
    for node in ("n1", "n2", "n3", "n4"):
        rows = [{"UUID": noise.randbytes(3000).hex()} for _ in range(150)]
        archive.put(rows, node=node, at=NOON)
    assert load(["compact", "--bucket", archive.url]) == 0
    everything, all_counts = asked(archive, "foo1", None, more=more)

    rows, counts = asked(archive, "foo1", frozenset(["n3"]), more=more)

    assert rows == [row for row in everything if row["_node"] == "n3"]
    assert len(rows) == 150
    [count], [whole] = counts.values(), all_counts.values()
    assert count.rows == 150
    assert count.read_bytes < whole.read_bytes / 2


@pytest.mark.long
def test_each_language_prunes_by_node(
    spark: SparkSession, mixed: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its answer is that of a condition that no bundle's name can be held against."""
    del spark
    days = "date BETWEEN '2026-01-02' AND '2026-01-03'"
    questions = {
        f"SELECT COUNT(*) AS n FROM foo1 WHERE {days} AND _node = 'n1'": ("n1",),
        f"FROM foo1 |> WHERE {days} |> WHERE _node IN ('1', 'a.b') |> AGGREGATE COUNT(*) AS n": (
            "1",
            "a.b",
        ),
        'table from=20260102 to=20260104 foo1 | search archiver.Node == "n-1" | stats count as n': (
            "n-1",
        ),
        'table from=20260102 to=20260104 foo1 | search in(archiver.Node, "n1", "1")'
        " | stats count as n": ("1", "n1"),
    }
    with jostler.open(mixed.url) as opened:
        for text, nodes in questions.items():
            [found] = opened.explain(text)
            assert found.nodes == nodes
            # Of ten: the merged one is of all, and each of the four has two of its own.
            assert (found.bundles, found.others) == (1 + 2 * len(nodes), 9 - 2 * len(nodes))
        text, nodes = list(questions.items())[-1]
        names = ", ".join(f"'{node}'" for node in nodes)
        whole = f"SELECT COUNT(*) FROM foo1 WHERE {days} AND CONCAT(_node, '') IN ({names})"
        answer = opened.query(f"SELECT n, ({whole}) FROM ({opened.question(text).sql})")
        [row] = answer.table().to_pylist()
    assert list(row.values()) == [8, 8]

    assert query(["--bucket", mixed.url, "--explain", next(iter(questions))]) == 0
    assert "\nnodes    n1; not read: 7 bundles of others\n" in capsys.readouterr().out
