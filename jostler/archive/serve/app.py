"""The web server of `jostler serve`: its routes.

**Invariant:** it only reads.  Work on the bucket runs in threads and is bounded (see `limits`); the
overview and the pages of datatypes are made from memory, so that a slow bucket never slows them.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from jostler.archive.serve.answers import Answers
from jostler.archive.serve.api import ROOT
from jostler.archive.serve.browsing import Pages
from jostler.archive.serve.guard import Guard
from jostler.archive.serve.limits import BusyError, SlowError, Workers
from jostler.archive.serve.replies import answered, failed, no_page, not_allowed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from jostler.archive.serve.served import Archive


def application(archive: Archive, workers: Workers | None = None) -> ASGIApp:
    """Return the web application."""
    workers = workers or Workers()
    quick = Workers()  # places of their own: what comes from memory never waits for the bucket
    pages, answers = Pages(archive), Answers(archive)

    def route(path: str, work: Callable[[Request], Response], using: Workers = workers) -> Route:
        return Route(path, _in_thread(using, work), methods=["GET"])

    def at_once(path: str, work: Callable[[Request], Response]) -> Route:
        return Route(path, _at_once(work), methods=["GET"])

    routes = [
        route("/", pages.overview, quick),
        route("/datatype/{datatype}", pages.datatype, quick),
        route("/node/{node}", pages.node),
        route("/day/{datatype}/{day}", pages.day),
        route("/loads", pages.loads),
        route("/bundle/{token}", pages.bundle),
        route("/file/{token}", pages.file),
        route("/search", pages.search),
        route(f"{ROOT}/files/", answers.files),
        route(f"{ROOT}/files/{{token}}/metadata", answers.metadata),
        route(f"{ROOT}/files/{{token}}/data", answers.data),
        route(f"{ROOT}/latest/{{what}}/{{where}}", answers.latest),
        at_once("/v0/environment/", answers.environment),
        at_once("/health/", answers.health),
        at_once("/openapi.json", answers.openapi),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPStatus.NOT_FOUND: no_page,
            HTTPStatus.METHOD_NOT_ALLOWED: not_allowed,
        },
    )
    return Guard(app, archive.hosts)


def _in_thread(
    workers: Workers, work: Callable[[Request], Response]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            return await workers.run(lambda: answered(request, work))
        except BusyError:
            busy = failed(request, "Busy", "too many requests at once", 503)
            busy.headers["Retry-After"] = "1"
            return busy
        except SlowError:
            return failed(request, "TooSlow", "the archive does not answer in time", 504)

    return answer


def _at_once(work: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Answer from memory, in the server's own thread."""

    async def answer(request: Request) -> Response:
        return answered(request, work)

    return answer
