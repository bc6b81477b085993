"""Count the repeats that go when the merged bundle is there already, and only inputs are removed.

**Invariant:** the metadata `repeats` of a merged bundle's index says how many exact repeats merges
have left out, at the most: the loader accepts that many rows less in the table index1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.archive.keeping import Made, store
from jostler.errors import ConflictError, MissingError
from jostler.format.blocks import BlockWriter, inflated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.compact_plan import Member
    from jostler.format.compression import Compression
    from jostler.storage import Storage


def count_repeats(
    storage: Storage,
    member: Member,
    repeats: int,
    index: Sequence[tuple[bytes, int]],
    compression: Compression,
) -> None:
    """Add to the repeats that a merged bundle's index counts, and renew what it says of its rows.

    Call it before the inputs are removed.  A compactor that dies in between makes the next one
    count them twice; the other order would lose the count.

    Args:
        storage: the bucket.
        member: the merged bundle.
        repeats: rows of other bundles that it has, too.
        index: with the earliest times that all of them know, as texts with so many rows.
        compression: of the index, if it changes.

    Raises:
        MissingError: the merged bundle is not as it was read any more.
        StorageError: the index could not be stored.
    """
    name, version = member.index_name, member.index_version
    data = storage.read(name, version).data
    if inflated(data) != b"".join(text for text, _ in index):
        writer = BlockWriter(compression)
        for text, rows in index:
            writer.add(text, rows)
        data = writer.finish()
    metadata = {**storage.metadata(name, version), "repeats": str(member.repeats + repeats)}
    metadata.pop("upload-id", None)  # the bucket's own
    try:
        store(storage, Made(name=name, data=data, metadata=metadata, replaces=version))
    except ConflictError as exc:
        raise MissingError(str(exc)) from exc
