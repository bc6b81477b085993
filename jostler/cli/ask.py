"""Asking a running agent over HTTP.

**Invariant:** one request, no proxy, no redirect, bounded time and size.
"""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any

from jostler.cli.flags import host_port
from jostler.errors import JostlerError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "PROMETHEUSX_LISTEN_ADDRESS"
DEFAULT = "localhost:9990"
TIMEOUT_S = 15.0
FORMAT = 1
MOST_BYTES = 16 * 1024 * 1024


class AskError(JostlerError):
    """No agent answers, or not as it should."""


def address_of(given: str | None, environ: Mapping[str, str]) -> tuple[str, int]:
    """Return host and port to ask: as given, else where the agent is told to listen, else 9990.

    Raises:
        AskError: it is no address.
    """
    try:
        host, port = host_port(given or environ.get(VARIABLE) or DEFAULT)
    except ValueError as exc:
        raise AskError(f"-address: {exc}") from exc
    return host or "localhost", port


def get(given: str | None, environ: Mapping[str, str], path: str) -> tuple[int, bytes]:
    """Return status and body of a page.

    Raises:
        AskError: nobody answers.
    """
    host, port = address_of(given, environ)
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(MOST_BYTES)
    except (OSError, http.client.HTTPException) as exc:
        why = getattr(exc, "strerror", "") or str(exc) or type(exc).__name__
        raise AskError(f"nobody answers at {host}:{port}: {why}") from exc
    finally:
        connection.close()


def get_json(given: str | None, environ: Mapping[str, str], path: str) -> dict[str, Any]:
    """Return the JSON object that a page is.

    Raises:
        AskError: nobody answers, or something that is no agent.
    """
    status, body = get(given, environ, path)
    if status != http.client.OK:
        raise AskError(f"what answers says HTTP {status} to {path}")
    try:
        value = json.loads(body)
    except ValueError as exc:
        raise AskError(f"what answers to {path} is no JSON: {exc}") from exc
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise AskError(f"what answers to {path} is no agent of this version")
    return value
