"""The configuration of `jostler collect`: a TOML file with one `[[feed]]` for each feed.

**Invariant:** every problem of the file is found in one pass, each with file, line, feed and key;
no message has a header's value.

Reads the file, the environment that it is given, and the files that headers name.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jostler.errors import ConfigError
from jostler.format.names import OWN_DATATYPES, check_datatype, check_file_name
from jostler.producer.collect.feeds import Feed, Header, Shape
from jostler.producer.collect.toml_lines import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from jostler.producer.collect.toml_lines import Way

EVERY_MIN_S = 0.1
EVERY_MAX_S = 31 * 86400.0
TIMEOUT_MAX_S = 3600.0
_TOKEN_RE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
"""The name of a header, by RFC 9110."""
_OURS = frozenset({"accept-encoding", "if-none-match", "if-modified-since", "host", "range"})
"""Headers that the collector sets itself, or that would change what an answer means."""
KEYS = ("id", "url", "every", "timeout", "headers", "as", "dedup", "prefix", "postfix")


@dataclass(slots=True)
class _Reading:
    """One reading of a file: where its keys are, and what is wrong so far."""

    path: Path
    environ: Mapping[str, str]
    seconds: Callable[[str], float]
    extensions: Sequence[str]
    lines: Lines
    _problems: list[tuple[int, str]] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """What is wrong, in the order of the file."""
        return [f"{self.path}:{line}: {problem}" for line, problem in sorted(self._problems)]

    def wrong(self, way: Way, problem: str) -> None:
        """Note what is wrong with the value at `way`."""
        self._problems.append((self.lines.of(way), problem))

    def unknown(self, way: Way, about: str, known: Sequence[str]) -> None:
        """Note a key that does not exist, with the one that may be meant."""
        key = str(way[-1])
        close = get_close_matches(key, known, n=1)
        meant = f"; did you mean {close[0]}?" if close else f"; keys are {', '.join(known)}"
        self.wrong(way, f"{about}{key}: there is no such key{meant}")


def read_feeds(
    path: Path,
    environ: Mapping[str, str],
    *,
    seconds: Callable[[str], float],
    extensions: Sequence[str] = (".json",),
) -> tuple[Feed, ...]:
    """Read all feeds of a file.

    Args:
        path: the file.
        environ: where headers with `env` have their values from.
        seconds: reads a duration such as `250ms`; raises ValueError.
        extensions: of the files that the agent takes.

    Raises:
        ConfigError: with every problem, one line each.
    """
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as exc:
        raise ConfigError([f"{path}: cannot be read: {exc.strerror}"]) from exc
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError([f"{path}: {exc}"]) from exc
    reading = _Reading(path, environ, seconds, extensions, Lines(text))
    for key in document:
        if key != "feed":
            reading.unknown((key,), "", ("feed",))
    tables = document.get("feed", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        reading.wrong(("feed",), "feed: expected a table [[feed]] for each feed")
        tables = []
    elif not tables:
        reading.wrong((), "there is no feed: each is a table [[feed]]")
    feeds = [_feed(reading, ("feed", at), table) for at, table in enumerate(tables)]
    _refuse_same_ids(reading, feeds)
    if reading.problems:
        raise ConfigError(reading.problems)
    return tuple(feed for feed in feeds if feed)


def _refuse_same_ids(reading: _Reading, feeds: Sequence[Feed | None]) -> None:
    """Refuse feeds with equal ids: their files, metrics and lines of a table would be mixed."""
    first: dict[str, int] = {}
    for at, feed in enumerate(feeds):
        if feed and feed.id in first:
            line = reading.lines.of(("feed", first[feed.id], "id"))
            reading.wrong(("feed", at, "id"), f"feed {feed.id}: id: line {line} has it already")
        elif feed:
            first[feed.id] = at


class _Table:
    """The keys of one `[[feed]]`; each method reads one key and notes what is wrong with it."""

    def __init__(self, reading: _Reading, way: Way, table: Mapping[str, Any]) -> None:
        self.reading = reading
        self._way = way
        self._table = table
        given = table.get("id")
        self.about = f"feed {given}: " if isinstance(given, str) else ""
        for key in table:
            if key not in KEYS:
                reading.unknown((*way, key), self.about, KEYS)

    def wrong(self, key: str, problem: str) -> None:
        self.reading.wrong((*self._way, key), f"{self.about}{key}: {problem}")

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def text(self, key: str, check: Callable[[str], str], default: str | None = None) -> str:
        """Read a text that `check` returns or refuses."""
        value = self._table.get(key, default)
        if value is None:
            self.wrong(key, "is missing")
        elif not isinstance(value, str):
            self.wrong(key, f"expected a text, found {_kind(value)}")
        else:
            try:
                return check(value)
            except ValueError as exc:
                self.wrong(key, str(exc))
        return ""

    def duration(self, key: str, default_s: float | None, least_s: float, most_s: float) -> float:
        """Read a duration into seconds."""
        if key not in self and default_s is not None:
            return default_s

        def check(text: str) -> str:
            value_s = self.reading.seconds(text)
            if not least_s <= value_s <= most_s:
                raise ValueError(f"{text} is not from {least_s * 1000:g}ms to {most_s:.0f}s")
            return text

        text = self.text(key, check)
        return self.reading.seconds(text) if text else least_s

    def switch(self, key: str, *, default: bool) -> bool:
        """Read true or false."""
        value = self._table.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, f"expected true or false, found {_kind(value)}")
            return default
        return value

    def headers(self) -> tuple[Header, ...]:
        """Read the table of headers."""
        table = self._table.get("headers", {})
        if not isinstance(table, dict):
            self.wrong("headers", f"expected a table of headers, found {_kind(table)}")
            return ()
        return tuple(self._header(name, value) for name, value in table.items())

    def _header(self, name: str, value: object) -> Header:
        way = (*self._way, "headers", name)
        about = f"{self.about}headers: {name}: "
        if not _TOKEN_RE.fullmatch(name):
            self.reading.wrong(way, f"{about}is not the name of a header")
        elif name.lower() in _OURS:
            self.reading.wrong(way, f"{about}is set by jostler alone")
        try:
            text, source = _value(value, self.reading)
        except ValueError as exc:
            self.reading.wrong(way, f"{about}{exc}")
            return Header(name=name, value="")
        if not text.isprintable() or not text.isascii() or text != text.strip():
            # The value is not in the message: it may be a secret with a mistake.
            problem = "its value is not printable ASCII without spaces around it"
            self.reading.wrong(way, f"{about}{problem}")
        return Header(name=name, value=text, source=source)


def _feed(reading: _Reading, way: Way, table: Mapping[str, Any]) -> Feed | None:
    """Read one feed; None, with problems noted, if it is not one."""
    before = len(reading.problems)
    keys = _Table(reading, way, table)
    name = keys.text("id", _check_id)
    every_s = keys.duration("every", None, EVERY_MIN_S, EVERY_MAX_S)
    feed = Feed(
        id=name,
        url=keys.text("url", _check_url),
        every_s=every_s,
        timeout_s=keys.duration("timeout", 10.0, EVERY_MIN_S, TIMEOUT_MAX_S),
        headers=keys.headers(),
        shape=Shape(keys.text("as", _check_shape, Shape.JSON) or Shape.JSON),
        dedup=keys.switch("dedup", default=True),
        prefix=keys.text("prefix", str, f"{name}_"),
        postfix=keys.text("postfix", str, reading.extensions[0]),
    )
    if len(reading.problems) == before:
        _check_names(keys, feed)
    return feed if len(reading.problems) == before else None


def _check_names(keys: _Table, feed: Feed) -> None:
    """Refuse names that the agent would not take."""
    extensions = keys.reading.extensions
    if not feed.postfix.endswith(tuple(extensions)):
        keys.wrong("postfix", f"files must end with {' or '.join(extensions)}: the agent's")
    for key, text in (("prefix", f"{feed.prefix}x"), ("postfix", f"x{feed.postfix}")):
        try:
            check_file_name(text)
        except ValueError:
            keys.wrong(key, "has a character outside [A-Za-z0-9:._-], a leading dot, or '..'")
        if len(text) > 100:  # noqa: PLR2004 - a name of 255 bytes has room for both and the rest
            keys.wrong(key, "has more than 99 characters")


def _check_id(text: str) -> str:
    if check_datatype(text) in OWN_DATATYPES:
        raise ValueError(f"{text} is a datatype of jostler's own")
    return text


def _check_url(text: str) -> str:
    """Return a URL that can be fetched; messages do not repeat it, for it may have a secret."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # its words repeat a part of the URL
        raise ValueError("is not a URL, or its port is not a number from 0 to 65535") from None
    if parts.scheme not in {"http", "https"}:
        raise ValueError("must begin with http:// or https://")
    if not parts.hostname or port == 0:
        raise ValueError("names no host, or port 0")
    if not text.isprintable() or " " in text:
        raise ValueError("has a space or a control character: write %20 or the like")
    return text


def _check_shape(text: str) -> str:
    if text not in set(Shape):
        raise ValueError(f"{text!r} is none of {', '.join(Shape)}")
    return text


def _value(value: object, reading: _Reading) -> tuple[str, str]:
    """Return a header's value, and where it is from.

    Raises:
        ValueError: it cannot be had; the message does not have it.
    """
    if isinstance(value, str):
        return value, ""
    known = ({"env"}, {"file"}, {"env", "scheme"}, {"file", "scheme"})
    if not isinstance(value, dict) or set(value) not in known:
        raise ValueError('expected a text, { env = "NAME" } or { file = "PATH" }, with a scheme')
    if not all(isinstance(one, str) for one in value.values()):
        raise ValueError("env, file and scheme are texts")
    if "env" in value:
        name = value["env"]
        text, source = reading.environ.get(name, ""), f"env {name}"
        if not text:
            raise ValueError(f"the environment variable {name} is not set")
    else:
        path = reading.path.parent / value["file"]
        source = f"file {path}"
        try:
            text = path.read_text(encoding="utf-8").strip()
        except OSError as exc:
            raise ValueError(f"{path} cannot be read: {exc.strerror}") from exc
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not UTF-8") from None
        if not text:
            raise ValueError(f"{path} is empty")
    return f"{value['scheme']} {text}" if "scheme" in value else text, source


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return kinds.get(type(value), "a list" if isinstance(value, list) else "a table")
