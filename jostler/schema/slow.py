"""The exact judge: would BigQuery load this object as a row, and if not, what is wrong with it?

**Invariant:** its answer is authoritative; the fast judge accepts nothing that this one refuses.
The answer is the first flaw in the order of the document; missing fields of an object come last.

Pure; no input makes it raise.  Time is proportional to the length of the document, and so is
memory; for a large document it is little more than the text (see `stream`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.schema.document import parse
from jostler.schema.fields import Mode
from jostler.schema.flaw import Flaw, Reason, key_step, shown
from jostler.schema.scalars import flaw, rule, unclean
from jostler.schema.stream import ARRAYS, OBJECTS, SMALL_BYTES, is_large, streamed

if TYPE_CHECKING:
    from jostler.schema.document import Object
    from jostler.schema.fields import Fields
    from jostler.schema.scalars import Rule
    from jostler.schema.stream import Members, Part

UNKNOWN_MAX = 10_000
"""How many unknown nulls one object may have; each key is kept in memory to detect duplicates."""


class SlowJudge:
    """Judges documents against the columns of one RECORD or table."""

    def __init__(self, fields: Fields) -> None:
        self._record = _Record(fields)

    def flaw(self, document: bytes) -> Flaw | None:
        """Return the first flaw; None if a load job would accept the row."""
        if len(document) > SMALL_BYTES and is_large(document):
            return streamed(document, self._record.flaw)
        value = parse(document)
        return value if isinstance(value, Flaw) else self._record.flaw(value)


class _Record:
    """The rules for the fields of one RECORD, by their lower-case names."""

    __slots__ = ("_columns", "_required")

    def __init__(self, fields: Fields) -> None:
        self._columns: dict[str, tuple[str, Mode, Rule]] = {
            field.key: (
                field.name,
                field.mode,
                _Record(field.fields).rule if field.type == "RECORD" else rule(field),
            )
            for field in fields
        }
        self._required = {f.key: f.name for f in fields if f.mode is Mode.REQUIRED}

    def rule(self, value: Part) -> Flaw | None:
        if not isinstance(value, OBJECTS):
            return flaw(Reason.WRONG_TYPE, "RECORD", value)
        return self.flaw(value)

    def flaw(self, record: Object | Members) -> Flaw | None:
        seen: dict[str, str] = {}
        for key, value in record:
            # ASCII only: str.lower() would turn a Kelvin sign into a k.
            name = key.lower() if key.isascii() else key
            column = self._columns.get(name)
            if column is None and (found := self._unknown(key, value, len(seen))):
                return found
            if name in seen:
                return _twice(seen[name], key)
            seen[name] = key
            if column is not None and (found := _cell(column, value)):
                return found.inside(key)
        for name, spelled in self._required.items():
            if name not in seen:
                detail = "expected a value of this REQUIRED field, found none"
                return Flaw(reason=Reason.MISSING_REQUIRED, field=spelled, detail=detail)
        return None

    def _unknown(self, key: str, value: Part, before: int) -> Flaw | None:
        """Check a member that is not in the table; null is accepted, see `nulls`."""
        if value is not None:
            detail = "the table has no such field"
            return Flaw(reason=Reason.UNKNOWN_FIELD, field=key_step(key), detail=detail)
        if before >= len(self._columns) + UNKNOWN_MAX:
            detail = f"more than {UNKNOWN_MAX} members of this object are not in the table"
            return Flaw(reason=Reason.TOO_COMPLEX, field=key_step(key), detail=detail)
        found = unclean(key)
        return found and found.inside(key_step(key))


def _cell(column: tuple[str, Mode, Rule], value: Part) -> Flaw | None:
    _, mode, judge = column
    if value is None:
        # BigQuery loads null for an array as an empty array ([JL]; bigquery-schema-generator#92 saw
        # `bq load` do it), and Go writes null for an empty slice.  One report says otherwise [?].
        if mode is Mode.REQUIRED:
            return flaw(Reason.NULL_REQUIRED, "a value of this REQUIRED field", value)
        return None
    if mode is not Mode.REPEATED:
        return judge(value)
    if not isinstance(value, ARRAYS):
        return flaw(Reason.WRONG_TYPE, "an array for this REPEATED field", value)
    for index, element in enumerate(value):
        if element is None:
            found: Flaw | None = flaw(Reason.NULL_ELEMENT, "elements that are not null", element)
        else:
            found = judge(element)
        if found:
            return found.inside(f"[{index}]")
    return None


def _twice(first: str, second: str) -> Flaw:
    how = "" if first == second else f", first as {shown(first)}: BigQuery ignores case"
    return Flaw(
        reason=Reason.DUPLICATE_KEY, field=key_step(second), detail=f"the key stands twice{how}"
    )
