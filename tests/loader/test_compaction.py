"""`jostler-load compact`, and the loader after it: a compacted day has the same rows as before."""

from __future__ import annotations

import contextlib
import gzip
import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.bigquery_catalogue import BigQueryCatalogue
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.catalogue import File, Query
from jostler.archive.compact_days import FIRST, LAST, days
from jostler.archive.compact_plan import groups
from jostler.archive.verify import verify
from jostler.cli import audit
from jostler.format.bigquery_names import Naming
from jostler.format.compression import SMALL
from jostler.format.names import BundleName
from jostler.producer.naming import timed_name
from loader import compacting, planner
from loader.cli.compact_options import HELP, PREFIX, parse
from loader.cli.main import main
from loader.errors import UsageError
from loader.plan import discover, losses
from tests.loader import plain
from tests.loader.archived import Agents, files
from tests.loader.world import DAY, PLACE, Ran, row
from tests.support.spool import DATATYPE

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.loader.world import World

pytestmark = pytest.mark.long  # many loads, one after another

FOO = "raw_exp.foo1"
PERIOD = ("--start", "2026/01/01", "--end", "2026/01/09")


def compact(world: World, *more: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["compact", "--bucket", world.url, "--patience", "20", *more])
    return Ran(code, out.getvalue(), err.getvalue())


def answers(world: World) -> list[list[dict[str, Any]]]:
    """Ask the tables of a day for what does not name its objects."""
    table = f"SELECT date, archiver.Filename AS f, raw FROM `{FOO}` WHERE date = '{DAY}' ORDER BY 2"
    index = (
        "SELECT raw.Filename AS f, raw.Node AS n, raw.Hash AS h, raw.TimeAdded AS t, raw.Start AS s"
        f" FROM `raw_exp.index1` WHERE date = '{DAY}' ORDER BY 1, 2, 3"
    )
    return [world.sql(table), world.sql(index)]


def files_of(catalogue: BucketCatalogue | BigQueryCatalogue) -> list[File]:
    """Return what a catalogue knows of a datatype, and close it."""
    with contextlib.closing(catalogue):
        return list(catalogue.files(Query(datatypes=(DATATYPE,))))


@pytest.fixture
def stored(world: World) -> Agents:
    """Five bundles of a day by three nodes; a file came twice, two nodes have a name in common."""
    agents = Agents(world)
    for number in range(4):
        agents.store(files(number, number + 10), node=f"node{number % 3}")
    agents.store(files(2, 99), node="node2")
    return agents


def test_a_compacted_day_is_loaded_once_more_with_the_same_rows(
    stored: Agents, spark: SparkSession
) -> None:
    """Objects are gone that it was loaded from, and their rows are in a merged bundle."""
    world = stored.world
    how = PERIOD
    assert world.load(*how).code == 0
    before = answers(world)
    assert len(before[0]) == 9

    done = compact(world, "--project", world.project)
    again = world.load(*how)

    assert (done.code, again.code) == (0, 0), done.err + again.err
    (name,) = world.names(f"autoload/v1/exp/{DATATYPE}/")
    assert BundleName.parse(name).is_merged
    day = again.days[FOO, str(DAY)]
    assert (day["read"], day["loaded"], day["repeated"]) == (9, 9, 0)
    after = answers(world)
    assert after[0] == before[0]
    repeat = next(row for row in before[1] if row["n"] == "node2" and row["f"].endswith("m2.json"))
    assert len(before[1]) == len(after[1]) + 1
    assert [row for row in before[1] if row["f"] != repeat["f"]] == [
        row for row in after[1] if row["f"] != repeat["f"]
    ]
    assert world.load(*how).days == {}
    assert compact(world).out.startswith("0 merges")
    assert verify(stored.storage, "").problems == []
    assert audit.main(["-bucket", world.url, "-experiment", "exp"]) == 0
    found = [
        sorted((f.node, f.filename, f.hash, f.line, f.offset, f.origin.url) for f in files_of(one))
        for one in (
            BucketCatalogue(stored.storage, [PLACE]),
            BigQueryCatalogue(
                project=world.project,
                places=[PLACE],
                location="US",
                naming=Naming.MLAB,
                patience_s=20,
            ),
        )
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 9
    (told,) = world.sql("SELECT * FROM jostler.compactions")
    assert (told["Bundles"], told["Rows"], told["RowsRepeated"]) == (5, 9, 1)
    assert told["ArchiveURL"] == f"{world.url}/{name}"
    used = world.sql(f"SELECT DISTINCT archiver.ArchiveURL AS u FROM `{FOO}` WHERE date = '{DAY}'")
    assert used == [{"u": told["ArchiveURL"]}]


def test_a_merge_that_was_interrupted_doubles_no_row(stored: Agents, spark: SparkSession) -> None:
    """Merged bundle and inputs are there at once, the one even without its index."""
    world = stored.world
    kept = {name: world.get(name) for name in world.names("autoload/v1/exp/")}
    assert compact(world).code == 0
    (name,) = world.names(f"autoload/v1/exp/{DATATYPE}/")
    for other, data in kept.items():
        world.put(other, data)
    world.remove(name.replace(f"/{DATATYPE}/", "/index1/").replace("-data.", "-index1."))

    found = world.load(*PERIOD, "--datatype", DATATYPE)

    day = found.days[FOO, str(DAY)]
    assert (found.code, day["read"], day["loaded"], day["repeated"]) == (0, 19, 9, 10)
    assert compact(world).code == 0
    assert len(world.names(f"autoload/v1/exp/{DATATYPE}/")) == 1
    assert world.load(*PERIOD, "--datatype", DATATYPE).code == 0
    assert len(world.rows()) == 9


def test_a_bundle_that_is_sent_again_after_a_compaction_fails_no_load(
    stored: Agents, spark: SparkSession
) -> None:
    """Its rows were in index1 twice; the merged bundle that has them all counts that they go."""
    world = stored.world
    assert compact(world).code == 0
    assert world.load(*PERIOD).code == 0
    before = answers(world)
    stored.store(files(0, 10), node="node0")
    assert world.load(*PERIOD).code == 0
    assert len(answers(world)[1]) > len(before[1])

    assert compact(world).code == 0
    ran = world.load(*PERIOD)

    assert ran.code == 0, ran.out + ran.err
    assert answers(world) == before


def test_spark_compacts_what_threads_do(
    stored: Agents, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same names and bytes, whoever does it."""
    world = stored.world
    kept = {name: world.get(name) for name in world.names("autoload/v1/exp/")}
    assert compact(world).code == 0
    names = world.names("autoload/v1/exp/")
    by_threads = {name: gzip.decompress(world.get(name)) for name in names}
    for name in by_threads:
        world.remove(name)
    for name, data in kept.items():
        world.put(name, data)

    monkeypatch.setattr(compacting, "DRIVER_BYTES", 0)

    assert compact(world).code == 0
    names = world.names("autoload/v1/exp/")
    assert {name: gzip.decompress(world.get(name)) for name in names} == by_threads


def test_a_day_that_has_fewer_rows_than_it_was_loaded_with_is_refused(
    stored: Agents, spark: SparkSession
) -> None:
    """A bundle was removed by hand before the others were merged."""
    world = stored.world
    how = (*PERIOD, "--datatype", DATATYPE)
    assert world.load(*how).code == 0
    data = world.names(f"autoload/v1/exp/{DATATYPE}/")[0]
    world.remove(data)
    world.remove(data.replace(f"/{DATATYPE}/", "/index1/").replace("-data.", "-index1."))
    assert compact(world).code == 0

    refused = world.load(*how)

    assert refused.code == 1
    assert "have 7 good rows, not 9 as it was loaded with" in refused.out
    assert len(world.rows()) == 9
    assert world.load(*how, "--accept-deletions").code == 0
    assert len(world.rows()) == 7


def test_repeats_of_a_feed_go_from_the_tables_too(world: World, spark: SparkSession) -> None:
    """The loader accepts as many rows fewer as compaction says that it has left out."""
    agents = Agents(world)
    at = datetime(2026, 1, 2, tzinfo=UTC)
    for node, seen in (("n", "AAB"), ("s", "ABA")):
        agents.store(
            {
                timed_name(at.replace(minute=nth, second=ord(node) - 100), body, prefix="f_"): body
                for nth, letter in enumerate(seen)
                for body in files(ord(letter)).values()
            },
            node=node,
        )
    assert world.load(*PERIOD).code == 0
    assert [len(rows) for rows in answers(world)] == [6, 6]

    tried = compact(world, "--collapse-repeats", "--dry-run")
    done = compact(world, "--collapse-repeats", "--project", world.project)
    again = world.load(*PERIOD)

    assert (tried.code, done.code, again.code) == (0, 0, 0), done.err + again.err + again.out
    assert tried.out.splitlines()[-2].split()[-1] == "3"
    assert "3 repeats of feeds left out" in done.out
    assert [len(rows) for rows in answers(world)] == [3, 3]
    (told,) = world.sql("SELECT * FROM jostler.compactions")
    assert (told["Rows"], told["RowsRepeated"], told["RowsCollapsed"]) == (3, 0, 3)
    assert compact(world, "--collapse-repeats").out.startswith("0 merges")


def test_a_load_that_listed_before_a_compaction_looks_again(
    stored: Agents, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bundles are gone when it reads them."""
    world = stored.world
    from loader.run import Loader  # noqa: PLC0415 - after the environment is set

    load_all, compacted = Loader._load_all, []

    def late(self: Any, due: Any, verifier: Any) -> Any:  # noqa: ANN401
        if not compacted:
            compacted.append(compact(world))
        return load_all(self, due, verifier)

    monkeypatch.setattr(Loader, "_load_all", late)

    found = world.load(*PERIOD, "--verify", "full", "--datatype", DATATYPE)

    assert compacted[0].code == found.code == 0, found.err
    assert len(world.rows()) == 9


def test_a_listing_that_missed_a_merged_bundle_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had passed its name when that was stored, and came to the inputs when they were gone."""
    monkeypatch.setattr(losses, "MANY", 1)
    agents = Agents(world)
    world.put_bundle([row(9)])  # of no schema, so it is not merged with the others
    for number in range(3):
        agents.store(files(number))
    listed, partial = discover.bundles, []

    def missing(*arguments: Any) -> Any:  # noqa: ANN401 - as `bundles`
        found = listed(*arguments)
        if not partial:
            partial.append(compact(world))
            found = {day: some[:1] for day, some in found.items()}
        return found

    monkeypatch.setattr(planner, "bundles", missing)

    found = plain.load(world, "--datatype", DATATYPE)

    assert found.code == 0, found.err
    assert len(world.rows()) == 4
    assert len(world.ledger()) == 1


def test_a_dry_run_changes_nothing_and_metrics_tell_what_was_done(
    stored: Agents, tmp_path: Path
) -> None:
    """A bundle that is damaged is told, and is the one reason for status 1."""
    world = stored.world
    before = world.names()
    name, _ = stored.store(files(50))
    blob = world.storage.bucket(world.bucket).get_blob(name)
    blob.upload_from_string(blob.download_as_bytes()[:-3])  # with the metadata that it has

    tried = compact(world, "--dry-run")

    assert tried.code == 0
    assert "1 merge: 12 objects would become 2, of " in tried.out
    assert "and about as much then" in tried.out
    assert "about as much" not in compact(world, "--dry-run", "--compression", "fast").out
    assert set(before) < set(world.names())
    metrics = tmp_path / "compact.prom"
    done = compact(world, "--metrics", metrics.as_uri())
    assert done.code == 1
    assert f"{world.url}/{name}: left alone: " in done.out
    told = dict(
        line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if not line.startswith("#")
    )
    assert told['jostler_compact_left{reason="damaged"}'] == "1.0"
    assert told["jostler_compact_bundles"] == "5.0"
    assert told['jostler_compact_rows{outcome="repeated"}'] == "1.0"


def test_days_that_have_not_settled_and_large_bundles_are_left(stored: Agents) -> None:
    """Agents of other time zones still store bundles of them."""
    world = stored.world
    assert compact(world, "--end", "2026/01/02").out.startswith("0 merges")
    assert compact(world, "--small", "10").out.startswith("0 merges")
    assert compact(world, "--settled", "36500").out.startswith("0 merges")
    assert compact(world, "--datatype", "bar1").code == 1
    members = next(days(stored.storage, PLACE, DATATYPE, FIRST, LAST))[1]
    assert [
        len(group.members) for group in groups(members, small_bytes=1 << 20, target_bytes=1 << 28)
    ] == [5]


def test_options_are_read_from_arguments_and_environment() -> None:
    """All mistakes are told at once."""
    made = parse(
        ["--bucket", "gs://bkt/", "--settled=2", "--small", "1MiB", "--end", "2026/01/03"],
        {f"{PREFIX}TARGET": "64MiB"},
        DAY.replace(day=20),
    )
    assert (made.bucket, made.small_bytes, made.target_bytes) == (("gs://bkt",), 1 << 20, 1 << 26)
    assert (made.last, made.compression) == (DAY, None)
    given = parse(["--bucket", "gs://bkt", "--compression", "small"], {}, DAY)
    assert given.compression == SMALL
    with pytest.raises(UsageError) as caught:
        parse(
            ["--settled", "x", "--target", "1GiB", "--small", "0", "--compression", "10", "--odd"],
            {f"{PREFIX}NOTHING": "1"},
            DAY,
        )
    told = "\n".join(caught.value.problems)
    for word in ("settled", "target", "small", "compression", "odd", "bucket"):
        assert f"--{word}" in told
    assert f"{PREFIX}NOTHING" in told
    assert len({name for name, *_ in HELP}) == len(HELP)
