"""Each failure has a class, which says who can do something about it."""

from __future__ import annotations

import pytest

from loader.errors import TRANSIENT, FailureClass, failure_class


@pytest.mark.parametrize(
    ("label", "text", "expected"),
    [
        ("backendError", "", "transient"),
        ("invalid", "job x: Could not parse", "data"),
        ("TooManyBad", "5 of 10 rows are bad", "data"),
        ("SchemaError", "its columns cannot become", "schema"),
        ("accessDenied", "", "permission"),
        ("WarehouseError", "job x: BigQuery refuses (403): no", "permission"),
        ("BucketError", "o: the server refuses (403): no", "permission"),
        ("WarehouseError", "127.0.0.1:1 refuses connections", "transient"),
        ("WarehouseError", "BigQuery refuses (429): Quota exceeded: jobs", "quota"),
        ("quotaExceeded", "", "quota"),
        ("SparkError", "Spark's JVM ran out of memory", "transient"),
        ("SparkError", "KeyError: 'x'", "bug"),
        ("Rejects", "3 rows were written", "bug"),
        ("", "", "bug"),
    ],
)
def test_a_failure_has_the_class_of_its_label_and_text(
    label: str, text: str, expected: str
) -> None:
    assert failure_class(label, text) == expected


def test_every_reason_that_bigquery_says_to_try_again_is_transient() -> None:
    """A retry within the run is for these only."""
    assert {failure_class(reason) for reason in TRANSIENT} == {FailureClass.TRANSIENT}
