"""Labels of datasets and tables.

**Invariant:** labels that pass are those that BigQuery takes ("Requirements for labels").
"""

from __future__ import annotations

from embedded.model.errors import invalid

MOST = 64
LONGEST = 63


def check_labels(labels: object) -> None:
    """Check the labels of a resource.

    Raises:
        ApiError: there are too many, or one is not allowed.
    """
    if not isinstance(labels, dict):
        raise invalid("Invalid value for labels: it is not an object")
    if len(labels) > MOST:
        raise invalid(f"Too many labels: {len(labels)}, at most {MOST} are allowed")
    for key, value in labels.items():
        if not key or not key[0].isalpha() or not _is_label(key):
            raise invalid(f'Label key "{key}" has invalid characters or is too long.')
        if not isinstance(value, str) or not _is_label(value):
            raise invalid(f'Label value "{value}" has invalid characters or is too long.')


def _is_label(text: str) -> bool:
    """Return whether all characters are letters (none upper-case), digits, dashes, underscores."""
    known = all(char.isalnum() or char in "_-" for char in text)
    return known and text == text.lower() and len(text) <= LONGEST
