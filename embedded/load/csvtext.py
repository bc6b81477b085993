"""Parse CSV into rows of text, by the options of a load job.

**Invariant:** a row is the list of its values in the file's order; None means NULL.

Values are not checked here: that is the judge's task.  A malformed row is reported, and parsing
continues with the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.load.scalars import Flaw
from embedded.model.errors import invalid, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from embedded.model.wire import Json

    Values = list[str | None]

DELIMITERS = (",", "|", "\t")  # the delimiters that schema detection can find
NAMED = {"\\t": "\t", "tab": "\t", "": ","}
BOM = b"\xef\xbb\xbf"
MAX_ROW_BYTES = 100 * 2**20  # "CSV row size", quotas of load jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The CSV options of a load job.

    Args:
        delimiter: fieldDelimiter; "" if the job has none.
        quote: the quotation mark; "" for none.
        null: nullMarker.
        skip: skipLeadingRows; None if the job has none.
        newlines: allowQuotedNewlines.
        jagged: allowJaggedRows.
        extra: ignoreUnknownValues: values beyond the last column are dropped.
    """

    delimiter: str
    quote: str
    null: str
    skip: int | None
    newlines: bool
    jagged: bool
    extra: bool

    def rows(self, lines: Iterable[bytes]) -> Iterator[tuple[int, Values | Flaw]]:
        """Yield for each row its position in the file, and its values or why it is malformed."""
        for position, text in self._records(lines):
            try:
                values = self._split(text)
            except Flaw as flaw:
                yield position, flaw
            else:
                yield position, values

    def _records(self, lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
        """Yield rows as text: one line, or several if a quoted value has line ends."""
        position = start = 0
        held: list[str] = []
        is_open = False
        size = 0
        for number, line in enumerate(lines):
            text = (line.removeprefix(BOM) if not number else line).decode("utf-8", "replace")
            if not held:
                start = position
            position += len(line)
            size += len(line)
            held.append(text)
            if self.quote and text.count(self.quote) % 2:
                is_open = not is_open
            if is_open and self.newlines and size <= MAX_ROW_BYTES:
                continue
            record = "".join(held).rstrip("\r\n")
            held, is_open, size = [], False, 0
            if record:
                yield start, record
        if held:
            yield start, "".join(held)

    def _split(self, text: str) -> Values:
        delimiter, quote = self.delimiter or ",", self.quote
        values: Values = []
        place = 0
        while True:
            if quote and text.startswith(quote, place):
                value, place = self._quoted(text, place + 1)
                if place < len(text) and not text.startswith(delimiter, place):
                    raise Flaw(f"Data between close quote character ({quote}) and field separator.")
                values.append(value)
            else:
                end = text.find(delimiter, place)
                end = len(text) if end < 0 else end
                bare = text[place:end]
                values.append(None if bare == self.null else bare)
                place = end
            if place >= len(text):
                return values
            place += len(delimiter)

    def _quoted(self, text: str, place: int) -> tuple[str, int]:
        """Return a quoted value and the position after it; a doubled mark in it means one mark."""
        parts: list[str] = []
        while True:
            end = text.find(self.quote, place)
            if end < 0:
                raise Flaw(f"Missing close quote character ({self.quote}).")
            parts.append(text[place:end])
            if not text.startswith(self.quote, end + 1):
                return "".join(parts), end + 1
            parts.append(self.quote)
            place = end + 2


def dialect(load: Json) -> Dialect:
    """Return the CSV options of a load job.

    Raises:
        ApiError: an option is not valid.
    """
    given = str(load.get("fieldDelimiter") or "")
    delimiter = NAMED.get(given, given)
    quote = load.get("quote")
    quote = '"' if quote is None else str(quote)
    if len(delimiter) > 1:
        raise unsupported(f"A field delimiter of {len(delimiter)} characters")
    if len(quote) > 1 or quote == delimiter:
        raise invalid(f"Invalid value for quote: {quote!r}")
    skip = load.get("skipLeadingRows")
    return Dialect(
        delimiter=delimiter if given else "",
        quote=quote,
        null=str(load.get("nullMarker") or ""),
        skip=None if skip is None else int(skip),
        newlines=bool(load.get("allowQuotedNewlines")),
        jagged=bool(load.get("allowJaggedRows")),
        extra=bool(load.get("ignoreUnknownValues")),
    )
