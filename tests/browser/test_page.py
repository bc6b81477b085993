"""The status page in a real browser, served by the agent's own server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.browser import documents
from tests.browser.browser import DESKTOP, PHONE
from tests.support.agent import RunningAgent, arguments
from tests.support.spool import DATATYPE, Spool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.browser.browser import Browser
    from tests.browser.site import Site

WAIT_S = 60.0
REFRESH = "document.dispatchEvent(new Event('visibilitychange'))"
LUMINANCE = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const luminance = ([r, g, b]) => {
  const linear = [r / 255, g / 255, b / 255].map(
    (c) => c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
  return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2];
};
const paper = (e) => {
  for (; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
"""
FAINT = (
    LUMINANCE
    + """
const faint = [];
for (const e of document.querySelectorAll("main *, header *, footer *, #live *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.nodeValue.trim());
  if (!own || !e.checkVisibility() || e.namespaceURI.endsWith("svg")) continue;
  const [one, other] = [parse(getComputedStyle(e).color), paper(e)].map(luminance);
  const contrast = (Math.max(one, other) + .05) / (Math.min(one, other) + .05);
  if (contrast < 4.5) faint.push(`${contrast.toFixed(1)} ${e.textContent.slice(0, 40)}`);
}
return faint;
"""
)
PAPER = LUMINANCE + "return luminance(paper(document.body));"


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


def refresh_until(browser: Browser, text: str) -> None:
    """Let the page ask again until it shows a text."""

    def shown() -> bool:
        browser.run(REFRESH)
        return text in browser.text()

    until(shown, text)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("state", documents.STATES)
def test_the_page_says_all_and_fits(
    browser: Browser, site: Site, state: str, size: tuple[int, int], dark: bool
) -> None:
    """In each state, width and colour: the words, no sideways scrolling, no complaint."""
    site.document = documents.STATES[state]()
    browser.fresh(size=size, dark=dark)

    browser.driver.get(site.url)

    assert site.document["health"]["headline"] in browser.text()
    width, wide = browser.run("return [innerWidth, document.documentElement.scrollWidth]")
    assert width == size[0]
    assert wide <= width
    assert (browser.run(PAPER) < 0.1) is dark
    assert browser.run(FAINT) == []
    assert browser.complaints() == []


def test_a_file_name_that_is_markup_is_shown_and_not_run(browser: Browser, site: Site) -> None:
    """A rejected file's name is text, letter by letter; what hides or moves text is spelt out."""
    site.document = documents.bucket_down()

    browser.driver.get(site.url)
    site.document["now"] = "2026-11-21T07:40:05Z"
    refresh_until(browser, "07:40:05")

    assert documents.HOSTILE in browser.text()
    assert r"photo\u202egnp.json\x1b[31m" in browser.text()
    assert browser.run("return document.images.length") == 0
    assert browser.run("return document.scripts.length") == 1
    assert browser.run("return document.title") != "taken"
    assert browser.complaints() == []


def test_a_script_that_got_into_the_page_would_not_run(browser: Browser, site: Site) -> None:
    """The policy is the second wall: even an injected script or handler does nothing."""
    browser.driver.get(site.url)

    browser.run(
        "const s = document.createElement('script'); s.textContent = 'document.title = \"taken\"';"
        "document.body.append(s);"
        "document.body.insertAdjacentHTML('beforeend', '<b onclick=\"document.title=1\">x</b>');"
        "document.body.lastChild.click();"
    )

    assert browser.run("return document.title") not in {"taken", "1"}
    assert all("Content Security Policy" in line for line in browser.complaints())


def test_the_page_is_readable_without_scripts(browser: Browser, site: Site) -> None:
    """Everything is there and drawn, and the page comes again by itself."""
    site.document = documents.bucket_down()
    browser.fresh(scripts=False)

    browser.driver.get(site.url)

    for text in (
        "Nothing is lost: 1,204 files wait on disk.",
        "Check the bucket, the network and the service account",
        "storage.googleapis.com answers HTTP 503 Service Unavailable",
        "wait; if it lasts, look at the provider's status page",
        "age in 51 min, or 13.0 MiB more",
        "20261121T053000.000000Z-ndt7-mlab1-lga0t-ndt-data.jsonl.gz",
        "expected FLOAT, found a string",
    ):
        assert text in browser.text()
    assert len(browser.driver.find_elements("css selector", "figure svg.plot path")) >= 5
    assert not browser.driver.find_element("id", "live").is_displayed()
    assert browser.driver.find_elements("css selector", "noscript meta[http-equiv=refresh]")
    assert browser.complaints() == []


def test_what_changes_appears_while_scroll_and_open_parts_stay(
    browser: Browser, site: Site
) -> None:
    """The page changes in place: same elements, same view, same open parts, same focus."""
    site.document = documents.thousand_rejects()
    browser.driver.get(site.url)
    browser.run(
        "document.querySelector('details[data-key=\"ndt7 Rejected\"]').open = true;"
        "document.querySelector('h1').mine = true;"
        "document.querySelector('details.card summary').focus({preventScroll: true});"
        "scrollTo(0, 900);"
        "window.seen = document.elementFromPoint(200, 300);"
        "window.stood = seen.getBoundingClientRect().top;"
    )

    site.document["health"]["headline"] = "Something else is so."
    site.document["health"]["level"] = "bad"
    site.document["datatypes"][0]["rejected"].insert(
        0, {"file": "new.json", "reason": "type", "field": "", "detail": "", "at": None}
    )
    site.document["datatypes"].append(documents.datatype("scamper1"))
    refresh_until(browser, "Something else is so.")

    assert "new.json" in browser.text()
    assert "scamper1" in browser.text()
    assert browser.run("return document.querySelector('h1').mine") is True
    assert browser.run("return document.querySelector('details[data-key]').open") is True
    assert browser.run("return document.activeElement.textContent") == "About this agent"
    assert browser.run("return Math.abs(seen.getBoundingClientRect().top - stood)") < 1
    assert "Something else is so." in browser.driver.title
    order = "return [...document.querySelectorAll('section.datatype h2')].map(e => e.innerText)"
    assert browser.run(order) == ["ndt7", "annotation2", "scamper1"]
    site.document["datatypes"].pop(0)
    site.document["health"]["headline"] = "One went."
    refresh_until(browser, "One went.")
    assert browser.run(order) == ["annotation2", "scamper1"]
    assert browser.complaints() == []


def test_the_page_asks_by_itself_until_it_is_paused(browser: Browser, site: Site) -> None:
    """Nobody has to do anything for it to be live; the button stops it."""
    browser.driver.get(site.url)
    before = site.requests

    until(lambda: site.requests > before, "the page asks by itself")
    pause = browser.driver.find_element("id", "live-pause")
    pause.click()
    assert "Paused" in browser.text()
    until(lambda: not browser.run("return document.querySelector('#live.silent')"), "all is quiet")
    asked = site.requests
    browser.run(REFRESH)
    assert site.requests == asked
    pause.click()
    until(lambda: site.requests > asked, "it asks at once when it goes on")


def test_the_page_says_that_the_agent_answers_no_more(browser: Browser, site: Site) -> None:
    """What it said last stays, marked as such; when it is back the page is live again."""
    browser.driver.get(site.url)

    site.go_away()
    refresh_until(browser, "The agent has not answered since")

    assert site.document["health"]["headline"] in browser.text()
    assert browser.run("return document.body.classList.contains('stale')") is True
    site.come_back()
    refresh_until(browser, "Live")
    assert "has not answered" not in browser.text()
    assert all("ERR_CONNECTION_REFUSED" in line for line in browser.complaints())


def test_the_page_is_usable_by_keyboard(browser: Browser, site: Site) -> None:
    """Tab reaches the button, the links and what can be unfolded, and shows where it is."""
    site.document = documents.thousand_rejects()
    browser.driver.get(site.url)
    reached = []

    for _ in range(60):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        name, text, outline = browser.run(
            "const e = document.activeElement;"
            "return [e.nodeName, e.innerText, getComputedStyle(e).outlineStyle]"
        )
        reached.append(f"{name} {text}")
        assert outline != "none"
        if text == "994 more":
            ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
        if text == "metrics":
            break

    assert reached[0] == "BUTTON Pause"
    assert {"A ndt7", "SUMMARY 994 more", "SUMMARY About this agent"} <= set(reached)
    assert browser.run("return document.querySelector('details[data-key]').open") is True
    assert "ndt7-000200.json" in browser.text()


def test_a_running_agent_shows_what_it_did(browser: Browser, tmp_path: Path) -> None:
    """From a file's close to the page: stored bundle and reject of a real agent."""
    spool = Spool(tmp_path / "spool")
    spool.write_many(5)
    spool.write("<i>bad\u202e.json", b'{"Rate": "fast"}')
    (tmp_path / "bucket").mkdir()
    argv = arguments(
        spool,
        f"file://{tmp_path}/bucket",
        *("-prometheusx.listen-address", "127.0.0.1:0", "-bundle-age-max", "1s"),
        *("-settle-age", "0s", "-missed-age", "0s"),
    )

    with RunningAgent(*argv) as agent:
        port = agent.wait_for("status.listening")["port"]
        browser.driver.get(f"http://127.0.0.1:{port}/")
        refresh_until(browser, "5 files of")
        refresh_until(browser, "<i>bad\\u202e.json")
        assert DATATYPE in browser.text()
        assert browser.run("return document.querySelectorAll('main i').length") == 0
        assert browser.complaints() == []
