"""Asking a running agent for a file.

**Invariant:** what is answered is checked before it is believed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jostler.cli.ask import AskError, address_of, get_json
from jostler.why.finding import Answer, Finding, Looked

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def ask(address: str | None, text: str, environ: Mapping[str, str]) -> Told | Silent:
    """Ask an agent for a file.

    Args:
        address: as `-address` gives it; None: where the environment says; empty: nobody.
        text: the file.
        environ: may say where the agent listens.

    Raises:
        ValueError: the address is none.
    """
    if not address and address is not None:
        return Silent("no -address given")
    try:
        where = "{}:{}".format(*address_of(address, environ))
    except AskError as exc:
        raise ValueError(str(exc)) from exc
    try:
        path = f"/why.json?name={quote(os.fsencode(text), safe='')}"
        return _told(get_json(address, environ, path), where)
    except AskError as exc:
        return Silent(str(exc))
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        return Silent(f"what answers at {where} is no agent of this version: {exc!r}")


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
