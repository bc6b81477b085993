"""Asking a running agent over HTTP.

**Invariant:** one request, no proxy, no redirect, bounded time and size; what is answered is
checked before it is believed.
"""

from __future__ import annotations

import http.client
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from jostler.why.finding import Answer, Finding, Looked

if TYPE_CHECKING:
    from collections.abc import Mapping

PORT = 9990
TIMEOUT_S = 15.0
MOST_BYTES = 16 * 1024 * 1024
_VARIABLE = "PROMETHEUSX_LISTEN_ADDRESS"


@dataclass(frozen=True, slots=True)
class Silent:
    """No agent answered; why."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What an agent answered, and what it was told itself."""

    answer: Answer
    bucket: str
    node: str
    spool: str
    data_dir: str
    organization: str
    experiment: str
    datatypes: tuple[str, ...]


def address_of(given: str | None, environ: Mapping[str, str]) -> str:
    """Return where to ask, `HOST:PORT`; empty if nobody is to be asked.

    Raises:
        ValueError: it is no address.
    """
    if given is None:
        given = environ.get(_VARIABLE) or f":{PORT}"
    if not given:
        return ""
    host, port = _split(given)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split(address: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname or "localhost", parts.port or PORT
    except ValueError:
        host = ""
    if not host or parts.netloc != address:
        raise ValueError(f"-address: {address!r} is not HOST:PORT")
    return host, port


def ask(address: str, text: str) -> Told | Silent:
    """Ask an agent for a file."""
    host, port = _split(address)
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", f"/why.json?name={quote(os.fsencode(text), safe='')}")
        response = connection.getresponse()
        body = response.read(MOST_BYTES)
    except (OSError, http.client.HTTPException) as exc:
        why = getattr(exc, "strerror", "") or str(exc) or type(exc).__name__
        return Silent(f"nobody answers at {address}: {why}")
    finally:
        connection.close()
    if response.status != http.client.OK:
        return Silent(f"what answers at {address} says HTTP {response.status} to /why.json")
    try:
        return _told(json.loads(body), address)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        return Silent(f"what answers at {address} is no agent of this version: {exc!r}")


def _told(value: dict[str, Any], address: str) -> Told:
    agent = value["agent"]
    looked = [Looked.parse(one) for one in value["looked"]]
    looked[0] = Looked(looked[0].where, looked[0].done, f"{address}: {looked[0].told}")
    return Told(
        answer=Answer.of((Finding.parse(one) for one in value["findings"]), looked),
        bucket=str(agent["bucket"]),
        node=str(agent["node"]),
        spool=str(agent["spool"]),
        data_dir=str(agent["data_dir"]),
        organization=str(agent["organization"]),
        experiment=str(agent["experiment"]),
        datatypes=tuple(map(str, agent["datatypes"])),
    )
