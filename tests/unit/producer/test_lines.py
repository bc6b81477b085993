"""The rows of a file, and the line on which a field stands."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostler.errors import RecordError
from jostler.producer.lines import Line, Splitter, ending, lines, opened
from jostler.producer.position import line_of


@given(st.lists(st.sampled_from([b"{}", b" ", b"", b"abc", b"x" * 9]), max_size=9), st.data())
def test_rows_are_the_same_however_their_bytes_come(
    parts: list[bytes], data: st.DataObject
) -> None:
    """With the numbers of their lines; long ones are counted, and their bytes handed on."""
    most = 6
    whole = b"\n".join(parts)
    dropped: list[bytes] = []
    splitter = Splitter(most, dropped.append)
    found: list[Line] = []
    rest = whole
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        found += splitter.feed(rest[:size])
        rest = rest[size:]
    found += splitter.end()
    expected = [(n, part) for n, part in enumerate(parts, 1) if part.strip()]
    assert [(line.number, line.size) for line in found] == [(n, len(p)) for n, p in expected]
    held = [line for line in found if line.content]
    assert [line.content for line in held] == [dict(expected)[line.number] for line in held]
    lost = b"".join(part + b"\n" for n, part in expected if n not in {e.number for e in held})
    assert b"".join(dropped) == lost


def test_a_byte_order_mark_and_carriage_returns_belong_to_no_row() -> None:
    """As Windows writes them."""
    found = lines(io.BytesIO(b'\xef\xbb\xbf{"a":1}\r\n{"b":2}\r\n'), 100, "r.jsonl")
    assert [line.content for line in found] == [b'{"a":1}', b'{"b":2}']


@pytest.mark.parametrize("at", [0, 20, -6])
def test_a_damaged_file_is_told_by_name(at: int) -> None:
    """In its head, its middle, its checksum."""
    packed = bytearray(gzip.compress(b'{"Rate":1}\n' * 1000))
    packed[at] ^= 0xFF
    stream = opened(io.BytesIO(bytes(packed)), "r.jsonl.gz")
    with pytest.raises(RecordError, match=r"r\.jsonl\.gz: cannot be decompressed"):
        list(lines(stream, 100, "r.jsonl.gz"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.jsonl", ".jsonl"), ("a.NDJSON.gz", ".ndjson.gz"), ("a.json", ""), ("jsonl", "")],
)
def test_files_of_rows_are_known_by_their_names(name: str, expected: str) -> None:
    """Also in capitals."""
    assert ending(name).lower() == expected


_values = st.recursive(
    st.integers() | st.text(st.characters(codec="utf-8"), max_size=5) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "B", "c1"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["a", "B", "c1"]), _values, min_size=1), st.data())
def test_the_line_of_a_field_is_that_of_its_value(
    document: dict[str, Any], data: st.DataObject
) -> None:
    """However deep it lies: a mark in its place is on the line that is found."""
    path, value, holder, key = "", document, None, None
    while isinstance(value, dict | list) and value:
        steps = list(value) if isinstance(value, dict) else list(range(len(value)))
        holder, key = value, data.draw(st.sampled_from(steps))
        path += f"[{key}]" if isinstance(value, list) else f".{key}" if path else str(key)
        value = value[key]
        if data.draw(st.booleans()):
            break
    assert holder is not None
    text = json.dumps(document, indent=1)
    found = line_of(text.encode(), path)
    holder[key] = "MARK"
    marked = json.dumps(document, indent=1)
    expected = next(n for n, line in enumerate(marked.splitlines(), 1) if '"MARK"' in line)
    assert found == expected


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (b"\xff\n\n", "a"),
        (b"{\n", "a"),
        (b'{"a":1}', "a"),
        (b"[\n]", "'odd key'"),
        (b'{\n"a":' + b"[" * 100_000, "a[0]"),
    ],
)
def test_what_cannot_be_found_has_no_line(content: bytes, path: str) -> None:
    """No bytes raise an error."""
    assert line_of(content, path) is None


def test_the_line_of_a_missing_field_is_that_of_its_object() -> None:
    """There it should be."""
    assert line_of(b'{\n"a":\n{"b":1}\n}', "a.c") == 3
