"""Columns as values: written and read back, standard columns around a datatype's own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from jostler.schema import (
    INDEX1_FIELDS,
    REJECTED1_FIELDS,
    Field,
    Fields,
    Mode,
    fields_from_api,
    fields_to_api,
    table_schema,
    to_json,
    warnings,
)
from tests.unit.schema import documents

EVERYTHING = [
    {"name": "s", "type": "STRING", "mode": "REQUIRED", "maxLength": "9", "collation": "und:ci"},
    {
        "name": "n",
        "type": "NUMERIC",
        "mode": "NULLABLE",
        "precision": "5",
        "scale": "0",
        "roundingMode": "ROUND_HALF_EVEN",
        "defaultValueExpression": "1",
        "policyTags": {"names": ["a/b"]},
    },
    {"name": "r", "type": "RANGE", "mode": "NULLABLE", "rangeElementType": {"type": "DATE"}},
    {
        "name": "rec",
        "type": "RECORD",
        "mode": "REPEATED",
        "description": "d",
        "fields": [{"name": "x", "type": "JSON", "mode": "NULLABLE"}],
    },
]


@settings(max_examples=100, deadline=None)
@given(documents.fields())
def test_columns_read_back_as_they_were_written(columns: Fields) -> None:
    """Writing columns for REST or as JSON and reading them gives the same columns."""
    assert fields_from_api(fields_to_api(columns)) == columns
    assert fields_from_api(json.loads(to_json(columns))) == columns


def test_no_key_of_a_column_is_lost() -> None:
    """Parameters, tags and descriptions come out as they went in."""
    assert fields_to_api(fields_from_api(EVERYTHING)) == EVERYTHING


def test_aliases_and_missing_modes_make_equal_columns() -> None:
    """What the service returns and what an operator writes are one value."""
    ours = fields_from_api([{"name": "a", "type": "int64"}])

    assert ours == fields_from_api([{"name": "a", "type": "INTEGER", "mode": "NULLABLE"}])


def test_the_standard_columns_surround_a_datatype() -> None:
    """A table is date, archiver and raw, and raw holds the datatype's fields."""
    date, archiver, raw = table_schema((Field(name="a", type="STRING"),))

    assert (date.name, date.type) == ("date", "DATE")
    assert [f.name for f in archiver.fields] == ["Version", "GitCommit", "ArchiveURL", "Filename"]
    assert [f.name for f in raw.fields] == ["a"]


@pytest.mark.parametrize("fields", [INDEX1_FIELDS, REJECTED1_FIELDS])
def test_our_own_tables_need_no_warning(fields: Fields) -> None:
    """Every column of index1 and rejected1 is described and NULLABLE."""
    assert warnings(table_schema(fields)) == []
    assert {field.mode for field in fields} == {Mode.NULLABLE}
