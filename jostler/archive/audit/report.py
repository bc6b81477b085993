"""How an audit is reported: text for people, JSON lines for programs, rows for BigQuery.

**Invariant:** the three say the same.

Pure.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jostler.words import count, counted, rfc3339, shown, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import date, datetime

    from jostler.archive.audit.audit import Sums
    from jostler.archive.audit.mend import Mended
    from jostler.format.names import Place

FOUND, MENDED, SUMMARY = "found", "mended", "summary"


def text(mended: Mended) -> str:
    """Return the line of a problem: where, what, and what was done or is to be done."""
    problem = mended.problem
    if mended.done:
        return shown(f"MENDED {problem.kind} {problem.what}: {mended.done}")
    why = f" (not mended: {mended.why})" if mended.why else ""
    return shown(f"PROBLEM {problem.kind} {problem.what}; {problem.to_do}{why}")


def last_line(sums: Sums, left: int, mended: int) -> str:
    """Return the line that sums up an audit."""
    rows = ", ".join(f"{count(n)} {datatype}" for datatype, n in sorted(sums.rows.items()) if n)
    of_go = f" ({count(sums.of_go)} of the Go agent)" if sums.of_go else ""
    kinds = ", ".join(f"{kind} {count(n)}" for kind, n in sorted(sums.problems.items()))
    return (
        f"{counted(sums.bundles, 'bundle')}{of_go} of {counted(sums.days, 'day')}, rows:"
        f" {rows or 'none'}, {size(sums.plain_bytes)}; {counted(left, 'problem')} left,"
        f" {count(mended)} mended{': ' if kinds else ''}{kinds}"
    )


def facts(mended: Mended) -> dict[str, Any]:
    """Return a problem as a JSON object."""
    problem = mended.problem
    return {
        "kind": str(problem.kind),
        "object": problem.object,
        "line": problem.line or None,
        "detail": problem.detail,
        "to_do": "" if mended.done else problem.to_do,
        "status": MENDED if mended.done else FOUND,
        "done": mended.done or mended.why,
    }


def json_line(value: Mapping[str, Any]) -> str:
    """Return a JSON object in one line."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def summary(sums: Sums, left: int, mended: int) -> dict[str, Any]:
    """Return the sums as a JSON object."""
    return {
        "kind": SUMMARY,
        "days": sums.days,
        "bundles": sums.bundles,
        "bundles_of_go": sums.of_go,
        "rows": dict(sorted(sums.rows.items())),
        "bytes": sums.plain_bytes,
        "problems": {str(kind): n for kind, n in sorted(sums.problems.items())},
        "left": left,
        "mended": mended,
    }


def rows(
    ends: Iterable[tuple[Place | None, str, date, Mended]], bucket: str, when: datetime
) -> list[dict[str, Any]]:
    """Return the rows of `jostler.audits` about problems.

    Args:
        ends: place, datatype and day of each problem, and its end; no place: beside them all.
        bucket: URL of the bucket.
        when: now.
    """
    return [
        {
            "Time": rfc3339(when),
            "Command": "audit",
            "Bucket": bucket,
            "Experiment": place.experiment if place else None,
            "Datatype": datatype,
            "date": None if day.year > 2099 else day.isoformat(),  # noqa: PLR2004 - beside the days
            "Kind": fields["kind"],
            "Object": fields["object"],
            "Line": fields["line"],
            "Detail": fields["detail"],
            "Status": fields["status"],
            "Done": fields["done"],
        }
        for place, datatype, day, mended in ends
        for fields in (facts(mended),)
    ]
