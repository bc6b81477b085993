"""Comparing, real data, organizations, a JVM that is not there, a cluster."""

from __future__ import annotations

import json
import shutil
import tarfile
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jostler.format.names import Kind, Place
from tests.loader.test_load import FOO, names
from tests.loader.world import DAY, PLACE, World, row
from tests.support.agent import once
from tests.support.spark_cluster import standalone, submit
from tests.support.spool import Spool, document

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parents[3] / "shared" / "data"
ARCHIVE = DATA / "ndt7-2020-03-18.tar.gz"
OTHER = date(2026, 1, 5)
long = partial(pytest.param, marks=pytest.mark.long)
in_process = pytest.mark.usefixtures("spark")


@pytest.fixture
def archived(world: World, tmp_path: Path) -> World:
    """What the agent made of 40 good files and a bad one, loaded."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(40)
    spool.write("bad.json", b"[]")
    assert once(spool, world.bucket, gcs_url=world.gcs.url).returncode == 0
    assert world.load().code == 0
    return world


def bundle_of(world: World, folder: str) -> str:
    (name,) = (n for n in world.names("autoload/v1/exp/") if f"/{folder}/" in n and "foo1" in n)
    return name


@pytest.mark.long
@in_process
def test_index_bundles_and_rows_agree_after_a_load(archived: World) -> None:
    ledger = archived.ledger()

    ran = archived.load("--verify-only")

    assert ran.code == 0, ran.out
    assert "2 bundles compared with their index, 82 rows with BigQuery: 0 differences" in ran.out
    assert archived.ledger() == ledger


@in_process
@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("no index", "has no index bundle"),
        long("no data", "there is no data bundle for this index"),
        long("short index", "has 40 rows, its index has 2"),
        long("late bundle", "has no index bundle"),
        long("a day gone", "foo1 2026-01-02: 40 rows in BigQuery, and no bundle in the bucket"),
        ("corrupt", "the gzip stream is cut short"),
    ],
)
def test_what_differs_is_named_and_the_exit_status_says_so(
    archived: World, what: str, told: str
) -> None:
    data, index = bundle_of(archived, "foo1"), bundle_of(archived, "index1")
    if what == "no index":
        archived.remove(index)
    elif what == "no data":
        archived.remove(data)
    elif what == "short index":
        archived.put(index, archived.get(archived.put_bundle([row(1), row(2)], kind=Kind.INDEX)))
    elif what == "late bundle":
        archived.put_bundle([row(99)])
    elif what == "a day gone":
        archived.remove(data)
        archived.remove(index)
    else:
        archived.put(data, archived.get(data)[:-30])

    ran = archived.load("--verify-only")

    assert ran.code == 1
    assert told in ran.out


@pytest.mark.long
@in_process
def test_rows_that_differ_by_value_are_named(world: World) -> None:
    """Of a day with bad, repeated and Go rows: one altered, one deleted, one doubled, one made."""
    world.put_schema()
    world.put_bundle([row(1), row(2), b"bad", row(3, go=True)])
    world.put_bundle([row(2), row(4), *(row(5, raw=document(n)) for n in range(3))])
    other = world.put_bundle([row(9, day=OTHER), row(8, day=OTHER)], day=OTHER)
    assert world.load("--max-bad-fraction", "0.5").code == 0
    tables = {table.table_id for table in world.client.list_tables("jostler")}
    listed = world.names()

    ran = world.load("--verify-only")

    assert "9 rows with BigQuery: 0 differences" in ran.out
    where = f"WHERE date = '{DAY}' AND archiver.Filename LIKE"
    world.sql(f"UPDATE {FOO} SET raw.Rate = 77 {where} '%m1.json'")
    world.sql(f"DELETE FROM {FOO} {where} '%m4.json'")
    world.sql(f"INSERT INTO {FOO} SELECT * FROM {FOO} {where} '%m3.json'")
    made = "INSERT INTO {0} (date, archiver) SELECT date, STRUCT('', '', 'u', 'x\\n') FROM {0} {1}"
    world.sql(made.format(FOO, f"{where} '%m2.json'"))
    world.remove(other)

    ran = world.load("--verify-only")

    assert ran.code == 1
    lines = ran.out.splitlines()
    table = f"{world.project}.raw_exp.foo1"
    assert f"{table} {OTHER}: 2 rows in BigQuery, and no bundle in the bucket" in lines
    assert (
        f"{table} {DAY}: 7 good rows in bundles, 8 in BigQuery:"
        " 1 missing, 1 altered, 1 doubled, 1 surplus"
    ) in lines
    assert [line for line in lines if line.startswith("    ")] == [
        "    1 doubled of /var/spool/exp/foo1/2026/01/02/m3.json, bundle gs://b/o",
        "    1 altered of 2026/01/02/m1.json (raw.Rate), bundle gs://b/o",
        "    1 missing of 2026/01/02/m4.json, bundle gs://b/o",
        "    1 surplus of x?, bundle u",
    ]
    assert tables == {table.table_id for table in world.client.list_tables("jostler")}
    assert world.names() == [name for name in listed if name != other]
    world.sql("DELETE FROM jostler.loads WHERE TRUE")  # it is right to say that it does not agree


@in_process
def test_a_day_that_has_expired_is_not_missed(world: World) -> None:
    """Its bundles are compared with their index; that BigQuery has no rows of it is as wished."""
    today = datetime.now(UTC).date()
    world.put(PLACE.asset(), b'{"revision": 1, "retention_days": 3}')
    world.put_schema()
    for days in (1, 9):
        day = today - timedelta(days=days)
        world.put_bundle([row(days, day=day)], day=day)
    assert world.load().code == 0

    ran = world.load("--verify-only")

    assert ran.code == 0
    assert "1 rows with BigQuery: 0 differences" in ran.out


@in_process
def test_comparing_says_when_a_table_is_missing(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])

    ran = world.load("--verify-only")

    assert ran.code == 1
    assert "there are bundles, and no such table" in ran.out


@in_process
def test_tables_of_all_organizations_share_a_view(world: World) -> None:
    places = [
        Place(data_dir="autoload/v2", organization=org, experiment="exp") for org in ("rnp", "mlab")
    ]
    world.put_schema(place=places[0])  # for all organizations
    for number, place in enumerate(places):
        world.put_bundle([row(number)], place=place)

    assert world.load("--api", "v2").code == 0

    assert world.rows("autoload_v2_rnp_exp.foo1_raw") == names(0)
    assert world.rows("autoload_v2_mlab_exp.foo1_raw") == names(1)
    sql = "SELECT COUNT(*) AS n FROM mlab_v2_exp.foo1_raw WHERE date = '2026-01-02'"
    assert world.sql(sql) == [{"n": 2}]


@in_process
@pytest.mark.skipif(not ARCHIVE.exists(), reason="the real data is not here")
def test_the_real_ndt7_files_go_all_the_way(world: World, tmp_path: Path) -> None:
    """Files into a spool, agent, loader, SQL: numbers are those that Python finds in the files."""
    spool = Spool(tmp_path / "spool", "ndt7")
    shutil.copy(DATA / "ndt7.schema.json", spool.schema_file("ndt7"))
    measured: list[dict[str, Any]] = []
    with tarfile.open(ARCHIVE) as files:
        for member in files.getmembers():
            if member.isfile():
                content = files.extractfile(member)
                assert content
                data = content.read()
                measured.append(json.loads(data))
                spool.write(Path(member.name).name, data, datatype="ndt7", day="2020/03/18")
    assert once(spool, world.bucket, gcs_url=world.gcs.url).returncode == 0

    assert world.load().code == 0

    table, where = "raw_exp.ndt7", "WHERE date = '2020-03-18'"
    tests = [doc.get("Download") or doc.get("Upload") or {} for doc in measured]
    found = world.sql(
        "SELECT COUNT(*) AS n, COUNT(DISTINCT COALESCE(raw.Download.UUID, raw.Upload.UUID)) AS u"
        f" FROM {table} {where}"
    )
    assert found == [{"n": len(measured), "u": len({test.get("UUID") for test in tests})}]
    server = [
        line
        for doc in measured
        for line in (doc.get("Download") or {}).get("ServerMeasurements") or []
    ]
    found = world.sql(
        "SELECT COUNT(*) AS n, MAX(m.TCPInfo.BytesAcked) AS acked, SUM(m.TCPInfo.RTT) AS rtt"
        f" FROM {table}, UNNEST(raw.Download.ServerMeasurements) AS m {where}"
    )
    info = [line.get("TCPInfo") or {} for line in server]
    assert found == [
        {
            "n": len(server),
            "acked": max(x.get("BytesAcked") or 0 for x in info),
            "rtt": sum(x.get("RTT") or 0 for x in info),
        }
    ]


@pytest.mark.parametrize("loaded", [False, True])
def test_a_run_with_little_to_do_starts_no_jvm(world: World, *, loaded: bool) -> None:
    """None for bundles that must be read, if they are small; none for a day that is loaded."""
    world.put_schema()
    world.put_bundle([row(1), row(1), b"bad"])
    more = ("--max-bad-fraction", "1")
    assert not loaded or world.load(*more).code == 0

    process = world.start(*more, JAVA_HOME="/nonexistent", PATH="/nonexistent")
    out, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    assert ("nothing to do" in out) is loaded
    assert "JAVA" not in err
    assert len(world.rows()) == len(world.rejects()) == 1


@pytest.fixture
def cluster(environment: None, tmp_path: Path) -> Iterator[str]:
    with standalone(tmp_path) as url:
        yield url


@pytest.mark.long
def test_spark_submit_to_a_cluster_of_two_workers(
    world: World, cluster: str, tmp_path: Path
) -> None:
    """Executors have the libraries; the code of the loader comes as a zip."""
    world.put_schema()
    for number in range(8):
        world.put_bundle([row(100 * number + line) for line in range(20)])
    world.put_bundle([row(0), b"bad"])
    ran = submit(cluster, tmp_path, *world.arguments("--engine", "spark"))

    assert ran.returncode == 0, ran.stderr[-3000:]
    assert len(world.rows()) == 160
    assert [line["Reason"] for line in world.rejects()] == ["not-json"]
    assert world.rows()[0] == f"{DAY:%Y/%m/%d}/m0.json"
    assert {executor.parent.name for executor in (tmp_path / "work").glob("app-*/*")}
