"""Rows of the ledger about a table, or a bucket, as a whole: it cannot be used, or can again.

**Invariant:** a run that only looks records nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loader.bigquery.record import row_of_bucket, row_of_failure, row_of_return

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from loader.bigquery.ledger import Ledger
    from loader.bigquery.record import Run
    from loader.bigquery.warehouse import Json
    from loader.errors import LoaderError, UnlistedError
    from loader.plan.discover import Table


class Wholes:
    """Records what fails as a whole, and that it does so no more.

    Args:
        ledger: says what failed before.
        record: takes a row of the ledger.
        run: the values that all rows of the run share.
        looks_only: whether the run changes nothing.
    """

    def __init__(
        self, ledger: Ledger, record: Callable[[Json], None], run: Run, *, looks_only: bool
    ) -> None:
        self._ledger = ledger
        self._record = record
        self._run = run
        self._looks_only = looks_only

    def failed(self, table: Table, error: LoaderError) -> None:
        """Record that a table cannot be used, or not be listed."""
        if not self._looks_only:
            self._record(row_of_failure(table, error, self._run))

    def unlisted(self, error: UnlistedError) -> None:
        """Record that a bucket cannot be listed."""
        if not self._looks_only:
            self._record(row_of_bucket(error, self._run))

    def well(self, names: Iterable[str]) -> None:
        """Record which tables and buckets that failed as a whole before can be used again.

        Raises:
            WarehouseError: the ledger cannot be asked.
        """
        if not self._looks_only:
            for name in sorted(self._ledger.broken().intersection(names)):
                self._record(row_of_return(name, self._run))
