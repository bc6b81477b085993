"""Assets: who owns an experiment or a datatype, who may read it, how it is loaded and kept.

**Invariant:** `asset.schema.json` accepts every asset that is read here, and every one that
`to_json` writes.  A field that an asset does not have is None, and never a default.

Reads only files of the package.  `jsonschema` is imported only when there is an asset.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from jostler.errors import SchemaError
from jostler.format.names import OWN_DATATYPES
from jostler.format.urls import masked
from jostler.schema.by_hand import read_json, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jostler.format.names import Place

_HINT = 'an asset is a JSON object such as {"revision": 1, "owner": "netops"}; see docs/assets.md'
NO_REVISION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """What is said of an experiment or of one of its datatypes; docs/assets.md has each field.

    Attributes:
        revision: of the asset in the bucket or file; of a merged one that of its more exact part.
        producers: members as in an IAM policy, such as `group:x@y.org`.
        consumers: as `producers`.
        retention_days: for how many days after its day data is kept.
        share: the largest part of the parallel days that the experiment may hold, 0 to 1.
        notify: URLs.
        max_bad_fraction: a day with a larger part of bad rows is not replaced, 0 to 1.
    """

    revision: int = NO_REVISION
    owner: str | None = None
    description: str | None = None
    classification: str | None = None
    producers: tuple[str, ...] | None = None
    consumers: tuple[str, ...] | None = None
    source: str | None = None
    retention_days: int | None = None
    requirements: str | None = None
    share: float | None = None
    notify: tuple[str, ...] | None = None
    max_bad_fraction: float | None = None

    def over(self, other: Asset) -> Asset:
        """Return this asset, with the fields of `other` where it has none."""
        missing = {
            field.name: getattr(other, field.name)
            for field in fields(Asset)
            if getattr(self, field.name) is None
        }
        return replace(self, revision=self.revision or other.revision, **missing)

    def to_api(self) -> dict[str, Any]:
        """Return the asset as a JSON object, without the fields that it does not have."""
        values = {field.name: getattr(self, field.name) for field in fields(Asset)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None
        }

    def to_json(self) -> bytes:
        """Return the bytes of the asset's object: equal assets have equal bytes."""
        return json.dumps(self.to_api(), indent=2, ensure_ascii=False).encode() + b"\n"


NOTHING = Asset()


@cache
def published_asset() -> dict[str, Any]:
    """Return the JSON Schema of assets; docs/ has a copy for editors."""
    text = resources.files("jostler.schema").joinpath("asset.schema.json").read_bytes()
    found: dict[str, Any] = json.loads(text)
    return found


def parse_asset_file(data: bytes, *, source: str) -> Asset:
    """Read and check an asset; `source` names it in messages.

    Raises:
        SchemaError: it is no asset; `problems` lists everything found, each with its path.
    """
    try:
        found = read_json(data)
        problems = _problems(found)
    except RecursionError:
        problems = ["(file): nested too deeply to be read"]
    except ValueError as error:
        problems = [f"(file): {error}"]
    if problems:
        raise SchemaError(f"{source} is not an asset", problems, hint=_HINT)
    values = {key: value for key, value in found.items() if key != "$schema"}
    for name in ("revision", "retention_days"):
        if name in values:
            values[name] = int(values[name])  # in JSON Schema, 3.0 is an integer
    for name in ("producers", "consumers", "notify"):
        if name in values:
            values[name] = tuple(values[name])
    return Asset(**values)


def _problems(found: Any) -> list[str]:  # noqa: ANN401 - parsed JSON
    import jsonschema  # noqa: PLC0415 - see the module's docstring

    errors = sorted(
        jsonschema.Draft202012Validator(published_asset()).iter_errors(found),
        key=lambda error: [str(step) for step in error.absolute_path],
    )
    return list(dict.fromkeys(line for error in errors for line in _lines(error)))


def _lines(error: Any) -> list[str]:  # noqa: ANN401 - jsonschema's own error, imported late
    if error.validator != "additionalProperties":
        return [f"{_path(error)}: {_sentence(error)}"]
    known = error.schema["properties"]
    unknown = [key for key in error.instance if key not in known]
    return [f"{shown(key)}: unknown field{_meant(key, known)}" for key in unknown]


def _meant(key: str, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(key.lower(), names, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(names)}"


def _path(error: Any) -> str:  # noqa: ANN401 - as above
    """Write where in the file a problem is: `consumers[1]`."""
    steps = (f"[{step}]" if isinstance(step, int) else step for step in error.absolute_path)
    return "".join(steps) or "(file)"


def _sentence(error: Any) -> str:  # noqa: ANN401 - as above
    known, instance = error.schema, error.instance
    if error.validator == "required":
        missing = [key for key in error.validator_value if key not in instance]
        return f"no {' and no '.join(map(repr, missing))}"
    wanted = known.get("errorMessage", f"expected {error.validator_value}")
    return f"{wanted}, found {_found(error)}"


def _found(error: Any) -> str:  # noqa: ANN401 - as above
    """Show what is wrong, but of an address of `notify` no part that may hold a token."""
    instance = error.instance
    if next(iter(error.absolute_path), None) != "notify":
        return shown(instance)
    if isinstance(instance, str):
        return masked(instance)
    return f"{len(instance)} of them" if isinstance(instance, list) else "something else"


class Assets:
    """The assets of some buckets.

    Args:
        found: pairs of an asset's place, datatype and the asset; the datatype is empty in that of
            an experiment.  Of several for the same, the one with the greatest revision counts.
    """

    def __init__(self, found: Iterable[tuple[Place, str, Asset]] = ()) -> None:
        self._own: dict[tuple[str, str, str], Asset] = {}
        for place, datatype, asset in found:
            key = place.organization, place.experiment, datatype
            if asset.revision > self._own.get(key, NOTHING).revision:
                self._own[key] = asset

    def __bool__(self) -> bool:
        return bool(self._own)

    @property
    def experiments(self) -> frozenset[tuple[str, str]]:
        """Organization (empty in v1) and name of each experiment that something is said of."""
        return frozenset(key[:2] for key in self._own)

    def has(self, organization: str, experiment: str) -> bool:
        """Return whether an experiment, or one of its datatypes, has an asset."""
        return (organization, experiment) in self.experiments

    def consumers(self, organization: str, experiment: str) -> frozenset[str]:
        """Return who may read any of an experiment's data."""
        return frozenset(
            member
            for key, asset in self._own.items()
            if key[:2] == (organization, experiment)
            for member in asset.consumers or ()
        )

    def own(self, experiment: str, datatype: str = "", organization: str = "") -> Asset:
        """Return what the asset of exactly this experiment or datatype says."""
        return self._own.get((organization, experiment, datatype), NOTHING)

    def of(self, experiment: str, datatype: str = "", organization: str = "") -> Asset:
        """Return what is said of a datatype, and where that says nothing, of its experiment.

        An experiment's description and retention say nothing of jostler's own datatypes, index1 and
        rejected1: these have rows of all the others, and are kept as long as any of them.

        Args:
            experiment: its name.
            datatype: its name; empty for the experiment itself.
            organization: in v2; empty in v1.
        """
        above = self.own(experiment, organization=organization)
        if not datatype:
            return above
        if datatype in OWN_DATATYPES:
            days = self._longest(experiment, organization)
            above = replace(above, description=None, retention_days=days)
        return self.own(experiment, datatype, organization).over(above)

    def _longest(self, experiment: str, organization: str) -> int | None:
        """Return the longest retention of an experiment's data; None if some is kept for ever."""
        own: Mapping[tuple[str, str, str], Asset] = self._own
        days = [self.own(experiment, organization=organization).retention_days]
        for place, asset in own.items():
            if place[:2] == (organization, experiment) and place[2] not in {"", *OWN_DATATYPES}:
                days.append(asset.over(self.own(experiment, "", organization)).retention_days)
        return None if None in days else max(day for day in days if day is not None)
