"""The HTTP API of `jostler serve`, over HTTP, on index objects in a bucket."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.serve.api import ROOT
from jostler.archive.serve.limits import Workers
from jostler.archive.serve.openapi import DOCUMENT
from jostler.archive.serve.times import to_ms
from jostler.errors import TransientError
from tests.support.archive import DAY, Entry, MadeArchive, at
from tests.support.serving import NOW, NoContents, Serving

if TYPE_CHECKING:
    from jostler.archive.catalogue import File

FILES = f"{ROOT}/files/"


def ms(hour: float) -> int:
    """Return an instant of the day in milliseconds."""
    found = to_ms(at(hour))
    assert found is not None
    return found


def names(records: list[dict[str, Any]]) -> list[str]:
    return [record["filename"].rpartition("/")[2] for record in records]


@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [
        ({}, "NoArgs", "the parameters are what"),
        ({"unknown": "1"}, "NoArgs", "the parameters are what"),
        ({"where": "n1"}, "NoWhat", "what=DATATYPE"),
        ({"what": "foo1"}, "NoWorkInterval", "work_id, or both start and end"),
        ({"what": "foo1", "where": "n1"}, "NoWorkInterval", "work_id"),
        ({"what": "foo1", "start": "1"}, "InvalidWorkInterval", "no end"),
        ({"what": "foo1", "end": "1"}, "InvalidWorkInterval", "no start"),
        (
            {"what": "foo1", "work_id": "w", "start": "1", "end": "2"},
            "InvalidWorkInterval",
            "without start and end",
        ),
        ({"what": "foo1", "work_id": "w", "end": "2"}, "InvalidWorkInterval", "without start"),
        (
            {"what": "foo1", "start": ms(2), "end": ms(1)},
            "InvalidWorkInterval",
            "before its start",
        ),
        ({"what": "foo1", "start": "yesterday", "end": ms(1)}, "InvalidTime", "'yesterday'"),
        ({"what": "foo1", "start": "1.5", "end": ms(1)}, "InvalidTime", "milliseconds"),
        ({"what": "foo1", "start": ms(1), "end": "9" * 30}, "InvalidTime", "2000 to 2099"),
        ({"what": "foo1", "work_id": "w", "cursor": "x"}, "InvalidCursor", "token"),
        ({"what": "foo1", "work_id": "w", "cursor": "W10"}, "InvalidCursor", "token"),
    ],
)
def test_a_wrong_question_has_a_code_and_a_sentence(
    serving: Serving, made: MadeArchive, asked: dict[str, object], code: str, told: str
) -> None:
    serving.show_made(made)

    answer = serving.get(FILES, **asked)

    assert answer.status == 400
    assert answer.json["code"] == code
    assert told in answer.json["message"]
    assert set(answer.json) == {"code", "message"}


def test_a_record_has_times_twice_and_finds_its_data(serving: Serving, made: MadeArchive) -> None:
    made.put([Entry(name="a.json", start=at(1), end=at(2), work_id="job-7", size=77)])
    serving.show_made(made)

    page = serving.get(FILES, what="foo1", work_id="JOB-7").json

    (record,) = page["files"]
    assert page["next"] is None
    assert record["what"] == "foo1"
    assert record["where"] == "n1"
    assert (record["start"], record["end"]) == (ms(1), ms(2))
    assert record["start_iso"] == "2026-01-02T01:00:00.000Z"
    assert record["end_iso"] == "2026-01-02T02:00:00.000Z"
    assert (record["work_id"], record["size"]) == ("job-7", 77)
    assert serving.get(record["metadata"]).json == record
    assert serving.get(record["data"]).json == {"name": "a.json"}


def test_a_range_includes_both_ends_to_the_millisecond(serving: Serving, made: MadeArchive) -> None:
    """A record shows whole milliseconds; a range that ends at a record's begin has that record."""
    instants = [at(1), at(2), at(2) + timedelta(microseconds=700), at(3)]
    made.put(Entry(name=f"{number}.json", start=when) for number, when in enumerate(instants))
    serving.show_made(made)

    def found(start: int, end: int) -> list[str]:
        return names(serving.get(FILES, what="foo1", start=start, end=end).json["files"])

    assert found(ms(1), ms(2)) == ["0.json", "1.json", "2.json"]
    assert found(ms(2), ms(2)) == ["1.json", "2.json"]
    assert found(ms(1) + 1, ms(2) - 1) == []
    assert found(ms(3), ms(5)) == ["3.json"]


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_pages_give_each_record_once_and_only_the_last_may_be_empty(
    serving: Serving, made: MadeArchive, count: int
) -> None:
    entries = [Entry(name=f"{n:03}.json", start=at(1)) for n in range(count)]
    half = count // 2
    made.put(entries[:half])
    made.put(entries[half // 2 :])  # half of the first bundle's files once more
    serving.show_made(made)

    pages = [serving.get(FILES, what="foo1", start=ms(0), end=ms(24)).json]
    while pages[-1]["next"]:
        assert len(pages) < 5
        pages.append(serving.get(pages[-1]["next"]).json)

    sizes = [len(page["files"]) for page in pages]
    assert sizes == [100] * (count // 100) + [count % 100] * (count % 100 > 0 or count == 0)
    found = [name for page in pages for name in names(page["files"])]
    assert sorted(found) == [f"{n:03}.json" for n in range(count)]


def test_nodes_are_compared_exactly_and_several_may_be_asked_for(
    serving: Serving, made: MadeArchive
) -> None:
    for node in ("n1", "n10", "n2"):
        made.put([Entry(name=f"of-{node}.json", start=at(1))], node=node)
    made.put([Entry(name="other.json", start=at(1))], datatype="bar1")
    serving.show_made(made)

    def found(**asked: str) -> list[str]:
        page = serving.get(FILES, start=ms(0), end=ms(2), **asked).json
        return sorted(names(page["files"]))

    assert found(what="foo1", where="n1") == ["of-n1.json"]
    assert found(what="foo1", where="n1,n2") == ["of-n1.json", "of-n2.json"]
    assert found(what="foo1,bar1", where="n1") == ["of-n1.json", "other.json"]
    assert found(what="nothing1") == []


def test_latest_passes_over_files_from_the_future_and_looks_back_so_far(
    serving: Serving, made: MadeArchive
) -> None:
    made.put([Entry(name="old.json", start=at(1)), Entry(name="new.json", start=at(9))])
    made.put([Entry(name="future.json", start=NOW + timedelta(hours=25))], day=NOW.date())
    serving.show_made(made)
    path = f"{ROOT}/latest/foo1/n1"

    assert names([serving.get(path).json]) == ["new.json"]
    assert serving.get(path, lookback=1000).json["code"] == "NoSuchFile"
    assert serving.get(f"{ROOT}/latest/foo1/n2").status == 404
    for wrong in ("0", "-1", "x", "1.5", "9" * 20):
        answer = serving.get(path, lookback=wrong)
        assert (answer.status, answer.json["code"]) == (400, "InvalidLookback")


@pytest.mark.parametrize("token", ["x", "W10", "", "%00", "a" * 5000])
def test_an_id_that_names_nothing_is_no_such_file(
    serving: Serving, made: MadeArchive, token: str
) -> None:
    serving.show_made(made)

    for what in ("metadata", "data"):
        answer = serving.get(f"{FILES}{token}/{what}")
        assert answer.status == 404
        assert answer.json["code"] in {"NoSuchFile", "NoSuchPage"}


def test_a_file_that_is_gone_is_no_such_file(serving: Serving, made: MadeArchive) -> None:
    index = made.put([Entry(name="a.json", start=at(1))])
    serving.show_made(made)
    (record,) = serving.get(FILES, what="foo1", start=ms(0), end=ms(2)).json["files"]
    (made.root / str(index)).unlink()
    serving.show_made(made)

    assert serving.get(record["metadata"]).json["code"] == "NoSuchFile"


def test_what_cannot_be_read_is_an_error_and_not_an_empty_answer(
    serving: Serving, made: MadeArchive
) -> None:
    class Flipped(NoContents):
        def raw(self, file: File) -> bytes:
            raise TransientError(f"{file.origin.url} line {file.line}: hash differs")

    made.put([Entry(name="a.json", start=at(1))])
    serving.show_made(made, contents=Flipped())
    (record,) = serving.get(FILES, what="foo1", start=ms(0), end=ms(2)).json["files"]

    answer = serving.get(record["data"])

    assert (answer.status, answer.json["code"]) == (502, "ArchiveError")
    assert "line 1: hash differs" in answer.json["message"]


def test_a_slow_bucket_slows_its_own_page_and_no_other(serving: Serving, made: MadeArchive) -> None:
    """With all places taken by reads that hang, the overview is answered, and reads say so."""
    begun, go_on = threading.Semaphore(0), threading.Event()

    class Hanging(NoContents):
        def raw(self, file: File) -> bytes:
            begun.release()
            assert go_on.wait(60)
            return super().raw(file)

    made.put([Entry(name="a.json", start=at(1))])
    serving.show_made(made, contents=Hanging(), workers=Workers(places=3))
    (record,) = serving.get(FILES, what="foo1", start=ms(0), end=ms(2)).json["files"]
    answers: list[int] = []
    asking = [
        threading.Thread(target=lambda: answers.append(serving.get(record["data"]).status))
        for _ in range(3)
    ]
    for thread in asking:
        thread.start()
    for _ in asking:
        assert begun.acquire(timeout=60)

    refused = serving.get(record["data"])
    overview, datatype = serving.get("/"), serving.get("/datatype/foo1")
    health = serving.get("/health/")
    go_on.set()
    for thread in asking:
        thread.join()

    assert (refused.status, refused.json["code"]) == (503, "Busy")
    assert refused.headers["retry-after"] == "1"
    assert (overview.status, datatype.status, health.json["status"]) == (200, 200, "ok")
    assert answers == [200] * 3
    assert serving.get(record["data"]).status == 200  # the places are free again


def test_a_request_that_takes_too_long_is_given_up_and_keeps_its_place(
    serving: Serving, made: MadeArchive
) -> None:
    go_on = threading.Event()

    class Hanging(NoContents):
        def raw(self, file: File) -> bytes:
            assert go_on.wait(60)
            return super().raw(file)

    made.put([Entry(name="a.json", start=at(1))])
    serving.show_made(made)
    (record,) = serving.get(FILES, what="foo1", start=ms(0), end=ms(2)).json["files"]
    serving.show_made(made, contents=Hanging(), workers=Workers(places=1, timeout_s=0.01))

    first, second = serving.get(record["data"]), serving.get(record["data"])
    go_on.set()

    assert (first.status, first.json["code"]) == (504, "TooSlow")
    assert (second.status, second.json["code"]) == (503, "Busy")


@pytest.mark.parametrize("host", ["evil.example.com", "localhost.evil.com", "a b", ""])
def test_a_foreign_name_is_refused(serving: Serving, made: MadeArchive, host: str) -> None:
    serving.show_made(made)

    answer = serving.get("/v0/environment/", host=host or " ")

    assert answer.status in {400, 421}


@pytest.mark.parametrize("host", ["localhost:80", "127.0.0.1", "[::1]:9", "archive.example.org"])
def test_an_address_and_a_known_name_are_answered(
    serving: Serving, made: MadeArchive, host: str
) -> None:
    serving.show_made(made)

    assert serving.get("/v0/environment/", host=host).json["archive"] == "gs://archive/exp"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(serving: Serving, made: MadeArchive, method: str) -> None:
    serving.show_made(made)

    for path in ("/", FILES, "/search"):
        assert serving.get(path, method=method).status == 405


def test_every_answer_forbids_what_it_does_not_need(serving: Serving, made: MadeArchive) -> None:
    made.put([Entry(name="a.json", start=at(1))])
    serving.show_made(made)
    (record,) = serving.get(FILES, what="foo1", start=ms(0), end=ms(2)).json["files"]

    for path in ("/", "/nowhere", FILES, record["data"], "/v0/nowhere"):
        headers = serving.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in serving.get(record["data"]).headers["content-security-policy"]


def test_an_endless_address_is_refused(serving: Serving, made: MadeArchive) -> None:
    serving.show_made(made)

    assert serving.get(FILES, what="x" * 9000).status == 414


def test_the_description_names_every_path_and_member(serving: Serving, made: MadeArchive) -> None:
    made.put([Entry(name="a.json", start=at(1))])
    serving.show_made(made)
    (record,) = serving.get(FILES, what="foo1", start=ms(0), end=ms(2)).json["files"]
    latest = f"{ROOT}/latest/foo1/n1"
    asked = {
        FILES: (f"{FILES}?what=foo1&start={ms(0)}&end={ms(2)}", "Files"),
        f"{FILES}{{id}}/metadata": (record["metadata"], "File"),
        f"{ROOT}/latest/{{what}}/{{where}}": (latest, "File"),
        "/v0/environment/": ("/v0/environment/", "Environment"),
        "/health/": ("/health/", "Health"),
    }
    without_schema = {f"{FILES}{{id}}/data", "/openapi.json"}

    assert serving.get("/openapi.json").json == DOCUMENT
    assert set(DOCUMENT["paths"]) == asked.keys() | without_schema
    for path, schema in asked.values():
        told = DOCUMENT["components"]["schemas"][schema]
        answer = serving.get(path).json
        assert set(answer) == set(told["properties"]) == set(told["required"])


def test_the_day_is_that_of_the_folder(made: MadeArchive) -> None:
    """The tests above rest on it."""
    assert made.put([Entry(name="a.json")]).day.date == DAY
