"""The loader's client for BigQuery: datasets, tables, load jobs and queries.

**Invariant:** a load job's id is inserted at most once; if a job with the id exists, that job is
returned instead.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, BinaryIO

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.auth.credentials import AnonymousCredentials
from google.cloud.exceptions import GoogleCloudError
from requests.exceptions import RequestException

from jostler.schema import fields_to_api
from jostler.storage.causes import cause
from loader.bigquery.library import DEFAULT_JOB_RETRY, DEFAULT_RETRY, bigquery
from loader.bigquery.polling import GROWTH, MOST_S, Polling
from loader.errors import RunError, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from jostler.format.bigquery_names import TableName
    from jostler.schema import Fields

Json = dict[str, Any]
TIMEOUT_S = 60.0
POOL = 64
_REQUEST_RE = re.compile(r"^(?:\d{3} )?[A-Z]+ \S+: ")
_RESUMABLE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A load job that has ended.

    Attributes:
        id: the job's id within its project and location.
        labels: the labels with which it was submitted.
        rows: how many rows it wrote.
        reason: BigQuery's reason of its failure; empty if it succeeded.
        errors: BigQuery's list of errors.
        uris: the objects that it loaded; for a job with a manifest, the manifest.
    """

    id: str
    labels: dict[str, str]
    rows: int
    reason: str
    errors: tuple[Json, ...]
    uris: tuple[str, ...] = ()


class Warehouse:
    """One project of BigQuery; its methods may be called from several threads at once.

    Args:
        project: the project of the load jobs.
        location: the location of datasets and jobs.
        patience_s: how long a failing request is retried.

    Raises:
        RunError: there are no credentials.
    """

    def __init__(self, project: str, location: str, patience_s: float) -> None:
        self.project = project
        self.location = location
        self._retry = DEFAULT_RETRY.with_timeout(patience_s)
        self._job_retry = DEFAULT_JOB_RETRY.with_timeout(patience_s)
        self._polling = Polling()
        self._how: Json = {"retry": self._retry, "timeout": TIMEOUT_S}
        emulated = bool(os.environ.get("BIGQUERY_EMULATOR_HOST"))
        try:
            self._client = bigquery.Client(
                project=project,
                location=location,
                credentials=AnonymousCredentials() if emulated else None,
            )
        except auth.GoogleAuthError as exc:
            hint = "set up Workload Identity or GOOGLE_APPLICATION_CREDENTIALS"
            raise RunError(f"BigQuery: {exc}", hint=hint) from exc
        self._widen_pool()

    def _widen_pool(self) -> None:
        """Allow one connection per loading thread; requests keeps only ten by default."""
        from requests.adapters import HTTPAdapter  # noqa: PLC0415 - one line's need

        for scheme in ("https://", "http://"):
            self._client._http.mount(scheme, HTTPAdapter(pool_maxsize=POOL))  # noqa: SLF001 - as above

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def make_dataset(self, project: str, dataset: str, description: str) -> None:
        """Create a dataset if it does not exist."""
        resource = bigquery.Dataset(f"{project}.{dataset}")
        resource.location = self.location
        resource.description = description
        with _translated(f"dataset {project}.{dataset}"):
            try:
                self._client.get_dataset(resource.reference, **self._how)
            except api.NotFound:
                self._client.create_dataset(resource, exists_ok=True, **self._how)

    def get_dataset(self, project: str, dataset: str) -> bigquery.Dataset | None:
        """Return a dataset as the service describes it; None if it does not exist."""
        with _translated(f"dataset {project}.{dataset}"):
            try:
                return self._client.get_dataset(f"{project}.{dataset}", **self._how)
            except api.NotFound:
                return None

    def change_dataset(self, dataset: bigquery.Dataset, properties: Json) -> bool:
        """Change some properties; return False if another client changed the dataset meanwhile."""
        changed = bigquery.Dataset.from_api_repr({**dataset.to_api_repr(), **properties})
        attributes = [_ATTRIBUTES[key] for key in properties]
        with _translated(f"dataset {dataset.project}.{dataset.dataset_id}"):
            try:
                self._client.update_dataset(changed, attributes, **self._how)
            except api.PreconditionFailed:  # as in `change_table`
                return False
        return True

    def get_table(self, name: TableName) -> bigquery.Table | None:
        """Return a table or view as the service describes it; None if it does not exist."""
        with _translated(f"table {name}"):
            try:
                return self._client.get_table(str(name), **self._how)
            except api.NotFound:
                return None

    def create_table(self, name: TableName, properties: Json) -> bigquery.Table:
        """Create a table or view; if it exists by now, return it unchanged."""
        reference = {"projectId": name.project, "datasetId": name.dataset, "tableId": name.table}
        table = bigquery.Table.from_api_repr({"tableReference": reference, **properties})
        with _translated(f"table {name}"):
            self._client.create_table(table, exists_ok=True, **self._how)
            return self._client.get_table(str(name), **self._how)

    def delete_table(self, name: TableName) -> None:
        """Delete a table; do nothing if it does not exist."""
        with _translated(f"table {name}"):
            self._client.delete_table(str(name), not_found_ok=True, **self._how)

    def change_table(self, table: bigquery.Table, properties: Json) -> bigquery.Table | None:
        """Change some properties; return None if another client changed the table meanwhile."""
        resource = {**table.to_api_repr(), **properties}
        changed = bigquery.Table.from_api_repr(resource)
        attributes = [_ATTRIBUTES[key] for key in properties]
        with _translated(f"table {table.reference}"):
            try:
                # The client sends the table's ETag in If-Match, so a change that another client
                # made since the table was read gives a 412.
                return self._client.update_table(changed, attributes, **self._how)
            except api.PreconditionFailed:
                return None

    def rows(self, sql: str, **parameters: list[str]) -> list[Json]:
        """Run a query and return its rows; parameters are arrays of strings."""
        config = bigquery.QueryJobConfig(query_parameters=list(map(_parameter, parameters.items())))
        with _translated("query"):
            found = self._client.query_and_wait(
                sql,
                job_config=config,
                location=self.location,
                api_timeout=TIMEOUT_S,
                retry=self._retry,
                job_retry=self._job_retry,
            )
            return [dict(row.items()) for row in found]

    def execute(self, sql: str, parameters: Mapping[str, str | date | None]) -> None:
        """Run a statement that changes data; parameters are strings or dates."""
        given = [
            bigquery.ScalarQueryParameter(
                name, "DATE" if isinstance(value, date) else "STRING", value
            )
            for name, value in parameters.items()
        ]
        with _translated("statement"):
            self._client.query_and_wait(
                sql,
                job_config=bigquery.QueryJobConfig(query_parameters=given),
                location=self.location,
                api_timeout=TIMEOUT_S,
                retry=self._retry,
                job_retry=self._job_retry,
            )

    def count(self, name: TableName, day: date) -> int:
        """Count the rows of a day."""
        sql = f"SELECT COUNT(*) AS n FROM `{name}` WHERE `date` = '{day}'"  # noqa: S608 - a checked name, a date
        return int(self.rows(sql)[0]["n"])

    def load_uris(
        self, table: str, uris: Sequence[str], job_id: str, config: Json
    ) -> tuple[Job, bool]:
        """Run a load job over objects to its end, or wait for the job that has its id.

        Returns:
            The job, and whether this call submitted it.
        """

        def begin() -> bigquery.LoadJob:
            return self._client.load_table_from_uri(
                list(uris),
                table,
                job_id=job_id,
                location=self.location,
                job_config=_config(config),
                **self._how,
            )

        return self._run(job_id, begin)

    def load_file(self, table: str, file: BinaryIO, job_id: str, config: Json) -> tuple[Job, bool]:
        """Run a load job over the bytes of a file, as `load_uris` does over objects."""
        file.seek(0, os.SEEK_END)
        size = file.tell()

        def begin() -> bigquery.LoadJob:
            return self._client.load_table_from_file(
                file,
                table,
                rewind=True,
                # With a size the client sends one multipart request, without one a resumable
                # upload.
                size=size if size < _RESUMABLE_BYTES else None,
                job_id=job_id,
                location=self.location,
                job_config=_config(config),
                timeout=TIMEOUT_S,
            )

        return self._run(job_id, begin)

    def job(self, job_id: str) -> Job | None:
        """Wait for the end of the load job with this id; return None if there is none."""
        with _translated(f"job {job_id}"):
            try:
                # Without its location a job outside of US and EU is not found (REST reference,
                # jobs.get).
                found = self._client.get_job(job_id, location=self.location, **self._how)
            except api.NotFound:
                return None
        if not isinstance(found, bigquery.LoadJob):
            raise WarehouseError(f"job {job_id}: is not a load job")
        return self._ended(found)

    def _run(self, job_id: str, begin: Callable[[], bigquery.LoadJob]) -> tuple[Job, bool]:
        with _translated(f"job {job_id}"):
            try:
                return self._ended(begin(), ours=True), True
            except api.Conflict:
                pass  # the id exists: our own job if a reply was lost, or another loader's
        found = self.job(job_id)
        if found is None:
            raise WarehouseError(f"job {job_id}: is said to exist, and is not found")
        return found, False

    def _ended(self, job: bigquery.LoadJob, *, ours: bool = False) -> Job:
        """Wait for the end of a job; of one that was submitted now, remember how long it took."""
        began_s = time.monotonic()
        wait_s, again_s = self._polling.waits()
        while job.state != "DONE":
            time.sleep(wait_s)
            wait_s, again_s = again_s, min(again_s * GROWTH, MOST_S)
            job.reload(**self._how)
        if ours:
            self._polling.note(time.monotonic() - began_s)
        # DONE does not mean success, and `errors` may have warnings too: only errorResult says that
        # the job failed (REST reference, JobStatus).
        failed = job.error_result
        return Job(
            id=job.job_id,
            labels=dict(job.labels),
            rows=int(job.output_rows or 0),
            reason=str(failed.get("reason", "unknown")) if failed else "",
            errors=tuple(job.errors or ([failed] if failed else [])),
            uris=tuple(job.source_uris or ()),
        )


_ATTRIBUTES = {
    "schema": "schema",
    "description": "description",
    "labels": "labels",
    "view": "view_query",
    "requirePartitionFilter": "require_partition_filter",
    "timePartitioning": "time_partitioning",
    "access": "access_entries",
}


def _config(load: Json) -> bigquery.LoadJobConfig:
    labels = load.get("labels", {})
    rest = {key: value for key, value in load.items() if key != "labels"}
    config = bigquery.LoadJobConfig.from_api_repr({"load": rest, "labels": labels})
    assert isinstance(config, bigquery.LoadJobConfig)
    return config


def api_schema(fields: Fields) -> Json:
    """Write columns as in a table resource of the REST interface."""
    return {"fields": fields_to_api(fields)}


def _parameter(item: tuple[str, list[str]]) -> bigquery.ArrayQueryParameter:
    name, values = item
    return bigquery.ArrayQueryParameter(name, "STRING", values)


@contextmanager
def _translated(what: str) -> Iterator[None]:
    try:
        yield
    except GoogleCloudError as exc:
        reason = str(exc.errors[0].get("reason", "")) if exc.errors else ""
        hint = "grant the roles of docs/loader.md" if isinstance(exc, api.Forbidden) else ""
        raise WarehouseError(f"{what}: {_answer(exc)}", reason=reason, hint=hint) from exc
    except (
        api.RetryError,  # raised when --patience is over
        RequestException,
        auth.GoogleAuthError,
        ConnectionError,
        TimeoutError,
    ) as exc:
        text = cause(exc, "BigQuery")
        raise WarehouseError(f"{what}: {text}", hint="check network and DNS") from exc


def _answer(exc: GoogleCloudError) -> str:
    """Return what BigQuery answered, without the request, as a sentence."""
    first = exc.errors[0] if exc.errors and isinstance(exc.errors[0], dict) else {}
    text = str(first.get("message") or _REQUEST_RE.sub("", str(exc.message)))
    text = " ".join(text.split())[:1000]
    if exc.code is None:
        return text
    verb = "fails" if exc.code >= HTTPStatus.INTERNAL_SERVER_ERROR else "refuses"
    return f"BigQuery {verb} ({exc.code:d}): {text}" if text else f"BigQuery {verb} ({exc.code:d})"
