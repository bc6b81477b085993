"""What the pages ask of the loader's ledger: which days BigQuery has, and how each was loaded.

**Invariant:** it only reads.  It needs the optional BigQuery client; import it only with a project.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from jostler.format.bigquery_names import table_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from jostler.archive.bigquery_tables import TableReader
    from jostler.archive.load_status import LoadStatus
    from jostler.format.bigquery_names import Naming
    from jostler.format.names import Place

LOADED = {"success", "skipped"}
"""States of a day that the table has: `skipped` means that another loader has loaded it."""


class Ledger:
    """The ledger's rows about the tables of an experiment.

    Args:
        reader: reads BigQuery.
        project: the project of the tables.
        naming: the naming rule of v1 tables.
        places: the experiment's places in the bucket.
        datatypes: returns the datatypes that the archive has.
    """

    def __init__(
        self,
        reader: TableReader,
        *,
        project: str,
        naming: Naming,
        places: Sequence[Place],
        datatypes: Callable[[], Iterable[str]],
    ) -> None:
        self._reader = reader
        self._project = project
        self._naming = naming
        self._places = tuple(places)
        self._datatypes = datatypes

    def loaded(self, first: date, last: date) -> set[tuple[str, date]]:
        """Return datatype and day of what BigQuery has, of a range of days.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        tables = {
            table: datatype for datatype in self._datatypes() for table in self._tables(datatype)
        }
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
        return self._reader.ledger(self._tables(datatype), day, day)

    def status(self, today: date) -> LoadStatus:
        """Return how the loads of the experiment stand.

        Raises:
            QueryError: BigQuery cannot be asked.
        """
        return self._reader.load_status(self._places[0].experiment, today)

    def _tables(self, datatype: str) -> list[str]:
        names = (table_name(self._naming, self._project, place, datatype) for place in self._places)
        return [str(name) for name in names]
