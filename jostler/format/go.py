"""How bundles of m-lab's Go agent differ from jostler's; jostler reads such bundles, only.

Their data rows have the columns `Date`, `Archiver` and `Raw`, with an absolute Filename.  Their
index lines are bare: `Filename`, `Size` and `TimeAdded`, without the standard columns.  `TimeAdded`
is written as `2022/09/29T010203.000004Z`, which BigQuery does not accept as a TIMESTAMP.  The last
line of a bundle has no line feed.  Samples: tests/golden/go.

Pure: no I/O, no clock.
"""

from __future__ import annotations

import re

import msgspec

_STANDARD = frozenset({"date", "archiver", "raw"})
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])

# Inside a JSON string each quote follows a backslash, so `"TimeAdded":"` can only be a key; the
# text of a Filename never matches.
_TIME_ADDED_RE = re.compile(
    rb'("TimeAdded":")(\d{4})/(\d\d)/(\d\d)T(\d\d)(\d\d)(\d\d)(\.\d{1,9})?Z"', re.ASCII
)
_TIMESTAMP = rb'\1\2-\3-\4T\5:\6:\7\8Z"'


def is_bare(line: bytes) -> bool:
    """Return whether a line is an index line of the Go agent: a Filename, no standard column.

    Args:
        line: usually the first line of a bundle; all lines of one bundle have the same form.
    """
    try:
        keys = {key.lower() for key in _TOP.decode(line)}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return not keys & _STANDARD and "filename" in keys


def loadable_index(lines: bytes) -> bytes:
    """Rewrite the Go agent's `TimeAdded` in a form that BigQuery accepts as a TIMESTAMP.

    All digits of the instant are kept.  Other lines are returned unchanged, so a second call
    changes nothing.

    Args:
        lines: one or more bare index lines, such as a block of a bundle.
    """
    return _TIME_ADDED_RE.sub(_TIMESTAMP, lines)


def is_go_row(columns: object) -> bool:
    """Return whether a parsed row spells the standard columns as the Go agent does."""
    return isinstance(columns, dict) and {"Date", "Archiver", "Raw"} <= columns.keys()
