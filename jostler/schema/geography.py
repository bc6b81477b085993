"""The check of texts for GEOGRAPHY columns: WKT, GeoJSON or hexadecimal WKB.

**Invariant:** a text is accepted only if it is a complete geometry of longitudes and latitudes:
lines have at least two points, rings are closed and have at least four.  A third dimension, an SRID
and a GeoJSON feature are refused.  Crossing edges are not detected; BigQuery may still refuse such
a polygon.

Pure.  Time is proportional to the length of the text; points are not stored.
"""

from __future__ import annotations

import binascii
import re
import struct
from functools import cache
from typing import TYPE_CHECKING

from jostler.schema.document import parse
from jostler.schema.flaw import Flaw
from jostler.schema.stream import SMALL_BYTES, is_large

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.schema.document import Value

NESTED_MAX = 15
"""How deep collections may be nested; BigQuery documents no limit."""

_LATITUDE_MAX = 90.0
_LINE_POINTS, _RING_POINTS = 2, 4

# Each repetition is possessive, so matching never backtracks and takes linear time.
_NUMBER = r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
_POINT = rf"\s*+{_NUMBER}\s++{_NUMBER}\s*+"
_LINE = rf"\s*+\({_POINT}(?:,{_POINT})++\)\s*+"
_RING = rf"\s*+\({_POINT}(?:,{_POINT}){{3,}}+\)\s*+"
_POLYGON = rf"\s*+\({_RING}(?:,{_RING})*+\)\s*+"
_ONE_POINT = rf"\s*+\({_POINT}\)\s*+"
_SHAPES = {
    "POINT": _ONE_POINT,
    "LINESTRING": _LINE,
    "POLYGON": _POLYGON,
    "MULTIPOINT": rf"\s*+\((?:{_ONE_POINT}(?:,{_ONE_POINT})*+|{_POINT}(?:,{_POINT})*+)\)\s*+",
    "MULTILINESTRING": rf"\s*+\({_LINE}(?:,{_LINE})*+\)\s*+",
    "MULTIPOLYGON": rf"\s*+\({_POLYGON}(?:,{_POLYGON})*+\)\s*+",
}
_KIND_RE = re.compile(r"\s*+([A-Z]++)", re.IGNORECASE | re.ASCII)
_OPEN_RE = re.compile(r"\s*+\(", re.ASCII)
_CLOSE_RE = re.compile(r"\s*+\)\s*+", re.ASCII)
_COMMA_RE = re.compile(r"\s*+,", re.ASCII)
_EMPTY_RE = re.compile(r"\s++EMPTY\s*+", re.IGNORECASE | re.ASCII)
_POINTS_RE = re.compile(rf"({_NUMBER})\s++({_NUMBER})", re.ASCII)
_RINGS_RE = re.compile(r"\(([^()]+)\)")
_HEX_RE = re.compile(r"(?:[0-9A-Fa-f]{2})+")


@cache
def _shape_re(kind: str) -> re.Pattern[str]:
    """Compile the pattern of a kind when a text first needs it: few tables have such a column.

    All of them together take 4 % of the time of an agent's start.
    """
    return re.compile(rf"(?:\s++EMPTY\s*+|{_SHAPES[kind]})", re.IGNORECASE | re.ASCII)


def is_geography(text: str) -> bool:
    """Return whether a text has the form of a geography."""
    start = text.lstrip(" \t\r\n")[:1]
    if start == "{":
        return _is_geojson(text)
    if start in {"0", ""}:  # the first byte of WKB is 00 or 01
        return _is_wkb(text)
    return _wkt_end(text, 0, 0) == len(text)


def _wkt_end(text: str, at: int, nested: int) -> int:
    """Return where the geometry that begins at `at` ends; -1 if there is no geometry."""
    found = _KIND_RE.match(text, at)
    kind = found[1].upper() if found else ""
    if found is None or (kind != "GEOMETRYCOLLECTION" and kind not in _SHAPES):
        return (
            len(text) if found and kind == "FULLGLOBE" and not text[found.end() :].strip() else -1
        )
    at = found.end()
    if kind == "GEOMETRYCOLLECTION":
        return _collection_end(text, at, nested)
    shape = _shape_re(kind).match(text, at)
    if shape is None or not _lie_on_earth(shape[0]):
        return -1
    if kind.endswith("POLYGON") and not all(map(_is_closed, _RINGS_RE.findall(shape[0]))):
        return -1
    return shape.end()


def _collection_end(text: str, at: int, nested: int) -> int:
    if found := _EMPTY_RE.match(text, at):
        return found.end()
    found = _OPEN_RE.match(text, at)
    if found is None or nested == NESTED_MAX:
        return -1
    while True:
        at = _wkt_end(text, found.end(), nested + 1)
        if at < 0:
            return -1
        if end := _CLOSE_RE.match(text, at):
            return end.end()
        found = _COMMA_RE.match(text, at)
        if found is None:
            return -1


def _lie_on_earth(text: str) -> bool:
    points = _POINTS_RE.finditer(text)
    return all(_is_point(float(point[1]), float(point[2])) for point in points)


def _is_point(longitude: float, latitude: float) -> bool:
    """Accept any longitude, as ST_GEOGPOINT does, but no latitude beyond the poles."""
    return abs(latitude) <= _LATITUDE_MAX and abs(longitude) < float("inf")


def _is_closed(ring: str) -> bool:
    first, last = ring[: ring.index(",")].split(), ring[ring.rindex(",") + 1 :].split()
    return [float(number) for number in first] == [float(number) for number in last]


def _is_geojson(text: str) -> bool:
    data = text.encode()
    if len(data) > SMALL_BYTES and is_large(data):
        return False
    value = parse(data)
    return not isinstance(value, Flaw) and _is_geometry(value, 0)


def _is_geometry(value: Value, nested: int) -> bool:
    if not isinstance(value, tuple):
        return False
    members = dict(value)
    kind = members.get("type")
    if len(members) != len(value) or not isinstance(kind, str):
        return False
    if kind != "GeometryCollection":
        return kind in _COORDINATES and _COORDINATES[kind](members.get("coordinates"))
    parts = members.get("geometries")
    return (
        isinstance(parts, list)
        and nested < NESTED_MAX
        and all(_is_geometry(part, nested + 1) for part in parts)
    )


def _is_position(value: Value) -> bool:
    if not isinstance(value, list) or len(value) != len(("longitude", "latitude")):
        return False
    longitude, latitude = value
    if not isinstance(longitude, bytes) or not isinstance(latitude, bytes):
        return False
    return _is_point(float(longitude), float(latitude))


def _is_line(value: Value) -> bool:
    return _array(_is_position)(value) and isinstance(value, list) and len(value) >= _LINE_POINTS


def _is_ring(value: Value) -> bool:
    if not isinstance(value, list) or len(value) < _RING_POINTS or not _array(_is_position)(value):
        return False
    first, last = ([float(number) for number in value[at]] for at in (0, -1))  # type: ignore[arg-type,union-attr] # positions
    return first == last


def _array(is_part: Callable[[Value], bool]) -> Callable[[Value], bool]:
    return lambda value: isinstance(value, list) and all(map(is_part, value))


_is_polygon = _array(_is_ring)
_COORDINATES: dict[str, Callable[[Value], bool]] = {
    "Point": _is_position,
    "LineString": _is_line,
    "Polygon": _is_polygon,
    "MultiPoint": _array(_is_position),
    "MultiLineString": _array(_is_line),
    "MultiPolygon": _array(_is_polygon),
}


def _is_wkb(text: str) -> bool:
    if not _HEX_RE.fullmatch(text):
        return False
    try:
        data = binascii.unhexlify(text)
        return _wkb_end(data, 0, 0) == len(data)
    except (struct.error, ValueError):
        return False


def _wkb_end(data: bytes, at: int, nested: int, *, of: int = 0) -> int:
    """Return where the geometry that begins at `at` ends.

    Raises:
        struct.error: the data ends before the geometry does.
        ValueError: it is not a geometry, or not of the type `of`.
    """
    order = {0: ">", 1: "<"}.get(data[at] if at < len(data) else -1)
    if order is None or nested > NESTED_MAX:
        raise ValueError("no byte order")
    (kind,) = struct.unpack_from(f"{order}I", data, at + 1)
    if of and kind != of:
        raise ValueError("a part of another type")
    at += 5
    match kind:
        case 1:
            return _wkb_points(data, at, order, 1)
        case 2:
            return _wkb_line(data, at, order, _LINE_POINTS)
        case 3:
            (rings,) = struct.unpack_from(f"{order}I", data, at)
            at += 4
            for _ in range(rings):
                at = _wkb_line(data, at, order, _RING_POINTS)
            return at
        case 4 | 5 | 6 | 7:
            (parts,) = struct.unpack_from(f"{order}I", data, at)
            at += 4
            for _ in range(parts):
                at = _wkb_end(data, at, nested + 1, of=kind - 3 if kind < 7 else 0)  # noqa: PLR2004 - its number
            return at
    raise ValueError("an unknown type")


def _wkb_line(data: bytes, at: int, order: str, least: int) -> int:
    (points,) = struct.unpack_from(f"{order}I", data, at)
    at, end = at + 4, at + 4 + 16 * points
    if 0 < points < least or end > len(data):
        raise ValueError("too few points")
    if least == _RING_POINTS and points and data[at : at + 16] != data[end - 16 : end]:
        raise ValueError("a ring that is not closed")
    return _wkb_points(data, at, order, points)


def _wkb_points(data: bytes, at: int, order: str, points: int) -> int:
    end = at + 16 * points
    if end > len(data):
        raise ValueError("too few bytes")
    for longitude, latitude in struct.iter_unpack(f"{order}dd", data[at:end]):
        if not _is_point(longitude, latitude):
            raise ValueError("no place on earth")
    return end
