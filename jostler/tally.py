"""Counts: for every file seen, the one end it met; numbers for logs, exit status and metrics."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """What happened since the start; owned by the agent's thread.

    Attributes:
        taken: files put into a bundle, by datatype.
        archived: files whose bundle is durable, by datatype.
        rejected: files set aside, by (datatype, reason).
        kept: bad files left in place, by (datatype, reason).
        deleted: bad files deleted without an upload, by (datatype, reason).
        changed: files that changed while their bundle was pending, by datatype.
        vanished: files that were gone before they could be read, by datatype.
        bundles: bundles stored, by datatype.
        object_bytes: bytes of data objects stored, by datatype.
    """

    taken: Counter[str] = field(default_factory=Counter)
    archived: Counter[str] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    kept: Counter[tuple[str, str]] = field(default_factory=Counter)
    deleted: Counter[tuple[str, str]] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    vanished: Counter[str] = field(default_factory=Counter)
    bundles: Counter[str] = field(default_factory=Counter)
    object_bytes: Counter[str] = field(default_factory=Counter)

    def totals(self) -> dict[str, int]:
        """Return the sums, for a log line."""
        return {
            "taken": self.taken.total(),
            "archived": self.archived.total(),
            "rejected": self.rejected.total(),
            "kept": self.kept.total(),
            "deleted": self.deleted.total(),
            "changed": self.changed.total(),
            "vanished": self.vanished.total(),
            "bundles": self.bundles.total(),
            "object_bytes": self.object_bytes.total(),
        }
