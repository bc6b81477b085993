"""The command `jostler verify`: check the bundles of a bucket for consistency.

**Invariant:** it only reads, and writes no control characters from the bucket to the terminal.

Exit status: 0 all is well; 1 a difference was found, or nothing was found to check; 2 wrong use.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostler.archive.verify import Report, verify
from jostler.cli.flags import HELP, Flag, boolean, parse, usage
from jostler.cli.messages import say, say_error
from jostler.errors import JostlerError
from jostler.storage import open_storage
from jostler.words import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jostler.storage import Storage

WELL, WRONG, MISUSED = 0, 1, 2
ABOUT = """usage: jostler verify BUCKET-URL [PREFIX] [flags]

Reads the data, rejected1 and index1 bundles of which the data object or the index object has a
name that begins with PREFIX, and checks that they agree with each other, that every row can be
found by its index row, and that no file was stored twice.  Bundles of the Go agent are checked by
what their index has: file, size and number of rows.
Exit status: 0 all is well; 1 a difference was found, or nothing to check; 2 wrong use.

flags:
"""
FLAGS = (
    Flag(
        name="originals",
        help="directory <datatype>/<yyyy>/<mm>/<dd>/<name>: each of its files must be there too",
        variable=False,
    ),
    Flag(
        name="allow-empty",
        read=boolean,
        default="false",
        help="no bundle, or no file below -originals, is no error",
        variable=False,
    ),
    HELP,
)


def main(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> int:
    """Run the command; return its exit status."""
    parsed = parse(FLAGS, argv, environ, most_words=2)
    if parsed.values["help"]:
        sys.stdout.write(ABOUT + usage(FLAGS) + "\n")
        return WELL
    given = parsed.values["originals"]
    problems = [*parsed.problems, *_misuse(parsed.words, given)]
    if problems:
        return _say(problems, MISUSED)
    bucket, prefix = [*parsed.words, ""][:2]
    return _run(bucket, prefix, Path(given) if given else None, parsed.values)


def _misuse(words: Sequence[str], originals: str | None) -> Iterator[str]:
    if not words:
        yield "name a bucket: jostler verify BUCKET-URL [PREFIX]"
    if originals and not Path(originals).is_dir():
        yield f"-originals: {originals} is not a directory"


def _run(bucket: str, prefix: str, originals: Path | None, values: Mapping[str, Any]) -> int:
    try:
        storage = open_storage(bucket)
    except ValueError as exc:
        return _say([str(exc)], MISUSED)
    except JostlerError as exc:
        return _failed(exc)
    try:
        report = verify(storage, prefix, originals)
    except JostlerError as exc:
        return _failed(exc)
    nothing = _nothing(storage, prefix, report, originals)
    if nothing and not values["allow-empty"]:
        return _say([nothing, "-allow-empty takes this for well"], WRONG)
    return _show(report)


def _failed(exc: JostlerError) -> int:
    say_error("verify", exc)
    return WRONG


def _nothing(storage: Storage, prefix: str, report: Report, originals: Path | None) -> str:
    """Describe what was not found, so that a mistyped name does not look like success."""
    if originals and not report.originals:
        return f"{originals} has no file to compare with"
    if report.bundles or report.problems:
        return ""
    where = f"with a name that begins with {prefix!r}" if prefix else "at all"
    return f"{storage.url} has no bundle {where}: looked for *-data.jsonl.gz and *-index1.jsonl.gz"


def _show(report: Report) -> int:
    for problem in report.problems:
        sys.stdout.write(f"PROBLEM {shown(problem)}\n")
    rows = ", ".join(f"{count} {datatype}" for datatype, count in sorted(report.rows.items()))
    of_go = f" ({report.of_go} of the Go agent)" if report.of_go else ""
    problems = f"{len(report.problems)} problems"
    sys.stdout.write(f"{report.bundles} bundles{of_go}, rows: {rows or 'none'}; {problems}\n")
    return WRONG if report.problems else WELL


def _say(problems: Sequence[str], status: int) -> int:
    for problem in problems:
        say("verify", problem)
    return status
