"""From bundles to rows, over HTTP: every way that bundles and schemas can be."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest
from google.api_core.exceptions import BadRequest

from jostler.format.names import Kind
from loader.bigquery import partition_load as finish
from loader.spark import driver
from tests.loader.world import DAY, PLACE, World, row
from tests.support.agent import once
from tests.support.golden import go, go_bundle
from tests.support.spool import DATATYPE, SCHEMA, Spool, document

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("spark")
engines = pytest.mark.parametrize("engine", ["auto", "spark"])
FOO, INDEX, REJECTED = "raw_exp.foo1", "raw_exp.index1", "raw_exp.rejected1"
TODAY = ("--period", "daily")


def names(*numbers: int, day: date = DAY) -> list[str]:
    return sorted(f"{day:%Y/%m/%d}/m{number}.json" for number in numbers)


def test_what_the_agent_archived_arrives_and_a_second_run_reads_nothing(
    world: World, tmp_path: Path
) -> None:
    """The agent's own bundles, good and bad files, of two days."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(30)
    spool.write("other.json", document(77), day="2026/01/03")
    spool.write("bad.json", b'{"UUID": {}}')
    assert once(spool, world.bucket, gcs_url=world.gcs.url).returncode == 0

    first = world.load()

    assert first.code == 0, first.err
    assert world.rows() == names(*range(30))
    assert world.rows(day=date(2026, 1, 3)) == ["2026/01/03/other.json"]
    sql = "SELECT raw.Filename, raw.Reason FROM {} WHERE date > '2020-01-01'"
    assert world.sql(sql.format(REJECTED)) == [
        {"Filename": "2026/01/02/bad.json", "Reason": "wrong-type"}
    ]
    assert len(world.rows(INDEX)) == 31
    assert {told["Status"] for told in world.ledger()} == {"success"}
    assert len(world.ledger()) == 5
    ledger = world.ledger()
    world.gcs.seen.clear()

    second = world.load()

    assert second.code == 0
    assert "nothing to do" in second.out
    assert world.reads() == []
    assert world.ledger() == ledger


def test_tables_want_a_partition_filter_and_have_views_and_descriptions(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])

    assert world.load().code == 0

    table = world.client.get_table(FOO)
    assert table.time_partitioning.field == "date"
    assert table.require_partition_filter
    assert "foo1" in table.description
    assert {field.name: field.description for field in table.schema}["date"]
    with pytest.raises(BadRequest, match="without a filter"):
        world.sql(f"SELECT COUNT(*) FROM {FOO}")
    view = "SELECT raw.UUID FROM exp_raw.foo1 WHERE date = '2026-01-02'"
    assert len(world.sql(view)) == 1


def test_a_late_bundle_makes_its_old_day_due_and_no_other(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])
    world.put_bundle([row(2, day=date(2026, 1, 3))], day=date(2026, 1, 3))
    assert world.load().code == 0
    world.put_bundle([row(3)])

    late = world.load()

    assert late.code == 0
    assert {day for _, day in late.days} == {"2026-01-02"}
    assert late.days[FOO, "2026-01-02"]["reason"] == "changed"
    assert world.rows() == names(1, 3)


@pytest.mark.parametrize("engine", ["auto", pytest.param("spark", marks=pytest.mark.long)])
def test_a_bundle_that_came_twice_is_loaded_once_and_the_earliest_wins(
    world: World, engine: str
) -> None:
    world.put_schema()
    first = world.put_bundle([row(1), row(2), row(1)])
    world.put_bundle([row(2), row(1), row(3)])

    ran = world.load("--engine", engine)

    assert ran.code == 0
    assert world.rows() == names(1, 2, 3)
    assert ran.days[FOO, "2026-01-02"]["repeated"] == 3
    assert world.names("loader-staging/") == []
    assert first.endswith("-data.jsonl.gz")


def test_spark_verifies_what_the_driver_cannot(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake in the driver's own way costs time, and a line says so."""
    monkeypatch.setattr(driver, "repeats", lambda _: {}["nothing"])
    world.put_schema()
    world.put_bundle([row(1), row(1)])

    ran = world.load()

    assert ran.code == 0
    (told,) = (event for event in ran.events if event["event"] == "driver.failed")
    assert told["why"].startswith("KeyError")
    assert world.rows() == names(1)


def test_the_same_file_from_two_nodes_is_two_rows(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)], node="node1")
    world.put_bundle([row(1)], node="node2")

    assert world.load().code == 0
    assert world.rows() == names(1, 1)


def test_a_filename_with_other_content_is_kept_and_counted(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1), row(2)])
    world.put_bundle([row(1, raw=document(9)), row(2)])

    assert world.load().code == 0
    assert world.rows() == names(1, 1, 2)
    (told,) = (told for told in world.ledger() if told["table"].endswith("foo1"))
    assert (told["RowsRenewed"], told["RowsRepeated"]) == (1, 1)


def test_bundles_of_the_go_agent_load_and_are_known_for_the_same_files(world: World) -> None:
    """`Date/Archiver/Raw` with absolute Filenames; its index has bare lines and no schema.

    Our own index rows of the same day load beside them.
    """
    world.put(PLACE.table_schema(DATATYPE), go("foo1.table.json"))
    raw = [line.partition(b',"Raw":')[2][:-1] for line in go("data.jsonl").splitlines()]
    world.put_bundle([row(1, raw=raw[0]), row(9)])
    world.put(world.put_bundle([]), go_bundle("data.jsonl"))
    index = world.put_bundle([], kind=Kind.INDEX)
    world.put(index, go_bundle("index1.jsonl"))
    own = {"Filename": "2026/01/02/m9.json", "Size": 9, "TimeAdded": "2026-01-02T03:04:05Z"}
    world.put_bundle([row(9, raw=json.dumps(own).encode())], kind=Kind.INDEX)

    ran = world.load()

    assert ran.code == 0, ran.err
    assert ran.days[FOO, "2026-01-02"]["repeated"] == 1
    assert len(world.rows()) == 4
    sql = "SELECT archiver, raw.Size, raw.TimeAdded FROM {} WHERE date = '2026-01-02' ORDER BY 2"
    found = world.sql(sql.format(INDEX))
    assert [line["Size"] for line in found] == [9, 281, 316, 350]
    assert found[3]["archiver"]["ArchiveURL"] == f"{world.url}/{index}"
    assert found[3]["archiver"]["Filename"] == "2026/01/02/m2.json"
    assert found[3]["TimeAdded"] == datetime(2026, 1, 2, 3, 4, 6, 123456, tzinfo=UTC)


def test_a_datatype_with_dashes_of_an_old_archive_loads(world: World) -> None:
    """The Go agent takes such names; the table has the same."""
    world.put_schema(datatype="foo-bar-1")
    world.put_bundle([row(1, go=True)], datatype="foo-bar-1")

    ran = world.load("--datatype", "foo-bar-1")

    assert ran.code == 0, ran.err
    assert world.rows("raw_exp.foo-bar-1") == ["/var/spool/exp/foo1/2026/01/02/m1.json"]


BAD = {
    "wrong-type": row(1, raw=b'{"UUID": []}'),
    "unknown-field": row(1, raw=b'{"UUID": "u", "Other": 1}'),
    "duplicate-key": row(1, raw=b'{"UUID": "u", "uuid": "v"}'),
    "bad-timestamp": row(1, raw=b'{"StartTime": "noon"}'),
    "wrong-day": row(1, day=date(2026, 1, 3)),
    "not-json": b'{"date":',
    "empty": b"",
    "not-utf8": row(1, raw=b'{"UUID": "\xff"}'),
    "nul-character": row(1, raw=b'{"UUID": "\\u0000"}'),
}


@engines
def test_bad_rows_go_to_the_rejects_with_their_reason_and_the_good_ones_are_loaded(
    world: World, engine: str
) -> None:
    world.put_schema()
    good = [row(number) for number in range(100, 190)]
    name = world.put_bundle([*good[:45], *BAD.values(), *good[45:]])

    ran = world.load("--engine", engine)

    assert ran.code == 0, ran.err
    assert len(world.rows()) == 90
    found = world.rejects()
    assert [line["Reason"] for line in found] == list(BAD)
    assert [line["Line"] for line in found] == list(range(46, 46 + len(BAD)))
    assert {line["ArchiveURL"] for line in found} == {f"{world.url}/{name}"}
    assert found[0]["Filename"] == "2026/01/02/m1.json"
    assert found[0]["Field"] == "raw.UUID"
    assert found[0]["Row"] == BAD["wrong-type"].decode()
    assert world.names("loader-staging/") == []


def test_bad_rows_are_loaded_from_where_executors_wrote_them(world: World) -> None:
    """The driver would not have the memory for them."""
    world.put_schema()
    name = world.put_bundle([*(row(number) for number in range(30)), BAD["wrong-type"]])

    assert world.load().code == 0

    jobs = [job for job in world.client.list_jobs() if "-reject_rows-" in job.job_id]
    (uri,) = (uri for job in jobs for uri in job.source_uris or ())
    assert uri.startswith(f"{world.url}/loader-staging/")
    assert uri.endswith(name.rpartition("/")[2])
    assert world.names("loader-staging/") == []


def test_of_a_refused_day_a_sample_of_the_bad_rows_is_kept(world: World) -> None:
    """And the count of all of them: who must mend the producer needs no more."""
    world.put_schema()
    for _ in range(3):
        world.put_bundle([row(1), *[BAD["wrong-type"]] * 600])

    assert world.load().code == 1

    (told,) = world.ledger()
    assert (told["Status"], told["RowsRead"], told["RowsRejected"]) == ("rejected", 1803, 1800)
    assert [line["Line"] for line in world.rejects()] == [*range(2, 602), *range(2, 402)]
    assert world.names("loader-staging/") == []


def test_unknown_nulls_are_good(world: World) -> None:
    """Real NDT7 rows have a null that the table has no column for."""
    world.put_schema()
    world.put_bundle([row(1, raw=b'{"UUID": "u", "ClientMeasurements": null}')])

    assert world.load().code == 0
    assert len(world.rows()) == 1


def test_a_day_with_too_many_bad_rows_is_not_replaced_until_something_changes(
    world: World,
) -> None:
    world.put_schema()
    world.put_bundle([row(1), row(2)])
    assert world.load().code == 0
    world.put_bundle([BAD["wrong-type"]])

    refused = world.load()

    assert refused.code == 1
    assert "1 of 3 rows are bad, more than 0.1" in refused.out
    assert world.rows() == names(1, 2)
    assert [line["Reason"] for line in world.rejects()] == ["wrong-type"]
    assert [told["Status"] for told in world.ledger()] == ["success", "rejected"]
    ledger = world.ledger()
    world.gcs.seen.clear()

    again = world.load()

    assert again.code == 1
    assert "nothing has changed since" in again.out
    assert world.reads() == []
    assert world.ledger() == ledger

    assert world.load("--max-bad-fraction", "0.5").code == 0
    assert world.rows() == names(1, 2)
    assert [line["Reason"] for line in world.rejects()] == ["wrong-type"]


def test_a_truncated_bundle_stops_no_other(world: World) -> None:
    """Its readable rows, and what is lost, are bad input; the day's other bundles load."""
    world.put_schema()
    world.put_bundle([row(number) for number in range(200)])
    world.put_bundle([row(number) for number in range(200, 210)], cut=40)

    ran = world.load()

    assert ran.code == 0, ran.err
    assert world.rows() == names(*range(200))
    found = world.rejects()
    assert {line["Reason"] for line in found} == {"corrupt-bundle"}
    assert {line["Detail"] for line in found} == {"the gzip stream is cut short"}
    assert len(found) >= 8
    told = world.ledger()[0]
    assert (told["Corrupt"], told["RowsRejected"]) == (1, len(found))


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip at all", gzip.compress(b"{}\n", mtime=0)[:-4] + b"abcd"],
    ids=["empty", "no gzip", "a wrong length"],
)
def test_what_is_no_bundle_is_counted(world: World, data: bytes) -> None:
    world.put_schema()
    world.put_bundle([row(number) for number in range(30)])
    world.put(world.put_bundle([]), data)

    assert world.load().code == 0
    assert len(world.rows()) == 30
    assert {line["Reason"] for line in world.rejects()} == {"corrupt-bundle"}


def test_more_bundles_than_a_job_takes_uris_are_loaded_by_a_manifest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for copies and one for bad rows lie in staging, and are gone when the day is loaded."""
    monkeypatch.setattr(finish, "URIS_MAX", 2)
    world.put_schema()
    for number in range(3):
        world.put_bundle([row(number), row(0), b"bad"])

    assert world.load("--max-bad-fraction", "0.5").code == 0

    assert world.rows() == names(0, 1, 2)
    (told,) = world.ledger()
    assert (told["Bundles"], told["Rewritten"], told["RowsRepeated"]) == (3, 3, 3)
    assert len(world.rejects()) == 3
    assert world.names("loader-staging/") == []


def test_a_day_without_any_good_row_is_emptied(world: World) -> None:
    """With every row bad and everything allowed, the partition holds what the bucket holds."""
    world.put_schema()
    world.put_bundle([b"no", b"row"])
    world.put_bundle([])

    assert world.load("--max-bad-fraction", "1").code == 0
    assert world.rows() == []
    assert len(world.rejects()) == 2


def test_a_schema_that_gained_a_column_is_applied_and_rejected_rows_are_read_again(
    world: World,
) -> None:
    world.put_schema()
    world.put_bundle([*(row(n) for n in range(20)), row(20, raw=b'{"UUID": "u", "New": 7}')])
    assert world.load().code == 0
    assert len(world.rows()) == 20
    world.put_schema([*SCHEMA, {"name": "New", "type": "INTEGER"}])

    ran = world.load()

    assert ran.code == 0, ran.err
    sql = f"SELECT raw.New AS n FROM {FOO} WHERE date = '2026-01-02' AND raw.New IS NOT NULL"
    assert [line["n"] for line in world.sql(sql)] == [7]
    assert len(world.rows()) == 21
    assert world.rejects() == []
    view = "SELECT raw.New AS n FROM exp_raw.foo1 WHERE date = '2026-01-02' AND raw.New > 0"
    assert [line["n"] for line in world.sql(view)] == [7]


def test_an_incompatible_schema_fails_its_datatype_alone(world: World) -> None:
    world.put_schema()
    world.put_schema(datatype="bar1")
    world.put_bundle([row(1)])
    world.put_bundle([row(1)], datatype="bar1")
    assert world.load().code == 0
    world.put_schema([{**SCHEMA[0], "type": "INTEGER"}, *SCHEMA[1:]])
    world.put_bundle([row(2)])
    world.put_bundle([row(2)], datatype="bar1")

    ran = world.load()

    assert ran.code == 1
    assert "stored is STRING, ours is INTEGER" in ran.out
    assert world.rows() == names(1)
    assert world.rows("raw_exp.bar1") == names(1, 2)
    (told,) = (told for told in world.ledger() if told["date"] is None)
    assert (told["Status"], told["ErrorClass"]) == ("failed", "SchemaError")


def test_a_new_table_is_loaded_from_the_beginning_even_if_the_first_run_fails(
    world: World,
) -> None:
    """Days before the window are loaded, by a later run if the first one cannot."""
    world.put_schema()
    world.put_bundle([row(1)])
    old = date(2025, 6, 7)
    world.put_bundle([row(2, day=old)], day=old)
    world.fault("job_error", times=3, job="20250607", reason="backendError")

    assert world.load(*TODAY).code == 1
    assert world.rows() == names(1)
    assert world.rows(day=old) == []
    assert world.load(*TODAY).code == 0
    assert world.rows(day=old) == names(2, day=old)

    world.put_bundle([row(3, day=old)], day=old)
    assert world.load(*TODAY).code == 0
    assert world.rows(day=old) == names(2, day=old)  # the window counts now


def test_two_buckets_make_one_table_and_none_can_be_forgotten(world: World) -> None:
    other = World(world.bigquery, world.gcs, project=world.project)
    for each, number in ((world, 1), (other, 2)):
        each.put_schema()
        each.put_bundle([row(number)], node=f"node{number}")
    both = ("--bucket", world.url, "--bucket", other.url)

    assert world.load(*both).code == 0
    assert world.rows() == names(1, 2)
    world.put_bundle([row(3)])
    alone = world.load()

    assert alone.code == 1
    assert f"was loaded from {other.url} too" in alone.out
    assert world.rows() == names(1, 2)
    assert world.load(*both).code == 0
    assert world.rows() == names(1, 2, 3)
    other.close()


def test_a_plan_is_printed_and_nothing_is_touched(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])
    world.gcs.seen.clear()

    ran = world.load("--dry-run")

    assert ran.code == 0
    assert "1 days would be loaded" in ran.out
    assert list(world.client.list_datasets()) == []
    assert world.reads() == []
    assert not [seen for seen in world.gcs.seen if not seen.startswith("GET ")]


def test_force_loads_again(world: World, spark: SparkSession) -> None:
    world.put_schema()
    world.put_bundle([row(1)])
    assert world.load().code == 0

    forced = world.load("--force")

    assert forced.code == 0
    assert [told["Attempt"] for told in world.ledger()] == [1, 2]
    assert world.rows() == names(1)
