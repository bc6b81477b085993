"""What the pages ask of the loader's ledger: which days BigQuery has, and how each was loaded.

**Invariant:** it only reads.  It needs the optional BigQuery client; import it only with a project.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from jostler.format.bigquery_names import Naming, table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from jostler.archive.bigquery_tables import TableReader
    from jostler.format.names import Place

LOADED = {"success", "skipped"}
"""States of a day that the table has: `skipped` means that another loader has loaded it."""


class Ledger:
    """The ledger's rows about the tables of one place.

    Args:
        reader: reads BigQuery.
        project: the project of the tables.
        naming: the naming rule of v1 tables.
        place: the experiment.
        datatypes: returns the datatypes that the archive has.
    """

    def __init__(
        self,
        reader: TableReader,
        *,
        project: str,
        naming: str,
        place: Place,
        datatypes: Callable[[], Iterable[str]],
    ) -> None:
        self._reader = reader
        self._project = project
        self._naming = Naming(naming)
        self._place = place
        self._datatypes = datatypes

    def loaded(self, first: date, last: date) -> set[tuple[str, date]]:
        """Return datatype and day of what BigQuery has, of a range of days.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        tables = {self._table(datatype): datatype for datatype in self._datatypes()}
        rows = self._reader.ledger(list(tables), first, last)
        return {
            (tables[row["table_name"]], date.fromisoformat(row["day"]))
            for row in rows
            if row["status"] in LOADED
        }

    def rows(self, datatype: str, day: date) -> list[dict[str, Any]]:
        """Return what the ledger has of one day, the newest row first.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        return self._reader.ledger([self._table(datatype)], day, day)

    def _table(self, datatype: str) -> str:
        return str(table_name(self._naming, self._project, self._place, datatype))
