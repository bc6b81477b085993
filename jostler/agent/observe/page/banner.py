"""The banner of the status page: whether all is well, and if not, what is wrong and what to do.

**Invariant:** an unknown level is shown like `attention`.  Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostler.agent.observe.page.facts import Facts, mapping, several
from jostler.web.html import NOTHING, Html, join, tag
from jostler.web.parts import when
from jostler.words import text

if TYPE_CHECKING:
    from datetime import datetime

_UNKNOWN = "attention"
# The signs differ in shape, too, so that they can be told apart without colours.
_SIGNS = {
    "ok": "M3 8.5l3.2 3.2L13 4.8",
    "attention": "M8 3.2v6M8 11.8v.8",
    "bad": "M4.2 4.2l7.6 7.6M11.8 4.2l-7.6 7.6",
}
_COLOURS = {"ok": "#1a7f4b", "attention": "#a15c00", "bad": "#c0271c"}
_WORDS = {"ok": "All is well.", "attention": "Something asks for attention.", "bad": "Not well."}


def level_of(facts: Facts) -> str:
    """Return the level of a health or a problem, `ok`, `attention` or `bad`."""
    level = text(facts.get("level"))
    return level if level in _SIGNS else _UNKNOWN


def headline(document: Facts) -> str:
    """Return the banner's sentence."""
    health = mapping(document.get("health"))
    return text(health.get("headline")) or _WORDS[level_of(health)]


def banner(document: Facts, now: datetime | None) -> Html:
    """Show the headline, and each problem with what to do about it."""
    health = mapping(document.get("health"))
    level = level_of(health)
    problems = [_problem(problem, now) for problem in several(health.get("problems"))]
    since = NOTHING
    if text(health.get("since")) and not problems:
        since = tag("p", "Since ", when(health.get("since"), now), class_="since")
    return tag(
        "section",
        sign(level),
        tag("div", tag("h1", headline(document)), since),
        tag("ul", *problems) if problems else NOTHING,
        class_=f"banner {level}",
        aria_label="Health",
    )


def icon(document: Facts) -> Html:
    """Make the browser tab's icon, whose colour is that of the level."""
    colour = _COLOURS[level_of(mapping(document.get("health")))].replace("#", "%23")
    drawn = (
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>"
        f"<circle cx='8' cy='8' r='7' fill='{colour}'/></svg>"
    )
    return tag("link", rel="icon", href=f"data:image/svg+xml,{drawn}")


def _problem(problem: Facts, now: datetime | None) -> Html:
    code = text(problem.get("code"))
    hint = text(problem.get("hint"))
    parts = [tag("b", text(problem.get("text")) or code)]
    if text(problem.get("since")):
        parts += [Html(" "), tag("span", "since ", when(problem.get("since"), now), class_="ago")]
    runbook = _runbook(code, text(problem.get("runbook")))
    return tag(
        "li",
        sign(level_of(problem)),
        tag("div", tag("p", *parts), tag("p", hint, runbook, class_="hint")),
        class_=level_of(problem),
        data_key=f"problem {code}",
    )


def _runbook(code: str, url: str) -> Html:
    """Name the runbook's section, as a link if the runbook's address is known."""
    if not code:
        return NOTHING
    section = tag("code", code.replace("_", "-"))
    if url.startswith("https://"):
        section = tag("a", section, href=url, rel="noreferrer")
    return join([" Runbook: ", section, "."])


def sign(level: str) -> Html:
    """Draw the sign of a level."""
    return tag(
        "svg",
        tag("path", d=_SIGNS[level]),
        class_="sign",
        viewBox="0 0 16 16",
        role="img",
        aria_label=level,
    )
