"""What stands in examples/ is good."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from demo.measurements import DATATYPES, measurements
from demo.questions import EXAMPLES
from jostler.schema import Judge, parse_datatype_schema, warnings

if TYPE_CHECKING:
    from pathlib import Path

DAY = date(2026, 1, 2)
SAMPLES = sorted((EXAMPLES / "samples").rglob("*.json"))


def judge(datatype: str) -> Judge:
    path = EXAMPLES / f"{datatype}.json"
    return Judge(parse_datatype_schema(path.read_bytes(), source=str(path)))


def test_there_are_samples_of_each_datatype() -> None:
    """Each has a schema beside it."""
    assert {path.parent.name for path in SAMPLES} == set(DATATYPES)


@pytest.mark.parametrize("datatype", DATATYPES)
def test_each_field_is_described(datatype: str) -> None:
    """At every depth."""
    assert warnings(judge(datatype).fields) == []


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_each_sample_fits_its_schema(path: Path) -> None:
    """A load job would take it."""
    assert judge(path.parent.name).flaw(path.read_bytes()) is None


@pytest.mark.parametrize("datatype", DATATYPES)
def test_each_file_of_the_demo_is_as_it_is_said_to_be(datatype: str) -> None:
    """Good, or bad for the reason it was made with."""
    found = judge(datatype)
    for made in measurements(DAY, 1000):
        if made.datatype == datatype and made.flaw != "empty":
            flaw = found.flaw(made.content)
            assert (flaw.reason if flaw else "") == made.flaw, made.name


def test_each_example_is_told_of() -> None:
    """examples/README.md names every schema and query."""
    told = (EXAMPLES / "README.md").read_text()
    names = [p.name for p in EXAMPLES.iterdir() if p.suffix in {".sql", ".json"}]
    assert [name for name in names if f"`{name}`" not in told] == []
