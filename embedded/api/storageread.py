"""The Storage Read API over gRPC: read sessions of a table or a query's result, in Arrow.

**Invariant:** the streams of a session together have each row once, as of the session's creation.

Avro, snapshots, partitions and views are not supported.  This module is imported only if a port is
given, because it needs grpcio, pyarrow and google-cloud-bigquery-storage.
"""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types

from embedded.model.columns import quoted
from embedded.model.errors import ApiError, invalid, unsupported
from embedded.model.names import destination
from embedded.sql.resolver import Context
from embedded.sql.translate import translate
from embedded.store.catalog import find_table
from embedded.store.results import is_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import duckdb

    from embedded.model.fields import Field
    from embedded.store.database import Store
    from embedded.store.results import Results

SERVICE = "google.cloud.bigquery.storage.v1.BigQueryRead"
KEPT = 20  # the maximum number of sessions; each keeps its rows in memory
BATCH = 10_000  # the maximum number of rows in a message
MAX_STREAMS = 2
MAX_MESSAGE = 1 << 30
THREADS = 8
LIFE = timedelta(hours=6)
NAME_PARTS = 6  # projects/P/datasets/D/tables/T
ARROW = {
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "INTEGER": pa.int64(),
    "FLOAT": pa.float64(),
    "NUMERIC": pa.decimal128(38, 9),
    "BIGNUMERIC": pa.decimal256(76, 38),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "DATETIME": pa.timestamp("us"),
    "JSON": pa.string(),
}


class StorageRead:
    """A gRPC server beside the REST API.

    Args:
        store: the open database.
        results: the results of queries.
        address: host and port; 0 for a free port.
        certificate: a PEM file with key and certificate, for TLS; None for plain text.

    Raises:
        OSError: the port is taken.
    """

    def __init__(
        self, store: Store, results: Results, address: tuple[str, int], certificate: Path | None
    ) -> None:
        self._store = store
        self._results = results
        self._sessions: OrderedDict[str, list[pa.Table]] = OrderedDict()
        self._lock = threading.Lock()
        self._server = grpc.server(
            ThreadPoolExecutor(THREADS, thread_name_prefix="storage"),
            options=[("grpc.max_send_message_length", MAX_MESSAGE)],
        )
        self._server.add_generic_rpc_handlers((self._handlers(),))
        where = f"{address[0]}:{address[1]}"
        try:
            if certificate is None:
                self.port = self._server.add_insecure_port(where)
            else:
                pem = certificate.read_bytes()
                keys = grpc.ssl_server_credentials([(pem, pem)])
                self.port = self._server.add_secure_port(where, keys)
        except RuntimeError as exc:
            raise OSError(f"cannot listen on {where} for the Storage Read API") from exc

    def start(self) -> None:
        """Start to serve requests."""
        self._server.start()

    def stop(self) -> None:
        """Cancel running requests and stop."""
        self._server.stop(grace=1).wait()

    def _handlers(self) -> grpc.GenericRpcHandler:
        one: Any = grpc.unary_unary_rpc_method_handler
        many: Any = grpc.unary_stream_rpc_method_handler
        handlers = {
            "CreateReadSession": one(
                _answering(self._create),
                types.CreateReadSessionRequest.deserialize,
                types.ReadSession.serialize,
            ),
            "ReadRows": many(
                self._read, types.ReadRowsRequest.deserialize, types.ReadRowsResponse.serialize
            ),
            "SplitReadStream": one(
                # A reply without streams means that the stream cannot be split ("SplitReadStream").
                lambda _request, _context: types.SplitReadStreamResponse(),
                types.SplitReadStreamRequest.deserialize,
                types.SplitReadStreamResponse.serialize,
            ),
        }
        return cast(
            "grpc.GenericRpcHandler", grpc.method_handlers_generic_handler(SERVICE, handlers)
        )

    def _create(self, request: types.CreateReadSessionRequest) -> types.ReadSession:
        """Read the current rows and divide them into streams."""
        session = request.read_session
        if session.data_format != types.DataFormat.ARROW:
            raise unsupported("A read session in another format than ARROW")
        if session.table_modifiers.snapshot_time:
            raise unsupported("snapshot_time of a read session")
        options = session.read_options
        if options.sample_percentage:
            raise unsupported("sample_percentage of a read session")
        rows = self._rows(session.table, list(options.selected_fields), options.row_restriction)
        name = f"{request.parent}/locations/us/sessions/{uuid.uuid4().hex}"
        streams = min(request.max_stream_count or 1, MAX_STREAMS, rows.num_rows)
        size = -(-rows.num_rows // streams) if streams else 0
        with self._lock:
            self._sessions[name] = [rows.slice(n * size, size) for n in range(streams)]
            if len(self._sessions) > KEPT:
                self._sessions.popitem(last=False)
        return types.ReadSession(
            name=name,
            expire_time=datetime.now(UTC) + LIFE,
            data_format=types.DataFormat.ARROW,
            arrow_schema={"serialized_schema": rows.schema.serialize().to_pybytes()},
            table=session.table,
            read_options=options,
            streams=[{"name": f"{name}/streams/{n}"} for n in range(streams)],
            estimated_row_count=rows.num_rows,
            estimated_total_bytes_scanned=rows.nbytes,
        )

    def _rows(self, table: str, names: list[str], condition: str) -> pa.Table:
        parts = table.split("/")
        if len(parts) != NAME_PARTS:
            raise invalid(f"Invalid table name: {table}")
        project, dataset, name = parts[1::2]
        with self._store.reading() as cursor:
            if is_result(dataset, name):
                source, fields, _ = self._results.find(name)
                if condition:
                    raise unsupported("row_restriction of a query's result")
            else:
                source, fields = _source(cursor, project, dataset, name, condition)
        known = {field.name.lower(): field for field in fields}
        unknown = [name for name in names if name.lower() not in known]
        if unknown:  # a path into a record (a.b) is not supported either
            raise invalid(f"No such field: {', '.join(unknown)}")
        wanted = [known[name.lower()] for name in names] or list(fields)
        chosen = ", ".join(quoted(field.name) for field in wanted)
        with self._store.reading() as cursor:
            found = cursor.sql(f"SELECT {chosen} FROM {source}").to_arrow_table()  # noqa: S608
        return found.cast(pa.schema([_column(field) for field in wanted]))

    def _read(
        self, request: types.ReadRowsRequest, context: grpc.ServicerContext
    ) -> Iterator[types.ReadRowsResponse]:
        session, _, number = request.read_stream.partition("/streams/")
        with self._lock:
            streams = self._sessions.get(session)
        if streams is None or not number.isdecimal() or int(number) >= len(streams):
            context.abort(grpc.StatusCode.NOT_FOUND, f"Not found: {request.read_stream}")
            return
        rows = streams[int(number)]
        schema = {"serialized_schema": rows.schema.serialize().to_pybytes()}
        for batch in rows.slice(request.offset).combine_chunks().to_batches(BATCH):
            data = {"serialized_record_batch": batch.serialize().to_pybytes()}
            yield types.ReadRowsResponse(
                arrow_record_batch=data, arrow_schema=schema, row_count=batch.num_rows
            )


def _source(
    cursor: duckdb.DuckDBPyConnection, project: str, dataset: str, name: str, condition: str
) -> tuple[str, tuple[Field, ...]]:
    """Return the DuckDB FROM item of a table, and the table's columns."""
    ref, day = destination({"datasetId": dataset, "tableId": name}, project)
    table = find_table(cursor, ref)
    if table.view_sql:
        raise invalid(f"Cannot read a table of type VIEW: {ref}")
    if day:
        raise unsupported("A read session of a partition (set row_restriction)")
    if not condition and not table.requires_filter:
        return table.storage, table.fields
    where = condition or "TRUE"
    sql = f"SELECT * FROM `{project}.{dataset}.{name}` WHERE {where}"  # noqa: S608 - checked there
    return f"({translate(cursor, sql, Context(project=project)).sql}) AS _", table.fields


def _column(field: Field) -> pa.Field:
    inside = pa.struct([_column(sub) for sub in field.fields]) if field.fields else None
    kind = inside or ARROW[field.type]
    if field.repeated:
        return pa.field(field.name, pa.list_(pa.field("item", kind)), nullable=False)
    return pa.field(field.name, kind, nullable=field.mode != "REQUIRED")


def _answering(
    handler: Callable[[types.CreateReadSessionRequest], types.ReadSession],
) -> Callable[[types.CreateReadSessionRequest, grpc.ServicerContext], types.ReadSession]:
    """Convert an ApiError to the status of a gRPC call."""

    def answer(
        request: types.CreateReadSessionRequest, context: grpc.ServicerContext
    ) -> types.ReadSession:
        try:
            return handler(request)
        except ApiError as exc:
            missing = exc.reason == "notFound"
            code = grpc.StatusCode.NOT_FOUND if missing else grpc.StatusCode.INVALID_ARGUMENT
            context.abort(code, exc.message)
            raise

    return answer
