"""Keep the table schemas in the bucket and the node's datatype schemas in agreement.

A schema is uploaded when there is none, extended when that loses no field, and else left alone.

**Invariant:** a stored schema only ever grows.  Two nodes of different versions cannot undo each
other, for a schema is replaced only at the version that was compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import orjson

from jostler.errors import AuthError, ConflictError, MissingError, SchemaError
from jostler.format.names import INDEX, OWN_DATATYPES, REJECTED
from jostler.log import Log
from jostler.schema import (
    INDEX1_FIELDS,
    REJECTED1_FIELDS,
    Comparison,
    Field,
    Fields,
    Mode,
    Relation,
    compare,
    fields_from_api,
    merged,
    parse_datatype_schema,
    table_schema,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.config import Datatype
    from jostler.format.names import Place
    from jostler.storage import Storage

log = Log("jostler.tables")

# A lost race means that another node stored a schema: as many nodes as start at one moment.
RACES_MAX = 20
STANDARD = frozenset({"date", "archiver"})
MAY_NOT_WRITE = "replacing an object needs storage.objects.delete, or upload it elsewhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the bucket holds for a datatype beside ours.

    Attributes:
        name: of the schema's object.
        ours: our fields, with the standard columns as strict as they are stored.
        stored: the object's fields; None when there is none.
        version: of the object.
        data: its bytes.
        comparison: of stored and ours; None when there is nothing stored.
    """

    name: str
    ours: Fields
    stored: Fields | None = None
    version: str = ""
    data: bytes = b""
    comparison: Comparison | None = None


def read_schemas(datatypes: Iterable[Datatype]) -> dict[str, Fields]:
    """Read the datatypes' schema files into table schemas, jostler's own two included.

    Raises:
        SchemaError: with the problems of all files.
    """
    tables: dict[str, Fields] = {}
    problems: list[str] = []
    for datatype in datatypes:
        try:
            data = datatype.schema_file.read_bytes()
            fields = parse_datatype_schema(data, source=str(datatype.schema_file))
            tables[datatype.name] = table_schema(fields)
        except OSError as exc:
            problems.append(f"{datatype.schema_file}: cannot be read: {exc.strerror}")
        except SchemaError as exc:
            problems += [f"{datatype.schema_file}: {problem}" for problem in exc.problems]
    if problems:
        raise SchemaError("datatype schemas are wrong:", problems)
    tables[INDEX] = table_schema(INDEX1_FIELDS)
    tables[REJECTED] = table_schema(REJECTED1_FIELDS)
    return tables


def compare_stored(storage: Storage, place: Place, datatype: str, ours: Fields) -> Found:
    """Compare a table schema with the one in the bucket.

    Raises:
        TransientError: the bucket cannot be asked.
        SchemaError: what is stored is no table schema.
    """
    name = place.table_schema(datatype)
    try:
        found = storage.read(name)
    except MissingError:
        return Found(name=name, ours=ours)
    try:
        stored = fields_from_api(orjson.loads(found.data))
    except (ValueError, TypeError, KeyError) as exc:
        raise SchemaError(
            f"{storage.url}/{name} is not a table schema",
            [f"{type(exc).__name__}: {exc}"],
            hint="mend or remove the object",
        ) from exc
    ours = _as_strict(stored, ours)
    return Found(
        name=name,
        ours=ours,
        stored=stored,
        version=found.version,
        data=found.data,
        comparison=compare(stored, ours),
    )


def _as_strict(stored: Fields, ours: Fields) -> Fields:
    """Make our standard columns REQUIRED where the stored ones are.

    The Go agent stores them so.  Every row has them, so it makes no difference to any; and an
    object that need not be replaced is no object that may not be replaced.
    """
    by_key = {field.key: field for field in stored}
    return tuple(
        _strict(by_key[field.key], field) if field.key in STANDARD & by_key.keys() else field
        for field in ours
    )


def _strict(stored: Field, ours: Field) -> Field:
    below = {field.key: field for field in stored.fields}
    fields = tuple(_strict(below[f.key], f) if f.key in below else f for f in ours.fields)
    mode = stored.mode if stored.mode is Mode.REQUIRED else ours.mode
    return replace(ours, mode=mode, fields=fields)


def additions(comparison: Comparison) -> list[str]:
    """Say of each field how it goes beyond what is stored."""
    added = [f"{path}: is not in the stored schema" for path in comparison.added]
    relaxed = "is REQUIRED in the stored schema, here it is NULLABLE"
    return added + [f"{path}: {relaxed}" for path in comparison.relaxed]


def sync(storage: Storage, place: Place, datatype: str, ours: Fields, *, upload: bool) -> Fields:
    """Make the bucket's schema and ours agree, and return the fields to judge files by.

    jostler's own schemas are never a reason not to start: without them data is archived as well.

    Raises:
        TransientError: the bucket cannot be asked.
        SchemaError: the schemas cannot agree, or may not because `upload` is false.
    """
    for _ in range(RACES_MAX):
        found = compare_stored(storage, place, datatype, ours)
        try:
            return _act(storage, found, upload=upload)
        except ConflictError:
            continue  # another node was faster: compare with what it stored
        except AuthError as exc:  # it could be read, so it is this one permission that lacks
            error = SchemaError(
                f"{storage.url}/{found.name} may not be written",
                [str(exc)],
                hint=MAY_NOT_WRITE,
            )
            if datatype not in OWN_DATATYPES:
                raise error from exc
            log.error("schema.own_differs", object=found.name, error=str(error), next="left alone")
            return ours
        except SchemaError as exc:
            if datatype not in OWN_DATATYPES:
                raise
            log.error("schema.own_differs", object=found.name, error=str(exc), next="left alone")
            return ours
    raise SchemaError(
        f"{storage.url}/{place.table_schema(datatype)} changes too often",
        [f"lost {RACES_MAX} races"],
        hint="do nodes of two versions restart each other?",
    )


def _act(storage: Storage, found: Found, *, upload: bool) -> Fields:
    ours = found.ours
    url = f"{storage.url}/{found.name}"
    if found.stored is None or found.comparison is None:
        if not upload:
            raise SchemaError(
                f"{url} does not exist and -upload-schema is false",
                ["every field is new"],
                hint="upload it from an operator's machine",
            )
        storage.put_new(found.name, to_json(ours), {})
        log.info("schema.uploaded", object=found.name)
        return ours
    comparison = found.comparison
    match comparison.relation:
        case Relation.EQUAL:
            return found.stored
        case Relation.OLDER:
            log.warning(
                "schema.older_than_stored",
                object=found.name,
                missing=list(comparison.missing),
                next="files are judged by the stored schema",
                hint="an image rolled back, or a node not yet upgraded?",
            )
            return found.stored
        case Relation.ADDITIONS if upload:
            fields = merged(found.stored, ours)
            storage.replace(found.name, to_json(fields), found.version)
            log.info(
                "schema.extended", object=found.name, added=[*comparison.added, *comparison.relaxed]
            )
            return fields
        case Relation.ADDITIONS:
            raise SchemaError(
                f"{url} is not as the datatype's schema and -upload-schema is false",
                additions(comparison),
                hint="upload it from an operator's machine",
            )
        case _:
            raise SchemaError(
                f"{url} and the datatype's schema do not fit",
                list(comparison.conflicts),
                hint="BigQuery can only add NULLABLE or REPEATED fields: name the datatype anew",
            )
