"""What fills the index columns: values where they are, null where they are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.bundle.index_fields import IndexField, IndexFields, instant_us, work_id

NAME = "2026/01/02/job7-1700000000.json"
MTIME_NS = 1_600_000_000_987_654_321
MTIME_US = 1_600_000_000_987_654
START_US = 1_700_000_000_123_456


def facts(*sources: str, document: object, name: str = NAME) -> tuple[Any, ...]:
    fields = IndexFields(IndexField.parse(f"foo1:{source}") for source in sources)
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    return tuple(fields.facts(name, raw, MTIME_NS))


def test_a_path_leads_to_the_value() -> None:
    """Through objects, past everything else, for each column."""
    document = {
        "junk": [1, {"Start": 2}],
        "Down": {"x": None, "StartTime": "2023-11-14T22:13:20.123456789Z", "End": 1700000060},
        "Meta": {"Job": {"ID": "Job-7"}},
    }
    sources = ("Start=Down.StartTime", "End=Down.End", "WorkID=Meta.Job.ID")
    assert facts(*sources, document=document) == (START_US, 1_700_000_060_000_000, "job-7")


def test_start_is_the_files_time_only_if_nothing_is_to_fill_it() -> None:
    """A source without a value gives null."""
    assert facts("End=E", document={"E": 1}) == (MTIME_US, 1_000_000, None)
    assert facts("Start=S", document={}) == (None, None, None)


@pytest.mark.parametrize("other", [None, 1, "x", [], [{"S": 1}], True, {"T": 1}])
def test_a_member_of_another_kind_on_the_way_is_null_and_hides_no_other_value(
    other: object,
) -> None:
    """Each value is had for itself."""
    assert facts("Start=A.S", "End=E", document={"A": other, "E": 7}) == (None, 7_000_000, None)


def test_one_path_may_end_where_another_goes_on() -> None:
    """The value of the shorter is an object, and so none."""
    document = {"A": {"B": 5}}
    assert facts("Start=A", "End=A.B", document=document) == (None, 5_000_000, None)


@pytest.mark.parametrize("document", [b"[1]", b"", b"{", b'{"S":' + b"[" * 100_000])
def test_a_document_that_cannot_be_read_has_no_values(document: bytes) -> None:
    """Nothing is raised: -validate json takes more than a schema."""
    job = "WorkID=.*/(?P<j>[^-]+)-~{j}"
    assert facts("Start=S", job, document=document) == (None, None, "job7")


def test_a_translation_takes_the_value_from_the_name() -> None:
    """A time may be text or the digits of a number."""
    start, job = r".*-(?P<s>\d+)\.~{s}", ".*/(?P<job>[a-z0-9]+)-~{job}"
    day = r"(?P<y>\d+)/(?P<m>\d+)/(?P<d>\d+)/~{y}-{m}-{d} 00:00:00"
    found = facts(f"Start={start}", f"End={day}", f"WorkID={job}", document=b"{}")
    assert found == (1_700_000_000_000_000, 1_767_312_000_000_000, "job7")
    assert facts(f"Start={start}", document=b"{}", name="2026/01/02/x.json") == (None, None, None)


@pytest.mark.parametrize(
    ("value", "us"),
    [
        (0, 0),
        (1.5, 1_500_000),
        (-1, -1_000_000),
        (100_000_000_000, 100_000_000_000_000_000),
        (100_000_000_001, 100_000_000_001_000),
        (1_700_000_000_123.4, 1_700_000_000_123_400),
        ("1969-12-31 23:59:59.999999 UTC", -1),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000_000),
        (10**30, None),
        (-(10**12), -(10**15)),
        (float("inf"), None),
        (float("nan"), None),
        (True, None),
        ("1700000000", None),
        ("2023-11-31T00:00:00Z", None),
        ("now", None),
        (None, None),
        ([], None),
        ({}, None),
    ],
)
def test_an_instant_is_text_or_seconds_or_above_a_hundred_billion_milliseconds(
    value: object, us: int | None
) -> None:
    """Everything else is none."""
    assert instant_us(value) == us


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Job_7-a", "job_7-a"),
        ("null", None),
        ("NULL", None),
        ("nulls", "nulls"),
        ("", None),
        ("a b", None),
        ("jöb", None),
        ("a\n", None),
        ("x" * 255, "x" * 255),
        ("x" * 256, None),
        (7, None),
        (None, None),
    ],
)
def test_a_work_id_is_a_word_of_a_few_characters(value: object, expected: str | None) -> None:
    """After lower-casing; never the word null."""
    assert work_id(value) == expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("foo1:Start", "is not DATATYPE:COLUMN=SOURCE"),
        ("Start=A", "is not DATATYPE:COLUMN=SOURCE"),
        (":Start=A", "is not DATATYPE:COLUMN=SOURCE"),
        ("foo1:Start=", "is not DATATYPE:COLUMN=SOURCE"),
        ("foo1:Begin=A", "'Begin' is none of the columns Start, End, WorkID"),
        ("foo1:Start=A..B", "is neither a path"),
        ("foo1:Start=(?P<a>~{a}", "is not a regular expression"),
    ],
)
def test_what_is_wrong_with_a_flag_is_said(text: str, told: str) -> None:
    """An operator mends it before the agent takes a file."""
    with pytest.raises(ValueError, match=told):
        IndexField.parse(text)


def test_values_that_lack_are_counted_by_column() -> None:
    """Only those that a flag was to fill."""
    fields = IndexFields([IndexField.parse("foo1:Start=S"), IndexField.parse("foo1:WorkID=W")])
    assert fields.missing(fields.facts(NAME, b'{"S":1}', MTIME_NS)) == ["WorkID"]
    assert fields.missing(fields.facts(NAME, b"{}", MTIME_NS)) == ["Start", "WorkID"]


keys = st.sampled_from(["A", "B", "C"])
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**13), 10**13) | st.just("x-1"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
paths = st.lists(keys, min_size=1, max_size=3).map(".".join)


@given(st.dictionaries(keys, documents), paths, paths)
def test_the_quick_look_finds_what_a_walk_finds(
    document: dict[str, Any], end: str, work: str
) -> None:
    """Whatever the document is."""

    def walked(path: str) -> object:
        value: Any = document
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    found = facts(f"End={end}", f"WorkID={work}", document=document)
    assert found == (MTIME_US, instant_us(walked(end)), work_id(walked(work)))
