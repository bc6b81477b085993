"""The status document as text for a terminal.

**Invariant:** whatever the document holds, what is written is printable, line by line.

Pure: the present is the document's own.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from jostler.words import duration, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKS = {"ok": "OK", "attention": "ATTENTION", "bad": "BAD"}
SHOWN = 5
KIB = 1024
Json = dict[str, Any]


def as_text(document: Json) -> str:
    """Write the document, all that is wrong first."""
    return "".join(f"{shown(line)}\n" for line in _lines(document))


def _lines(document: Json) -> Iterator[str]:
    agent, now = document["agent"], document["now"]
    yield from _health(document["health"])
    yield ""
    yield (
        f"jostler {agent['version']} ({agent['commit']}), node {agent['node']}, experiment"
        f" {agent['experiment']}, to {agent['bucket']}"
    )
    memory, spool = document["memory"], document["spool"]
    yield (
        f"running {_ago(agent['started'], now)}; memory {_size(memory['held_bytes'])} of"
        f" {_size(memory['limit_bytes'])}; disk {_size(spool['free_bytes'])} free of"
        f" {_size(spool['size_bytes'])}; {document['watch']['buffered']:,} paths queued"
    )
    for datatype in document["datatypes"]:
        yield ""
        yield from _datatype(datatype, now)
    errors = document["uploads"]["errors"][:SHOWN]
    if errors:
        yield ""
        yield "last errors"
    for error in errors:
        yield (
            f"  {_ago(error['at'], now)} ago  {error['class']}: {error['text']}"
            f"  (try {error['tries']} of {error['what']})"
        )
        yield f"      {error['hint']}"


def _health(health: Json) -> Iterator[str]:
    yield f"{MARKS.get(health['level'], '?')}  {health['headline']}"
    for problem in health["problems"]:
        yield f"  - {problem['text']}"
        yield f"    {problem['hint']}"


def _datatype(one: Json, now: str) -> Iterator[str]:
    totals, waiting = one["totals"], one["waiting"]
    bad = {end: sum(totals[end].values()) for end in ("rejected", "kept", "deleted") if totals[end]}
    ends = "".join(f", {count:,} {end}" for end, count in bad.items())
    yield f"{one['name']}: {totals['archived']:,} archived in {totals['bundles']:,} bundles{ends}"
    yield (
        f"  last arrival {_since(one['last_arrival'], now)},"
        f" last success {_since(one['last_success'], now)}"
    )
    if waiting["files"]:
        oldest = _since(waiting["oldest"], now)
        yield f"  waiting    {waiting['files']:,} files, {_size(waiting['bytes'])}, oldest {oldest}"
    for bundle in one["open"]:
        yield (
            f"  open       {bundle['day']}: {bundle['files']:,} files, {_size(bundle['row_bytes'])}"
            f" of rows; sealed by {bundle['seals_by']}"
        )
    for bundle in one["uploading"]:
        tries = f", failed {bundle['tries']} times" if bundle["tries"] else ""
        yield f"  uploading  {bundle['bundle']}: {bundle['files']:,} files{tries}"
    for bundle in one["stored"][:1]:
        yield f"  stored     {_since(bundle['at'], now)}: {bundle['url']}"
    for file in one["rejected"][:SHOWN]:
        field = f" {file['field']}:" if file["field"] else ""
        yield (
            f"  rejected   {_since(file['at'], now)}: {file['file']}: {file['reason']}:{field}"
            f" {file['detail']}"
        )


def _since(then: str | None, now: str) -> str:
    return f"{_ago(then, now)} ago" if then else "never"


def _ago(then: str, now: str) -> str:
    passed = datetime.fromisoformat(now) - datetime.fromisoformat(then)
    return duration(max(0.0, passed.total_seconds()))


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < KIB:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= KIB
    return f"{count:,.1f} GiB"
