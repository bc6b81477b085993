"""Parse the options of commands: `limit=10`, `from:20260102`, `duration=1w`, `span=1h`.

**Invariant:** an option stands at most once; `begin < until` of a range.

Pure: "now" is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from loader.query.errors import Code, QueryError
from loader.query.logs.spans import bucket_span, point, span
from loader.query.logs.syntax import Range
from loader.query.logs.tokens import Kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from loader.query.logs.reader import Reader
    from loader.query.logs.spans import Span
    from loader.query.logs.tokens import Token

T = TypeVar("T")
_MAX_ROWS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Option:
    """An option with its value, which is its words as they stand in the text."""

    name: str
    value: Token
    start: int
    minus: bool = False

    def wrong(self, message: str) -> QueryError:
        """Return the error that the value is none."""
        start = self.value.start - self.minus
        return QueryError(Code.ARGUMENT, f"{self.name}: {message}", start, self.value.end)

    def count(self) -> int:
        """Return a number of rows.

        Raises:
            QueryError: it is negative, or no whole number.
        """
        return row_count(self.value, minus=self.minus, what=self.name)

    def parsed(self, parse: Callable[[str], T]) -> T:
        """Return the value as `parse` reads it.

        Raises:
            QueryError: `parse` raises a ValueError, whose text is the message.
        """
        try:
            if self.minus:
                raise ValueError("expected a value without a minus")  # noqa: TRY301
            return parse(self.value.text)
        except ValueError as exc:
            raise self.wrong(str(exc)) from exc


def row_count(token: Token, *, minus: bool, what: str) -> int:
    """Read a number of rows.

    Raises:
        QueryError: it is negative, or no whole number.
    """
    start = token.start - minus
    if minus or token.kind is not Kind.NUMBER or not token.text.isdecimal():
        found = f"-{token.text}" if minus else token.text
        message = f"{what}: expected a whole number, 0 or more, found {found!r}"
        raise QueryError(Code.ARGUMENT, message, start, token.end)
    number = int(token.text) if len(token.text) < 20 else _MAX_ROWS + 1  # noqa: PLR2004
    if number > _MAX_ROWS:
        message = f"{what}: expected at most {_MAX_ROWS}"
        raise QueryError(Code.ARGUMENT, message, start, token.end)
    return number


def is_option(reader: Reader) -> bool:
    """Say whether `name=` or `name:` is next."""
    token, after = reader.token, reader.following()
    return (
        token.kind is Kind.WORD
        and not token.quoted
        and after.kind is Kind.SIGN
        and after.text in {"=", ":"}
    )


def options(reader: Reader, *known: str) -> dict[str, Option]:
    """Read the options that are next.

    Raises:
        QueryError: one is not known, or stands twice.
    """
    found: dict[str, Option] = {}
    while is_option(reader):
        name = reader.token.text.lower()
        if name not in known:
            raise reader.wrong(
                Code.ARGUMENT, f"no option {name!r} here; there are: {', '.join(known)}"
            )
        if name in found:
            raise reader.wrong(Code.ARGUMENT, f"the option {name!r} stands twice")
        start = reader.advance().start
        reader.advance()
        minus = reader.take_sign("-")
        if reader.token.kind not in {Kind.NUMBER, Kind.SPAN, Kind.WORD}:
            raise reader.expected(f"the value of {name}")
        found[name] = Option(name, reader.advance(), start, minus)
    return found


RANGE = ("from", "to", "duration", "offset", "limit")


def time_range(reader: Reader, now: datetime) -> Range:
    """Read the options of `table`.

    Raises:
        QueryError: one is wrong, or they contradict each other.
    """
    start = reader.token.start
    given = options(reader, *RANGE)
    begin = given["from"].parsed(point) if "from" in given else None
    until = given["to"].parsed(point) if "to" in given else None
    if "duration" in given:
        begin, until = _from_duration(given["duration"], begin, until, now)
    if begin is not None and until is not None and begin >= until:
        last = given.get("to") or given["from"]
        raise last.wrong("expected a time range that ends after it begins")
    return Range(
        start,
        max(reader.end, start),
        begin,
        until,
        given["offset"].count() if "offset" in given else 0,
        given["limit"].count() if "limit" in given else None,
    )


def _from_duration(
    option: Option, begin: datetime | None, until: datetime | None, now: datetime
) -> tuple[datetime, datetime]:
    length = option.parsed(span)
    if begin is not None and until is not None:
        raise option.wrong("expected at most two of from, to and duration")
    try:
        if begin is not None:
            return begin, length.after(begin)
        last = until or now
        return length.after(last, -1), last
    except OverflowError as exc:
        raise option.wrong("expected a time range within the years 1 to 9999") from exc


def chart_span(given: dict[str, Option], default: Span) -> Span:
    """Return the span of a chart's buckets.

    Raises:
        QueryError: it is none.
    """
    return given["span"].parsed(bucket_span) if "span" in given else default
