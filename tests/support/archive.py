"""Build an archive row by row: index objects in a bucket, and the same rows in BigQuery."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from google.cloud import bigquery
from isal import isal_zlib

from jostler.archive.catalogue import File, Origin
from jostler.format.bigquery_names import Naming, table_name
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")
DAY = date(2026, 1, 2)
NEW = "new"
OLD = "old"
"""As agents built before 22 November 2026 wrote it: without Start, End and WorkID."""
GO = "go"
_RAW_TYPES = {
    **dict.fromkeys(("Filename", "Datatype", "Node", "ArchiveURL", "Hash", "WorkID"), "STRING"),
    **dict.fromkeys(("Size", "Line", "Offset", "Length"), "INTEGER"),
    **dict.fromkeys(("TimeAdded", "Start", "End"), "TIMESTAMP"),
}

DATA = "autoload/v1/exp/foo1/2026/01/02/20260102T030405.000001Z-foo1-n1-exp-data.jsonl.gz"
ORIGIN = Origin(
    bucket="gs://b",
    data=DATA,
    index=DATA.replace("/foo1/", "/index1/").replace("-data.", "-index1."),
    datatype="foo1",
    node="n1",
    day=date(2026, 1, 2),
)
FILE = File(
    filename="2026/01/02/a.json",
    size=1,
    added=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    line=1,
    hash="5f" * 16,
    hash_of_raw=True,
    offset=None,
    length=None,
    start=None,
    end=None,
    work_id=None,
    origin=ORIGIN,
)
"""A file of an archive; tests replace what they are about."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A file of a bundle to build.

    Attributes:
        path: its Filename; by default its name in the folder of the bundle.
        size: None for a row without it.
    """

    name: str
    path: str = ""
    start: datetime | None = None
    end: datetime | None = None
    work_id: str | None = None
    added: datetime = datetime(2026, 1, 2, 12, tzinfo=UTC)
    content: bytes = b""
    size: int | None = 100


def at(hour: float, day: date = DAY) -> datetime:
    """Return an instant of a day."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(hours=hour)


def text(when: datetime | None) -> str | None:
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if when else None


@dataclass
class MadeArchive:
    """Index objects in a directory.

    Attributes:
        root: the directory.
        rows: what the loader would load from them.
        rejected: what it would load from the bundles of rejected1.
        made: how many bundles there are.
        places: where they are.
        columns: the fields of `raw` that the table index1 has.
    """

    root: Path
    rows: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    made: int = 0
    places: set[Place] = field(default_factory=lambda: {PLACE})
    columns: tuple[str, ...] = tuple(_RAW_TYPES)

    @property
    def url(self) -> str:
        return self.root.as_uri()

    def put(
        self,
        entries: Iterable[Entry],
        *,
        datatype: str = "foo1",
        day: date = DAY,
        node: str = "n1",
        form: str = NEW,
        created: datetime | None = None,
        place: Place = PLACE,
    ) -> BundleName:
        """Store an index object; by default, each is created later than the one before."""
        self.made += 1
        self.places.add(place)
        name = BundleName(
            place=place,
            datatype=datatype,
            day=Day(day),
            created=created or at(20) + timedelta(seconds=self.made),
            node=node,
            kind=Kind.INDEX,
        )
        lines = []
        for line, entry in enumerate(entries, 1):
            row = self._row(name, entry, line, form)
            self.rows.append(row)
            raw = dict(row["raw"])
            if form == GO:
                raw["TimeAdded"] = entry.added.strftime("%Y/%m/%dT%H%M%S.%fZ")
            lines.append(json.dumps(raw if form == GO else row, separators=(",", ":")))
        end = "" if form == GO else "\n"
        packed = isal_zlib.compress(("\n".join(lines) + end).encode(), 1, 31)
        open_storage(self.url).put_new(str(name), packed, {})
        return name

    def _row(self, name: BundleName, entry: Entry, line: int, form: str) -> dict[str, Any]:
        filename = entry.path or f"{name.day.path}/{entry.name}"
        if form == GO and not entry.path:
            filename = f"/var/spool/{name.place.experiment}/{name.datatype}/{filename}"
        raw: dict[str, Any] = {
            "Filename": filename,
            "Size": entry.size,
            "TimeAdded": text(entry.added),
        }
        content = entry.content or filename.encode()
        if form != GO:
            raw |= {
                "Datatype": name.datatype,
                "Node": name.node,
                "ArchiveURL": f"{self.url}/{replace(name, kind=Kind.DATA)}",
                "Line": line,
                "Hash": hashlib.blake2b(content, digest_size=16).hexdigest(),
                "Offset": 10 + 1000 * (line - 1),
                "Length": 1000,
            }
        if entry.size is None:
            del raw["Size"]
        if form == NEW:
            raw |= {"Start": text(entry.start), "End": text(entry.end), "WorkID": entry.work_id}
        archiver = {
            "Version": "jostler@0.2",
            "GitCommit": "c",
            "ArchiveURL": f"{self.url}/{name}",
            "Filename": filename,
        }
        return {"date": name.day.iso, "archiver": archiver, "raw": raw}

    def put_rejected(self, reasons: Iterable[tuple[str, str]], *, node: str = "n1") -> None:
        """Store a bundle of rejected files, each with a datatype and a reason."""
        pairs = list(reasons)
        entries = [Entry(name=f"bad{number}.json") for number in range(len(pairs))]
        index = self.put(entries, datatype="rejected1", node=node)
        rows = [
            {
                "date": index.day.iso,
                "raw": {"Datatype": datatype, "Node": node, "Reason": reason, "Content": "e30="},
            }
            for datatype, reason in pairs
        ]
        self.rejected += rows
        packed = isal_zlib.compress("".join(json.dumps(r) + "\n" for r in rows).encode(), 1, 31)
        open_storage(self.url).put_new(str(replace(index, kind=Kind.DATA)), packed, {})

    def load(self, client: bigquery.Client) -> None:
        """Create the tables index1 and rejected1 of the experiment in BigQuery, with all rows."""
        types = {name: _RAW_TYPES[name] for name in self.columns}
        for place in self.places:
            start = f"{self.url}/{place.root}/"
            rows = [row for row in self.rows if row["archiver"]["ArchiveURL"].startswith(start)]
            table = table_name(Naming.MLAB, client.project, place, "index1")
            _load(client, f"{table.dataset}.{table.table}", rows, types)
        names = ("Datatype", "Node", "Reason", "Content")
        _load(client, "raw_exp.rejected1", self.rejected, dict.fromkeys(names, "STRING"))


def project() -> str:
    """Return the name of a project that no other test uses."""
    return f"p{uuid.uuid4().hex[:12]}"


def _load(
    client: bigquery.Client, table: str, rows: list[dict[str, Any]], raw: dict[str, str]
) -> None:
    client.create_dataset(table.partition(".")[0], exists_ok=True)
    archiver = ("Version", "GitCommit", "ArchiveURL", "Filename")
    made = bigquery.Table(
        f"{client.project}.{table}",
        schema=[
            bigquery.SchemaField("date", "DATE"),
            bigquery.SchemaField(
                "archiver", "RECORD", fields=[bigquery.SchemaField(n, "STRING") for n in archiver]
            ),
            bigquery.SchemaField(
                "raw", "RECORD", fields=[bigquery.SchemaField(n, t) for n, t in raw.items()]
            ),
        ],
    )
    made.time_partitioning = bigquery.TimePartitioning(field="date")
    made.require_partition_filter = True
    client.create_table(made)
    if rows:
        lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
        config = bigquery.LoadJobConfig(source_format="NEWLINE_DELIMITED_JSON")
        client.load_table_from_file(io.BytesIO(lines), made, job_config=config).result()
