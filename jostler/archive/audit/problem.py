"""What an audit finds, as values: which object, which line, what is wrong, and what to do.

Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of problems; each has a section in docs/keeping.md."""

    NO_INDEX = "no-index"
    NO_DATA = "no-data"
    DISAGREES = "disagrees"
    DAMAGED = "damaged"
    BAD_ROW = "bad-row"
    OTHER_DAY = "other-day"
    REPEATED = "repeated"
    SMALL = "small"
    SCHEMA = "schema"
    FOREIGN = "foreign"
    DAY_DIFFERS = "day-differs"
    UNREADABLE = "unreadable"


TO_DO = {
    Kind.NO_INDEX: "-fix makes the index again from the rows",
    Kind.NO_DATA: "restore the data object from a backup or an old generation;"
    " -fix=orphans removes the index",
    Kind.DISAGREES: "-fix makes the index again from the rows",
    Kind.DAMAGED: "-fix writes what can be read as a new bundle, and moves this one to quarantine/",
    Kind.BAD_ROW: "the loader sets the row aside; look at the program that wrote it",
    Kind.OTHER_DAY: "the loader sets the row aside; look at the program that wrote it",
    Kind.REPEATED: "nothing is lost: the loader takes it once; compaction merges jostler's bundles",
    Kind.SMALL: "compact the day: jostler-load compact",
    Kind.SCHEMA: "store the datatype's table schema: run an agent with -upload-schema, or jostler"
    " -schema",
    Kind.FOREIGN: "find out who stored it; remove it if nobody needs it",
    Kind.DAY_DIFFERS: "-fix marks the day as due, and the next run of jostler-load loads it again",
    Kind.UNREADABLE: "run the audit again; if it lasts, look at permissions and network",
}
MENDED = frozenset({Kind.NO_INDEX, Kind.DISAGREES, Kind.DAMAGED, Kind.DAY_DIFFERS})
"""What `-fix` mends; `-fix=orphans` mends NO_DATA as well."""


NO_INDEX, NO_DATA = "has no index bundle", "there is no data bundle for this index"
"""What is said of a half that is alone, by whichever command."""
NO_DATA_OF_FILTERS = "there is no data bundle for these token filters"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One problem.

    Attributes:
        object: name of the object, or of the folder, that it is about.
        line: of the object, from 1; 0 if it is about the object as a whole.
        kind: which kind of problem.
        detail: what is wrong, as a sentence without its subject.
    """

    object: str
    line: int
    kind: Kind
    detail: str

    @property
    def what(self) -> str:
        """The problem in one line, without what to do."""
        where = f"{self.object}: line {self.line}" if self.line else self.object
        return f"{where}: {self.detail}"

    @property
    def to_do(self) -> str:
        """What a keeper can do about it."""
        return TO_DO[self.kind]
