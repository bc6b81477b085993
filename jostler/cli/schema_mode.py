"""Schema mode (`-schema`): write table schemas, show them, compare them with the stored ones.

**Invariant:** it writes only `<datatype>-table.json` in the current directory, or with
`-from-samples` a datatype schema to standard output.  It only reads from the bucket.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.agent import schema_sync
from jostler.errors import ConfigError, JostlerError, SchemaError
from jostler.format.names import OWN_DATATYPES
from jostler.schema import (
    Relation,
    render,
    to_json,
    warnings,
)
from jostler.schema.infer import infer
from jostler.storage import open_storage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from jostler.config import Config
    from jostler.schema import Comparison, Fields


def show(config: Config, out: TextIO | None = None) -> bool:
    """Run schema mode; return whether every schema can be used.

    Raises:
        SchemaError: a datatype schema is wrong.
        ConfigError: the samples cannot be read.
    """
    out = out or sys.stdout
    if config.from_samples:
        return _infer(config, config.from_samples, out)
    wanted = schema_sync.read_schemas(config.datatypes)
    good = True
    for datatype, fields in wanted.items():
        if datatype in OWN_DATATYPES:
            continue
        path = Path(f"{datatype}-table.json")
        path.write_bytes(to_json(fields))
        out.write(f"{config.place.experiment}/{datatype}, written to {path}\n\n")
        out.write(render(fields) + "\n")
        for warning in warnings(fields):
            out.write(f"warning: {warning}\n")
        if config.bucket:
            good &= _fits(config, datatype, fields, out)
        out.write("\n")
    return good


def _fits(config: Config, datatype: str, fields: Fields, out: TextIO) -> bool:
    """Write how a schema differs from the stored one; return whether the agent would start."""
    name = config.place.table_schema(datatype)
    url = f"{config.bucket}/{name}"
    try:
        found = schema_sync.compare_stored(
            open_storage(config.bucket), config.place, datatype, fields
        )
    except JostlerError as exc:
        out.write(f"{url}: {exc}\n")
        return False
    if found.comparison is None:
        out.write(f"{url}: not there yet; the agent will upload it\n")
        return True
    out.writelines(f"{url}: {line}\n" for line in _differences(found.comparison))
    return found.comparison.relation is not Relation.INCOMPATIBLE


def _differences(comparison: Comparison) -> Iterator[str]:
    match comparison.relation:
        case Relation.EQUAL:
            yield "the same"
        case Relation.ADDITIONS:
            yield "compatible: the agent will add to it"
            yield from (f"  + {path}" for path in comparison.added)
            yield from (f"  ~ {path} becomes NULLABLE" for path in comparison.relaxed)
        case Relation.OLDER:
            yield "this schema is older; the agent will judge files by the stored one"
            yield from (f"  - {path} is only stored" for path in comparison.missing)
        case _:
            yield "NOT compatible; the agent will not start"
            yield from (f"  ! {conflict}" for conflict in comparison.conflicts)


def _infer(config: Config, directory: Path, out: TextIO) -> bool:
    """Infer a datatype schema from the files of a directory and write it to `out`."""

    def samples() -> Iterator[tuple[str, bytes]]:
        for path in sorted(directory.rglob("*")):
            if path.is_file() and path.name.endswith(config.extensions):
                yield str(path), path.read_bytes()

    if not directory.is_dir():
        raise ConfigError([f"-from-samples: {directory} is no directory"])
    try:
        inferred = infer(samples())
    except OSError as exc:
        raise ConfigError([f"-from-samples: {exc}"]) from exc
    sys.stderr.writelines(f"note: {note}\n" for note in inferred.notes)
    if inferred.problems:
        raise SchemaError(f"{directory}: no schema fits all samples:", list(inferred.problems))
    if not inferred.fields:
        raise ConfigError([f"-from-samples: {directory} has no sample with a field"])
    out.write(to_json(inferred.fields).decode().rstrip() + "\n")
    return True
