"""Find what there is to load: datatypes by their table schemas, days and bundles by listing.

**Invariant:** it reads table schemas and lists names, but reads no bundle.  A problem of one
datatype is reported with its name and does not affect the others.

It refuses schemas without a column `date`.  Experiments that would share a table are recorded as
rivals; the table's label says which of them owns it (see `tables`).
"""

from __future__ import annotations

import difflib
import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from jostler.format.bigquery_names import TableName, table_name, view_name
from jostler.format.names import (
    BUNDLE_SUFFIX,
    INDEX,
    OWN_FOLDERS,
    SCHEMA_SUFFIX,
    TABLES,
    BundleName,
    Day,
    Kind,
    Place,
    check_archived_datatype,
)
from jostler.schema import (
    INDEX1_FIELDS,
    Relation,
    compare,
    fields_from_api,
    merged,
    table_schema,
)
from loader.errors import BucketError, LoaderError, NoBucketError, SchemaError, UnlistedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import date, datetime

    from jostler.format.bigquery_names import Naming
    from jostler.schema import Fields
    from loader.bucket import Bucket
    from loader.plan.window import Window

_ORGANIZED = 3


class Selection(Protocol):
    """Which datatypes to find, and how their tables are named: a part of the loader's options."""

    @property
    def api(self) -> tuple[str, ...]:
        """The layouts of the bucket, `v1` and `v2`."""

    @property
    def experiment(self) -> frozenset[str]:
        """The experiments; none for all."""

    @property
    def datatype(self) -> frozenset[str]:
        """The datatypes; none for all."""

    @property
    def naming(self) -> Naming:
        """The rule for names of v1."""

    @property
    def project(self) -> str:
        """The project of the tables."""

    @property
    def view_project(self) -> str:
        """The project of their views."""

    @property
    def allow_empty(self) -> bool:
        """Whether nothing may be there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A datatype's place in one bucket, and the table schema found there."""

    bucket: Bucket
    place: Place
    datatype: str
    fields: Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table to load, from one or more buckets.

    Attributes:
        name: the table's name.
        view: the name of its view.
        sources: the places to load from, all of the same experiment and datatype.
        fields: the merged columns of the sources' schemas.
        rivals: the folders of other experiments that map to the same table; only one owns it.
        whole: whether no bucket was left out because its schema is unreadable.
    """

    name: TableName
    view: TableName
    sources: tuple[Source, ...]
    fields: Fields
    rivals: tuple[str, ...] = ()
    whole: bool = True

    @property
    def experiment(self) -> str:
        """The experiment that the table belongs to."""
        return self.place.experiment

    @property
    def place(self) -> Place:
        """The place of its experiment, the same in each of its buckets."""
        return self.sources[0].place


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """An object to load."""

    bucket: str
    name: str
    generation: str
    size_bytes: int
    created: datetime
    node: str
    pair: str

    @property
    def url(self) -> str:
        """The object's URL."""
        return f"{self.bucket}/{self.name}"


@dataclass(slots=True)
class Discovered:
    """The tables and problems found in all buckets.

    Attributes:
        tables: the selected tables, by name.
        problems: pairs of what is concerned and what is wrong.
        experiments: all experiments that have a table schema, selected or not.
        datatypes: all datatypes that have a table schema, selected or not.
        unread: the place of each table schema that cannot be used, and why.
        unusable: the tables of which a schema cannot be used, without columns, and why.
    """

    tables: list[Table] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    experiments: set[str] = field(default_factory=set)
    datatypes: set[str] = field(default_factory=set)
    unread: list[tuple[Source, LoaderError]] = field(default_factory=list)
    unusable: list[tuple[Table, LoaderError]] = field(default_factory=list)


def discover(buckets: Iterable[Bucket], options: Selection) -> Discovered:
    """Find the datatypes of all buckets and the tables that they go to.

    Raises:
        UnlistedError: a bucket cannot be listed, or does not exist.
    """
    found = Discovered()
    by_table: dict[tuple[TableName, str], list[Source]] = defaultdict(list)
    for bucket in buckets:
        try:
            sources = list(_of_bucket(bucket, options, found))
        except BucketError as exc:
            raise UnlistedError(bucket.url, exc) from exc
        for source in sources:
            name = table_name(options.naming, options.project, source.place, source.datatype)
            by_table[name, source.place.root].append(source)
    wanted: dict[str, set[str]] = defaultdict(set)
    for name, root in by_table:
        wanted[str(name)].add(root)
    unread = {(source.place.root, source.datatype) for source, _ in found.unread}
    for (name, root), sources in sorted(by_table.items(), key=lambda item: str(item[0])):
        fields = _together(sources)
        if isinstance(fields, SchemaError):
            found.problems.append((str(name), str(fields)))
            found.unusable.append((_table(name, sources, (), options), fields))
            continue
        rivals = tuple(sorted(wanted[str(name)] - {root}))
        whole = (root, sources[0].datatype) not in unread
        table = _table(name, sources, fields, options)
        found.tables.append(replace(table, rivals=rivals, whole=whole))
    for source, error in found.unread:
        name = table_name(options.naming, options.project, source.place, source.datatype)
        found.unusable.append((_table(name, [source], (), options), error))
    if not options.allow_empty:
        found.problems += missing("experiment", options.experiment, found.experiments)
        found.problems += missing("datatype", options.datatype, found.datatypes | {INDEX})
    return found


def _table(name: TableName, sources: list[Source], fields: Fields, options: Selection) -> Table:
    first = sources[0]
    view = view_name(
        options.naming,
        first.place,
        first.datatype,
        view_project=options.view_project,
        project=options.project,
        bucket=first.bucket.url,
    )
    return Table(name=name, view=view, sources=tuple(sources), fields=fields)


def missing(what: str, wanted: Iterable[str], there: set[str]) -> Iterator[tuple[str, str]]:
    """Report each selected name that does not exist, with the most similar one that does."""
    for name in sorted(set(wanted) - there):
        yield f"--{what} {name}", f"no table schema of {what} {name}{nearest(name, there)}"


def nearest(name: str, there: Iterable[str]) -> str:
    """Return the end of a sentence that asks for the most similar name; empty if none is."""
    near = difflib.get_close_matches(name, list(there), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _of_bucket(bucket: Bucket, options: Selection, found: Discovered) -> Iterator[Source]:
    """Yield the datatypes of a bucket; a bucket without any table schema is a problem."""
    before = len(found.experiments), len(found.problems)
    try:
        sources = list(_sources(bucket, options, found))
    except NoBucketError:
        if options.allow_empty:
            return
        raise
    nothing = (len(found.experiments), len(found.problems)) == before and not sources
    if nothing and not found.experiments and not options.allow_empty:
        folders = " or ".join(f"autoload/{version}/{TABLES}/" for version in options.api)
        found.problems.append((bucket.url, f"no table schema below {folders}"))
    yield from sources


def _together(sources: list[Source]) -> Fields | SchemaError:
    """Merge the schemas of several buckets; return an error if they are incompatible.

    Each bucket may have columns that the others lack, because each has agents of its own.
    """
    fields = sources[0].fields
    for source in sources[1:]:
        union = merged(fields, source.fields)
        for one in (fields, source.fields):
            if (comparison := compare(one, union)).relation is Relation.INCOMPATIBLE:
                why = "; ".join(comparison.conflicts)
                return SchemaError(f"the schemas of several buckets differ: {why}")
        fields = union
    return fields


def _sources(bucket: Bucket, options: Selection, found: Discovered) -> Iterator[Source]:
    for version in options.api:
        places: set[Place] = set()
        indexed: set[Place] = set()
        for place, datatype, entry in _schemas(bucket, f"autoload/{version}", found.problems):
            found.experiments.add(place.experiment)
            found.datatypes.add(datatype)
            if options.experiment and place.experiment not in options.experiment:
                continue
            places.add(place)
            if datatype == INDEX:
                indexed.add(place)
            if options.datatype and datatype not in options.datatype:
                continue
            fields = _fields(bucket, entry, datatype)
            if isinstance(fields, LoaderError):
                found.problems.append((f"{bucket.url}/{entry}", str(fields)))
                unread = Source(bucket=bucket, place=place, datatype=datatype, fields=())
                found.unread.append((unread, fields))
            else:
                yield Source(bucket=bucket, place=place, datatype=datatype, fields=fields)
        # The Go agent stores index bundles but no schema for them; the schema is always the same.
        if not options.datatype or INDEX in options.datatype:
            for place in sorted(places - indexed, key=str):
                fields = table_schema(INDEX1_FIELDS)
                yield Source(bucket=bucket, place=place, datatype=INDEX, fields=fields)


def _schemas(
    bucket: Bucket, data_dir: str, problems: list[tuple[str, str]]
) -> Iterator[tuple[Place, str, str]]:
    """Yield for each datatype its place, its name and the name of its schema object.

    In v2 a schema without organization applies to all organizations that have no schema of their
    own.
    """
    organizations = [""]
    if data_dir.endswith("v2"):
        organizations = [name for name in bucket.folders(f"{data_dir}/") if name not in OWN_FOLDERS]
    chosen: dict[tuple[str, str, str], str] = {}
    for entry in bucket.list(f"{data_dir}/{TABLES}/"):
        *parts, file = entry.name.removeprefix(f"{data_dir}/{TABLES}/").split("/")
        datatype = file.removesuffix(SCHEMA_SUFFIX)
        known = file.endswith(SCHEMA_SUFFIX) and 1 <= len(parts) < _ORGANIZED
        if not known or (len(parts) > 1 and not data_dir.endswith("v2")):
            problems.append((f"{bucket.url}/{entry.name}", "is not the name of a table schema"))
            continue
        for organization in [parts[0]] if len(parts) > 1 else organizations:
            key = (organization, parts[-1], datatype)
            if len(parts) > 1 or key not in chosen:
                chosen[key] = entry.name
    for (organization, experiment, datatype), name in sorted(chosen.items()):
        try:
            place = Place(data_dir=data_dir, organization=organization, experiment=experiment)
            yield place, check_archived_datatype(datatype), name
        except ValueError as exc:
            problems.append((f"{bucket.url}/{name}", str(exc)))


def _fields(bucket: Bucket, name: str, datatype: str) -> Fields | LoaderError:
    """Read a table schema; return an error if it cannot be used."""
    try:
        fields = fields_from_api(json.loads(bucket.read(name, "")))
        columns = {column.key: column.type for column in fields}
    except BucketError as exc:
        return BucketError(f"the table schema cannot be read: {exc}")
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as exc:
        return SchemaError(f"is not a table schema: {_flaw(exc)}")
    if columns.get("date") == "DATE":
        return fields
    if datatype == INDEX and "filename" in columns:  # bare, as the Go agent's rows are
        return table_schema(fields)
    return SchemaError("the table schema has no column `date` of type DATE to partition by")


def _flaw(exc: Exception) -> str:
    match exc:
        case json.JSONDecodeError() | UnicodeDecodeError():
            return f"it is not JSON: {exc}"
        case RecursionError():
            return "it is nested too deep"
        case KeyError():
            return f"a column has no {exc.args[0]}"
        case ValueError():
            return str(exc)
        case _:
            return "it is not a list of columns, each with name and type"


def bundles(
    table: Table, window: Window, problems: list[tuple[str, str]]
) -> dict[date, list[Bundle]]:
    """List the bundles of a table's days, the earliest first.

    Raises:
        BucketError: a bucket cannot be listed.
    """
    days: dict[date, list[Bundle]] = defaultdict(list)
    for source in table.sources:
        folder = f"{source.place.root}/{source.datatype}/"
        start, end = (folder + Day(day).path for day in (window.start, window.end))
        for entry in source.bucket.list(folder, start, end):
            try:
                name = BundleName.parse(entry.name)
            except ValueError as exc:
                problems.append((f"{source.bucket.url}/{entry.name}", str(exc)))
                continue
            kind = Kind.INDEX if source.datatype == INDEX else Kind.DATA
            if name.kind is not kind or not entry.name.endswith(BUNDLE_SUFFIX):
                problems.append((f"{source.bucket.url}/{entry.name}", "lies in a wrong folder"))
                continue
            days[name.day.date].append(
                Bundle(
                    bucket=source.bucket.url,
                    name=entry.name,
                    generation=entry.generation,
                    size_bytes=entry.size_bytes,
                    created=name.created,
                    node=name.node,
                    pair=name.pair,
                )
            )
    return {
        day: sorted(found, key=lambda bundle: (bundle.created, bundle.name))
        for day, found in sorted(days.items())
    }
