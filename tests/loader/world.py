"""A bucket and a BigQuery of one test's own, and the loader between them."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from google.api_core.exceptions import NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery, storage

from jostler.format.names import BundleName, Day, Kind, Place
from jostler.schema import fields_from_api, table_schema, to_json
from loader.cli.main import main
from loader.spark.limits import SAMPLE_ROWS
from tests.support.spool import DATATYPE, EXPERIMENT, SCHEMA, document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.support.proxy import FaultyServer

DAY = date(2026, 1, 2)
WAIT_S = 60.0
CREATED = datetime(2026, 1, 3, tzinfo=UTC)
PLACE = Place(data_dir="autoload/v1", organization="", experiment=EXPERIMENT)


class BigQueryServer:
    """`python -m embedded` as a process; faults can be asked for."""

    def __init__(self, data_dir: Path, gcs_url: str) -> None:
        self.process = subprocess.Popen(
            [*(sys.executable, "-m", "embedded"), "--data-dir", str(data_dir), "--port=0"],
            env={**os.environ, "STORAGE_EMULATOR_HOST": gcs_url},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().split("listens on ")[1].split(",")[0]

    def fault(self, fault: str, **facts: object) -> None:
        """Ask for a fault to come."""
        body = json.dumps({"fault": fault, **facts}).encode()
        request = urllib.request.Request(
            f"{self.url}/_faults", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60):
            pass

    def faults(self) -> list[dict[str, Any]]:
        """Return the faults that have not come yet."""
        with urllib.request.urlopen(f"{self.url}/_faults", timeout=60) as answer:
            found: list[dict[str, Any]] = json.load(answer)["faults"]
        return found

    def clear(self) -> None:
        """Forget faults that have not come."""
        request = urllib.request.Request(f"{self.url}/_faults", method="DELETE")
        with urllib.request.urlopen(request, timeout=60):
            pass

    def stop(self) -> None:
        self.process.kill()  # it may still hold up what a fault said
        self.process.wait(timeout=100)
        assert self.process.stdout
        self.process.stdout.close()


@dataclass
class Ran:
    """How a run of the loader ended; `events` are its log lines."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.err.splitlines() if line.startswith("{")]

    @property
    def days(self) -> dict[tuple[str, str], dict[str, Any]]:
        """What became of each day, by dataset.table and day."""
        days = [event for event in self.events if event["event"].startswith("day.")]
        return {(event["table"].split(".", 1)[1], event["day"]): event for event in days}


def row(
    number: int, *, day: date = DAY, go: bool = False, raw: bytes | None = None, name: str = ""
) -> bytes:
    """Make a row as our agent or the Go agent writes it."""
    path = f"{day:%Y/%m/%d}/{name or f'm{number}.json'}"
    names = ["date", "archiver", "raw"]
    if go:
        names = [key.capitalize() for key in names]
        path = f"/var/spool/{EXPERIMENT}/{DATATYPE}/{path}"
    archiver = {"Version": "v1", "GitCommit": "c", "ArchiveURL": "gs://b/o", "Filename": path}
    head = json.dumps({names[0]: day.isoformat(), names[1]: archiver}, separators=(",", ":"))
    return b'%b,"%b":%b}' % (head[:-1].encode(), names[2].encode(), raw or document(number))


@dataclass
class World:
    """One test's bucket and project."""

    bigquery: BigQueryServer
    gcs: FaultyServer
    bucket: str = field(default_factory=lambda: f"b{uuid.uuid4().hex[:12]}")
    project: str = field(default_factory=lambda: f"p{uuid.uuid4().hex[:12]}")
    written: int = 0

    def __post_init__(self) -> None:
        self.storage = storage.Client(project="p")
        self.storage.create_bucket(self.bucket)
        self.client = bigquery.Client(
            self.project,
            AnonymousCredentials(),
            client_options={"api_endpoint": self.bigquery.url},
        )

    def close(self) -> None:
        self.client.close()
        self.storage.close()

    @property
    def url(self) -> str:
        return f"gs://{self.bucket}"

    def put(self, name: str, data: bytes) -> None:
        self.storage.bucket(self.bucket).blob(name).upload_from_string(data)

    def names(self, prefix: str = "") -> list[str]:
        return [blob.name for blob in self.storage.list_blobs(self.bucket, prefix=prefix)]

    def get(self, name: str, bucket: str = "") -> bytes:
        data: bytes = self.storage.bucket(bucket or self.bucket).blob(name).download_as_bytes()
        return data

    def remove(self, name: str) -> None:
        self.storage.bucket(self.bucket).blob(name).delete()

    def put_schema(
        self, fields: list[dict[str, Any]] = SCHEMA, datatype: str = DATATYPE, place: Place = PLACE
    ) -> None:
        content = to_json(table_schema(fields_from_api(fields)))
        self.put(place.table_schema(datatype), content)

    def put_bundle(
        self,
        rows: Iterable[bytes],
        *,
        day: date = DAY,
        datatype: str = DATATYPE,
        kind: Kind = Kind.DATA,
        node: str = "node1",
        place: Place = PLACE,
        cut: int = 0,
    ) -> str:
        """Store a bundle of lines, made after all others; `cut` bytes are missing at its end."""
        self.written += 1
        name = BundleName(
            place=place,
            datatype=datatype,
            day=Day(day),
            created=CREATED + timedelta(seconds=self.written),
            node=node,
            kind=kind,
        )
        data = gzip.compress(b"".join(line + b"\n" for line in rows), 1, mtime=0)
        self.put(str(name), data[: len(data) - cut])
        return str(name)

    def arguments(self, *more: str) -> list[str]:
        given = "".join(more)
        argv = ["--project", self.project, "--patience", "20"]
        argv += [] if "--bucket" in given else ["--bucket", self.url]
        argv += [] if "--start" in given or "--period" in given else ["--period", "everything"]
        return [*argv, *more]

    def load(self, *more: str) -> Ran:
        """Run the loader in this process, with the session's Spark."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(self.arguments(*more))
        return Ran(code, out.getvalue(), err.getvalue())

    def start(self, *more: str, **environ: str) -> subprocess.Popen[str]:
        """Start the loader as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "loader", *self.arguments("--master", "local[1]", *more)],
            env={**os.environ, "BIGQUERY_EMULATOR_HOST": self.bigquery.url, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def sql(self, query: str) -> list[dict[str, Any]]:
        """Run SQL; `meta` and table names are of this project."""
        return [dict(found.items()) for found in self.client.query_and_wait(query)]

    def rows(self, table: str = f"raw_{EXPERIMENT}.{DATATYPE}", day: date = DAY) -> list[str]:
        """Return the Filenames of a day's rows."""
        sql = f"SELECT archiver.Filename AS f FROM `{table}` WHERE date = '{day}' ORDER BY f"
        return [found["f"] for found in self.sql(sql)]

    def rows_or_none(self) -> list[str] | None:
        """Return the same, or None when there is no such table."""
        try:
            return self.rows()
        except NotFound:
            return None

    def ledger(self) -> list[dict[str, Any]]:
        return self.sql("SELECT * FROM jostler.loads ORDER BY Started, Attempt, Finished")

    def age_ledger(self, *lacks: str) -> None:
        """Make the ledger of one row as old loaders wrote it: without some columns."""
        lacks = lacks or ("Objects",)
        (written,) = self.ledger()
        table = self.client.get_table("jostler.loads")
        self.client.delete_table(table)
        columns = [column for column in table.schema if column.name not in lacks]
        older = bigquery.Table(table.reference, columns)
        older.time_partitioning = table.time_partitioning
        self.client.create_table(older)
        values = {
            name: value
            for name, value in written.items()
            if name not in lacks and value is not None
        }
        line = json.loads(json.dumps(values, default=str))
        self.client.load_table_from_json([line], older).result()

    def rejects(self) -> list[dict[str, Any]]:
        return self.sql("SELECT * FROM jostler.rejects ORDER BY ArchiveURL, Line")

    def fault(self, fault: str, **facts: object) -> None:
        """Ask BigQuery for a fault that meets only jobs and requests of this project."""
        facts = {"path": f"/projects/{self.project}/", **facts}
        self.bigquery.fault(fault, **facts)

    def reads(self) -> list[str]:
        """Return the bundles that were read through the proxy so far."""
        return [seen for seen in self.gcs.seen if "jsonl.gz" in seen and "alt=media" in seen]

    def assert_adds_up(self) -> None:
        """Assert that ledger, rejects and tables agree with each other."""
        counts = ("RowsLoaded", "RowsRejected", "RowsRepeated", "RowsWithheld")
        newest: dict[tuple[str, date], dict[str, Any]] = {}
        for told in self.ledger():
            assert told["RowsRead"] == sum(told[key] for key in counts), told
            assert told["RowsWithheld"] == 0 or told["Status"] != "success", told
            if told["date"] and told["Status"] == "success":
                newest[told["table"], told["date"]] = told
            if told["Status"] == "deleted":
                newest.pop((told["table"], told["date"]), None)
            if told["Status"] in {"success", "rejected"}:
                same = [f"`{key}` = '{told[key]}'" for key in ("table", "date", "RunID")]
                where = " AND ".join(same)
                sql = f"SELECT COUNT(*) AS n FROM jostler.reject_rows WHERE {where}"
                most = told["RowsRejected"] if told["Status"] == "success" else SAMPLE_ROWS
                assert self.sql(sql)[0]["n"] == min(most, told["RowsRejected"]), told
        for (table, day), told in newest.items():
            sql = f"SELECT COUNT(*) AS n FROM `{table}` WHERE date = '{day}'"
            assert self.sql(sql)[0]["n"] == told["RowsLoaded"], told


def wait_until(what: str, true: Callable[[], bool]) -> None:
    """Poll until something is true."""
    until = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < until, f"waited {WAIT_S} s for: {what}"
        time.sleep(0.02)
