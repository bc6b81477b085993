"""The rows of a timechart as a chart: one row for each bucket, one column for each key.

**Invariant:** a chart is held whole, and has at most `MOST_CELLS` values and `MOST_COLUMNS`
columns; a larger one is refused before it is shown.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from loader.errors import RunError

if TYPE_CHECKING:
    from pathlib import Path

    from loader.query.answer import Answer
    from loader.query.question import Pivot

MOST_COLUMNS = 1000
MOST_CELLS = 1_000_000
BAR_WIDTH = 40
_EIGHTHS = " ▏▎▍▌▋▊▉"
PLOT_SUFFIXES = (".svg", ".png")


def charted(answer: Answer) -> Answer:
    """Return the answer to a timechart with its keys as columns; any other as it is.

    Raises:
        RunError: the chart is too large.
    """
    pivot = answer.pivot
    if pivot is None or not pivot.key:
        return answer
    found = answer.table()
    return answer.again(_wide(found, pivot))


def _wide(found: pa.Table, pivot: Pivot) -> pa.Table:
    """Lay out rows (bucket, key, values …) as rows (bucket, a column for each key and value)."""
    keys = sorted(set(map(key_name, found[pivot.key].to_pylist())))
    if len(keys) * len(pivot.values) > MOST_COLUMNS:
        raise RunError(
            f"the chart would have {len(keys) * len(pivot.values):,} columns, more than"
            f" {MOST_COLUMNS:,}",
            hint="leave out keys with search, or use stats",
        )
    buckets: dict[Any, dict[tuple[str, str], Any]] = {}
    columns = [found[name].to_pylist() for name in (pivot.bucket, pivot.key, *pivot.values)]
    for bucket, key, *values in zip(*columns, strict=True):
        row = buckets.setdefault(bucket, {})
        for name, value in zip(pivot.values, values, strict=True):
            row[key_name(key), name] = value
    cells = len(buckets) * len(keys) * len(pivot.values)
    if cells > MOST_CELLS:
        raise RunError(f"the chart would have {cells:,} values, more than {MOST_CELLS:,}")
    arrays = [pa.array(buckets, found.schema.field(pivot.bucket).type)]
    names = [pivot.bucket]
    for name in pivot.values:
        kind = found.schema.field(name).type
        for key in keys:
            arrays.append(pa.array([row.get((key, name)) for row in buckets.values()], kind))
            names.append(key if len(pivot.values) == 1 else f"{name}:{key}")
    return pa.Table.from_arrays(arrays, names=names)


def key_name(key: object) -> str:
    """Return the name of the column of a key."""
    return "null" if key is None else str(key)


def series(table: pa.Table) -> tuple[str, list[str]]:
    """Return the column of a table that a chart goes along, and those that it shows.

    Raises:
        RunError: there is none of one of them.
    """
    times = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    numbers = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type)
        or pa.types.is_floating(field.type)
        or pa.types.is_decimal(field.type)
    ]
    if not times or not numbers:
        raise RunError("a chart needs a column of times and one of numbers: ask with timechart")
    return times[0], numbers


def bars(table: pa.Table) -> str:
    """Draw a bar for each value, for a terminal.

    Raises:
        RunError: the table is no chart.
    """
    along, shown = series(table)
    labels = [str(value).replace("+00:00", "") for value in table[along].to_pylist()]
    wide = max(map(len, labels), default=0)
    lines = []
    for name in shown:
        values = [float(v) if v is not None else None for v in table[name].to_pylist()]
        most = max((v for v in values if v is not None), default=0.0)
        lines.append(f"{name}:")
        for label, value in zip(labels, values, strict=True):
            drawn = _bar(value / most) if value and most > 0 else ""
            text = "" if value is None else f"{value:,.6g}"
            lines.append(f"  {label.ljust(wide)}  {drawn} {text}".rstrip())
    return "".join(f"{line}\n" for line in lines)


def _bar(part: float) -> str:
    eighths = max(0, round(part * BAR_WIDTH * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def plot(table: pa.Table, path: Path) -> None:
    """Draw a line for each column of numbers, into an SVG or PNG file.

    Raises:
        RunError: the table is no chart, the library is not installed, or the file cannot be made.
    """
    along, shown = series(table)
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - of the extra `plot`, and slow to import
        from matplotlib.figure import Figure  # noqa: PLC0415 - as above
    except ImportError as exc:
        raise RunError("matplotlib is not installed", hint="pip install 'jostler[plot]'") from exc
    # Without salt and date, equal charts are equal files.
    with rc_context({"svg.hashsalt": "jostler"}):
        figure = Figure(figsize=(10, 5), layout="constrained")
        axes = figure.subplots()
        for name in shown:
            values = [math.nan if v is None else float(v) for v in table[name].to_pylist()]
            axes.plot(table[along].to_pylist(), values, marker=".", label=name)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
        figure.autofmt_xdate()
        try:
            is_svg = path.suffix == ".svg"
            figure.savefig(path, format=path.suffix[1:], metadata={"Date": None} if is_svg else {})
        except OSError as exc:
            raise RunError(f"--plot {path}: {exc.strerror}") from exc
