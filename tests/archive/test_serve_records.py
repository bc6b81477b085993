"""What the API of `jostler serve` tells of a file, of its content, and of the server, over HTTP."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler import build
from jostler.archive.serve.api import ROOT
from jostler.archive.serve.times import to_ms
from tests.support.archive import DAY, Entry, MadeArchive, at
from tests.support.serving import NOW, NoContents, Serving

if TYPE_CHECKING:
    from jostler.archive.catalogue import File

FILES = f"{ROOT}/files/"
LATEST = f"{ROOT}/latest/foo1/n1"
ALL_DAY = {"what": "foo1", "start": to_ms(at(0)), "end": to_ms(at(24))}


def listed(serving: Serving, **asked: object) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = serving.get(FILES, **{**ALL_DAY, **asked}).json["files"]
    return files


def test_a_record_tells_all_that_the_index_has(serving: Serving, made: MadeArchive) -> None:
    """Each member, with the values of the index row."""
    made.put([Entry(name="other.json"), Entry(name="a.json", start=at(1), end=at(2), size=77)])
    serving.show_made(made)
    raw = made.rows[1]["raw"]

    (record,) = [one for one in listed(serving) if one["line"] == 2]

    opaque = {key: record.pop(key) for key in ("id", "metadata", "data")}
    assert opaque["metadata"] == f"{FILES}{opaque['id']}/metadata"
    assert opaque["data"] == f"{FILES}{opaque['id']}/data"
    assert record == {
        "what": "foo1",
        "where": "n1",
        "filename": "2026/01/02/a.json",
        "start": to_ms(at(1)),
        "end": to_ms(at(2)),
        "start_iso": "2026-01-02T01:00:00.000Z",
        "end_iso": "2026-01-02T02:00:00.000Z",
        "added": to_ms(at(12)),
        "added_iso": "2026-01-02T12:00:00.000Z",
        "work_id": None,
        "size": 77,
        "hash": raw["Hash"],
        "bundle": raw["ArchiveURL"],
        "line": 2,
        "address": f"{raw['ArchiveURL']}#2026/01/02/a.json",
    }


def test_a_job_s_files_are_its_own_alone(serving: Serving, made: MadeArchive) -> None:
    entries = [Entry(name=f"{job}.json", work_id=job) for job in ("job-1", "job-2", "job-1-b")]
    made.put([*entries, Entry(name="none.json")])
    serving.show_made(made)

    page = serving.get(FILES, what="foo1", work_id="job-1").json

    assert [one["work_id"] for one in page["files"]] == ["job-1"]


def test_files_of_equal_content_have_ids_of_their_own(serving: Serving, made: MadeArchive) -> None:
    made.put([Entry(name="a.json", content=b"{}"), Entry(name="b.json", content=b"{}")])
    serving.show_made(made)

    for record in listed(serving):
        assert serving.get(record["metadata"]).json == record


@pytest.mark.parametrize(("back", "status"), [(14, 200), (15, 404)])
def test_latest_looks_back_for_fourteen_days(
    serving: Serving, made: MadeArchive, back: int, status: int
) -> None:
    """Folders are days, so that of the first day is looked at as a whole."""
    day = NOW.date() - timedelta(days=back)
    made.put([Entry(name="a.json", start=at(1, day))], day=day)
    serving.show_made(made)

    assert serving.get(LATEST).status == status
    assert serving.get(LATEST, lookback=back * 86_400_000).status == 200


def test_latest_is_of_the_node_that_is_asked_for(serving: Serving, made: MadeArchive) -> None:
    made.put([Entry(name="mine.json", start=at(1))])
    made.put([Entry(name="newer.json", start=at(2))], node="n0")
    serving.show_made(made)

    assert serving.get(LATEST).json["filename"].endswith("/mine.json")


@pytest.mark.parametrize(("ahead_h", "found"), [(24, "ahead"), (24.001, "good")])
def test_latest_takes_files_up_to_a_day_ahead_of_the_clock(
    serving: Serving, made: MadeArchive, ahead_h: float, found: str
) -> None:
    day = NOW.date()
    ahead = NOW + timedelta(hours=ahead_h)
    made.put([Entry(name="ahead", start=ahead), Entry(name="good", start=at(1, day))], day=day)
    serving.show_made(made)

    assert serving.get(LATEST).json["filename"].rpartition("/")[2] == found


class Rejected(NoContents):
    """The row of a rejected file, with the file's bytes."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def raw(self, file: File) -> bytes:
        return json.dumps({"Content": base64.b64encode(self._content).decode()}).encode()


@pytest.mark.parametrize(
    ("name", "kind", "encoding"),
    [
        ("a.json.gz", "application/json", "gzip"),
        ("a.txt", "text/plain; charset=utf-8", None),
        ("a.bin", "application/octet-stream", None),
    ],
)
def test_content_comes_with_its_type_its_encoding_and_its_hash(
    serving: Serving, made: MadeArchive, name: str, kind: str, encoding: str | None
) -> None:
    packed = gzip.compress(b"{}")
    made.put([Entry(name=name)], datatype="rejected1")
    serving.show_made(made, contents=Rejected(packed))
    (record,) = listed(serving, what="rejected1")

    answer = serving.get(record["data"])

    assert answer.body == packed
    assert answer.headers["content-type"] == kind
    assert answer.headers.get("content-encoding") == encoding
    assert answer.headers["etag"] == f'"{record["hash"]}"'
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_what_could_not_be_searched_is_reported(serving: Serving, made: MadeArchive) -> None:
    """Beside what was found, and in the server's health."""
    made.put([Entry(name="a.json", start=at(1))])
    damaged = made.put([Entry(name="b.json", start=at(1))], node="n2")
    (made.root / str(damaged)).write_bytes(b"no gzip")
    serving.show_made(made)

    page = serving.get(FILES, **ALL_DAY).json
    health = serving.get("/health/").json

    assert [one["filename"] for one in page["files"]] == ["2026/01/02/a.json"]
    assert len(page["problems"]) == 1
    assert f"{damaged} is not gzip" in page["problems"][0]
    assert health["status"] == "degraded"
    assert f"{damaged} is not gzip" in health["problems"][0]


def test_the_server_says_what_it_is(serving: Serving, made: MadeArchive) -> None:
    serving.show_made(made)

    assert serving.get("/v0/environment/").json == {
        "name": "jostler",
        "version": build.version(),
        "commit": build.commit(),
        "archive": "gs://archive/exp",
        "now": to_ms(NOW),
    }
    assert serving.get("/health/").json == {"status": "ok", "problems": []}


def test_a_bug_is_answered_without_a_word_about_the_inside(
    serving: Serving, made: MadeArchive
) -> None:
    """As JSON in the API, as a page elsewhere; the next request is answered."""

    class Buggy(NoContents):
        def raw(self, file: File) -> bytes:
            raise LookupError("secret inside")

    made.put([Entry(name="a.json")])
    serving.show_made(made, contents=Buggy())
    (record,) = listed(serving)

    for path in (record["data"], f"/file/{record['id']}"):
        answer = serving.get(path)
        assert answer.status == 500
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
    assert serving.get(record["data"]).json["code"] == "Failed"
    assert serving.get(f"/file/{record['id']}").headers["content-type"].startswith("text/html")
    assert serving.get("/health/").status == 200


def test_a_request_with_two_names_is_refused(serving: Serving, made: MadeArchive) -> None:
    """A proxy and this server might each believe another one of them."""
    serving.show_made(made)
    with closing(http.client.HTTPConnection("127.0.0.1", serving.port, timeout=100)) as connection:
        connection.putrequest("GET", "/health/", skip_host=True)
        for host in ("localhost", "evil.example.com"):
            connection.putheader("Host", host)
        connection.endheaders()

        assert connection.getresponse().status in {400, 421}


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/day/foo1/2026-02-31", "is not a day"),
        ("/node/n1?day=yesterday", "is not a day"),
        ("/bundle/x", "no such bundle"),
        ("/file/x", "no file with this id"),
        ("/nowhere", "no such page"),
    ],
)
def test_a_page_of_something_that_is_not_there_says_so(
    serving: Serving, made: MadeArchive, path: str, told: str
) -> None:
    made.put([Entry(name="a.json")], day=DAY)
    serving.show_made(made)

    answer = serving.get(path)

    assert (answer.status, told in answer.text) == (404, True)
