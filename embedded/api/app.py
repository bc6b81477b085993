"""The REST API as an ASGI application: it routes requests to handlers and errors to replies.

**Invariant:** each request gets one reply in BigQuery's form, also if its handler fails.

The reply to an unknown path is a 404 that names the path.
"""

from __future__ import annotations

import logging
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from embedded.api.datasets import Datasets
from embedded.api.tabledata import TableData
from embedded.api.tables import Tables
from embedded.api.uploads import Uploads
from embedded.jobs.copies import Copies
from embedded.jobs.faults import Faults
from embedded.jobs.jobs import Jobs
from embedded.jobs.load import Loads
from embedded.jobs.queries import Queries
from embedded.model.errors import ApiError, invalid, not_found
from embedded.model.wire import Call, Reply
from embedded.sql.translate import describe
from embedded.store.expiry import Expiry
from embedded.store.results import Results

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request

    from embedded.api.storageread import StorageRead
    from embedded.store.database import Store

    Handler = Callable[[Call], Reply]

log = logging.getLogger("embedded")
PROJECT = "/bigquery/v2/projects/{project}"
DATASET = PROJECT + "/datasets/{dataset}"
TABLE = DATASET + "/tables/{table}"
JOB = PROJECT + "/jobs/{job}"
MAX_BODY = 512 << 20  # the largest size of a compressed request after decompression
UPLOAD = "/upload/bigquery/v2/projects/{project}/jobs"


class Service:
    """The resources and jobs that the API serves.

    Args:
        store: the open database; `close` closes it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.expiry = Expiry(store)
        self.faults = Faults()
        self._results = results = Results(store)
        queries = Queries(store, results)
        self._jobs = Jobs(
            store, {"load": Loads(store), "query": queries, "copy": Copies(store)}, self.faults
        )
        queries.jobs = self._jobs
        self.datasets = Datasets(store)
        self.tables = Tables(store, results, describe)
        self.rows = TableData(store, results)
        self.uploads = Uploads(self._jobs, store.staging)
        self.queries = queries

    def close(self) -> None:
        """Wait for running jobs, and close the database."""
        self._jobs.close()
        self._store.close()

    def storage_read(
        self, address: tuple[str, int | None], certificate: Path | None
    ) -> StorageRead | None:
        """Return the Storage Read API, not started yet; None if the address has no port."""
        host, port = address
        if port is None:
            return None
        from embedded.api.storageread import StorageRead  # noqa: PLC0415 - its packages are optional

        return StorageRead(self._store, self._results, (host, port), certificate)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Return method, path and handler of each route."""
        datasets, tables, jobs = self.datasets, self.tables, self._jobs
        return [
            ("POST", DATASET.removesuffix("/{dataset}"), datasets.insert),
            ("GET", DATASET.removesuffix("/{dataset}"), datasets.list),
            ("GET", DATASET, datasets.get),
            ("PATCH", DATASET, datasets.patch),
            ("PUT", DATASET, datasets.patch),
            ("DELETE", DATASET, datasets.delete),
            ("POST", TABLE.removesuffix("/{table}"), tables.insert),
            ("GET", TABLE.removesuffix("/{table}"), tables.list),
            ("GET", TABLE, tables.get),
            ("PATCH", TABLE, tables.patch),
            ("PUT", TABLE, tables.patch),
            ("DELETE", TABLE, tables.delete),
            ("GET", TABLE + "/data", self.rows.list),
            ("POST", TABLE + "/insertAll", self.rows.insert_all),
            ("POST", JOB.removesuffix("/{job}"), jobs.insert),
            ("GET", JOB.removesuffix("/{job}"), jobs.list),
            ("GET", JOB, jobs.get),
            ("POST", JOB + "/cancel", jobs.cancel),
            ("POST", PROJECT + "/queries", self.queries.query),
            ("GET", PROJECT + "/queries/{job}", self.queries.results),
            ("POST", UPLOAD, self.uploads.begin),
            ("PUT", UPLOAD, self.uploads.proceed),
            ("POST", "/_faults", self.faults.insert),
            ("GET", "/_faults", self.faults.list),
            ("DELETE", "/_faults", self.faults.clear),
            ("GET", "/_health", lambda _call: Reply({"status": "SERVING"})),
        ]


def application(service: Service) -> Starlette:
    """Return the ASGI application that serves `service`."""
    routes = [
        Route(path, _endpoint(service, handler), methods=[method])
        for method, path, handler in service.routes()
    ]
    return Starlette(routes=[*routes, Route("/{path:path}", _unknown, methods=list(_METHODS))])


_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


def _endpoint(service: Service, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        call = Call(
            method=request.method,
            path=request.url.path,
            url=str(request.url.replace(query="")),
            names=request.path_params,
            query=request.query_params,
            headers=request.headers,
            body=await request.body(),
        )
        return await run_in_threadpool(_unpacked, service, handler, call)

    return endpoint


def _unpacked(service: Service, handler: Handler, call: Call) -> Response:
    """Decompress a request with `Content-Encoding: gzip`, as Java's client sends it; handle it."""
    if call.headers.get("content-encoding", "identity") == "identity":
        return _answered(service, handler, call)
    try:
        if call.headers["content-encoding"].lower() != "gzip":
            raise invalid(f"Content-Encoding {call.headers['content-encoding']} is not supported")
        packed = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        body = packed.decompress(call.body, MAX_BODY)
        if packed.unconsumed_tail:
            raise invalid(f"The request is larger than {MAX_BODY} bytes")
        if not packed.eof:
            raise invalid("The request's gzip stream is cut short")
    except zlib.error as exc:
        return _response(Reply(invalid(f"The request is no gzip: {exc}").body(), 400))
    except ApiError as exc:
        return _response(Reply(exc.body(), exc.status))
    return _answered(service, handler, replace(call, body=body))


def _answered(service: Service, handler: Handler, call: Call) -> Response:
    try:
        if call.path.startswith("/_"):
            return _response(handler(call))
        service.expiry.new_day()
        return _response(service.faults.answer(call, lambda: handler(call)))
    except ApiError as exc:
        return _response(Reply(exc.body(), exc.status))
    except Exception as exc:
        log.exception("%s %s failed", call.method, call.path)
        return _response(Reply(ApiError("internalError", repr(exc)).body(), 500))


async def _unknown(request: Request) -> Response:
    error = not_found("Method", f"{request.method} {request.url.path} of the embedded BigQuery")
    return _response(Reply(error.body(), error.status))


def _response(reply: Reply) -> Response:
    content = b"" if reply.payload is None else orjson.dumps(reply.payload)
    headers = {**reply.headers}
    if reply.payload and "etag" in reply.payload:
        headers["etag"] = reply.payload["etag"]
    return Response(content, reply.status, headers, media_type="application/json")
