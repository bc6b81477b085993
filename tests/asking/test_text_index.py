"""The text index: what it leaves out has none of the words, and nothing else changes an answer."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

import jostler
from jostler.cli.main import main as keep
from jostler.format.names import BundleName, Kind
from jostler.schema import fields_from_api, table_schema
from loader.cli.main import main as load
from loader.cli.query import main as query
from loader.query.fetching import Fetched, fetch
from loader.query.googlesql.reads import SparkText
from loader.query.on_spark import plan
from loader.query.reading import Count, read_part
from loader.query.scan import Span, scan
from loader.query.text.filters import unpack
from loader.query.text.indexing import IndexTask, filters_of, index_bundle
from loader.query.text.needed import of_words
from loader.query.text.on_spark import index_bundles
from tests.asking.archive import COLUMNS, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.asking.archive import Archive

NO_NUMERIC = table_schema(fields_from_api(one for one in COLUMNS if one["type"] != "NUMERIC"))
"""A number is looked for by the index where no column is NUMERIC."""
FIRST, NEXT = date(2026, 1, 2), date(2026, 1, 3)


def index(archive: Archive, *argv: str, text: str = "foo1") -> int:
    """Run `jostler-load index`; return its status."""
    return load(["index", "--bucket", archive.url, "--text", text, *argv])


def filters(archive: Archive) -> list[str]:
    """Return the names of all token filters."""
    return [info.name for info in archive.storage.list("autoload/v1/tokens/")]


def fetched(archive: Archive, *words: str, day: date = FIRST) -> list[Fetched]:
    """Read the bundles of a day as executors do for a question with these words."""
    table = archive.tables().table("foo1")
    assert table is not None
    span = Span(first_day=day, last_day=day, need=of_words(words))
    found = scan(table, span, indexes=False)
    return [fetch(bundle, span, 5.0, with_times=False) for bundle in found.bundles]


def lines(found: list[Fetched]) -> bytes:
    return b"".join(block.lines for one in found for block in one.blocks())


def large(archive: Archive, **more: Any) -> str:  # noqa: ANN401 - as for `Archive.put`
    """Store a bundle of several blocks, one of which has the word needle; return its name."""
    noise = random.Random(1)
    rows = [{"UUID": noise.randbytes(1500).hex(), "Count": nth} for nth in range(400)]
    rows[250]["UUID"] = "a needle in it"
    return archive.put(rows, **more)


@pytest.mark.long
def test_answers_are_the_same_with_the_index_and_less_is_read(
    spark: SparkSession, archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of bundles with blocks, without index, not judged; with numbers, escapes, other letters."""
    archive.schema("bar1", NO_NUMERIC)
    bar = {"datatype": "bar1", "fields": NO_NUMERIC}
    large(archive, **bar)
    second = {"UUID": "M\u00fcller\nNeedle", "Rate": 1e21}
    archive.put([second, {"Samples": [{"Note": "needle"}]}], **bar)
    archive.put([{"UUID": "needle 2", "Count": 250}], node="n2", indexed=False, **bar)
    archive.put([b'{"UUID":"\\u006eeedle 3","Rate":"0017"}'], node="n3", judged=False, **bar)
    archive.put([{"UUID": "hay"}], node="n4", **bar)
    first = 'fulltext "needle" from bar1 | stats count, sum(raw.Count) as n'
    others = ('"NEEDLE" and not "2"', '"m\u00fcller" or "17"', '"250"', '"1e"')
    questions = [first, *(first.replace('"needle"', words) for words in others)]
    sql = "SELECT COUNT(*), SUM(raw.Count) FROM bar1 WHERE SEARCH(raw, 'needle in')"
    with jostler.open(archive.url) as opened:
        # One question of all: each costs Spark seconds.
        texts = [f"SELECT * FROM ({opened.question(one).sql})" for one in questions]
        whole = " UNION ALL ".join([*texts, sql])
        before = opened.query(whole)
        was = sorted(map(str, before.table().to_pylist()))
        assert index(archive, text="bar1") == 0
        after = opened.query(whole)
        explained = opened.explain(whole)
        now = sorted(map(str, after.table().to_pylist()))

    assert now == was
    assert [int(row.split()[1].strip(",")) for row in was] == [1, 1, 2, 3, 4, 5]
    assert before.notes.unfiltered == 5
    assert after.notes.unfiltered == 0
    assert [one.unfiltered for one in explained] == [0] * 6
    # How many blocks there are depends on the length of the bucket's name; one may pass by chance.
    assert all(one.blocks - one.skipped in {4, 5} for one in explained[:2])
    assert all(one.skipped >= 3 for one in explained)
    capsys.readouterr()

    assert query(["--bucket", archive.url, "--explain", first]) == 0
    shown = capsys.readouterr().out
    assert 'words    "needle"\n' in shown
    skipped = f"blocks   {explained[0].skipped} of {explained[0].blocks} are skipped"
    assert f"{skipped} by the text index\n" in shown
    for name in filters(archive)[:2]:
        archive.storage.remove(name)
    assert query(["--bucket", archive.url, "--format", "csv", first]) == 0
    assert "2 of 5 bundles have no text index and were searched whole" in capsys.readouterr().err


def test_only_the_blocks_that_may_have_the_words_are_read(archive: Archive) -> None:
    """By ranged requests; a bundle without them is not read at all."""
    name = large(archive)
    assert index(archive) == 0
    size_bytes = next(iter(archive.storage.list(name))).size_bytes

    [found] = fetched(archive, "needle")
    assert b"a needle in it" in lines([found])
    assert b'"Count":250' in lines([found]).replace(b" ", b"")
    assert found.skipped >= 3  # of 5 or 6, if one passes by chance
    assert len(list(found.blocks())) <= 2
    assert found.read_bytes < size_bytes
    assert [block.line for block in found.blocks()] != [1]

    [found] = fetched(archive, "pin")
    assert not lines([found])
    assert found.read_bytes < size_bytes / 10


def test_no_row_with_the_words_is_passed_over(archive: Archive) -> None:
    """Of judged, merged and unindexed bundles; with times, within times, and for each word."""
    chance = random.Random(3)
    vocabulary = [
        "Red",
        "gr\u00fcn",
        "a_b",
        "x9",
        "7",
        "line\nfeed",
        "tab\tbed",
        "\u65e5\u672c",
        "q",
    ]
    vocabulary += [f"rare{nth}" for nth in range(40)]
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    for node in ("n1", "n2", "n3", "n4"):
        rows = []
        for nth in range(150):
            texts = chance.sample(vocabulary, 2) if nth % 7 == 0 else []
            rows.append({"UUID": " ".join([chance.randbytes(1500).hex(), *texts]), "Count": nth})
        archive.put(rows, node=node, at=noon, indexed=node != "n3")
        if node == "n2":
            assert load(["compact", "--bucket", archive.url]) == 0
    assert index(archive) == 0
    table = archive.tables().table("foo1")
    assert table is not None
    least = noon + timedelta(microseconds=60)

    days = Span(first_day=FIRST, last_day=FIRST)
    rows_of = {
        (bundle.name, begin): {
            line: words_in(line) for line in split_lines(fetch(bundle, span, 5.0, with_times=False))
        }
        for begin in (None, least)
        for span in [replace(days, begin=begin)]
        for bundle in scan(table, span, indexes=True).bundles
    }
    skipped = 0
    for word, begin, with_times in product(vocabulary, (None, least), (False, True)):
        tokens = set(re.findall(r"[a-z0-9_]+|[^\x00-\x7f]", word.lower()))
        span = replace(days, begin=begin, need=of_words((word,)))
        for bundle in scan(table, span, indexes=True).bundles:
            found = fetch(bundle, span, 5.0, with_times=with_times)
            skipped += found.skipped
            words = rows_of[bundle.name, begin].items()
            wanted = {line for line, known in words if tokens <= known}
            assert wanted <= split_lines(found), (word, bundle.name)
    assert skipped > 100


def split_lines(found: Fetched) -> set[bytes]:
    return {line for block in found.blocks() for line in block.lines.splitlines()}


def words_in(line: bytes) -> set[str]:
    """Return the words of a row's UUID, as one who reads it divides it, and each part of one."""
    text = json.loads(line)["raw"]["UUID"].lower()
    words = re.findall(r"[a-z0-9_]+|[^\x00-\x7f]", text)
    return {*words, *(part for word in words for part in word.split("_"))}


def test_repeats_of_a_feed_are_left_out_by_their_lines_in_the_bundle(archive: Archive) -> None:
    """Also where only some blocks are read."""
    noise = random.Random(1)
    bodies = [{"UUID": f"{noise.randbytes(1500).hex()} w{nth}"} for nth in range(200)]
    archive.put([body for body in bodies for _ in range(2)])
    assert index(archive) == 0
    for word in ("w3", "w150", "w199"):
        names = ("raw.UUID", "archiver.Filename")
        reads = (read("foo1", *names, first_day=FIRST, end_day=NEXT, need=of_words((word,))),)
        asked = SparkText(sql="", reads=reads, columns=())
        [reading] = plan(asked, archive.tables(), 5.0, collapse=True)
        assert reading.scan is not None
        assert reading.what is not None
        counts: dict[str, Count] = {}
        batches = read_part(reading.scan.bundles, reading.what, counts)
        rows = [row for batch in batches for row in batch.to_pylist()]
        found = [row["archiver"] for row in rows if row["raw"]["UUID"].endswith(f" {word}")]
        assert found == [{"Filename": f"2026/01/02/1-{2 * int(word[1:])}.json"}]
        [count] = counts.values()
        assert count.skipped


@pytest.mark.long
def test_spark_makes_the_index_that_threads_make(
    spark: SparkSession,
    archive: Archive,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Byte for byte, of bundles of each kind; a damaged one is told and hinders no other."""
    del spark
    large(archive)
    large(archive, node="n2", judged=False)
    large(archive, node="n3", indexed=False)
    archive.put([b'{"UUID":"\\u006eeedle"}'], node="n4", day=NEXT)
    for node in ("n5", "n6"):
        archive.put([{"UUID": node}], node=node, day=NEXT)
    assert load(["compact", "--bucket", archive.url, "--start", "2026/01/03"]) == 0
    path = archive.root / archive.put([{"UUID": "lost"}], node="n7")
    path.write_bytes(path.read_bytes()[:-4])

    assert index(archive) == 1
    made = {name: archive.storage.read(name).data for name in filters(archive)}
    by_threads = capsys.readouterr().out.splitlines()[-2:]
    for name in made:
        archive.storage.remove(name)
    monkeypatch.setattr("loader.cli.index.DRIVER_BYTES", 0)
    started = []
    monkeypatch.setattr(
        "loader.cli.index.index_bundles",
        lambda *args: started.append(args) or index_bundles(*args),
    )

    assert index(archive) == 1
    assert len(started) == 1
    assert {name: archive.storage.read(name).data for name in filters(archive)} == made
    assert capsys.readouterr().out.splitlines() == by_threads
    assert len(made) == 4
    assert b"eedle" in lines(fetched(archive, "needle", day=NEXT))
    assert not lines(fetched(archive, "pin", day=NEXT))


def test_a_bundle_that_was_made_again_has_no_index_until_the_next_run(archive: Archive) -> None:
    """Its old one would deny the new words."""
    name = archive.put([{"UUID": "old"}])
    assert index(archive) == 0
    assert not lines(fetched(archive, "new"))
    again = archive.put([{"UUID": "new"}])
    data = archive.storage.read(again).data
    archive.storage.replace(name, data, archive.storage.read(name).version)

    assert b"new" in lines(fetched(archive, "new")[:1])
    assert index(archive) == 0
    assert not lines(fetched(archive, "old"))
    assert b"new" in lines(fetched(archive, "new")[:1])


def test_an_index_of_another_object_or_a_damaged_one_is_not_used(archive: Archive) -> None:
    """Whatever its metadata say: the bundle is then read whole, and that is told."""
    names = [archive.put([{"UUID": word}]) for word in ("red", "blue")]
    assert index(archive) == 0
    first, second = filters(archive)
    for data in (archive.storage.read(second).data, b"damaged"):
        old = archive.storage.read(first).version
        archive.storage.replace(first, data, old, archive.storage.metadata(first))

        found = fetched(archive, "red")

        assert b"red" in lines(found[:1])
        assert found[0].unfiltered
    assert len(names) == 2


def test_only_the_days_asked_for_are_indexed_and_a_second_run_does_nothing(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    archive.put([{"UUID": "a"}])
    archive.put([{"UUID": "b"}], day=NEXT)

    assert index(archive, "--start", "2026/01/03") == 0
    assert ["/2026/01/03/" in name for name in filters(archive)] == [True]
    assert index(archive, "--end", "2026/01/03") == 0
    assert len(filters(archive)) == 2
    was = [archive.storage.read(name).version for name in filters(archive)]
    capsys.readouterr()
    assert index(archive) == 0
    assert capsys.readouterr().out.startswith("0 bundles indexed")
    assert [archive.storage.read(name).version for name in filters(archive)] == was


def test_the_index_of_a_bundle_that_is_gone_is_removed(archive: Archive) -> None:
    """Also if it was the only one of its day."""
    name = archive.put([{"UUID": "a"}])
    archive.put([{"UUID": "b"}], day=NEXT)
    assert index(archive) == 0
    archive.storage.remove(name)

    assert index(archive, "--start", "2026/01/03") == 0
    assert len(filters(archive)) == 2
    assert index(archive) == 0
    assert ["/2026/01/03/" in name for name in filters(archive)] == [True]


def test_a_damaged_bundle_gets_no_index_and_the_others_do(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    name = archive.put([{"UUID": "a"}])
    archive.put([{"UUID": "b"}])
    found = archive.storage.read(name)
    archive.storage.replace(name, found.data[:-9], found.version)

    assert index(archive) == 1
    assert f"{archive.url}/{name}: the gzip stream is cut short" in capsys.readouterr().out
    assert len(filters(archive)) == 1


def test_a_bundle_whose_index_lies_about_its_blocks_has_one_filter(archive: Archive) -> None:
    """An offset that is not one would hide rows."""
    name = large(archive)
    other = archive.put([{"UUID": "x"}] * 400)
    data = archive.storage.read(name)
    lying = BundleName.parse(other)
    task = IndexTask(
        bucket=archive.url,
        name=name,
        generation=data.version,
        size_bytes=len(data.data),
        index=str(lying).replace("/foo1/", "/index1/").replace("-data.", "-index1."),
        index_generation="",
        replaces="",
    )

    assert index_bundle(archive.storage, task).blocks == 1
    made = unpack(archive.storage.read(filters(archive)[0]).data)
    assert [(one.line, one.rows, one.offset) for one in made.blocks] == [(1, 400, 0)]
    assert index_bundle(archive.storage, replace(task, index="")).problem == ""
    assert len(filters_of(data.data, []).found) == 1


def test_a_merged_bundle_is_searched_by_its_own_index(archive: Archive) -> None:
    """Its rows are of several nodes; compaction removes the indexes of what it merged."""
    for node, word in (("n1", "red"), ("n2", "green"), ("n3", "blue")):
        archive.put([{"UUID": word}], node=node, at=datetime(2026, 1, 2, 12, tzinfo=UTC))
    assert index(archive) == 0
    assert load(["compact", "--bucket", archive.url, "--datatype", "foo1"]) == 0
    assert filters(archive) == []
    assert index(archive) == 0

    assert len(filters(archive)) == 1
    assert not lines(fetched(archive, "pink"))
    found = fetched(archive, "green")
    assert {block.node for one in found for block in one.blocks()} == {"n1", "n2", "n3"}


def test_an_audit_knows_the_index_and_removes_what_is_lost(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    """It calls nothing foreign; a filter without bundle is an orphan; a deleted day has none."""
    name = archive.put([{"UUID": "a"}])
    archive.put([{"UUID": "b"}], day=NEXT)
    assert index(archive) == 0
    bucket = ("-bucket", archive.url)
    assert keep(["audit", *bucket]) == 0, capsys.readouterr().out
    found = BundleName.parse(name)
    archive.storage.remove(str(replace(found, kind=Kind.INDEX)))
    archive.storage.remove(name)

    assert keep(["audit", *bucket, "-fix"]) == 1
    shown = capsys.readouterr().out
    lost = f"no-data {found.token_filters}: there is no data bundle for these token filters"
    assert lost in shown
    assert len(filters(archive)) == 2
    assert keep(["audit", *bucket, "-fix=orphans"]) == 0
    assert len(filters(archive)) == 1
    assert keep(["audit", *bucket]) == 0

    day = ("-experiment", "exp", "-start", str(NEXT), "-end", str(NEXT))
    assert keep(["delete", *bucket, "-datatype", "foo1", *day, "-min-age", "0s", "-yes"]) == 0
    assert filters(archive) == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "--text or JOSTLER_INDEX_TEXT: is needed"),
        (["--text", "index1"], "index1 has no texts"),
        (["--text", "a b"], "'a b' is not a datatype name"),
        (["--text", "foo1", "--start", "2026/01/03", "--end", "2026/01/03"], "is not before"),
        (["--text", "foo1", "--days", "3"], "--days"),
    ],
)
def test_wrong_use_is_told(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert load(["index", "--bucket", "file:///nowhere", *argv]) == 2
    assert said in capsys.readouterr().err


def test_an_archive_without_such_bundles_is_told(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    assert index(archive) == 1
    assert "no bundles of such experiments, datatypes and days" in capsys.readouterr().out
