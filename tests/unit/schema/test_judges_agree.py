"""The fast judge against the exact one, on very many pairs of columns and documents."""

from __future__ import annotations

import os
from random import Random
from typing import TYPE_CHECKING

import pytest

from jostler.schema import Judge
from jostler.schema.slow import SlowJudge
from tests.unit.schema.pairs import Pairs

if TYPE_CHECKING:
    from jostler.schema import Fields

PAIRS = int(os.environ.get("JOSTLER_JUDGE_PAIRS", "30000"))
SEED = int(os.environ.get("JOSTLER_JUDGE_SEED", "") or Random().randrange(10**9))


@pytest.mark.timeout(3600)
def test_the_fast_judge_accepts_only_what_the_exact_one_accepts() -> None:
    """Alone, with the unknown nulls it has learned, and for many lines or documents at once."""
    good = lines = 0
    for columns, documents in Pairs(SEED).schemas(PAIRS):
        exact, judge = SlowJudge(columns), Judge(columns)
        accepted = []
        for document in documents:
            if judge.flaw(document) is None:
                accepted.append(document)
                assert exact.flaw(document) is None, told(columns, document)
        good += len(accepted)
        lines += lines_taken_at_once(columns, judge, exact, accepted, documents)

    assert good > PAIRS // 4, f"seed {SEED}: the pairs test little"
    assert lines > PAIRS // 50, f"seed {SEED}: hardly any lines were taken at once"


def lines_taken_at_once(
    columns: Fields, judge: Judge, exact: SlowJudge, accepted: list[bytes], documents: list[bytes]
) -> int:
    """Judge blocks of good lines with a strange one here and there; count what was taken."""
    rest = Random(len(accepted))
    taken = 0
    for at in range(0, len(accepted), 4):
        block = accepted[at : at + 4]
        if rest.random() < 0.4:
            block.append(rest.choice(documents))
        good = judge.count_good(block)
        flaws = [exact.flaw(document) is not None for document in block[: good + 1]]
        assert flaws == [False] * good + [True] * (good < len(block)), told(columns, str(block))
        text = b"".join(document + b"\n" for document in block)
        if judge.all_good(text):
            for line in text.split(b"\n")[:-1]:
                assert exact.flaw(line) is None, told(columns, text)
            taken += len(block)
    return taken


def told(columns: Fields, document: bytes | str) -> str:
    return f"run again with JOSTLER_JUDGE_SEED={SEED}: {document!r} for {columns}"
