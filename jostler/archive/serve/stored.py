"""Read files for the pages, and find out where each one is.

**Invariant:** it only reads, and what it returns was compared with the Hash in the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.archive import bigquery, lookup
from jostler.format.names import REJECTED
from jostler.why import asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostler.archive.catalogue import File
    from jostler.archive.reading import RowReader
    from jostler.format.names import Place
    from jostler.storage import Storage
    from jostler.why.finding import Finding

INDEXES_MOST = 500


class StoredFiles:
    """The files of an archive, and what BigQuery has of them.

    Args:
        bucket: opens the bucket of a URL; may be asked for the same one again and again.
        places: the experiment's places in it.
        rows: reads rows.
        tables: the tables of BigQuery; None if nobody asks it.
    """

    def __init__(
        self,
        bucket: Callable[[str], Storage],
        places: Sequence[Place],
        rows: RowReader,
        tables: bigquery.Tables | None,
    ) -> None:
        self._bucket = bucket
        self._places = tuple(places)
        self._rows = rows
        self._tables = tables

    def raw(self, file: File) -> bytes:
        """Return the column `raw` of a file's row.

        Raises:
            DamageError: the row is not there, or does not have its Hash.
            StorageError: a request to the bucket fails.
        """
        return self._rows.read(file).raw

    def findings(self, file: File) -> list[Finding]:
        """Return where a file is: in the bucket, and in BigQuery if that is asked."""
        is_rejection = file.datatype == REJECTED  # its own datatype stands in its row only
        text = file.path if is_rejection else f"{file.datatype}/{file.path}"
        try:
            known = asked.parse(text, spool="", datatypes=(file.datatype,))
        except ValueError:  # a rejected file may have any name
            return []
        day = file.origin.day
        search = lookup.Search(
            places=self._places,
            days=(day,),
            only_node=file.node,
            first_node=file.node,
            most=INDEXES_MOST,
            show=False,
        )
        found, _ = lookup.findings(known, self._bucket(file.origin.bucket), search)
        if self._tables and not is_rejection:
            loaded, _ = bigquery.findings(
                known, self._tables, self._places, (file.datatype,), (day,)
            )
            found += loaded
        return found
