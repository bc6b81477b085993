"""The HTTP client for a running agent: its status, its health, where a file is.

**Invariant:** each call sends one request, without proxy or redirect, and limits time and size;
every answer is checked before it is used.
"""

from __future__ import annotations

import http.client
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from jostler.cli.flags import host_port
from jostler.errors import JostlerError
from jostler.why.finding import Answer, Finding, Looked

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "PROMETHEUSX_LISTEN_ADDRESS"
DEFAULT = "localhost:9990"
TIMEOUT_S = 15.0
FORMAT = 1
MOST_BYTES = 16 * 1024 * 1024


class AskError(JostlerError):
    """No agent answers, or the answer is not an agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAnswer:
    """The agent's answer about a file, and the settings that the agent runs with."""

    answer: Answer
    bucket: str
    node: str
    spool: str
    data_dir: str
    organization: str
    experiment: str
    datatypes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentClient:
    """A client of the agent at one address."""

    host: str
    port: int

    @classmethod
    def of(cls, address: str | None, environ: Mapping[str, str]) -> Self:
        """Use the given address, else the agent's listen address variable, else the default.

        Raises:
            AskError: the text is not an address.
        """
        try:
            host, port = host_port(address or environ.get(VARIABLE) or DEFAULT)
        except ValueError as exc:
            raise AskError(f"-address: {exc}") from exc
        return cls(host or "localhost", port)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def status(self) -> dict[str, Any]:
        """Return the status document.

        Raises:
            AskError: nobody answers, or something that is no agent.
        """
        return self._json("/status.json")

    def unwell(self) -> str:
        """Return what is wrong with the agent's loop; an empty text if nothing is.

        Raises:
            AskError: nobody answers.
        """
        status, body = self._get("/healthz")
        return "" if status == http.client.OK else body.decode(errors="replace")

    def why(self, text: str) -> AgentAnswer:
        """Ask where a file is.

        Raises:
            AskError: nobody answers, or something that is no agent of this version.
        """
        value = self._json(f"/why.json?name={quote(os.fsencode(text), safe='')}")
        try:
            return _agent_answer(value, str(self))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as exc:
            raise AskError(f"what answers at {self} is no agent of this version") from exc

    def _json(self, path: str) -> dict[str, Any]:
        status, body = self._get(path)
        page = path.partition("?")[0]
        if status != http.client.OK:
            raise AskError(f"what answers at {self} says HTTP {status} to {page}")
        try:
            value = json.loads(body)
        except ValueError as exc:
            raise AskError(f"what {self} answers to {page} is no JSON: {exc}") from exc
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise AskError(f"what answers at {self} is no agent of this version")
        return value

    def _get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a page."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read(MOST_BYTES)
        except (OSError, http.client.HTTPException) as exc:
            why = getattr(exc, "strerror", "") or str(exc) or type(exc).__name__
            raise AskError(f"nobody answers at {self}: {why}") from exc
        finally:
            connection.close()


def _agent_answer(value: dict[str, Any], address: str) -> AgentAnswer:
    agent = value["agent"]
    looked = [Looked.parse(one) for one in value["looked"]]
    looked[0] = Looked(looked[0].where, looked[0].done, f"{address}: {looked[0].text}")
    return AgentAnswer(
        answer=Answer.of((Finding.parse(one) for one in value["findings"]), looked),
        bucket=str(agent["bucket"]),
        node=str(agent["node"]),
        spool=str(agent["spool"]),
        data_dir=str(agent["data_dir"]),
        organization=str(agent["organization"]),
        experiment=str(agent["experiment"]),
        datatypes=tuple(map(str, agent["datatypes"])),
    )
