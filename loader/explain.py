"""A day's failure in words: a sentence for the producer, a paragraph for the operator.

**Invariant:** both say what happened, to what, and what to do; the paragraph also names the class,
and as far as it is known the bundle, line, file and field.

Pure: takes a row of the ledger.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostler.format.urls import is_bucket_url
from loader.errors import REFUSALS, FailureClass, failure_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    Row = Mapping[str, Any]

MARKED = "AuditDiffers"
PASSING = frozenset({FailureClass.TRANSIENT, FailureClass.QUOTA})
"""Classes of failures of a table as a whole that are told when they last; others at once."""
_ABANDONED = "abandoned"
_TEXT_MAX = 300
_NAMED_MAX = 3
_TO_PRODUCER = {
    FailureClass.TRANSIENT: "nothing is wrong with your files; it is tried again by itself",
    FailureClass.DATA: "please mend what writes these files; stored files stay where they are",
    FailureClass.SCHEMA: "please give the changed datatype a new name, or take the change back",
    FailureClass.PERMISSION: "nothing is wrong with your files; the operator must grant a right",
    FailureClass.QUOTA: "nothing is wrong with your files; a quota is used up until later",
    FailureClass.BUG: "nothing is known to be wrong with your files; the operator must look at it",
}
_TO_OPERATOR = {
    FailureClass.TRANSIENT: "Nothing, if it stays rare: the next run tries again. If it does not"
    " pass within a day, look at the status of Google Cloud and at the network of the driver.",
    FailureClass.DATA: "Ask jostler.rejects for the rows of this day, and tell the producer. After"
    " a change of the table's schema, or to load the good rows alone, run jostler-load with a"
    " higher --max-bad-fraction; if objects are gone on purpose, with --accept-deletions.",
    FailureClass.SCHEMA: "A table gains columns and nothing else: give the datatype a new name, or"
    " put the old schema back; the error names the column.",
    FailureClass.PERMISSION: "Grant the roles that docs/loader.md lists, or make the dataset or"
    " bucket; the next run loads the day.",
    FailureClass.QUOTA: "Wait, for quotas refill within 24 hours; lower --jobs-per-day or run less"
    " often if it returns, or ask for a higher quota.",
    FailureClass.BUG: "Report it, with this row of the ledger and the run's log; other days are"
    " not affected.",
}


_GONE_TO_PRODUCER = (
    "nothing is wrong with your files; what was loaded stays, and the operator must look at it"
)
_GONE_TO_OPERATOR = (
    "Restore the objects, which the column Objects of the day's last success tells by their"
    " digests, or name all buckets; if they are gone on purpose, run jostler-load with"
    " --accept-deletions. What was loaded stays as it is meanwhile."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """The first bad row of a day, as the table of rejects has it.

    Attributes:
        url: the bundle.
        line: of the bundle, from 1.
        filename: the file, if the row tells it.
        field: the path of the field at fault; empty if it is the row as a whole.
        reason: a short label.
        detail: what was expected and what was found.
    """

    url: str
    line: int
    filename: str
    field: str
    reason: str
    detail: str


def class_of(row: Row) -> FailureClass:
    """Return the class of the failure that a ledger row records."""
    if kind := row.get("FailureClass"):
        return FailureClass(kind)
    return failure_class(row["ErrorClass"] or "", row["ErrorText"] or "")  # of an older loader


def is_refusal(row: Row) -> bool:
    """Return whether a ledger row says that no further try of the same can help.

    That is a day with too many bad rows, one that would lose rows, or a table that cannot be used.
    """
    if row["Status"] != "failed":
        return bool(row["Status"] == "rejected")
    whole = row["date"] is None and class_of(row) not in PASSING
    return whole or row["ErrorClass"] in REFUSALS


def sentence(row: Row, flaw: Flaw | None = None) -> str:
    """Return what the producer is told: what happened to which day, why, and what to do.

    Args:
        row: a ledger row of a day that was not loaded.
        flaw: the day's first bad row, if there is one.
    """
    kind = class_of(row)
    happened = "was not loaded"
    if row["Status"] == "rejected":
        happened = f"was refused: {row['RowsRejected']} of its {row['RowsRead']} rows are bad"
    elif row["Status"] == _ABANDONED:
        happened = "was given up"
    elif is_refusal(row):
        happened = "was refused"
    why = ""
    if flaw:
        of = f"file {flaw.filename}" if flaw.filename else f"line {flaw.line} of {flaw.url}"
        field = f", field {flaw.field}" if flaw.field else ""
        why = f" (first {of}{field}: {_short(flaw.detail or flaw.reason)})"
    elif row["Status"] != "rejected":
        why = f" ({_short(row['ErrorText'] or 'no reason was recorded')})"
    gone = row["ErrorClass"] in REFUSALS
    return f"{_what(row)} {happened}{why}: {_GONE_TO_PRODUCER if gone else _TO_PRODUCER[kind]}"


def advice(row: Row, flaw: Flaw | None = None) -> str:
    """Return what the operator is told: class, what, which file, line and field, what to do."""
    kind = class_of(row)
    parts = [f"{kind}: {_what(row)} is {row['Status']}, attempt {row['Attempt'] or 0}."]
    if text := row["ErrorText"]:
        label = row["ErrorClass"]
        parts.append(f"{label}: {_short(text)}." if label else f"{_short(text)}.")
    if flaw:
        field = f", field {flaw.field}" if flaw.field else ""
        file = f", file {flaw.filename}" if flaw.filename else ""
        parts.append(
            f"The first bad row is line {flaw.line} of {flaw.url}{file}{field}:"
            f" {flaw.reason}: {_short(flaw.detail)}."
        )
    parts += [f"BigQuery names {where}." for where in _located(row)[:_NAMED_MAX]]
    if row["JobID"] and row["Status"] == "failed":
        parts.append(f"All its errors are in Errors of the row with JobID {row['JobID']}.")
    if row["Status"] == _ABANDONED:
        parts.append(
            "It is tried again when the day changes, when somebody requests it, or with --force."
        )
    gone = row["ErrorClass"] in REFUSALS
    return " ".join([*parts, _GONE_TO_OPERATOR if gone else _TO_OPERATOR[kind]])


def _located(row: Row) -> list[str]:
    """Return the objects and fields that BigQuery's own errors name, each once."""
    try:
        errors = json.loads(row.get("Errors") or "[]")
    except ValueError:
        return []
    return list(dict.fromkeys(str(one["location"]) for one in errors if one.get("location")))


def _what(row: Row) -> str:
    day = row["date"]
    if is_bucket_url(row["table"]):
        return f"bucket {row['table']}"
    return f"{row['table']} {day}" if day else f"{row['table']} as a whole"


def _short(text: str) -> str:
    line = " ".join(str(text).split()).rstrip(".")
    return line if len(line) <= _TEXT_MAX else f"{line[:_TEXT_MAX]}…"
