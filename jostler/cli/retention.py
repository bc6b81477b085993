"""The command `jostler retention`: what is older than it is to be kept, and the rules for it.

**Invariant:** it only reads.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import TYPE_CHECKING, Any

from jostler.archive.assets import FoundAssets, read_assets
from jostler.archive.delete import old_days, retained
from jostler.archive.retention import expiration, lifecycle, parse
from jostler.cli.archive_command import Archive, Command
from jostler.cli.keeping import bucket_of, kept_places
from jostler.cli.keeping_flags import MIN_AGE, PLACES, PROJECT, RETENTION
from jostler.cli.messages import DONE, FAILED
from jostler.format.bigquery_names import Naming, table_name
from jostler.format.names import INDEX
from jostler.schema import Assets
from jostler.words import counted, shown, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from jostler.format.names import Place
    from jostler.storage import Storage

_ALIKE = ("gcs-data-dir", "location", "naming", "project")
ABOUT = """usage: jostler retention [-retain DATATYPE=DAYS] [flags]

Shows what the archive has that is older than it is to be kept, with the command that deletes it;
the lifecycle rule of the bucket and, with -project, the partition expiration of BigQuery that would
do the same.  It changes nothing.  How long data is kept is said by -retain, and where that says
nothing by retention_days of the assets.
Exit status: 0 shown; 1 the bucket or an asset cannot be read; 2 wrong use.

flags:"""


def run(archive: Archive, _: list[str]) -> int:
    """Show what is older.

    Raises:
        ValueError: wrong use.
        JostlerError: the bucket cannot be read.
    """
    values = archive.values
    given = parse(values["retain"])
    if INDEX in given:
        raise ValueError(f"-retain: {INDEX} goes with its data: name the data's datatype")
    storage = bucket_of(archive)
    datatypes = {
        place: storage.folders(f"{place.root}/") for place in kept_places(archive, storage)
    }
    assets = FoundAssets()
    for data_dir in sorted({place.data_dir for place in datatypes}):
        read_assets(storage, data_dir, assets)
    known = Assets(assets.assets)
    wanted = values["datatype"]
    retain = {
        # An asset that cannot be read may keep data longer than others say.
        place: _kept(
            place,
            [name for name in names if not wanted or name in wanted],
            given,
            Assets() if place in assets.unread else known,
        )
        for place, names in datatypes.items()
    }
    if unknown := sorted(set(given) - {name for names in datatypes.values() for name in names}):
        archive.say(f"{storage.url} has nothing of {', '.join(unknown)}")
    if not given and not any(retain.values()):
        hint = "no asset has retention_days" if not assets.problems else "the assets are wrong"
        raise ValueError(f"-retain: required: DATATYPE=DAYS, for {hint}")
    rules = [lifecycle({place: datatypes[place]}, kept)["rule"] for place, kept in retain.items()]
    for line in (
        *older(storage, retain, datetime.now(UTC), _more_flags(values)),
        "",
        "The bucket's lifecycle rule, for `gcloud storage buckets update --lifecycle-file`:",
        json.dumps({"rule": [rule for each in rules for rule in each]}, indent=2),
        *_expiration(values["project"], values["naming"], retain),
    ):
        archive.progress.clear()
        sys.stdout.write(f"{line}\n")
    for url, why in assets.problems:
        archive.say(f"{url}: {why}")
    return FAILED if assets.problems else DONE


def _kept(
    place: Place, datatypes: Iterable[str], given: Mapping[str, int], assets: Assets
) -> dict[str, int]:
    """Return how many days each datatype of a place is kept, if anybody says it.

    Indexes are not datatypes to be deleted by themselves: they go with their data.
    """
    kept = {}
    for datatype in sorted({*datatypes} - {INDEX}):
        asset = assets.of(place.experiment, datatype, place.organization)
        if days := given.get(datatype) or asset.retention_days:
            kept[datatype] = days
    return kept


def _more_flags(values: Mapping[str, Any]) -> str:
    """Return the flags of this command that `jostler delete` needs, too."""
    flags = [flag for flag in (*PLACES, *PROJECT) if flag.name in _ALIKE]
    given = [(flag.name, values[flag.name]) for flag in flags if values[flag.name] != flag.default]
    return "".join(f" -{name} {quote(value)}" for name, value in given)


def older(
    storage: Storage, retain: Mapping[Place, Mapping[str, int]], now: datetime, more: str = ""
) -> Iterator[str]:
    """Yield a line for each datatype of each place, and the command that deletes what is older.

    Args:
        storage: the bucket.
        retain: how many days each datatype of each place is kept.
        now: the current time.
        more: flags of the command, beside what is to be deleted.
    """
    for place, kept in retain.items():
        for datatype, scope in retained(dict(kept), now.date()).items():
            found = list(old_days(storage, [place], scope, min_age=timedelta(0), now=now))
            text = f"{place.root}/{datatype}: kept {counted(kept[datatype], 'day')}"
            if not found:
                yield shown(f"{text}; nothing is older")
                continue
            days = [one.listed.day for one in found]
            objects = sum(len(one.objects) for one in found)
            total = size(sum(one.size_bytes for one in found))
            yield shown(
                f"{text}; older: {counted(len(days), 'day')} from {min(days)} to {max(days)},"
                f" {counted(objects, 'object')}, {total}"
            )
            organization = f" -organization {place.organization}" if place.organization else ""
            hours = kept[datatype] * 24
            young = f" -min-age {hours}h" if timedelta(hours=hours) < MIN_AGE else ""
            yield shown(
                f"  jostler delete -bucket {quote(storage.url)} -experiment {place.experiment}"
                f"{organization} -datatype {datatype} -start {min(days)} -end {max(days)}"
                f"{young}{more}"
            )


def _expiration(
    project: str, naming: str, retain: Mapping[Place, Mapping[str, int]]
) -> Iterator[str]:
    if not project:
        return
    tables = [
        (table_name(Naming(naming), project, place, datatype), days)
        for place, kept in retain.items()
        for datatype, days in sorted(kept.items())
    ]
    yield ""
    yield "The partition expiration in BigQuery:"
    yield from expiration(tables)


main = Command(
    name="retention",
    about=ABOUT,
    flags=(*PROJECT[:1], *RETENTION),
    most_words=0,
    run=run,
    where=PLACES,
).main
