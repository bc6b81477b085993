"""Instants that are made from other values, and numbers from instants.

These are DATE, TIMESTAMP and DATETIME as functions, the current instant, and those that count
seconds or days since 1970.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from loader.query.errors import Code
from loader.query.googlesql import instants
from loader.query.googlesql.conversions import cast
from loader.query.googlesql.functions.calls import by_signature
from loader.query.googlesql.functions.units import zone_of
from loader.query.googlesql.functions.zoned import KINDS, instant, local, typed
from loader.query.googlesql.positions import refusal
from loader.query.googlesql.types import DATE, DATETIME, INT64, STRING, TIMESTAMP, Type
from loader.query.googlesql.values import Constant, Value, literal

if TYPE_CHECKING:
    from loader.query.googlesql.functions.calls import Call, Function


def _now(kind: Type) -> Function:
    def rule(call: Call) -> Value:
        call.count(0, 1)
        zone = zone_of(call, 0)
        now = call.place.work.now
        place = instants.zone(zone) if zone else UTC
        here = now.astimezone(place).replace(tzinfo=None)
        if kind == TIMESTAMP:
            call.count(0, 0)
            return literal(now)
        return literal(here.date() if kind == DATE else here)

    return rule


def _date(call: Call) -> Value:
    call.count(1, 3)
    if len(call.nodes) == 3:  # noqa: PLR2004 - year, month, day
        parts = [f"CAST({call.wanted(at, INT64).sql} AS INT)" for at in range(3)]
        return Value(f"make_date({', '.join(parts)})", DATE)
    value = call.value(0)
    if value.type == STRING and len(call.nodes) == 1:
        return cast(call.place, value, DATE, safe=False, node=call.node)
    value = typed(call, 0, TIMESTAMP, DATETIME, DATE)
    constant = _date_of(value.constant)
    inner = local(value, zone_of(call, 1)) if value.type == TIMESTAMP else value
    if len(call.nodes) == 2:  # noqa: PLR2004 - a zone
        constant = None
        if value.type != TIMESTAMP:
            raise refusal(Code.TYPE, "DATE with a time zone needs a TIMESTAMP", call.node)
    found = Value(f"CAST({inner.sql} AS DATE)", DATE, constant)
    return literal(constant.value) if constant is not None else found


def _date_of(constant: Constant | None) -> Constant | None:
    if constant is not None and isinstance(constant.value, datetime):
        return Constant(constant.value.date())
    return constant if constant is not None and isinstance(constant.value, date) else None


def _timestamp(call: Call) -> Value:
    call.count(1, 2)
    value, zone = call.value(0), zone_of(call, 1)
    if value.type == STRING:
        if zone is None:
            return cast(call.place, value, TIMESTAMP, safe=False, node=call.node)
        if value.constant is None:
            raise call.unsupported("TIMESTAMP of a STRING in a time zone")
        found = instants.parsed_timestamp(str(value.constant.value), instants.zone(zone) or UTC)
        if found is None:
            raise call.refused(f"{value.constant.value!r} is no TIMESTAMP", 0)
        return literal(found)
    value = typed(call, 0, DATETIME, DATE, TIMESTAMP)
    if value.type == TIMESTAMP:
        return value
    constant = value.constant.value if value.constant is not None else None
    if zone is None and isinstance(constant, date) and not isinstance(constant, datetime):
        return literal(datetime(constant.year, constant.month, constant.day, tzinfo=UTC))
    return instant(Value(f"CAST({value.sql} AS TIMESTAMP_NTZ)", DATETIME), zone)


def _datetime(call: Call) -> Value:
    call.count(1, 6)
    if len(call.nodes) == 6:  # noqa: PLR2004 - year to second
        parts = [f"CAST({call.wanted(at, INT64).sql} AS INT)" for at in range(6)]
        return Value(f"make_timestamp_ntz({', '.join(parts)})", DATETIME)
    call.count(1, 2)
    value = call.value(0)
    if value.type == STRING and len(call.nodes) == 1:
        return cast(call.place, value, DATETIME, safe=False, node=call.node)
    value = typed(call, 0, TIMESTAMP, DATE, DATETIME)
    if value.type == TIMESTAMP:
        return local(value, zone_of(call, 1))
    if len(call.nodes) > 1:
        raise call.unsupported("DATETIME of these arguments")
    return Value(f"CAST({value.sql} AS TIMESTAMP_NTZ)", DATETIME)


def _unix(micros: int) -> Function:
    whole = f"((unix_micros({{0}}) - pmod(unix_micros({{0}}), {micros}L)) div {micros}L)"
    return by_signature([("T", "I", whole if micros > 1 else "unix_micros({0})")], total=True)


TIMES: dict[str, Function] = {
    **{f"CURRENT_{name}": _now(kind) for name, kind in KINDS.items()},
    "DATE": _date,
    "TIMESTAMP": _timestamp,
    "DATETIME": _datetime,
    "UNIX_DATE": by_signature([("D", "I", "CAST(unix_date({0}) AS BIGINT)")], total=True),
    "DATE_FROM_UNIX_DATE": by_signature([("I", "D", "date_from_unix_date(CAST({0} AS INT))")]),
    "UNIX_SECONDS": _unix(1_000_000),
    "UNIX_MILLIS": _unix(1_000),
    "UNIX_MICROS": _unix(1),
    "TIMESTAMP_SECONDS": by_signature([("I", "T", "timestamp_seconds({0})")]),
    "TIMESTAMP_MILLIS": by_signature([("I", "T", "timestamp_millis({0})")]),
    "TIMESTAMP_MICROS": by_signature([("I", "T", "timestamp_micros({0})")]),
}
