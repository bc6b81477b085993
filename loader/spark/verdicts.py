"""The verdict on each row of one bundle.

**Invariant:** each row is judged by its own form, independently of the rows before it.  The forms
are: with the standard columns as jostler or as the Go agent spells them, or bare, as in the Go
agent's index.  The form of one row is used only as a guess for the next rows, for speed.

It refuses bundles with more rows, or more bad rows, than `limits` allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from jostler.format.go import is_bare, loadable_index
from jostler.schema import Judge, Reason, Use
from jostler.schema.native import find
from loader.spark import row
from loader.spark.findings import Whole
from loader.spark.gunzip import CorruptError, split
from loader.spark.limits import BAD_MAX, ROW_MAX_BYTES, ROWS_MAX

if TYPE_CHECKING:
    from jostler.schema import Fields
    from loader.spark.row import Parts
    from loader.spark.verify import Task

WRONG_DAY = "wrong-day"
ROW_TOO_LONG = "row-too-long"
_BRACE = ord("}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """Why a row cannot be loaded; `filename` is empty if the row has none."""

    filename: str
    field: str = ""
    reason: str
    detail: str


@lru_cache(maxsize=64)
def judges(fields: Fields, use: Use = Use.OFF) -> dict[str, Judge]:
    """Build a table's judges, one for each spelling of the standard columns; "" for bare rows.

    They are cached across tasks, because a judge that has learned unknown nulls is faster.

    Args:
        fields: the columns.
        use: whether the native module is used.

    Raises:
        ConfigError: it is required, and this executor cannot use it.
    """
    native = find(use)
    return {
        "raw": Judge(fields, native),
        "Raw": Judge(row.capitalised(fields), native),
        "": Judge(row.raw_fields(fields), native),
    }


class Verdicts:
    """The verdicts on the rows of one bundle, kept until the bundle is known to be complete.

    Attributes:
        keys: the identities of the good rows, concatenated.
        bad: the line numbers of the bad rows, in order.
    """

    def __init__(self, task: Task, fields: Fields) -> None:
        self.keys = bytearray()
        self.bad: list[int] = []
        self._task = task
        self._judges = judges(fields, task.native)
        self._judge = self._judges["raw"]
        self._head = row.NO_HEAD
        self._bare_ones = False
        self._day = f"{task.day.path}/".encode()
        self._node = ""
        self.of_node(task.node)
        self._rows = self._bytes = self._bare = 0

    @property
    def head(self) -> bytes:
        """What the usual rows have before their Filename, with its quote; else a line feed."""
        return self._head.start

    def of_node(self, node: str) -> None:
        """Say which node the next lines come from; at first it is that of the bundle's name."""
        if node != self._node:
            task, self._node = self._task, node
            self._salt = row.salt(task.table, task.day, node)
            self._identities = row.identities(task.table, task.day, node)

    def take(self, block: bytes) -> None:
        """Judge the next lines: all at once if they are good, else one by one.

        The native judge, where there is one, takes the usual and good rows up to the first other
        one, which is taken alone.

        Only the Filename is copied: a copy of each row would cost more than its identity.

        Raises:
            CorruptError: the bundle exceeds the limits.
        """
        if not self._bytes:
            first = split(block)[0]
            self._expect(first, bare=is_bare(first))
        asked = self._bare_ones
        lines = loadable_index(block) if asked else block
        at_once = asked or not self._judge.native
        good = at_once and len(block) <= ROW_MAX_BYTES and self._judge.all_good(lines)
        view = memoryview(block)
        at = 0
        while at < len(block):
            good = good and asked is self._bare_ones  # another judge's answer does not count
            before = at
            at = self._take_accepted(block, at)
            at = self._take_usual(block, view, at, good=good)
            if at == before:
                till = block.find(b"\n", at)
                till = len(block) if till < 0 else till
                self._take_odd(block[at:till], good=good)
                at = till + 1
        self._bytes += at
        if self._rows > ROWS_MAX:
            raise CorruptError(f"it has more than {ROWS_MAX:,} lines")

    def _take_accepted(self, block: bytes, at: int) -> int:
        """Handle lines that the native judge accepts; return where the first other one begins."""
        native = self._judge.native
        if native is None or self._head is row.NO_HEAD:
            return at
        at, rows, keys = native.take_rows(
            block,
            at,
            start=self._head.start,
            end=self._head.end,
            day=self._day,
            salt=self._salt,
            most=ROW_MAX_BYTES,
        )
        self._rows += rows
        self.keys += keys
        return at

    def _take_usual(self, block: bytes, view: memoryview, at: int, *, good: bool) -> int:
        """Handle lines of the usual form; return where the first line of another form begins.

        Where there is a native judge, only one of them, so that it has the next ones.
        """
        start, end, day, keys = self._head.start, self._head.end, self._day, self.keys
        from_, more, begun, identity = len(start), len(end), self._identities, row.identity
        rows, most = 0, 1 if self._judge.native else len(block)
        while rows < most and at < len(block) and block.startswith(start, at):
            till = block.find(b"\n", at)
            till = len(block) if till < 0 else till
            stop = block.find(b'"', at + from_, till)
            if stop < 0 or block[till - 1] != _BRACE or not block.startswith(end, stop):
                break
            name = block[at + from_ : stop]
            if b"\\" in name or not (good or self._is_good(block[at:till])):
                break
            if not name.startswith(day):
                name = row.relative(name, day)
            keys += identity(begun, name, view[stop + more : till - 1])
            rows += 1
            at = till + 1
        self._rows += rows
        return at

    def _is_good(self, line: bytes) -> bool:
        return len(line) <= ROW_MAX_BYTES and self._judge.flaw(line) is None

    def _take_odd(self, line: bytes, *, good: bool) -> None:
        """Handle a line that does not have the expected form, or is bad."""
        self._rows += 1
        found = row.parts(line)
        bare = found is None and is_bare(line)
        if self._flaw(line, found, bare=bare, good=good):
            self.bad.append(self._rows)
            if len(self.bad) > BAD_MAX:
                raise CorruptError(f"more than {BAD_MAX:,} of its rows are bad")
            return
        name, raw = b"", line
        if found:
            name = row.relative(found.filename.encode(errors="surrogatepass"), self._day)
            raw = found.raw
        self._bare += bare
        self.keys += row.identity(self._identities, name, raw)
        self._expect(line, bare=bare)

    def _expect(self, line: bytes, *, bare: bool) -> None:
        """Expect that the next lines have the form of this one."""
        if bare or self._bare_ones:
            self._bare_ones = bare
            self._head, self._judge = row.NO_HEAD, self._judges["" if bare else "raw"]
        if not bare and (head := row.head_of(line, self._task.day)) is not row.NO_HEAD:
            self._head = head
            self._judge = self._judges["Raw" if b'"Raw":' in head.end else "raw"]

    def flaw(self, line: bytes) -> Bad | None:
        """Return why a row cannot be loaded; None if it can.  The line has no line feed."""
        found = row.parts(line)
        return self._flaw(line, found, bare=found is None and is_bare(line), good=False)

    def _flaw(self, line: bytes, found: Parts | None, *, bare: bool, good: bool) -> Bad | None:
        """Return why a row cannot be loaded, given its parts.

        Args:
            line: the row.
            found: its parts.
            bare: whether it lacks the standard columns.
            good: whether the judge for the expected form has already found it good.
        """
        name = found.filename if found else ""
        if len(line) > ROW_MAX_BYTES:
            detail = f"the row has more than {ROW_MAX_BYTES:,} bytes, which BigQuery does not take"
            return Bad(filename=name, reason=ROW_TOO_LONG, detail=detail)
        judge = self._judge
        if bare is not self._bare_ones:
            judge, good = self._judges["" if bare else "raw"], False
        if not good and (flaw := judge.flaw(loadable_index(line) if bare else line)):
            return Bad(filename=name, field=flaw.field, reason=str(flaw.reason), detail=flaw.detail)
        if bare:
            return None
        if found is None:
            lacks = row.lacking(line)
            detail = f"the row has no {lacks}, or none that can be used"
            return Bad(
                filename=name, field=lacks, reason=str(Reason.MISSING_REQUIRED), detail=detail
            )
        if found.date != self._task.day.iso:
            other = "the row has none" if found.date is None else f"the row's is {found.date!r}"
            detail = f"the bundle's day is {self._task.day.iso}, {other}"
            return Bad(filename=name, field="date", reason=WRONG_DAY, detail=detail)
        return None

    def whole(self) -> Whole:
        """Return the results for the whole bundle, after it was read to its end."""
        return Whole(
            rows=self._rows,
            bad=len(self.bad),
            bare=self._bare,
            plain_bytes=self._bytes,
            packed_bytes=self._task.size_bytes,
        )
