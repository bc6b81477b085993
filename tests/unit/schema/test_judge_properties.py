"""The two judges agree: what the fast one accepts the exact one accepts, whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jostler.schema import Flaw, Judge, json_object_flaw
from jostler.schema.fast import FastJudge
from jostler.schema.slow import SlowJudge
from tests.unit.schema import documents

if TYPE_CHECKING:
    from jostler.schema import Fields

bounded = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@bounded
@given(documents.cases())
def test_documents_that_fit_are_good(case: tuple[Fields, bytes]) -> None:
    """A document made to fit its columns has no flaw, in any order, spelling and white space."""
    columns, document = case

    assert SlowJudge(columns).flaw(document) is None
    assert Judge(columns).flaw(document) is None


@bounded
@given(documents.spoiled())
def test_the_fast_judge_accepts_nothing_that_the_slow_one_refuses(
    case: tuple[Fields, bytes],
) -> None:
    """Of spoiled documents, too, the fast judge accepts only what the exact one accepts."""
    columns, document = case

    if FastJudge(columns).accepts(document):
        assert SlowJudge(columns).flaw(document) is None


@bounded
@given(documents.near_misses())
def test_the_judges_agree_near_the_border_of_a_type(case: tuple[Fields, bytes]) -> None:
    """What almost is a date, an offset, an int64 is not accepted by the fast judge either."""
    columns, document = case

    if FastJudge(columns).accepts(document):
        assert SlowJudge(columns).flaw(document) is None


@bounded
@given(documents.fields(), st.lists(st.sampled_from(documents.TOKENS), max_size=5))
def test_every_token_in_every_column_is_judged_alike(columns: Fields, tokens: list[bytes]) -> None:
    """A document of arbitrary tokens is accepted by the fast judge only if it is good."""
    pairs = [f'"{f.name}":'.encode() + t for f, t in zip(columns, tokens, strict=False)]
    document = b"{" + b",".join(pairs) + b"}"

    if FastJudge(columns).accepts(document):
        assert SlowJudge(columns).flaw(document) is None


@bounded
@given(documents.cases(), st.data())
def test_of_lines_taken_at_once_each_is_good(
    case: tuple[Fields, bytes], data: st.DataObject
) -> None:
    """Whatever stands between and in them: documents of several lines, several on one, none."""
    columns, document = case
    spoiled = data.draw(documents.spoil(columns, document))
    parts = [document, spoiled, document.replace(b"}", b"\n}"), b"{", b"}", b"{}", b"", b" ", b"\r"]
    some = data.draw(st.lists(st.sampled_from(parts), max_size=6))
    lines = data.draw(st.sampled_from([b"\n", b"\n", b"\n", b""])).join(some) + b"\n"
    exact = SlowJudge(columns)

    if Judge(columns).all_good(lines):
        assert [line for line in lines.split(b"\n")[:-1] if exact.flaw(line)] == []


@bounded
@given(documents.cases(), st.data())
def test_documents_are_counted_up_to_the_first_bad_one(
    case: tuple[Fields, bytes], data: st.DataObject
) -> None:
    """Whatever line feeds stand in and after them: each is judged as if it came alone."""
    columns, document = case
    spoiled = data.draw(documents.spoil(columns, document))
    parts = [document, document, document + b"\n", document.replace(b"}", b"\n}"), spoiled]
    parts += [document + b"\n" + document, b"", b"{", b"{}\n{}", b"\n"]
    some = data.draw(st.lists(st.sampled_from(parts), max_size=6))
    judge, exact = Judge(columns), SlowJudge(columns)

    flaws = [exact.flaw(one) is not None for one in some]
    assert judge.count_good(some) == (flaws.index(True) if True in flaws else len(some))


@bounded
@given(documents.cases(), st.integers(1, 5))
def test_lines_are_taken_at_once_when_the_fast_judge_takes_one(
    case: tuple[Fields, bytes], number: int
) -> None:
    """Else it would save nothing.  Tables with a column of type JSON are judged line by line."""
    columns, document = case
    fast = FastJudge(columns)
    line = document.replace(b"\n", b" ").strip()  # in JSON a line feed is white space

    wanted = fast.accepts(line) and not fast._has_json
    assert fast.accepts_lines((line + b"\n") * number) == wanted


@bounded
@given(documents.fields(), st.binary() | st.text().map(str.encode))
def test_any_bytes_get_an_answer(columns: Fields, document: bytes) -> None:
    """No input makes a judge raise, and what a flaw says can be encoded."""
    for flaw in (Judge(columns).flaw(document), json_object_flaw(document)):
        if flaw is not None:
            assert isinstance(flaw, Flaw)
            assert f"{flaw.reason} {flaw.field} {flaw.detail}".encode()


@bounded
@given(documents.spoiled())
def test_spoiled_documents_get_an_answer_that_can_be_written(case: tuple[Fields, bytes]) -> None:
    """A flaw found anywhere in a document is short and can be encoded."""
    columns, document = case

    for flaw in (Judge(columns).flaw(document), json_object_flaw(document)):
        if flaw is not None:
            assert len(flaw.detail.encode()) < 1000
            assert flaw.field.encode() is not None
