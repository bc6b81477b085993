"""`Spool.put`: judged as the agent judges, named as the agent wants, in the right day."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

import pytest

from jostler.errors import SchemaError
from jostler.format.names import check_file_name
from jostler.producer import NameTakenError, RefusedError, Spool
from jostler.producer.naming import NAME_MAX, other_name, row_stem, safe_name, timed_name
from tests.support.spool import DATATYPE, EXPERIMENT, document
from tests.support.spool import Spool as Directories

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def directories(tmp_path: Path) -> Directories:
    return Directories(tmp_path / "spool")


@pytest.fixture
def spool(directories: Directories) -> Iterator[Spool]:
    with Spool(directories.root, experiment=EXPERIMENT, datatype=DATATYPE) as made:
        yield made


def test_bytes_go_in_untouched(spool: Spool, directories: Directories) -> None:
    """Numbers stay as they were written."""
    path = spool.put(b'{ "Rate": 1E2 }\n', name="a.json", day=date(2026, 1, 2))
    assert path == directories.experiment / DATATYPE / "2026/01/02/a.json"
    assert path.read_bytes() == b'{ "Rate": 1E2 }\n'
    assert path.stat().st_mode & 0o444 == 0o444  # the agent may run as another user


def test_values_are_written_as_json(spool: Spool) -> None:
    """Of dicts and of classes; an instant as a TIMESTAMP."""

    @dataclass
    class Result:
        UUID: str
        StartTime: datetime
        Rate: float

    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    path = spool.put(Result(UUID="é", StartTime=when, Rate=93.2))
    assert json.loads(path.read_bytes()) == {
        "UUID": "é",
        "StartTime": "2026-01-02T03:04:05Z",
        "Rate": 93.2,
    }
    assert spool.put({"Rate": 1}).read_bytes() == b'{"Rate":1}'


@pytest.mark.parametrize(
    ("bad", "reason", "field"),
    [
        (b'{"Rate":"fast"}', "wrong-type", "Rate"),
        (b'{"Samples":[{"T":1},{"T":1.5}]}', "wrong-type", "Samples[1].T"),
        (b"", "empty", ""),
        (b"[]", "not-object", ""),
        ({"UUID": "\ud800"}, "lone-surrogate", "UUID"),
    ],
)
def test_a_bad_document_is_an_error_and_not_a_file(
    spool: Spool, directories: Directories, bad: object, reason: str, field: str
) -> None:
    """The error has the agent's reason and the field."""
    with pytest.raises(RefusedError) as refused:
        spool.put(bad, name="a.json")
    assert (refused.value.rejection.reason, refused.value.rejection.field) == (reason, field)
    assert directories.left() == []


def test_a_value_that_json_does_not_have_is_an_error(spool: Spool) -> None:
    """NaN would be written as null by many libraries."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        spool.put({"Rate": float("nan")})


def test_a_taken_name_is_an_error_unless_renamed(spool: Spool) -> None:
    """And the same content is there already."""
    day = date(2026, 1, 2)
    first = spool.put(document(1), name="a.json", day=day)
    assert spool.put(document(1), name="a.json", day=day) == first
    with pytest.raises(NameTakenError):
        spool.put(document(2), name="a.json", day=day)
    other = spool.put(document(2), name="a.json", day=day, rename=True)
    assert (first.read_bytes(), other.read_bytes()) == (document(1), document(2))


def test_the_day_is_the_given_one_else_that_of_the_start_else_today(
    directories: Directories,
) -> None:
    """A Start that cannot be read, or is of another century, gives today."""

    def folder(content: bytes, day: date | None = None) -> str:
        path = spool.put(content, day=day)
        return str(path.relative_to(directories.experiment / DATATYPE).parent)

    with Spool(
        directories.root,
        experiment=EXPERIMENT,
        datatype=DATATYPE,
        index_fields=["Start=StartTime"],
    ) as spool:
        start = b'{"StartTime":"2025-12-31T23:59:59+00:00"}'
        assert folder(start) == "2025/12/31"
        assert folder(start, date(2024, 2, 29)) == "2024/02/29"
        for content in (b"{}", b'{"StartTime":"1999-01-01T00:00:00Z"}'):
            before = datetime.now(UTC).date()
            found = folder(content)
            assert found in {f"{day:%Y/%m/%d}" for day in (before, datetime.now(UTC).date())}
        with pytest.raises(ValueError, match="2000 to 2099"):
            spool.put(b"{}", day=date(1999, 1, 1))


def test_wrong_use_is_reported(directories: Directories) -> None:
    """By name of the file, the datatype, the column."""
    with pytest.raises(SchemaError, match=r"other\.json"):
        Spool(directories.root, experiment=EXPERIMENT, datatype="other")
    with pytest.raises(ValueError, match="jostler's own"):
        Spool(directories.root, experiment=EXPERIMENT, datatype="index1")
    with pytest.raises(ValueError, match="none of the columns"):
        Spool(
            directories.root, experiment=EXPERIMENT, datatype=DATATYPE, index_fields=["Begin=Rate"]
        )


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("a.json", "a.json"),
        ("20260102T030405.123Z_é ü.json", "20260102T030405.123Z_-.json"),
        ("..hidden.json", "hidden.json"),
        ("a..b", "a.b.json"),
        ("a.", "a.json"),
        ("", "file.json"),
        (".json", "file.json"),
        ("\udcff.json", "-.json"),
    ],
)
def test_names_that_the_agent_refuses_are_made_safe(given: str, safe: str) -> None:
    """Others stay as they are."""
    assert safe_name(given) == safe
    assert check_file_name(safe_name(given)) == safe


def test_long_names_are_cut_and_stay_apart() -> None:
    """By a hash of the whole name; the number of a row is never cut off."""
    long, other = "x" * 300 + "1.json", "x" * 300 + "2.json"
    assert len(safe_name(long)) == NAME_MAX
    assert safe_name(long) != safe_name(other)
    assert row_stem("x" * 300 + "1") != row_stem("x" * 300 + "2")
    assert len(f"{row_stem('x' * 300)}.{10**12 - 1}.json") == NAME_MAX
    assert (row_stem("a"), row_stem("a b.")) == ("a", "a-b")
    assert len(other_name("x" * 250 + ".json", b"{}")) <= NAME_MAX


def test_a_timed_name_has_milliseconds_and_a_hash() -> None:
    """The hash is the first 12 characters of the SHA-256 in base32, in lower case."""
    when = datetime(2026, 1, 2, 3, 4, 5, 6789, tzinfo=UTC)
    name = timed_name(when, b"abc", prefix="feed1_", postfix=".gtfs.json")
    assert name == "feed1_20260102T030405.006Z_xj4bnp4pahh6.gtfs.json"
