"""Translation expressions: what is one, what it makes of a name, and what is said of mistakes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jostler.format.translation import Translation, UntranslatableError

NAME = "2026/01/02/job7-a.json"


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        (r"(?P<y>\d+)/(?P<m>\d+)/(?P<d>\d+)/~{y}-{m}-{d}T00:00:00Z", "2026-01-02T00:00:00Z"),
        (r".*/(?P<job>[^-]+)-~{job}", "job7"),
        (r"(?P<y>\d+)~{{{y}}}{y}", "{2026}2026"),
        (r"(?P<none>x?)~{none}", ""),
    ],
)
def test_an_expression_makes_a_text_of_a_name(expression: str, made: str) -> None:
    """By its named groups, from the beginning of the name."""
    assert Translation.parse(expression).of(NAME) == made


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (r"(?P<job>job\d)~{job}", "does not match the beginning"),
        (r"(?P<a>x)?.*~{a}", "the group 'a' matches nothing"),
    ],
)
def test_a_name_that_does_not_match_has_no_translation(expression: str, told: str) -> None:
    """It is told why; matching somewhere in the middle is no match."""
    with pytest.raises(UntranslatableError, match=told):
        Translation.parse(expression).of(NAME)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("(?P<a>x)", "has 0 times `~`"),
        ("(?P<a>x)~{a}~", "has 2 times `~`"),
        ("(?P<a>~{a}", "is not a regular expression: .*unterminated"),
        ("(x)~{0}", "has no named group"),
        ("(?P<a>x)~{b}", r"\{b\} is none of \{a\}"),
        ("(?P<a>x)~{}", r"\{\} is none of \{a\}"),
        ("(?P<a>x)~{a.b}", r"\{a.b\} is none of"),
        ("(?P<a>x)~{a[0]}", "is none of"),
        ("(?P<a>x)~{a!r}", "is none of"),
        ("(?P<a>x)~{a:>9}", "is none of"),
        ("(?P<a>x)~a", r"has no \{group\}"),
        ("(?P<a>x)~{a", "is not a format: .*expected '}'"),
        ("(?P<a>x)~}{a}", "is not a format: Single '}'"),
        ("~", "has no named group"),
    ],
)
def test_what_is_wrong_with_an_expression_is_said(expression: str, told: str) -> None:
    """At the start, before any file."""
    with pytest.raises(ValueError, match=told):
        Translation.parse(expression)


@given(st.text(alphabet="ab(?P<>)~{}!:.[]0*+\\", max_size=25), st.text(max_size=10))
@example("(?P<a>a)~{a!}", "a")
@example("(?P<a>a)~{a:{b}}", "a")
def test_any_text_is_an_expression_or_refused_and_then_makes_text_or_nothing(
    expression: str, name: str
) -> None:
    """No other error, whatever the name."""
    try:
        parsed = Translation.parse(expression)
    except ValueError:
        return
    with suppress(UntranslatableError):
        assert isinstance(parsed.of(name), str)
