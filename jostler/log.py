"""Logs: each line is one constant event name and its fields, as JSON or as text.

**Invariant:** nothing is formatted into the event name; all facts are fields.  Text from outside
(file names, replies of servers) can therefore never forge a line.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TextIO

import orjson


class Log:
    """A logger that takes fields as keyword arguments: `log.info("bundle.sealed", files=412)`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    @property
    def verbose(self) -> bool:
        """Whether `debug` writes anything; ask before computing fields for every file."""
        return self._logger.isEnabledFor(logging.DEBUG)

    def debug(self, event: str, **fields: object) -> None:
        """Log what happened to one file."""
        self._logger.debug(event, extra={"fields": fields})

    def info(self, event: str, **fields: object) -> None:
        """Log a change of state."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: object) -> None:
        """Log that something went wrong and how the program handled it."""
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, **fields: object) -> None:
        """Log a problem that a person must act on."""
        self._logger.error(event, extra={"fields": fields})

    def exception(self, event: str, **fields: object) -> None:
        """Log an unforeseen exception with its traceback."""
        self._logger.error(event, exc_info=True, extra={"fields": fields})  # noqa: LOG014 - in one


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, event, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
            **_fields(record),
        }
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


class TextFormatter(logging.Formatter):
    """One line for people: time, level, event, `key=value` pairs with odd values quoted."""

    def format(self, record: logging.LogRecord) -> str:
        """Write one line."""
        facts = " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record).items())
        return f"{_time(record)} {record.levelname:7} {record.getMessage()} {facts}".rstrip()


def _time(record: logging.LogRecord) -> str:
    when = datetime.fromtimestamp(record.created, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields: dict[str, object] = dict(getattr(record, "fields", {}))
    if record.exc_info:
        fields["trace"] = logging.Formatter().formatException(record.exc_info)
    return {key: _clean(value) for key, value in fields.items()}


def _clean(value: object) -> object:
    """Make text encodable as UTF-8, because a file name may contain any byte."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return value


def _quoted(value: object) -> str:
    text = str(value)
    plain = text.isprintable() and text and not set(text) & set(' "=')
    return text if plain else orjson.dumps(text).decode()


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines; reports a failure once on standard error instead of a trace for each line.

    It keeps trying, because a full disk may have room again later.
    """

    _said = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Report a stream that cannot be written; anything else is a bug and gets its trace."""
        exc = sys.exception()
        if not isinstance(exc, OSError):
            super().handleError(record)
        elif not self._said:
            self._said = True
            why = exc.strerror or type(exc).__name__
            with suppress(OSError):
                sys.stderr.write(f"jostler: log lines are lost: {self.stream.name}: {why}\n")


def start(*, verbose: bool, text: bool, stream: TextIO | None = None) -> None:
    """Send the logs of this process to `stream`, standard output if None."""
    handler = _Handler(stream or sys.stdout)
    handler.setFormatter(TextFormatter() if text else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("jostler").setLevel(logging.DEBUG if verbose else logging.INFO)


class EveryMinute:
    """Decides when to repeat a message: at once, and then once a minute with its count."""

    def __init__(self, period_s: float = 60.0) -> None:
        self._period_s = period_s
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, int]] = {}

    def due(self, key: str) -> int:
        """Count one occurrence of `key`; return the count to report now, or 0 for not yet."""
        now = time.monotonic()
        with self._lock:
            last_s, count = self._last.get(key, (-self._period_s, 0))
            if now - last_s >= self._period_s:
                self._last[key] = (now, 0)
                return count + 1
            self._last[key] = (last_s, count + 1)
            return 0


class RateLimitedLog:
    """A logger that writes each warning at once and then at most once a minute, with its count.

    Args:
        name: the logger's name.
    """

    def __init__(self, name: str) -> None:
        self._log = Log(name)
        self._every_minute = EveryMinute()

    def warning(self, event: str, **fields: object) -> None:
        """Log a warning, unless the same event was logged less than a minute ago."""
        if times := self._every_minute.due(event):
            self._log.warning(event, **fields, times=times)
