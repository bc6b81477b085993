"""Which metrics there are, and which a query asks for."""

from __future__ import annotations

import re

from tests.k8s.manifests import ROOT

PAGES = ("docs/metrics.md", "docs/loader.md", "docs/collect.md")
# What Prometheus itself makes, and what prometheus_client adds.
FOREIGN = {"up", "process_resident_memory_bytes"}
NAME_RE = re.compile(r"\b(?:jostler|autoloader|process)_[a-z0-9_]+")
SERIES_RE = re.compile(r"_(bucket|sum|count)$")


def documented() -> set[str]:
    """Return the names of the metrics that the pages describe in backquotes."""
    text = "".join((ROOT / page).read_text() for page in PAGES)
    return {name for code in re.findall(r"`([^`\n]+)`", text) for name in NAME_RE.findall(code)}


def asked_for(query: str) -> set[str]:
    """Return the names of the metrics in a query; a histogram's series count as the histogram."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)  # label values
    bare = re.sub(r"\{[^}]*\}", " ", bare)  # label names
    bare = re.sub(r"\b(?:by|without|on|ignoring)\s*\([^)]*\)", " ", bare)
    words = set(re.findall(r"\bup\b|" + NAME_RE.pattern, bare))
    return {SERIES_RE.sub("", word) for word in words}
