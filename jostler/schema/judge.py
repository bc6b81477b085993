"""Whether a document is good: asked of the fast judge first, then of the exact one.

**Invariant:** the answer is the exact judge's, whoever gives it.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from jostler.schema.document import parse
from jostler.schema.fast import FastJudge
from jostler.schema.flaw import Flaw
from jostler.schema.slow import SlowJudge

if TYPE_CHECKING:
    from jostler.schema.fields import Fields


class Judge:
    """Says whether a BigQuery load job would take a JSON object as a row of these columns.

    The load job has an explicit schema, ignoreUnknownValues=false and maxBadRecords=0.  A judge is
    built in milliseconds, pickles as its columns, and may serve any number of threads.

    Case of names makes no difference to the answer but to the time: keys spelled as the columns
    are need no slow judge.  For rows that all say `Raw`, give columns that say `Raw`.
    """

    __slots__ = ("_fast", "_slow", "fields")

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._fast = FastJudge(fields)
        self._slow = SlowJudge(fields)

    def __reduce__(self) -> tuple[type[Judge], tuple[Fields]]:
        return Judge, (self.fields,)

    def flaw(self, document: bytes) -> Flaw | None:
        """Name what is wrong with a document, in UTF-8 and without byte order mark; None is good.

        Never raises, whatever the bytes.
        """
        return None if self._fast.accepts(document) else self._slow.flaw(document)


def json_object_flaw(document: bytes) -> Flaw | None:
    """Name what keeps a document from being one strict JSON object in UTF-8; None is good."""
    try:
        if type(orjson.loads(document)) is dict:
            return None
    except orjson.JSONDecodeError:  # also for 1E400 and lone surrogates, which are JSON
        pass
    value = parse(document)
    return value if isinstance(value, Flaw) else None
