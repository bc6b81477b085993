"""The spool of one datatype, for programs in Python: what is put into it, an agent takes.

**Invariant:** a document that the agent would reject is not written, and the error says why.  What
`put` returned for is durable, and nothing half-written is ever seen under a final name.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from jostler.bundle.index_fields import IndexField, IndexFields
from jostler.format.names import OWN_DATATYPES, check_datatype, check_experiment
from jostler.format.row import one_line
from jostler.producer.checking import BUNDLE_BYTES, Checks, RefusedError, read_fields
from jostler.producer.days import day_of
from jostler.producer.naming import safe_name, timed_name
from jostler.producer.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Sequence

EXTENSIONS = (".json",)


class Spool:
    """The directory of a datatype, `<local-data-dir>/<experiment>/<datatype>`.

    Any number of threads may share one; close it at the end, or use `with`.

    Args:
        local_data_dir: the agent's `-local-data-dir`.
        experiment: the experiment.
        datatype: the datatype.
        schema: the file with the datatype's schema; by default the agent's,
            `<local-data-dir>/datatypes/<datatype>.json`.
        checks: what judges documents in place of that file.
        index_fields: the agent's `-index-field`s, as `Start=StartTime`: the day of a document is
            that of its Start.
        extensions: the agent's `-extensions`.
        max_bytes: the agent's `-bundle-size-max`.

    Raises:
        SchemaError: the schema cannot be read, or is wrong.
        ValueError: a name or an index field is not allowed.
        OSError: no file can be written there.
    """

    def __init__(
        self,
        local_data_dir: str | os.PathLike[str] = "/var/spool",
        *,
        experiment: str,
        datatype: str,
        schema: str | os.PathLike[str] | None = None,
        checks: Checks | None = None,
        index_fields: Sequence[str] = (),
        extensions: Sequence[str] = EXTENSIONS,
        max_bytes: int = BUNDLE_BYTES,
    ) -> None:
        top = Path(os.path.abspath(local_data_dir))  # noqa: PTH100 - links stay as they are
        if check_datatype(datatype) in OWN_DATATYPES:
            raise ValueError(f"{datatype!r} is jostler's own")
        self._index_fields = IndexFields(
            IndexField.parse(f"{datatype}:{field}") for field in index_fields
        )
        if checks is None:
            fields = read_fields(Path(schema or top / "datatypes" / f"{datatype}.json"))
            checks = Checks.of(datatype, fields, max_bytes=max_bytes)
        self._checks = checks
        self._extensions = tuple(extensions)
        self._outbox = Outbox(top / check_experiment(experiment) / datatype, extensions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what this process has not finished; may be called again."""
        self._outbox.close()

    def put(
        self,
        document: object,
        *,
        name: str = "",
        day: date | None = None,
        mtime: datetime | None = None,
        rename: bool = False,
    ) -> Path:
        """Write one document; return the path of its file.

        A file of that name with the same content counts as written.

        Args:
            document: JSON as bytes or str, which goes in untouched; or a dict, a dataclass, a
                msgspec.Struct or the like, which is written as JSON.
            name: of the file; characters that the agent refuses become dashes.  By default
                `<time>_<hash>.json`.
            day: of the folder; by default that of the Start that `index_fields` gives, else today
                in UTC.
            mtime: modification time of the file, aware; by default now.  Without `index_fields`,
                the agent takes it for the Start.
            rename: whether to choose another name if another content has this one.

        Raises:
            RefusedError: the agent would reject the document.
            NameTakenError: the spool has a file of this name with other content.
            TypeError, ValueError: the document cannot be written as JSON.
            OSError: the file cannot be written.
        """
        content = encoded(document)
        now = datetime.now(UTC)
        name = (
            safe_name(name, self._extensions)
            if name
            else timed_name(now, content, postfix=self._extensions[0])
        )
        # The day is not known yet, and any will do: of the path only the form is checked.
        if rejection := self._checks.rejection(content, f"2026/01/02/{name}"):
            raise RefusedError(name, rejection)
        folder = day_of(one_line(content), name, self._index_fields, day, now)
        filename = f"{folder.path}/{name}"
        mtime_ns = None if mtime is None else round(mtime.timestamp() * 1_000_000) * 1000
        staged = self._outbox.stage(filename, content, mtime_ns=mtime_ns)
        (published,) = self._outbox.publish([staged], rename=rename)
        return self._outbox.top / published.filename


def encoded(document: object) -> bytes:
    """Return a document as JSON; bytes and str are JSON already.

    Raises:
        TypeError: it has a value of a type that JSON does not have.
        ValueError: it has a number that JSON does not have, such as NaN.
    """
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode(errors="surrogatepass")
    plain: Any = msgspec.to_builtins(document, str_keys=True)
    text = json.dumps(plain, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:  # half a UTF-16 pair: the judge reports it
        return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode()
