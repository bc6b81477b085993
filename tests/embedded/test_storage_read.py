"""The Storage Read API over gRPC, through its official client."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

import grpc
import pytest
from google.api_core.exceptions import InvalidArgument, NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery
from google.cloud import bigquery_storage_v1 as storage

from embedded import EmbeddedBigQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

# The client wants pandas-gbq to make rows of its answers.
pytestmark = pytest.mark.filterwarnings("ignore:Retrieving:PendingDeprecationWarning")

TABLE = "projects/proj/datasets/ds/tables/t"
ROWS = """
SELECT 1 AS i, 1.5 AS f, 'ä' AS s, b'x' AS b, TRUE AS o, DATE '2022-09-29' AS d,
  TIMESTAMP '2022-09-29 10:00:00Z' AS t, DATETIME '2022-09-29 10:00:00' AS w, TIME '10:00:00' AS h,
  NUMERIC '1.5' AS c, JSON '{"a":1}' AS j, STRUCT(1 AS a, [STRUCT('k' AS k)] AS e) AS r, [1, 2] AS l
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBigQuery]:
    with EmbeddedBigQuery(tmp_path_factory.mktemp("bq"), storage_port=0) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: EmbeddedBigQuery) -> bigquery.Client:
    options = {"api_endpoint": server.url}
    client = bigquery.Client("proj", AnonymousCredentials(), client_options=options)
    client.create_dataset("ds")
    client.query_and_wait(f"CREATE TABLE ds.t AS {ROWS}")
    client.query_and_wait("CREATE TABLE ds.n AS SELECT n FROM UNNEST(GENERATE_ARRAY(1, 5)) AS n")
    client.query_and_wait("CREATE TABLE ds.none (n INT64)")
    return client


@pytest.fixture(scope="module")
def reader(server: EmbeddedBigQuery, client: bigquery.Client) -> storage.BigQueryReadClient:
    assert client.project == "proj"
    channel = grpc.insecure_channel(server.storage_address)
    kind = storage.BigQueryReadClient.get_transport_class("grpc")
    return storage.BigQueryReadClient(transport=kind(channel=channel))


def session(table: str, **options: object) -> dict[str, object]:
    return {"table": table, "data_format": "ARROW", "read_options": options}


def test_every_type_is_read_in_arrow(
    client: bigquery.Client, reader: storage.BigQueryReadClient
) -> None:
    """A frame's rows over gRPC are those over REST."""
    rows = client.list_rows("ds.t")
    found = rows.to_arrow(bqstorage_client=reader).to_pylist()
    at = datetime(2022, 9, 29, 10, tzinfo=UTC)
    assert found == [
        {
            "i": 1, "f": 1.5, "s": "ä", "b": b"x", "o": True, "d": date(2022, 9, 29), "t": at,
            "w": at.replace(tzinfo=None), "h": time(10), "c": Decimal("1.5"), "j": '{"a":1}',
            "r": {"a": 1, "e": [{"k": "k"}]}, "l": [1, 2],
        }
    ]  # fmt: skip


def test_streams_hold_each_row_once(reader: storage.BigQueryReadClient) -> None:
    """Rows are split between the streams; an offset goes on where a reader stopped."""
    made = reader.create_read_session(
        parent="projects/proj",
        read_session=session(TABLE.removesuffix("t") + "n"),
        max_stream_count=2,
    )
    read = [[row["n"].as_py() for row in reader.read_rows(s.name).rows(made)] for s in made.streams]
    assert sorted([*read[0], *read[1]]) == [1, 2, 3, 4, 5]
    again = [
        row["n"].as_py() for row in reader.read_rows(made.streams[0].name, offset=1).rows(made)
    ]
    assert again == read[0][1:]


def test_columns_and_rows_can_be_chosen(reader: storage.BigQueryReadClient) -> None:
    """Selected fields and a row restriction are BigQuery's."""
    table = TABLE.removesuffix("t") + "n"
    wanted = session(table, selected_fields=["n"], row_restriction="n > 3 AND MOD(n, 2) = 0")
    made = reader.create_read_session(parent="projects/proj", read_session=wanted)
    assert [row["n"].as_py() for row in reader.read_rows(made.streams[0].name).rows(made)] == [4]


def test_a_querys_result_is_read(
    client: bigquery.Client, reader: storage.BigQueryReadClient
) -> None:
    """The destination of a query job is a table to the API."""
    frame = client.query("SELECT n * 2 AS m FROM ds.n ORDER BY n").to_arrow(bqstorage_client=reader)
    assert sorted(frame["m"].to_pylist()) == [2, 4, 6, 8, 10]


def test_an_empty_table_has_no_stream(reader: storage.BigQueryReadClient) -> None:
    """Nothing to read is no error."""
    table = TABLE.removesuffix("t") + "none"
    made = reader.create_read_session(parent="projects/proj", read_session=session(table))
    assert not made.streams


def test_a_partition_filter_is_required_here_too(
    client: bigquery.Client, reader: storage.BigQueryReadClient
) -> None:
    """Conditions in parentheses, as Spark's connector writes them, are filters."""
    wants = "PARTITION BY d OPTIONS (require_partition_filter = TRUE)"
    client.query_and_wait(f"CREATE TABLE ds.p {wants} AS SELECT 1 AS n, DATE '2026-01-02' AS d")
    table = TABLE.removesuffix("t") + "p"

    with pytest.raises(InvalidArgument, match="without a filter"):
        reader.create_read_session(parent="projects/proj", read_session=session(table))
    where = "(`d` = DATE '2026-01-02') AND (`d` IS NOT NULL) AND (`n` IN (1, 2))"
    wanted = session(table, row_restriction=where)
    made = reader.create_read_session(parent="projects/proj", read_session=wanted)
    assert made.estimated_row_count == 1


def test_what_cannot_be_read_is_refused(reader: storage.BigQueryReadClient) -> None:
    """Avro, unknown fields and tables that are not there."""
    for asked, error in (
        ({"table": TABLE, "data_format": "AVRO"}, InvalidArgument),
        (session(TABLE, selected_fields=["x"]), InvalidArgument),
        (session(TABLE + "x"), NotFound),
    ):
        with pytest.raises(error):
            reader.create_read_session(parent="projects/proj", read_session=asked)
