"""Decide which days can be loaded by their index alone, without reading the bundles.

A day is trusted if an agent judged each of its bundles by a table schema that is contained in
today's table, and each has its index: then every row is good, and the index has the Filenames.

**Invariant:** it reads listings, metadata and kept schemas, and no bundle and no index.  Anything
unknown about a bundle makes the day untrusted, never trusted.
"""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jostler.format.names import INDEX, OWN_DATATYPES, BundleName, Day, Kind
from jostler.schema import Mode, compare, fields_from_api
from jostler.storage import upload_id
from loader.errors import BucketError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from jostler.schema import Fields
    from loader.bucket import ListedObject
    from loader.plan.discover import Bundle, Source
    from loader.plan.due import TableDay

_DIGEST_RE = re.compile(r"[0-9a-f]{32}", re.ASCII)


class UntrustedError(Exception):
    """A day's bundles must be read; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedBundle:
    """A bundle whose rows are taken from its index.

    Attributes:
        bundle: the data object.
        index: the index object.
        rows: how many rows the data object has, by its own metadata.
    """

    bundle: Bundle
    index: ListedObject
    rows: int


@dataclass(slots=True)
class Trust:
    """Asks the buckets about the days of one wave; several threads may use it."""

    _listings: dict[tuple[str, str], dict[str, ListedObject]] = field(default_factory=dict)
    _contained: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def of(self, day: TableDay, fields: Fields) -> list[IndexedBundle]:
        """Return the day's bundles with their indexes.

        Args:
            day: the day as planned.
            fields: the columns of its table.

        Raises:
            UntrustedError: a bundle must be read.
        """
        if day.table.sources[0].datatype in OWN_DATATYPES:
            # An index has no index, and the Hash of a rejected file is not that of its row.
            raise UntrustedError("")
        try:
            described = {
                f"{source.bucket.url}/{name}": (source, entry)
                for source in day.table.sources
                for name, entry in self._listed(source, source.datatype, day.date).items()
            }
            return [self._indexed(bundle, described, day, fields) for bundle in day.bundles]
        except BucketError as exc:
            raise UntrustedError(str(exc)) from exc

    def _listed(self, source: Source, folder: str, date: date) -> dict[str, ListedObject]:
        prefix = f"{source.place.root}/{folder}/{Day(date).path}/"
        key = (source.bucket.url, prefix)
        if key not in self._listings:  # two threads may ask at once, and get the same
            listed = source.bucket.list(prefix, metadata=True)
            self._listings[key] = {entry.name: entry for entry in listed}
        return self._listings[key]

    def _indexed(
        self,
        bundle: Bundle,
        described: Mapping[str, tuple[Source, ListedObject]],
        day: TableDay,
        fields: Fields,
    ) -> IndexedBundle:
        source, data = described.get(bundle.url, (None, None))
        if source is None or data is None or data.generation != bundle.generation:
            raise UntrustedError(f"{bundle.name} has changed since it was listed")
        schema = data.metadata.get("schema", "")
        if not _DIGEST_RE.fullmatch(schema):
            raise UntrustedError(f"{bundle.name} names no schema that it was judged by")
        if why := self.not_contained_in(source, schema, str(day.table.name), fields):
            raise UntrustedError(f"{bundle.name} was judged by the schema {schema}: {why}")
        name = str(replace(BundleName.parse(bundle.name), kind=Kind.INDEX))
        index = self._listed(source, INDEX, day.date).get(name)
        if index is None:
            raise UntrustedError(f"{bundle.name} has no index")
        uploaded = data.metadata.get("upload-id", "")
        rows = data.metadata.get("rows", "")
        if not uploaded or index.metadata.get("data-upload-id") != uploaded:
            raise UntrustedError(f"the index of {bundle.name} is not that of its bytes")
        if _is_newer(data, index):
            raise UntrustedError(f"{bundle.name} was stored after its index")
        if not rows.isdecimal() or index.metadata.get("rows") != rows:
            raise UntrustedError(f"{bundle.name} and its index have other numbers of rows")
        return IndexedBundle(bundle=bundle, index=index, rows=int(rows))

    def not_contained_in(self, source: Source, schema: str, table: str, fields: Fields) -> str:
        """Return why rows that fit a kept schema may not fit a table; empty if they do."""
        name = source.place.kept_schema(source.datatype, schema)
        key = (source.bucket.url, name, table)
        if key not in self._contained:
            self._contained[key] = _why_not(source, name, schema, fields)
        return self._contained[key]


def _why_not(source: Source, name: str, schema: str, fields: Fields) -> str:
    try:
        data = source.bucket.read(name, "")
        # The name is the digest of the bytes.  Without this check, whoever can write an object
        # could store a wider schema there, and bad rows would be taken for good ones.
        if upload_id(data) != schema:
            return f"{name} has other bytes than its name says"
        return not_contained(fields_from_api(json.loads(data)), fields)
    except BucketError as exc:
        return f"it cannot be read: {exc}"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
        return f"{name} is no table schema: {type(exc).__name__}: {exc}"


def not_contained(schema: Fields, table: Fields) -> str:
    """Return why a row that fits a schema may not fit a table; empty if each does."""
    found = compare(table, schema)
    wider = [*found.conflicts, *(f"the table has no {path}" for path in found.added)]
    wider += [f"the table has {path} REQUIRED" for path in found.relaxed]
    wider += [f"the table has {path} REQUIRED" for path in _lacking(schema, table, "")]
    return "; ".join(wider)


def _lacking(schema: Fields, table: Fields, prefix: str) -> list[str]:
    """Return the REQUIRED fields of a table that a schema does not have."""
    known = {one.key: one for one in schema}
    found = []
    for one in table:
        path = prefix + one.name
        if one.key in known:
            found += _lacking(known[one.key].fields, one.fields, f"{path}.")
        elif one.mode is Mode.REQUIRED:
            found.append(path)
    return found


def _is_newer(data: ListedObject, index: ListedObject) -> bool:
    """Return whether the data object was stored after its index; a commit stores it before.

    A generation of GCS is the time at which the object was stored.
    """
    if not (data.generation.isdecimal() and index.generation.isdecimal()):
        return False
    return int(data.generation) > int(index.generation)


def sample(bundles: int, fraction: float) -> frozenset[int]:
    """Choose bundles of a day, by number, to be read in full: at least one, at random."""
    count = min(bundles, max(1, math.ceil(bundles * fraction)))
    # At random and anew in each run, so that no bundle is left out for ever.
    return frozenset(random.sample(range(bundles), count))
