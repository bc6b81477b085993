"""The agent's counts, for log lines, the exit status and the metrics.

**Invariant:** counts only grow.  A good file is counted in `taken` and, once its bundle is durable,
in `archived`, both under its datatype.  A bad file is counted once in `rejected`, `kept` or
`deleted`, under its datatype; its row is archived under the datatype rejected1.  So is the row of a
file that is given up, which is counted in `given_up` alone.
"""

from __future__ import annotations

import time
from collections import Counter
from copy import copy
from typing import NamedTuple

from msgspec import Struct, field

REFUSED_KEPT = 50
"""The number of bad files remembered for each datatype."""


class Refused(NamedTuple):
    """A bad file, as the status page shows it.

    Attributes:
        path: the path below the experiment's directory, without control characters.
        datatype: the datatype in the path.
        reason: the reason code, such as `wrong-type`.
        field: the field that is wrong; empty if the reason concerns the whole file.
        detail: what was expected and what was found.
        at_s: when the file was judged, Unix time.
    """

    path: str
    datatype: str
    reason: str
    field: str
    detail: str
    at_s: float


class Tally(Struct):
    """Counts since the agent's start; changed only by the agent's thread.

    Attributes:
        taken: files put into a bundle, by datatype.
        file_bytes: bytes of these files, by datatype.
        sealed: bundles sealed, by (datatype, reason).
        replayed: bundles of an earlier process that this one continued.
        refused: the last bad files, oldest first, by datatype.
        archived: files whose bundle is durable, by datatype.
        rejected: bad files put into a rejected1 bundle, by (datatype, reason).
        kept: bad files left in the spool, by (datatype, reason).
        deleted: bad files deleted without an upload, by (datatype, reason).
        given_up: files given up unsent because the disk lacked space, by datatype.
        changed: files that changed while their bundle was pending, by datatype.
        vanished: files that were gone before they could be read, by datatype.
        bundles: bundles stored, by datatype.
        object_bytes: bytes of data objects stored, by datatype.
        index_nulls: null values of `-index-field` columns, because the source was missing or of
            another type, by (datatype, column).
    """

    taken: Counter[str] = field(default_factory=Counter)
    file_bytes: Counter[str] = field(default_factory=Counter)
    sealed: Counter[tuple[str, str]] = field(default_factory=Counter)
    replayed: int = 0
    refused: dict[str, tuple[Refused, ...]] = field(default_factory=dict)
    archived: Counter[str] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    deleted: Counter[tuple[str, str]] = field(default_factory=Counter)
    given_up: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    vanished: Counter[str] = field(default_factory=Counter)
    bundles: Counter[str] = field(default_factory=Counter)
    object_bytes: Counter[str] = field(default_factory=Counter)
    index_nulls: Counter[tuple[str, str]] = field(default_factory=Counter)

    def refuse(self, path: str, datatype: str, reason: str, *, field: str, detail: str) -> None:
        """Remember a bad file; forget the oldest of its datatype beyond `REFUSED_KEPT`."""
        now_s = time.time()
        kept = self.refused.get(datatype, ())[1 - REFUSED_KEPT :]
        self.refused[datatype] = (*kept, Refused(path, datatype, reason, field, detail, now_s))

    def copy(self) -> Tally:
        """Return a copy of the current counts, which other threads may read."""
        # A shallow copy of each counter is enough: their values are numbers and tuples.
        made = Tally()
        for name in self.__struct_fields__:
            setattr(made, name, copy(getattr(self, name)))
        return made

    def totals(self) -> dict[str, int]:
        """Return the sums over all datatypes and reasons, for a log line."""
        return {
            "taken": self.taken.total(),
            "archived": self.archived.total(),
            "rejected": self.rejected.total(),
            "kept": self.kept.total(),
            "deleted": self.deleted.total(),
            "given_up": self.given_up.total(),
            "changed": self.changed.total(),
            "vanished": self.vanished.total(),
            "bundles": self.bundles.total(),
            "object_bytes": self.object_bytes.total(),
            "index_nulls": self.index_nulls.total(),
        }
