"""The assets of a run's buckets: what is said of experiments and datatypes.

**Invariant:** a bucket whose assets cannot be listed is not taken for one without assets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostler.archive.assets import FoundAssets, read_assets
from jostler.errors import StorageError
from jostler.schema import Assets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostler.schema import Asset
    from loader.cli.options import Options
    from loader.plan.discover import Table


@dataclass(frozen=True, slots=True)
class RunAssets:
    """What a run knows of assets.

    Attributes:
        all: of all buckets of the run, whichever experiments were selected.
        unread: organization and experiment of which nothing is certain, because an asset could not
            be read.
        problems: pairs of what is concerned and what is wrong.
        expirations: the days of --partition-expiration, by datatype; 0 for never.
    """

    all: Assets = field(default_factory=Assets)
    unread: frozenset[tuple[str, str]] = frozenset()
    problems: tuple[tuple[str, str], ...] = ()
    expirations: Mapping[str, int] = field(default_factory=dict)

    def of(self, table: Table) -> Asset:
        """Return what is said of a table's datatype."""
        place = table.place
        return self.all.of(place.experiment, table.sources[0].datatype, place.organization)

    def days_kept(self, table: Table) -> tuple[int | None, bool]:
        """Return for how many days BigQuery is to keep a table's partitions.

        Returns:
            The days: 0 for ever, None if nobody says it; and whether the command line says it.
        """
        given = self.expirations.get(table.sources[0].datatype)
        if given is not None:
            return given, True
        return self.of(table).retention_days, False


def assets_of(tables: list[Table], options: Options) -> RunAssets:
    """Read the assets of all buckets that tables come from, unless the options ignore them."""
    found = FoundAssets()
    buckets = {
        (source.bucket.url, source.place.data_dir): source.bucket
        for table in tables
        for source in table.sources
        if options.reads_assets
    }
    for (url, data_dir), bucket in buckets.items():
        try:
            read_assets(bucket.storage, data_dir, found)
        except StorageError as exc:
            places = {source.place for table in tables for source in table.sources}
            found.unread |= {place for place in places if place.data_dir == data_dir}
            found.problems.append((f"{url}/{data_dir}", f"its assets cannot be listed: {exc}"))
    return RunAssets(
        all=Assets(found.assets),
        unread=frozenset((place.organization, place.experiment) for place in found.unread),
        problems=tuple(found.problems),
        expirations=options.partition_expiration,
    )
