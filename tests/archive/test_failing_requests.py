"""A bucket that does not answer every request: one failure is nothing, two are reported."""

from __future__ import annotations

import gzip
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, cast

from msgspec import structs

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.catalogue import Query, Tally
from jostler.archive.hashes import digest
from jostler.archive.reading import Row, RowReader
from jostler.errors import TransientError
from jostler.storage import Storage, open_storage
from tests.support.archive import DATA, FILE, ORIGIN, PLACE, Entry, MadeArchive

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.storage import StoredObject


class Failing:
    """A bucket whose first reads of each object of node n1 fail."""

    def __init__(self, url: str, times: int) -> None:
        self.url = url
        self._bucket = open_storage(url)
        self._left: Counter[str] = Counter()
        self._times = times
        self.list, self.folders = self._bucket.list, self._bucket.folders

    def read(self, name: str, version: str = "") -> StoredObject:
        self._left[name] += 1
        if "-n1-" in name and self._left[name] <= self._times:
            raise TransientError(f"{name}: no answer")
        return self._bucket.read(name, version)


def failing(url: str, times: int) -> Storage:
    return cast("Storage", Failing(url, times))


def test_one_failed_request_ends_no_search(tmp_path: Path) -> None:
    """After two, the index object is named; the others are searched."""
    made = MadeArchive(tmp_path / "bucket")
    made.put([Entry(name="a")])
    made.put([Entry(name="b")], node="n2")
    for times, names, problems in ((1, ["a", "b"], 0), (2, ["b"], 1)):
        catalogue, tally = BucketCatalogue(failing(made.url, times), [PLACE]), Tally()
        with closing(catalogue):
            assert [file.name for file in catalogue.files(Query(), tally)] == names
        assert len(tally.problems) == problems


def test_one_failed_request_loses_no_file(tmp_path: Path) -> None:
    """After two, the file is reported with the reason."""
    raw = b'{"a":1}'
    archiver = b'{"Version":"v","GitCommit":"c","ArchiveURL":"u","Filename":"2026/01/02/a.json"}'
    line = b'{"date":"2026-01-02","archiver":%b,"raw":%b}\n' % (archiver, raw)
    open_storage(tmp_path.as_uri()).put_new(DATA, gzip.compress(line), {})
    file = structs.replace(FILE, hash=digest(raw), origin=ORIGIN)
    for times in (1, 2):
        bucket = failing(tmp_path.as_uri(), times)
        with closing(RowReader(lambda _url, bucket=bucket: bucket)) as reader:  # type: ignore[misc]
            (row,) = reader.read_all([file])
        if times == 1:
            assert isinstance(row, Row)
            assert row.raw == raw
        else:
            assert not isinstance(row, Row)
            assert "no answer" in str(row.error)
