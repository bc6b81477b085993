"""Jobs and their ids, and the faults that a client must live with."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.exceptions import (
    BadRequest,
    Conflict,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    ServiceUnavailable,
)
from google.api_core.retry import Retry
from google.cloud import bigquery
from google.cloud.bigquery import LoadJobConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.embedded.conftest import Server

CONFIG = LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON")
QUICKLY = Retry(predicate=lambda exc: isinstance(exc, ServiceUnavailable), initial=0.01, timeout=60)


@pytest.fixture
def table(client: bigquery.Client, dataset: str) -> str:
    name = f"proj.{dataset}.t"
    client.create_table(bigquery.Table(name, schema=[bigquery.SchemaField("n", "INTEGER")]))
    return name


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1}\n{"n": 2}\n')
    return path.as_uri()


@pytest.fixture
def faults(server: Server) -> Iterator[Faults]:
    faults = Faults(server.url)
    yield faults
    faults.call("DELETE")


class Faults:
    """The `/_faults` of the server."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/_faults"

    def call(self, method: str, body: dict[str, object] | None = None) -> dict[str, Any]:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self._url, data, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.loads(reply.read() or b"{}")

    def ask(self, **body: object) -> None:
        self.call("POST", body)


def new_id() -> str:
    return f"job-{uuid.uuid4().hex}"


def test_a_job_id_is_used_once(client: bigquery.Client, table: str, uri: str) -> None:
    """The second submission is a conflict, and there is one load."""
    name = new_id()
    client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name).result()
    with pytest.raises(Conflict, match=f"Already Exists: Job proj:US.{name}"):
        client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name)

    job = client.get_job(name, location="US")
    assert (job.state, job.output_rows, job.job_type) == ("DONE", 2, "load")
    assert client.get_table(table).num_rows == 2


def test_a_failed_job_burns_its_id(client: bigquery.Client, table: str) -> None:
    """As with BigQuery, a retry needs another id."""
    name = new_id()
    job = client.load_table_from_uri("file:///missing", table, job_config=CONFIG, job_id=name)
    with pytest.raises(NotFound):
        job.result()
    with pytest.raises(Conflict):
        client.load_table_from_uri("file:///missing", table, job_config=CONFIG, job_id=name)
    assert client.get_job(name).error_result["reason"] == "notFound"


def test_a_job_is_looked_up_in_its_location(client: bigquery.Client, uri: str) -> None:
    """It belongs where its dataset is; elsewhere it is not found."""
    dataset = bigquery.Dataset(f"proj.eu_{uuid.uuid4().hex[:8]}")
    dataset.location = "EU"
    client.create_dataset(dataset)
    table = f"proj.{dataset.dataset_id}.t"
    client.create_table(bigquery.Table(table, schema=[bigquery.SchemaField("n", "INTEGER")]))
    name = new_id()
    job = client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name)
    job.result()

    assert job.location == "EU"
    assert client.get_job(name, location="EU").state == "DONE"
    with pytest.raises(NotFound, match="Not found: Job proj:US"):
        client.get_job(name, location="US")
    with pytest.raises(NotFound):
        client.load_table_from_uri(uri, table, job_config=CONFIG, location="US")


def test_a_load_into_no_dataset_is_refused_at_once(client: bigquery.Client, uri: str) -> None:
    """There is no job, and the id is free."""
    name = new_id()
    with pytest.raises(NotFound, match="Not found: Dataset proj:nowhere"):
        client.load_table_from_uri(uri, "proj.nowhere.t", job_config=CONFIG, job_id=name)
    with pytest.raises(NotFound, match="Not found: Job"):
        client.get_job(name)


@pytest.mark.parametrize("name", ["with space", "dot.ted", "é"])
def test_a_job_id_has_plain_letters(
    client: bigquery.Client, table: str, uri: str, name: str
) -> None:
    """Letters, digits, underscores and dashes."""
    with pytest.raises(BadRequest, match="Invalid job ID"):
        client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name)


def test_jobs_are_listed_newest_first(client: bigquery.Client, table: str, uri: str) -> None:
    """In pages, with their state."""
    names = [new_id() for _ in range(3)]
    for name in names:
        client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name).result()

    listed = list(client.list_jobs(max_results=3, page_size=2, state_filter="done"))

    assert [job.job_id for job in listed] == names[::-1]


def test_a_running_job_can_be_cancelled(
    client: bigquery.Client, table: str, uri: str, faults: Faults
) -> None:
    """It ends stopped, without its rows."""
    name = new_id()
    faults.ask(fault="job_slow", job=name, seconds=60)
    job = client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name)
    assert client.get_job(name).state == "RUNNING"

    assert job.cancel()
    with pytest.raises(GoogleAPICallError):
        job.result()

    assert job.error_result["reason"] == "stopped"
    assert client.get_table(table).num_rows == 0


def test_a_slow_job_goes_on_when_the_faults_are_forgotten(
    client: bigquery.Client, table: str, uri: str, faults: Faults
) -> None:
    """So a test holds a job up until it has seen what it wants, however long that takes."""
    name = new_id()
    faults.ask(fault="job_slow", job=name, seconds=600)
    job = client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name)
    assert client.get_job(name).state == "RUNNING"

    faults.call("DELETE")

    assert job.result().output_rows == 2


def test_unavailable_before_the_work(
    client: bigquery.Client, table: str, uri: str, faults: Faults
) -> None:
    """The client's retry gets through; there is one load."""
    faults.ask(fault="unavailable_before", method="POST", path="/jobs", times=2)
    client.load_table_from_uri(uri, table, job_config=CONFIG, retry=QUICKLY).result()
    assert client.get_table(table).num_rows == 2
    assert faults.call("GET") == {"faults": []}


def test_unavailable_after_the_work(
    client: bigquery.Client, table: str, uri: str, faults: Faults
) -> None:
    """The client's retry meets its own job, which it then waits for."""
    name = new_id()
    faults.ask(fault="unavailable_after", method="POST", path="/jobs")
    with pytest.raises(Conflict):
        client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name, retry=QUICKLY)

    assert client.get_job(name, location="US").result().output_rows == 2
    assert client.get_table(table).num_rows == 2


def test_a_statement_whose_reply_is_lost_is_carried_out_once(
    client: bigquery.Client, table: str, faults: Faults
) -> None:
    """The client repeats it under the same requestId, and gets the first one's result."""
    faults.ask(fault="unavailable_after", method="POST", path="/queries")
    sql = f"INSERT INTO `{table}` (n) VALUES (7)"
    client.query_and_wait(sql, retry=QUICKLY)
    assert client.get_table(table).num_rows == 1
    assert faults.call("GET") == {"faults": []}


def test_quota_errors(client: bigquery.Client, table: str, uri: str, faults: Faults) -> None:
    """403, with the reason that tells the two apart."""
    reasons = []
    for fault in ("rate_limited", "quota_exceeded"):
        faults.ask(fault=fault, path="/jobs")
        with pytest.raises(Forbidden) as caught:
            client.load_table_from_uri(uri, table, job_config=CONFIG, retry=None)
        reasons.append(caught.value.errors[0]["reason"])
    assert reasons == ["rateLimitExceeded", "quotaExceeded"]


def test_a_job_that_ends_in_error(
    client: bigquery.Client, table: str, uri: str, faults: Faults
) -> None:
    """Nothing is loaded, and a new id loads."""
    name = new_id()
    faults.ask(fault="job_error", job=name, reason="backendError")
    with pytest.raises(GoogleAPICallError, match="backendError"):
        client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=name).result()
    assert client.get_table(table).num_rows == 0

    client.load_table_from_uri(uri, table, job_config=CONFIG, job_id=f"{name}-2").result()
    assert client.get_table(table).num_rows == 2


def test_slowness_ends(client: bigquery.Client, faults: Faults) -> None:
    """A slow reply comes all the same."""
    faults.ask(fault="slow", path="/datasets", seconds=0.05)
    faults.ask(fault="slow_after", path="/datasets", seconds=0.05)
    for _ in range(2):
        assert list(client.list_datasets(max_results=1)) is not None
    assert faults.call("GET") == {"faults": []}


def test_an_unknown_fault_is_refused(faults: Faults) -> None:
    """A test that misspells one must not pass."""
    with pytest.raises(urllib.error.HTTPError, match="400"):
        faults.ask(fault="unavailible")


def test_what_is_not_served_is_said(client: bigquery.Client) -> None:
    """A method of the API that is not here is a 404 that names it; other jobs are refused."""
    with pytest.raises(NotFound, match="routines of the embedded BigQuery"):
        list(client.list_routines("ds"))
    with pytest.raises(BadRequest, match="An extract job is not supported"):
        client.extract_table("proj.a.b", "gs://bundles/x")
