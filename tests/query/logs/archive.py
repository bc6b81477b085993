"""A small archive in the embedded BigQuery: the tables that the tests of the language ask."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from jostler.schema.fields import Fields, fields_from_api, fields_to_api
from loader.query import logs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from loader.query.question import Question

NOW = datetime(2026, 1, 5, 12, 0, 0, tzinfo=UTC)


def field_(
    name: str, type_: str, mode: str = "NULLABLE", *fields: dict[str, Any]
) -> dict[str, Any]:
    return {"name": name, "type": type_, "mode": mode, "fields": list(fields)}


def table(*raw: dict[str, Any]) -> Fields:
    """The columns of a table of data, as a runner offers them."""
    archiver = ("Version", "GitCommit", "ArchiveURL", "Filename")
    return fields_from_api(
        [
            field_("date", "DATE"),
            field_("archiver", "RECORD", "NULLABLE", *(field_(n, "STRING") for n in archiver)),
            field_("raw", "RECORD", "NULLABLE", *raw),
            field_("_time", "TIMESTAMP"),
            field_("_node", "STRING"),
        ]
    )


def row(time: str, raw: dict[str, Any], node: str = "mlab1-lga01") -> dict[str, Any]:
    day = time[:10]
    archiver = {"Version": "v", "Filename": f"{day.replace('-', '/')}/a.json"}
    return {"date": day, "archiver": archiver, "raw": raw, "_time": f"{time} UTC", "_node": node}


def visit(
    time: str, country: str | None, city: str, sent: int | None, **raw: object
) -> dict[str, Any]:
    return row(time, {"country_code": country, "city": city, "bytes": sent, **raw})


def speed(time: str, mbps: float, node: str, *rtts: float) -> dict[str, Any]:
    samples = [{"RTT": rtt} for rtt in rtts]
    return row(time, {"Download": {"MeanThroughputMbps": mbps}, "Samples": samples}, node)


COLUMNS: dict[str, Fields] = {
    "iis": table(
        field_("country_code", "STRING"),
        field_("city", "STRING"),
        field_("bytes", "INTEGER"),
        field_("line", "STRING"),
    ),
    "ndt7": table(
        field_("Download", "RECORD", "NULLABLE", field_("MeanThroughputMbps", "FLOAT")),
        field_("Samples", "RECORD", "REPEATED", field_("RTT", "FLOAT")),
    ),
    "ndt5": table(
        field_("Download", "RECORD", "NULLABLE", field_("MeanThroughputMbps", "INTEGER")),
        field_("Old", "STRING"),
    ),
    "one": table(
        field_("text", "STRING"),
        field_("none", "STRING"),
        field_("number", "INTEGER"),
        field_("real", "FLOAT"),
        field_("exact", "NUMERIC"),
        field_("yes", "BOOLEAN"),
        field_("at", "TIMESTAMP"),
        field_("day", "DATE"),
        field_("local", "DATETIME"),
        field_("json", "JSON"),
        field_("list", "STRING", "REPEATED"),
        field_("numbers", "INTEGER", "REPEATED"),
        field_("data", "BYTES"),
        field_("no_number", "INTEGER"),
    ),
    "five": table(field_("n", "INTEGER"), field_("bytes", "INTEGER")),
    "lookups.iso_code": fields_from_api(
        [field_("country_code", "STRING"), field_("country", "STRING"), field_("size", "STRING")]
    ),
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "iis": [
        visit("2026-01-01 10:00:00", "CH", "Bern", 10, line='{"user":{"name":"ann"},"ok":true}'),
        visit("2026-01-02 10:30:00", "CH", "Zug", 20, line="GET /a%20b?x=1 404"),
        visit("2026-01-03 23:59:59", "CH", "Zug", None),
        visit("2026-01-04 00:00:00", "IT", "Zug*", 40, line="Failed_login for root, code 4711"),
        visit("2026-01-05 11:00:00", None, "Rome", 50, line="broken {"),
    ],
    "ndt7": [
        speed("2026-01-04 13:05:00", 5.0, "n1", 1.0),
        speed("2026-01-04 13:10:00", 20.0, "n1", 2.0, 4.0),
        speed("2026-01-04 13:50:00", 40.0, "n2"),
        speed("2026-01-04 14:00:00", 80.0, "n1", 8.0),
    ],
    "ndt5": [row("2026-01-04 15:00:00", {"Download": {"MeanThroughputMbps": 7}, "Old": "x"})],
    "one": [
        row(
            "2026-01-02 03:04:05",
            {
                "text": "Grüezi", "number": 7, "real": 2.5, "exact": "1.5", "yes": True,
                "at": "2026-01-02 03:04:05 UTC", "day": "2026-01-02",
                "local": "2026-01-02 03:04:05", "json": {"a": {"b": 1}}, "list": ["x", "y"],
                "numbers": [1, 2, 3], "data": "AAE=",
            },
        )
    ],
    "five": [
        row(f"2026-01-0{n} 00:00:00", {"n": n, "bytes": None if n == 3 else 10 * n})
        for n in range(1, 6)
    ],
    "lookups.iso_code": [
        {"country_code": "CH", "country": "Switzerland", "size": "41285"},
        {"country_code": "IT", "country": "Italy", "size": "302073"},
        {"country_code": "IT", "country": "Italy", "size": "302073"},
    ],
}  # fmt: skip


@dataclass
class Archive:
    """The tables in a BigQuery, and the shapes of them."""

    url: str
    project: str = "logs"
    shapes: dict[str, Fields] = field(default_factory=lambda: dict(COLUMNS))

    def __post_init__(self) -> None:
        self.client = bigquery.Client(
            self.project, AnonymousCredentials(), client_options={"api_endpoint": self.url}
        )
        for name, rows in ROWS.items():
            self.create(name, COLUMNS[name], rows)

    def create(self, name: str, columns: Fields, rows: Iterable[dict[str, Any]]) -> None:
        dataset, _, table_ = f"archive.{name}".rpartition(".")
        dataset = dataset.removeprefix("archive.")
        self.client.create_dataset(dataset, exists_ok=True)
        schema = [bigquery.SchemaField.from_api_repr(each) for each in fields_to_api(columns)]
        lines = "".join(json.dumps(each) + "\n" for each in rows)
        config = bigquery.LoadJobConfig(
            schema=schema,
            source_format="NEWLINE_DELIMITED_JSON",
            write_disposition="WRITE_TRUNCATE",
        )
        self.client.load_table_from_file(
            io.BytesIO(lines.encode()), f"{self.project}.{dataset}.{table_}", job_config=config
        ).result()

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.shapes))

    def columns(self, table: str) -> Fields | None:
        return self.shapes.get(table)

    def compiled(self, text: str) -> Question:
        return logs.compile(text, self, NOW)

    def answer(self, text: str) -> list[dict[str, Any]]:
        """Ask a question and return its rows."""
        return self.sql(self.compiled(text).sql)

    def sql(self, sql: str, *, dry: bool = False) -> list[dict[str, Any]]:
        config = bigquery.QueryJobConfig(
            default_dataset=f"{self.project}.archive", dry_run=dry, use_query_cache=False
        )
        job = self.client.query(sql, job_config=config)
        return [] if dry else [dict(found.items()) for found in job.result()]

    def values(self, text: str) -> list[tuple[Any, ...]]:
        """Ask a question and return the values of its rows."""
        return [tuple(found.values()) for found in self.answer(text)]
