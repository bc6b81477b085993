"""The bundles that the benches of the loader read: made as agents make them."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from bench.files import NO_UUID, STARTED
from jostler.bundle import Entry, FileState, Header, OpenBundle, content_hash
from jostler.bundle.index import index_object
from jostler.format.compression import FAST
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.format.row import Archiver
from jostler.schema import fields_from_api, table_schema, to_json
from jostler.storage import upload_id

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.storage.directory import DirectoryStorage

BUNDLE_BYTES = 20 * 1024 * 1024
PLACE = Place(data_dir="autoload/v1", organization="", experiment="exp")
DAY = date(2026, 1, 2)
FLAT = [
    {"name": name, "type": kind}
    for name, kind in (
        *(("UUID", "STRING"), ("StartTime", "TIMESTAMP"), ("Server", "STRING")),
        *((f"Count{n}", "INTEGER") for n in range(10)),
        *((f"Rate{n}", "FLOAT") for n in range(10)),
        *((f"Note{n}", "STRING") for n in range(6)),
    )
]
TABLE = to_json(table_schema(fields_from_api(FLAT)))


def flat() -> list[bytes]:
    """Make flat documents of 1 KiB."""
    rng = random.Random(2)
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "übung", "zeta"]
    made = []
    for _ in range(500):
        value: dict[str, object] = {"UUID": NO_UUID.decode(), "StartTime": STARTED}
        value["Server"] = f"10.0.{rng.randrange(256)}.{rng.randrange(256)}"
        value |= {f"Count{n}": rng.randrange(10**9) for n in range(10)}
        value |= {f"Rate{n}": rng.random() * 1000 for n in range(10)}
        value |= {f"Note{n}": " ".join(rng.choices(words, k=9)) for n in range(6)}
        made.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
    return made


def archive(root: Path, made: list[bytes], size: int) -> tuple[list[int], int]:
    """Write bundles of about `size` bytes together; return the rows of each, and their bytes."""
    rows = total = 0
    counts: list[int] = []
    while total < size:
        opened = OpenBundle(header(root.as_uri(), len(counts)), 0.0)
        while opened.size_bytes < BUNDLE_BYTES:
            document = made[rows % len(made)].replace(NO_UUID, b"%0*d" % (len(NO_UUID), rows), 1)
            state = FileState(rows, len(document), 10**18 + rows * 10**7, 1)
            path = f"foo1/2026/01/02/m{rows}.json"
            entry = Entry(path, state, 10**15 + rows * 10**4, content_hash(document))
            opened.add(entry, opened.row(entry.filename, document))
            rows += 1
        sealed = opened.seal()
        for name, data in (
            (sealed.header.name, sealed.data),
            (sealed.header.index_name, index_object(sealed.header, sealed.attempt)),
        ):
            (root / str(name)).parent.mkdir(parents=True, exist_ok=True)
            (root / str(name)).write_bytes(data)
        total += sealed.row_bytes
        counts.append(opened.files)
    return counts, total


def put_schema(bucket: DirectoryStorage) -> None:
    """Store the table schema of the flat documents, in both its places."""
    bucket.put_new(PLACE.table_schema("foo1"), TABLE, {})
    bucket.put_new(PLACE.kept_schema("foo1", upload_id(TABLE)), TABLE, {})


def put_files(bucket: DirectoryStorage, number: int, day: date, files: int) -> None:
    """Store a small bundle and its index, with the metadata that the agent gives them.

    Args:
        bucket: where to.
        number: of the bundle in the bucket; each has its own, and files of its own.
        day: of the files.
        files: how many it has.
    """
    made = header(bucket.url, number, day)
    opened = OpenBundle(made, 0.0)
    for n in range(files):
        document = json.dumps({"UUID": f"u{number}-{n}", "Count1": n}).encode()
        path = f"foo1/{Day(day).path}/m{number}-{n}.json"
        state = FileState(number * files + n, len(document), 1, 1)
        entry = Entry(path, state, 10**15, content_hash(document))
        opened.add(entry, opened.row(entry.filename, document))
    sealed = opened.seal()
    metadata = {"rows": str(files), "schema": upload_id(TABLE)}
    bucket.put_new(str(made.name), sealed.data, metadata)
    metadata = {"rows": str(files), "data-upload-id": sealed.attempt.upload_id}
    bucket.put_new(str(made.index_name), index_object(made, sealed.attempt), metadata)


def header(bucket: str, bundle: int, day: date = DAY) -> Header:
    """Return the header of a bundle by its number."""
    return Header(
        name=BundleName(
            place=PLACE,
            datatype="foo1",
            day=Day(day),
            created=datetime(2026, 1, 2, tzinfo=UTC) + timedelta(microseconds=bundle),
            node="node1",
            kind=Kind.DATA,
        ),
        bucket=bucket,
        archiver=Archiver(version="jostler@1", commit="c"),
        compression=FAST,
    )
