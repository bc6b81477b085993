"""The catalogue of an archive: which files it holds, and where each one lies.

**Invariant:** it only reads.  Two implementations, `bucket_catalogue` (the index objects of the
bucket) and `bigquery_catalogue` (the table index1), pass one suite of tests and give the same
results in the same order.

A file matches a range of time if [Start, End] and the range intersect, ends included.  A file
without End is an instant.  One without Start begins at its End, and if that is unknown too, at its
TimeAdded.  Files stored by m-lab's Go agent, or by an agent built before 22 November 2026, have
neither.

Equal node, datatype, Filename and Hash are one file: the earliest bundle's row is the result, and
the others are counted.  Rows without a Hash are never taken for the same file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from jostler.archive.files import Bundle, File, NodeDay, Origin, Position, Rejects, Tally
from jostler.archive.query import DAY, Query, around

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

__all__ = [
    "Bundle",
    "Catalogue",
    "File",
    "NodeDay",
    "Origin",
    "Position",
    "Query",
    "Rejects",
    "Tally",
    "latest",
]


class Catalogue(Protocol):
    """A catalogue.  Every method may be called from several threads at once.

    The iterators search as they are consumed, a day at a time, and hold the names of the bundles of
    at most one day in memory.
    Close one that is left early (`contextlib.closing`), so that its requests end.  A part of the
    archive that cannot be read is listed in `Tally.problems`, and the search goes on.

    Every method raises StorageError or QueryError when bucket or BigQuery cannot be reached.
    """

    def files(self, query: Query, tally: Tally | None = None) -> Iterator[File]:
        """Yield the files that match, in the order of day, name of the index object, and line."""

    def bundles(self, query: Query, tally: Tally | None = None) -> Iterator[Bundle]:
        """Yield the bundles with a file that matches, in the order of their files.

        The sums are those of the whole bundle, and `query.limit` counts bundles.  A file that is
        stored twice counts in both of its bundles.
        """

    def nodes(self, query: Query) -> tuple[str, ...]:
        """Return the nodes that have bundles, sorted; no index is read.

        Of the query only datatypes, nodes and days are used.
        """

    def days(self, query: Query, tally: Tally | None = None) -> Iterator[NodeDay]:
        """Yield one value for each day, datatype and node that has files, in this order.

        Of the query only datatypes, nodes, days and `newest_first` are used; `start` and `end` mean
        their days, with no day to either side.  A file that is stored twice counts twice.
        """

    def rejects(self, query: Query, tally: Tally | None = None) -> Iterator[Rejects]:
        """Yield the counts of rejected files by day, datatype, node and reason, in this order.

        Datatypes are the files' own.  Of the query the same is used as by `days`.
        """


def latest(
    catalogue: Catalogue, query: Query, now: datetime, tally: Tally | None = None
) -> list[File]:
    """Return for each node its newest file, which has the greatest (Start, TimeAdded), by node.

    The days are searched from the latest on, and each node only until no earlier folder can hold
    a newer file.

    Args:
        catalogue: where to look.
        query: which files; its `first_day` and `last_day` bound the search.
        now: files that begin more than 24 hours after this instant are passed over.
        tally: what the search does.
    """
    left = set(catalogue.nodes(query))
    newest: dict[str, File] = {}
    first, last = query.days()
    for back in range((last - first).days + 1):
        if not left:
            break
        day = last - back * DAY
        one_day = replace(query, first_day=day, last_day=day, nodes=tuple(sorted(left)))
        for file in catalogue.files(one_day, tally):
            known = newest.get(file.node)
            if file.begin <= now + DAY and (not known or _age(file) > _age(known)):
                newest[file.node] = file
        before = around(day - DAY)[1]
        left -= {node for node, file in newest.items() if file.begin >= before}
    return [newest[node] for node in sorted(newest)]


def _age(file: File) -> tuple[datetime, datetime]:
    return file.begin, file.added
