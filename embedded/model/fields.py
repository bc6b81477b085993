"""A table's columns: read them from the REST API's form, check them, and write them back.

**Invariant:** a `Field` is a column that BigQuery would create and that the database can store.

A column that cannot be stored is refused when its table is created, before any row.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from embedded.model.wire import Json

# "TableFieldSchema.type" accepts both spellings; replies have the legacy ones, such as INTEGER.
SPELLINGS = {
    "INT64": "INTEGER",
    "FLOAT64": "FLOAT",
    "BOOL": "BOOLEAN",
    "STRUCT": "RECORD",
    "DECIMAL": "NUMERIC",
    "BIGDECIMAL": "BIGNUMERIC",
}
_TYPES = """
STRING BYTES INTEGER FLOAT NUMERIC BIGNUMERIC BOOLEAN TIMESTAMP DATE TIME DATETIME JSON
RECORD
"""
TYPES = frozenset(_TYPES.split())
KNOWN_ELSEWHERE = frozenset({"GEOGRAPHY", "INTERVAL", "RANGE"})
MODES = frozenset({"NULLABLE", "REQUIRED", "REPEATED"})
KEYS = frozenset(
    [
        *("name", "type", "mode", "fields", "description"),
        *("maxLength", "precision", "scale", "defaultValueExpression"),
    ]
)
# "Column names", https://docs.cloud.google.com/bigquery/docs/schemas#column_names
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")
FORBIDDEN = (
    "_table_", "_file_", "_partition", "_row_timestamp", "__root__", "_colidentifier",
    "_change_sequence_number", "_change_type", "_change_timestamp",
)  # fmt: skip
MAX_DESCRIPTION = 1024
MAX_DEPTH = 15  # levels of RECORDs ("Quotas: tables"); their columns are one deeper
MAX_COLUMNS = 10_000  # including nested columns ("Quotas: tables")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One column; length, precision and scale are 0 if the schema does not limit them.

    `default` is the GoogleSQL expression of its default value; "" for NULL.
    """

    name: str
    type: str
    mode: str = "NULLABLE"
    description: str = ""
    fields: tuple[Field, ...] = ()
    max_length: int = 0
    precision: int = 0
    scale: int = 0
    default: str = ""

    @property
    def repeated(self) -> bool:
        """Whether the column's values are arrays."""
        return self.mode == "REPEATED"

    def to_api(self) -> Json:
        """Return the TableFieldSchema; the REST API writes its int64 values as strings."""
        api: Json = {"name": self.name, "type": self.type, "mode": self.mode}
        if self.description:
            api["description"] = self.description
        if self.default:
            api["defaultValueExpression"] = self.default
        if self.fields:
            api["fields"] = [sub.to_api() for sub in self.fields]
        for key, number in (
            ("maxLength", self.max_length),
            ("precision", self.precision),
            ("scale", self.scale),
        ):
            if number:
                api[key] = str(number)
        return api


def from_api(schema: Json) -> tuple[Field, ...]:
    """Return the columns of a TableSchema.

    Raises:
        ApiError: BigQuery would refuse the schema, or a column cannot be stored here.
    """
    fields = _columns(schema.get("fields") or [], "", 0)
    if (number := _number(fields)) > MAX_COLUMNS:
        raise invalid(f"Too many columns: {number}. At most {MAX_COLUMNS} are allowed.")
    return fields


def _number(fields: tuple[Field, ...]) -> int:
    """Count columns as BigQuery's quota does: RECORDs and the columns in them."""
    return len(fields) + sum(_number(field.fields) for field in fields)


def to_api(fields: tuple[Field, ...]) -> Json:
    """Return columns as a TableSchema."""
    return {"fields": [field.to_api() for field in fields]}


def _columns(items: list[Json], path: str, depth: int) -> tuple[Field, ...]:
    if items and depth > MAX_DEPTH:
        raise invalid(f"Field {path.rstrip('.')} is nested too deep: at most {MAX_DEPTH} levels")
    fields = tuple(_column(item, path, depth) for item in items)
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:  # column names are case-insensitive
            raise invalid(f"Duplicate field name: {path}{field.name}")
        seen.add(field.name.lower())
    return fields


def _column(api: Json, path: str, depth: int) -> Field:
    name = str(api.get("name") or "")
    where = path + name
    _check_name(name, where)
    spelt = str(api.get("type") or "").upper()
    kind = SPELLINGS.get(spelt, spelt)
    if kind in KNOWN_ELSEWHERE:
        raise unsupported(f"Type {kind} of field {where}")
    if kind not in TYPES:
        raise invalid(f"Invalid value for type: {api.get('type')} is not a valid value ({where})")
    mode = str(api.get("mode") or "NULLABLE").upper()
    if mode not in MODES:
        raise invalid(f"Invalid value for mode: {api.get('mode')} is not a valid value ({where})")
    _check_keys(api, where)
    fields = _columns(api.get("fields") or [], f"{where}.", depth + 1)
    if (kind == "RECORD") != bool(fields):
        problem = "has no fields" if kind == "RECORD" else "is not a RECORD but has fields"
        raise invalid(f"Field {where} of type {kind} {problem}")
    field = Field(
        name=name,
        type=kind,
        mode=mode,
        description=str(api.get("description") or ""),
        fields=fields,
        max_length=int(api.get("maxLength") or 0),
        precision=int(api.get("precision") or 0),
        scale=int(api.get("scale") or 0),
        default=str(api.get("defaultValueExpression") or ""),
    )
    _check_parameters(field, where)
    return field


def _check_name(name: str, where: str) -> None:
    if not NAME.fullmatch(name) or name.lower().startswith(FORBIDDEN):
        raise invalid(
            f'Invalid field name "{where}". Fields must contain only letters, numbers, and '
            "underscores, start with a letter or underscore, and be at most 300 characters long."
        )


def _check_keys(api: Json, where: str) -> None:
    for key, value in api.items():
        if key not in KEYS and value not in (None, "", {}, []):
            raise unsupported(f"{key} of field {where}")
    if len(str(api.get("description") or "")) > MAX_DESCRIPTION:
        raise invalid(f"Description of field {where} is too long: at most {MAX_DESCRIPTION}")


def _check_parameters(field: Field, where: str) -> None:
    """Check precision, scale and maximum length against the ranges of "TableFieldSchema"."""
    if field.max_length and field.type not in {"STRING", "BYTES"}:
        raise invalid(f"maxLength is not allowed for field {where} of type {field.type}")
    if not field.precision and not field.scale:
        return
    limits = {"NUMERIC": (29, 9), "BIGNUMERIC": (38, 38)}.get(field.type)
    if limits is None:
        raise invalid(f"precision is not allowed for field {where} of type {field.type}")
    whole, scale = limits
    if not (field.scale <= scale and 1 <= field.precision - field.scale <= whole):
        raise invalid(f"Invalid precision or scale of field {where}")
