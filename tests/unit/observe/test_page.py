"""The status page: whatever a document holds, it stays text, and the page is whole."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.agent.observe.page import CONTENT_SECURITY_POLICY, render
from jostler.agent.observe.page.chart import COLUMNS, Chart, Measure, Shape
from jostler.agent.observe.page.page import SCRIPT, STYLE
from jostler.words import visible
from tests.browser import documents

if TYPE_CHECKING:
    from collections.abc import Iterator

EMPTY_ELEMENTS = {"meta", "link"}
ADDRESSES = re.compile(r"https://|#datatype-|/status\.json$|/metrics$|data:image/svg\+xml,<svg ")
PLAIN = "plain"
NASTY = st.one_of(
    st.text(min_size=1),
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            '"><img src=x onerror=alert(1)>',
            "' onmouseover='alert(1)",
            "</title></style></script><svg onload=alert(1)>",
            "<!-- --><![CDATA[ ]]>&lt;&amp;&#x3c;",
            "javascript:alert(1)",
            "a\u202eb\u2066c\x00d\x1b[31m\ud800\u2028",
        ]
    ),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


class Page(HTMLParser):
    """A parsed page: its elements with their attributes, and its texts."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.shape: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, *(name for name, _ in attrs)))
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in EMPTY_ELEMENTS:
            self._open.append(tag)
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1:] = [self.texts[-1] + data] if self.texts else []

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


def with_strings(
    value: Any,  # noqa: ANN401 - JSON in, JSON out
    strings: Iterator[str],
    kept: frozenset[str],
    key: str = "",
) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """Return a document with its strings replaced, except in members named in `kept`."""
    if isinstance(value, dict):
        return {name: with_strings(part, strings, kept, name) for name, part in value.items()}
    if isinstance(value, list):
        return [with_strings(part, strings, kept, key) for part in value]
    return next(strings) if isinstance(value, str) and key not in kept else value


def taking(strings: list[str]) -> Iterator[str]:
    while True:
        yield from strings


STEERING = frozenset({"level", "link", "kind", "now", "end"})
INSTANTS = frozenset(
    {"since", "started", "heartbeat", "failing_since", "oldest", "opened", "seals_at", "sealed"}
    | {"at", "last_arrival", "last_success"}
)


@settings(max_examples=15, deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=5))
def test_no_string_of_a_document_becomes_markup(strings: list[str]) -> None:
    """The page of any strings has the elements and attributes of the page of plain ones."""
    document, kept = documents.bucket_down(), STEERING | INSTANTS

    hostile = Page(render(with_strings(document, taking(strings), kept)))
    plain = Page(render(with_strings(document, taking([PLAIN]), kept)))

    def elements(page: Page) -> list[tuple[str, ...]]:
        """Leave out titles, which say what a long name was cut from."""
        return [tuple(name for name in one if name != "title") for one in page.shape]

    assert elements(hostile) == elements(plain)
    assert not [name for name, _ in hostile.attributes if name.startswith("on")]


@settings(max_examples=15, deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=5))
def test_any_string_anywhere_leaves_script_style_and_links_ours(strings: list[str]) -> None:
    """Instants, levels and links included: one script, one style, addresses only of our making."""
    page = Page(render(with_strings(documents.bucket_down(), taking(strings), frozenset())))

    tags = [shape[0] for shape in page.shape]
    assert tags.count("script") == tags.count("style") == 1
    assert SCRIPT in page.texts
    assert STYLE in page.texts
    assert {"img", "iframe", "form", "object", "base", "embed"}.isdisjoint(tags)
    addresses = [value for name, value in page.attributes if name in {"href", "src"}]
    assert [one for one in addresses if not ADDRESSES.match(one)] == []


@settings(max_examples=15, deadline=None)
@given(NASTY)
def test_a_name_is_shown_as_it_is_with_the_invisible_spelt_out(name: str) -> None:
    """The text that a reader gets is the name, and nothing of the page is unprintable."""
    document = documents.well()
    document["datatypes"][0]["rejected"] = documents.rejects(1)
    document["datatypes"][0]["rejected"][0]["file"] = name

    rendered = render(document)

    assert visible(name if len(name) <= 200 else name[:200] + "…") in Page(rendered).texts
    ours = rendered.decode().replace(STYLE, "").replace(SCRIPT, "")
    assert ours.removeprefix("<!doctype html>\n").isprintable()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_document_that_is_damaged_anywhere_still_gives_a_page(data: st.DataObject) -> None:
    """A part of an unexpected kind is left out or shown as it is; the page never fails for it."""
    document = json.loads(json.dumps(documents.bucket_down()))
    place: Any = document
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JUNK)

    Page(render(document))


def test_an_empty_document_gives_a_page() -> None:
    """Nothing known: the page asks for attention."""
    page = Page(render({}))

    assert "Something asks for attention." in page.texts


def test_the_policy_allows_this_script_and_this_style_and_nothing_else() -> None:
    """Both by hash; no inline handler, no style attribute, nothing from elsewhere."""
    page = Page(render(documents.well()))

    for kind, text in (("script", SCRIPT), ("style", STYLE)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'; ")
    assert not [name for name, _ in page.attributes if name == "style"]


@pytest.mark.parametrize("state", documents.STATES)
def test_the_page_says_what_the_document_says(state: str) -> None:
    """Headline, problems and hints are there in words, whatever the state."""
    document = documents.STATES[state]()
    page = Page(render(document))

    assert document["health"]["headline"] in page.texts
    for problem in document["health"]["problems"]:
        assert problem["text"] in page.texts
        assert problem["hint"] in "".join(page.texts)


def test_a_problem_leads_to_the_runbook_and_marks_its_datatypes() -> None:
    """By the address in the document; only https is taken for one."""
    document = documents.bucket_down()
    document["health"]["problems"][1]["runbook"] = "javascript:alert(1)"

    page = Page(render(document))

    links = [value for name, value in page.attributes if name == "href"]
    assert "https://docs.example.org/runbook.md#uploads-failing" in links
    assert not [link for link in links if link.startswith("javascript")]
    assert ("class", "wrong bad") in page.attributes
    assert "of 20.0 GiB; full in 1 d 7 h" in page.texts


def test_a_thousand_rejects_make_no_endless_page() -> None:
    """The first ones are shown, more are folded, the rest is counted."""
    page = render(documents.thousand_rejects())

    assert len(page) < 400_000
    assert "994 more" in Page(page).texts
    assert "700 more are in /status.json." in Page(page).texts


def test_only_a_bundle_in_a_bucket_has_a_link() -> None:
    """A `file://` bundle is a name and no more."""
    document = documents.well()
    first, second = document["datatypes"][0]["stored"][:2]
    first["link"], second["link"] = None, "javascript:alert(1)"

    page = Page(render(document))

    links = [value for name, value in page.attributes if value.startswith("https://")]
    assert len(links) == 4
    assert first["url"].rsplit("/", 1)[1] in page.texts


def chart(values: list[float | None], shape: Shape, measure: Measure = Measure.FILES) -> Page:
    drawn = Chart(
        title="T", measure=measure, per="", shape=shape, values=values, step_s=60, end=documents.NOW
    ).draw()
    return Page(drawn.markup.encode())


def paths(page: Page) -> list[str]:
    return [value for name, value in page.attributes if name == "d"]


def test_what_is_not_known_is_a_gap() -> None:
    """Three known stretches are three lines, the lone one a dot; a gap has no title either."""
    page = chart([1, 2, None, 3, None, None, 4, 5, 6], Shape.LINE)

    assert [path.count("L") for path in paths(page)] == [1, 0, 2]
    assert len([text for text in page.texts if re.match(r"\d\d:\d\d to ", text)]) == 6


def test_a_bar_says_when_and_how_many() -> None:
    """The pointer on the last minute tells that minute; the axis is round and above it."""
    page = chart([0.0] * 59 + [37.0], Shape.BARS)

    assert "07:39 to 07:40: 37 files" in page.texts
    assert {"40", "20", "0", "07:00", "07:30"} <= set(page.texts)


@given(st.lists(st.none() | st.floats(0, 1e300), max_size=1500), st.sampled_from(Shape))
@settings(max_examples=25, deadline=None)
def test_a_chart_is_bounded_and_stays_in_its_frame(
    values: list[float | None], shape: Shape
) -> None:
    """However long the history: at most `COLUMNS` columns, and nothing above the frame."""
    page = chart(values, shape)

    assert sum(one[0] == "rect" for one in page.shape) <= COLUMNS
    for path in paths(page):
        heights = [float(y) for y in re.findall(r"[ML][\d.]+ (-?[\d.]+)", path)]
        assert all(-0.1 <= height <= 110.1 for height in heights)
