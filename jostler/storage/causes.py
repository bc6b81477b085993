"""The cause of a failed request as a sentence: `127.0.0.1:35605 refuses connections`.

**Invariant:** every exception gives a sentence without memory addresses and object URLs, so equal
causes give equal sentences and can be counted.

Pure: only inspects exceptions.
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
        exc: the exception of the HTTP stack, with its chain.
        host: the server's `HOST:PORT`, used if the exception does not name one.
    """
    chain = list(_chain(exc))
    host = next(filter(None, map(_asked, chain)), host) or "the server"
    for link in reversed(chain):  # the innermost exception is the most specific
        if sentence := _sentence(link, host):
            return sentence
    text = " ".join(str(chain[-1]).split())[:MOST_CHARACTERS]
    kind = type(chain[-1]).__name__
    return f"{host} cannot be asked: {kind}: {text}" if text else f"{host} cannot be asked: {kind}"


def _chain(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes, the innermost last; each once."""
    seen: set[int] = set()
    while exc is not None and id(exc) not in seen:
        seen.add(id(exc))
        yield exc
        exc = _inner(exc)


def _asked(exc: BaseException) -> str:
    """Return the host in an exception of requests; an empty text if it has none."""
    return urlsplit(str(getattr(getattr(exc, "request", None), "url", ""))).netloc


def _inner(exc: BaseException) -> BaseException | None:
    """Return the cause of an exception; requests and urllib3 keep it in their arguments."""
    if isinstance(reason := getattr(exc, "reason", None), BaseException):
        return reason
    for argument in exc.args[::-1]:
        if isinstance(argument, BaseException):
            return argument
    return exc.__cause__ or exc.__context__


def _sentence(exc: BaseException, host: str) -> str:
    """Return the sentence for one exception; an empty text if its type is not known here."""
    match exc:
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.ENETDOWN):
            return f"no network route leads to {host}"
        case OSError(filename=str(path)):
            return f"{path}: {exc.strerror}"
        case ssl.SSLCertVerificationError(verify_message=str(why)):
            return f"{host} has no valid certificate: {why}"
    template = next((template for kinds, template in _SENTENCES if isinstance(exc, kinds)), "")
    name = host.rpartition(":")[0] or host
    return template.format(host=host, name=name, why=getattr(exc, "reason", None) or exc)


# The order matters: some of these types are subclasses of later ones.
_SENTENCES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((socket.gaierror, urllib3.NameResolutionError), "the name {name} cannot be resolved"),
    ((ssl.SSLError,), "no TLS connection with {host}: {why}"),
    ((ConnectionRefusedError,), "{host} refuses connections"),
    ((http.client.RemoteDisconnected,), "{host} closes the connection without an answer"),
    ((http.client.BadStatusLine,), "{host} does not speak HTTP"),
    ((ConnectionError,), "{host} breaks the connection"),
    ((TimeoutError, urllib3.TimeoutError), "{host} does not answer in time"),
    ((urllib3.IncompleteRead,), "{host} breaks off its answer"),
)
