"""Load jobs from a real GCS server, from files and from the request itself."""

from __future__ import annotations

import gzip
import io
import json
import urllib.error
import urllib.request
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from google.api_core.exceptions import BadRequest, Conflict, GoogleAPICallError, NotFound
from google.cloud import bigquery
from google.cloud.bigquery import LoadJobConfig, SchemaField

from embedded.jobs.jobs import Job
from embedded.jobs.load import Loads
from embedded.model.names import DatasetRef, JobRef, TableRef
from embedded.store.catalog import find_table
from embedded.store.database import Store
from embedded.store.datasets import make_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from tests.embedded.conftest import Server
    from tests.support.gcs import GcsServer

DAYS = ("2022-09-29", "2022-09-30")
FIELDS = [
    SchemaField("date", "DATE"),
    SchemaField("n", "INTEGER"),
    SchemaField(
        "raw",
        "RECORD",
        fields=[
            SchemaField("text", "STRING"),
            SchemaField("when", "TIMESTAMP"),
            SchemaField(
                "items",
                "RECORD",
                "REPEATED",
                fields=[SchemaField("k", "STRING"), SchemaField("v", "FLOAT")],
            ),
        ],
    ),
]

Row = dict[str, Any]


def ndjson(*rows: Row) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@pytest.fixture
def bucket(gcs: GcsServer) -> Bucket:
    return Bucket(gcs)


class Bucket:
    """A place of its own in the bucket."""

    def __init__(self, gcs: GcsServer) -> None:
        self._gcs = gcs
        self.prefix = f"gs://bundles/{uuid.uuid4().hex[:8]}"

    def put(self, name: str, data: bytes) -> str:
        uri = f"{self.prefix}/{name}"
        path = quote(uri.removeprefix("gs://bundles/"), safe="")
        request = urllib.request.Request(
            f"{self._gcs.url}/upload/storage/v1/b/bundles/o?uploadType=media&name={path}",
            data=data,
            headers={"Content-Type": "application/gzip"},
        )
        with urllib.request.urlopen(request, timeout=60):
            return uri


@pytest.fixture
def table(client: bigquery.Client, dataset: str) -> str:
    table = bigquery.Table(f"proj.{dataset}.t", schema=FIELDS)
    table.time_partitioning = bigquery.TimePartitioning(field="date")
    client.create_table(table)
    return f"proj.{dataset}.t"


def load(client: bigquery.Client, table: str, *uris: str, **options: object) -> bigquery.LoadJob:
    config = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON", **options)
    job: bigquery.LoadJob = client.load_table_from_uri(list(uris), table, job_config=config)
    job.result()
    return job


def replace(client: bigquery.Client, table: str, day: str, *uris: str) -> bigquery.LoadJob:
    part = f"{table}${day.replace('-', '')}"
    return load(client, part, *uris, write_disposition="WRITE_TRUNCATE")


def numbers(client: bigquery.Client, table: str, day: str) -> list[int]:
    rows = client.query_and_wait(f"SELECT n FROM `{table}` WHERE date = '{day}' ORDER BY n")
    return [row.n for row in rows]


def error_of(client: bigquery.Client, table: str, uri: str, **options: object) -> list[Row]:
    """Load what must fail, and return the job's errors."""
    config = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON", **options)
    job = client.load_table_from_uri(uri, table, job_config=config)
    with pytest.raises(GoogleAPICallError):
        job.result()
    assert job.state == "DONE"
    assert job.error_result is not None
    errors: list[Row] = job.errors
    return errors


def test_a_day_is_replaced_and_the_other_one_stays(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """Two days from two gzip objects each; then one of them anew."""
    for day in DAYS:
        uris = [
            bucket.put(f"{day}/{part}.jsonl.gz", gzip.compress(ndjson({"date": day, "n": part})))
            for part in (1, 2)
        ]
        job = replace(client, table, day, *uris)
        assert (job.output_rows, job.input_files) == (2, 2)
        assert job.input_file_bytes > 0

    uri = bucket.put("again.jsonl.gz", gzip.compress(ndjson({"date": DAYS[0], "n": 7})))
    replace(client, table, DAYS[0], uri)

    assert numbers(client, table, DAYS[0]) == [7]
    assert numbers(client, table, DAYS[1]) == [1, 2]
    replace(client, table, DAYS[0], uri)
    assert numbers(client, table, DAYS[0]) == [7]


def test_rows_of_another_day_are_refused(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """The whole load fails, and the day keeps its rows."""
    good = bucket.put("good.jsonl", ndjson({"date": DAYS[0], "n": 1}))
    replace(client, table, DAYS[0], good)
    mixed = bucket.put("mixed.jsonl", ndjson(*({"date": day, "n": 2} for day in DAYS)))

    errors = error_of(client, f"{table}$20220929", mixed, write_disposition="WRITE_TRUNCATE")

    assert (
        "Some rows belong to different partitions rather than destination" in errors[0]["message"]
    )
    assert numbers(client, table, DAYS[0]) == [1]


def test_a_row_without_a_day_is_in_no_day(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """NULL is another partition."""
    errors = error_of(client, f"{table}$20220929", bucket.put("x", ndjson({"n": 2})))
    assert "different partitions" in errors[0]["message"]


BAD_ROWS = [
    ({"x": None}, "No such field: x."),
    ({"raw": {"y": 1}}, "No such field: raw.y."),
    ({"raw": {"items": [{"k": "a"}, None]}}, "Only optional fields can be set to NULL."),
    ({"n": 1.5}, "Could not convert value 'number_value: 1.5' to integer. Field: n;"),
    ({"n": True}, "Could not convert value 'bool_value: true' to integer. Field: n"),
    ({"n": [1]}, "Array specified for non-repeated field: n."),
    ({"raw": 1}, "This field: raw is not a record."),
    ({"raw": {"items": {"k": "a"}}}, "Repeated field must be imported as a JSON array."),
    ({"date": "2022/09/29"}, "Could not convert value 'string_value: \"2022/09/29\"' to date."),
    ({"raw": {"when": "2022-09-29"}}, "to timestamp. Field: raw.when;"),
    ({"N": 1, "n": 1}, "Multiple definition of field: n"),
]


@pytest.mark.parametrize(("row", "said"), BAD_ROWS)
def test_a_bad_row_fails_the_load_in_bigquerys_words(
    client: bigquery.Client, table: str, bucket: Bucket, row: Row, said: str
) -> None:
    """The error names field, object and position; no other row gets in."""
    uri = bucket.put("bad.jsonl", ndjson({"date": DAYS[0], "n": 1}, row))

    summary, detail = error_of(client, table, uri)

    assert (
        "JSON table encountered too many errors, giving up. Rows: 2; errors: 1."
        in (summary["message"])
    )
    assert "JSON parsing error in row starting at position 31: " in detail["message"]
    assert said in detail["message"]
    assert detail["location"] == uri
    assert client.get_table(table).num_rows == 0


def test_what_a_load_accepts(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """Quoted numbers, names in other letter case, nine fraction digits, nothing for an array."""
    uri = bucket.put(
        "good.jsonl",
        ndjson(
            {
                "Date": DAYS[0],
                "N": "123",
                "RAW": {"Text": 1, "when": "2022-09-29T01:02:03.123456789Z", "items": None},
            }
        )
        + b"\n  \n",
    )
    job = load(client, table, uri)

    assert job.output_rows == 1
    (row,) = client.list_rows(table)
    assert row["n"] == 123
    when = datetime(2022, 9, 29, 1, 2, 3, 123_456, tzinfo=UTC)
    assert row["raw"] == {"text": "1", "when": when, "items": []}


def test_at_most_five_errors_are_reported(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """The rest is counted."""
    uri = bucket.put("bad.jsonl", ndjson(*({"x": i} for i in range(20))))
    errors = error_of(client, table, uri, max_bad_records=10)
    assert len(errors) == 5
    assert "Rows: 11; errors: 11." in errors[0]["message"]


def test_bad_records_up_to_the_allowed_number_are_left_out(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """The job succeeds and tells of them all the same."""
    rows = [{"n": 1}, {"n": "x"}, {"n": 3}]
    job = load(client, table, bucket.put("x.jsonl", ndjson(*rows)), max_bad_records=1)

    assert job.error_result is None
    assert len(job.errors) == 1
    assert (job.output_rows, job._properties["statistics"]["load"]["badRecords"]) == (2, "1")
    assert client.get_table(table).num_rows == 2


def test_unknown_fields_can_be_ignored(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """At every level."""
    uri = bucket.put("x.jsonl", ndjson({"n": 1, "x": 2, "raw": {"text": "a", "y": 3}}))
    load(client, table, uri, ignore_unknown_values=True)
    (row,) = client.list_rows(table)
    assert (row["n"], row["raw"]["text"]) == (1, "a")


def test_a_failed_replacement_leaves_the_old_rows(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """All or nothing, over several objects."""
    old = bucket.put("old.jsonl", ndjson({"date": DAYS[0], "n": 1}))
    replace(client, table, DAYS[0], old)
    good = bucket.put("good.jsonl", ndjson({"date": DAYS[0], "n": 2}))
    bad = bucket.put("bad.jsonl", ndjson({"date": DAYS[0], "n": "two"}))

    with pytest.raises(BadRequest):
        replace(client, table, DAYS[0], good, bad)

    assert numbers(client, table, DAYS[0]) == [1]


def test_one_wildcard_takes_what_fits_it(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """Prefix and suffix; a second star or a star in the bucket is refused."""
    for name in ("a/1.jsonl", "a/2.jsonl", "a/3.jsonl.txt", "b/4.jsonl"):
        bucket.put(name, ndjson({"date": DAYS[0], "n": int(name[2])}))

    load(client, table, f"{bucket.prefix}/a/*.jsonl")

    assert numbers(client, table, DAYS[0]) == [1, 2]
    for uri in (f"{bucket.prefix}/*/*", "gs://bun*/x"):
        assert "wildcard" in error_of(client, table, uri)[0]["message"]
    missing = error_of(client, table, f"{bucket.prefix}/c/*")
    assert missing[0]["reason"] == "notFound"


def test_many_objects_page_by_page(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """Every object of a listing is loaded once."""
    for number in range(60):
        bucket.put(f"{number}.jsonl", ndjson({"date": DAYS[0], "n": number}))
    job = load(client, table, f"{bucket.prefix}/*")
    assert job.input_files == 60
    assert numbers(client, table, DAYS[0]) == list(range(60))


def test_a_manifest_names_the_objects(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """A line for each, without wildcards; all of them must be there."""

    def read(kind: str, *lines: str) -> bigquery.LoadJob:
        manifest = bucket.put("list.txt", "".join(f"{line}\n" for line in lines).encode())
        load = {"sourceFormat": "NEWLINE_DELIMITED_JSON", "fileSetSpecType": kind}
        config = LoadJobConfig.from_api_repr({"load": load})
        job: bigquery.LoadJob = client.load_table_from_uri(manifest, table, job_config=config)
        return job.result()

    manifest = "FILE_SET_SPEC_TYPE_NEW_LINE_DELIMITED_MANIFEST"
    names = [bucket.put(f"{n}.jsonl", ndjson({"date": DAYS[0], "n": n})) for n in range(3)]

    assert read(manifest, names[0], names[2]).input_files == 2

    with pytest.raises(BadRequest, match=r"list\.txt.*is no URI of one object"):
        read(manifest, f"{bucket.prefix}/*.jsonl")
    with pytest.raises(NotFound):
        read(manifest, names[1], f"{bucket.prefix}/none")
    with pytest.raises(BadRequest, match="fileSetSpecType"):
        read("ALL", names[1])
    assert numbers(client, table, DAYS[0]) == [0, 2]


@pytest.mark.parametrize("name", ["missing.jsonl", "a//b.jsonl"])
def test_a_missing_object_is_not_found(
    client: bigquery.Client, table: str, bucket: Bucket, name: str
) -> None:
    """So is one with two slashes in its name, which BigQuery takes for one."""
    good = bucket.put("good.jsonl", ndjson({"date": DAYS[0], "n": 1}))
    if "//" in name:
        bucket.put(name, ndjson({"n": 1}))
    with pytest.raises(NotFound, match="Not found: URI gs://bundles/"):
        load(client, table, good, f"{bucket.prefix}/{name}")
    assert client.get_table(table).num_rows == 0


def test_gzip_is_known_by_content(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """Whatever the name; several members are one stream; a cut one is an error."""
    packed = gzip.compress(ndjson({"date": DAYS[0], "n": 1})) + gzip.compress(
        ndjson({"date": DAYS[0], "n": 2})
    )
    load(client, table, bucket.put("packed.jsonl", packed))
    load(client, table, bucket.put("plain.jsonl.gz", ndjson({"date": DAYS[0], "n": 3})))
    assert numbers(client, table, DAYS[0]) == [1, 2, 3]

    error_of(client, table, bucket.put("cut.gz", packed[:-5]))
    plain = bucket.put("plain", ndjson({"n": 1}))
    with pytest.raises(BadRequest, match="Compressed and uncompressed"):
        load(client, table, plain, bucket.put("packed", packed))
    assert client.get_table(table).num_rows == 3


def test_local_files_load_too(client: bigquery.Client, table: str, tmp_path: Path) -> None:
    """With `file:///`, or `file:/` as Java writes it, and a wildcard in the name."""
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_bytes(ndjson({"date": DAYS[0], "n": number}))
    load(client, table, (tmp_path / "*.jsonl").as_uri().replace("%2A", "*"))
    load(client, table, f"file:{tmp_path}/2.jsonl")
    assert numbers(client, table, DAYS[0]) == [1, 2, 2]
    with pytest.raises(NotFound):
        load(client, table, (tmp_path / "3.jsonl").as_uri())


def test_dispositions(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """Append adds, empty wants none, truncate replaces the whole table or one day."""
    uris = {day: bucket.put(day, ndjson({"date": day, "n": int(day[-2:])})) for day in DAYS}
    part = f"{table}$20220929"
    load(client, part, uris[DAYS[0]], write_disposition="WRITE_EMPTY")
    load(client, table, uris[DAYS[1]])
    load(client, part, uris[DAYS[0]], write_disposition="WRITE_APPEND")
    assert numbers(client, table, DAYS[0]) == [29, 29]

    with pytest.raises(Conflict, match="Already Exists: Table"):
        load(client, part, uris[DAYS[0]], write_disposition="WRITE_EMPTY")

    load(client, part, uris[DAYS[0]], write_disposition="WRITE_TRUNCATE_DATA")
    assert numbers(client, table, DAYS[0]) == [29]
    assert numbers(client, table, DAYS[1]) == [30]

    load(client, table, uris[DAYS[0]], write_disposition="WRITE_TRUNCATE")
    assert numbers(client, table, DAYS[1]) == []


def test_a_load_can_make_its_table(client: bigquery.Client, dataset: str, bucket: Bucket) -> None:
    """With the schema and the partitions that the job gives; not if it must not."""
    uri = bucket.put("x", ndjson({"date": DAYS[0], "n": 1}))
    name = f"proj.{dataset}.made"
    with pytest.raises(NotFound, match="Not found: Table"):
        load(client, name, uri, create_disposition="CREATE_NEVER", schema=FIELDS)
    with pytest.raises(BadRequest, match="No schema specified on job or table"):
        load(client, name, uri)
    by_day = bigquery.TimePartitioning(field="date")
    load(client, f"{name}$20220929", uri, schema=FIELDS, time_partitioning=by_day)

    made = client.get_table(name)
    assert (made.schema, made.time_partitioning.field) == (FIELDS, "date")
    assert numbers(client, name, DAYS[0]) == [1]


def test_a_load_adds_fields_only_if_told_to(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """ALLOW_FIELD_ADDITION, for an append or a partition; matched by name, at any level."""
    raw = SchemaField("raw", "RECORD", fields=[*FIELDS[2].fields, SchemaField("new", "INTEGER")])
    wider = [SchemaField("first", "STRING"), raw, FIELDS[1], FIELDS[0]]
    row = {"date": DAYS[0], "n": 1, "first": "x", "raw": {"new": 2}}
    uri = bucket.put("x", ndjson(row))
    with pytest.raises(BadRequest, match=r"Cannot add fields \(field: raw.new\)"):
        load(client, table, uri, schema=wider)
    with pytest.raises(BadRequest, match="Schema update options should only be specified"):
        load(
            client,
            table,
            uri,
            schema=wider,
            schema_update_options=["ALLOW_FIELD_ADDITION"],
            write_disposition="WRITE_TRUNCATE",
        )
    load(
        client,
        f"{table}$20220929",
        uri,
        schema=wider,
        schema_update_options=["ALLOW_FIELD_ADDITION"],
        write_disposition="WRITE_TRUNCATE",
    )

    names = [field.name for field in client.get_table(table).schema]
    assert names == ["date", "n", "raw", "first"]
    (found,) = client.list_rows(table)
    assert (found["first"], found["raw"]["new"]) == ("x", 2)


def test_a_load_does_not_change_types(client: bigquery.Client, table: str, bucket: Bucket) -> None:
    """Nor leaves a column out of its schema."""
    uri = bucket.put("x", ndjson({"n": 1}))
    said = "Provided Schema does not match Table .*Field n has changed type from INTEGER to STRING"
    with pytest.raises(BadRequest, match=said):
        load(client, table, uri, schema=[FIELDS[0], SchemaField("n", "STRING"), FIELDS[2]])
    with pytest.raises(BadRequest, match="Field raw is missing in new schema"):
        load(client, table, uri, schema=FIELDS[:2])


def test_a_load_of_a_whole_table_brings_its_own_schema(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """WRITE_TRUNCATE without a partition replaces the columns too."""
    schema = [SchemaField("date", "DATE"), SchemaField("other", "STRING")]
    uri = bucket.put("x", ndjson({"date": DAYS[0], "other": "x"}))
    load(client, table, uri, schema=schema, write_disposition="WRITE_TRUNCATE")
    assert client.get_table(table).schema == schema
    assert [row["other"] for row in client.list_rows(table)] == ["x"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"source_format": "AVRO"}, "Source format AVRO"),
        ({"source_format": "ORC"}, "Source format ORC"),
        ({"encoding": "ISO-8859-1"}, "Encoding ISO-8859-1"),
        ({"decimal_target_types": ["STRING"]}, "decimalTargetTypes of a load job"),
    ],
)
def test_what_a_load_cannot_do_is_said_at_once(
    client: bigquery.Client, table: str, options: dict[str, object], said: str
) -> None:
    """The request is refused; there is no job."""
    config = LoadJobConfig(**{"source_format": "NEWLINE_DELIMITED_JSON", **options})
    with pytest.raises(BadRequest, match=said):
        client.load_table_from_uri("gs://bundles/x", table, job_config=config)


def test_a_partition_of_no_day_is_refused(client: bigquery.Client, table: str) -> None:
    """`$2022` is a year."""
    config = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON")
    with pytest.raises(BadRequest, match="Partition decorator should be of the form YYYYMMDD"):
        client.load_table_from_uri("gs://bundles/x", f"{table}$2022", job_config=config)


def test_rows_can_come_with_the_request(client: bigquery.Client, table: str) -> None:
    """As JSON objects and as a file, small (multipart) and large (resumable)."""
    client.load_table_from_json([{"date": DAYS[0], "n": 1}], table).result()
    config = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON")
    packed = io.BytesIO(gzip.compress(ndjson({"date": DAYS[0], "n": 2})))
    client.load_table_from_file(packed, table, job_config=config).result()
    text = "x" * 1000
    many = ndjson(*({"date": DAYS[1], "n": i, "raw": {"text": text}} for i in range(6000)))
    job = client.load_table_from_file(
        io.BytesIO(many), table, size=len(many), job_config=config, rewind=True
    )
    job.result()

    assert len(many) > 5 * 2**20
    assert numbers(client, table, DAYS[0]) == [1, 2]
    assert (job.output_rows, len(numbers(client, table, DAYS[1]))) == (6000, 6000)


def test_an_upload_can_come_in_pieces(server: Server, client: bigquery.Client, table: str) -> None:
    """A piece that was sent twice counts once; the last one starts the job."""
    data = ndjson(*({"date": DAYS[0], "n": n} for n in range(1000)))
    config = {"load": {"sourceFormat": "NEWLINE_DELIMITED_JSON"}}
    project, dataset, name = table.split(".")
    config["load"]["destinationTable"] = {"datasetId": dataset, "tableId": name}
    body = json.dumps({"configuration": config}).encode()
    url = f"{server.url}/upload/bigquery/v2/projects/{project}/jobs?uploadType=resumable"

    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as reply:
        session = reply.headers["location"]

    def put(start: int, end: int) -> tuple[int, str | None, bytes]:
        piece = data[start:end]
        said = f"bytes {start}-{end - 1}/{len(data)}" if piece else f"bytes */{len(data)}"
        request = urllib.request.Request(session, piece, {"Content-Range": said}, method="PUT")
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, None, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers["range"], b""

    assert put(0, 1000)[:2] == (308, "bytes=0-999")
    assert put(0, 1000)[:2] == (308, "bytes=0-999")
    assert put(0, 0)[:2] == (308, "bytes=0-999")
    status, _, job = put(1000, len(data))
    assert status == 200
    reference = json.loads(job)["jobReference"]
    done = client.get_job(reference["jobId"], location=reference["location"]).result()
    assert done.output_rows == 1000
    assert numbers(client, table, DAYS[0]) == list(range(1000))


def test_a_load_keeps_to_the_layout_of_its_table(
    client: bigquery.Client, table: str, bucket: Bucket
) -> None:
    """Another partitioning or description than the table's fails the job."""
    uri = bucket.put("x", ndjson({"n": 1}))
    other = bigquery.TimePartitioning(field="other")
    with pytest.raises(BadRequest, match="Incompatible table partitioning specification"):
        load(client, table, uri, time_partitioning=other)
    with pytest.raises(BadRequest, match=r"The description of .* differs"):
        load(client, table, uri, destination_table_description="another")
    load(client, table, uri, time_partitioning=bigquery.TimePartitioning(field="date"))
    assert client.get_table(table).num_rows == 1


def test_insert_all_inserts_all_or_none(client: bigquery.Client, table: str) -> None:
    """Rows are judged as in a load; a bad one is told with its place."""
    assert client.insert_rows_json(table, [{"date": DAYS[0], "n": 1}]) == []
    (error,) = client.insert_rows_json(table, [{"n": 2}, {"nn": 3}])
    assert (error["index"], error["errors"][0]["message"]) == (1, "No such field: nn.")
    assert client.get_table(table).num_rows == 1


EVERY_TYPE: list[tuple[str, str, object, object]] = [
    ("s", "STRING", "é\u0000\u2028\"'\\", "é\u0000\u2028\"'\\"),
    ("y", "BYTES", "AP9c", b"\x00\xff\\"),
    ("i", "INTEGER", "-9223372036854775808", -(2**63)),
    ("f", "FLOAT", 1e300, 1e300),
    ("nan", "FLOAT", "-Infinity", float("-inf")),
    ("u", "NUMERIC", f"{'9' * 29}.999999999", Decimal(f"{'9' * 29}.999999999")),
    ("b", "BIGNUMERIC", "0.000000000000000001", Decimal("0.000000000000000001")),
    ("o", "BOOLEAN", "yes", True),
    ("t", "TIMESTAMP", "0001-01-01 00:00:00", datetime(1, 1, 1, tzinfo=UTC)),
    (
        "tz",
        "TIMESTAMP",
        "2022/09/29 12:34:56.000001+02:00",
        datetime(2022, 9, 29, 10, 34, 56, 1, tzinfo=UTC),
    ),
    ("d", "DATE", "9999-12-31", date(9999, 12, 31)),
    ("m", "TIME", "23:59:59.999999", time(23, 59, 59, 999_999)),
    ("e", "DATETIME", "2022-09-29T12:34:56", datetime(2022, 9, 29, 12, 34, 56)),  # noqa: DTZ001
    ("j", "JSON", {"a": [1, 2.5, None], "b": "x"}, {"a": [1, 2.5, None], "b": "x"}),
]


def test_every_type_comes_back_as_its_python_type(client: bigquery.Client, dataset: str) -> None:
    """Through tabledata.list and through a query; alone, in an array, and in a nested record."""
    inner = [SchemaField(name, kind) for name, kind, _, _ in EVERY_TYPE]
    arrays = [SchemaField(f"{name}s", kind, "REPEATED") for name, kind, _, _ in EVERY_TYPE]
    schema = [*inner, *arrays, SchemaField("r", "RECORD", "REPEATED", fields=inner)]
    client.create_table(bigquery.Table(f"proj.{dataset}.t", schema=schema))
    written = {name: value for name, _, value, _ in EVERY_TYPE}
    lists = {f"{name}s": [value, value] for name, _, value, _ in EVERY_TYPE}
    client.load_table_from_json([{**written, **lists, "r": [written]}, {}], f"{dataset}.t").result()

    expected = {name: value for name, _, _, value in EVERY_TYPE}
    for rows in (
        list(client.list_rows(f"{dataset}.t")),
        list(client.query_and_wait(f"SELECT * FROM {dataset}.t ORDER BY s DESC")),
    ):
        full, empty = (dict(row) for row in rows)
        assert full["r"] == [expected]
        assert {name: full[name] for name in expected} == expected
        assert {name: full[f"{name}s"] for name in expected} == {
            name: [value, value] for name, value in expected.items()
        }
        assert set(map(str, empty.values())) == {"None", "[]"}
    (nothing,) = client.query_and_wait("SELECT CAST('NaN' AS FLOAT64) AS x")
    assert nothing.x != nothing.x


def test_jobs_with_long_ids_alike_do_not_meet(tmp_path: Path) -> None:
    """Two loads whose ids differ after the 300th character, both judged before either lands."""
    store = Store(tmp_path / "data")
    with store.writing() as cursor:
        make_dataset(cursor, DatasetRef("proj", "ds"), {})
    effects = []
    for name in ("one", "two"):
        rows = tmp_path / name
        rows.write_text(json.dumps({"text": name}))
        config = {
            "destinationTable": {"projectId": "proj", "datasetId": "ds", "tableId": name},
            "sourceUris": [rows.as_uri()],
            "sourceFormat": "NEWLINE_DELIMITED_JSON",
            "schema": {"fields": [{"name": "text", "type": "STRING"}]},
        }
        ref = JobRef("proj", "US", "a" * 300 + name)
        effects.append(Loads(store).run(Job(ref=ref, kind="load", config={"load": config})))
    for name, effect in zip(("one", "two"), effects, strict=True):
        with store.writing() as cursor:
            effect(cursor)
            table = find_table(cursor, TableRef("proj", "ds", name))
            assert cursor.execute(f"SELECT text FROM {table.storage}").fetchall() == [(name,)]
    store.close()
