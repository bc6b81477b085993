"""Whether to load a day anew would lose rows: objects that it was loaded from are gone.

Compaction removes objects on purpose, after their rows are durable in a merged bundle.  Of a day
that has merged bundles, what counts is therefore the number of its rows: it is loaded if it has as
many as it was loaded with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.format.names import INDEX, Day
from jostler.format.nodes import is_merged_node
from loader.errors import WOULD_LOSE
from loader.plan.discover import bundles
from loader.plan.due import Refusal, Status, gone_objects, loss_message
from loader.plan.window import of_day

if TYPE_CHECKING:
    from loader.plan.due import Loaded, TableDay

MANY = 500
"""Objects of a day that may lie on several pages of a listing, which have a thousand each."""


def lost(day: TableDay, loaded: Loaded | None) -> Refusal | None:
    """Refuse a day if objects from which it was loaded are gone and no merged bundle is there."""
    gone = gone_objects(day, loaded)
    if loaded is None or not gone or has_merged(day):
        return None
    why = loss_message(gone, loaded.count)
    return Refusal(day=day, status=Status.FAILED, why=why, error=WOULD_LOSE)


def owed(day: TableDay, loaded: Loaded | None) -> int:
    """Return how many rows a day must have to be loaded; 0 if no object is gone.

    Raises:
        BucketError: the bucket cannot be listed.
    """
    if loaded is None or not gone_objects(day, loaded):
        return 0
    return max(0, loaded.rows - left_out(day))


def has_merged(day: TableDay) -> bool:
    """Return whether one of the day's bundles is a merged one."""
    return any(is_merged_node(bundle.node) for bundle in day.bundles)


def left_out(day: TableDay) -> int:
    """Return how many rows a table may have lost by compaction, at the most.

    Repeats of feeds go from every table if that was asked for (`collapsed`).  A file that was
    stored twice has two rows in index1, and one after its bundles are merged (`repeats`); tables
    of data have had only one of its rows before.

    Raises:
        BucketError: the bucket cannot be listed.
    """
    found = 0
    for source in day.table.sources:
        words = ("repeats", "collapsed") if source.datatype == INDEX else ("collapsed",)
        prefix = f"{source.place.root}/{source.datatype}/{Day(day.date).path}/"
        for entry in source.bucket.list(prefix, metadata=True):
            numbers = (entry.metadata.get(word, "") for word in words)
            found += sum(int(number) for number in numbers if number.isdecimal())
    return found


def merged_since(day: TableDay) -> bool:
    """Return whether a merged bundle is there that the day's listing does not have.

    A merged bundle's name comes before those of other bundles.  A listing of many pages that began
    before it was stored, and comes to its inputs after they were removed, shows neither.  A listing
    that begins now shows it.  Few objects lie on one page or two, and it takes longer from storing
    to removing than from one page to the next.

    Raises:
        BucketError: the bucket cannot be listed.
    """
    if len(day.bundles) < MANY:
        return False
    window = of_day(day.date)
    now = bundles(day.table, window, []).get(day.date, [])
    known = {bundle.url for bundle in day.bundles}
    return any(is_merged_node(one.node) and one.url not in known for one in now)


def too_few(rows: int, least: int) -> str:
    """Return the sentence for a day that has fewer rows than it was loaded with."""
    return (
        f"objects that it was loaded from are gone, and its merged bundles and others have {rows}"
        f" good rows, not {least} as it was loaded with: to load the day would remove rows; restore"
        " the objects, or use --accept-deletions"
    )
