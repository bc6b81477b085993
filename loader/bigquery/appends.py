"""Rows appended to ledger and rejects: each once, whoever writes them.

**Invariant:** the load jobs that append what a run has to tell have numbered ids, for each table
from 1 on, and number n + 1 is submitted only by somebody who has seen n end.  Whoever writes a row
about a load job of *another* run, which was interrupted or is still at work, takes the next
number of that run, and looks first whether the row is there.  So two loaders can tell of one job,
and its row is written once.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from loader.bigquery import attempts
from loader.errors import WarehouseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loader.bigquery.ledger import Meta
    from loader.bigquery.warehouse import Job, Json, Warehouse

TRIES = 3
WRITER_LABEL = "jostler-writer"


class Part(Protocol):
    """What one day adds to a table."""

    @property
    def job(self) -> str:
        """JobID of its rows; empty when no other run can write them."""
        ...

    @property
    def day(self) -> str:
        """Day of its rows, YYYY-MM-DD; empty when they have none."""
        ...


_P = TypeVar("_P", bound=Part)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the ledger."""

    job: str
    day: str
    row: Json


@dataclass(frozen=True, slots=True)
class BadRows:
    """Bad rows of a day, which executors wrote to staging as NDJSON.

    They carry our RunID, and the row of the ledger that counts them has the same: another loader's
    rows of the same day are others.

    Attributes:
        uris: of the objects.
        more: what else a load job is told of them; nothing, unless a manifest names them.
    """

    uris: list[str]
    more: Json

    @property
    def job(self) -> str:
        """No other run writes them."""
        return ""

    @property
    def day(self) -> str:
        """It is not asked for, as nobody looks whether they are there."""
        return ""


class Table(Generic[_P]):
    """Appends parts to one table, for one thread.

    Args:
        warehouse: where it is.
        meta: its dataset.
        table: its name.
        run: our own.
    """

    def __init__(self, warehouse: Warehouse, meta: Meta, table: str, run: str) -> None:
        self._warehouse = warehouse
        self._meta = meta
        self._table = table
        self._run = run
        self._free = {run: 1}

    def append(self, run: str, parts: Sequence[_P]) -> None:
        """Write the parts that are not there yet, in one job, under the next number of a run.

        Raises:
            WarehouseError: none of the parts was written.
        """
        sure = run == self._run and run in self._free
        if run not in self._free:
            self._free[run] = self._first_free(run)
        if not sure:
            parts = self._absent(parts)
        failed = 0
        while parts:
            job_id = self._id(run, self._free[run])
            try:
                job = self._load(parts, job_id)
            except BaseException:
                del self._free[run]  # whether the number is taken is not known
                raise
            self._free[run] += 1
            if job.labels.get(WRITER_LABEL) != self._run:  # another loader took the number
                parts = self._absent(parts)
            elif not job.reason:
                return
            elif job.reason not in attempts.TRANSIENT or (failed := failed + 1) == TRIES:
                told = "; ".join(str(error.get("message")) for error in job.errors)
                raise WarehouseError(f"job {job.id} into {self._name}: {told}", reason=job.reason)
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
        return str(self._meta.name(self._table))

    def _id(self, run: str, number: int) -> str:
        # A table that was removed and made again has forgotten what old job ids wrote into it.
        return f"jostler-{run}-{self._table}-{self._meta.made_ms(self._table)}-{number}"

    def _first_free(self, run: str) -> int:
        """Find the first number that no job has; the jobs with lower ones have ended then."""
        taken, free = 0, 1
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
        """Leave out the parts that another loader has written; a part is there as a whole."""
        jobs = {part.job: part.day for part in parts if part.job}
        if not jobs:
            return parts
        sql = (
            f"SELECT DISTINCT JobID AS job FROM `{self._name}` WHERE JobID IN UNNEST(@jobs)"  # noqa: S608 - names of our own, dates
            f" AND `date` >= '{min(jobs.values())}' AND `date` <= '{max(jobs.values())}'"
        )
        there = {row["job"] for row in self._warehouse.rows(sql, jobs=sorted(jobs))}
        return [part for part in parts if part.job not in there]


class Ledger(Table[Line]):
    """Appends rows to the ledger."""

    def _load(self, parts: Sequence[Line], job_id: str) -> Job:
        out = io.BytesIO(b"".join(json.dumps(line.row).encode() + b"\n" for line in parts))
        return self._warehouse.load_file(self._name, out, job_id, self._config())[0]


class Rejects(Table[BadRows]):
    """Appends bad rows to the rejects."""

    def _load(self, parts: Sequence[BadRows], job_id: str) -> Job:
        uris = [uri for part in parts for uri in part.uris]
        config = self._config()
        for part in parts:
            config |= part.more
        return self._warehouse.load_uris(self._name, uris, job_id, config)[0]
