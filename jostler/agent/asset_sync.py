"""Upload a node's asset files: who owns the experiment and its datatypes, who may read them.

**Invariant:** an asset in the bucket is replaced only by one with a greater revision, and only at
the version that was compared, so a node with an older file puts back nothing.

A file that is wrong, or that may not be uploaded, is logged and stops nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from jostler.errors import (
    AuthError,
    ConflictError,
    MissingError,
    RefusedError,
    SchemaError,
)
from jostler.format.names import OWN_DATATYPES
from jostler.log import Log
from jostler.schema import Asset, parse_asset_file

if TYPE_CHECKING:
    from pathlib import Path

    from jostler.config import Config
    from jostler.format.names import Place
    from jostler.storage import Storage

log = Log("jostler.assets")

FILE_SUFFIX = ".asset.json"
FOLDER = "datatypes"
RACES_MAX = 20  # as many nodes as may start at once, as for table schemas


class Stored(StrEnum):
    """How the asset in the bucket compares with ours."""

    ABSENT = "absent"
    SAME = "same"
    OLDER = "older"
    NEWER = "newer"
    DIFFERS = "differs"
    """It has the same revision, and says something else."""
    UNREADABLE = "unreadable"
    """It is no asset, or one of a newer release: which of both is newer is not known."""


class AssetPair(Struct, frozen=True, kw_only=True):
    """An asset, and what the bucket has in its place.

    Attributes:
        name: the object's name.
        stored: how that object compares with ours.
        revision: of that object; 0 if it has none that can be read.
        version: the object's version; empty if there is no object.
        problem: why it is unreadable; else empty.
    """

    name: str
    stored: Stored
    revision: int = 0
    version: str = ""
    problem: str = ""


class AssetFile(Struct, frozen=True, kw_only=True):
    """An asset file of a node.

    Attributes:
        path: the file.
        datatype: empty for the experiment's asset.
        asset: what it says.
    """

    path: Path
    datatype: str
    asset: Asset


def name_of(path: Path) -> tuple[str, str]:
    """Return experiment and datatype of an asset file's name; no datatype: the experiment's.

    Raises:
        ValueError: it is not `<experiment>.asset.json` or `<experiment>.<datatype>.asset.json`.
    """
    stem = path.name.removesuffix(FILE_SUFFIX)
    experiment, _, datatype = stem.partition(".")
    if stem == path.name or not experiment or "." in datatype or stem.endswith("."):
        raise ValueError(
            f"{path}: an asset file is named EXPERIMENT{FILE_SUFFIX} or"
            f" EXPERIMENT.DATATYPE{FILE_SUFFIX}"
        )
    return experiment, datatype


def read_file(path: Path) -> Asset:
    """Read an asset file.

    Raises:
        SchemaError: it is no asset, or cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise SchemaError(f"{path}: cannot be read", [str(exc.strerror)]) from exc
    return parse_asset_file(data, source=str(path))


def read_files(config: Config) -> tuple[list[AssetFile], list[SchemaError]]:
    """Return the asset files of the agent's experiment, and the errors of those that are wrong."""
    experiment = config.place.experiment
    known = {"", *OWN_DATATYPES, *(datatype.name for datatype in config.datatypes)}
    found, errors = [], []
    for path in sorted((config.local_data_dir / FOLDER).glob(f"*{FILE_SUFFIX}")):
        if path.name.partition(".")[0] != experiment:
            continue
        try:
            _, datatype = name_of(path)
            if datatype not in known:
                log.info("asset.ignored", file=str(path), reason=f"-datatype {datatype} not given")
                continue
            found.append(AssetFile(path=path, datatype=datatype, asset=read_file(path)))
        except SchemaError as exc:
            errors.append(exc)
        except ValueError as exc:
            errors.append(SchemaError(f"{path} is not an asset", [str(exc)]))
    return found, errors


def compare(storage: Storage, place: Place, datatype: str, asset: Asset) -> AssetPair:
    """Compare an asset with the one in the bucket.

    Raises:
        TransientError: the bucket cannot be read.
    """
    name = place.asset(datatype)
    try:
        found = storage.read(name)
    except MissingError:
        return AssetPair(name=name, stored=Stored.ABSENT)
    try:
        stored = parse_asset_file(found.data, source=f"{storage.url}/{name}")
    except SchemaError as exc:
        problem = "; ".join(exc.problems)
        return AssetPair(
            name=name, stored=Stored.UNREADABLE, version=found.version, problem=problem
        )
    if stored.revision != asset.revision:
        relation = Stored.OLDER if stored.revision < asset.revision else Stored.NEWER
    else:
        relation = Stored.SAME if stored == asset else Stored.DIFFERS
    return AssetPair(name=name, stored=relation, revision=stored.revision, version=found.version)


def put(storage: Storage, place: Place, datatype: str, asset: Asset) -> AssetPair:
    """Store an asset if the bucket has none, or an older one.

    Returns:
        What the bucket had before.

    Raises:
        ConflictError: other programs replace the object all the time.
        TransientError: the bucket cannot be reached, or refuses.
    """
    for _ in range(RACES_MAX):
        pair = compare(storage, place, datatype, asset)
        try:
            if pair.stored is Stored.ABSENT:
                storage.put_new(pair.name, asset.to_json(), {})
            elif pair.stored is Stored.OLDER:
                storage.replace(pair.name, asset.to_json(), pair.version)
        except ConflictError:
            continue  # another node stored one after our read: compare with that
        return pair
    raise ConflictError(f"{storage.url}/{place.asset(datatype)} changes too often")


def upload(storage: Storage, config: Config) -> None:
    """Upload the node's asset files where they are newer than the bucket's; log what is wrong.

    With `-upload-schema=false` they are only compared.

    Raises:
        TransientError: the bucket cannot be reached.
    """
    files, errors = read_files(config)
    for error in errors:
        log.error("asset.wrong", error=str(error), next="it is not uploaded", hint=error.hint)
    for file in files:
        step = put if config.upload_schema else compare
        try:
            pair = step(storage, config.place, file.datatype, file.asset)
        except (AuthError, RefusedError, ConflictError) as exc:
            log.error(
                "asset.not_uploaded", file=str(file.path), error=str(exc), hint=exc.hint or MAY_NOT
            )
            continue
        _say(file, pair, uploads=config.upload_schema)


MAY_NOT = "upload it by `jostler asset put` from a machine that may write it"


def _say(file: AssetFile, pair: AssetPair, *, uploads: bool) -> None:
    facts = {"file": str(file.path), "object": pair.name, "revision": file.asset.revision}
    match pair.stored:
        case Stored.ABSENT | Stored.OLDER if uploads:
            log.info("asset.uploaded", **facts, replaced=pair.revision)
        case Stored.ABSENT | Stored.OLDER:
            error = "the bucket has none or an older one, and -upload-schema is false"
            log.warning("asset.not_uploaded", **facts, error=error, hint=MAY_NOT)
        case Stored.NEWER:
            log.info("asset.older_than_stored", **facts, stored=pair.revision)
        case Stored.DIFFERS | Stored.UNREADABLE:
            log.warning("asset.differs", **facts, error=explain(pair), next="left as it is")


def explain(pair: AssetPair) -> str:
    """Say how the stored asset compares with ours, and what to do."""
    match pair.stored:
        case Stored.ABSENT:
            return "is not in the bucket yet"
        case Stored.SAME:
            return f"is in the bucket, revision {pair.revision}"
        case Stored.OLDER:
            return f"replaces revision {pair.revision} of the bucket"
        case Stored.NEWER:
            return f"is older than revision {pair.revision} of the bucket"
        case Stored.DIFFERS:
            return (
                f"says something else than revision {pair.revision} of the bucket: raise its"
                " revision"
            )
        case _:
            return (
                f"the bucket's cannot be read ({pair.problem}): correct or remove that object,"
                " unless a newer release of jostler wrote it"
            )
