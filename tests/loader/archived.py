"""Bundles as the agent stores them: by its own commit, with index, metadata and kept schemas."""

from __future__ import annotations

import gzip
import json
import tempfile
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostler.agent.schema_sync import keep, sync
from jostler.bundle import (
    Archiver,
    Commit,
    Confined,
    Entry,
    FileState,
    Header,
    Journal,
    OpenBundle,
    Stage,
    UploadJob,
    UploadStats,
    content_hash,
)
from jostler.format.compression import FAST
from jostler.format.names import BundleName, Day, Kind
from jostler.schema import fields_from_api, table_schema
from jostler.storage import Storage, open_storage
from tests.loader.world import DAY, PLACE
from tests.support.spool import DATATYPE, SCHEMA, document

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from tests.loader.world import World


def files(*numbers: int) -> dict[str, bytes]:
    """Return small files by name."""
    return {f"m{number}.json": document(number, size=120) for number in numbers}


@dataclass
class Agents:
    """Agents that store bundles in a world's bucket, all judging by one table schema."""

    world: World
    columns: list[dict[str, Any]] = field(default_factory=lambda: SCHEMA)
    schema: str = ""
    stored: int = 0

    def __post_init__(self) -> None:
        self.storage: Storage = open_storage(self.world.bucket)
        table = table_schema(fields_from_api(self.columns))
        sync(self.storage, PLACE, DATATYPE, table, upload=True)
        self.schema = self.schema or keep(self.storage, PLACE, DATATYPE, table)

    def store(
        self, contents: Mapping[str, bytes], *, day: date = DAY, node: str = "node1"
    ) -> tuple[str, str]:
        """Store a bundle and its index; return their names."""
        self.stored += 1
        name = BundleName(
            place=PLACE,
            datatype=DATATYPE,
            day=Day(day),
            created=datetime(2026, 6, 1, tzinfo=UTC) + timedelta(microseconds=self.stored),
            node=node,
            kind=Kind.DATA,
        )
        header = Header(
            name=name,
            bucket=self.storage.url,
            archiver=Archiver(version="jostler@1", commit="c"),
            compression=FAST,
            schema=self.schema,
        )
        opened = OpenBundle(header, 0.0)
        for file, raw in contents.items():
            path = f"{DATATYPE}/{Day(day).path}/{file}"
            entry = Entry(path, FileState(1, len(raw), 1, 1), 10**15, content_hash(raw))
            opened.add(entry, opened.row(entry.filename, raw))
        with tempfile.TemporaryDirectory() as home:
            journal = Journal(Path(home) / "state")
            lock = journal.open()
            assert lock
            with lock:
                commit = Commit(lambda _: self.storage, journal, Confined(home), UploadStats())
                done = commit.advance(UploadJob.of(opened.seal(), 0.0))
        assert isinstance(done, UploadJob)
        assert done.stage is Stage.STORED
        return str(name), str(replace(name, kind=Kind.INDEX))

    def alter(
        self,
        name: str,
        change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda rows: rows,
        **metadata: str,
    ) -> None:
        """Replace an object by one whose rows are changed, with the same metadata but for some."""
        told = {**self.storage.metadata(name), **metadata}
        lines = gzip.decompress(self.storage.read(name).data).splitlines()
        rows = change([json.loads(line) for line in lines])
        data = b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)
        blob = self.world.storage.bucket(self.world.bucket).blob(name)
        blob.metadata = told
        blob.upload_from_string(gzip.compress(data, mtime=0))
