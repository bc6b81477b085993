"""The operator sees the table as a tree, and what to look at twice."""

from __future__ import annotations

from hypothesis import given, settings

from jostler.schema import Field, Fields, Mode, render, table_schema, warnings
from tests.unit.schema import documents

SAMPLES = Field(
    name="Samples",
    type="RECORD",
    mode=Mode.REPEATED,
    description="One per round trip. " * 8,
    fields=(
        Field(name="RTT", type="NUMERIC", precision=5, scale=2, mode=Mode.REQUIRED),
        Field(name="_partition", type="RANGE", range_element="DATE", description="d"),
    ),
)


def test_the_tree_shows_every_column() -> None:
    """Name, type with parameters, mode and description stand in columns."""
    lines = render((SAMPLES,)).splitlines()

    assert lines[0].split() == ["column", "type", "mode", "description"]
    assert lines[1].startswith("Samples        RECORD         repeated  One per round trip.")
    assert "├─ RTT         NUMERIC(5, 2)  required" in lines
    assert lines[-1] == "└─ _partition  RANGE<DATE>              d"


def test_warnings_name_what_is_refused_or_regretted() -> None:
    """REQUIRED, forbidden names, RANGE and missing descriptions are listed with their paths."""
    found = warnings((SAMPLES,))

    assert [line.split(":")[0] for line in found] == [
        "Samples[].RTT",
        "Samples[]._partition",
        "Samples[]._partition",
        "no description",
    ]
    assert found[-1] == "no description: Samples[].RTT"


@settings(max_examples=100, deadline=None)
@given(documents.fields())
def test_any_table_fits_a_hundred_columns(columns: Fields) -> None:
    """No line is wider than a terminal, and each column has its line."""
    lines = render(table_schema(columns)).splitlines()

    assert max(map(len, lines)) <= 100
