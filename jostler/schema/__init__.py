"""The columns of a table, and the check whether a BigQuery load job accepts a document as a row."""

from jostler.schema.asset import Asset, Assets, parse_asset_file
from jostler.schema.columns import INDEX1_FIELDS, REJECTED1_FIELDS, table_schema
from jostler.schema.compare import Comparison, Relation, compare, merged
from jostler.schema.datatype import parse_datatype_schema
from jostler.schema.fields import Field, Fields, Mode, fields_from_api, fields_to_api, to_json
from jostler.schema.flaw import Flaw, Reason
from jostler.schema.judge import Judge, json_object_flaw, object_judge
from jostler.schema.native import Native, Use
from jostler.schema.show import render, warnings

__all__ = [
    "INDEX1_FIELDS",
    "REJECTED1_FIELDS",
    "Asset",
    "Assets",
    "Comparison",
    "Field",
    "Fields",
    "Flaw",
    "Judge",
    "Mode",
    "Native",
    "Reason",
    "Relation",
    "Use",
    "compare",
    "fields_from_api",
    "fields_to_api",
    "json_object_flaw",
    "merged",
    "object_judge",
    "parse_asset_file",
    "parse_datatype_schema",
    "render",
    "table_schema",
    "to_json",
    "warnings",
]
