"""Charts of the last hours as inline SVG whose text stays sharp at any width.

**Invariant:** a chart has at most `COLUMNS` columns however long the history is.  A column without
known values is a gap, never a zero.

The plot is a stretched inner SVG; all text is outside it, positioned by percentages.  Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import groupby
from typing import TYPE_CHECKING

from jostler import words
from jostler.web.html import Html, join, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COLUMNS = 120
FEWEST_COLUMNS = 30
TOP, BOTTOM, HEIGHT = 8, 118, 140  # pixels: upper and lower edge of the plot, and the whole
_DEPTH = BOTTOM - TOP
_TICKS_S = (300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_MOST_TICKS = 5
_EDGE_PERCENT = 4.0
_NICE = (1, 2, 4, 6, 8, 10)

Values = list[float | None]


class Measure(Enum):
    """What an axis measures: its units, smallest first, with their sizes."""

    FILES = (("files", 1.0), ("million files", 1e6))
    BYTES = (("bytes", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3))
    SECONDS = (("seconds", 1.0), ("minutes", 60.0), ("hours", 3600.0))


class Shape(Enum):
    """How values are drawn, and how several are combined into one column."""

    BARS = "bars"  # a rate: the mean
    AREA = "area"  # a level: the highest
    LINE = "line"  # a duration: the highest


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One quantity over time.

    Args:
        title: the title.
        measure: the unit of the values.
        per: the text after the unit: ` per minute`, or empty.
        shape: how the values are drawn.
        values: one per step, oldest first; None if unknown.
        step_s: seconds from one value to the next.
        end: the end of the last step.
    """

    title: str
    measure: Measure
    per: str
    shape: Shape
    values: Values
    step_s: float
    end: datetime

    def draw(self) -> Html:
        """Make the figure."""
        columns, step_s = _columns(self)
        highest = max((value for value in columns if value is not None), default=0.0)
        unit, unit_size = _unit(self.measure, highest)
        top = _nice(highest / unit_size)
        peak = f"highest {self._value_text(highest)}" if highest else "nothing in this time"
        label = f"{self.title}, {unit}{self.per}: latest {self._value_text(columns[-1])}, {peak}"
        caption = tag(
            "figcaption",
            tag("b", self.title),
            " ",
            tag("span", f"{unit}{self.per}"),
            " ",
            tag("span", peak, class_="peak"),
        )
        plot = tag(
            "svg",
            _grid(),
            self._time_axis(len(columns) * step_s),
            tag(
                "svg",
                *_drawn(self.shape, columns, top * unit_size),
                join(self._hovered(columns, step_s)),
                y=TOP,
                width="100%",
                height=_DEPTH,
                viewBox=f"0 0 {len(columns)} {_DEPTH}",
                preserveAspectRatio="none",
            ),
            class_=f"plot {self.shape.value}",
            height=HEIGHT,
            role="img",
            aria_label=label,
        )
        return tag("figure", caption, tag("div", _axis(top), plot, class_="chart"))

    def _value_text(self, value: float | None) -> str:
        if self.measure is Measure.BYTES:
            return words.size(value)
        return words.duration(value) if self.measure is Measure.SECONDS else words.count(value)

    def _hovered(self, columns: Values, step_s: float) -> Iterator[Html]:
        noun = " files" if self.measure is Measure.FILES else ""
        for index, value in enumerate(columns):
            if value is None:
                continue
            end = self.end - timedelta(seconds=(len(columns) - 1 - index) * step_s)
            start = end - timedelta(seconds=step_s)
            title = f"{start:%H:%M} to {end:%H:%M}: {self._value_text(value)}{noun}{self.per}"
            yield tag("rect", tag("title", title), x=index, width=1, height=_DEPTH)

    def _time_axis(self, span_s: float) -> Html:
        last = self.end.timestamp()
        step_s = next((s for s in _TICKS_S if span_s / s <= _MOST_TICKS), _TICKS_S[-1])
        first = math.ceil((last - span_s) / step_s) * step_s
        marks: list[Html] = []
        for tick in range(int(first), int(last) + 1, step_s):
            percent = 100 * (tick - last + span_s) / span_s
            if _EDGE_PERCENT <= percent <= 100 - _EDGE_PERCENT:
                x = f"{percent:.2f}%"
                clock = f"{datetime.fromtimestamp(tick, UTC):%H:%M}"
                marks.append(tag("line", x1=x, x2=x, y1=BOTTOM, y2=BOTTOM + 4, class_="tick"))
                marks.append(tag("text", clock, x=x, y=HEIGHT - 6))
        return join(marks)


def _columns(chart: Chart) -> tuple[Values, float]:
    """Combine the values into columns from the end; if there are few, put gaps before them."""
    values = chart.values
    width = max(1, math.ceil(len(values) / COLUMNS))
    first = len(values) % width
    parts = [values[:first]] if first else []
    parts += [values[start : start + width] for start in range(first, len(values), width)]
    columns = [_together(chart.shape, part) for part in parts]
    return [None] * (FEWEST_COLUMNS - len(columns)) + columns, chart.step_s * width


def _together(shape: Shape, values: Values) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return sum(known) / len(known) if shape is Shape.BARS else max(known)


def _unit(measure: Measure, highest: float) -> tuple[str, float]:
    units: tuple[tuple[str, float], ...] = measure.value
    return next((unit for unit in reversed(units) if highest >= unit[1]), units[0])


def _nice(highest: float) -> float:
    """Return a round number that is not below `highest`, whose half is round too."""
    if highest <= _NICE[1]:
        return _NICE[1]
    power = 10.0 ** math.floor(math.log10(highest))
    return next((nice * power for nice in _NICE if nice * power >= highest), 10 * power)


def _grid() -> Html:
    lines = ((TOP, "grid"), ((TOP + BOTTOM) / 2, "grid"), (BOTTOM, "base"))
    return join(tag("line", x2="100%", y1=y, y2=y, class_=kind) for y, kind in lines)


def _axis(top: float) -> Html:
    marks = ((TOP, top), ((TOP + BOTTOM) / 2, top / 2), (BOTTOM, 0))
    texts = [tag("text", words.count(value), x="100%", y=y + 4) for y, value in marks]
    return tag("svg", *texts, class_="axis", height=HEIGHT, aria_hidden="true")


def _drawn(shape: Shape, columns: Values, top: float) -> Iterator[Html]:
    heights = [None if value is None else _DEPTH * value / top for value in columns]
    if shape is Shape.BARS:
        bars = [
            f"M{x + 0.1:.1f} {_DEPTH}v{-max(height, 1):.1f}h.8V{_DEPTH}z"
            for x, height in enumerate(heights)
            if height
        ]
        yield tag("path", d="".join(bars), class_="fill") if bars else Html("")
        return
    for run in _runs(heights):
        if len(run) == 1:
            x, height = run[0]
            yield tag("path", d=f"M{x:.1f} {_DEPTH - height:.1f}h.01", class_="line dot")
            continue
        line = "L".join(f"{x:.1f} {_DEPTH - height:.1f}" for x, height in run)
        if shape is Shape.AREA:
            first, last = run[0][0], run[-1][0]
            yield tag("path", d=f"M{first} {_DEPTH}L{line}L{last} {_DEPTH}z", class_="fill")
        yield tag("path", d=f"M{line}", class_="line")


def _runs(heights: Sequence[float | None]) -> Iterator[list[tuple[float, float]]]:
    """Yield the parts of a line between gaps."""
    for known, group in groupby(enumerate(heights), key=lambda item: item[1] is not None):
        if known:
            yield [(x + 0.5, height) for x, height in group if height is not None]
