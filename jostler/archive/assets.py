"""Read the assets of a bucket: who owns its experiments and datatypes, and how they are kept.

**Invariant:** an asset that cannot be used is a problem of its experiment alone.  It is never taken
for one that is not there.

It only reads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostler.errors import MissingError, SchemaError, StorageError
from jostler.format.names import ASSET_SUFFIX, ASSETS, parse_asset
from jostler.schema import Asset, parse_asset_file

if TYPE_CHECKING:
    from jostler.format.names import Place
    from jostler.storage import Storage

THREADS = 8


@dataclass(slots=True)
class FoundAssets:
    """What was found in buckets.

    Attributes:
        assets: place, datatype (empty for the experiment as a whole) and asset.
        unread: the places of which an asset could not be used.
        problems: pairs of an object's URL and what is wrong with it.
    """

    assets: list[tuple[Place, str, Asset]] = field(default_factory=list)
    unread: set[Place] = field(default_factory=set)
    problems: list[tuple[str, str]] = field(default_factory=list)


def read_assets(storage: Storage, data_dir: str, found: FoundAssets) -> None:
    """Add the assets of one layout of a bucket to those that were found.

    Args:
        storage: the bucket.
        data_dir: `autoload/v1` or `autoload/v2`.
        found: is added to.

    Raises:
        StorageError: the bucket cannot be listed.
    """
    names = [info.name for info in storage.list(f"{data_dir}/{ASSETS}/")]
    with ThreadPoolExecutor(THREADS, thread_name_prefix="asset") as pool:
        for name, (place, datatype, asset) in zip(
            names, pool.map(lambda name: _read(storage, name), names), strict=True
        ):
            if isinstance(asset, Asset):
                assert place is not None
                found.assets.append((place, datatype, asset))
            elif asset:
                found.problems.append((f"{storage.url}/{name}", asset))
                if place:
                    found.unread.add(place)


def _read(storage: Storage, name: str) -> tuple[Place | None, str, Asset | str]:
    """Return place, datatype and asset of an object; of one that is none, a sentence.

    The sentence is empty if the object went away after it was listed.
    """
    try:
        place, datatype = parse_asset(name)
    except ValueError as exc:
        hint = f"an asset is named EXPERIMENT{ASSET_SUFFIX} or EXPERIMENT.DATATYPE{ASSET_SUFFIX}"
        return None, "", f"{exc}: {hint}"
    try:
        return place, datatype, parse_asset_file(storage.read(name).data, source="the object")
    except MissingError:
        return place, datatype, ""
    except SchemaError as exc:
        return place, datatype, f"is not an asset: {'; '.join(exc.problems)}"
    except StorageError as exc:
        return place, datatype, str(exc)
