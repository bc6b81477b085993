"""Which fields of two rows differ."""

from __future__ import annotations

import json

import pytest

from loader.bigquery.reference import Counts, differing

ROW = '{"a":{"b":[1,{"c":"x"}],"d":null},"e":1.5}'


@pytest.mark.parametrize(
    ("other", "paths"),
    [
        (ROW, []),
        ('{"a":{"b":[1,{"c":"y"}],"d":0},"e":1.5}', ["a.b[1].c", "a.d"]),
        ('{"a":{"b":[1],"d":null},"e":"1.5"}', ["a.b", "e"]),
        ('{"a":null,"e":1.5,"f":true}', ["a", "f"]),
    ],
)
def test_fields_that_differ_are_named_by_their_path(other: str, paths: list[str]) -> None:
    assert list(differing(json.loads(ROW), json.loads(other))) == paths


def test_counts_of_nothing_are_not_told() -> None:
    assert str(Counts(missing=0, altered=2, doubled=0, surplus=1)) == "2 altered, 1 surplus"
