"""What the server shows, and the parts of an archive that it asks.

Pure: the parts do the reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from jostler import build
from jostler.archive.serve.pages.layout import Site

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from jostler.archive.catalogue import Catalogue, File
    from jostler.archive.load_status import LoadStatus
    from jostler.archive.serve.summary import Summary
    from jostler.why.finding import Finding


class Contents(Protocol):
    """Reads files and finds out where they are."""

    def raw(self, file: File) -> bytes:
        """Return the column `raw` of a file's row, verified against its Hash.

        Raises:
            JostlerError: it cannot be read, or is not what was stored.
        """

    def findings(self, file: File) -> list[Finding]:
        """Return where a file is, as `jostler why` shows it."""


class LedgerRows(Protocol):
    """The loader's ledger."""

    def rows(self, datatype: str, day: date) -> list[dict[str, Any]]:
        """Return the rows of a day, the newest first."""

    def status(self, today: date) -> LoadStatus:
        """Return how the loads stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What the server shows.

    Attributes:
        name: the URL of the bucket, with the experiment.
        catalogue: finds files.
        contents: reads files.
        summary: the sums of the last weeks.
        ledger: the loader's ledger; None without a project.
        hosts: names that the Host header may have, beside addresses and localhost.
        clock: returns the current time in UTC.
    """

    name: str
    catalogue: Catalogue
    contents: Contents
    summary: Summary
    ledger: LedgerRows | None
    hosts: frozenset[str]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def site(self) -> Site:
        """Return what all pages share."""
        return Site(
            archive=self.name,
            version=build.version(),
            now=self.clock(),
            has_ledger=self.ledger is not None,
        )
