"""Load jobs: load files into a table, or into one day of it, completely or not at all.

**Invariant:** the table has either its rows from before the job, or those that the job's
disposition requires, never a part of both.

A format or option that is not supported is an error.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from embedded.load.judge import RowJudge
from embedded.load.readers import FORMAT_NAMES, PARQUET, Reader
from embedded.load.sources import Source, expand, listed
from embedded.load.staging import Stage, Tally
from embedded.model import fields as columns_of
from embedded.model.errors import invalid, unsupported
from embedded.model.names import TableRef, destination
from embedded.store.catalog import table_or_none
from embedded.store.datasets import find_dataset
from embedded.store.landing import Landing

if TYPE_CHECKING:
    import duckdb

    from embedded.jobs.jobs import Effect, Job
    from embedded.model.wire import Json
    from embedded.store.catalog import Table
    from embedded.store.database import Store

MAX_FILE_NAME = 200  # characters; names of files have at most 255 bytes
_KEYS = """
sourceUris schema destinationTable createDisposition writeDisposition sourceFormat
autodetect maxBadRecords ignoreUnknownValues schemaUpdateOptions timePartitioning clustering
encoding destinationTableProperties fileSetSpecType fieldDelimiter quote skipLeadingRows
nullMarker allowQuotedNewlines allowJaggedRows parquetOptions
"""
KEYS = frozenset(_KEYS.split())
MATCH, MANIFEST = (
    "FILE_SET_SPEC_TYPE_FILE_SYSTEM_MATCH",
    "FILE_SET_SPEC_TYPE_NEW_LINE_DELIMITED_MANIFEST",
)
ADDITION = "ALLOW_FIELD_ADDITION"
RELAXATION = "ALLOW_FIELD_RELAXATION"


@dataclass(frozen=True, slots=True)
class Loads:
    """Runs load jobs."""

    store: Store

    def check(self, project: str, config: Json) -> str:
        """Check a load job before it gets an id; return the location of its dataset."""
        load = config["load"]
        ref, day = destination(load.get("destinationTable") or {}, project)
        with self.store.reading() as cursor:
            location = find_dataset(cursor, ref.parent)["location"]
        for key, value in load.items():
            if key not in KEYS and value not in (None, "", {}, [], False, 0, "0"):
                raise unsupported(f"{key} of a load job")
        Reader(load, self.store.staging).check()
        if load.get("fileSetSpecType") not in {None, MATCH, MANIFEST}:
            raise invalid(f"Invalid value for fileSetSpecType: {load['fileSetSpecType']}")
        if (load.get("encoding") or "UTF-8") != "UTF-8":
            raise unsupported(f"Encoding {load['encoding']}")
        _landing(load, ref, day)
        return str(location)

    def dry_run(self, project: str, config: Json) -> Json:
        """Raise ApiError: BigQuery has no dry run of a load job."""
        raise unsupported(f"A dry run of a load job ({project}, {sorted(config)})")

    def run(self, job: Job) -> Effect:
        """Write the good rows to a staging file; return the effect that loads it into the table."""
        load = job.config["load"]
        ref, day = destination(load["destinationTable"], job.ref.project)
        landing = _landing(load, ref, day)
        sources = _sources(load, job)
        with self.store.reading() as cursor:
            table = table_or_none(cursor, ref)
        reader = Reader(load, self.store.staging)
        if not landing.schema and (load.get("autodetect") or reader.format == PARQUET):
            landing = _detected(landing, table, reader, sources)
        fields, partition_column = landing.expected(table)
        stage = Stage(
            judge=RowJudge(fields, ignore_unknown=bool(load.get("ignoreUnknownValues"))),
            max_bad=int(load.get("maxBadRecords") or 0),
            partition_column=partition_column,
            target=f"{ref}${day.replace('-', '')}",
            day=day,
            format=FORMAT_NAMES[reader.format],
            check=job.check,
            reader=reader.reader(sources, landing.schema or fields),
        )
        path = self.store.staging / _file_name(str(job.ref).replace(":", "."))
        try:
            tally = stage.write(sources, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

        def effect(cursor: duckdb.DuckDBPyConnection) -> Json:
            try:
                landing.put_staged(cursor, fields, path, tally.longest)
            finally:
                with suppress(OSError):
                    path.unlink()
            return _statistics(sources, tally)

        return effect


def _file_name(job: str) -> str:
    """Return a unique file name for a job; a long job id is shortened and gets a digest."""
    if len(job) <= MAX_FILE_NAME:
        return job
    return f"{job[: MAX_FILE_NAME // 2]}-{hashlib.sha256(job.encode()).hexdigest()}"


def _landing(load: Json, ref: TableRef, day: str) -> Landing:
    options = frozenset(load.get("schemaUpdateOptions") or ())
    if not options <= {ADDITION, RELAXATION}:
        raise invalid(f"Invalid value for schemaUpdateOptions: {sorted(options)}")
    schema = load.get("schema")
    properties = load.get("destinationTableProperties") or {}
    layout = {
        key: load[key] for key in ("timePartitioning", "clustering") if load.get(key) is not None
    }
    return Landing(
        ref=ref,
        day=day,
        write=str(load.get("writeDisposition") or "WRITE_APPEND"),
        create=str(load.get("createDisposition") or "CREATE_IF_NEEDED"),
        schema=columns_of.from_api(schema) if schema else (),
        layout=layout,
        properties={k: v for k, v in properties.items() if v},
        add=ADDITION in options,
        relax=RELAXATION in options,
    )


def _detected(
    landing: Landing, table: Table | None, reader: Reader, sources: list[Source]
) -> Landing:
    """Return the landing with the detected columns; existing columns keep the table's types."""
    replaces = landing.write == "WRITE_TRUNCATE" and not landing.day
    stored = () if table is None or replaces else table.fields
    found = reader.detected(sources, stored)
    return replace(landing, schema=columns_of.from_api(columns_of.to_api(found)))


def _sources(load: Json, job: Job) -> list[Source]:
    if job.media is None:
        uris = [str(uri) for uri in load.get("sourceUris") or []]
        return listed(uris) if load.get("fileSetSpecType") == MANIFEST else expand(uris)
    return [Source("uploaded data", job.media.stat().st_size, job.media)]


def _statistics(sources: list[Source], tally: Tally) -> Json:
    return {
        "errors": tally.errors,
        "load": {
            "inputFiles": str(len(sources)),
            "inputFileBytes": str(tally.read_bytes),
            "outputRows": str(tally.rows),
            "outputBytes": str(tally.written_bytes),
            "badRecords": str(tally.bad),
        },
    }
