"""The archive's pages in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.catalogue import Query
from jostler.archive.load_status import LoadStatus
from jostler.archive.serve.tokens import BundleId, FileId
from jostler.storage import open_storage
from jostler.why.finding import Finding, State
from tests.browser.browser import DESKTOP, PHONE
from tests.browser.test_page import FAINT, PAPER
from tests.support.archive import DAY, PLACE, Entry, MadeArchive, at
from tests.support.serving import NoContents, Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from jostler.archive.catalogue import File
    from tests.browser.browser import Browser

HOSTILE = "<img src=x onerror=alert(1)>\u202e.json"
WALL = (3840, 2160)


class Told(NoContents):
    """Contents with a hostile value, and a finding."""

    def raw(self, file: File) -> bytes:
        return b'{"uuid":"</pre><script>document.title=1</script>","n":1.50}'

    def findings(self, file: File) -> list[Finding]:
        return [
            Finding(
                state=State.STORED,
                file=file.path,
                since=file.added,
                why="its row is in a data bundle",
                next="the loader loads it",
                evidence={"object": file.origin.url, "line": file.line},
            )
        ]


class Loads:
    """A ledger that has loaded one day."""

    def status(self, today: date) -> LoadStatus:
        return LoadStatus()

    def rows(self, datatype: str, day: date) -> list[dict[str, Any]]:
        if (datatype, day) != ("foo1", DAY):
            return []
        return [
            {
                "status": "failed",
                "finished": at(23),
                "reason": "new bundles",
                "rows_read": 3,
                "rows_loaded": 0,
                "rows_rejected": 1,
                "error": HOSTILE,
            }
        ]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Serve a small archive with everything that the pages can show."""
    made = MadeArchive(tmp_path_factory.mktemp("archive"))
    made.put(Entry(name=f"{n:03}.json", start=at(n / 10), work_id="job-1") for n in range(120))
    made.put([Entry(name="late.json", start=at(30))], node="n2-with-a-very-long-name" * 4)
    made.put([Entry(name=HOSTILE, start=at(5))], datatype="bar1")
    made.put_rejected([("foo1", "type"), ("foo1", "not-json"), ("bar1", "name")])
    with Serving() as started:
        started.show_made(made, contents=Told(), ledger=Loads())
        started.made = made  # type: ignore[attr-defined]
        yield started


@pytest.fixture(scope="module")
def a_file(serving: Serving) -> File:
    made: MadeArchive = serving.made  # type: ignore[attr-defined]
    catalogue = BucketCatalogue(open_storage(made.url), [PLACE])
    return next(iter(catalogue.files(Query(datatypes=("foo1",)))))


PAGES = {
    "overview": ("/", "Files by datatype and day"),
    "datatype": ("/datatype/foo1?sort=last", "2 nodes"),
    "node": ("/node/n1", "not-json"),
    "node's day": (f"/node/n1?day={DAY}", f"Files of {DAY}"),
    "day": (f"/day/foo1/{DAY}", "Loads into BigQuery"),
    "bundle": ("bundle", "Bundle of 120 files"),
    "file": ("file", "Where is it?"),
    "search by name": ("/search?q=00*.json", "Files named 00*.json"),
    "search by job": ("/search?q=JOB-1", "Files of the job JOB-1"),
    "search by time": (f"/search?q={DAY}T03", "Files at"),
    "search for nothing": ("/search?q=", "Type a file's name"),
    "no page": ("/nowhere", "there is no such page"),
}


def address(serving: Serving, path: str, file: File) -> str:
    tokens = {"bundle": f"/bundle/{BundleId.of(file)}", "file": f"/file/{FileId.of(file)}"}
    return serving.url + tokens.get(path, path)


@pytest.mark.parametrize("page", PAGES)
def test_each_page_says_its_thing_and_fits(
    browser: Browser, serving: Serving, a_file: File, page: str
) -> None:
    """On a phone in the dark and on a desk in the light: no sideways scrolling, no faint text."""
    path, said = PAGES[page]
    for size, dark in ((DESKTOP, False), (PHONE, True)):
        browser.fresh(size=size, dark=dark, scripts=False)
        browser.driver.get(address(serving, path, a_file))

        browser.command("Emulation.setScriptExecutionDisabled", value=False)
        assert said in browser.text()
        width, wide = browser.run("return [innerWidth, document.documentElement.scrollWidth]")
        assert wide <= width
        assert (browser.run(PAPER) < 0.1) is dark
        assert browser.run(FAINT) == []
        shown = [line for line in browser.complaints() if "404" not in line]
        assert [line for line in shown if "favicon" not in line] == []


def test_a_name_that_is_markup_is_shown_and_not_run(browser: Browser, serving: Serving) -> None:
    browser.driver.get(f"{serving.url}/day/foo1/{DAY}")
    assert "<img src=x onerror=alert(1)>" in browser.text()
    browser.driver.get(f"{serving.url}/search?q=<img*")

    assert r"<img src=x onerror=alert(1)>\u202e.json" in browser.text()
    assert browser.run("return [document.images.length, document.scripts.length]") == [0, 0]


def test_a_file_shows_its_content_as_text_with_its_own_numbers(
    browser: Browser, serving: Serving, a_file: File
) -> None:
    browser.driver.get(address(serving, "file", a_file))

    assert '"n":1.50' in browser.text()
    assert "</pre><script>" in browser.text()
    assert browser.driver.title != "1"
    assert "001.json" in browser.text()  # a neighbour in time


def test_the_search_box_finds_a_file(browser: Browser, serving: Serving) -> None:
    browser.driver.get(serving.url)
    box = browser.driver.find_element("id", "q")
    box.send_keys("late.json")
    box.submit()
    browser.driver.find_element("link text", f"{DAY:%Y/%m/%d}/late.json").click()

    assert "Where is it?" in browser.text()
    assert "its row is in a data bundle" in browser.text()


def test_the_overview_marks_days_with_rejects_and_leads_to_them(
    browser: Browser, serving: Serving
) -> None:
    browser.driver.get(serving.url)
    square = browser.driver.find_element("css selector", "a.rejects[aria-label*='2 rejected']")
    assert f"{DAY}: 121 files" in str(square.get_attribute("title"))
    square.click()

    assert f"foo1 on {DAY}" in browser.text()
    assert "failed" in browser.text()


def test_a_wall_screen_shows_the_overview_without_waste_of_words(
    browser: Browser, serving: Serving
) -> None:
    browser.fresh(size=WALL)
    browser.driver.get(serving.url)

    assert "foo1" in browser.text()
    assert browser.run("return document.documentElement.scrollHeight <= innerHeight")
