"""Detect the schema of NDJSON and CSV from the first 500 rows of the first file.

**Invariant:** each sampled value can be loaded into a column of the detected type.

If a date has a form that BigQuery detects but that cannot be loaded here, that is an error.
Source of the rules: "Using schema auto-detection".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

import orjson

from embedded.load.csvtext import DELIMITERS
from embedded.load.scalars import PLAIN, Flaw
from embedded.model.errors import invalid, unsupported
from embedded.model.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from embedded.load.csvtext import Dialect, Values

SAMPLE = 500
TYPES = ("INTEGER", "FLOAT", "BOOLEAN", "DATE", "TIME", "TIMESTAMP")
WORDS = frozenset(
    {"true", "false"}
)  # a load also accepts others for a BOOLEAN column, such as "1" and "y"
OTHER_DATES = re.compile(r"\d{1,2}[/-]\d{1,2}[/-]\d{4}( .*)?|\d{1,2}:\d{2}:\d{2} \d{4}.*")
NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def detected_json(lines: Iterable[bytes]) -> tuple[Field, ...]:
    """Return the columns of newline-delimited JSON.

    Raises:
        ApiError: the sample does not determine a schema.
    """
    seen = _Seen()
    for line in islice((line for line in lines if line.strip()), SAMPLE):
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue  # the load itself reports this row
        if isinstance(row, dict):
            seen.take(row)
    fields = seen.fields("")
    if not fields:
        raise invalid("Failed to detect the schema: the file holds no rows")
    return fields


@dataclass(slots=True)
class _Seen:
    """The sampled values of one column, or of a whole row."""

    types: set[str] = field(default_factory=set)
    repeated: bool = False
    members: dict[str, _Seen] = field(default_factory=dict)

    def take(self, value: object) -> None:
        """Add a value."""
        if isinstance(value, dict):
            self.types.add("RECORD")
            for name, item in value.items():
                self.members.setdefault(name, _Seen()).take(item)
        elif isinstance(value, list):
            self.repeated = True
            for item in value:
                self.take(item)
        elif isinstance(value, bool):
            self.types.add("BOOLEAN")
        elif isinstance(value, int):
            self.types.add("INTEGER")
        elif isinstance(value, float):
            self.types.add("FLOAT")
        elif isinstance(value, str):
            self.types.add(_type_of(value))

    def fields(self, path: str) -> tuple[Field, ...]:
        """Return the detected columns of a record."""
        return tuple(seen.as_field(name, path) for name, seen in self.members.items())

    def as_field(self, name: str, path: str) -> Field:
        """Return the detected column.

        Raises:
            ApiError: some values are records and others are not, or the records have no fields.
        """
        mode = "REPEATED" if self.repeated else "NULLABLE"
        if "RECORD" not in self.types:
            return Field(name=name, type=_common(self.types), mode=mode)
        if len(self.types) > 1:
            raise invalid(f"Field {path}{name} is a record in one row and a value in another")
        fields = self.fields(f"{path}{name}.")
        if not fields:
            raise unsupported(f"Schema detection of the record {path}{name} without fields")
        return Field(name=name, type="RECORD", mode=mode, fields=fields)


def detected_csv(lines: Iterable[bytes], how: Dialect) -> tuple[tuple[Field, ...], Dialect, bool]:
    """Return the detected columns of CSV, its dialect, and whether it has a header.

    Raises:
        ApiError: the sample does not determine a schema.
    """
    sample = list(islice(lines, SAMPLE))
    how = replace(how, newlines=True)  # line ends in quoted values are detected, too
    if not how.delimiter:
        # The sort is stable: of equally frequent delimiters, the first one counts (the comma).
        how = replace(how, delimiter=max(DELIMITERS, key=lambda mark: _width(sample, how, mark)))
    rows = [row for _, row in how.rows(sample) if not isinstance(row, Flaw)]
    rows = rows[max((how.skip or 0) - 1, 0) :]
    if not rows:
        raise invalid("Failed to detect the schema: the file holds no rows")
    first, rest = rows[0], rows[1:]
    width = max(map(len, rows))
    types = [_common(_types(rest, place)) for place in range(width)]
    has_header = how.skip != 0 and _is_header(first, types)
    if has_header:
        names = [_named(name or f"string_field_{place}") for place, name in enumerate(first)]
        names += [f"string_field_{place}" for place in range(len(names), width)]
    else:
        data = rest if how.skip else rows
        types = [_common(_types(data, place)) for place in range(width)]
        names = [f"{_spoken(kind)}_field_{place}" for place, kind in enumerate(types)]
    fields = tuple(Field(name=name, type=kind) for name, kind in zip(names, types, strict=True))
    skip = how.skip or int(has_header)
    return fields, replace(how, skip=skip), has_header


def fitted(detected: Sequence[Field], stored: Sequence[Field]) -> tuple[Field, ...]:
    """Return detected columns with the types of the table's columns, and then the new columns."""
    known = {column.name.lower(): column for column in stored}
    found = []
    for column in detected:
        old = known.pop(column.name.lower(), None)
        if old is not None and old.type == column.type == "RECORD":
            old = replace(old, fields=fitted(column.fields, old.fields))
        found.append(old or column)
    return (*found, *known.values())


def _width(sample: list[bytes], how: Dialect, mark: str) -> int:
    first = next((row for _, row in replace(how, delimiter=mark).rows(sample)), [])
    return 0 if isinstance(first, Flaw) else len(first)


def _types(rows: Sequence[Values], place: int) -> set[str]:
    cells = (row[place] for row in rows if place < len(row))
    return {_type_of(cell) for cell in cells if cell}


def _is_header(first: Values, types: list[str]) -> bool:
    """Say whether the first row has only strings and another row has other values."""
    strings = all(value is None or _type_of(value) == "STRING" for value in first)
    return strings and any(kind != "STRING" for kind in types[: len(first)])


def _type_of(text: str) -> str:
    for kind in TYPES:
        if kind == "BOOLEAN" and text.lower() not in WORDS:
            continue
        try:
            PLAIN[kind](text, "")
        except Flaw:
            continue
        return kind
    if OTHER_DATES.fullmatch(text):
        raise unsupported(f"Schema detection of the date {text!r} (give the job a schema)")
    return "STRING"


def _common(types: set[str]) -> str:
    if len(types) == 1:
        return next(iter(types))
    if types == {"INTEGER", "FLOAT"}:
        return "FLOAT"
    if types == {"DATE", "TIMESTAMP"}:
        raise unsupported("Schema detection of a column of dates and timestamps")
    return "STRING"


def _spoken(kind: str) -> str:
    return {"INTEGER": "int64", "FLOAT": "double", "BOOLEAN": "bool"}.get(kind, kind.lower())


def _named(text: str) -> str:
    name = NO_NAME.sub("_", text.strip())
    return f"_{name}" if name[:1].isdigit() else name
