"""Split the lines of a bundle into the standard columns and the bytes of `raw`.

**Invariant:** every line is yielded once, in order; one that has no standard columns is yielded as
`None`, and is never guessed at.

Pure.  The usual line costs two searches and a slice: it is not parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import orjson
from xxhash import xxh3_64_intdigest, xxh3_128_digest

from jostler.format.go import is_bare, loadable_index
from loader.spark.row import NO_HEAD, Head, head_of, relative

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.format.names import Day

_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_BRACE = ord("}")
Archiver = dict[str, object]
"""The fields of the column `archiver`, by their names in lower case."""


Line = tuple[Archiver, bytes, bytes | memoryview]
"""The column `archiver` but for the Filename, which the rows of a bundle share; the Filename as the
row has it; the bytes of `raw`.  A plain tuple: a row costs few µs, and a named one half of one."""


class Lines:
    """Takes apart the lines of one bundle.

    Args:
        day: of the bundle.
        url: of the bundle; the column archiver of rows that have none.
    """

    def __init__(self, day: Day, url: str) -> None:
        self._day = day
        self._url = url
        self._head = NO_HEAD
        self._archiver: Archiver = {}

    def of(self, block: bytes) -> Iterator[Line | None]:
        """Yield the lines of a block; None for one that cannot be taken apart."""
        view = memoryview(block)
        at, size = 0, len(block)
        find, startswith = block.find, block.startswith
        while at < size:
            till = find(b"\n", at)
            till = size if till < 0 else till
            start, end = self._head.start, self._head.end
            if startswith(start, at) and block[till - 1] == _BRACE:
                name_at = at + len(start)
                stop = find(b'"', name_at, till)
                # A name with escapes ends elsewhere, and `end` does not stand there.
                if stop >= 0 and startswith(end, stop):
                    yield self._archiver, block[name_at:stop], view[stop + len(end) : till - 1]
                    at = till + 1
                    continue
            yield self._odd(block[at:till])
            at = till + 1

    def _odd(self, line: bytes) -> Line | None:
        try:
            columns = {key.lower(): bytes(value) for key, value in _TOP.decode(line).items()}
            if "archiver" in columns:
                archiver = _lower(orjson.loads(columns["archiver"]))
                filename = str(archiver.pop("filename", None) or "")
                self._learn(line, archiver)
                return archiver, _encoded(filename), columns["raw"]
            if not is_bare(line):
                return None
            raw = loadable_index(line)
            filename = str(orjson.loads(columns["filename"]))
        except (msgspec.DecodeError, ValueError, KeyError, AttributeError):
            return None
        name = relative(_encoded(filename), f"{self._day.path}/".encode())
        bare: Archiver = {"version": "", "gitcommit": "", "archiveurl": self._url}
        return bare, name, raw

    def _learn(self, line: bytes, archiver: Archiver) -> None:
        """Expect that the next lines begin as this one does."""
        head: Head = head_of(line, self._day)
        if head is not NO_HEAD:
            self._head, self._archiver = head, archiver


def _lower(members: dict[str, object]) -> Archiver:
    return {key.lower(): value for key, value in members.items()}


def _encoded(filename: str) -> bytes:
    return filename.encode(errors="surrogatepass")


class Once:
    """Says which rows are the first of their kind: of one node, Filename and content.

    One day of one table has one of these, or of the bundles that may hold the same files.
    """

    def __init__(self) -> None:
        self._seen: set[bytes] = set()

    def is_new(self, node: str, filename: bytes, raw: bytes | memoryview) -> bool:
        """Say whether a row is new; the next equal one is not.

        Args:
            node: that stored the file.
            filename: below the day's folder, as `row.relative` returns it.
            raw: the content.
        """
        seed = xxh3_64_intdigest(b"%b\0%b" % (node.encode(), filename))
        key = xxh3_128_digest(raw, seed)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True
