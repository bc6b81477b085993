"""A small archive, stored by the agent's own code, whose objects tests damage."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from jostler.archive.audit.remake import micros
from jostler.bundle import Archiver, Entry, FileState, Header, OpenBundle
from jostler.bundle.commit import _data_metadata, _metadata
from jostler.bundle.index import index_object
from jostler.format.compression import SMALL
from jostler.format.names import BundleName, Day, Kind, Place
from jostler.format.row import content_hash
from jostler.schema import fields_from_api, table_schema, to_json
from tests.support.golden import go
from tests.support.spool import DATATYPE, EXPERIMENT, SCHEMA, document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from jostler.bundle.index_fields import IndexFields
    from jostler.format.compression import Compression
    from jostler.storage import Storage

PLACE = Place(data_dir="autoload/v1", organization="", experiment=EXPERIMENT)
DAY = date(2026, 1, 2)
CREATED = datetime(2026, 1, 3, tzinfo=UTC)
MTIME_NS = 1_767_400_000_000_000_000
ADDED_US = 1_767_500_000_000_000


def contents(numbers: Iterable[int], size: int = 150) -> dict[str, bytes]:
    """Return files by name."""
    return {f"m{number}.json": document(number, size=size) for number in numbers}


@dataclass
class KeptArchive:
    """Bundles in a bucket, made one after the other."""

    storage: Storage
    stored: int = 0
    names: list[BundleName] = field(default_factory=list)

    def __post_init__(self) -> None:
        schema = to_json(table_schema(fields_from_api(SCHEMA)))
        self.storage.put_new(PLACE.table_schema(DATATYPE), schema, {})

    def put(
        self,
        files: Mapping[str, bytes],
        *,
        node: str = "n1",
        day: date = DAY,
        compression: Compression = SMALL,
        added: datetime | None = None,
        fields: IndexFields | None = None,
    ) -> BundleName:
        """Store a bundle and its index, as an agent does; return the data object's name.

        All files are read at `added`, if it is given, and `fields` fill their index rows.
        """
        self.stored += 1
        name = BundleName(
            place=PLACE,
            datatype=DATATYPE,
            day=Day(day),
            created=CREATED + timedelta(seconds=self.stored),
            node=node,
            kind=Kind.DATA,
        )
        header = Header(
            name=name,
            bucket=self.storage.url,
            archiver=Archiver(version="jostler@1", commit="c"),
            compression=compression,
            schema="5" * 32,
        )
        opened = OpenBundle(header, 0.0)
        for nth, (file, raw) in enumerate(files.items()):
            path = f"{DATATYPE}/{Day(day).path}/{file}"
            state = FileState(1, len(raw), MTIME_NS, MTIME_NS)
            facts = fields.facts(path.partition("/")[2], raw, MTIME_NS) if fields else None
            when_us = micros(added) if added else ADDED_US + nth
            entry = Entry(path, state, when_us, content_hash(raw), facts)
            opened.add(entry, opened.row(entry.filename, raw))
        bundle = opened.seal()
        attempt = bundle.attempt
        told = _metadata(attempt, header) | {"data-upload-id": attempt.upload_id}
        self.storage.put_new(str(name), bundle.data, _data_metadata(attempt, header))
        self.storage.put_new(str(header.index_name), index_object(header, attempt), told)
        self.names.append(name)
        return name

    def put_go(self) -> BundleName:
        """Store a bundle as m-lab's Go agent does: no metadata, bare index lines without hash."""
        self.stored += 1
        name = BundleName(
            place=PLACE,
            datatype=DATATYPE,
            day=Day(DAY),
            created=CREATED + timedelta(seconds=self.stored),
            node="mlab1-lga01",
            kind=Kind.DATA,
        )
        data = go("data.jsonl")
        url = json.loads(data.split(b"\n")[0])["Archiver"]["ArchiveURL"]
        data = data.replace(url.encode(), f"{self.storage.url}/{name}".encode())
        sizes = [len(line) for line in data.split(b"\n")]
        lines = [
            json.dumps(json.loads(line) | {"Size": size}, separators=(",", ":"))
            for line, size in zip(go("index1.jsonl").split(b"\n"), sizes, strict=True)
        ]
        self.storage.put_new(str(name), gzip.compress(data, mtime=0), {})
        index = gzip.compress("\n".join(lines).encode(), mtime=0)
        self.storage.put_new(str(index_of(name)), index, {})
        return name

    def get(self, name: object) -> bytes:
        return self.storage.read(str(name)).data

    def swap(self, name: object, change: Callable[[bytes], bytes]) -> None:
        """Replace an object by one with changed bytes and the same metadata."""
        old = self.storage.read(str(name))
        told = {k: v for k, v in self.storage.metadata(str(name)).items() if k != "upload-id"}
        self.storage.replace(str(name), change(old.data), old.version, told)

    def swap_rows(self, name: object, change: Callable[[list[Any]], list[Any]]) -> None:
        """Replace an object by one whose rows are changed."""

        def changed(data: bytes) -> bytes:
            rows = change([json.loads(line) for line in gzip.decompress(data).splitlines()])
            text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
            return gzip.compress(text.encode(), mtime=0)

        self.swap(name, changed)

    def files(self) -> list[tuple[str, str, bytes]]:
        """Return node, Filename and `raw` of each row in the bucket, sorted."""
        found = []
        for info in self.storage.list(f"{PLACE.root}/{DATATYPE}/"):
            name = BundleName.parse(info.name)
            for line in gzip.decompress(self.get(name)).splitlines():
                row = {key.lower(): value for key, value in json.loads(line).items()}
                raw = line[line.lower().index(b'},"raw":') + 8 : -1]
                found.append((name.node, row["archiver"]["Filename"], raw))
        return sorted(found)

    def objects(self) -> dict[str, bytes]:
        """Return all objects of the archive, quarantine included."""
        return {info.name: self.get(info.name) for info in self.storage.list("")}


def index_of(name: BundleName) -> BundleName:
    """Return the name of a bundle's index."""
    return replace(name, kind=Kind.INDEX)


def flipped(data: bytes) -> bytes:
    """Return bytes of which one in the middle is another."""
    changed = bytearray(data)
    changed[len(changed) // 2] ^= 0x55
    return bytes(changed)


class DyingError(Exception):
    """The process ends here."""


class Dying:
    """A bucket whose process dies before its n-th change."""

    def __init__(self, storage: Storage, steps: int) -> None:
        self._storage = storage
        self._left = steps

    def __getattr__(self, name: str) -> object:
        if name in {"put_new", "replace", "remove"}:
            if not self._left:
                raise DyingError
            self._left -= 1
        return getattr(self._storage, name)
