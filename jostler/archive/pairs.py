"""Pairs of data bundle and index bundle in a bucket.

**Invariant:** a prefix that covers one half of a pair finds the pair.  The other half lies in
another folder (`index1` or the datatype's), which is searched too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jostler.format.names import BUNDLE_SUFFIX, INDEX, BundleName, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.storage import Storage

# The folder of an experiment in a prefix, and what comes after it.
_FOLDER_RE = re.compile(
    r"(?P<root>(?:.*/)?(?:v1|v2/[a-z0-9]+)/[^/]+)/(?P<folder>[^/]+)(?P<rest>/.*)?"
)


@dataclass(slots=True)
class Pairs:
    """The bundles below a prefix.

    Attributes:
        paired: data bundles, each with its index, or None if it has none.
        lonely: index bundles without a data bundle.
        others: objects whose names look like a bundle's but are not, with the reason.
    """

    paired: list[tuple[BundleName, BundleName | None]] = field(default_factory=list)
    lonely: list[BundleName] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def pairs(storage: Storage, prefix: str) -> Pairs:
    """List the bundles whose data object or index object has a name that begins with `prefix`.

    Raises:
        TransientError: a request to the bucket fails.
    """
    found = Pairs()
    data: dict[str, BundleName] = {}
    index: dict[str, BundleName] = {}
    for place in (prefix, *_other_halves(storage, prefix)):
        for name in _bundles(storage, place, found):
            if str(name).startswith(prefix) or _begins(other_half(name), prefix):
                (index if name.kind is Kind.INDEX else data)[name.pair] = name
    for pair, name in data.items():
        found.paired.append((name, index.pop(pair, None)))
    for name in index.values():
        # A running agent stores the data object before the index: a pair may be complete only now.
        if not any(_exists(storage, half) for half in other_half(name)):
            found.lonely.append(name)
    return found


def other_half(name: BundleName) -> list[BundleName]:
    """Name the index of a data bundle, or the data bundle of an index.

    An index does not say where a datatype with dashes ends, so there may be several candidates.
    """
    if name.kind is Kind.DATA:
        return [replace(name, kind=Kind.INDEX)]
    words = f"{name.datatype}-{name.node}".split("-")
    return [
        replace(name, kind=Kind.DATA, datatype="-".join(words[:n]), node="-".join(words[n:]))
        for n in range(1, len(words))
    ]


def _begins(names: list[BundleName], prefix: str) -> bool:
    return any(str(name).startswith(prefix) for name in names)


def _other_halves(storage: Storage, prefix: str) -> Iterator[str]:
    """Yield the prefixes below which the other halves lie."""
    found = _FOLDER_RE.fullmatch(prefix)
    if not found:
        return  # the prefix is above the folders: it covers both halves
    rest = found["rest"] or ""
    if found["folder"] != INDEX:
        yield f"{found['root']}/{INDEX}" + rest.replace(f"-{Kind.DATA}.", f"-{Kind.INDEX}.")
        return
    for folder in storage.folders(f"{found['root']}/"):
        if folder != INDEX:
            yield f"{found['root']}/{folder}" + rest.replace(f"-{Kind.INDEX}.", f"-{Kind.DATA}.")


def _bundles(storage: Storage, prefix: str, found: Pairs) -> Iterator[BundleName]:
    for info in storage.list(prefix):
        if not info.name.endswith(BUNDLE_SUFFIX):
            continue
        try:
            yield BundleName.parse(info.name)
        except ValueError as exc:
            found.others.append(str(exc))


def _exists(storage: Storage, name: BundleName) -> bool:
    return any(info.name == str(name) for info in storage.list(str(name)))
