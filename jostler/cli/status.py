"""The command `jostler status`: show the state of a running agent in a terminal.

**Invariant:** it only reads, and writes no control characters from the answer to the terminal.

Exit status: 0 all is well; 1 something is wrong; 2 wrong use, or no agent answers.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any

from jostler.cli.agent_client import VARIABLE, AgentClient, AskError
from jostler.cli.flags import HELP, Flag, boolean, parse, usage
from jostler.cli.status_text import HEIGHT, WIDTH, details, screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WELL, WRONG, MISUSED = 0, 1, 2
WATCH_S = 2.0
HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
"""Control sequences (ECMA-48): cursor home; erase to end of line; erase to end of screen."""
ABOUT = """usage: jostler status [flags]

Shows the status of a running agent: waiting files, bundles in flight, problems.
Exit status: 0 no problem; 1 a problem; 2 wrong use, or no agent answers.

flags:
"""
FLAGS = (
    Flag(
        name="address",
        help="where the agent answers, HOST:PORT"
        " (default $PROMETHEUSX_LISTEN_ADDRESS or localhost:9990)",
        variable=False,
    ),
    Flag(
        name="watch",
        read=boolean,
        default="false",
        help="show it again every 2 s, until you press Ctrl-C",
        variable=False,
    ),
    Flag(
        name="full",
        read=boolean,
        default="false",
        help="show everything, with whole names, however long it is",
        variable=False,
    ),
    Flag(name="json", read=boolean, default="false", help="write /status.json", variable=False),
    Flag(
        name="health",
        read=boolean,
        default="false",
        help="only ask /healthz whether the agent's loop turns; prints nothing if it does",
        variable=False,
    ),
    HELP,
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
    agent = AgentClient.of(values["address"], environ)
    if values["health"]:
        switched_off = values["address"] is None and environ.get(VARIABLE) == ""
        return WELL if switched_off else _health(agent)
    if values["watch"]:
        return _watch(agent, full=values["full"])
    document = agent.status()
    if values["json"]:
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        sys.stdout.write(_text(document, full=values["full"]))
    return _status_of(document)


def _status_of(document: Mapping[str, Any]) -> int:
    return WELL if document["health"]["level"] == "ok" else WRONG


def _health(agent: AgentClient) -> int:
    wrong = agent.unwell()
    sys.stderr.write(wrong)
    return WRONG if wrong else WELL


def _text(document: dict[str, Any], *, full: bool) -> str:
    width, height = WIDTH, HEIGHT
    if sys.stdout.isatty():
        width, height = shutil.get_terminal_size((WIDTH, HEIGHT))
    return details(document, width) if full else screen(document, width, height)


def _watch(agent: AgentClient, *, full: bool) -> int:
    """Show the status every few seconds until interrupted, even while no agent answers.

    Returns:
        The exit status of what was shown last.
    """
    terminal = sys.stdout.isatty()
    status = MISUSED
    try:
        while True:
            try:
                document = agent.status()
                text, status = _text(document, full=full), _status_of(document)
            except AskError as exc:
                text, status = f"{exc}; asking again\n", MISUSED
            if terminal:  # overwrite the old text line by line: clearing first would flicker
                lines = text.replace("\n", f"{REST_OF_LINE}\n")
                text = f"{HOME}{lines}{REST_OF_SCREEN}"
            sys.stdout.write(text if terminal else f"{text}\n")
            sys.stdout.flush()
            time.sleep(WATCH_S)
    except KeyboardInterrupt:
        return status
