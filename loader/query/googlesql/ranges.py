"""Which days, times and words the conditions of WHERE leave.

**Invariant:** a row outside a range fails the condition; what is not understood leaves all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import QueryError
from loader.query.googlesql.conversions import coerced
from loader.query.googlesql.needs import needs_of, together
from loader.query.googlesql.reads import Range
from loader.query.googlesql.types import DATE, TIMESTAMP
from loader.query.question import TIME

if TYPE_CHECKING:
    from loader.query.googlesql.needs import Needs
    from loader.query.googlesql.places import Place
    from loader.query.googlesql.values import Value

Moment = date | datetime
Key = tuple[int, str]  # which reading, and `date` or `_time`
Span = tuple[Moment | None, Moment | None]  # from, up to and not including
Spans = dict[Key, Span]
COLUMNS = {"date": DATE, TIME: TIMESTAMP}
MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


@dataclass(slots=True)
class Ranges:
    """What the conditions of a question leave of each reading.

    Attributes:
        spans: of the columns that a condition names.
        needs: the words that SEARCH looks for.
    """

    spans: Spans = field(default_factory=dict)
    needs: Needs = field(default_factory=dict)

    def of(self, read: int, begin: datetime | None, end: datetime | None) -> Range:
        """Return the range of a reading, within the times that the question itself has."""
        first, end_day = self.spans.get((read, "date"), (None, None))
        spans = self.spans.get((read, TIME), (None, None))
        low, high = _both(spans, (begin, end))
        assert not isinstance(first, datetime)
        assert not isinstance(end_day, datetime)
        return Range(
            first_day=first,
            end_day=end_day,
            begin=low if isinstance(low, datetime) else None,
            end=high if isinstance(high, datetime) else None,
            need=self.needs.get(read),
        )


def narrow(ranges: Ranges, place: Place, condition: exp.Expr) -> None:
    """Note what a condition of WHERE leaves."""
    for key, span in _spans(place, condition).items():
        ranges.spans[key] = _both(ranges.spans.get(key, (None, None)), span)
    ranges.needs = together(ranges.needs, needs_of(place, condition))


def _both(one: Span, other: Span) -> Span:
    """Return what is in both spans."""
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    return (max(lows) if lows else None), (min(highs) if highs else None)


def _either(one: Span, other: Span) -> Span:
    """Return a span that has both."""
    low = None if None in {one[0], other[0]} else min(one[0], other[0])  # type: ignore[type-var]
    high = None if None in {one[1], other[1]} else max(one[1], other[1])  # type: ignore[type-var]
    return low, high


def _spans(place: Place, node: exp.Expr) -> Spans:  # noqa: PLR0911 - one for each form
    if isinstance(node, exp.Paren):
        return _spans(place, node.this)
    if isinstance(node, exp.And):
        found, other = _spans(place, node.this), _spans(place, node.expression)
        for key, span in other.items():
            found[key] = _both(found.get(key, (None, None)), span)
        return found
    if isinstance(node, exp.Or):
        found, other = _spans(place, node.this), _spans(place, node.expression)
        return {key: _either(found[key], other[key]) for key in found.keys() & other.keys()}
    if isinstance(node, exp.Between):
        low = _compared(place, exp.GTE, node.this, node.args["low"])
        high = _compared(place, exp.LTE, node.this, node.args["high"])
        return {key: _both(span, high.get(key, (None, None))) for key, span in low.items()}
    if isinstance(node, exp.In) and node.expressions:
        each = [_compared(place, exp.EQ, node.this, item) for item in node.expressions]
        found = each[0]
        for other in each[1:]:
            found = {key: _either(found[key], other[key]) for key in found.keys() & other.keys()}
        return found
    if type(node) in MIRRORED:
        straight = _compared(place, type(node), node.this, node.expression)
        return straight or _compared(place, MIRRORED[type(node)], node.expression, node.this)
    return {}


def _compared(place: Place, operator: type[exp.Expr], column: exp.Expr, bound: exp.Expr) -> Spans:
    try:
        value, limit = place.raw(column), place.raw(bound)
    except QueryError:
        return {}
    origin = value.origin
    if origin is None or not origin.whole or len(origin.path) != 1:
        return {}
    name = origin.path[0]
    found = coerced(limit, COLUMNS[name]) if name in COLUMNS else None
    moment = _moment(found) if found is not None and limit.constant is not None else None
    if moment is None or value.type != COLUMNS[name]:
        return {}
    step = timedelta(microseconds=1) if isinstance(moment, datetime) else timedelta(days=1)
    try:
        after = moment + step
    except OverflowError:
        return {}
    spans: dict[type[exp.Expr], Span] = {
        exp.EQ: (moment, after),
        exp.LT: (None, moment),
        exp.LTE: (None, after),
        exp.GT: (after, None),
        exp.GTE: (moment, None),
    }
    return {(origin.read, name): spans[operator]}


def _moment(value: Value) -> Moment | None:
    constant = value.constant.value if value.constant is not None else None
    return constant if isinstance(constant, date) else None
