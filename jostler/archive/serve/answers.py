"""The API's answers over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from jostler import build
from jostler.archive.serve import api, times
from jostler.archive.serve.contents import download
from jostler.archive.serve.openapi import DOCUMENT

if TYPE_CHECKING:
    from starlette.requests import Request

    from jostler.archive.serve.served import Archive


class Answers:
    """Answers requests to the API.  Each method may raise ApiError and JostlerError."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._catalogue = archive.catalogue

    def files(self, request: Request) -> Response:
        """Answer with a page of records."""
        return JSONResponse(api.list_files(self._catalogue, request.query_params))

    def metadata(self, request: Request) -> Response:
        """Answer with one record."""
        return JSONResponse(api.metadata(self._catalogue, request.path_params["token"]))

    def data(self, request: Request) -> Response:
        """Answer with the content of a file, verified against its Hash."""
        file = api.find(self._catalogue, request.path_params["token"])
        found = download(file, self._archive.contents.raw(file))
        headers = {"ETag": f'"{file.hash}"'} if file.hash else {}
        if found.encoding:
            headers["Content-Encoding"] = found.encoding
        # What a stranger wrote must not run as a page of this server.
        headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
        return Response(found.data, headers=headers, media_type=found.content_type)

    def latest(self, request: Request) -> Response:
        """Answer with the newest file of a datatype and node."""
        what, where = request.path_params["what"], request.path_params["where"]
        now = self._archive.clock()
        return JSONResponse(api.newest(self._catalogue, what, where, request.query_params, now))

    def environment(self, _request: Request) -> Response:
        """Answer with what serves this archive."""
        return JSONResponse(
            {
                "name": "jostler",
                "version": build.version(),
                "commit": build.commit(),
                "archive": self._archive.name,
                "now": times.to_ms(self._archive.clock()),
            }
        )

    def health(self, _request: Request) -> Response:
        """Answer whether the archive could be read lately."""
        problems = self._archive.summary.problems
        return JSONResponse({"status": "degraded" if problems else "ok", "problems": problems[:10]})

    def openapi(self, _request: Request) -> Response:
        """Answer with the description of the API."""
        return JSONResponse(DOCUMENT)
