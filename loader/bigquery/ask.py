"""Run one SQL statement in BigQuery, or in the embedded BigQuery, for a person.

**Invariant:** every error becomes one sentence, BigQuery's own if it has one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import GoogleAPIError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError
from google.cloud import bigquery
from google.cloud.bigquery.retry import DEFAULT_JOB_RETRY, DEFAULT_RETRY
from requests.exceptions import RequestException

PATIENCE_S = 30.0
"""How long a failing request is retried; short, because a person is waiting."""
EMBEDDED_PROJECT = "demo"
_NUMBERS = frozenset({"INTEGER", "INT64", "FLOAT", "FLOAT64", "NUMERIC", "BIGNUMERIC"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of a statement.

    Attributes:
        columns: the column names, in order.
        numeric: for each column, whether its values are single numbers.
        rows: the values as the official client returns them, in the order of the columns.
        changed: how many rows a DML statement changed; None for a statement that returns rows.
    """

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]
    changed: int | None = None


class AskError(Exception):
    """The statement failed; the message is one line."""


def connect(project: str = "", location: str = "") -> bigquery.Client:
    """Return a client for the embedded BigQuery if the environment names one, else for Google's.

    Raises:
        AskError: there are no credentials, or no project.
    """
    emulated = bool(os.environ.get("BIGQUERY_EMULATOR_HOST"))
    try:
        return bigquery.Client(
            project=project or (EMBEDDED_PROJECT if emulated else None),
            location=location or None,
            credentials=AnonymousCredentials() if emulated else None,
        )
    except GoogleAuthError as exc:
        raise AskError(f"no credentials: {_one_line(str(exc))}") from exc
    except OSError as exc:  # the client found no project
        raise AskError(f"give --project: {_one_line(str(exc))}") from exc


def ask(client: bigquery.Client, sql: str) -> Answer:
    """Run one statement and fetch its whole answer.

    Raises:
        AskError: BigQuery refused it, or cannot be reached.
    """
    try:
        found = client.query_and_wait(
            sql,
            retry=DEFAULT_RETRY.with_timeout(PATIENCE_S),
            job_retry=DEFAULT_JOB_RETRY.with_timeout(PATIENCE_S),
        )
        fields = tuple(found.schema or ())
        rows = tuple(tuple(row.values()) for row in found) if fields else ()
    except GoogleAPIError as exc:
        raise AskError(message(exc)) from exc
    except (GoogleAuthError, RequestException, OSError) as exc:
        raise AskError(f"no answer from BigQuery: {_one_line(str(exc))}") from exc
    return Answer(
        columns=tuple(field.name for field in fields),
        numeric=tuple(f.field_type in _NUMBERS and f.mode != "REPEATED" for f in fields),
        rows=rows,
        changed=found.num_dml_affected_rows,
    )


def message(exc: GoogleAPIError) -> str:
    """Return BigQuery's own sentence without the request around it."""
    cause = getattr(exc, "cause", None) or exc
    listed = getattr(cause, "errors", None) or [{}]
    first = listed[0] if isinstance(listed[0], dict) else {}
    return _one_line(str(first.get("message") or cause))


def _one_line(text: str) -> str:
    return " ".join(text.split())
