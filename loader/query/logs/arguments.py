"""The arguments of one call, each with what is expected of it.

**Invariant:** each method returns the SQL of an argument in the type that its name says, or raises
an error at the argument's place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from loader.query.errors import Code, QueryError
from loader.query.logs import values
from loader.query.logs.spans import LONG, SHORT, Unit, timestamp_literal, written_time
from loader.query.logs.syntax import Literal
from loader.query.logs.values import BOOL, FLOAT64, INT64, STRING, TIMESTAMP, Type, Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from loader.query.logs.syntax import Call

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call.

    Attributes:
        call: as it stands in the text.
        values: of the arguments, compiled.
        now: when the question is asked; UTC.
    """

    call: Call
    values: tuple[Value, ...]
    now: datetime

    def __len__(self) -> int:
        return len(self.values)

    def wrong(self, place: int, expected: str) -> QueryError:
        """Return the error that an argument has another type."""
        arg, found = self.call.args[place], self.values[place].type.shown
        what = f"{self.call.name}: expected {expected}, found a {found}"
        return QueryError(Code.TYPE, what, arg.start, arg.end)

    def refused(self, place: int, message: str) -> QueryError:
        """Return the error that the value of an argument is wrong."""
        arg = self.call.args[place]
        return QueryError(Code.ARGUMENT, f"{self.call.name}: {message}", arg.start, arg.end)

    def text(self, place: int) -> str:
        """Return a text."""
        return self._as(place, STRING, "a text (string(x) makes one)")

    def boolean(self, place: int) -> str:
        """Return a condition."""
        return self._as(place, BOOL, "a condition")

    def whole(self, place: int) -> str:
        """Return a whole number."""
        return self._as(place, INT64, "a whole number (int(x) makes one)")

    def _as(self, place: int, wanted: Type, what: str) -> str:
        value = self.values[place]
        if value.type != wanted and not value.type.is_null:
            raise self.wrong(place, what)
        return values.converted(value, wanted)

    def number(self, place: int) -> Value:
        """Return a number: INT64, or FLOAT64 of every other type."""
        value = self.values[place]
        if value.type.is_null:
            return Value(values.typed_null(FLOAT64), FLOAT64)
        if not value.type.is_number:
            raise self.wrong(place, "a number (int(x) or double(x) makes one)")
        if value.type.is_one("INT64", "FLOAT64"):
            return value
        return Value(f"CAST({value.sql} AS FLOAT64)", FLOAT64)

    def instant(self, place: int) -> str:
        """Return a TIMESTAMP; a text that is written out may be one."""
        value = self.values[place]
        if value.type.is_null:
            return values.typed_null(TIMESTAMP)
        if value.type.is_time:
            return values.timestamp(value)
        arg = self.call.args[place]
        written = arg.value if isinstance(arg, Literal) else None
        instant = written_time(written) if isinstance(written, str) else None
        if instant is None:
            raise self.wrong(place, "a time (date(x) makes one)")
        return timestamp_literal(instant)

    def items(self, place: int) -> Value:
        """Return a list."""
        value = self.values[place]
        if not value.type.repeated:
            raise self.wrong(place, "a list")
        return value

    def written_text(self, place: int) -> str:
        """Return the value of a text that is written out."""
        arg = self.call.args[place]
        if isinstance(arg, Literal) and isinstance(arg.value, str):
            return arg.value
        raise self.refused(place, "expected a text in double quotes here")

    def written_number(self, place: int, least: int, most: int) -> int:
        """Return the value of a whole number that is written out."""
        arg = self.call.args[place]
        number = arg.value if isinstance(arg, Literal) else None
        if isinstance(number, int) and not isinstance(number, bool) and least <= number <= most:
            return number
        raise self.refused(place, f"expected a number from {least} to {most} here")

    def parsed(self, place: int, parse: Callable[[str], T]) -> T:
        """Return what `parse` makes of a text that is written out."""
        try:
            return parse(self.written_text(place))
        except ValueError as exc:
            raise self.refused(place, str(exc)) from exc

    def unit(self, place: int) -> Unit:
        """Return a unit of time: `"day"`, `"d"`, `"days"`."""
        return self.parsed(place, _unit)


def _unit(text: str) -> Unit:
    key = text.lower()
    found = SHORT.get(key) or LONG.get(key) or LONG.get(key.removesuffix("s"))
    if found is None:
        raise ValueError(f"expected one of {', '.join(LONG)}")
    return found
