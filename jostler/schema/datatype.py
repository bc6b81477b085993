"""Parser for datatype schemas as operators write them: JSON arrays of TableFieldSchema.

**Invariant:** BigQuery can create a table from every schema that is accepted here, and load jobs
can fill it.  A wrong schema is refused with all its problems at once, each with its field's path.
Rules that JSON Schema can express are in `datatype.schema.json`, the others in `rules`.

Reads only files of the package.  `jsonschema` is imported only for a schema that is not `plain`.
It takes 4 MiB of memory (2 if the storage client is loaded, which shares some) and 0.05 s, measured
by bench/judge.py; a schema of 10,000 columns takes 2 s.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jostler.errors import SchemaError
from jostler.schema.by_hand import read_json, shown
from jostler.schema.fields import fields_from_api
from jostler.schema.plain import is_plain
from jostler.schema.rules import columns_beyond, label, problems_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jostler.schema.fields import Fields

_HINT = 'a datatype schema is a JSON array of BigQuery fields: [{"name": "…", "type": "STRING"}, …]'


@cache
def published() -> dict[str, Any]:
    """Return the JSON Schema of datatype schemas; docs/ has a copy for editors.

    Its `errorMessage`s are our problem texts; some editors show them too.
    """
    text = resources.files("jostler.schema").joinpath("datatype.schema.json").read_bytes()
    found: dict[str, Any] = json.loads(text)
    return found


def parse_datatype_schema(data: bytes, *, source: str) -> Fields:
    """Read and check a datatype schema; `source` names it in messages.

    Raises:
        SchemaError: the schema is wrong; `problems` lists everything found.
    """
    try:
        found = read_json(data)
        problems = columns_beyond(found) or [*_shape_problems(found), *problems_in(found)]
    except RecursionError:
        problems = ["(file): nested too deeply to be read"]
    except ValueError as error:
        problems = [f"(file): {error}"]
    if problems:
        raise SchemaError(f"{source} is not a datatype schema", problems, hint=_HINT)
    return fields_from_api(found)


def _shape_problems(found: Any) -> list[str]:  # noqa: ANN401 - parsed JSON
    if is_plain(found):
        return []
    import jsonschema  # noqa: PLC0415 - see the module's docstring

    errors = sorted(
        jsonschema.Draft202012Validator(published()).iter_errors(found),
        key=lambda error: [_order(step) for step in error.absolute_path],
    )
    sentences = (f"{_path(found, _steps(error))}: {_sentence(error)}" for error in errors)
    return list(dict.fromkeys(sentences))  # jsonschema reports each missing key alone


def _order(step: str | int) -> str:
    return f"{step:06d}" if isinstance(step, int) else step


def _steps(error: Any) -> list[str | int]:  # noqa: ANN401 - jsonschema's own error, imported late
    """Return the steps to the object at fault; the problem's text names the key in it."""
    steps = list(error.absolute_path)
    ends_in_key = len(steps) > 1 and "errorMessage" in error.schema
    return steps[: len(steps) - 1] if ends_in_key and isinstance(steps[-1], str) else steps


def _sentence(error: Any) -> str:  # noqa: ANN401 - as above
    known, instance = error.schema, error.instance
    match error.validator:
        case "additionalProperties":
            unknown = [key for key in instance if key not in known["properties"]]
            return "; ".join(
                f"unknown key {key!r}{_meant(key, known['properties'])}" for key in unknown
            )
        case "type":
            return f"expected {error.validator_value}, found {shown(instance)}"
        case "dependentRequired":
            return " and ".join(
                f"{key} needs {' and '.join(others)}"
                for key, others in error.validator_value.items()
                if key in instance and not all(other in instance for other in others)
            )
    if message := known.get("errorMessage"):
        return _with(message, instance)
    missing = [key for key in error.validator_value if key not in instance]
    return " and ".join(f"no {key!r}" for key in missing)


def _with(message: str, found: Any) -> str:  # noqa: ANN401 - parsed JSON
    """Insert the found value into a sentence: in `unknown mode: one of A, B` before the colon."""
    subject, colon, rest = message.partition(":")
    return message if not colon else f"{subject} {shown(found)}:{rest}"


def _meant(key: str, known: Iterable[str]) -> str:
    meant = next((name for name in known if name.lower() == key.lower()), None)
    return f" (it is spelled {meant!r})" if meant else ""


def _path(found: Any, steps: Iterable[str | int]) -> str:  # noqa: ANN401 - parsed JSON
    """Write a path into a schema with field names, then keys: `Samples[].RTT`."""
    names, rest = [], list(steps)
    while rest and isinstance(rest[0], int):
        field = found[rest[0]]
        names.append(label(field, rest[0]))
        rest = rest[1:]
        if len(rest) > 1 and rest[0] == "fields":
            found, rest = field["fields"], rest[1:]
    path = ".".join(names).removesuffix("[]")
    return ": ".join(part for part in (path, ".".join(map(str, rest))) if part) or "(file)"
