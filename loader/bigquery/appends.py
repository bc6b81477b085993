"""Append rows to ledger and rejects, each exactly once, even with several loaders.

**Invariant:** for each run and table, the load jobs that append rows have the numbers 1, 2, 3, …
in their ids, and a loader submits number n + 1 only after it saw number n end.  A loader that
writes a row about a load job of *another* run (interrupted or still running) uses that run's next
number, and first checks whether the row already exists.  So two loaders may report the same job,
and its row is written once.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from loader.bigquery import attempts
from loader.errors import TRANSIENT, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loader.bigquery.ledger import Ledger
    from loader.bigquery.warehouse import Job, Json, Warehouse

TRIES = 3
WRITER_LABEL = "jostler-writer"


class Part(Protocol):
    """The rows that one day adds to a table."""

    @property
    def job(self) -> str:
        """The JobID of the rows; empty if no other run can write them."""
        ...

    @property
    def day(self) -> str:
        """The day of the rows, YYYY-MM-DD; empty if they have none."""
        ...


_P = TypeVar("_P", bound=Part)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One row of the ledger."""

    job: str
    day: str
    row: Json


@dataclass(frozen=True, slots=True)
class BadRows:
    """The bad rows of a day, which executors wrote to staging as NDJSON.

    They have this run's RunID, as has the ledger row that counts them.  Rows that another loader
    writes for the same day have another RunID.

    Attributes:
        uris: the URIs of the objects.
        more: further settings of the load job; only used if a manifest lists the objects.
    """

    uris: list[str]
    more: Json

    @property
    def job(self) -> str:
        """Empty: no other run writes these rows."""
        return ""

    @property
    def day(self) -> str:
        """Empty: nobody checks whether these rows already exist."""
        return ""


class Appender(Generic[_P]):
    """Appends parts to one table; used by one thread.

    Args:
        warehouse: the BigQuery project.
        ledger: the dataset of the table.
        table: the table's name.
        run: the id of this run.
    """

    def __init__(self, warehouse: Warehouse, ledger: Ledger, table: str, run: str) -> None:
        self._warehouse = warehouse
        self._ledger = ledger
        self._table = table
        self._run = run
        self._free = {run: 1}

    def append(self, run: str, parts: Sequence[_P]) -> None:
        """Write the parts that do not exist yet, in one job with the run's next number.

        Raises:
            WarehouseError: none of the parts was written.
        """
        sure = run == self._run and run in self._free
        if run not in self._free:
            self._free[run] = self._first_free(run)
        # Another run may have reported the same load job, or an earlier request may have been
        # carried out although its reply was an error: then the rows are in the table already.
        if not sure:
            parts = self._absent(parts)
        failed = 0
        while parts:
            job_id = self._id(run, self._free[run])
            try:
                job = self._load(parts, job_id)
            except BaseException:
                del self._free[run]  # unknown whether the number is used: look again next time
                raise
            self._free[run] += 1
            if job.labels.get(WRITER_LABEL) != self._run:  # another loader took the number
                parts = self._absent(parts)
            elif not job.reason:
                return
            elif job.reason not in TRANSIENT or (failed := failed + 1) == TRIES:
                messages = "; ".join(str(error.get("message")) for error in job.errors)
                raise WarehouseError(
                    f"job {job.id} into {self._name}: {messages}", reason=job.reason
                )
            else:
                attempts.pause(failed)

    def _load(self, parts: Sequence[_P], job_id: str) -> Job:
        raise NotImplementedError

    def _config(self) -> Json:
        return {
            "sourceFormat": "NEWLINE_DELIMITED_JSON",
            "writeDisposition": "WRITE_APPEND",
            "labels": {WRITER_LABEL: self._run},
        }

    @property
    def _name(self) -> str:
        return str(self._ledger.name(self._table))

    def _id(self, run: str, number: int) -> str:
        # The creation time makes job ids of a table that was deleted and created again new ones:
        # BigQuery would otherwise refuse them as duplicates, although their rows are gone.
        return f"jostler-{run}-{self._table}-{self._ledger.made_ms(self._table)}-{number}"

    def _first_free(self, run: str) -> int:
        """Find the first number that no job has, after waiting for all jobs with lower ones."""
        taken, free = 0, 1
        # Numbers are used without gaps, so doubling and halving find the first free one with few
        # requests.
        while self._warehouse.job(self._id(run, free)):
            taken, free = free, 2 * free
        while free - taken > 1:
            middle = (taken + free) // 2
            if self._warehouse.job(self._id(run, middle)):
                taken = middle
            else:
                free = middle
        return free

    def _absent(self, parts: Sequence[_P]) -> Sequence[_P]:
        """Return the parts that no other loader has written; parts are written whole or not."""
        jobs = {part.job: part.day for part in parts if part.job}
        if not jobs:
            return parts
        sql = (
            f"SELECT DISTINCT JobID AS job FROM `{self._name}` WHERE JobID IN UNNEST(@jobs)"  # noqa: S608 - names of our own, dates
            f" AND `date` >= '{min(jobs.values())}' AND `date` <= '{max(jobs.values())}'"
        )
        there = {row["job"] for row in self._warehouse.rows(sql, jobs=sorted(jobs))}
        return [part for part in parts if part.job not in there]


class LedgerAppender(Appender[LedgerRow]):
    """Appends rows to the ledger."""

    def _load(self, parts: Sequence[LedgerRow], job_id: str) -> Job:
        out = io.BytesIO(b"".join(json.dumps(line.row).encode() + b"\n" for line in parts))
        return self._warehouse.load_file(self._name, out, job_id, self._config())[0]


class RejectsAppender(Appender[BadRows]):
    """Appends bad rows to the rejects."""

    def _load(self, parts: Sequence[BadRows], job_id: str) -> Job:
        uris = [uri for part in parts for uri in part.uris]
        config = self._config()
        for part in parts:
            config |= part.more
        return self._warehouse.load_uris(self._name, uris, job_id, config)[0]
