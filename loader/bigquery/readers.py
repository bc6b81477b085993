"""The readers of a dataset that assets name, and the memory of which of them jostler has added.

**Invariant:** only a reader that jostler added is ever removed.  Readers and memory change in one
request: the memory is labels of the same dataset, so no crash separates them, and if somebody
removes the labels, the readers stay.

Pure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loader.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any

    Entry = dict[str, Any]

MEMORY = "jostler-readers"
READER = "READER"
READS = frozenset({READER, "WRITER", "OWNER"})
KINDS = {
    "user": "userByEmail",
    "serviceAccount": "userByEmail",
    "group": "groupByEmail",
    "domain": "domain",
}
# A label has 63 characters, a resource 64 labels ("Requirements for labels").
DIGEST_BYTES = 6
DIGEST = 2 * DIGEST_BYTES
EACH = 5
MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadersChange:
    """What to change in a dataset.

    Attributes:
        access: all entries that it is to have.
        labels: the labels to set; None removes one.
        added: the members that become readers.
        removed: how the members are named whose entries go.
    """

    access: list[Entry]
    labels: dict[str, str | None]
    added: tuple[str, ...]
    removed: tuple[str, ...]


def entry_of(member: str) -> Entry:
    """Return the entry that lets a member of an asset read a dataset."""
    kind, _, name = member.partition(":")
    return {"role": READER, KINDS[kind]: name}


def change_of(
    access: Collection[Entry], labels: Mapping[str, str], wanted: Collection[str]
) -> ReadersChange | None:
    """Compare a dataset's readers with those that assets name; return None if nothing differs.

    Args:
        access: the dataset's entries.
        labels: the dataset's labels.
        wanted: the members that shall be able to read it.

    Raises:
        SchemaError: there are more than `MOST`.
    """
    if len(wanted) > MOST:
        hint = "name groups instead"
        raise SchemaError(f"{len(wanted)} consumers, at most {MOST} can be readers", hint=hint)
    ours = set(_remembered(labels))
    digests = {_digest(entry_of(member)): member for member in sorted(wanted)}
    able = {_digest(entry) for entry in access if entry.get("role") in READS}
    kept, removed, held = [], [], set()
    for entry in access:
        digest = _digest(entry)
        is_ours = entry.get("role") == READER and digest in ours
        if is_ours and digest not in digests:
            removed.append(_name(entry))
            continue
        kept.append(entry)
        if is_ours:
            held.add(digest)
    added = {digest: member for digest, member in digests.items() if digest not in able}
    memory = _memory({*held, *added})
    told = {key: text for key, text in labels.items() if _is_memory(key)}
    if not added and not removed and memory == told:
        return None
    return ReadersChange(
        access=[*kept, *(entry_of(member) for member in added.values())],
        labels={**dict.fromkeys(told), **memory},
        added=tuple(added.values()),
        removed=tuple(removed),
    )


def _name(entry: Entry) -> str:
    """Return whom an entry concerns, without its role; a view or routine has no name here."""
    names = [f"{kind}:{entry[kind]}" for kind in dict.fromkeys(KINDS.values()) if kind in entry]
    return names[0] if names else ""


def _digest(entry: Entry) -> str:
    name = _name(entry).lower()  # addresses and domains are told in any case
    return hashlib.blake2b(name.encode(), digest_size=DIGEST_BYTES).hexdigest() if name else ""


def _is_memory(label: str) -> bool:
    return label == MEMORY or label.startswith(f"{MEMORY}-")


def _remembered(labels: Mapping[str, str]) -> Iterator[str]:
    for label, text in labels.items():
        if _is_memory(label):
            yield from (text[at : at + DIGEST] for at in range(0, len(text), DIGEST))


def _memory(digests: Collection[str]) -> dict[str, str]:
    """Return the labels that remember digests, a few in each."""
    ordered = sorted(digests)
    parts = ["".join(ordered[at : at + EACH]) for at in range(0, len(ordered), EACH)]
    return {f"{MEMORY}-{n}" if n > 1 else MEMORY: text for n, text in enumerate(parts, 1)}
