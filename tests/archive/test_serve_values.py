"""What the archive's server makes of texts: tokens, times, downloads, searches."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from jostler.archive.catalogue import File, Position, Query
from jostler.archive.serve import times
from jostler.archive.serve.contents import download
from jostler.archive.serve.pages.file import pretty
from jostler.archive.serve.pages.layout import shade
from jostler.archive.serve.pages.search import readings
from jostler.archive.serve.tokens import BundleId, FileId, cursor, parse_cursor
from tests.support.archive import FILE, ORIGIN

TEXT = st.text(max_size=60)
DAYS = st.dates(date(2000, 1, 1), date(2099, 12, 31))
FIRST, LAST = date(2026, 1, 1), date(2026, 2, 5)


@given(TEXT, TEXT, TEXT, TEXT, DAYS)
def test_a_file_s_token_names_the_file_again(
    digest: str, node: str, filename: str, datatype: str, day: date
) -> None:
    wanted = FileId(digest, node, filename, datatype, day)

    assert FileId.parse(str(wanted)) == wanted


@given(TEXT, DAYS, st.integers(0, 2**40))
def test_a_cursor_is_the_position_again(name: str, day: date, line: int) -> None:
    assert parse_cursor(cursor(Position(day, name, line))) == Position(day, name, line)


@given(st.text(max_size=200))
def test_any_other_text_is_no_token(text: str) -> None:
    for parse in (FileId.parse, BundleId.parse, parse_cursor):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert text == (cursor(found) if isinstance(found, Position) else str(found))


def test_a_token_has_one_spelling_and_a_bound() -> None:
    """What a lenient reader would take for the same, and what no name can be, is refused."""
    token = str(FileId.of(FILE))
    spaced = base64.urlsafe_b64encode(base64.urlsafe_b64decode(token + "==") + b" ").decode()
    long = str(FileId("", "n1", "x" * 4096, "foo1", FIRST))
    for other in (f"{token}=", spaced.rstrip("="), long):
        with pytest.raises(ValueError, match="token"):
            FileId.parse(other)


def test_files_of_one_name_and_other_content_have_tokens_of_their_own() -> None:
    other = structs.replace(FILE, hash="0f" * 16)

    assert FileId.of(FILE).is_of(FILE)
    assert not FileId.of(FILE).is_of(other)


@given(st.integers(-10, 4_102_444_800_000))
def test_milliseconds_are_the_instant_again(ms: int) -> None:
    try:
        when = times.from_ms(str(ms))
    except ValueError:
        assert not 946_598_400_000 <= ms <= 4_102_531_200_000
        return
    assert times.to_ms(when) == ms
    assert times.to_ms(times.end_of(str(ms))) == ms


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1e3", "0x1", "\u0661" * 13, "9" * 400, "-1", "1_0"]
)
def test_other_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="milliseconds"):
        times.from_ms(text)


def a_file(name: str, datatype: str) -> File:
    origin = replace(ORIGIN, datatype=datatype)
    return structs.replace(FILE, filename=f"2026/01/02/{name}", origin=origin)


@pytest.mark.parametrize(
    ("name", "content_type", "encoding"),
    [
        ("a.json", "application/json", ""),
        ("a.json.gz", "application/json", "gzip"),
        ("a.txt", "text/plain", ""),
        ("a.bin", "application/octet-stream", ""),
        ("a.tar.bz2", "application/octet-stream", ""),
        ("a", "application/octet-stream", ""),
    ],
)
def test_a_rejected_file_is_delivered_with_its_own_bytes(
    name: str, content_type: str, encoding: str
) -> None:
    raw = json.dumps({"Content": base64.b64encode(b"\x00not json").decode()}).encode()

    found = download(a_file(name, "rejected1"), raw)

    assert found == (b"\x00not json", content_type, encoding)


@pytest.mark.parametrize("raw", [b"{}", b'{"Content":1}', b'{"Content":"?"}', b"no json"])
def test_a_rejected_row_without_content_is_delivered_as_it_is(raw: bytes) -> None:
    assert download(a_file("a.json", "rejected1"), raw) == (raw, "application/json", "")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"a":1,"b":[2]}', '{\n  "a": 1,\n  "b": [\n    2\n  ]\n}'),
        (b'{"a":1.50}', '{"a":1.50}'),
        (b'{"a":1E2}', '{"a":1E2}'),
        (b'{"a":123456789012345678901}', '{"a":123456789012345678901}'),
        (b'{"a":1,"a":2}', '{"a":1,"a":2}'),
        (b"\xff", r"\xff"),
    ],
)
def test_pretty_changes_white_space_only(raw: bytes, said: str) -> None:
    assert pretty(raw) == said


@pytest.mark.parametrize(
    ("text", "start", "span"),
    [
        ("2026-01-02", "2026-01-02T00:00:00+00:00", timedelta(days=1)),
        ("2026-01-02T03", "2026-01-02T03:00:00+00:00", timedelta(hours=1)),
        ("2026-01-02 03:04", "2026-01-02T03:04:00+00:00", timedelta(minutes=1)),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00", timedelta(seconds=1)),
        ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901+00:00", timedelta(seconds=1)),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05+00:00", timedelta(seconds=1)),
    ],
)
def test_a_time_means_the_span_that_it_names(text: str, start: str, span: timedelta) -> None:
    (found,) = readings(text, FIRST, LAST)

    begin = datetime.fromisoformat(start)
    assert found.query == Query(start=begin, end=begin + span - timedelta(microseconds=1))


def test_a_text_is_read_as_all_that_it_may_be() -> None:
    def said(text: str) -> list[str]:
        return [reading.description.partition(" ")[0] for reading in readings(text, FIRST, LAST)]

    assert said("ab" * 16) == ["with"]
    assert said("job-7") == ["named", "of"]
    assert said("2026/01/02/a*.json") == ["named"]
    assert said("[z-a]") == []
    assert said("2026-02-31") == []
    assert said("  ") == []


@given(st.text(max_size=100))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for reading in readings(text, FIRST, LAST):
        reading.query.days()


def test_a_square_is_darker_for_more_files_and_never_blank_for_some() -> None:
    assert [shade(files, 1000) for files in (0, 1, 200, 201, 999, 1000)] == [0, 1, 1, 2, 5, 5]
    assert shade(0, 0) == 0
