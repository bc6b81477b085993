"""The page of a bundle: its objects, and its files.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler import words
from jostler.archive.serve.pages.layout import (
    Site,
    bundle_url,
    card,
    datatype_url,
    day_url,
    file_url,
    instant,
    link,
    node_url,
    page,
    pager,
    table,
)
from jostler.web.parts import fact_list, name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.archive.catalogue import Bundle, File


def bundle(
    site: Site,
    sums: Bundle,
    files: Sequence[File],
    *,
    following: str | None,
    problems: Sequence[str],
) -> bytes:
    """Write the page.

    Args:
        site: what all pages share.
        sums: the bundle.
        files: some of its files, at least one, in the order of lines.
        following: the cursor of the next files; None if there are no more.
        problems: what could not be read.
    """
    origin = sums.origin
    heads = ["File", "Line", "Begins", "Size", "Hash"]
    rows = [
        (
            link(words.shown(one.path), file_url(one)),
            f"{one.line:,}",
            instant(one.begin, site.now),
            words.size(one.size),
            name(one.hash),
        )
        for one in files
    ]
    more = f"{bundle_url(files[0])}?cursor={following}" if following else None
    return page(
        site,
        f"Bundle of {words.counted(sums.files, 'file')}",
        card(
            "About",
            fact_list(
                [
                    ("datatype", link(origin.datatype, datatype_url(origin.datatype))),
                    ("node", link(origin.node, node_url(origin.node))),
                    ("data", name(origin.url)),
                    ("index", name(f"{origin.bucket}/{origin.index}")),
                    ("files", f"{sums.files:,}, {words.size(sums.size_bytes)}"),
                    ("stored", words.size(sums.packed_bytes) if sums.packed_bytes else ""),
                    ("first", instant(sums.first, site.now)),
                    ("last", instant(sums.last, site.now)),
                ]
            ),
        ),
        card("Files", table(heads, rows, numbers=[1, 3]), pager(None, more)),
        trail=[
            ("archive", "/"),
            (origin.datatype, datatype_url(origin.datatype)),
            (str(origin.day), day_url(origin.datatype, origin.day)),
        ],
        problems=problems,
    )
