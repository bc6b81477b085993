"""The command `jostler collect`: poll HTTP feeds into the spool, until SIGTERM.

**Invariant:** a configuration with any problem starts nothing, and at SIGHUP changes nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from msgspec.structs import replace

from jostler import log
from jostler.cli.flags import HELP, Flag, boolean, duration, host_port, parse, usage, whole
from jostler.cli.messages import DONE, run
from jostler.cli.options import TABLE
from jostler.config import LogFormat
from jostler.errors import ConfigError, JostlerError
from jostler.format.names import check_experiment
from jostler.full_sign import is_full
from jostler.producer.collect.feeds_file import read_feeds
from jostler.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostler.cli.flags import Parsed
    from jostler.config import MinFree
    from jostler.producer.collect.collector import Collector
    from jostler.producer.collect.feeds import Feed

CONNECTIONS_MAX = 10_000
ABOUT = """usage: jostler collect -config feeds.toml -experiment E [flags]

Polls HTTP feeds and writes what they answer into the spool, from where an agent archives it.  Each
feed is a table [[feed]] of the file, with its id (the datatype), url and every; docs/collect.md has
all keys.  SIGHUP reads the file again.
Exit status: 0 ended by a signal, or -check found nothing wrong; 1 it failed; 2 wrong use, or
-check found something.

flags:
"""


def _agents(*names: str) -> list[Flag]:
    """Return flags of the agent, which mean the same here."""
    return [flag for flag in TABLE if flag.name in names]


FLAGS = (
    Flag(name="config", help="required: the TOML file with the feeds", variable=False),
    Flag(
        name="check",
        read=boolean,
        default="false",
        help="check flags and file, show the feeds with secrets masked, and exit",
        variable=False,
    ),
    Flag(
        name="connections",
        read=whole,
        default="100",
        help="fetches that run at once, at most; feeds that were slow the last time share half",
        variable=False,
    ),
    *_agents("experiment", "local-data-dir", "extensions", "bundle-size-max"),
    *(
        replace(
            flag,
            help="space of the spool's disk, in per cent or bytes, below which nothing is fetched;"
            " 0 never",
        )
        for flag in _agents("min-free-disk")
    ),
    Flag(
        name="prometheusx.listen-address",
        default="localhost:9992",
        help="address of metrics and page; :9992 for all interfaces, empty for none",
        variable=False,  # the agent's is another one
    ),
    *_agents("allowed-hosts", "verbose", "log-format"),
    HELP,
)


def main(argv: Sequence[str]) -> int:
    """Run the command; return its exit status."""
    parsed = parse(FLAGS, argv, os.environ)
    if parsed.values["help"]:
        sys.stdout.write(ABOUT + usage(FLAGS) + "\n")
        return DONE
    return run("collect", lambda: _run(parsed))


def _run(parsed: Parsed) -> int:
    """Check, and collect if nothing is wrong.

    Raises:
        ConfigError: wrong use, or the file has problems.
        JostlerError: what collecting needs is not installed.
        OSError: nothing can be written into the spool.
    """
    values = parsed.values
    problems = list(parsed.problems)
    read = _reader(parsed, problems)
    listen = _checked(parsed, problems)
    feeds: Sequence[Feed] = ()
    try:
        feeds = read() if values["config"] else ()
    except ConfigError as exc:
        problems += exc.problems
    if problems:
        raise ConfigError(problems)
    if values["check"]:
        _show(feeds)
        return DONE
    format_ = values["log-format"]
    text = format_ is LogFormat.TEXT or (format_ is LogFormat.AUTO and sys.stdout.isatty())
    log.start(verbose=values["verbose"], text=text)
    collector = _collector(parsed)
    with _Server(collector, listen, values["allowed-hosts"]):
        asyncio.run(_until_signal(collector, feeds, read))
    return DONE


def _reader(parsed: Parsed, problems: list[str]) -> Callable[[], Sequence[Feed]]:
    """Return the function that reads the feeds, now and at each SIGHUP."""
    values = parsed.values
    if not values["config"]:
        problems.append("-config: is required")
    return partial(
        read_feeds,
        Path(values["config"] or ""),
        os.environ,
        seconds=duration,
        extensions=values["extensions"] or (".json",),
    )


def _checked(parsed: Parsed, problems: list[str]) -> tuple[str, int] | None:
    """Check flags that depend on each other or on the system; return where to listen."""
    values = parsed.values
    try:
        if not values["experiment"]:
            problems.append("-experiment: is required")
        else:
            check_experiment(values["experiment"])
    except ValueError as exc:
        problems.append(f"-experiment: {exc}")
    if not 1 <= values["connections"] <= CONNECTIONS_MAX:
        problems.append(f"-connections: {values['connections']} is not 1 to {CONNECTIONS_MAX}")
    address = values["prometheusx.listen-address"]
    try:
        return host_port(address) if address else None
    except ValueError as exc:
        problems.append(f"-prometheusx.listen-address: {exc}")
    return None


def _show(feeds: Sequence[Feed]) -> None:
    """Write the feeds as TOML, with secrets masked; a JSON string is a TOML string, too."""
    for feed in feeds:
        sys.stdout.write("[[feed]]\n")
        for key, value in feed.shown().items():
            if isinstance(value, dict):
                pairs = (f"{_toml(name)} = {_toml(one)}" for name, one in value.items())
                sys.stdout.write(f"{key} = {{ {', '.join(pairs)} }}\n" if value else "")
            else:
                sys.stdout.write(f"{key} = {_toml(value)}\n")
        sys.stdout.write("\n")
    sys.stdout.write(f"# all is well: {counted(len(feeds), 'feed')}\n")


def _toml(value: object) -> str:
    return orjson.dumps(value).decode()


def _collector(parsed: Parsed) -> Collector:
    """Make the collector.

    Raises:
        JostlerError: what collecting needs is not installed.
    """
    try:
        from jostler.producer.collect.collector import Collector  # noqa: PLC0415 - an extra
    except ImportError as exc:
        hint = "pip install 'jostler[collect]'"
        raise JostlerError("aiohttp is not installed", hint=hint) from exc
    from jostler.producer.collect.disk import Disk  # noqa: PLC0415 - with it

    values = parsed.values
    spool = Path(values["local-data-dir"]) / values["experiment"]
    min_free: MinFree = values["min-free-disk"]
    return Collector(
        spool,
        Disk(spool, min_free.of, is_full),
        connections=values["connections"],
        most_bytes=values["bundle-size-max"],
        extensions=values["extensions"] or (".json",),
    )


class _Server:
    """The server of metrics and page, while the collector runs.

    Raises:
        ConfigError: it cannot listen.
    """

    def __init__(
        self, collector: Collector, listen: tuple[str, int] | None, names: Sequence[str]
    ) -> None:
        from jostler.producer.collect.routes import routes  # noqa: PLC0415 - not for -check
        from jostler.web.server import StatusServer  # noqa: PLC0415 - as above

        self._server = None
        if listen is None:
            return
        host, port = listen
        try:
            self._server = StatusServer(host, port, routes(collector), names)
        except OSError as exc:
            why = exc.strerror or exc
            problem = f"-prometheusx.listen-address: cannot listen on {host}:{port}: {why}"
            raise ConfigError([problem]) from exc
        log.Log("jostler.collect").info("status.listening", host=host, port=self._server.port)

    def __enter__(self) -> None:
        if self._server:
            self._server.start()

    def __exit__(self, *_: object) -> None:
        if self._server:
            self._server.close()


async def _until_signal(
    collector: Collector, feeds: Sequence[Feed], read: Callable[[], Sequence[Feed]]
) -> None:
    """Collect until SIGTERM or SIGINT; read the feeds again at SIGHUP."""
    loop = asyncio.get_running_loop()
    stop, again = asyncio.Event(), asyncio.Event()

    async def reload() -> None:
        while True:
            await again.wait()
            again.clear()
            await collector.reload(read)

    loop.add_signal_handler(signal.SIGHUP, again.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    reloads = loop.create_task(reload(), name="reload")
    try:
        await collector.run(feeds, stop)
    finally:
        reloads.cancel()
