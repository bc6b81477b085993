"""How uploads fare: the same error of many bundles is one error with counts."""

from __future__ import annotations

import errno

import pytest

from jostler.bundle import FailedAttempt, UploadStats
from jostler.bundle.upload_stats import ERRORS_KEPT, OBJECTS_KEPT
from jostler.errors import TransientError, stable_text


def failure(exc: Exception, what: str, tries: int = 1) -> FailedAttempt:
    return FailedAttempt.of(exc, what, hint="wait", tries=tries, next_try_s=1.0)


def test_an_error_of_many_bundles_is_told_once_with_its_counts() -> None:
    """Also when each message names another object; the newest stands first."""
    stats = UploadStats()
    for number in range(3):
        name = f"bundle{number}"
        stats.failed("foo1", name, failure(TransientError(f"{name}: x", cause="x"), name))
    stats.failed("foo1", "bundle0", failure(TransientError("bundle0: x", cause="x"), "bundle0"))
    stats.failed("foo1", "bundle9", failure(OSError(errno.ENOSPC, "No space left"), "journal"))

    journal, network = stats.counts().errors

    assert (journal.last.text, journal.times, journal.failing) == ("No space left", 1, 1)
    assert (network.last.text, network.times, network.failing) == ("x", 4, 3)
    assert network.objects == ("bundle1", "bundle2", "bundle0")
    stats.ended("bundle1", "bundle1")
    assert stats.counts().errors[1].failing == 2


def test_what_is_remembered_of_errors_is_bounded() -> None:
    """Whatever a server makes up."""
    stats = UploadStats()
    for number in range(3 * ERRORS_KEPT):
        stats.failed("foo1", "b", failure(TransientError(f"error {number}"), "b"))
    assert len(stats.counts().errors) == ERRORS_KEPT
    for number in range(3 * OBJECTS_KEPT):
        stats.failed("foo1", "b", failure(TransientError("one", cause="one"), f"object {number}"))
    assert len(stats.counts().errors[0].objects) == OBJECTS_KEPT


@pytest.mark.parametrize(
    ("exc", "words"),
    [
        (OSError(errno.ENOSPC, "No space left", "/state/x.tmp"), "/state: No space left"),
        (OSError(errno.ENOSPC, "No space left"), "No space left"),
        (OSError("odd"), "odd"),
        (ValueError(), "ValueError"),
        (TransientError("gs://b/o: h refuses", cause="h refuses"), "h refuses"),
        (TransientError("gs://b/o: odd"), "gs://b/o: odd"),
    ],
)
def test_an_error_is_told_without_what_changes_from_one_to_the_next(
    exc: Exception, words: str
) -> None:
    """Neither numbers nor names of temporary files or objects."""
    assert stable_text(exc) == words
