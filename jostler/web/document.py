"""One HTML document: its style and script are inline, and its policy allows exactly these.

**Invariant:** a document needs nothing but itself.  Its content security policy allows the inline
style and script by the hashes of their texts, and no other script, style or host.

Pure, except that `asset_text` reads a file of the package.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from jostler.web.html import Html, tag

if TYPE_CHECKING:
    from collections.abc import Iterable

CONTENT_TYPE = "text/html; charset=utf-8"


def asset_text(package: str, file: str) -> str:
    """Return the text of a package's file, such as a style sheet."""
    return files(package).joinpath(file).read_text(encoding="utf-8")


LOOK = asset_text(__package__, "look.css")
"""The style that all pages share: colours (light and dark), tables, cards, narrow screens."""


def policy(*, style: str, script: str = "", forms: bool = False) -> str:
    """Return the Content-Security-Policy of a document with this style and this script.

    Args:
        style: the text of the inline style element.
        script: the text of the inline script element; empty if there is none.
        forms: whether forms may be sent to the document's own server.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}" if script else "script-src 'none'",
            f"style-src {_hash(style)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'self'" if forms else "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def head(title: str, *more: Html) -> Html:
    """Make the head of a document.

    Args:
        title: the document's title.
        more: further elements, such as the style.
    """
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", title),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        *more,
    )


def document(head_: Html, body: Iterable[Html]) -> bytes:
    """Write a whole document in English, as UTF-8."""
    page = tag("html", head_, tag("body", *body), lang="en")
    return b"<!doctype html>\n" + page.markup.encode()
