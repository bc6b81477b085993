"""Push documents and files of rows into the spool: judge first, then write.

**Invariant:** if anything in a file is wrong, nothing of it is written; for a file of rows, none of
its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice
from typing import TYPE_CHECKING

from jostler.bundle.rejections import too_big
from jostler.errors import RecordError
from jostler.format.row import one_line
from jostler.producer.checking import RefusedError
from jostler.producer.days import day_of
from jostler.producer.naming import row_stem, safe_name
from jostler.producer.outbox import Outcome, Published, Staged
from jostler.producer.position import line_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jostler.bundle.index_fields import IndexFields
    from jostler.producer.checking import Checks
    from jostler.producer.lines import Line
    from jostler.producer.outbox import Outbox

BATCH = 256
"""Rows that are judged together; more at once are not quicker."""
BATCH_BYTES = 1 << 20
REPORTED_MOST = 20
"""Refused rows of one file that are reported one by one."""


class RowsRefusedError(RecordError):
    """Some rows of a file would be rejected; none of them was written.

    Attributes:
        refused: the first of them.
        count: how many there are.
        rows: how many rows the file has.
    """

    def __init__(self, name: str, refused: Sequence[RefusedError], count: int, rows: int) -> None:
        super().__init__(f"{name}: {count} of {rows} rows are bad, and none was written")
        self.refused = tuple(refused)
        self.count = count
        self.rows = rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where what is pushed goes.

    Attributes:
        fields: what fills the index columns of the datatype, for the day of the Start.
        day: the day that was asked for; None for that of the Start, else today.
        extensions: of the files that the agent takes.
        rename: whether a file whose name another content has gets another name.
    """

    fields: IndexFields
    day: date | None = None
    extensions: tuple[str, ...] = (".json",)
    rename: bool = False


class Pusher:
    """Belongs to one thread.

    Args:
        checks: the judge.
        outbox: the datatype's directory; None to judge and write nothing.
        where: names and days.
    """

    def __init__(self, checks: Checks, outbox: Outbox | None, where: Where) -> None:
        self._checks = checks
        self._outbox = outbox
        self._where = where

    def document(
        self, content: bytes, name: str, *, source: str, mtime_ns: int | None = None
    ) -> Published:
        """Push one document.

        Args:
            content: its bytes.
            name: of the file; made safe if the agent would refuse it.
            source: what to call it in errors.
            mtime_ns: when it was last changed; None for now.

        Raises:
            RefusedError: the agent would reject it.
            NameTakenError: another content has its name.
            OSError: it cannot be written.
        """
        name = safe_name(name, self._where.extensions)
        # The day is not known yet, and any will do: of the path only the form is checked.
        if rejection := self._checks.rejection(content, f"2026/01/02/{name}"):
            line = line_of(content, rejection.field)
            raise RefusedError(f"{source}: line {line}" if line else source, rejection)
        staged = self._stage([(name, content)], mtime_ns)
        (published,) = self._publish(staged)
        return published

    def rows(
        self, lines: Iterable[Line], name: str, *, source: str, mtime_ns: int | None = None
    ) -> list[Published]:
        """Push a file of rows, each as a file `<name>.<number>.json`.

        Args:
            lines: the rows.
            name: of the file, without its extension.
            source: what to call it in errors.
            mtime_ns: when it was last changed; None for now.

        Raises:
            RowsRefusedError: the agent would reject some rows.
            NameTakenError: another content has the name of some.
            RecordError: the file cannot be read.
            OSError: they cannot be written.
        """
        stem = row_stem(name, self._where.extensions)
        staged: list[Staged] = []
        refused: list[RefusedError] = []
        bad = rows = 0
        try:
            for batch in _batches(lines):
                rows += len(batch)
                good, errors = self._judged(batch, source)
                bad += len(errors)
                refused += errors[: REPORTED_MOST - len(refused)]
                # After the first bad row nothing more is staged; the rest is judged all the same,
                # so that one run reports everything.
                if not bad:
                    staged += self._stage(self._named(good, stem), mtime_ns)
            if bad:
                self._discard(staged)
        except BaseException:
            self._discard(staged)
            raise
        if bad:
            raise RowsRefusedError(source, refused, bad, rows)
        return self._publish(staged)

    def good_rows(
        self, batch: Sequence[Line], name: str, *, source: str
    ) -> tuple[list[Published], list[tuple[Line, RefusedError]]]:
        """Push those of some rows that are good; return what became of them, and the others.

        Raises:
            NameTakenError: another content has the name of some; none was written.
            OSError: they cannot be written.
        """
        good, errors = self._judged(batch, source)
        numbers = {line.number for line in good}
        others = [line for line in batch if line.number not in numbers]
        stem = row_stem(name, self._where.extensions)
        published = self._publish(self._stage(self._named(good, stem), None))
        return published, list(zip(others, errors, strict=True))

    def _judged(self, batch: Sequence[Line], source: str) -> tuple[list[Line], list[RefusedError]]:
        """Return the good rows and what is wrong with the others, both in their order."""
        good: list[Line] = []
        errors: list[RefusedError] = []
        left = list(batch)
        while left:
            count = self._checks.first_bad([line.content for line in left])
            good += left[:count]
            if count < len(left):
                line = left[count]
                errors.append(self._refusal(line, source))
            left = left[count + 1 :]
        return good, errors

    def _refusal(self, line: Line, source: str) -> RefusedError:
        checks = self._checks
        found = checks.rejection(line.content) if line.content else None
        if line.size != len(line.content):
            found = too_big(checks.datatype, line.size, checks.max_bytes)
        assert found
        return RefusedError(f"{source}: line {line.number}", found)

    def _named(self, rows: Iterable[Line], stem: str) -> Iterator[tuple[str, bytes]]:
        extension = self._where.extensions[0]
        return ((f"{stem}.{number}{extension}", content) for number, content, _ in rows)

    def _stage(self, files: Iterable[tuple[str, bytes]], mtime_ns: int | None) -> list[Staged]:
        """Stage good documents."""
        where, outbox = self._where, self._outbox
        now = datetime.now(UTC)
        staged: list[Staged] = []
        # Without a Start in the documents, all of them go to the same day.
        day = None if where.fields.columns else day_of(b"", "", where.fields, where.day, now)
        folder = day.path if day else ""
        try:
            for name, content in files:
                at = day or day_of(one_line(content), name, where.fields, where.day, now)
                filename = f"{folder or at.path}/{name}"
                if outbox is None:
                    staged.append(Staged("", filename))
                    continue
                kept_ns = _inside(mtime_ns, at.date)
                staged.append(outbox.stage(filename, content, mtime_ns=kept_ns))
        except BaseException:
            self._discard(staged)
            raise
        return staged

    def _discard(self, staged: Sequence[Staged]) -> None:
        if self._outbox:
            self._outbox.discard(staged)

    def _publish(self, staged: Sequence[Staged]) -> list[Published]:
        if self._outbox is None:
            return [Published(one.filename, Outcome.JUDGED) for one in staged]
        if not staged:
            return []
        return self._outbox.publish(staged, rename=self._where.rename)


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Cut rows into batches that are judged together."""
    rows = iter(lines)
    while first := list(islice(rows, 1)):
        batch, size = first, first[0].size
        for line in islice(rows, BATCH - 1):
            batch.append(line)
            size += line.size
            if size > BATCH_BYTES:
                break
        yield batch


def _inside(mtime_ns: int | None, day: date) -> int | None:
    """Return a file's time if it is of its folder's day; else None: it would be a wrong Start.

    A search by time looks into the folders next to it, and would not find such a file.
    """
    if mtime_ns is None:
        return None
    written = datetime.fromtimestamp(mtime_ns // 1_000_000_000, UTC)
    return mtime_ns if written.date() == day else None
