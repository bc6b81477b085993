"""What a table's columns are, and whether a document fits them as a BigQuery load job judges."""

from jostler.schema.columns import INDEX1_FIELDS, REJECTED1_FIELDS, table_schema
from jostler.schema.fields import Field, Fields, Mode, fields_from_api, fields_to_api, to_json
from jostler.schema.flaw import Flaw, Reason
from jostler.schema.judge import Judge, json_object_flaw

__all__ = [
    "INDEX1_FIELDS",
    "REJECTED1_FIELDS",
    "Field",
    "Fields",
    "Flaw",
    "Judge",
    "Mode",
    "Reason",
    "fields_from_api",
    "fields_to_api",
    "json_object_flaw",
    "table_schema",
    "to_json",
]
