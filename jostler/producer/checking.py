"""Judge documents, before they are written into the spool, as the agent will judge them there.

**Invariant:** whatever is found good here is good for an agent with the same table schema and the
same `-bundle-size-max`.

Pure, but for `read_fields`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostler.bundle.rejections import refused, too_big
from jostler.errors import RecordError, SchemaError
from jostler.format.row import BOM, one_line
from jostler.schema import Judge, object_judge, parse_datatype_schema
from jostler.schema.native import UNUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from jostler.format.row import Rejection
    from jostler.schema import Fields, Flaw, Native

BUNDLE_BYTES = 20 * 1024 * 1024
"""The default of `-bundle-size-max`."""
# The rest of a row, with an ArchiveURL of no length: what it takes at least.
_ROW_REST = len(
    b'{"date":"2026-01-02","archiver":{"Version":"","GitCommit":"","ArchiveURL":"",'
    b'"Filename":""},"raw":}\n'
)


class RefusedError(RecordError):
    """A document that the agent would reject; nothing of it was written.

    Attributes:
        where: the name of what was to be written, with the line if it is one of many rows.
        rejection: what is wrong with it.
    """

    def __init__(self, where: str, rejection: Rejection) -> None:
        field = f"{rejection.field}: " if rejection.field else ""
        super().__init__(f"{where}: {rejection.reason}: {field}{rejection.detail}")
        self.where = where
        self.rejection = rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What documents of a datatype are checked by.

    Attributes:
        datatype: its name.
        flaw: returns what is wrong with a document.
        count_good: returns how many of some documents are good, from the first one on.
        max_bytes: the agent's `-bundle-size-max`.
    """

    datatype: str
    flaw: Callable[[bytes], Flaw | None]
    count_good: Callable[[Sequence[bytes]], int]
    max_bytes: int = BUNDLE_BYTES

    @classmethod
    def of(
        cls,
        datatype: str,
        fields: Fields | None,
        *,
        max_bytes: int = BUNDLE_BYTES,
        native: Native = UNUSED,
    ) -> Checks:
        """Return the checks by the fields of a datatype; without any, each JSON object is good."""
        if fields is not None:
            judge = Judge(fields, native)
            return cls(
                datatype=datatype,
                flaw=judge.flaw,
                count_good=judge.count_good,
                max_bytes=max_bytes,
            )
        flaw = object_judge(native)

        def count_good(documents: Sequence[bytes]) -> int:
            return next((n for n, one in enumerate(documents) if flaw(one)), len(documents))

        return cls(datatype=datatype, flaw=flaw, count_good=count_good, max_bytes=max_bytes)

    def rejection(self, content: bytes, filename: str = "") -> Rejection | None:
        """Return why the agent would reject a file; None if it would archive it.

        The row also has the name of the bundle, which is not known here: a file is refused as too
        big if its row is so without that name.

        Args:
            content: the file's bytes.
            filename: `yyyy/mm/dd/<name>`; a part of its row.
        """
        size = len(content)
        found = refused(self.datatype, content, size, self.max_bytes, self.flaw)
        if found is None and size + _ROW_REST + len(filename) > self.max_bytes:
            row_bytes = len(one_line(content)) + _ROW_REST + len(filename)
            if row_bytes > self.max_bytes:
                return too_big(self.datatype, size, self.max_bytes)
        return found

    def first_bad(self, contents: Sequence[bytes]) -> int:
        """Return how many of some contents are good, from the first one on."""
        small = self.max_bytes - _ROW_REST - 300
        for nth, content in enumerate(contents):
            if not content or len(content) > small:
                ordinary = self.count_good([one.removeprefix(BOM) for one in contents[:nth]])
                if ordinary < nth or self.rejection(content):
                    return ordinary
                return nth + 1 + self.first_bad(contents[nth + 1 :])
        return self.count_good([one.removeprefix(BOM) for one in contents])


def read_fields(path: Path) -> Fields:
    """Read a datatype schema.

    Raises:
        SchemaError: it cannot be read, or is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as exc:
        problem = f"cannot be read: {exc.strerror}"
        raise SchemaError(
            f"{path} is needed to judge documents:",
            [problem],
            hint="name the datatype's schema file",
        ) from exc
    return parse_datatype_schema(data, source=str(path))
