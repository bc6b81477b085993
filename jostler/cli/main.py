"""The entry point of the command `jostler`: arguments, signals and the exit status.

Exit status: 0 done; 1 something failed, and the log says what; 2 wrong use.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from jostler import build, log
from jostler.cli import command_line as cli
from jostler.cli import commands, streams
from jostler.cli.messages import DONE, FAILED, MISUSED
from jostler.config import LogFormat, Mode
from jostler.errors import ConfigError, JostlerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from jostler.agent.observe.status import Status
    from jostler.cli.flags import Parsed
    from jostler.config import Config
    from jostler.watchdir import Arrivals


def main(argv: list[str] | None = None) -> int:
    """Run the program; return its exit status."""
    streams.complete()
    try:
        status = _command(sys.argv[1:] if argv is None else argv)
    except BrokenPipeError:  # the reader of the output, such as head, has seen enough
        status = FAILED
    except KeyboardInterrupt:
        # Whoever started this program shall see that Ctrl-C ended it; requests that are on their
        # way are not waited for.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
        return FAILED
    streams.flush()
    return status


def _command(argv: list[str]) -> int:
    """Run the command that the first argument names, or the agent if it is a flag."""
    match argv:
        case [commands.HELP]:
            argv = ["-help"]
        case [commands.HELP, str(name), *_]:
            argv = [name, "-help"]
        case [commands.VERSION]:
            argv = ["-version"]
    if argv and not argv[0].startswith("-"):
        command = commands.find(argv[0])
        if command:
            return command.run(argv[1:])
        commands.say_unknown(argv[0])
        return MISUSED
    return _agent(argv)


def _agent(argv: list[str]) -> int:
    parsed = cli.parse_flags(argv, os.environ)
    if parsed.values["help"]:
        print(cli.help_text())
    elif parsed.values["version"]:
        print(f"jostler {build.version()} ({build.commit()})")
    else:
        return _start(parsed)
    return DONE


def _start(parsed: Parsed) -> int:
    """Check the flags, then run the mode that they select."""
    try:
        config = cli.configure(parsed, lambda path: Path(path).read_text(encoding="utf-8"))
    except ConfigError as exc:
        for problem in exc.problems:
            print(f"jostler: {problem}", file=sys.stderr)
        print("jostler: -help shows all flags", file=sys.stderr)
        return MISUSED
    start_log(config)
    _log_changes(config)
    try:
        return _MODES[config.mode](config)
    except ConfigError as exc:
        print(f"jostler: {exc}", file=sys.stderr)
        return MISUSED
    except JostlerError as exc:
        print(f"jostler: {exc}", file=sys.stderr)
        if exc.hint:
            print(f"jostler: hint: {exc.hint}", file=sys.stderr)
        return FAILED


def start_log(config: Config) -> None:
    """Start logging in the configured format."""
    text = config.log_format is LogFormat.TEXT or (
        config.log_format is LogFormat.AUTO and sys.stdout.isatty()
    )
    log.start(verbose=config.verbose, text=text)


def _log_changes(config: Config) -> None:
    """Log each setting that follows from something else than its own flag or variable."""
    log_ = log.Log("jostler.config")
    for flag, variable in config.overruled:
        log_.warning("variable.overruled", variable=variable, by=flag)
    if config.memory_raised_from:
        log_.warning(
            "memory.raised",
            from_bytes=config.memory_raised_from,
            to_bytes=config.memory_max,
            hint="-bundle-size-max needs it; give -memory-max, and the container room for it",
        )


def _run(config: Config) -> int:
    """Run the agent, as a daemon or once."""
    from jostler.agent.agent import Agent  # noqa: PLC0415 - other modes start without it
    from jostler.agent.schema_sync import read_schemas  # noqa: PLC0415 - as above

    tables = read_schemas(config.datatypes)
    stop, abort = threading.Event(), threading.Event()
    with _arrivals(config) as arrivals:
        _on_signals(stop, abort, arrivals.wake)
        if config.test_interval_s:
            _stop_after(config.test_interval_s, stop, arrivals.wake)
        agent = Agent(config, tables, arrivals, stop=stop, abort=abort)
        if config.listen:
            _serve(*config.listen, agent.status)
        return DONE if agent.run() else FAILED


def _arrivals(config: Config) -> Arrivals:
    """Watch the spool as `-watch` says; with `-once`, scan it once.

    Raises:
        ConfigError: this system does not support what `-watch` names.
    """
    from jostler.agent.start import watched  # noqa: PLC0415 - other modes start without it
    from jostler.watchdir import WatchError, open_arrivals, scan_once  # noqa: PLC0415 - as above

    if config.mode is Mode.ONCE:
        return scan_once(watched(config), extensions=config.extensions)
    try:
        return open_arrivals(watched(config), extensions=config.extensions, watch=config.watch)
    except WatchError as exc:
        raise ConfigError([f"-watch: {exc}"]) from exc


def _serve(host: str, port: int, status: Status) -> None:
    """Serve metrics and status until the process ends.

    Raises:
        ConfigError: the server cannot listen on the address.
    """
    from jostler.agent.observe.routes import routes  # noqa: PLC0415 - only a serving agent needs it
    from jostler.web.server import StatusServer  # noqa: PLC0415 - as above

    try:
        names = (host, status.config.node, *status.config.allowed_hosts)
        server = StatusServer(host, port, routes(status), names)
    except OSError as exc:
        where = f"{host}:{port}"
        problem = f"-prometheusx.listen-address: cannot listen on {where}: {exc.strerror or exc}"
        raise ConfigError([problem]) from exc
    server.start()
    log.Log("jostler.observe").info("status.listening", host=host, port=server.port)


def _stop_after(interval_s: float, stop: threading.Event, wake: Callable[[], None]) -> None:
    """Stop the agent after the time that `-test-interval` gives."""

    def ring() -> None:
        stop.set()
        wake()

    timer = threading.Timer(interval_s, ring)
    timer.daemon = True
    timer.start()


def _on_signals(stop: threading.Event, abort: threading.Event, wake: Callable[[], None]) -> None:
    """Let the first SIGTERM or SIGINT drain the agent, and the second one abort the drain."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        (abort if stop.is_set() else stop).set()
        wake()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)


def _check(config: Config) -> int:
    from jostler.agent.preflight import check  # noqa: PLC0415 - other modes start without it

    return DONE if check(config) else FAILED


def _schema(config: Config) -> int:
    from jostler.cli.schema_mode import show  # noqa: PLC0415 - other modes start without it

    return DONE if show(config) else FAILED


_MODES = {Mode.RUN: _run, Mode.ONCE: _run, Mode.CHECK: _check, Mode.SCHEMA: _schema}
