"""What every bucket promises, asked of a directory and of a real GCS server over HTTP."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from jostler.errors import ConflictError, MissingError, StorageError, TransientError
from jostler.storage import Storage, open_storage, upload_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.gcs import GcsServer


@pytest.fixture(params=["directory", "gcs"])
def bucket(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Storage]:
    if request.param == "directory":
        yield open_storage((tmp_path / "bucket").as_uri())
        return
    server: GcsServer = request.getfixturevalue("gcs")
    name = f"contract-{upload_id(str(tmp_path).encode())[:12]}"
    server.create_bucket(name)
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
    yield open_storage(name)


def test_an_object_reads_back_as_it_was_written(bucket: Storage) -> None:
    """Every byte, gzip included: nothing is unpacked on the way."""
    data = bytes(range(256)) * 300
    bucket.put_new("a/b/c.jsonl.gz", data, {"rows": "3"})

    assert bucket.read("a/b/c.jsonl.gz").data == data
    assert bucket.read_range("a/b/c.jsonl.gz", 250, 10) == data[250:260]
    assert bucket.upload_id("a/b/c.jsonl.gz") == upload_id(data)


def test_creating_the_same_object_twice_is_harmless(bucket: Storage) -> None:
    """A lost reply is answered by asking again."""
    bucket.put_new("x.gz", b"same", {})
    version = bucket.read("x.gz").version
    bucket.put_new("x.gz", b"same", {})

    assert bucket.read("x.gz").version == version


def test_creating_never_overwrites(bucket: Storage) -> None:
    """Other bytes under the same name are a conflict, and the first ones stay."""
    bucket.put_new("x.gz", b"first", {})
    with pytest.raises(ConflictError):
        bucket.put_new("x.gz", b"second", {})

    assert bucket.read("x.gz").data == b"first"


def test_of_many_writers_of_one_name_one_wins(bucket: Storage) -> None:
    """Threads that create one name at once leave one whole object."""
    lost = []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        try:
            bucket.put_new("race.gz", b"%d" % number * 1000, {})
        except ConflictError:
            lost.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(lost) == 7
    (winner,) = set(range(8)) - set(lost)
    assert bucket.read("race.gz").data == b"%d" % winner * 1000


def test_a_missing_object_is_told_apart_from_trouble(bucket: Storage) -> None:
    """Absence is an answer."""
    assert bucket.upload_id("none") is None
    with pytest.raises(MissingError):
        bucket.read("none")
    with pytest.raises(MissingError):
        bucket.read_range("none", 0, 1)
    bucket.remove("none")


def test_replacing_needs_the_version_that_was_read(bucket: Storage) -> None:
    """Two that change one object cannot undo each other."""
    bucket.put_new("t.json", b"1", {})
    seen = bucket.read("t.json").version
    bucket.replace("t.json", b"2", seen)
    with pytest.raises(ConflictError):
        bucket.replace("t.json", b"3", seen)

    assert bucket.read("t.json").data == b"2"


def test_a_listing_has_a_prefix_and_an_order(bucket: Storage) -> None:
    """Names come in the order of their bytes, as GCS lists them."""
    for name in ("a/z.gz", "a.gz", "a/b/1.gz", "a/b.gz", "b.gz", "a-.gz"):
        bucket.put_new(name, name.encode(), {})

    assert [info.name for info in bucket.list("")] == sorted(
        ["a/z.gz", "a.gz", "a/b/1.gz", "a/b.gz", "b.gz", "a-.gz"]
    )
    assert [info.name for info in bucket.list("a/b")] == ["a/b.gz", "a/b/1.gz"]
    assert [(info.name, info.size_bytes) for info in bucket.list("a/z")] == [("a/z.gz", 6)]
    assert list(bucket.list("c/d")) == []


def test_a_removed_object_is_gone(bucket: Storage) -> None:
    """And can be created anew."""
    bucket.put_new("x.gz", b"1", {})
    bucket.remove("x.gz")
    bucket.put_new("x.gz", b"2", {})

    assert bucket.read("x.gz").data == b"2"


def test_a_bucket_that_does_not_answer_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known about the object; the caller asks again."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    with pytest.raises(TransientError):
        open_storage("nobody").put_new("x.gz", b"", {})


def test_a_bucket_that_does_not_exist_is_an_error_with_a_hint(
    gcs: GcsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not mistaken for a missing object."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    with pytest.raises(StorageError) as caught:
        open_storage("no-such-bucket").put_new("x.gz", b"", {})
    assert "exist" in caught.value.hint


@pytest.mark.parametrize("name", ["", "/x", "a//b", "a/../b", ".", "a/.tmp/b", "a\0b"])
def test_a_directory_refuses_names_that_leave_it(tmp_path: Path, name: str) -> None:
    """No object lies outside the directory, or where half-written bytes lie."""
    with pytest.raises(StorageError):
        open_storage(tmp_path.as_uri()).put_new(name, b"", {})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("url", ["s3://bucket", "gs://bucket/dir", "file://host/dir"])
def test_a_url_of_another_kind_is_refused(url: str) -> None:
    """With the reason."""
    with pytest.raises(ValueError, match="file:///dir"):
        open_storage(url)
