"""Count the repeats that go when the merged bundle is there already, and only inputs are removed.

**Invariant:** the metadata `repeats` of a merged bundle's index says how many exact repeats merges
have left out, at the most: the loader accepts that many rows less in the table index1.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from jostler.archive.keeping import Made, store
from jostler.errors import ConflictError, MissingError

if TYPE_CHECKING:
    from jostler.archive.compact_plan import Member
    from jostler.storage import Storage


def count_repeats(storage: Storage, member: Member, repeats: int) -> None:
    """Add to the repeats that a merged bundle's index counts; its bytes stay the same.

    Call it before the inputs are removed.  A compactor that dies in between makes the next one
    count them twice; the other order would lose the count.

    Args:
        storage: the bucket.
        member: the merged bundle.
        repeats: rows of other bundles that it has, too.

    Raises:
        StorageError: the index could not be stored.
    """
    if not repeats:
        return
    name, version = member.index_name, member.index_version
    with suppress(ConflictError, MissingError):  # another compactor has done the same, or more
        data = storage.read(name, version).data
        metadata = {**storage.metadata(name, version), "repeats": str(member.repeats + repeats)}
        metadata.pop("upload-id", None)  # the bucket's own
        store(storage, Made(name=name, data=data, metadata=metadata, replaces=version))
