"""Tables for lookups: CSV files with a header row, given by the asker or kept in the bucket.

**Invariant:** a column is text, and an empty cell is NULL; the same file means the same rows on
Spark and on BigQuery.  A file is read when a question names it, and whole: it is small.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from jostler.schema import Field
from loader.errors import BucketError, MissingError, RunError
from loader.query.tables import LOOKUPS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from jostler.schema import Fields
    from loader.bucket import Bucket

MOST_BYTES = 64 * 1024 * 1024
_NAME_RE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}", re.ASCII)
SUFFIX = ".csv"


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of one file.

    Attributes:
        columns: the header.
        rows: the values, as many in each row; None for an empty cell.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


class Lookups:
    """The tables for lookups of one asker.

    Args:
        buckets: those of the archive; a file is looked for at `lookups/NAME.csv`.
        given: files of this machine, by name; they come before those of the bucket.
    """

    def __init__(self, buckets: Sequence[Bucket], given: Mapping[str, Path]) -> None:
        self._buckets = tuple(buckets)
        self._given = dict(given)
        self._names: tuple[str, ...] | None = None
        self._read: dict[str, Lookup] = {}

    def names(self) -> tuple[str, ...]:
        """Return the names of the tables, sorted; no file is read.

        Raises:
            BucketError: a bucket cannot be listed.
        """
        if self._names is None:
            found = set(self._given)
            for bucket in self._buckets:
                for entry in bucket.list(f"{LOOKUPS}/"):
                    name = entry.name.removeprefix(f"{LOOKUPS}/").removesuffix(SUFFIX)
                    if entry.name == f"{LOOKUPS}/{name}{SUFFIX}" and _NAME_RE.fullmatch(name):
                        found.add(name)
            self._names = tuple(sorted(found))
        return self._names

    def columns(self, name: str) -> Fields | None:
        """Return the columns of a table; None if there is none of this name.

        Raises:
            RunError: the file is no CSV file with a header.
            BucketError: it cannot be read.
        """
        if name not in self.names():
            return None
        return tuple(Field(name=one, type="STRING") for one in self.lookup(name).columns)

    def lookup(self, name: str) -> Lookup:
        """Read a table.

        Raises:
            RunError: the file is no CSV file with a header, or too large.
            BucketError: it cannot be read.
        """
        if name not in self._read:
            self._read[name] = parse(name, self._data(name))
        return self._read[name]

    def _data(self, name: str) -> bytes:
        if path := self._given.get(name):
            try:
                return path.read_bytes()
            except OSError as exc:
                raise RunError(f"--lookup {name}: {path}: {exc.strerror}") from exc
        for bucket in self._buckets:
            try:
                return bucket.read(f"{LOOKUPS}/{name}{SUFFIX}", "")
            except MissingError:
                continue
        raise BucketError(f"there is no {LOOKUPS}/{name}{SUFFIX}")

    def frame(self, spark: SparkSession, table: str) -> DataFrame:
        """Return a table as a DataFrame that Spark sends to each executor."""
        from pyspark.sql.functions import broadcast  # noqa: PLC0415 - the driver alone has Spark

        found = self.lookup(table.removeprefix(f"{LOOKUPS}."))
        columns = list(zip(*found.rows, strict=True)) or [()] * len(found.columns)
        made = pa.Table.from_arrays(
            [pa.array(column, pa.string()) for column in columns], names=list(found.columns)
        )
        return broadcast(spark.createDataFrame(made))


def parse(name: str, data: bytes) -> Lookup:
    """Read a CSV file.

    Raises:
        RunError: it has no header, a column twice, a row of another length, or no UTF-8.
    """
    if len(data) > MOST_BYTES:
        raise RunError(f"lookup {name}: it has more than {MOST_BYTES >> 20} MiB")
    try:
        rows = [
            row for row in csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True) if row
        ]
    except (UnicodeDecodeError, csv.Error) as exc:
        raise RunError(f"lookup {name}: it is no CSV file in UTF-8: {exc}") from exc
    if not rows:
        raise RunError(f"lookup {name}: it has no header row")
    columns = tuple(rows[0])
    wrong = [one for one in columns if not _NAME_RE.fullmatch(one)]
    if wrong or len({one.lower() for one in columns}) < len(columns):
        what = repr(wrong[0]) if wrong else "one that occurs twice"
        raise RunError(f"lookup {name}: the header has a column that cannot be named: {what}")
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(columns):
            raise RunError(
                f"lookup {name}: row {number} has {len(row)} values, the header {len(columns)}"
            )
    return Lookup(columns, tuple(tuple(cell or None for cell in row) for row in rows[1:]))
