"""What every bucket promises, asked of a directory and of a real GCS server over HTTP."""

from __future__ import annotations

import errno
import fcntl
import os
import random
import threading
import tracemalloc
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from jostler.errors import ConflictError, MissingError, QuotaError, StorageError, TransientError
from jostler.storage import Storage, open_storage, upload_id
from jostler.storage.directory import DirectoryStorage
from tests.support.misbehaving import Misbehaving
from tests.support.proxy import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.support.gcs import GcsServer
    from tests.support.proxy import FaultyServer


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


def test_an_object_keeps_the_metadata_it_was_created_with(bucket: Storage) -> None:
    """Told alone and in a listing, of the version that was asked for."""
    bucket.put_new("a/x.gz", b"1", {"rows": "3", "schema": "é"})
    bucket.put_new("a/x.gz", b"1", {"rows": "3", "schema": "é"})
    bucket.put_new("a/y.gz", b"1", {})
    version = bucket.read("a/x.gz").version

    assert mine(bucket.metadata("a/x.gz", version)) == {"rows": "3", "schema": "é"}
    assert mine(bucket.metadata("a/y.gz")) == {}
    listed = {info.name: mine(info.metadata) for info in bucket.list("a/", metadata=True)}
    assert listed == {"a/x.gz": {"rows": "3", "schema": "é"}, "a/y.gz": {}}
    assert [dict(info.metadata) for info in bucket.list("a/")] == [{}, {}]
    assert bucket.folders("") == ("a",)
    bucket.replace("a/x.gz", b"2", version)
    assert mine(bucket.metadata("a/x.gz")) == {}
    bucket.replace("a/x.gz", b"3", bucket.read("a/x.gz").version, {"rows": "4"})
    assert mine(bucket.metadata("a/x.gz")) == {"rows": "4"}
    for gone in (("a/x.gz", version), ("none", "")):
        with pytest.raises(MissingError):
            bucket.metadata(*gone)


def mine(metadata: Mapping[str, str]) -> dict[str, str]:
    """Leave out the upload id, which a server's objects have there."""
    return {key: value for key, value in metadata.items() if key != "upload-id"}


def test_a_directory_without_the_files_of_metadata_is_a_bucket_without_metadata(
    tmp_path: Path,
) -> None:
    """They are cut off by a crash, belong to what lay there before, or were not copied."""
    bucket = DirectoryStorage(tmp_path)
    bucket.put_new("a/x.gz", b"1", {"rows": "3"})
    (kept,) = (path for path in (tmp_path / ".metadata").rglob("*") if path.is_file())
    whole = kept.read_bytes()
    for content in (whole[:-3], b"", b"[]", b'{"version":1}', whole.replace(b"-", b"_")):
        kept.write_bytes(content)
        assert bucket.metadata("a/x.gz") == {}
    kept.write_bytes(whole)
    assert mine(bucket.metadata("a/x.gz")) == {"rows": "3"}
    bucket.remove("a/x.gz")
    assert not kept.exists()
    assert [info.name for info in bucket.list("")] == []


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


def test_a_listing_can_begin_and_end_within_the_prefix(bucket: Storage) -> None:
    """As the days of a window do."""
    for day in range(1, 6):
        bucket.put_new(f"e/d/{day}/x.gz", b"1", {})

    assert [info.name for info in bucket.list("e/d/", "e/d/2", "e/d/4")] == [
        "e/d/2/x.gz",
        "e/d/3/x.gz",
    ]
    assert len(list(bucket.list("e/d/", "e/d/2"))) == 4


def test_the_folders_below_a_prefix_are_those_that_hold_objects(bucket: Storage) -> None:
    """A bucket has no empty folder."""
    for name in ("v2/org2/e/x.gz", "v2/org1/e/x.gz", "v2/org1/f/x.gz", "v2/file", "v1/z/x"):
        bucket.put_new(name, b"1", {})
    assert bucket.folders("v2/") == ("org1", "org2")
    assert bucket.folders("") == ("v1", "v2")
    assert bucket.folders("none/") == ()
    bucket.remove("v2/org2/e/x.gz")
    assert bucket.folders("v2/") == ("org1",)


def test_the_objects_beside_folders_are_those_directly_below_a_prefix(bucket: Storage) -> None:
    """Not what lies in a folder whose name begins alike."""
    for name in ("top", "v2/b", "v2/a.b", "v2/a/x", "v2/a-b/x", "v21/x"):
        bucket.put_new(name, b"1", {})
    assert bucket.beside("v2/") == ("v2/a.b", "v2/b")
    assert bucket.beside("") == ("top",)
    assert bucket.beside("none/") == bucket.beside("v2/b/") == ()


def test_an_object_is_read_at_the_version_that_was_listed_or_not_at_all(bucket: Storage) -> None:
    """What was judged is what is copied and loaded."""
    bucket.put_new("x.gz", b"1", {})
    (listed,) = bucket.list("")
    assert bucket.read("x.gz", listed.version).data == b"1"
    assert bucket.read("x.gz").version == listed.version
    assert bucket.read_range("x.gz", 0, 1, listed.version) == b"1"

    bucket.replace("x.gz", b"2", listed.version)

    (again,) = bucket.list("")
    assert again.version != listed.version
    with pytest.raises(MissingError):
        bucket.read("x.gz", listed.version)
    with pytest.raises(MissingError):
        bucket.read_range("x.gz", 0, 1, listed.version)


def test_the_time_of_writing_can_be_listed(bucket: Storage) -> None:
    """Of what is below a prefix; good enough to tell what is days old."""
    bucket.put_new("a/x.gz", b"1", {})
    bucket.put_new("b/x.gz", b"1", {})
    ((name, when),) = bucket.written("a/")
    assert name == "a/x.gz"
    assert abs((datetime.now(UTC) - when).total_seconds()) < 60


def test_a_version_is_never_used_twice(bucket: Storage) -> None:
    """Not by an object that was removed and made again with the same bytes, in the same moment."""
    versions = set()
    for _ in range(20):
        bucket.put_new("x.gz", b"same", {})
        versions.add(bucket.read("x.gz").version)
        bucket.remove("x.gz")
    assert len(versions) == 20


def test_a_removed_object_is_gone(bucket: Storage) -> None:
    """And can be created anew."""
    bucket.put_new("x.gz", b"1", {})
    bucket.remove("x.gz")
    bucket.put_new("x.gz", b"2", {})

    assert bucket.read("x.gz").data == b"2"


def test_removing_can_name_the_version(tmp_path: Path) -> None:
    """What was changed by somebody else stays; what is gone already is no error."""
    bucket = open_storage(tmp_path.as_uri())
    bucket.put_new("x.gz", b"1", {})
    seen = bucket.read("x.gz").version
    bucket.replace("x.gz", b"2", seen)
    with pytest.raises(ConflictError):
        bucket.remove("x.gz", seen)
    assert bucket.read("x.gz").data == b"2"

    bucket.remove("x.gz", bucket.read("x.gz").version)
    bucket.remove("x.gz", seen)
    assert list(bucket.list("")) == []


def test_gcs_is_asked_to_compare_the_version_when_removing(
    faulty_gcs: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of these tests does not compare, so its answer is made here."""
    faulty_gcs.faults[:] = [Fault(status=412, method="DELETE")]
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", faulty_gcs.url)
    with pytest.raises(ConflictError):
        open_storage("somewhere").remove("x.gz", "17")
    assert any("ifGenerationMatch=17" in seen for seen in faulty_gcs.seen)


def test_objects_are_created_while_their_neighbours_are_removed(bucket: Storage) -> None:
    """Directories that come and go are no one's business."""
    failed: list[Exception] = []

    def work(number: int) -> None:
        try:
            for _ in range(30):
                bucket.put_new(f"a/b/{number}.gz", b"1", {})
                bucket.remove(f"a/b/{number}.gz")
        except StorageError as exc:
            failed.append(exc)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_bucket_that_does_not_answer_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known about the object; the caller asks again."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    with pytest.raises(TransientError):
        open_storage("nobody").put_new("x.gz", b"", {})


def page(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """Make an HTTP answer."""
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 " + status, length, *headers, b"Connection: close", b"", body])


HTML = page(b"<html>log in</html>", b"Content-Type: text/html")
CUT = page(b"x" * 900, b"Content-Type: application/octet-stream")[:-500]
WRONG = {
    "closes": b"",
    "no-http": b"SSH-2.0-OpenSSH_9.9\r\n",
    "html": HTML,
    "empty": page(b""),
    "list": page(b"[]", b"Content-Type: application/json"),
    "null": page(b"null", b"Content-Type: application/json"),
    "other-types": page(
        b'{"items":[{"name":1,"size":"x","generation":{}}],"metadata":7,"generation":"x"}',
        b"Content-Type: application/json",
        b"Date: yesterday",
    ),
    "cut": CUT,
    "bad-chunk": page(b"zz", b"Transfer-Encoding: chunked"),
    "no-gzip": page(b"<html>", b"Content-Encoding: gzip"),
    "loop": page(b"", b"Location: /", status=b"302 Found"),
    "odd-status": page(b"", status=b"299 Perhaps"),
    "not-modified": page(b"", status=b"304 Not Modified"),
}
CALLS: dict[str, Callable[[Storage], object]] = {
    "put_new": lambda bucket: bucket.put_new("x.gz", b"x", {}),
    "upload_id": lambda bucket: bucket.upload_id("x.gz"),
    "read": lambda bucket: bucket.read("x.gz"),
    "read_range": lambda bucket: bucket.read_range("x.gz", 0, 10),
    "replace": lambda bucket: bucket.replace("x.gz", b"x", "1"),
    "list": lambda bucket: list(bucket.list("")),
    "written": lambda bucket: list(bucket.written("")),
    "folders": lambda bucket: bucket.folders(""),
    "beside": lambda bucket: bucket.beside(""),
    "remove": lambda bucket: bucket.remove("x.gz"),
    "clock": lambda bucket: bucket.clock(),
}


def error_of(call: Callable[[Storage], object], bucket: Storage) -> StorageError | None:
    """Return the error of a call; one of another package comes through."""
    try:
        call(bucket)
    except StorageError as exc:
        return exc
    return None


@pytest.mark.parametrize("reset", [False, True], ids=["ends", "resets"])
@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_whatever_a_server_answers_no_error_of_another_package_comes_through(
    answer: bytes, reset: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be understood is transient: a proxy, a login page, a server that dies."""
    with Misbehaving(answer, reset=reset) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        bucket = open_storage("somewhere")
        for name, call in CALLS.items():
            # Some answers are good for some calls: a download takes any bytes.
            error = error_of(call, bucket)
            assert error is None or isinstance(error, TransientError), name
            assert error is None or error.hint, name
            assert "0x" not in str(error), name


@pytest.mark.parametrize(
    ("answer", "reset", "call", "words"),
    [
        (HTML, False, "upload_id", "gives an answer that is not Cloud Storage's"),
        (HTML, False, "list", "gives an answer that is not Cloud Storage's"),
        (CUT, False, "read", "breaks off its answer"),
        (CUT, True, "read", "breaks"),
        (b"", False, "put_new", "closes the connection without an answer"),
    ],
)
def test_a_cause_is_said_in_words(
    answer: bytes, reset: bool, call: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the host that was asked; the cause is the same whatever the object is called."""
    with Misbehaving(answer, reset=reset) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.url)
        with pytest.raises(TransientError) as caught:
            CALLS[call](open_storage("somewhere"))

    assert caught.value.cause.startswith(f"{server.host} {words}")
    assert str(caught.value).startswith("gs://somewhere")
    assert "x.gz" not in caught.value.cause


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9", "127.0.0.1:9 refuses connections"),
        ("http://no-such-host.invalid", "the name no-such-host.invalid cannot be resolved"),
        ("https://{plain}", "no TLS connection with {plain}: "),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_with_its_reason(
    url: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, without the chain of exceptions."""
    with Misbehaving(HTML) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url.format(plain=server.host))
        with pytest.raises(TransientError) as caught:
            open_storage("somewhere").read("x.gz")

    assert caught.value.cause.startswith(words.format(plain=server.host))
    assert len(caught.value.cause) < 120


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


def test_what_a_dead_process_left_in_a_directory_goes_away(tmp_path: Path) -> None:
    """What a living one writes, or has just begun to write, stays."""
    tmp = tmp_path / ".tmp"
    tmp.mkdir()
    dead, living, begun = (tmp / name for name in ("dead", "living", "begun"))
    for path in (dead, living, begun):
        path.write_bytes(b"half")
    for path in (dead, living):
        os.utime(path, (1, 1))
    with living.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        DirectoryStorage(tmp_path).put_new("a", b"1", {})
        assert sorted(path.name for path in tmp.iterdir()) == ["begun", "living"]


def test_a_write_that_fails_leaves_nothing_in_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk would only become fuller."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    storage = DirectoryStorage(tmp_path)
    storage.put_new("a", b"1", {})
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(QuotaError):
        storage.put_new("b", b"2", {})
    with pytest.raises(QuotaError):
        storage.replace("a", b"2", storage.read("a").version)
    assert [path.name for path in (tmp_path / ".tmp").iterdir()] == ["lock"]
    assert storage.read("a").data == b"1"


def test_an_upload_takes_no_copy_of_the_bytes(bucket: Storage) -> None:
    """Several large bundles are uploaded at once; the container's memory is limited."""
    data = random.Random(1).randbytes(8 << 20)
    bucket.put_new("first.gz", b"opens the connection", {})
    tracemalloc.start()
    try:
        bucket.put_new("large.gz", data, {})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < len(data) / 4
    assert bucket.read("large.gz").data == data
