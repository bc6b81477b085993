"""Write values as the REST API does: each scalar as a string, a record as `{"f": [{"v": …}]}`.

**Invariant:** the official client reads from a cell the value that DuckDB has.

Values that cannot be written do not occur here: `results` refuses them when the query runs.
Source: "TableDataList" and "DataFormatOptions" of the REST reference.
"""

from __future__ import annotations

import base64
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

import orjson

from embedded.model.columns import readable

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

    from embedded.model.fields import Field
    from embedded.model.wire import Call, Json

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - DuckDB hands instants over as naive UTC
PAGE_BYTES = 8 << 20  # a reply is at most about 10 MB
PAGE_ROWS = 50_000
FETCH_ROWS = 500


class Stamps(StrEnum):
    """The forms of a TIMESTAMP in a cell ("DataFormatOptions")."""

    FLOAT = "FLOAT64"  # seconds, the API's own default
    INT = "INT64"  # microseconds
    ISO = "ISO8601_STRING"


def stamps(options: Mapping[str, Any]) -> Stamps:
    """Return the form of TIMESTAMPs that a DataFormatOptions object selects."""
    if str(options.get("useInt64Timestamp", "")).lower() == "true":
        return Stamps.INT
    wanted = str(options.get("timestampOutputFormat") or "")
    return Stamps(wanted) if wanted in set(Stamps) else Stamps.FLOAT


def stamps_of(call: Call) -> Stamps:
    """Return the form of TIMESTAMPs that a request's query string selects."""
    prefix = "formatOptions."
    return stamps(
        {k.removeprefix(prefix): v for k, v in call.query.items() if k.startswith(prefix)}
    )


def read_page(
    cursor: duckdb.DuckDBPyConnection,
    source: str,
    fields: tuple[Field, ...],
    *,
    start: int,
    limit: int,
    how: Stamps,
) -> list[orjson.Fragment]:
    """Return rows as cells, from row `start` in the order of insertion, until the page is full.

    Args:
        cursor: the connection to read with.
        source: the DuckDB table, and a WHERE clause if needed.
        fields: the columns to return.
        start: the number of rows to skip.
        limit: the maximum number of rows.
        how: the form of TIMESTAMPs.
    """
    wanted = ", ".join(readable(str, field) for field in fields)
    count = min(limit, PAGE_ROWS)
    cursor.execute(
        f"SELECT {wanted} FROM {source} ORDER BY rowid LIMIT {count} OFFSET {start}"  # noqa: S608
    )
    page: list[orjson.Fragment] = []
    size = 0
    while size < PAGE_BYTES and (rows := cursor.fetchmany(FETCH_ROWS)):
        for row in rows:
            text = orjson.dumps(_record(fields, row, how))
            page.append(orjson.Fragment(text))
            size += len(text)
            if size >= PAGE_BYTES:
                break
    return page


def _record(fields: tuple[Field, ...], values: tuple[object, ...], how: Stamps) -> Json:
    return {"f": [_cell(f, value, how) for f, value in zip(fields, values, strict=True)]}


def _cell(field: Field, value: object, how: Stamps) -> Json:
    if field.repeated:
        items = cast("list[object]", value or [])
        return {"v": [{"v": _one(field, item, how)} for item in items]}
    return {"v": _one(field, value, how)}


def _one(field: Field, value: object, how: Stamps) -> object:
    if value is None:
        return None
    if field.type == "RECORD":
        record = cast("dict[str, object]", value)
        return _record(field.fields, tuple(record.values()), how)
    return _text(value, how, is_instant=field.type == "TIMESTAMP")


def _text(value: object, how: Stamps, *, is_instant: bool) -> str:
    if isinstance(value, datetime):
        return _instant(value, how) if is_instant else value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return _number(value)


def _number(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Decimal):
        text = f"{value:f}"  # Decimal.normalize() would round to the context's 28 digits
        return text.rstrip("0").rstrip(".") if "." in text else text
    return str(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _instant(value: datetime, how: Stamps) -> str:
    since = value - EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if how is Stamps.INT:
        return str(micros)
    if how is Stamps.ISO:
        return value.replace(tzinfo=UTC).isoformat().replace("+00:00", "Z")
    return f"{Decimal(micros).scaleb(-6):f}"
