"""The rules of the intake: by what it decides, and every reason for which it rejects a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from jostler.schema import Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jostler.bundle import ReadBatch
    from jostler.bundle.index_fields import IndexFields
    from jostler.schema import Flaw

READ_TRIES = 3
REASONS = (*(str(reason) for reason in Reason), "name", "path", "too-big", "unreadable")
"""Every reason why a file can be rejected: the judge's and the intake's own."""


class Rules(Struct, frozen=True, kw_only=True):
    """The rules by which the intake decides; sizes in bytes.

    Attributes:
        judges: for each datatype, the function that returns what is wrong with a document.
        index_fields: for each datatype with `-index-field`, what fills its index columns.
        counts: for each datatype, the function that returns how many documents are good, from the
            first one on; a datatype without one is judged by `judges`.
        readers: for each datatype, the function that reads batches; `read_batch` if there is none.
        max_bytes: the maximum size of a bundle, and so of a row.
        read_tries: after how many failed reads a file counts as unreadable.
        once: whether there is only one scan (`-once`).
    """

    judges: Mapping[str, Callable[[bytes], Flaw | None]]
    index_fields: Mapping[str, IndexFields] = field(default_factory=dict)
    max_bytes: int
    read_tries: int
    once: bool = False
    counts: Mapping[str, Callable[[Sequence[bytes]], int]] = field(default_factory=dict)
    readers: Mapping[str, ReadBatch] = field(default_factory=dict)
