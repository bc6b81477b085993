"""`table` and `fulltext`: the rows that a pipeline begins with.

**Invariant:** a range of times is a condition on `_time` and, a day wider, on `date`, so that no
engine reads other days.

Pure.
"""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import TYPE_CHECKING

from loader.query.errors import Code, QueryError
from loader.query.logs.rows import Rows
from loader.query.logs.scope import Column, Scope
from loader.query.logs.spans import timestamp_literal
from loader.query.logs.syntax import Call, Literal
from loader.query.logs.values import Type, Value, literal, name, text, timestamp, type_of
from loader.query.question import NODE, TIME
from loader.query.text.words import PATTERN
from loader.query.text.words import words as in_lower_case

if TYPE_CHECKING:
    from datetime import datetime

    from jostler.schema.fields import Fields
    from loader.query.logs.syntax import Expression, Range, TableName
    from loader.query.question import Shapes

ALIAS = "t"
FIRST_DAY = date(2000, 1, 1)
"""No folder of the archive is of an earlier day (docs/format.md)."""
NODE_PATH = "archiver.node"
_OPTIONS = {"patterns": [PATTERN], "token_filters": [{"normalizer": {"mode": "LOWER"}}]}
_ANALYZER = (
    "analyzer => 'PATTERN_ANALYZER', analyzer_options => "
    f"'{json.dumps(_OPTIONS).replace(chr(92), chr(92) * 2)}'"  # a backslash in a literal is two
)


def table_rows(part: TableName, span: Range, shapes: Shapes) -> Rows | None:
    """Return the rows of a table in a range of times; None if it is missing and may be.

    Raises:
        QueryError: there is no such table, or it has no time.
    """
    columns = shapes.columns(part.name)
    if columns is None:
        if part.may_be_missing:
            return None
        raise unknown_table(part.name, part.start, part.end, shapes)
    scope = _scope(columns)
    where = _days(scope, span) + _times(scope, span, part)
    source = f"{quoted(part.name)} AS {ALIAS}"
    return Rows(source=source, scope=scope, where=where, begin=span.begin, until=span.until)


def unknown_table(text_: str, start: int, end: int, shapes: Shapes) -> QueryError:
    """Return the error that there is no such table."""
    known = shapes.names()
    some = ", ".join(known[:20]) + (" …" if len(known) > 20 else "")  # noqa: PLR2004
    what = f"no table {text_[:100]!r}; there are: {some or 'none'}"
    return QueryError(Code.UNKNOWN_TABLE, what, start, end)


def quoted(table: str) -> str:
    """Return the SQL of a table's name: `ndt`.`ndt7`."""
    return ".".join(name(part) for part in table.split("."))


def _scope(columns: Fields) -> Scope:
    """Return the columns of a table, its time first; its node is a field of `archiver`."""
    found = [
        Column(field.name, Value(f"{ALIAS}.{name(field.name)}", type_of(field)))
        for field in columns
    ]
    plain = [column for column in found if column.key not in {TIME, NODE}]
    time = [column for column in found if column.key == TIME] or _own_time(found)
    node = [
        Column(column.name, column.value, NODE_PATH, hidden=True)
        for column in found
        if column.key == NODE
    ]
    return Scope((*time, *plain, *node))


def _own_time(columns: list[Column]) -> list[Column]:
    """Return the time of rows of index1 and rejected1, which have it in themselves."""
    raw = next((column.value for column in columns if column.key == "raw"), None)
    if raw is None:
        return []
    names = {field.name for field in raw.type.fields if field.type == "TIMESTAMP"}
    added = f"{raw.sql}.{name('TimeAdded')}"
    if names >= {"Start", "TimeAdded"}:
        added = f"IFNULL({raw.sql}.{name('Start')}, {added})"
    return [Column(TIME, Value(added, Type("TIMESTAMP")))] if "TimeAdded" in names else []


def _days(scope: Scope, span: Range) -> tuple[str, ...]:
    """Return the conditions on `date`, which BigQuery's tables insist on."""
    column = scope.find("date")
    if column is None or not column.value.type.is_one("DATE"):
        return ()
    first = FIRST_DAY
    if span.begin is not None and span.begin.date() > FIRST_DAY:
        first = span.begin.date() - timedelta(days=1)
    found = [f"{column.value.sql} >= DATE '{first.isoformat()}'"]
    if span.until is not None and span.until.year < date.max.year:
        last = span.until.date() + timedelta(days=1)
        found.append(f"{column.value.sql} <= DATE '{last.isoformat()}'")
    return tuple(found)


def _times(scope: Scope, span: Range, part: TableName) -> tuple[str, ...]:
    if span.begin is None and span.until is None:
        return ()
    column = scope.find(TIME)
    if column is None:
        what = f"the table {part.name} has no {TIME}: leave out from, to and duration"
        raise QueryError(Code.UNKNOWN_FIELD, what, part.start, part.end)
    instant = timestamp(column.value)
    conditions = (
        f"{instant} {sign} {timestamp_literal(limit)}"
        for sign, limit in ((">=", span.begin), ("<", span.until))
        if limit is not None
    )
    return tuple(conditions)


def range_of(rows: list[Rows]) -> tuple[datetime | None, datetime | None]:
    """Return the times that some rows lie in together."""
    begins = [each.begin for each in rows]
    untils = [each.until for each in rows]
    begin = min((each for each in begins if each is not None), default=None)
    until = max((each for each in untils if each is not None), default=None)
    return (None if None in begins else begin, None if None in untils else until)


def searched(query: Expression, scope: Scope) -> str:
    """Return the condition that a row has the words of a `fulltext`.

    Raises:
        QueryError: the query has other parts than texts, `and`, `or` and `not`.
    """
    if isinstance(query, Literal) and isinstance(query.value, str):
        return _has_words(query, query.value, scope)
    if not isinstance(query, Call) or query.name not in {"and", "or", "not"}:
        what = 'expected texts with and, or and not between, as "a" and not "b"'
        raise QueryError(Code.SYNTAX, what, query.start, query.end)
    parts = [searched(arg, scope) for arg in query.args]
    if query.name == "not":
        return f"(NOT {parts[0]})"
    return f"({f' {query.name.upper()} '.join(parts)})"


def _has_words(part: Literal, words: str, scope: Scope) -> str:
    tokens = in_lower_case(words)
    if not tokens:
        what = "expected a text with a letter or a digit"
        raise QueryError(Code.ARGUMENT, what, part.start, part.end)
    raw = scope.find("raw")
    if raw is None:
        what = "the table has no raw, whose text could be searched"
        raise QueryError(Code.NOT_SUPPORTED, what, part.start, part.end)
    numbers = _numbers(raw.value)
    found = [_has_word(token, raw.value.sql, numbers) for token in tokens]
    return found[0] if len(found) == 1 else f"({' AND '.join(found)})"


def _has_word(token: str, raw: str, numbers: list[str]) -> str:
    """Say whether a row has a token; SEARCH looks in no numbers, so their texts are listed."""
    search = f"SEARCH({raw}, {literal(token)}, {_ANALYZER})"
    if not token[0].isdigit() or not numbers:
        return search
    listed = f"[{', '.join(numbers)}]"
    return f"({search} OR SEARCH({listed}, {literal(token)}, {_ANALYZER}))"


def _numbers(value: Value) -> list[str]:
    """Return the texts of all numbers in a record, those in lists left out."""
    found: list[str] = []
    for field in value.type.fields:
        inner = Value(f"{value.sql}.{name(field.name)}", type_of(field))
        if inner.type.is_one("RECORD"):
            found += _numbers(inner)
        elif inner.type.is_number:
            found.append(text(inner))
    return found
