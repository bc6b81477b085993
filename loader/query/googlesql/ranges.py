"""Which days, times, nodes and words the conditions of WHERE leave.

**Invariant:** a row outside a range fails the condition; what is not understood leaves all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from loader.query.errors import QueryError
from loader.query.googlesql.conversions import coerced
from loader.query.googlesql.needs import needs_of, together
from loader.query.googlesql.reads import Range
from loader.query.googlesql.types import DATE, STRING, TIMESTAMP
from loader.query.question import NODE, TIME

if TYPE_CHECKING:
    from loader.query.googlesql.needs import Needs
    from loader.query.googlesql.places import Place

Moment = date | datetime
Key = tuple[int, str]  # which reading, and the column
Span = tuple[Moment | None, Moment | None]  # from, up to and not including
Left = Span | frozenset[str]  # of `_node` its values
Spans = dict[Key, Left]
COLUMNS = {"date": DATE, TIME: TIMESTAMP, NODE: STRING}
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
        first, end_day = self._span(read, "date")
        low, high = _narrower(self._span(read, TIME), (begin, end))
        nodes = self.spans.get((read, NODE))
        assert not isinstance(first, datetime)
        assert not isinstance(end_day, datetime)
        return Range(
            first_day=first,
            end_day=end_day,
            begin=low if isinstance(low, datetime) else None,
            end=high if isinstance(high, datetime) else None,
            nodes=nodes if isinstance(nodes, frozenset) else None,
            need=self.needs.get(read),
        )

    def _span(self, read: int, column: str) -> Span:
        found = self.spans.get((read, column))
        return found if isinstance(found, tuple) else (None, None)


def narrow(ranges: Ranges, place: Place, condition: exp.Expr) -> None:
    """Note what a condition of WHERE leaves."""
    ranges.spans = _both(ranges.spans, _spans(place, condition))
    ranges.needs = together(ranges.needs, needs_of(place, condition))


def _both(one: Spans, other: Spans) -> Spans:
    """Return what two conditions leave together."""
    found = one | other
    for key in one.keys() & other.keys():
        left, right = one[key], other[key]
        if isinstance(left, frozenset) and isinstance(right, frozenset):
            found[key] = left & right
        elif isinstance(left, tuple) and isinstance(right, tuple):
            found[key] = _narrower(left, right)
    return found


def _either(one: Spans, other: Spans) -> Spans:
    """Return what one of two conditions leaves; a column that only one names is not limited."""
    found: Spans = {}
    for key in one.keys() & other.keys():
        left, right = one[key], other[key]
        if isinstance(left, frozenset) and isinstance(right, frozenset):
            found[key] = left | right
        elif isinstance(left, tuple) and isinstance(right, tuple):
            found[key] = _wider(left, right)
    return found


def _narrower(one: Span, other: Span) -> Span:
    """Return what is in both spans."""
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    return (max(lows) if lows else None), (min(highs) if highs else None)


def _wider(one: Span, other: Span) -> Span:
    """Return a span that has both."""
    low = None if None in {one[0], other[0]} else min(one[0], other[0])  # type: ignore[type-var]
    high = None if None in {one[1], other[1]} else max(one[1], other[1])  # type: ignore[type-var]
    return low, high


def _spans(place: Place, node: exp.Expr) -> Spans:  # noqa: PLR0911 - one for each form
    if isinstance(node, exp.Paren):
        return _spans(place, node.this)
    if isinstance(node, exp.And):
        return _both(_spans(place, node.this), _spans(place, node.expression))
    if isinstance(node, exp.Or):
        return _either(_spans(place, node.this), _spans(place, node.expression))
    if isinstance(node, exp.Between):
        low = _compared(place, exp.GTE, node.this, node.args["low"])
        high = _compared(place, exp.LTE, node.this, node.args["high"])
        return _both(low, high)
    if isinstance(node, exp.In) and node.expressions:
        each = [_compared(place, exp.EQ, node.this, item) for item in node.expressions]
        return reduce(_either, each)
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
    constant = found.constant if found is not None and limit.constant is not None else None
    if constant is None or value.type != COLUMNS[name]:
        return {}
    if name == NODE:
        equal = operator is exp.EQ and isinstance(constant.value, str)
        return {(origin.read, name): frozenset([str(constant.value)])} if equal else {}
    span = _span(operator, constant.value) if isinstance(constant.value, date) else None
    return {(origin.read, name): span} if span else {}


def _span(operator: type[exp.Expr], moment: Moment) -> Span | None:
    """Return what a comparison with a moment leaves; None if that cannot be said."""
    step = timedelta(microseconds=1) if isinstance(moment, datetime) else timedelta(days=1)
    try:
        after = moment + step
    except OverflowError:
        return None
    spans: dict[type[exp.Expr], Span] = {
        exp.EQ: (moment, after),
        exp.LT: (None, moment),
        exp.LTE: (None, after),
        exp.GT: (after, None),
        exp.GTE: (moment, None),
    }
    return spans[operator]
