"""Why a request got no answer, as a sentence: `127.0.0.1:35605 refuses connections`.

**Invariant:** any exception gives a sentence, without memory addresses and without the URL of the
object, so that equal causes give equal sentences and can be counted.

Pure: exceptions are looked at, nothing is imported that was not imported to raise them.
"""

from __future__ import annotations

import errno
import http.client
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from urllib3 import exceptions as urllib3

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CHARACTERS = 200


def cause(exc: BaseException, host: str = "") -> str:
    """Say why a request failed.

    Args:
        exc: as the HTTP stack raised it, with its chain.
        host: that was asked, `HOST:PORT`, unless the exception names another one.
    """
    chain = list(_chain(exc))
    host = next(filter(None, map(_asked, chain)), host) or "the server"
    for link in reversed(chain):  # the innermost error knows best
        if sentence := _sentence(link, host):
            return sentence
    text = " ".join(str(chain[-1]).split())[:MOST_CHARACTERS]
    kind = type(chain[-1]).__name__
    return f"{host} cannot be asked: {kind}: {text}" if text else f"{host} cannot be asked: {kind}"


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and what it was raised for, the innermost last; each once."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = _inner(exc)


def _asked(exc: BaseException) -> str:
    """Return the host that an exception of requests says was asked; else nothing."""
    return urlsplit(str(getattr(getattr(exc, "request", None), "url", ""))).netloc


def _inner(exc: BaseException) -> BaseException | None:
    """Return what an exception was raised for: requests and urllib3 keep it in their arguments."""
    if isinstance(reason := getattr(exc, "reason", None), BaseException):
        return reason
    for argument in exc.args[::-1]:
        if isinstance(argument, BaseException):
            return argument
    return exc.__cause__ or exc.__context__


def _sentence(exc: BaseException, host: str) -> str:
    """Say what one exception means; nothing if it is of no kind that is known here."""
    match exc:
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.ENETDOWN):
            return f"no network route leads to {host}"
        case OSError(filename=str(path)):
            return f"{path}: {exc.strerror}"
    said = next((said for kinds, said in _SAID if isinstance(exc, kinds)), "")
    name = host.rpartition(":")[0] or host
    return said.format(host=host, name=name, why=getattr(exc, "reason", None) or exc)


# In this order: some are kinds of others.
_SAID: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((socket.gaierror, urllib3.NameResolutionError), "the name {name} cannot be resolved"),
    ((ssl.SSLError,), "no TLS connection with {host}: {why}"),
    ((ConnectionRefusedError,), "{host} refuses connections"),
    ((http.client.RemoteDisconnected,), "{host} closes the connection without an answer"),
    ((http.client.BadStatusLine,), "{host} does not speak HTTP"),
    ((ConnectionError,), "{host} breaks the connection"),
    ((TimeoutError, urllib3.TimeoutError), "{host} does not answer in time"),
    ((urllib3.IncompleteRead,), "{host} breaks off its answer"),
)
