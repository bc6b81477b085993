"""Change an archive so that a change may be interrupted or repeated: store first, remove after.

**Invariant:** nothing is removed before all that replaces it was stored and read back; an object is
removed or replaced only at the version that was looked at; and to carry out a change again changes
nothing.  So any number of keepers may run at once, be killed anywhere and run again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jostler.errors import ConflictError, DamageError, MissingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jostler.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An object to store.

    Attributes:
        name: its name.
        data: its bytes.
        metadata: what is stored with it.
        replaces: the version of the object that has this name and is to be replaced; empty if
            there is to be none.
    """

    name: str
    data: bytes
    metadata: Mapping[str, str] = field(default_factory=dict)
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """An object as it was when it was looked at."""

    name: str
    version: str


def store_then_remove(storage: Storage, made: Sequence[Made], old: Sequence[Looked]) -> None:
    """Store objects, read them back, then remove others; each step in the given order.

    Args:
        storage: the bucket.
        made: what to store; the last one makes the change complete.  If that is there already, it
            becomes a new version: a keeper that has seen it alone, and would remove what it has
            seen, does not remove what is complete now.
        old: what to remove afterwards; what is gone already is passed over.

    Raises:
        ConflictError: an object has other bytes or another version than expected; nothing that
            follows was done.
        DamageError: an object does not read back as it was stored; nothing was removed.
        TransientError: a request fails; what was done may be done again.
    """
    for one in made[:-1]:
        store(storage, one)
    for one in made[-1:]:
        there = [info.version for info in storage.list(one.name) if info.name == one.name]
        store(storage, one)
        if there and not one.replaces:
            store(storage, replace(one, replaces=there[0]))
    for one in made:
        if storage.read(one.name).data != one.data:
            raise DamageError(f"{storage.url}/{one.name} does not read back as it was stored")
    # Only the version that was looked at is removed: an object that was stored again meanwhile
    # stays.
    for gone in old:
        storage.remove(gone.name, gone.version)


def store(storage: Storage, one: Made) -> None:
    """Store an object; do nothing if it is there with these bytes.

    Raises:
        ConflictError: the name holds other bytes, or the object to replace has changed.
        TransientError: the request fails.
    """
    if not one.replaces:
        storage.put_new(one.name, one.data, one.metadata)
        return
    try:
        storage.replace(one.name, one.data, one.replaces, one.metadata)
    except ConflictError:
        # A lost reply, or another keeper that did the same.
        try:
            if storage.read(one.name).data == one.data:
                return
        except MissingError:
            pass
        raise
