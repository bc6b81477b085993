"""Replies: pages, and errors as a page or, in the API, as `{"code", "message"}`.

**Invariant:** each failure is answered and logged; the answer has no internal detail.
"""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from jostler import build
from jostler.archive.serve.api import ApiError
from jostler.archive.serve.pages.layout import CONTENT_SECURITY_POLICY, Site
from jostler.archive.serve.pages.layout import page as plain_page
from jostler.errors import JostlerError
from jostler.log import Log
from jostler.web.document import CONTENT_TYPE
from jostler.web.html import tag

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

log = Log("jostler.serve")

TEXT_MAX = 1000


def answered(request: Request, work: Callable[[Request], Response]) -> Response:
    """Return the reply of `work`, or the one for the error that it raises."""
    try:
        return work(request)
    except ApiError as exc:
        return failed(request, exc.code, exc.message, exc.status)
    except JostlerError as exc:
        log.warning("serve.unreadable", path=request.url.path, error=str(exc))
        hint = f" ({exc.hint})" if exc.hint else ""
        return failed(request, "ArchiveError", f"{exc}{hint}", HTTPStatus.BAD_GATEWAY)
    except Exception:  # one page must not end the server, nor show what went wrong inside
        log.exception("serve.crashed", path=request.url.path)
        return failed(request, "Failed", "failed; see the log", HTTPStatus.INTERNAL_SERVER_ERROR)


def failed(request: Request, code: str, message: str, status: int) -> Response:
    """Reply with an error: JSON below `/v0/`, else a page."""
    if request.url.path.startswith("/v0/"):
        return JSONResponse({"code": code, "message": message}, status_code=int(status))
    paragraph = tag("p", message[:TEXT_MAX], class_="problem")
    site = Site(archive="", version=build.version(), now=datetime.now(UTC), has_ledger=False)
    body = plain_page(site, HTTPStatus(status).phrase, paragraph, trail=[("archive", "/")])
    return html(body, int(status))


async def no_page(request: Request, _exc: Exception) -> Response:
    """Reply that there is no such page."""
    return failed(request, "NoSuchPage", "there is no such page", HTTPStatus.NOT_FOUND)


async def not_allowed(request: Request, _exc: Exception) -> Response:
    """Reply that nothing can be changed."""
    message = "the archive can only be read: GET and HEAD"
    return failed(request, "NotAllowed", message, HTTPStatus.METHOD_NOT_ALLOWED)


def html(body: bytes, status: int = 200) -> Response:
    """Reply with a page."""
    headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
    return Response(body, status, headers, CONTENT_TYPE)
