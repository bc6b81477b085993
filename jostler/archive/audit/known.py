"""What other bundles of a day know of the rows of one that lacks its index, or its data.

**Invariant:** it only reads; a bundle that has gone meanwhile knows nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from jostler.archive.audit.problem import Kind
from jostler.archive.audit.remake import known_files
from jostler.archive.lines import RowError, lines_of, row
from jostler.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.archive.audit.audit import DayFound
    from jostler.archive.audit.scope import Bundle
    from jostler.archive.files import File
    from jostler.storage import Storage

    _Row = tuple[str, str, str]

BROKEN = {Kind.NO_INDEX, Kind.DISAGREES, Kind.DAMAGED, Kind.UNREADABLE}
"""What a whole bundle has none of."""


def known_of_day(storage: Storage, data: bytes, same_day: Sequence[Bundle]) -> Iterator[File]:
    """Yield what the indexes of a day know of the files of a merged bundle.

    A compaction that was killed before it stored the index has left all inputs.  The next one
    removes them, for the merged bundle has their rows; then it must have their times, too.

    Args:
        storage: the bucket.
        data: of the merged bundle.
        same_day: the bundles of the day.
    """
    try:
        names = {str(row(line).archiver["Filename"]) for line in lines_of(data)}
    except RowError:
        return  # making the index says so
    for files in _files_of(storage, same_day):
        yield from (file for file in files if file.filename in names and file.hash_of_raw)


def rests_of(storage: Storage, day: DayFound) -> set[str]:
    """Return the indexes without data of which whole bundles of the day have every row.

    They are what is left if the data was compacted while an agent, or a mend, stored the index.
    """
    lost: dict[str, set[_Row]] = {}
    for index_name, info in day.listed.orphans:
        with suppress(MissingError):
            index = storage.read(info.name, info.version).data
            files = known_files(index_name, storage.url, index)
            lost[info.name] = {_row_of(file) for file in files}
    broken = {problem.object for problem in day.problems if problem.kind in BROKEN}
    whole = [
        bundle
        for bundle in day.listed.bundles
        if not broken & {str(bundle.name), str(bundle.index_name)}
    ]
    missing = {one for rows in lost.values() for one in rows}
    for files in _files_of(storage, whole) if missing else ():
        missing -= {_row_of(file) for file in files if file.hash}
    return {name for name, rows in lost.items() if rows and not rows & missing}


def _files_of(storage: Storage, bundles: Iterable[Bundle]) -> Iterator[list[File]]:
    """Yield what each index says that is still there."""
    for bundle in bundles:
        with suppress(MissingError):
            index = None
            if bundle.index:
                index = storage.read(bundle.index.name, bundle.index.version).data
            yield known_files(bundle.index_name, storage.url, index)


def _row_of(file: File) -> _Row:
    return file.node, file.filename, file.hash
