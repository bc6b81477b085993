"""The command `jostler retention`: what is older than it is to be kept, and the rules for it.

**Invariant:** it only reads.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jostler.archive.delete import old_days, retained
from jostler.archive.retention import expiration, lifecycle, parse
from jostler.cli.archive_command import DONE, Archive, Command
from jostler.cli.keeping import bucket_of, kept_places
from jostler.cli.keeping_flags import PLACES, PROJECT, RETENTION
from jostler.format.bigquery_names import Naming, table_name
from jostler.words import counted, shown, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jostler.format.names import Place
    from jostler.storage import Storage

ABOUT = """usage: jostler retention -retain DATATYPE=DAYS [flags]

Shows what the archive has that is older than it is to be kept, with the command that deletes it;
the lifecycle rule of the bucket and, with -project, the partition expiration of BigQuery that would
do the same.  It changes nothing.
Exit status: 0 shown; 1 the bucket cannot be read; 2 wrong use.

flags:"""


def run(archive: Archive, _: list[str]) -> int:
    """Show what is older.

    Raises:
        ValueError: wrong use.
        JostlerError: the bucket cannot be read.
    """
    values = archive.values
    retain = parse(values["retain"])
    if not retain:
        raise ValueError("-retain: required: DATATYPE=DAYS")
    storage = bucket_of(archive)
    places = list(kept_places(archive, storage))
    datatypes = {place: storage.folders(f"{place.root}/") for place in places}
    for line in (
        *older(storage, places, retain, datetime.now(UTC)),
        "",
        "The bucket's lifecycle rule, for `gcloud storage buckets update --lifecycle-file`:",
        json.dumps(lifecycle(datatypes, retain), indent=2),
        *_expiration(values["project"], values["naming"], places, retain),
    ):
        archive.progress.clear()
        sys.stdout.write(f"{line}\n")
    return DONE


def older(
    storage: Storage, places: Sequence[Place], retain: Mapping[str, int], now: datetime
) -> Iterator[str]:
    """Yield a line for each datatype of each place.

    Args:
        storage: the bucket.
        places: of the experiments.
        retain: how many days each datatype is kept.
        now: the current time.
    """
    for datatype, scope in retained(dict(retain), now.date()).items():
        for place in places:
            found = list(old_days(storage, [place], scope, min_age=timedelta(0), now=now))
            text = f"{place.root}/{datatype}: kept {counted(retain[datatype], 'day')}"
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
            yield shown(
                f"  jostler delete -bucket {storage.url} -experiment {place.experiment}"
                f"{organization} -datatype {datatype} -start {min(days)} -end {max(days)}"
            )


def _expiration(
    project: str, naming: str, places: Sequence[Place], retain: Mapping[str, int]
) -> Iterator[str]:
    if not project:
        return
    tables = [
        (table_name(Naming(naming), project, place, datatype), days)
        for place in places
        for datatype, days in sorted(retain.items())
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
