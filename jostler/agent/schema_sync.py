"""Keep the table schemas in the bucket and the node's datatype schemas in agreement.

If the bucket has no table schema, the agent uploads its own.  If its own only adds fields to the
stored one, the agent extends the stored one.  Otherwise it leaves the stored one unchanged.

**Invariant:** a stored schema never loses a field.  The agent replaces a schema only if the object
still has the version that was compared, so nodes of different releases cannot undo each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

from jostler.errors import AuthError, ConflictError, MissingError, RefusedError, SchemaError
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
from jostler.storage import upload_id

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.config import Datatype
    from jostler.format.names import Place
    from jostler.storage import Storage

log = Log("jostler.tables")

# Each lost race means that another node stored a schema.  When a fleet starts at once, a node can
# lose as many races as there are others.
RACES_MAX = 20
STANDARD = frozenset({"date", "archiver"})
# GCS: an overwrite needs storage.objects.delete beside storage.objects.create
# (https://cloud.google.com/storage/docs/access-control/iam-permissions).
MAY_NOT_WRITE = (
    "to replace an object the agent needs storage.objects.delete; grant it, or upload the schema "
    "from a machine that has it"
)


class SchemaPair(Struct, frozen=True, kw_only=True):
    """A datatype's table schema as the bucket has it, and the agent's own.

    Attributes:
        name: the name of the schema's object.
        ours: the agent's fields; its standard columns are REQUIRED where the stored ones are.
        stored: the object's fields; None if there is no object.
        version: the object's version; empty if there is no object.
        data: the object's bytes.
        comparison: how `stored` and `ours` differ; None if there is no object.
    """

    name: str
    ours: Fields
    stored: Fields | None = None
    version: str = ""
    data: bytes = b""
    comparison: Comparison | None = None


def read_schemas(datatypes: Iterable[Datatype]) -> dict[str, Fields]:
    """Read the datatypes' schema files and return the table schemas by datatype.

    The result also has the schemas of jostler's own datatypes, index1 and rejected1.

    Raises:
        SchemaError: a file cannot be read or is not a datatype schema; lists the problems of all
            files.
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


def compare_stored(storage: Storage, place: Place, datatype: str, ours: Fields) -> SchemaPair:
    """Compare the agent's table schema of a datatype with the one in the bucket.

    Raises:
        TransientError: the bucket cannot be reached.
        SchemaError: the stored object is not a table schema.
    """
    name = place.table_schema(datatype)
    try:
        found = storage.read(name)
    except MissingError:
        return SchemaPair(name=name, ours=ours)
    try:
        stored = fields_from_api(orjson.loads(found.data))
    except (ValueError, TypeError, KeyError) as exc:
        raise SchemaError(
            f"{storage.url}/{name} is not a table schema",
            [f"{type(exc).__name__}: {exc}"],
            hint="correct or remove the object",
        ) from exc
    ours = _as_strict(stored, ours)
    return SchemaPair(
        name=name,
        ours=ours,
        stored=stored,
        version=found.version,
        data=found.data,
        comparison=compare(stored, ours),
    )


def _as_strict(stored: Fields, ours: Fields) -> Fields:
    """Make the agent's standard columns REQUIRED where the stored ones are.

    The Go agent stores them as REQUIRED.  Every row has these columns, so the mode changes nothing
    for a row.  With the same mode the schemas can be equal, and an equal schema needs no overwrite,
    for which the agent may have no permission.
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
    """Return one line of text for each field that the stored schema lacks or has as REQUIRED."""
    added = [f"{path}: is not in the stored schema" for path in comparison.added]
    relaxed = "is REQUIRED in the stored schema, NULLABLE in the agent's"
    return added + [f"{path}: {relaxed}" for path in comparison.relaxed]


def sync(storage: Storage, place: Place, datatype: str, ours: Fields, *, upload: bool) -> Fields:
    """Make the bucket's schema and the agent's agree; return the fields that files are judged by.

    A conflict in jostler's own schemas, index1 and rejected1, is only logged: the agent can archive
    files without them.

    Args:
        storage: the bucket.
        place: the place of the experiment's objects in the bucket.
        datatype: the name of the datatype.
        ours: the agent's table schema.
        upload: whether the agent may create or extend the stored schema.

    Raises:
        TransientError: the bucket cannot be reached.
        SchemaError: the schemas conflict, the stored schema would have to change and `upload` is
            false, or the agent has no permission to write it.
    """
    for _ in range(RACES_MAX):
        pair = compare_stored(storage, place, datatype, ours)
        try:
            return _act(storage, pair, upload=upload)
        except ConflictError:
            continue  # another node stored a schema after our read: compare with that one
        except AuthError as exc:  # the object was read, so only the permission to write is missing
            error = SchemaError(
                f"no permission to write {storage.url}/{pair.name}",
                [str(exc)],
                hint=MAY_NOT_WRITE,
            )
            if datatype not in OWN_DATATYPES:
                raise error from exc
            log.error("schema.own_differs", object=pair.name, error=str(error), next="left alone")
            return ours
        except SchemaError as exc:
            if datatype not in OWN_DATATYPES:
                raise
            log.error("schema.own_differs", object=pair.name, error=str(exc), next="left alone")
            return ours
    raise SchemaError(
        f"{storage.url}/{place.table_schema(datatype)} changes too often",
        [f"other nodes replaced it {RACES_MAX} times while this one compared it"],
        hint="find out which nodes or programs write this object",
    )


def judged_by(pair: SchemaPair) -> Fields:
    """Return the table schema that files are judged by after `sync`; nothing is stored.

    Raises:
        SchemaError: the schemas conflict.
    """
    if pair.stored is None or pair.comparison is None:
        return pair.ours
    match pair.comparison.relation:
        case Relation.EQUAL | Relation.OLDER:
            return pair.stored
        case Relation.ADDITIONS:
            return merged(pair.stored, pair.ours)
        case _:
            raise SchemaError(
                f"{pair.name} conflicts with the datatype's schema",
                list(pair.comparison.conflicts),
                hint="with these schemas, no agent starts",
            )


def keep(storage: Storage, place: Place, datatype: str, table: Fields) -> str:
    """Store a copy of the table schema that files are judged by, under its digest.

    A bundle names this digest in its metadata, so a reader can find the schema later, after the
    table schema has changed.

    Returns:
        The digest; empty if the bucket refuses the object.  Bundles then name no schema.

    Raises:
        TransientError: the bucket cannot be reached.
    """
    kept = digest(table)
    name = place.kept_schema(datatype, kept)
    try:
        # The object is asked for first: an agent may be allowed to read and not to create it again.
        if storage.upload_id(name) != kept:
            storage.put_new(name, to_json(table), {})
    except (AuthError, ConflictError, RefusedError) as exc:
        log.warning(
            "schema.not_kept",
            object=name,
            error=str(exc),
            next="bundles name no schema, and the loader verifies each of them in full",
        )
        return ""
    return kept


def digest(table: Fields) -> str:
    """Return the digest under which the bucket keeps a table schema."""
    return upload_id(to_json(table))


def _act(storage: Storage, pair: SchemaPair, *, upload: bool) -> Fields:
    """Create, extend or keep the stored schema; return the fields that files are judged by.

    Raises:
        ConflictError: the object changed after it was compared.
        AuthError: the agent has no permission to write it.
        SchemaError: the schemas conflict, or `upload` is false and a change would be needed.
    """
    ours = pair.ours
    url = f"{storage.url}/{pair.name}"
    if pair.stored is None or pair.comparison is None:
        return _create(storage, pair, upload=upload)
    comparison = pair.comparison
    match comparison.relation:
        case Relation.EQUAL:
            return pair.stored
        case Relation.OLDER:
            log.warning(
                "schema.older_than_stored",
                object=pair.name,
                missing=list(comparison.missing),
                next="files are judged by the stored schema",
                hint="expected after a roll-back, or on a node that is not upgraded yet",
            )
            return pair.stored
        case Relation.ADDITIONS if upload:
            # The stored fields keep their places: BigQuery adds columns only behind those that a
            # table has ("Modifying table schemas").
            fields = merged(pair.stored, ours)
            # If another node replaced the object since it was read, the precondition fails with
            # ConflictError.
            storage.replace(pair.name, to_json(fields), pair.version)
            log.info(
                "schema.extended", object=pair.name, added=[*comparison.added, *comparison.relaxed]
            )
            return fields
        case Relation.ADDITIONS:
            raise SchemaError(
                f"{url} differs from the datatype's schema and -upload-schema is false",
                additions(comparison),
                hint="extend it from an operator's machine, where -upload-schema is true",
            )
        case _:
            raise SchemaError(
                f"{url} conflicts with the datatype's schema",
                list(comparison.conflicts),
                hint="BigQuery can add NULLABLE or REPEATED fields and relax REQUIRED ones, no "
                "more; for other changes give the datatype a new name",
            )


def _create(storage: Storage, pair: SchemaPair, *, upload: bool) -> Fields:
    """Store the first table schema of a datatype; raises the errors of `_act`."""
    if not upload:
        raise SchemaError(
            f"{storage.url}/{pair.name} does not exist and -upload-schema is false",
            ["every field is new"],
            hint="upload it from an operator's machine; jostler -schema writes the file",
        )
    storage.put_new(pair.name, to_json(pair.ours), {})
    log.info("schema.uploaded", object=pair.name)
    return pair.ours
