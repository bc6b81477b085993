"""Check that every file below a prefix of a bucket is stored once, complete, and can be found.

**Invariant:** it only reads.  The checks of one bundle are the audit's (`audit.bundle`), with each
row parsed as JSON besides; here are the prefix, the files stored twice, and the original files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from jostler.archive.audit.bundle import Stored, check, missing_data
from jostler.archive.hashes import digest
from jostler.archive.pairs import pairs
from jostler.errors import MissingError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from jostler.format.names import BundleName
    from jostler.storage import Storage


@dataclass(slots=True)
class Report:
    """The counts and problems of one check.

    Attributes:
        bundles: the number of data bundles read.
        of_go: how many of them the Go agent wrote.
        rows: the number of rows in data bundles, by datatype.
        problems: one line each.
        files: the stored files of each (datatype, Filename).
        originals: the number of original files compared.
    """

    bundles: int = 0
    of_go: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    files: dict[tuple[str, str], list[Stored]] = field(default_factory=dict)
    originals: int = 0

    def say(self, name: object, problem: str) -> None:
        """Add a problem of an object or a file."""
        self.problems.append(f"{name}: {problem}")


def verify(storage: Storage, prefix: str, originals: Path | None = None) -> Report:
    """Check all bundles whose data object or index object has a name that begins with a prefix.

    Args:
        storage: the bucket.
        prefix: the beginning of object names; empty for all.
        originals: a directory whose files `<datatype>/<yyyy>/<mm>/<dd>/<name>` must all be stored.

    Raises:
        TransientError: a request to the bucket fails.
    """
    report = Report()
    found = pairs(storage, prefix)
    report.problems += found.others
    for name, index_name in found.paired:
        try:
            _check(storage, name, index_name, report)
        except MissingError:
            report.say(name, "went away while it was looked at")
    report.problems += [missing_data(index_name).what for index_name in found.lonely]
    for (datatype, filename), stored in report.files.items():
        for file, count in Counter((one.node, one.content) for one in stored).items():
            if count > 1:
                report.say(f"{datatype}/{filename}", f"stored {count} times ({file[1]})")
    if originals:
        _check_originals(originals, report)
    return report


def _check(
    storage: Storage, name: BundleName, index_name: BundleName | None, report: Report
) -> None:
    data = storage.read(str(name)).data
    index = storage.read(str(index_name)).data if index_name else None
    found = check(name, storage.url, data, index_name, index, parse=True)
    report.bundles += 1
    report.of_go += found.go
    report.rows[name.datatype] += found.rows
    report.problems += [problem.what for problem in found.problems]
    for one in found.files:
        report.files.setdefault((one.datatype, one.filename), []).append(one)


def _check_originals(originals: Path, report: Report) -> None:
    """Report each original file that is not in the bucket with the same bytes."""
    for path in sorted(path for path in originals.rglob("*") if path.is_file()):
        report.originals += 1
        datatype, _, filename = path.relative_to(originals).as_posix().partition("/")
        content = path.read_bytes()
        raw = content.removeprefix(b"\xef\xbb\xbf").translate(None, b"\r\n")
        stored: Sequence[Stored] = report.files.get((datatype, filename), [])
        known = {"", digest(content), digest(raw)}
        if not any(one.digest == digest(raw) and one.hash in known for one in stored):
            report.say(f"{datatype}/{filename}", "is not in the bucket as it is here")
