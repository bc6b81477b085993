"""Types of expressions, and the columns that a question leaves of a schema."""

from __future__ import annotations

from jostler.schema.fields import Field, Mode
from loader.query.googlesql.types import field_of, pruned, type_of

CLIENT = (Field(name="IP", type="STRING"), Field(name="Port", type="INTEGER"))
SCHEMA = (
    Field(name="date", type="DATE"),
    Field(
        name="raw",
        type="RECORD",
        fields=(
            Field(name="Client", type="RECORD", fields=CLIENT),
            Field(name="Samples", type="RECORD", mode=Mode.REPEATED, fields=CLIENT),
            Field(name="When", type="TIMESTAMP"),
        ),
    ),
)


def test_a_schema_is_left_with_what_is_named() -> None:
    """A path keeps all below it; letter case does not count; what no path names is left out."""
    kept = pruned(SCHEMA, [("RAW", "client", "IP"), ("raw", "Samples")])

    assert [field.name for field in kept] == ["raw"]
    client, samples = kept[0].fields
    assert [field.name for field in client.fields] == ["IP"]
    assert samples == SCHEMA[1].fields[1]
    assert pruned(SCHEMA, []) == ()


def test_a_type_is_a_columns_and_the_other_way_round() -> None:
    """A column becomes a type, which names its fields, and the type a column again."""
    kind = type_of(SCHEMA[1])

    assert field_of("raw", kind) == SCHEMA[1]
    assert kind.spark == (
        "STRUCT<`Client`: STRUCT<`IP`: STRING, `Port`: BIGINT>, "
        "`Samples`: ARRAY<STRUCT<`IP`: STRING, `Port`: BIGINT>>, `When`: TIMESTAMP>"
    )
