"""The commands of `jostler` by name: `list`, `status`, `why`, and so on.

**Invariant:** a command's module is imported only when the command runs; the agent needs none.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Command(Struct, frozen=True):
    """One command.

    Attributes:
        name: the first word of the command line.
        module: the module whose `main(argv)` runs the command and returns its exit status.
        about: a short description for the list of commands.
    """

    name: str
    module: str
    about: str

    def run(self, argv: Sequence[str]) -> int:
        """Run the command; return its exit status."""
        status: int = import_module(self.module).main(argv)
        return status


COMMANDS = (
    Command("asset", "jostler.cli.asset", "who owns and may read a datatype: show, check, put"),
    Command("audit", "jostler.cli.audit", "find, and mend, what is wrong with an archive"),
    Command("delete", "jostler.cli.delete", "delete the data of a datatype's days"),
    Command("list", "jostler.cli.list", "list the files of an archive, its bundles, or its days"),
    Command("latest", "jostler.cli.latest", "show the newest file of each node"),
    Command("cat", "jostler.cli.cat", "write stored files to standard output"),
    Command("collect", "jostler.cli.collect", "poll HTTP feeds into the spool"),
    Command("fetch", "jostler.cli.fetch", "save stored files to disk"),
    Command("push", "jostler.cli.push", "put files into the spool, judged first"),
    Command(
        "requeue", "jostler.cli.requeue", "put into the spool what was rejected and is good now"
    ),
    Command("retrieve", "jostler.cli.retrieve", "copy all files of a time to disk"),
    Command("retention", "jostler.cli.retention", "show what is older than it need be kept"),
    Command("serve", "jostler.cli.serve", "serve the archive as web pages and an HTTP API"),
    Command("status", "jostler.cli.status", "show the status of a running agent"),
    Command("translate", "jostler.cli.translate", "apply a translation expression to a path"),
    Command("verify", "jostler.cli.verify", "compare data bundles and index bundles of a bucket"),
    Command("why", "jostler.cli.why", "show where one file is, and why"),
)
HELP, VERSION = "help", "version"
_ABOUT = {
    **{command.name: command.about for command in COMMANDS},
    HELP: "show the flags of the agent; `help COMMAND`: those of a command",
    VERSION: "show version and commit",
}


def find(name: str) -> Command | None:
    """Return the command of this name."""
    return next((command for command in COMMANDS if command.name == name), None)


def listed() -> str:
    """Return the list of commands for `-help`."""
    return "\n".join(f"  {name:9} {about}" for name, about in _ABOUT.items())


def say_unknown(name: str) -> None:
    """Report an unknown command, the most similar one, and all that exist, on standard error."""
    lines = [f"there is no command {name!r}{meant(name, _ABOUT)}"]
    lines.append(f"commands are {', '.join(_ABOUT)}; without one, the agent runs by its flags")
    sys.stderr.writelines(f"jostler: {line}\n" for line in lines)


def meant(name: str, known: Iterable[str], dash: str = "") -> str:
    """Return `; did you mean X?` if a known name is similar, else an empty text."""
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {dash}{close[0]}?" if close else ""
