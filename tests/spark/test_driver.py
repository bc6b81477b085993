"""What the driver finds in a small wave without Spark is what Spark finds."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest

from jostler.format.bigquery_names import TableName
from jostler.format.names import Place
from jostler.schema import Use, fields_from_api, native, table_schema
from loader.bucket import open_bucket
from loader.plan.discover import Bundle, Source, Table
from loader.plan.due import TableDay
from loader.spark import driver, engine
from loader.spark.wave import StagingPaths, Verified, Wave
from tests.loader.world import DAY, row
from tests.support.spool import SCHEMA as COLUMNS
from tests.support.spool import document

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FIELDS = table_schema(fields_from_api(COLUMNS))
NAME = TableName(project="p", dataset="raw_exp", table="foo1", wanted="raw_exp")
BAD = row(1, raw=b'{"Rate":"x"}')
LATER = DAY + timedelta(days=1)


def day_of(root: Path, when: date, bundles: list[bytes]) -> TableDay:
    """Store bundles of a day; an empty one is listed and gone."""
    bucket = open_bucket(root.as_uri(), 5)
    made = []
    for number, data in enumerate(bundles):
        name = f"autoload/v1/exp/foo1/{when:%Y/%m/%d}/b{number}-data.jsonl.gz"
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
        (entry,) = bucket.list(name)
        made.append(
            Bundle(
                bucket=bucket.url,
                name=name,
                generation=entry.generation,
                size_bytes=entry.size_bytes,
                created=datetime(2026, 1, 3, tzinfo=UTC),
                node=f"node{number % 2}",
                pair=name,
            )
        )
        if not data:
            (root / name).unlink()
    place = Place(data_dir="autoload/v1", organization="", experiment="exp")
    source = Source(bucket=bucket, place=place, datatype="foo1", fields=FIELDS)
    table = Table(name=NAME, view=NAME, sources=(source,), fields=FIELDS)
    return TableDay(table=table, date=when, bundles=tuple(made), fingerprint="f")


@pytest.mark.long
def test_both_engines_load_and_write_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Of repeats in a bundle and among bundles, renewed, bad, bare and odd rows, broken bundles.

    One engine in Python alone, the other with the native module, where that is installed.
    """
    lines = {
        DAY: [
            [row(1), row(2), row(1)],
            [row(1), row(2, raw=document(9)), row(3, go=True)],
            [row(4), row(1), BAD, row(5), b"", row(2)],
            [BAD, b"x"],
            [row(7), row(6), row(2, raw=document(9))],
        ],
        LATER: [[row(n, day=LATER) for n in range(50)], [row(1, day=LATER), BAD]],
    }
    days = []
    for when, bundles in lines.items():
        made = [gzip.compress(b"".join(line + b"\n" for line in each)) for each in bundles]
        made.append(gzip.compress(b"\n".join([row(8, day=when)] * 9))[:-30])
        days.append(day_of(tmp_path, when, made))
    days.append(day_of(tmp_path, DAY - timedelta(days=1), [b"", made[0]]))

    staging = StagingPaths(staging=f"{tmp_path.as_uri()}/staged", run_id="r")
    told = []
    fast = Use.REQUIRE if native.find(Use.AUTO).module else Use.OFF
    for verify, use in ((driver.run, Use.OFF), (partial(engine.run, spark), fast)):
        wave = Wave.of(days, {str(NAME): FIELDS}, staging, native=use)
        verify(wave, max_bad=0.5, patience_s=1)
        objects = {
            path.name: gzip.decompress(path.read_bytes())
            for path in (tmp_path / "staged").rglob("*.gz")
        }
        shutil.rmtree(tmp_path / "staged")
        told.append(
            (
                [
                    (one.name, [getattr(day, one.name) for day in wave.days])
                    for one in fields(Verified)
                ],
                objects,
            )
        )

    for by_driver, by_spark in zip(*(facts for facts, _ in told), strict=True):
        assert by_driver == by_spark
    assert told[0][1] == told[1][1]
    assert [(day.rows, day.repeated, day.renewed, day.rejected) for day in wave.days[:2]] == [
        (19, 3, 1, 6),
        (55, 0, 0, 4),
    ]
    assert [bool(day.error) for day in wave.days] == [False, False, True]


def test_the_driver_leaves_many_rows_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has written anything."""
    monkeypatch.setattr(driver, "ROWS_MAX", 10)
    day = day_of(tmp_path, DAY, [gzip.compress(b"\n".join([row(1)] * 6))] * 2)
    staging = StagingPaths(staging=f"{tmp_path.as_uri()}/staged", run_id="r")
    wave = Wave.of([day], {str(NAME): FIELDS}, staging)
    with pytest.raises(driver.TooManyRowsError):
        driver.run(wave, max_bad=0.5, patience_s=1)
    assert wave.days[0].rows == 0
    assert not (tmp_path / "staged").exists()
