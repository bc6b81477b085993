"""One browser for all these tests, and a server whose page each test chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser import documents
from tests.browser.browser import Browser, missing
from tests.browser.site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def one_browser() -> Iterator[Browser]:
    """Start the browser, or skip for want of one."""
    if lacking := missing():
        pytest.skip(f"no browser: {lacking}")
    with Browser() as started:
        yield started


@pytest.fixture
def browser(one_browser: Browser) -> Browser:
    """Give the browser with an empty page and default settings."""
    one_browser.fresh()
    return one_browser


@pytest.fixture(scope="session")
def one_site() -> Iterator[Site]:
    """Start the server."""
    with Site() as served:
        yield served


@pytest.fixture
def site(one_site: Site) -> Site:
    """Serve the page of a document, at first of an agent that is well."""
    one_site.document = documents.well()
    return one_site
