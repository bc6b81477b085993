"""Write the figures of a run into docs/performance.md, and draw them.

usage: python -m bench.page FIGURES.json

The table and the machine stand between two comments of that page; the drawings are
docs/performance-speed.svg (how many times as fast as the others) and docs/performance-count.svg
(speed and memory against the number of files, of `--curve`).
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "performance.md"
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50
COLOURS = {"ours": "#1f6feb", "ours native": "#1a7f37", "go": "#8b949e", "simple": "#bf8700"}
PARTS = ("read", "decode", "deflate fast", "deflate small", "unlink")
N, SPREAD, START, IDLE = "ours n", "spread", "start", "idle"
GO_MEASURED = {"1 KiB": 16_500.0, "104 B": 5_800.0, "20 KiB": 72.0, "200 KiB": 84.0}
"""The Go agent's files/s (20 KiB and 200 KiB: MB/s) on another day, on a machine of this kind."""
MB_FROM = 10_000
QUIET_LOAD = 1.2
"""Load average from which on the page says so; a bench that has just ended may count as 1."""
GO_NOTE = (
    "¹ Measured in another run, beside an earlier version, on a machine of this kind: the ratio is"
    " only indicative. `--go` measures both in one run."
)
BUSY = (
    " **Other programs kept the machine busy**, so times are several times too long, and vary: only"
    " CPU seconds, memory and bytes can be compared with another run."
)

Row = dict[str, Any]


def speed(row: Row) -> float:
    """Return files a second."""
    return float(row["files"]) / max(float(row["wall_s"]), 1e-9)


def table(rows: list[Row]) -> str:
    """Return the table of programs, in the order of the run."""
    lines = [
        "| files | bucket | program | files/s | MB/s | CPU s | peak MB | bytes stored per file |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["program"] in {*PARTS, N, SPREAD, START, IDLE}:
            continue
        burst = row["program"].endswith("burst")
        rate = f"{row['wall_s']:.1f} s after the last; {row['missed']:,.0f} missed"
        megabytes = row["file_bytes"] / max(row["wall_s"], 1e-9) / 1e6
        stored = row["stored"] / row["files"] if row["files"] else 0
        cells = (
            *(f"{row['files']:,.0f} of {row['kind']}", row["bucket"], row["program"]),
            *((rate, "") if burst else (f"{speed(row):,.0f}", f"{megabytes:,.0f}")),
            f"{row['cpu_s']:.1f}",
            f"{row['rss'] / 1e6:,.0f}" if row["rss"] else "",
            f"{stored:,.0f}" if stored else "",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def beside(rows: list[Row]) -> str:
    """Return the table of the Go agent, ours, and ours with the native module."""
    found = {(row["kind"], row["bucket"], row["program"]): row for row in rows}
    lines = ["| files | bucket | Go | ours | ours with native |", "|---|---|---|---|---|"]
    noted = False
    for kind, bucket in dict.fromkeys((k, b) for k, b, program in found if program == "ours"):
        ours, go = found[kind, bucket, "ours"], found.get((kind, bucket, "go"))
        rate = _rate if ours["file_bytes"] / ours["files"] < MB_FROM else _megabytes
        unit = "files/s" if rate is _rate else "MB/s"
        scale = rate(go) if go else GO_MEASURED.get(kind, 0.0) if bucket == "directory" else 0.0
        noted |= bool(scale and not go)
        cells = [f"{scale:,.0f} {unit}{'' if go else ' ¹'}" if scale else ""]
        for program in ("ours", "ours native"):
            row = found.get((kind, bucket, program))
            times = f", {rate(row) / scale:.1f} times Go" if row and scale else ""
            cells.append(f"{rate(row):,.0f} {unit}{times}" if row else "")
        lines.append(f"| {kind} | {bucket} | {' | '.join(cells)} |")
    if noted:
        lines += ["", GO_NOTE]
    return "\n".join(lines)


def _rate(row: Row) -> float:
    return speed(row)


def _megabytes(row: Row) -> float:
    return float(row["file_bytes"]) / max(float(row["wall_s"]), 1e-9) / 1e6


def sizes(rows: list[Row]) -> str:
    """Return the tables of start and rest, and of many files, days and datatypes."""
    lines = []
    for row in rows:
        if row["program"] == START:
            lines.append(
                f"- from the start to the first file, bucket {row['bucket']}:"
                f" {row['wall_s']:.2f} s, of which {row['cpu_s']:.2f} s CPU"
            )
        elif row["program"] == IDLE:
            lines.append(
                f"- an hour with nothing to do, bucket {row['bucket']}: {row['cpu_s']:.1f} s CPU"
            )
    found = [row for row in rows if row["program"] in {N, SPREAD}]
    if found:
        lines += ["", "| backlog | bucket | files/s | peak MB |", "|---|---|---|---|"]
        lines += [
            f"| {row['files']:,.0f} of 1 KiB{_where(row)} | {row['bucket']} | {speed(row):,.0f} |"
            f" {row['rss'] / 1e6:,.0f} |"
            for row in found
        ]
    return "\n".join(lines).strip()


def _where(row: Row) -> str:
    return f" in {row['kind']}" if row["program"] == SPREAD else ""


def parts(rows: list[Row]) -> str:
    """Return the table of what each part of the work takes alone, in MB/s."""
    kinds = list(dict.fromkeys(row["kind"] for row in rows if row["program"] in PARTS))
    if not kinds:
        return ""
    found = {(row["kind"], row["program"]): row for row in rows}
    lines = [f"| MB/s alone | {' | '.join(PARTS)} |", "|---" * (len(PARTS) + 1) + "|"]
    for kind in kinds:
        rates = (found[kind, p]["file_bytes"] / found[kind, p]["wall_s"] / 1e6 for p in PARTS)
        lines.append(f"| {kind} | {' | '.join(f'{rate:,.0f}' for rate in rates)} |")
    return "\n".join(lines)


def figures(found: Row) -> str:
    """Return all that stands between the two comments."""
    machine, rows = found["machine"], found["rows"]
    runs = max((row["runs"] for row in rows), default=0)
    about = (
        f"{machine['cpu']}, {machine['processors']} processors, Linux {machine['kernel']};"
        f" runs of each program: {runs}; load average before the first one: {machine['load']:.1f}."
    )
    if machine["load"] > QUIET_LOAD:
        about += BUSY
    shown = (beside(rows), table(rows), sizes(rows), parts(rows))
    return "\n\n".join(part for part in (about, *shown) if part)


def fill(page: str, text: str) -> str:
    """Return the page with the text between the comments.

    Raises:
        ValueError: the page does not have them.
    """
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


# Drawings: plain SVG, so that nothing is to be installed for them


def bars(rows: list[Row]) -> str:
    """Draw files a second of each program; of a kind of files, the fastest is the highest."""
    wanted = [row for row in rows if row["program"] in COLOURS]
    groups = list(dict.fromkeys((row["kind"], row["bucket"]) for row in wanted))
    drawn = []
    step = (WIDTH - LEFT - RIGHT) / max(len(groups), 1)
    for at, (kind, bucket) in enumerate(groups):
        top = max(speed(row) for row in wanted if row["kind"] == kind)
        mine = [row for row in wanted if (row["kind"], row["bucket"]) == (kind, bucket)]
        width = step * 0.8 / len(COLOURS)
        for nth, row in enumerate(mine):
            high = (HEIGHT - TOP - BOTTOM) * speed(row) / top
            x, y = LEFT + at * step + nth * width, HEIGHT - BOTTOM - high
            drawn.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.9:.1f}" height="{high:.1f}"'
                f' fill="{COLOURS[row["program"]]}"/>'
            )
            drawn.append(_text(x + width * 0.45, y - 3, _short(speed(row)), size=9))
        middle = LEFT + at * step + len(mine) * width / 2
        drawn.append(_text(middle, HEIGHT - BOTTOM + 14, kind))
        drawn.append(_text(middle, HEIGHT - BOTTOM + 27, bucket, size=9))
    for nth, (name, colour) in enumerate(COLOURS.items()):
        x = LEFT + nth * 100
        drawn.append(f'<rect x="{x}" y="12" width="10" height="10" fill="{colour}"/>')
        drawn.append(_text(x + 14, 21, name, anchor="start"))
    return _svg("files a second", drawn)


def curve(rows: list[Row]) -> str:
    """Draw speed and peak memory against the number of files, for each bucket."""
    wanted = [row for row in rows if row["program"] == N]
    drawn: list[str] = []
    if wanted:
        counts = [row["files"] for row in wanted]
        low, high = math.log10(min(counts)), math.log10(max(counts))
        for value, colour, dashed in (
            (lambda row: speed(row) / 1000, COLOURS["ours"], ""),
            (lambda row: row["rss"] / 1e6, COLOURS["simple"], "5 3"),
        ):
            drawn += _lines(wanted, value, (low, high), colour, dashed)
        for count in dict.fromkeys(counts):
            x = _across(math.log10(count), low, high)
            drawn.append(_text(x, HEIGHT - BOTTOM + 14, f"{count:,.0f}"))
    drawn.append(_text(WIDTH / 2, HEIGHT - 10, "files of 1 KiB in the backlog"))
    return _svg("1,000 files a second (blue), peak memory in MB (dashed)", drawn)


def _lines(  # noqa: ANN202 - a drawing's parts
    rows: list[Row],
    value,  # noqa: ANN001 - from a row to a number
    across: tuple[float, float],
    colour: str,
    dashed: str,
):
    top = 130.0
    drawn = []
    for bucket in dict.fromkeys(row["bucket"] for row in rows):
        points = [
            (
                _across(math.log10(row["files"]), *across),
                HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value(row), top) / top,
                value(row),
            )
            for row in rows
            if row["bucket"] == bucket
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        drawn.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"'
            f' stroke-dasharray="{dashed}"/>'
        )
        drawn += [_text(x, y - 6, _short(number), size=9) for x, y, number in points]
        x, y, _ = points[-1]
        drawn.append(_text(x, y - 18, bucket, size=9))
    return drawn


def _short(number: float) -> str:
    """Write a number with two or three digits that count."""
    if number >= 10_000:
        return f"{number / 1000:,.0f}k"
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _across(value: float, low: float, high: float) -> float:
    share = (value - low) / (high - low) if high > low else 0.5
    return LEFT + 20 + share * (WIDTH - LEFT - RIGHT - 40)


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
        f' fill="#57606a">{escape(text)}</text>'
    )


def _svg(title: str, drawn: list[str]) -> str:
    base = HEIGHT - BOTTOM
    frame = f'<line x1="{LEFT}" y1="{base}" x2="{WIDTH - RIGHT}" y2="{base}" stroke="#d0d7de"/>'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        f' viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" role="img">'
    )
    label = _text(WIDTH - RIGHT, 21, title, anchor="end")
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    return "\n".join(
        [head, f"<title>{escape(title)}</title>", ground, label, frame, *drawn, "</svg>\n"]
    )


def main() -> None:
    found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), figures(found)), encoding="utf-8")
    (DOCS / "performance-speed.svg").write_text(bars(found["rows"]), encoding="utf-8")
    # Without --curve the drawing of the last run with it stays.
    if any(row["program"] == N for row in found["rows"]):
        (DOCS / "performance-count.svg").write_text(curve(found["rows"]), encoding="utf-8")


if __name__ == "__main__":
    main()
