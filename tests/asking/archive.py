"""An archive to be asked: bundles as agents store them, of a datatype with columns of each kind."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from jostler.format.names import Day
from jostler.schema import INDEX1_FIELDS, fields_from_api, table_schema, to_json
from jostler.storage import open_storage, upload_id
from loader.bucket import open_bucket
from loader.query.googlesql.reads import Range, Read, SparkText
from loader.query.lookups import Lookups
from loader.query.on_spark import SparkRunner, plan
from loader.query.tables import Selection, Tables, tables
from tests.support.bundles import PLACE, bundle

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from loader.query.answer import Answer

DAY = date(2026, 1, 2)
COLUMNS = [
    {"name": "UUID", "type": "STRING"},
    {"name": "Rate", "type": "FLOAT"},
    {"name": "Count", "type": "INTEGER"},
    {"name": "When", "type": "TIMESTAMP"},
    {"name": "Price", "type": "NUMERIC"},
    {
        "name": "Samples",
        "type": "RECORD",
        "mode": "REPEATED",
        "fields": [{"name": "T", "type": "INTEGER"}, {"name": "Note", "type": "STRING"}],
    },
]
FIELDS = table_schema(fields_from_api(COLUMNS))


class Archive:
    """An archive in a directory.

    Args:
        root: a directory that does not exist yet.
    """

    def __init__(self, root: Path) -> None:
        root.mkdir()
        self.root = root
        self.url = root.as_uri()
        self.storage = open_storage(self.url)
        self.schema("foo1", FIELDS)
        self.schema("index1", table_schema(INDEX1_FIELDS))
        self._made = 0

    def schema(self, datatype: str, fields: Any, place: Any = PLACE) -> None:  # noqa: ANN401
        """Store a table schema, and keep it as that of the agent's judge."""
        data = to_json(fields)
        self.storage.put_new(place.table_schema(datatype), data, {})
        self.storage.put_new(place.kept_schema(datatype, upload_id(data)), data, {})

    def put(
        self,
        documents: Iterable[dict[str, Any] | bytes],
        *,
        names: Iterable[str] = (),
        node: str = "n1",
        day: date = DAY,
        at: datetime | None = None,
        judged: bool = True,
        indexed: bool = True,
        datatype: str = "foo1",
        fields: Any = FIELDS,  # noqa: ANN401 - Fields
        place: Any = PLACE,  # noqa: ANN401 - a Place
    ) -> str:
        """Store a bundle; Start of its rows is `at` and some microseconds.  Return its name."""
        self._made += 1
        raws = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in documents]
        given = list(names) or [f"{self._made}-{nth}.json" for nth in range(len(raws))]
        start = at or datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        data, index = bundle(
            list(zip(given, raws, strict=True)),
            node=node,
            number=self._made,
            datatype=datatype,
            day=Day(day),
            place_=place,
            bucket=self.url,
            schema=upload_id(to_json(fields)) if judged else "",
            added_us=int(start.timestamp()) * 1_000_000 - self._made * 1_000_000,
        )
        self.storage.put_new(data.name, data.data, data.metadata)
        if indexed:
            self.storage.put_new(index.name, index.data, index.metadata)
        return data.name

    def tables(self, lookups: Lookups | None = None) -> Tables:
        return tables([open_bucket(self.url, 5.0)], Selection(), lookups)

    def lookups(self, **given: Path) -> Lookups:
        return Lookups([open_bucket(self.url, 5.0)], given)


def read(table: str, *paths: str, view: str = "t", **bounds: Any) -> Read:  # noqa: ANN401
    """Say what a question reads, as the translation does."""
    named = tuple(sorted(tuple(path.split(".")) for path in paths))
    return Read(view=view, table=table, paths=named, range=Range(**bounds))


def ask(spark: SparkSession, archive: Archive, sql: str, *reads: Read, limit: int = 0) -> Answer:
    """Run a text of Spark over an archive."""
    lookups = archive.lookups()
    text = SparkText(sql=sql, reads=reads, columns=())
    readings = plan(text, archive.tables(lookups), 5.0)
    return SparkRunner(spark, lookups).answer(text, readings, lambda _: None, limit)


def rows(answer: Answer) -> list[tuple[Any, ...]]:
    """Return all rows, in order."""
    table: pa.Table = answer.table()
    return [tuple(row.values()) for row in table.to_pylist()]
