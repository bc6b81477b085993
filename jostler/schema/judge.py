"""Decide whether a document is good: ask the fast judges first, then the exact one.

**Invariant:** the answer is always the one that the exact judge gives.  The native judge, where
there is one, is asked first, then the fast one; both say only "good" or "undecided".

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from jostler.schema.document import parse
from jostler.schema.fast import FastJudge
from jostler.schema.flaw import Flaw
from jostler.schema.native import UNUSED
from jostler.schema.nulls import Path, spelled_apart, unknown_nulls, with_nulls
from jostler.schema.slow import SlowJudge
from jostler.schema.stream import SMALL_BYTES, is_large, streamed, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jostler.schema.fields import Fields
    from jostler.schema.native import Native

NULLS_MAX = 100
"""How many unknown nulls are learned; a service that invents keys must not fill the memory."""


class Judge:
    """Decides whether a BigQuery load job would accept a JSON object as a row of these columns.

    The load job has an explicit schema and maxBadRecords=0.  Unknown members are refused unless
    they are null (see `nulls`).  A judge is built in milliseconds, is pickled as its columns
    (without the native judge), and may be shared by any number of threads.

    The letter case of names affects the time, not the answer: the fast judge needs keys spelled as
    the columns are.  For rows with the key `Raw`, name the column `Raw`.

    Args:
        fields: the columns.
        native: where the native judge comes from.

    Attributes:
        native: the native judge of these columns; None if there is none.
    """

    __slots__ = ("_accepts", "_fast", "_nulls", "_slow", "fields", "native")

    def __init__(self, fields: Fields, native: Native = UNUSED) -> None:
        self.fields = fields
        self.native = native.judge(fields)
        self._fast = FastJudge(fields)
        self._accepts = self.native.accepts if self.native else self._fast.accepts
        self._slow = SlowJudge(fields)
        self._nulls: dict[Path, str] = {}

    def __reduce__(self) -> tuple[type[Judge], tuple[Fields]]:
        return Judge, (self.fields,)

    def flaw(self, document: bytes) -> Flaw | None:
        """Return what is wrong with a document (UTF-8, no byte order mark); None if it is good.

        Raises nothing, whatever the bytes are.
        """
        if self._accepts(document):
            return None
        if self.native and self._fast.accepts(document):
            return None
        found = self._slow.flaw(document)
        if found is None and self._may_teach(document):
            self._learn(document)
        return found

    def all_good(self, documents: bytes) -> bool:
        """Return True if each line is a good document; after False, call `flaw` for each line.

        For some tens of KiB of lines this takes three quarters of the time of single calls.

        Args:
            documents: JSON Lines, each with its line feed.
        """
        return self._fast.accepts_lines(documents)

    def count_good(self, documents: Sequence[bytes]) -> int:
        """Return how many documents are good, counted from the first one to the first bad one.

        The answer is that of `flaw` for each; for many small documents it takes less time.

        Args:
            documents: each in UTF-8, without byte order mark.
        """
        if not self.native:  # which is quicker with single documents than this with many
            # A document with a line feed in it is more than one line, and the count does not fit.
            lines = b"\n".join([*documents, b""])
            if lines.count(b"\n") == len(documents) and self._fast.accepts_lines(lines):
                return len(documents)
        for nth, document in enumerate(documents):
            if self.flaw(document):
                return nth
        return len(documents)

    def _may_teach(self, document: bytes) -> bool:
        # Learning parses the document a second time, so large ones are left out.
        room = len(self._nulls) < NULLS_MAX and len(document) <= SMALL_BYTES
        return room and b"null" in document

    def _learn(self, document: bytes) -> None:
        """Let the fast judge accept the unknown nulls of a good document from now on.

        A document with more of them than there is room for is ignored: such keys are invented ones
        that do not come again.
        """
        room = NULLS_MAX - len(self._nulls)
        found = spelled_apart(unknown_nulls(self.fields, document, most=room), self._nulls)
        if found:
            self._nulls = found | self._nulls
            self._fast = FastJudge(with_nulls(self.fields, self._nulls))
            if not self.native:
                self._accepts = self._fast.accepts


def object_judge(native: Native) -> Callable[[bytes], Flaw | None]:
    """Return `json_object_flaw`, which asks the native judge first where there is one."""
    judge = native.judge(None)
    if judge is None:
        return json_object_flaw
    accepts = judge.accepts
    return lambda document: None if accepts(document) else json_object_flaw(document)


def json_object_flaw(document: bytes) -> Flaw | None:
    """Return why a document is not one strict JSON object in UTF-8; None if it is."""
    if len(document) > SMALL_BYTES and is_large(document):
        return streamed(document, walk)
    try:
        if type(orjson.loads(document)) is dict:
            return None
    except orjson.JSONDecodeError:  # orjson also refuses 1E400 and lone surrogates, which are JSON
        pass
    value = parse(document)
    return value if isinstance(value, Flaw) else None
