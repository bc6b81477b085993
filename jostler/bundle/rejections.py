"""Why a file cannot be archived as data: by its size or its content.

**Invariant:** the agent and everything that writes into the spool ask here, so a file that one of
them finds good is good for the other.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.format.row import BOM, Rejection

if TYPE_CHECKING:
    from collections.abc import Callable

    from jostler.schema.flaw import Flaw


def too_big(datatype: str, size: int, most: int) -> Rejection:
    """Return why a file of this size cannot be archived."""
    detail = f"{size} bytes make a row larger than a bundle of {most}"
    return Rejection(datatype=datatype, reason="too-big", detail=detail)


def refused(
    datatype: str, content: bytes, size: int, most: int, judge: Callable[[bytes], Flaw | None]
) -> Rejection | None:
    """Return why a file's content cannot be archived as data; None if it can.

    A file of which not all was read, because it grows, is not judged: the result is None.

    Args:
        datatype: the file's.
        content: the bytes that were read, all of them unless the file is larger than `most`.
        size: bytes of the file.
        most: the maximum size of a bundle, and so of a row.
        judge: returns what is wrong with a document.
    """
    if not size and not content:
        return Rejection(datatype=datatype, reason="empty", detail="the file has no bytes")
    if size > most:
        return too_big(datatype, size, most)
    if len(content) != size:
        return None
    flaw = judge(content.removeprefix(BOM))
    if not flaw:
        return None
    return Rejection(
        datatype=datatype, reason=str(flaw.reason), detail=flaw.detail, field=flaw.field
    )
