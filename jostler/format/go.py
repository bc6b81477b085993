"""What m-lab's Go agent writes and jostler does not; such bundles are read, never written.

Its data rows say `Date`, `Archiver` and `Raw`, with an absolute Filename.  Its index lines are
bare: `Filename`, `Size` and `TimeAdded`, without the standard columns.  `TimeAdded` has a form of
its own, `2022/09/29T010203.000004Z`, which no TIMESTAMP column takes.  The last line of a bundle
has no line feed.  Samples: tests/golden/go.

Pure: no I/O, no clock.
"""

from __future__ import annotations

import re

import msgspec

_STANDARD = frozenset({"date", "archiver", "raw"})
_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])

# A quote inside of a JSON string stands behind a backslash, so `"TimeAdded":"` can only be a key:
# the text of a Filename never matches.
_TIME_ADDED_RE = re.compile(
    rb'("TimeAdded":")(\d{4})/(\d\d)/(\d\d)T(\d\d)(\d\d)(\d\d)(\.\d{1,9})?Z"', re.ASCII
)
_TIMESTAMP = rb'\1\2-\3-\4T\5:\6:\7\8Z"'


def is_bare(line: bytes) -> bool:
    """Say whether a line has a Filename and none of the standard columns, as the Go agent's index.

    Args:
        line: usually the first of a bundle; all lines of one bundle are alike.
    """
    try:
        keys = {key.lower() for key in _TOP.decode(line)}
    except msgspec.DecodeError:
        return False
    return not keys & _STANDARD and "filename" in keys


def loadable_index(lines: bytes) -> bytes:
    """Write the Go agent's `TimeAdded` as BigQuery's TIMESTAMP takes it; all else stays as it is.

    The instant is the same, to the last digit.  Lines that are not of the Go agent's form come back
    unchanged, so the call may be repeated.

    Args:
        lines: one bare index line or many, such as a block of a bundle.
    """
    return _TIME_ADDED_RE.sub(_TIMESTAMP, lines)


def is_go_row(columns: object) -> bool:
    """Say whether a parsed row spells the standard columns as the Go agent does."""
    return isinstance(columns, dict) and {"Date", "Archiver", "Raw"} <= columns.keys()
