"""The audit beside BigQuery, by `jostler` and by `jostler-load`; what a deletion leaves there."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.audit.remake import fields_of
from jostler.cli.main import main as jostler
from jostler.storage import open_storage
from loader.cli.audit_options import PREFIX, parse
from loader.cli.main import main as jostler_load
from tests.support.kept import DAY, KeptArchive, contents, index_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.loader.world import World

pytestmark = pytest.mark.usefixtures("spark")
TABLE = "raw_exp.foo1"
WHERE = f"WHERE date = '{DAY}' AND raw.UUID LIKE 'u-2-%'"
ONE_ROW = f"FROM {TABLE} {WHERE}"


@pytest.fixture
def kept(world: World) -> KeptArchive:
    """Two bundles of a day, loaded."""
    archive = KeptArchive(open_storage(world.bucket))
    archive.put(contents(range(3)))
    archive.put(contents(range(3, 7)))
    ran = world.load()
    assert ran.code == 0, ran.out + ran.err
    return archive


def ran(program: Callable[[Sequence[str]], int], *argv: str) -> tuple[int, list[dict[str, Any]]]:
    """Run a program in this process; return status and the JSON lines of its output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = program(argv)
    lines = [line for line in out.getvalue().splitlines() if line.startswith("{")]
    return status, [json.loads(line) for line in lines]


def by_jostler(world: World, *more: str) -> tuple[int, list[dict[str, Any]]]:
    where = ["audit", "-bucket", world.url, "-project", world.project, "-format", "jsonl"]
    return ran(jostler, *where, "-settled", "0s", *more)


def by_spark(world: World, *more: str) -> tuple[int, list[dict[str, Any]]]:
    where = ["audit", "--bucket", world.url, "--project", world.project, "--format", "jsonl"]
    return ran(jostler_load, *where, "--settled", "0.001", *more)


@pytest.mark.long
def test_a_day_whose_partition_is_another_is_told_marked_and_loaded_again(
    world: World, kept: KeptArchive
) -> None:
    """By both programs alike; a day that is due anyway is no problem."""
    assert [by(world)[0] for by in (by_jostler, by_spark)] == [0, 0]
    world.sql(f"DELETE {ONE_ROW}")

    told = [by(world) for by in (by_jostler, by_spark)]

    assert told[0] == told[1]
    status, (problem, _) = told[0]
    assert (status, problem["kind"]) == (1, "day-differs")
    assert "BigQuery has 6 rows, the ledger says 7" in problem["detail"]
    assert problem["object"] == "autoload/v1/exp/foo1/2026/01/02/"

    status, (problem, _) = by_spark(world, "--fix", "yes")
    assert (status, problem["status"]) == (0, "mended")
    assert "marked as due" in problem["done"]
    assert by_jostler(world, "-fix")[0] == 0  # it is due: nothing differs that is not known
    assert len(world.rows()) == 6
    assert world.load().code == 0
    assert len(world.rows()) == 7
    assert by_jostler(world)[0] == 0

    audits = world.sql("SELECT * FROM jostler.audits ORDER BY Time")
    assert [row["Status"] for row in audits] == ["found", "found", "mended"]
    assert {row["Kind"] for row in audits} == {"day-differs"}
    assert all(row["Who"] and row["Bucket"] == world.url for row in audits)
    assert {row["date"] for row in audits} == {DAY}


def test_a_partition_that_has_expired_is_not_missed(world: World, kept: KeptArchive) -> None:
    """That its rows are gone is as wished; the ledger still says that the day was loaded."""
    world.sql(f"ALTER TABLE {TABLE} SET OPTIONS (partition_expiration_days = 1)")
    assert world.rows() == []
    assert by_jostler(world)[0] == 0
    world.sql(f"ALTER TABLE {TABLE} SET OPTIONS (partition_expiration_days = NULL)")
    status, told = by_jostler(world)
    assert (status, told[0]["kind"]) == (1, "day-differs")
    world.sql("DELETE FROM jostler.loads WHERE TRUE")  # it no longer agrees, as the test wants it


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            f"INSERT INTO {TABLE} (date, archiver, raw) SELECT date, archiver, raw {ONE_ROW}",
            ["BigQuery has 8 rows, the ledger says 7", "BigQuery has 4 rows of gs://"],
        ),
        (
            f"UPDATE {TABLE} SET archiver.ArchiveURL = 'gs://other/x' {WHERE}",
            ["BigQuery has 1 rows of gs://other/x, the bundle 0"],
        ),
        (
            f"UPDATE jostler.loads SET RowsRead = 9 WHERE date = '{DAY}'",
            ["its bundles have 7 rows, the ledger says 9"],
        ),
    ],
)
def test_however_a_day_differs_it_is_told_and_the_next_load_mends_it(
    world: World, kept: KeptArchive, sql: str, words: list[str]
) -> None:
    """Rows too many, rows of another object, or another number in the ledger."""
    world.sql(sql)
    status, (*told, _) = by_jostler(world)
    assert (status, [one["kind"] for one in told]) == (1, ["day-differs"] * len(words))
    assert all(said in one["detail"] for said, one in zip(words, told, strict=True))
    assert by_jostler(world, "-fix")[0] == 0
    assert world.load().code == 0
    assert by_jostler(world)[0] == 0
    assert len(world.rows()) == 7
    world.sql("DELETE FROM jostler.loads WHERE TRUE")  # it no longer agrees, as the test wants it


def test_a_day_that_is_to_be_loaded_or_mended_first_is_not_compared(
    world: World, kept: KeptArchive
) -> None:
    """Only BigQuery may still have rows of a damaged bundle; a new one is not loaded yet."""
    world.sql(f"DELETE {ONE_ROW}")
    assert [one["kind"] for one in by_jostler(world)[1][:-1]] == ["day-differs"]
    assert by_jostler(world, "-node", "n1")[0] == 0  # not the whole day is looked at
    whole = kept.get(kept.names[0])
    kept.swap(kept.names[0], lambda data: data[:-3])
    assert [one["kind"] for one in by_jostler(world)[1][:-1]] == ["damaged"]
    kept.swap(kept.names[0], lambda _: whole)
    kept.put(contents([30]))
    assert by_jostler(world)[0] == 0
    world.sql("DELETE FROM jostler.loads WHERE TRUE")  # it no longer agrees, as the test wants it


def test_a_table_that_is_gone_is_told_and_made_again(world: World, kept: KeptArchive) -> None:
    """It is no failure to ask for it."""
    world.client.delete_table(f"{world.project}.{TABLE}")
    told = [by(world) for by in (by_jostler, by_spark)]
    assert told[0] == told[1]
    status, (problem, _) = told[0]
    assert (status, problem["kind"]) == (1, "day-differs")
    assert "BigQuery has 0 rows, the ledger says 7" in problem["detail"]
    assert by_jostler(world, "-fix")[0] == 0
    assert world.load().code == 0
    assert len(world.rows()) == 7
    assert by_jostler(world)[0] == 0


def test_a_folder_that_no_table_can_have_is_told(world: World, kept: KeptArchive) -> None:
    """Its name goes into no query; what lies beside the experiments is of none of them."""
    names = ["autoload/v1/exp/b`ad\n/x", "autoload/v1/x"]
    for name in names:
        kept.storage.put_new(name, b"x", {})
    told = [by(world) for by in (by_jostler, by_spark)]
    assert told[0] == told[1]
    assert sorted(one["object"] for one in told[0][1][:-1]) == names
    rows = world.sql("SELECT DISTINCT Experiment, Object, Kind, date FROM jostler.audits")
    assert {(row["Experiment"], row["Object"]) for row in rows} == {
        ("exp", names[0]),
        (None, names[1]),
    }
    assert {(row["Kind"], row["date"]) for row in rows} == {("foreign", None)}


@pytest.mark.long
def test_problems_are_mended_by_spark_as_by_threads(world: World, kept: KeptArchive) -> None:
    """In a real bucket; the damaged object is in staging, the index is filled as agents fill it."""
    texts = ["foo1:Start=StartTime", r"foo1:WorkID=.*/m(?P<n>\d{1,2})~w-{n}"]
    lost = kept.put(contents(range(3)), fields=fields_of(texts)["foo1"], node="n9")
    *_, damaged, _ = kept.names
    before = facts(world, str(index_of(lost)))
    assert {row["WorkID"] for row in before} == {"w-0", "w-1", "w-2"}
    world.remove(str(index_of(lost)))
    kept.swap(damaged, lambda data: data[:-30])

    given = [word for text in texts for word in ("--index-field", text)]
    status, told = by_spark(world, "--fix", "yes", *given)

    assert status == 0, told
    assert [one["kind"] for one in told[:-1]] == ["damaged", "no-index"]
    assert facts(world, str(index_of(lost))) == before
    assert f"loader-staging/quarantine/{damaged}" in world.names()
    assert by_spark(world, "--experiment", "exp", "--datatype", "foo1")[0] == 0
    assert by_spark(world, "--datatype", "none")[0] == 1
    assert by_spark(world, "--datatype", "none", "--fix", "yes")[0] == 0  # all was moved away
    assert ran(jostler_load, "audit", "--fix", "maybe")[0] == 2
    among = ["--fix", "yes", "--staging", f"{world.url}/autoload/v2"]
    assert ran(jostler_load, "audit", "--bucket", world.url, *among)[0] == 2
    assert ran(jostler_load, "audit", "--bucket", world.url, "--index-field", "foo1")[0] == 2
    made = parse(["--bucket", world.url], {f"{PREFIX}INDEX_FIELD": "\n".join(texts)})
    assert len(made.fields["foo1"].columns) == 2


def facts(world: World, index: str) -> list[dict[str, Any]]:
    """Return what an index says, without the times at which rows were added."""
    rows = [json.loads(line)["raw"] for line in gzip.decompress(world.get(index)).splitlines()]
    return [{key: value for key, value in row.items() if key != "TimeAdded"} for row in rows]


def test_a_deletion_takes_the_rows_and_says_so(world: World, kept: KeptArchive) -> None:
    """Ledger and audits; the next load finds nothing wrong, and late data is loaded."""
    where = ["-bucket", world.url, "-experiment", "exp", "-datatype", "foo1"]
    days = ["-start", str(DAY), "-end", str(DAY), "-project", world.project, "-min-age", "1h"]

    assert jostler(["delete", *where, *days]) == 0
    assert len(world.rows()) == 7
    assert jostler(["delete", *where, *days, "-yes"]) == 0

    assert world.rows() == []
    assert not [name for name in world.names() if "-foo1-" in name]
    audits = world.sql("SELECT * FROM jostler.audits ORDER BY Time")
    assert [(row["Command"], row["Status"]) for row in audits] == [
        ("delete", "begun"),
        ("delete", "done"),
    ]
    assert (audits[0]["Objects"], audits[0]["Rows"]) == (4, 7)
    assert "deleted" in {row["Status"] for row in world.ledger() if row["table"].endswith("foo1")}
    assert world.load().code == 0
    assert by_jostler(world)[0] == 1  # there is nothing left to look at

    kept.put(contents([9]), day=DAY)
    assert world.load().code == 0
    assert len(world.rows()) == 1
    assert jostler(["delete", *where, *days, "-yes"]) == 0


def test_a_deletion_that_died_before_the_partition_is_ended_by_the_next(
    world: World, kept: KeptArchive
) -> None:
    """The audit tells of rows whose bundles are gone; to delete again removes them."""
    kept.put(contents([20]), day=DAY.replace(day=3))
    assert world.load().code == 0
    for name in kept.names[:2]:
        world.remove(str(index_of(name)))
        world.remove(str(name))
    status, told = by_jostler(world)
    assert status == 1
    assert "7 rows in BigQuery, and no bundle in the bucket" in told[0]["detail"]

    where = ["-bucket", world.url, "-experiment", "exp", "-datatype", "foo1"]
    days = ["-start", str(DAY), "-end", str(DAY), "-project", world.project, "-min-age", "1h"]
    assert jostler(["delete", *where, *days, "-yes"]) == 0
    assert by_jostler(world)[0] == 0
    assert world.rows() == []


def test_a_deletion_takes_no_rows_of_a_day_that_stays(world: World, kept: KeptArchive) -> None:
    """Because of an object that is nobody's, or because it is too young, objects or not."""
    where = ["-bucket", world.url, "-experiment", "exp", "-datatype", "foo1"]
    days = ["-start", str(DAY), "-end", str(DAY), "-project", world.project, "-yes"]
    notes = "autoload/v1/exp/foo1/2026/01/02/notes.txt"
    kept.storage.put_new(notes, b"", {})
    assert jostler(["delete", *where, *days, "-min-age", "1h"]) == 1
    assert len(world.rows()) == 7
    for name in (notes, *map(str, kept.names), *(str(index_of(one)) for one in kept.names)):
        world.remove(name)
    assert jostler(["delete", *where, *days, "-min-age", "876000h"]) == 0
    assert len(world.rows()) == 7
    assert jostler(["delete", *where, *days, "-min-age", "1h"]) == 0
    assert world.rows() == []


def test_rows_of_a_day_without_any_object_are_told(world: World, kept: KeptArchive) -> None:
    """Also if the datatype has no object of any day that is looked at; not of another bucket."""
    kept.put(contents([20]), day=DAY.replace(day=3))  # the datatype's folder stays
    for name in kept.names[:2]:
        world.remove(str(index_of(name)))
        world.remove(str(name))
    for by, days in (
        (by_jostler, ["-start", str(DAY), "-end", str(DAY)]),
        (by_spark, ["--start", "2026/01/02", "--end", "2026/01/03"]),
    ):
        status, told = by(world, *days)
        assert (status, told[0]["kind"]) == (1, "day-differs")
        assert "7 rows in BigQuery, and no bundle in the bucket" in told[0]["detail"]
    world.sql(f"UPDATE jostler.loads SET Buckets = 'gs://other' WHERE Buckets = '{world.url}'")
    assert by_jostler(world, "-experiment", "exp")[0] == 0


def test_a_deletion_takes_no_rows_of_another_bucket(world: World, kept: KeptArchive) -> None:
    """A bucket that has no object of a day has nothing to say about the day's rows."""
    world.storage.create_bucket(other := f"{world.bucket}-other")
    where = ["-bucket", f"gs://{other}", "-experiment", "exp", "-datatype", "foo1"]
    days = ["-start", str(DAY), "-end", str(DAY), "-project", world.project, "-min-age", "1h"]
    assert jostler(["delete", *where, *days, "-yes"]) == 1
    assert len(world.rows()) == 7
    world.sql("DELETE FROM jostler.loads WHERE TRUE")  # then the rows themselves tell
    assert jostler(["delete", *where, *days, "-yes"]) == 1
    assert len(world.rows()) == 7
    assert jostler(["delete", *where, *days, "-yes", "-bucket", world.url]) == 0
    assert world.rows() == []


def test_a_day_that_two_buckets_share_is_left_alone(
    world: World, kept: KeptArchive, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its partition cannot go; without -project its objects can."""
    world.sql(f"UPDATE jostler.loads SET Buckets = 'gs://other' WHERE Buckets = '{world.url}'")
    where = ["-bucket", world.url, "-experiment", "exp", "-datatype", "foo1"]
    days = ["-start", str(DAY), "-end", str(DAY), "-min-age", "1h", "-yes"]
    before = world.names()
    assert jostler(["delete", *where, *days, "-project", world.project]) == 1
    told = "its partition has rows of gs://other too; delete without -project"
    assert told in capsys.readouterr().out
    assert (world.names(), len(world.rows())) == (before, 7)
    assert jostler(["delete", *where, *days]) == 0
    assert not [name for name in world.names() if "-foo1-" in name]
    assert len(world.rows()) == 7


def test_the_rows_of_index1_go_with_each_datatype_of_a_day(world: World, kept: KeptArchive) -> None:
    """Whichever was deleted first, and also if a deletion died when the objects were gone."""
    names = ("bar1", "kept1")
    rows = [{"date": str(DAY), "raw": {"Datatype": name}} for name in names]
    world.client.load_table_from_json(rows, "raw_exp.index1").result()
    where = ["-bucket", world.url, "-experiment", "exp"]
    days = ["-start", str(DAY), "-end", str(DAY), "-project", world.project, "-min-age", "1h"]

    assert jostler(["delete", *where, *days, "-yes", "-datatype", "foo1"]) == 0
    assert jostler(["delete", *where, *days, "-yes", "-datatype", "bar1"]) == 0

    left = world.sql(f"SELECT raw.Datatype AS n FROM raw_exp.index1 WHERE date = '{DAY}'")
    assert [row["n"] for row in left] == ["kept1"]
    of_index = [row["Status"] for row in world.ledger() if row["table"].endswith("index1")]
    assert of_index == ["success", "deleted"]
