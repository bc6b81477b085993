"""The status document as text for a terminal: a screen that fits, or all details.

**Invariant:** whatever the document contains, the text is printable and no line exceeds the given
width; a screen has no more lines than fit.

Pure: the current time is the one in the document.
"""

from __future__ import annotations

import textwrap
import unicodedata
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jostler.words import DASH, counted, duration, shown, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MARKS = {"ok": "OK", "attention": "ATTENTION", "bad": "BAD"}
SIGNS = {"ok": " ", "attention": "!", "bad": "X"}
WIDTH, HEIGHT = 80, 24
SHOWN = 5
LEAST_ROWS = 3
SPACE = "  "
HEADS = ("", "DATATYPE", "WAITING", "OLDEST", "OPEN", "SENDING", "STORED", "ARCHIVED", "REJECTED")
Json = dict[str, Any]


def screen(document: Json, width: int = WIDTH, height: int = HEIGHT) -> str:
    """Write what fits on a terminal, problems first.

    Args:
        document: the content of /status.json.
        width: columns of the terminal.
        height: lines of the terminal; one of them is left for the prompt.
    """
    left = max(HEIGHT, height) - 1
    top = list(_health(document["health"], width))
    top = _at_most(top, left - LEAST_ROWS - 9, "more: jostler status -full")
    top += ["", *_agent(document), ""]
    left -= len(top)
    bottom = [*_errors(document, width, 2), *_rejected(document, SHOWN)][
        : min(left // 2, left - LEAST_ROWS - 2)
    ]
    bottom = ["", *bottom] if bottom else []
    table = _table(document["datatypes"], document["now"], width)
    rows = _at_most(table, left - len(bottom), "datatypes more: jostler status -full")
    return _written([*top, *rows, *bottom], width)


def details(document: Json, width: int = WIDTH) -> str:
    """Write everything, however long; wrap sentences, but never names."""
    now = document["now"]
    lines = [*_health(document["health"], width), "", *_agent(document)]
    for datatype in document["datatypes"]:
        lines += ["", *_datatype(datatype, now)]
    if errors := list(_errors(document, width, len(document["uploads"]["errors"]))):
        lines += ["", *errors]
    return "".join(f"{shown(line)}\n" for line in lines)


def _written(lines: Iterable[str], width: int) -> str:
    return "".join(f"{_cut(shown(line), width)}\n" for line in lines)


def _at_most(lines: Sequence[str], most: int, more: str) -> list[str]:
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"  … {len(lines) - most + 1} {more}"]


def _columns(char: str) -> int:
    """Return how many columns of a terminal a character takes."""
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    """Cut a line to a number of columns."""
    if len(text) * 2 <= width or sum(map(_columns, text)) <= width:
        return text
    kept, taken = [], 1
    for char in text:
        taken += _columns(char)
        if taken > width:
            break
        kept.append(char)
    return "".join(kept) + "…"


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        shown(text), width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    ) or [first]


def _health(health: Json, width: int) -> Iterator[str]:
    mark = f"{MARKS.get(health['level'], '?')}  "
    yield from _wrapped(health["headline"], width, mark, " " * len(mark))
    for problem in health["problems"]:
        sign = f"{SIGNS.get(problem['level'], '!')} "
        if not health["headline"].startswith(problem["text"]):  # else the headline has it
            yield from _wrapped(problem["text"], width, sign, "  ")
            sign = "  "
        yield from _wrapped(problem["hint"], width, f"{sign}  ", "    ")
        where = problem.get("runbook") or f"runbook: {problem['code'].replace('_', '-')}"
        yield f"    {where}"


def _agent(document: Json) -> Iterator[str]:
    agent, now = document["agent"], document["now"]
    memory, spool, uploads = document["memory"], document["spool"], document["uploads"]
    yield (
        f"{agent['node']}, {agent['experiment']} to {agent['bucket']}, jostler {agent['version']}"
        f" ({agent['commit']})"
    )
    failing = ", failing" if uploads["failing"] else ""
    yield (
        f"running {_ago(agent['started'], now)};"
        f" {counted(uploads['pending'], 'bundle')} on the way{failing};"
        f" {counted(document['watch']['buffered'], 'path')} in line"
    )
    full = f", full in {duration(spool['full_in_s'])}" if spool.get("full_in_s") else ""
    yield (
        f"memory {size(memory['held_bytes'])} of {size(memory['limit_bytes'])};"
        f" disk {size(spool['free_bytes'])} free of {size(spool['size_bytes'])}{full}"
    )


def _table(datatypes: Sequence[Json], now: str, width: int) -> list[str]:
    rows = [HEADS, *(_row(one, now) for one in datatypes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    others = sum(widths) - widths[1] + 2 * (len(HEADS) - 1)
    widths[1] = max(8, min(widths[1], width - others))
    return [_cells(row, widths) for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int]) -> str:
    sign, label, *numbers = row
    cells = [sign.ljust(widths[0]), _cut(label, widths[1]).ljust(widths[1])]
    cells += [cell.rjust(width) for cell, width in zip(numbers, widths[2:], strict=True)]
    return SPACE.join(cells).rstrip()


def _row(one: Json, now: str) -> tuple[str, ...]:
    waiting, totals = one["waiting"], one["totals"]
    return (
        SIGNS.get(one.get("level", "ok"), "!"),
        shown(one["name"]),
        f"{waiting['files']:,}",
        _short(waiting["oldest"], now),
        str(len(one["open"])),
        str(len(one["uploading"])),
        _short(one["last_success"], now),
        f"{totals['archived']:,}",
        f"{sum(totals['rejected'].values()):,}",
    )


def _errors(document: Json, width: int, most: int) -> Iterator[str]:
    headline, now = document["health"]["headline"], document["now"]
    for error in document["uploads"]["errors"][:most]:
        times = "once" if error["times"] == 1 else f"{error['times']:,} times"
        failing = f", {error['failing']:,} failing now" if error["failing"] else ""
        yield f"error {times}{failing}, last {_ago(error['at'], now)} ago ({error['class']})"
        if error["text"] not in headline:
            yield from _wrapped(error["text"], width, "  ", "  ")
            yield from _wrapped(error["hint"], width, "  ", "  ")


def _rejected(document: Json, most: int) -> Iterator[str]:
    found = [
        (file["at"], f"{file['file']}: {_why(file)}")
        for one in document["datatypes"]
        for file in one["rejected"]
    ]
    for at, text in sorted(found, reverse=True)[:most]:
        yield f"rejected {_since(at, document['now'])}: {text}"


def _why(file: Json) -> str:
    field = f" {file['field']}:" if file["field"] else ""
    return f"{file['reason']}:{field} {file['detail']}"


def _datatype(one: Json, now: str) -> Iterator[str]:
    totals, waiting = one["totals"], one["waiting"]
    bad = {end: sum(totals[end].values()) for end in ("rejected", "kept", "deleted") if totals[end]}
    ends = "".join(f", {count:,} {end}" for end, count in bad.items())
    bundles = counted(totals["bundles"], "bundle")
    yield f"{one['name']}: {totals['archived']:,} archived in {bundles}{ends}"
    yield (
        f"  last arrival {_since(one['last_arrival'], now)},"
        f" last success {_since(one['last_success'], now)}"
    )
    if waiting["files"]:
        oldest = _since(waiting["oldest"], now)
        files = counted(waiting["files"], "file")
        yield f"  waiting    {files}, {size(waiting['bytes'])}, oldest {oldest}"
    for bundle in one["open"]:
        yield (
            f"  open       {bundle['day']}: {counted(bundle['files'], 'file')},"
            f" {size(bundle['row_bytes'])} of rows; sealed by {bundle['seals_by']}"
        )
    for bundle in one["uploading"]:
        tries = f", failed {bundle['tries']} times" if bundle["tries"] else ""
        yield f"  uploading  {bundle['bundle']}: {counted(bundle['files'], 'file')}{tries}"
    for bundle in one["stored"]:
        yield f"  stored     {_since(bundle['at'], now)}: {bundle['url']}"
    for file in one["rejected"]:
        yield f"  rejected   {_since(file['at'], now)}: {file['file']}: {_why(file)}"


def _since(then: str | None, now: str) -> str:
    return f"{_ago(then, now)} ago" if then else "never"


def _short(then: str | None, now: str) -> str:
    """Write an age in its largest unit only."""
    if not then:
        return DASH
    parts = _ago(then, now).split()
    return f"{parts[0]} {parts[1]}"


def _ago(then: str, now: str) -> str:
    passed = datetime.fromisoformat(now) - datetime.fromisoformat(then)
    return duration(max(0.0, passed.total_seconds()))
