"""The exact judge: would BigQuery load this object as a row, and if not, what is wrong with it?

**Invariant:** its word is final; the fast judge accepts nothing that this one refuses.  The answer
is the first flaw in the order of the document; what is missing from an object comes last.

Pure; no input makes it raise or take more than time proportional to its length.
"""

from __future__ import annotations

from jostler.schema.document import Object, Value, parse
from jostler.schema.fields import Fields, Mode
from jostler.schema.flaw import Flaw, Reason, key_step, shown
from jostler.schema.scalars import Rule, flaw, rule


class SlowJudge:
    """Judges documents against the columns of one RECORD or table."""

    def __init__(self, fields: Fields) -> None:
        self._record = _Record(fields)

    def flaw(self, document: bytes) -> Flaw | None:
        """Name the first flaw; None means that a load job would take the row."""
        value = parse(document)
        return value if isinstance(value, Flaw) else self._record.flaw(value)


class _Record:
    """What a RECORD may hold, by the lower-case names of its fields."""

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

    def rule(self, value: Value) -> Flaw | None:
        if not isinstance(value, tuple):
            return flaw(Reason.WRONG_TYPE, "RECORD", value)
        return self.flaw(value)

    def flaw(self, record: Object) -> Flaw | None:
        seen: dict[str, str] = {}
        for key, value in record:
            # ASCII only: str.lower() would take a Kelvin sign for a k.
            name = key.lower() if key.isascii() else key
            column = self._columns.get(name)
            if column is None and value is not None:
                return _unknown(key)
            if name in seen:
                return _twice(seen[name], key)
            seen[name] = key
            if column is None:
                continue  # null says nothing: see `nulls`
            if found := _cell(column, value):
                return found.inside(key)
        for name, spelled in self._required.items():
            if name not in seen:
                detail = "expected a value of this REQUIRED field, found none"
                return Flaw(reason=Reason.MISSING_REQUIRED, field=spelled, detail=detail)
        return None


def _cell(column: tuple[str, Mode, Rule], value: Value) -> Flaw | None:
    _, mode, judge = column
    if value is None:
        # Null for an array is loaded as an empty one ([JL], and bigquery-schema-generator#92 saw
        # `bq load` do it), and Go writes null for an empty slice; one report says otherwise [?].
        if mode is Mode.REQUIRED:
            return flaw(Reason.NULL_REQUIRED, "a value of this REQUIRED field", value)
        return None
    if mode is not Mode.REPEATED:
        return judge(value)
    if not isinstance(value, list):
        return flaw(Reason.WRONG_TYPE, "an array for this REPEATED field", value)
    for index, element in enumerate(value):
        if element is None:
            found: Flaw | None = flaw(Reason.NULL_ELEMENT, "elements that are not null", element)
        else:
            found = judge(element)
        if found:
            return found.inside(f"[{index}]")
    return None


def _unknown(key: str) -> Flaw:
    detail = "the table has no such field"
    return Flaw(reason=Reason.UNKNOWN_FIELD, field=key_step(key), detail=detail)


def _twice(first: str, second: str) -> Flaw:
    how = "" if first == second else f", first as {shown(first)}: BigQuery ignores case"
    return Flaw(
        reason=Reason.DUPLICATE_KEY, field=key_step(second), detail=f"the key stands twice{how}"
    )
