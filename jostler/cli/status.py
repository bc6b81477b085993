"""`jostler status`: what a running agent says of itself, in a terminal.

**Invariant:** reads only; control characters of what is shown never reach the terminal.

Exit status: 0 all is well; 1 something is wrong; 2 wrong use, or no agent answers.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from jostler.cli.ask import AskError, get_json
from jostler.cli.flags import Flag, boolean, parse, usage
from jostler.cli.status_text import as_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WELL, WRONG, MISUSED = 0, 1, 2
ABOUT = """usage: jostler status [flags]

Shows what a running agent says of itself: what waits, what is on its way, what went wrong.
Exit status: 0 all is well; 1 something is wrong; 2 wrong use, or no agent answers.

flags:
"""
FLAGS = (
    Flag(
        name="address",
        help="where the agent answers, HOST:PORT"
        " (default $PROMETHEUSX_LISTEN_ADDRESS or localhost:9990)",
        variable=False,
    ),
    Flag(name="json", read=boolean, default="false", help="write /status.json", variable=False),
    Flag(
        name="health",
        read=boolean,
        default="false",
        help="only ask whether the agent's loop turns, as /healthz; says nothing if so",
        variable=False,
    ),
    Flag(name="help", aliases=("h",), read=boolean, default="false", help="show this and exit"),
)


def main(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the command; return its exit status."""
    parsed = parse(FLAGS, argv, environ)
    values = parsed.values
    if values["help"]:
        sys.stdout.write(ABOUT + usage(FLAGS) + "\n")
        return WELL
    for problem in parsed.problems:
        sys.stderr.write(f"jostler status: {problem}\n")
    if parsed.problems:
        return MISUSED
    try:
        return _run(values, environ)
    except AskError as exc:
        sys.stderr.write(f"jostler status: {exc}\n")
        return MISUSED


def _run(values: Mapping[str, Any], environ: Mapping[str, str]) -> int:
    address = values["address"]
    if values["health"]:
        return _health(address, environ)
    document = get_json(address, environ, "/status.json")
    text = json.dumps(document, indent=1) + "\n" if values["json"] else as_text(document)
    sys.stdout.write(text)
    return WELL if document["health"]["level"] == "ok" else WRONG


def _health(address: str | None, environ: Mapping[str, str]) -> int:
    from jostler.cli.ask import VARIABLE, get  # noqa: PLC0415 - used here alone

    if address is None and environ.get(VARIABLE) == "":
        return WELL  # the operator switched the server off: nobody is to answer

    status, body = get(address, environ, "/healthz")
    if status == 200:  # noqa: PLR2004 - HTTP's OK
        return WELL
    sys.stderr.write(body.decode(errors="replace"))
    return WRONG
