"""Load jobs of CSV and Parquet, and schema detection, as BigQuery documents them."""

from __future__ import annotations

import io
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.api_core.exceptions import BadRequest, GoogleAPICallError
from google.cloud.bigquery import LoadJob, LoadJobConfig, ParquetOptions, SchemaField

if TYPE_CHECKING:
    from google.cloud import bigquery

    from tests.embedded.conftest import Server

PLACE = [SchemaField("n", "INTEGER"), SchemaField("s", "STRING"), SchemaField("d", "DATE")]


def start(client: bigquery.Client, table: str, data: bytes, **options: object) -> LoadJob:
    config = LoadJobConfig(**{"source_format": "CSV", **options})
    return client.load_table_from_file(io.BytesIO(data), table, job_config=config)


def load(client: bigquery.Client, table: str, data: bytes, **options: object) -> None:
    start(client, table, data, **options).result()


def rows(client: bigquery.Client, table: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in client.list_rows(client.get_table(table))]


def columns(client: bigquery.Client, table: str) -> list[tuple[str, str]]:
    return [(field.name, field.field_type) for field in client.get_table(table).schema]


def test_csv_loads_by_position(client: bigquery.Client, dataset: str) -> None:
    """An empty value is NULL, a quoted one is a text; doubled marks are one mark."""
    data = b'n,s,d\r\n1,"a ""b"", c",2022-09-29\r\n\r\n,"",\r\n3,,2022-09-30\n'

    load(client, f"{dataset}.t", data, schema=PLACE, skip_leading_rows=1)

    found = rows(client, f"{dataset}.t")
    assert found == [
        (1, 'a "b", c', date(2022, 9, 29)),
        (None, "", None),
        (3, None, date(2022, 9, 30)),
    ]


def test_integers_of_a_job_come_back_as_integers(client: bigquery.Client, dataset: str) -> None:
    """The Python client sends some as strings, and the Go client cannot read those."""
    job = start(client, f"{dataset}.t", b"n\n1\n", autodetect=True, skip_leading_rows=1)

    assert job._properties["configuration"]["load"]["skipLeadingRows"] == 1


def test_csv_options(client: bigquery.Client, dataset: str) -> None:
    """Delimiter, quote, null marker, short rows and line ends inside of quotes are the job's."""
    data = b"1|'a\nb'|2022-09-29\n\\N|\\N\n"

    load(
        client, f"{dataset}.t", data, schema=PLACE, field_delimiter="|", quote_character="'",
        null_marker="\\N", allow_jagged_rows=True, allow_quoted_newlines=True,
    )  # fmt: skip

    assert rows(client, f"{dataset}.t") == [(1, "a\nb", date(2022, 9, 29)), (None, None, None)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"x,a,2022-09-29", "Could not convert value"),
        (b"1,a", "but line contains only 2 columns"),
        (b"1,a,2022-09-29,9", "Too many values"),
        (b'1,"a,2022-09-29', "Missing close quote character"),
        (b'1,"a"b,2022-09-29', "Data between close quote character"),
        (b"1,a,29.9.2022", "to date"),
    ],
)
def test_a_bad_csv_row_fails_the_load(
    client: bigquery.Client, dataset: str, line: bytes, message: str
) -> None:
    """Each malformed row is told in BigQuery's words, with its position."""
    job = start(client, f"{dataset}.t", b"1,a,2022-09-29\n" + line, schema=PLACE)
    with pytest.raises(GoogleAPICallError, match="CSV table encountered too many errors"):
        job.result()

    told = job.errors[1]["message"]
    assert "CSV parsing error in row starting at position 15: " in told
    assert message in told


def test_csv_has_no_records(client: bigquery.Client, dataset: str) -> None:
    """A nested or repeated column cannot come from CSV."""
    with pytest.raises(BadRequest, match="CSV holds no arrays"):
        load(client, f"{dataset}.t", b"1\n", schema=[SchemaField("a", "INTEGER", "REPEATED")])


def test_csv_schema_is_detected(client: bigquery.Client, dataset: str) -> None:
    """Names come from a header that differs in type; the delimiter is found."""
    data = (
        b"an id|name|ok|f|day|at|t\n"
        b"1|x|true|1|2022-09-29|2022-09-29 10:00:00Z|10:00:00\n2|y|false|1.5|2022-09-30||\n"
    )

    load(client, f"{dataset}.t", data, autodetect=True)

    assert columns(client, f"{dataset}.t") == [
        ("an_id", "INTEGER"), ("name", "STRING"), ("ok", "BOOLEAN"), ("f", "FLOAT"),
        ("day", "DATE"), ("at", "TIMESTAMP"), ("t", "TIME"),
    ]  # fmt: skip
    assert rows(client, f"{dataset}.t")[0] == (
        1, "x", True, 1.0, date(2022, 9, 29), datetime(2022, 9, 29, 10, tzinfo=UTC), time(10),
    )  # fmt: skip


def test_csv_of_strings_alone_has_no_header(client: bigquery.Client, dataset: str) -> None:
    """Where all rows are text, the first one is data and columns get generic names."""
    load(client, f"{dataset}.t", b"a,b\nc,d\n", autodetect=True)

    assert columns(client, f"{dataset}.t") == [
        ("string_field_0", "STRING"),
        ("string_field_1", "STRING"),
    ]
    assert len(rows(client, f"{dataset}.t")) == 2


def test_a_detected_header_finds_columns_of_the_table(
    client: bigquery.Client, dataset: str
) -> None:
    """With a table that exists, a header's names say which value is whose."""
    load(client, f"{dataset}.t", b"1,a,2022-09-29\n", schema=PLACE)

    load(client, f"{dataset}.t", b"d,n\n2022-09-30,2\n", autodetect=True)

    assert rows(client, f"{dataset}.t")[1] == (2, None, date(2022, 9, 30))


def test_json_schema_is_detected(client: bigquery.Client, dataset: str) -> None:
    """Objects are records, arrays are repeated, and strings become what they can."""
    data = (
        b'{"id": "12", "x": 1, "at": "2022-09-29T10:00:00Z", "in": {"a": [1, 2]}, "none": null}\n'
        b'{"id": "13", "x": 1.5, "more": [{"k": "v"}]}\n'
    )

    load(client, f"{dataset}.t", data, autodetect=True, source_format="NEWLINE_DELIMITED_JSON")

    schema = {field.name: field for field in client.get_table(f"{dataset}.t").schema}
    assert {name: field.field_type for name, field in schema.items()} == {
        "id": "INTEGER", "x": "FLOAT", "at": "TIMESTAMP", "in": "RECORD", "none": "STRING",
        "more": "RECORD",
    }  # fmt: skip
    assert (schema["in"].fields[0].mode, schema["more"].mode) == ("REPEATED", "REPEATED")
    assert rows(client, f"{dataset}.t")[0][3] == {"a": [1, 2]}


def test_a_date_that_only_bigquery_reads_is_refused(client: bigquery.Client, dataset: str) -> None:
    """A date in American order is no STRING to BigQuery, so nothing is detected."""
    with pytest.raises(GoogleAPICallError, match="Schema detection of the date '9/29/2022'"):
        load(client, f"{dataset}.t", b"a,b\n1,9/29/2022\n", autodetect=True)


def parquet(**values: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(values), out)
    return out.getvalue()


def test_parquet_brings_its_types(client: bigquery.Client, dataset: str) -> None:
    """Each Parquet type has its BigQuery type; instants without a zone are DATETIMEs."""
    at = datetime(2022, 9, 29, 10, 0, 0, 5)  # noqa: DTZ001
    data = parquet(
        i=[1, None],
        f=[1.5, float("nan")],
        s=["ä", ""],
        b=[b"\x00\xff", None],
        o=[True, False],
        d=[date(2022, 9, 29), None],
        t=pa.array([at.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
        w=pa.array([at, None], pa.timestamp("us")),
        c=pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
        r=[{"a": 1}, {"a": 2}],
        e=[[1, 2], []],
    )

    options = ParquetOptions()
    options.enable_list_inference = True
    load(client, f"{dataset}.t", data, source_format="PARQUET", parquet_options=options)

    assert [kind for _, kind in columns(client, f"{dataset}.t")] == [
        "INTEGER", "FLOAT", "STRING", "BYTES", "BOOLEAN", "DATE", "TIMESTAMP", "DATETIME",
        "NUMERIC", "RECORD", "INTEGER",
    ]  # fmt: skip
    first, second = rows(client, f"{dataset}.t")
    assert first == (
        1, 1.5, "ä", b"\x00\xff", True, date(2022, 9, 29), at.replace(tzinfo=UTC), at,
        Decimal("1.5"), {"a": 1}, [1, 2],
    )  # fmt: skip
    assert str(second[1]) == "nan"


def test_parquet_of_another_type_is_refused(client: bigquery.Client, dataset: str) -> None:
    """A file does not change the types of a table, and no text becomes a number."""
    load(client, f"{dataset}.t", b"1,a,2022-09-29\n", schema=PLACE)

    with pytest.raises(GoogleAPICallError, match="Field n has changed type from INTEGER to STRING"):
        load(client, f"{dataset}.t", parquet(n=["1"]), source_format="PARQUET")
    with pytest.raises(GoogleAPICallError, match=r"without parquetOptions\.enableListInference"):
        load(client, f"{dataset}.t2", parquet(n=[[1]]), source_format="PARQUET")
    with pytest.raises(GoogleAPICallError, match="Error while reading data"):
        load(client, f"{dataset}.t3", b"no Parquet at all", source_format="PARQUET")


def test_other_formats_are_refused_by_name(server: Server, dataset: str) -> None:
    """Avro and ORC are not read here."""
    with pytest.raises(BadRequest, match="Source format AVRO"):
        load(server.client(), f"{dataset}.t", b"", source_format="AVRO")


def test_a_client_may_put_tables_beside_its_results(client: bigquery.Client) -> None:
    """The hidden dataset of results takes loads, and its tables can be read and queried."""
    job = client.query("SELECT 1 AS n")
    job.result()
    place = job.destination
    table = f"proj.{place.dataset_id}.mine_{uuid.uuid4().hex}"

    load(client, table, b"1,a,2022-09-29\n", schema=PLACE)

    assert rows(client, table) == [(1, "a", date(2022, 9, 29))]
    assert [row.n for row in client.query_and_wait(f"SELECT n FROM `{table}`")] == [1]
    assert place.dataset_id not in {found.dataset_id for found in client.list_datasets()}


def test_parameters_come_back_as_text(client: bigquery.Client) -> None:
    """A job's resource has each parameter's value in text, whatever the client sent."""
    value = {"parameterType": {"type": "INT64"}, "parameterValue": {"value": 7}, "name": "x"}
    sent = {"query": "SELECT @x AS x", "useLegacySql": False, "queryParameters": [value]}
    answer = client._connection.api_request(
        "POST", "/projects/proj/queries", data={**sent, "parameterMode": "NAMED"}
    )

    job = client.get_job(answer["jobReference"]["jobId"]).to_api_repr()

    given = job["configuration"]["query"]["queryParameters"][0]
    assert given["parameterValue"]["value"] == "7"
