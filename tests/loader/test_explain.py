"""Each failure is a sentence for the producer and a paragraph for the operator."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from loader.errors import REFUSALS, FailureClass
from loader.explain import Flaw, advice, class_of, sentence
from loader.notify.events import KIND_OF_STATUS, Kind

FLAW = Flaw(
    url="gs://b/o.jsonl.gz",
    line=3,
    filename="2026/01/02/x.json",
    field="raw.Count",
    reason="type",
    detail="expected INTEGER, found STRING",
)


def row(label: str, text: str = "it did not work", **facts: Any) -> dict[str, Any]:  # noqa: ANN401
    about = {"table": "p.raw_ndt.ndt7", "date": date(2026, 1, 2), "Status": "failed", "Attempt": 2}
    counts = {"RowsRead": 10, "RowsRejected": 4, "JobID": "", "Errors": ""}
    return {**about, **counts, "ErrorClass": label, "ErrorText": text, **facts}


@pytest.mark.parametrize(
    ("label", "kind", "producer", "operator"),
    [
        ("backendError", "transient", "tried again by itself", "the next run tries again"),
        ("invalid", "data", "mend what writes these files", "jostler.rejects"),
        ("SchemaError", "schema", "a new name", "A table gains columns and nothing else"),
        ("accessDenied", "permission", "the operator must grant a right", "Grant the roles"),
        ("quotaExceeded", "quota", "a quota is used up", "--jobs-per-day"),
        ("Rejects", "bug", "the operator must look at it", "Report it"),
    ],
)
def test_each_class_says_what_happened_to_which_day_why_and_what_to_do(
    label: str, kind: str, producer: str, operator: str
) -> None:
    failed = row(label)
    assert class_of(failed) == kind
    said, more = sentence(failed), advice(failed)
    assert said.startswith("p.raw_ndt.ndt7 2026-01-02 was not loaded (it did not work): ")
    assert producer in said
    assert more.startswith(f"{kind}: p.raw_ndt.ndt7 2026-01-02 is failed, attempt 2.")
    assert f"{label}: it did not work." in more
    assert operator in more
    assert "\n" not in said + more


def test_the_first_bad_row_is_named_by_bundle_line_file_and_field() -> None:
    refused = row("TooManyBad", Status="rejected")
    assert "4 of its 10 rows are bad (first file 2026/01/02/x.json, field raw.Count: exp" in (
        sentence(refused, FLAW)
    )
    assert (
        "line 3 of gs://b/o.jsonl.gz, file 2026/01/02/x.json, field raw.Count: type: expected"
        in advice(refused, FLAW)
    )


def test_the_objects_that_bigquery_names_are_told() -> None:
    errors = [{"location": "gs://b/o", "message": "m"}, {"location": "gs://b/o"}, {"reason": "x"}]
    more = advice(row("invalid", Errors=json.dumps(errors), JobID="j1"))
    assert more.count("BigQuery names gs://b/o.") == 1
    assert "JobID j1" in more
    assert "BigQuery names" not in advice(row("invalid", Errors="no JSON"))


def test_a_failure_of_a_whole_table_and_one_of_an_older_loader_have_their_words() -> None:
    """The class that the ledger has counts; without one, label and text tell it."""
    whole = row("SchemaError", date=None, JobID=None, RowsRead=None)
    assert sentence(whole).startswith("p.raw_ndt.ndt7 as a whole was refused")
    assert class_of(row("x", FailureClass="quota")) == "quota"
    assert class_of(row("accessDenied", FailureClass=None)) == "permission"
    assert "no reason was recorded" in sentence(row("", ""))


@pytest.mark.parametrize("label", sorted(REFUSALS))
def test_missing_objects_are_the_operators_matter(label: str) -> None:
    """The producer's files were right, so the advice for bad rows would mislead."""
    failed = row(label)
    assert sentence(failed).startswith("p.raw_ndt.ndt7 2026-01-02 was refused (it did not work): ")
    assert "mend what writes these files" not in sentence(failed)
    assert "--accept-deletions" in advice(failed)
    assert "jostler.rejects" not in advice(failed)


def test_there_is_advice_for_each_class_and_an_event_for_each_kind() -> None:
    for kind in FailureClass:
        assert advice(row("x", FailureClass=str(kind)))
        assert sentence(row("x", FailureClass=str(kind)))
    assert set(KIND_OF_STATUS.values()) == set(Kind)
