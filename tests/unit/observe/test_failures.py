"""Which failures and reasons have a metric before they happen."""

from __future__ import annotations

import pytest

from jostler import errors
from jostler.agent.observe.series import FAILURES
from jostler.bundle.upload_stats import FailedAttempt

LEAVES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, errors.StorageError)
    and kind not in {errors.StorageError, errors.MissingError}
]


@pytest.mark.parametrize("kind", [*LEAVES, OSError, RuntimeError])
def test_each_class_of_failure_is_counted_from_zero(kind: type[Exception]) -> None:
    """An alert on an increase sees also the first failure of a class."""
    failure = FailedAttempt.of(kind("told"), "what", hint="", tries=1, next_try_s=0.0)

    assert failure.kind in FAILURES
