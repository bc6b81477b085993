"""The formats of load jobs: each converts a source to lines of JSON, which the judge reads.

**Invariant:** the conversion does not change the values of a row.

A format that is not supported is an error.
"""

from __future__ import annotations

import shutil
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from embedded.load.csvtext import dialect
from embedded.load.detection import detected_csv, detected_json, fitted
from embedded.load.parquet import Parquet, check_types
from embedded.load.scalars import Flaw
from embedded.load.sources import unpacked
from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from embedded.load.csvtext import Dialect, Values
    from embedded.load.sources import Source
    from embedded.load.staging import Line
    from embedded.model.fields import Field
    from embedded.model.wire import Json

JSON, CSV, PARQUET = "NEWLINE_DELIMITED_JSON", "CSV", "PARQUET"
FORMAT_NAMES = {JSON: "JSON", CSV: "CSV", PARQUET: "Parquet"}


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the sources of one load job.

    Args:
        load: the job's JobConfigurationLoad.
        staging: the directory into which Parquet objects are downloaded.
    """

    load: Json
    staging: Path

    @property
    def format(self) -> str:
        """The job's sourceFormat."""
        return str(self.load.get("sourceFormat") or CSV)

    def check(self) -> None:
        """Check the format and its options.

        Raises:
            ApiError: the format is not supported, or an option is not valid.
        """
        if self.format not in FORMAT_NAMES:
            raise unsupported(f"Source format {self.format}")
        if self.format == CSV:
            dialect(self.load)
        if self.format == PARQUET and (self.load.get("parquetOptions") or {}).get("enumAsString"):
            raise unsupported("parquetOptions.enumAsString of a load job")

    def detected(self, sources: list[Source], stored: tuple[Field, ...]) -> tuple[Field, ...]:
        """Return the columns detected in the first source, with the types that the table has.

        Raises:
            ApiError: the source does not determine a schema.
        """
        with sources[0].open() as raw, unpacked(raw)[0] as lines:
            if self.format == PARQUET:
                with self.parquet(sources[0], lines) as file:
                    return fitted(file.fields(), stored)
            if self.format == JSON:
                return fitted(detected_json(lines), stored)
            fields, _, has_header = detected_csv(lines, dialect(self.load))
            return fitted(fields, stored) if has_header or not stored else stored

    def reader(
        self, sources: list[Source], columns: tuple[Field, ...]
    ) -> Callable[[Source, BinaryIO], Iterator[Line]]:
        """Return the function that yields the lines of a source.

        Args:
            sources: the job's sources.
            columns: the table's columns, in the order of a CSV file's columns.
        """
        if self.format == JSON:
            return _json_lines
        if self.format == PARQUET:
            return _ParquetRows(self, columns)
        how = dialect(self.load)
        if self.load.get("autodetect") and not self.load.get("schema"):
            with sources[0].open() as raw, unpacked(raw)[0] as lines:
                found, how, has_header = detected_csv(lines, how)
            if has_header:
                known = {column.name.lower(): column for column in columns}
                columns = tuple(known.get(column.name.lower(), column) for column in found)
        return _CsvRows(how, _flat(columns))

    @contextmanager
    def parquet(self, source: Source, raw: BinaryIO) -> Iterator[Parquet]:
        """Copy a Parquet object to a local file and open it."""
        path = self.staging / f"parquet-{uuid.uuid4().hex}"
        try:
            with path.open("wb") as out:
                shutil.copyfileobj(raw, out, 1 << 20)
            options = self.load.get("parquetOptions") or {}
            with Parquet(path, source.uri, lists=bool(options.get("enableListInference"))) as file:
                yield file
        finally:
            path.unlink(missing_ok=True)


def _json_lines(_source: Source, lines: BinaryIO) -> Iterator[Line]:
    position = 0
    for line in lines:
        yield position, line
        position += len(line)


@dataclass(frozen=True, slots=True)
class _ParquetRows:
    how: Reader
    columns: tuple[Field, ...]

    def __call__(self, source: Source, raw: BinaryIO) -> Iterator[Line]:
        with self.how.parquet(source, raw) as file:
            check_types(file.fields(), self.columns)
            yield from enumerate(file.lines())


@dataclass(frozen=True, slots=True)
class _CsvRows:
    how: Dialect
    columns: tuple[Field, ...]

    def __call__(self, _source: Source, lines: BinaryIO) -> Iterator[Line]:
        for number, (position, values) in enumerate(self.how.rows(lines)):
            if number < (self.how.skip or 0):
                continue
            yield position, values if isinstance(values, Flaw) else self._line(values)

    def _line(self, values: Values) -> bytes | Flaw:
        columns = self.columns
        if len(values) > len(columns) and not self.how.extra:
            return Flaw(f"Too many values in row: {len(values)}, the table has {len(columns)}.")
        if len(values) < len(columns) and not self.how.jagged:
            return Flaw(
                f"CSV table references column position {len(values)}, but line contains only "
                f"{len(values)} columns."
            )
        row = zip(columns, values, strict=False)
        try:
            return orjson.dumps({column.name: _cell(column, value) for column, value in row})
        except orjson.JSONDecodeError as exc:
            return Flaw(f"Invalid JSON value: {exc}")


def _cell(column: Field, value: str | None) -> object:
    """Return a CSV value for the judge; for a JSON column the text is parsed as JSON."""
    if value is None or column.type != "JSON":
        return value
    orjson.loads(value)
    return orjson.Fragment(value)


def _flat(columns: tuple[Field, ...]) -> tuple[Field, ...]:
    for column in columns:
        if column.type == "RECORD" or column.repeated:
            kind = "records" if column.type == "RECORD" else "arrays"
            raise invalid(f"CSV holds no {kind} (column {column.name})")
    return columns
