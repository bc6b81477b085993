"""The command `jostler asset`: show, check and store what is said of experiments and datatypes.

**Invariant:** only `put` writes, one object for each file, and never replaces a newer asset.  Who
may use the bucket is printed as commands and never changed.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jostler.agent import asset_sync
from jostler.agent.asset_sync import Stored
from jostler.archive.assets import FoundAssets, read_assets
from jostler.cli.archive_command import Archive, Command
from jostler.cli.archive_flags import WHERE
from jostler.cli.flags import Flag, boolean
from jostler.cli.keeping import bucket_of
from jostler.cli.messages import DONE, FAILED
from jostler.errors import SchemaError
from jostler.format.names import INDEX, Place
from jostler.format.urls import masked
from jostler.schema import Asset, Assets
from jostler.words import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.storage import Storage

ABOUT = """usage: jostler asset show  -bucket BUCKET [flags]
       jostler asset check [-bucket BUCKET] FILE...
       jostler asset put   -bucket BUCKET FILE...

show prints the assets of a bucket, a datatype's with what its experiment's says; -commands prints
the commands that give its producers and consumers access to the bucket.  check says what is wrong
with asset files, and how they compare with those in the bucket; put stores them, unless the bucket
has a newer one.  A file is named EXPERIMENT.asset.json or EXPERIMENT.DATATYPE.asset.json.
Exit status: 0 done; 1 a file is wrong or was not stored, or an asset cannot be read; 2 wrong use.

flags:"""
FLAGS = (
    Flag(
        name="commands",
        read=boolean,
        default="false",
        help="with show: print commands for the bucket's access, and run none",
        variable=False,
    ),
)
KEPT = ("bucket", "experiment", "organization", "gcs-data-dir", "datatype")
PLACES = tuple(flag for flag in WHERE if flag.name in KEPT)
MOST_FILES = 1000
READER, CREATOR = "roles/storage.objectViewer", "roles/storage.objectCreator"


def run(archive: Archive, words: list[str]) -> int:
    """Run one of the three.

    Raises:
        ValueError: wrong use.
        JostlerError: the bucket cannot be reached, or refuses.
    """
    verb, files = (words[0] if words else ""), [Path(word) for word in words[1:]]
    if archive.values["commands"] and verb != "show":
        raise ValueError("-commands: only with show")
    match verb:
        case "show" if not files:
            return _show(archive)
        case "check" | "put" if files:
            return _files(archive, files, puts=verb == "put")
        case "check" | "put":
            raise ValueError(f"{verb} needs asset files")
    raise ValueError("say show, check FILE..., or put FILE...")


def _line(archive: Archive, text: str) -> None:
    archive.progress.clear()
    sys.stdout.write(f"{shown(text)}\n")


# Files


def _files(archive: Archive, files: Sequence[Path], *, puts: bool) -> int:
    """Check or store files, each on its own; return the exit status."""
    storage = bucket_of(archive) if puts or archive.values["bucket"] else None
    well = True
    for path in files:
        try:
            experiment, datatype = asset_sync.name_of(path)
            place = _place(archive, experiment)
            asset = asset_sync.read_file(path)
            place.asset(datatype)  # checks the datatype's name
        except (ValueError, SchemaError) as exc:
            problems = exc.problems if isinstance(exc, SchemaError) else [str(exc)]
            for problem in problems:
                _line(archive, f"WRONG {path}: {problem}")
            well = False
            continue
        well &= _file(archive, path, storage, (place, datatype, asset), puts=puts)
    return DONE if well else FAILED


def _file(
    archive: Archive,
    path: Path,
    storage: Storage | None,
    what: tuple[Place, str, Asset],
    *,
    puts: bool,
) -> bool:
    if storage is None:
        _line(archive, f"ok {path}: revision {what[2].revision}")
        return True
    pair = (asset_sync.put if puts else asset_sync.compare)(storage, *what)
    left = pair.stored in {Stored.NEWER, Stored.DIFFERS, Stored.UNREADABLE}
    verb = "ok"
    if puts:
        verb = "stored" if pair.stored in {Stored.ABSENT, Stored.OLDER} else "unchanged"
    text = asset_sync.explain(pair)
    if puts and pair.stored is Stored.ABSENT:
        text = f"is new, revision {what[2].revision}"
    _line(archive, f"{'LEFT' if left else verb} {path}: {text}")
    return not left


def _place(archive: Archive, experiment: str) -> Place:
    """Return where the assets of a file's experiment are: in v2 if an organization is given.

    Raises:
        ValueError: a name is not allowed.
    """
    values = archive.values
    data_dir, organization = values["gcs-data-dir"], values["organization"]
    if organization and data_dir.endswith("v1"):
        data_dir = f"{data_dir.removesuffix('v1')}v2"
    return Place(data_dir=data_dir, organization=organization, experiment=experiment)


# The bucket


def _show(archive: Archive) -> int:
    """Print assets, or the commands for access; return the exit status."""
    storage, found = bucket_of(archive), FoundAssets()
    data_dir = archive.values["gcs-data-dir"]
    for each in dict.fromkeys((data_dir, f"{data_dir.removesuffix('v1')}v2")):
        if each.endswith(("v1", "v2")):
            read_assets(storage, each, found)
    for url, why in found.problems:
        archive.say(f"{url}: {why}")
    known = Assets(found.assets)
    wanted = sorted(_wanted(archive, found), key=lambda one: (str(one[0]), one[1]))
    if not wanted:
        archive.say("there is no such asset")
    for place, datatype, asset in wanted:
        merged = known.of(place.experiment, datatype, place.organization)
        lines = list(_shown(place, datatype, asset, merged))
        if archive.values["commands"]:
            lines = commands(storage.url, place, datatype, merged)
        for line in lines:
            _line(archive, line)
    return FAILED if found.problems else DONE


def _wanted(archive: Archive, found: FoundAssets) -> Iterator[tuple[Place, str, Asset]]:
    """Yield what the flags select; a named datatype also if only its experiment has an asset."""
    values = archive.values
    datatypes = set(values["datatype"] or ())
    own = {(place, datatype): asset for place, datatype, asset in found.assets}
    for (place, datatype), asset in own.items():
        if values["experiment"] and place.experiment != values["experiment"]:
            continue
        if values["organization"] and place.organization != values["organization"]:
            continue
        if not datatypes or datatype in datatypes:
            yield place, datatype, asset
        if not datatype:
            for other in datatypes:
                if (place, other) not in own:
                    yield place, other, Asset()


def _shown(place: Place, datatype: str, own: Asset, merged: Asset) -> Iterator[str]:
    name = "/".join(part for part in (place.organization, place.experiment, datatype) if part)
    told = own.to_api()
    taken = [key for key in merged.to_api() if key not in {*told, "revision"}]
    more = f"; of its experiment: {', '.join(taken)}" if taken else ""
    revision = f"revision {own.revision}" if own.revision else "no asset of its own"
    yield f"{name}: {revision}{more}"
    if merged.notify is not None:  # their paths may hold tokens
        merged = replace(merged, notify=tuple(map(masked, merged.notify)))
    yield from (f"  {line}" for line in merged.to_json().decode().splitlines())


def commands(url: str, place: Place, datatype: str, asset: Asset) -> list[str]:
    """Return the commands that give producers and consumers access to a bucket's objects.

    A binding has a condition on the names of objects, for which the bucket needs uniform
    bucket-level access.  Producers get what an agent needs, consumers what a reader needs.

    Args:
        url: of the bucket.
        place: of the experiment.
        datatype: empty for all of the experiment.
        asset: what is said of it.
    """
    if not url.startswith("gs://"):
        return [f"# {url} is a directory: use its permissions"]
    folders = [f"{place.root}/"]
    if datatype:
        folders = [f"{place.root}/{datatype}/", f"{place.root}/{INDEX}/"]
    found = [f"# {place.root}{f'/{datatype}' if datatype else ''}"]
    for members, roles in (
        (asset.producers, (CREATOR, READER)),
        (asset.consumers, (READER,)),
    ):
        for member in members or ():
            found += [_binding(url, member, role, folders) for role in roles]
    return found


def _binding(url: str, member: str, role: str, folders: Iterable[str]) -> str:
    bucket = url.removeprefix("gs://")
    tests = []
    for folder in folders:
        tests.append(f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{folder}")')
        # A listing's resource is the bucket; what is listed stands in this attribute.
        prefix = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "")'
        tests.append(f'{prefix}.startsWith("{folder}")')
    # The first three characters make `;` the separator, as the expression has commas.
    condition = f"^;^title=jostler;expression={' || '.join(tests)}"
    return shlex.join(
        [
            *("gcloud", "storage", "buckets", "add-iam-policy-binding", url),
            *(f"--member={member}", f"--role={role}", f"--condition={condition}"),
        ]
    )


main = Command(
    name="asset", about=ABOUT, flags=FLAGS, most_words=1 + MOST_FILES, run=run, where=PLACES
).main
