"""The audit on Spark: the same problems as by threads, whatever is wrong."""

from __future__ import annotations

import os
from datetime import date
from typing import TYPE_CHECKING

import pytest

from jostler.archive.audit.audit import audit
from jostler.archive.audit.days import Limits, Schemas
from jostler.archive.audit.problem import Kind
from jostler.archive.audit.scope import Scope, days
from jostler.storage import open_storage
from loader.spark.audit import audit_days
from tests.support.bucket import url_of
from tests.support.kept import PLACE, KeptArchive, contents, index_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LIMITS = Limits(small_bytes=10**6, many=4, today=date(2026, 1, 9))


@pytest.mark.long
def test_spark_and_threads_tell_the_same(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a day with every problem, of the Go agent's bundles, and of a good day."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    archive = KeptArchive(open_storage(url_of(tmp_path / "bucket")))
    archive.put(contents(range(5)), day=date(2026, 1, 3))
    archive.put_go()
    names = [archive.put(contents(range(3 * n, 3 * n + 3))) for n in range(6)]
    archive.put(contents([1, 70]))
    archive.storage.remove(str(index_of(names[1])))
    archive.storage.remove(str(names[2]))
    archive.swap_rows(index_of(names[3]), lambda rows: rows[1:])
    archive.swap(names[4], lambda data: data[:-9])
    archive.swap_rows(names[5], lambda rows: [rows[0] | {"date": "2026-01-09"}, *rows[1:]])
    archive.storage.put_new("autoload/v1/exp/foo1/2026/01/02/x", b"x", {})
    archive.storage.remove(PLACE.table_schema("foo1"))

    by_threads = list(audit(archive.storage, [PLACE], Scope(), LIMITS))
    listed = list(days(archive.storage, PLACE, Scope()))
    schemas = Schemas(archive.storage)
    by_spark = list(
        audit_days(
            spark, archive.storage.url, listed, limits=LIMITS, schemas=schemas, patience_s=10.0
        )
    )

    assert [day.problems for day in by_spark] == [day.problems for day in by_threads]
    assert [day.rows for day in by_spark] == [day.rows for day in by_threads]
    assert {problem.kind for day in by_spark for problem in day.problems} == {
        *(Kind.NO_INDEX, Kind.NO_DATA, Kind.DISAGREES, Kind.DAMAGED, Kind.OTHER_DAY),
        *(Kind.REPEATED, Kind.SMALL, Kind.SCHEMA, Kind.FOREIGN),
    }
