"""Names of nodes, as the names of bundles contain them.

Pure.
"""

from __future__ import annotations

import re

MERGED = "compacted"
"""How the node part of a merged bundle's name begins; what follows is a hash of its rows."""

_NODE_RE = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_MERGED_ENDING_RE = re.compile(rf"-{MERGED}-[0-9a-f]{{32}}-", re.ASCII)
_MERGED_RE = re.compile(rf"(?:.+-)?{MERGED}-[0-9a-f]{{32}}", re.ASCII)
_HOST_V1_RE = re.compile(
    r"(?:[a-z.-]+[.-])?(mlab[1-4]d?)[.-]([a-z]{3}[0-9tc]{2})\.measurement-lab\.org", re.ASCII
)
_HOST_V2_RE = re.compile(
    r"(?:[a-z0-9-]+-)?(mlab[1-4]d?)-([a-z]{3}[0-9][0-9t])\.[a-z0-9-]+"
    r"\.measurement-lab\.org(?:-[a-z0-9]+)?",
    re.ASCII,
)
_HOST_V3_RE = re.compile(
    r"(?:[A-Za-z0-9]+-)?([A-Za-z]{3}[0-9]{1,10})-([0-9A-Za-z]{8})\.[A-Za-z0-9-]+\.[A-Za-z0-9-]+"
    r"\.measurement-lab\.org",
    re.ASCII,
)


def is_node(node: str) -> bool:
    """Return whether the name of a bundle may contain this node."""
    return _NODE_RE.fullmatch(node) is not None


def mlab_node(host: str) -> str:
    """Shorten an M-Lab host name of any of its three generations to `<machine>-<site>`.

    Examples: `mlab1.lga01.measurement-lab.org`, `ndt-mlab1-lga01.mlab-oti.measurement-lab.org`,
    `ndt-lga3356-c0a80001.rnp.autojoin.measurement-lab.org`, and the literal `third-party`.
    Source: the M-Lab host naming rules as github.com/m-lab/go/host implements them.

    Raises:
        ValueError: `host` has none of these forms.
    """
    if host == "third-party":
        return host
    if found := _HOST_V3_RE.fullmatch(host):
        return f"{found[2]}-{found[1]}"
    if found := _HOST_V2_RE.fullmatch(host) or _HOST_V1_RE.fullmatch(host):
        return f"{found[1]}-{found[2]}"
    raise ValueError(f"{host!r} is not an M-Lab host name")


def safe_node(name: str) -> str:
    """Make any node name usable in object names: characters outside `[A-Za-z0-9._-]` become `-`.

    Raises:
        ValueError: only dashes and dots would be left, or it is the name of a merged bundle.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name.strip()).strip(".-")
    if not safe:
        raise ValueError(f"{name!r} has no character that can stand in an object name")
    if is_merged_node(safe):
        raise ValueError(f"{name!r} stands for bundles that compaction has merged")
    return safe


def is_merged_node(node: str) -> bool:
    """Return whether the node part of a bundle's name is that of a merged bundle."""
    return _MERGED_RE.fullmatch(node) is not None


def is_merged_ending(ending: str) -> bool:
    """Return whether a part of a bundle's name, from the datatype on, is a merged bundle's."""
    return _MERGED_ENDING_RE.search(ending) is not None
