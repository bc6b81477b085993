"""One datatype's section: waiting files, open, uploading and stored bundles, rejected files.

**Invariant:** every part that has content is shown, even if other parts are missing.  Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler import words
from jostler.agent.observe.page.facts import REST, Facts, mapping, several, total
from jostler.web.html import NOTHING, Content, Html, join, tag
from jostler.web.parts import Row, bundle_name, fact_list, name, table, when, wrapped
from jostler.words import text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

BAR_WIDTH = 100


def datatype(facts: Facts, now: datetime | None) -> Html:
    """Show one datatype.

    Args:
        facts: the datatype's part of the document.
        now: the current time of the document.
    """
    label = text(facts.get("name"))
    parts = [
        _part(label, "Open bundles", facts.get("open"), _OPEN, lambda b: _open(b, now)),
        _part(
            label,
            "Being uploaded",
            facts.get("uploading"),
            _UPLOADING,
            lambda b: _uploading(b, now),
        ),
        _part(label, "Last stored", facts.get("stored"), _STORED, lambda b: _stored(b, now)),
        _part(label, "Rejected", facts.get("rejected"), _REJECTED, lambda r: _rejected(r, now)),
    ]
    if not any(parts):
        parts = [tag("p", "Nothing is open, under way, stored or rejected yet.", class_="note")]
    return tag(
        "section",
        tag("h2", tag("bdi", label), " ", tag("span", _kind(facts), class_="kind")),
        fact_list(_summary(facts, now)),
        *parts,
        class_="datatype card",
        id=anchor(label),
        data_key=f"datatype {label}",
    )


def anchor(label: str) -> str:
    """Return the HTML id of a datatype's section: letters, digits and dashes."""
    plain = "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):x}-" for c in label)
    return f"datatype-{plain}"


def waiting(facts: Facts) -> str:
    """Write how many files of a datatype wait, and their size."""
    known = mapping(facts.get("waiting"))
    files = words.counted(known.get("files"), "file")
    return f"{files}, {words.size(known.get('bytes'))}" if known.get("files") else files


def rejected(facts: Facts) -> str:
    """Write how many files of a datatype were rejected."""
    return words.count(total(mapping(facts.get("totals")).get("rejected")))


def _kind(facts: Facts) -> str:
    kind = text(facts.get("kind"))
    return "" if kind in {"data", text(facts.get("name"))} else kind


def _summary(facts: Facts, now: datetime | None) -> list[tuple[str, Content]]:
    totals = mapping(facts.get("totals"))
    oldest = mapping(facts.get("waiting")).get("oldest")
    pairs: list[tuple[str, Content]] = [
        ("Waiting", waiting(facts)),
        ("Oldest waiting", when(oldest, now, missing="none waits")),
        ("Last arrival", when(facts.get("last_arrival"), now, missing="none yet")),
        ("Last stored", when(facts.get("last_success"), now, missing="none yet")),
        ("Archived", _archived(totals)),
    ]
    pairs += [
        (label, _by_reason(totals.get(member)))
        for label, member in (
            ("Rejected", "rejected"),
            ("Ignored", "ignored"),
            ("Kept on disk", "kept"),
            ("Deleted, bad", "deleted"),
            ("Changed while waiting", "changed"),
            ("Vanished", "vanished"),
        )
    ]
    return pairs


def _archived(totals: Facts) -> Content:
    if not totals:
        return None
    taken = totals.get("taken")
    files = words.counted(totals.get("archived"), "file")
    if not totals.get("bundles"):
        return files
    bundles = words.counted(totals.get("bundles"), "bundle")
    of = f" of {words.count(taken)} taken" if taken else ""
    return f"{files}{of}, in {bundles}, {words.size(totals.get('object_bytes'))}"


def _by_reason(value: object) -> Content:
    """Write how many there are, by reason; None if there are none."""
    if not total(value):
        return None
    if not mapping(value):
        return words.count(value)
    reasons = sorted(mapping(value).items(), key=lambda item: -total(item[1]))
    by_reason = ", ".join(f"{reason} {words.count(amount)}" for reason, amount in reasons if amount)
    return join([words.count(total(value)), " ", tag("span", f"({by_reason})", class_="ago")])


def _part(
    label: str, title: str, items: object, heads: Sequence[str], row: Callable[[Facts], Row]
) -> Html:
    rows = [row(item) for item in several(items)]
    if not rows:
        return NOTHING
    shown = table(heads, rows, key=f"{label} {title}", rest=REST)
    return join([tag("h3", title), shown])


_OPEN = ("Bundle", "Day", "Files", "Size", "Opened", "Sealed by")
_UPLOADING = ("Bundle", "Files", "Object", "Sealed", "Failed tries")
_STORED = ("Bundle", "Files", "Object", "Stored", "Took")
_REJECTED = ("File", "Reason", "Where and why", "When")


def _open(bundle: Facts, now: datetime | None) -> Row:
    size, most = bundle.get("row_bytes"), bundle.get("row_bytes_max")
    filled = tag("div", f"{words.size(size)} of {words.size(most)}", bar(size, most), class_="bar")
    cells = (
        bundle_name(bundle.get("bundle")),
        text(bundle.get("day")),
        words.count(bundle.get("files")),
        filled,
        when(bundle.get("opened"), now),
        wrapped(text(bundle.get("seals_by")) or when(bundle.get("seals_at"), now)),
    )
    return text(bundle.get("bundle")), cells


def _uploading(bundle: Facts, now: datetime | None) -> Row:
    key = text(bundle.get("bundle"))
    reason = text(bundle.get("reason"))
    sealed = when(bundle.get("sealed"), now)
    cells = (
        bundle_name(key),
        words.count(bundle.get("files")),
        words.size(bundle.get("object_bytes")),
        join([sealed, f", by {reason}"]) if reason else sealed,
        words.count(bundle.get("tries")),
    )
    return key, cells


def _stored(bundle: Facts, now: datetime | None) -> Row:
    key = text(bundle.get("bundle"))
    shown = bundle_name(text(bundle.get("url")) or key, bundle.get("link"))
    cells = (
        shown,
        words.count(bundle.get("files")),
        words.size(bundle.get("object_bytes")),
        when(bundle.get("at"), now),
        words.duration(bundle.get("seconds")),
    )
    return key, cells


def _rejected(file: Facts, now: datetime | None) -> Row:
    field, detail = text(file.get("field")), text(file.get("detail"))
    why: list[Content] = [name(field) if field else None, " " if field and detail else None]
    why.append(tag("bdi", detail))
    path = text(file.get("file"))
    cells = (
        name(path),
        tag("span", text(file.get("reason")), class_="reason"),
        wrapped(*why),
        when(file.get("at"), now),
    )
    return f"{path} {text(file.get('at'))}", cells


def bar(value: object, most: object) -> Html:
    """Draw a bar that shows how full something is; nothing if that is unknown."""
    filled, whole = words.number(value), words.number(most)
    if filled is None or not whole:
        return NOTHING
    width = round(BAR_WIDTH * min(1.0, max(0.0, filled / whole)), 1)
    return tag(
        "svg",
        tag("rect", width=BAR_WIDTH, height=4, class_="rail"),
        tag("rect", width=width, height=4, class_="full"),
        class_="meter",
        viewBox=f"0 0 {BAR_WIDTH} 4",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
