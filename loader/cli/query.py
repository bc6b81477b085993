"""The command `jostler-query`: ask the archive, by Spark or by BigQuery, and print the rows.

**Invariant:** standard output has nothing but rows, or what --sql and --explain print; all else is
on standard error.  A file of --out exists only if it is whole.  An interrupted question leaves no
process and no file, and no row of an answer that had not begun.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from jostler.errors import JostlerError
from loader.cli import extras
from loader.cli.console import size
from loader.cli.progress import Following
from loader.errors import LoaderError, UsageError
from loader.query.errors import QueryError
from loader.spark import jvm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from loader.cli.query_options import QueryOptions
    from loader.query.answer import Answer, Notes
    from loader.query.archive import Archive, Explained

ANSWERED, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
PROG = "jostler-query"
PACKAGES = (*extras.PACKAGES, "sqlglot")
DAMAGED_SHOWN = 10


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if missing := extras.missing(*PACKAGES, extra="loader,query"):
            return _told(missing, FAILED)
        from loader.cli.query_options import parse  # noqa: PLC0415 - after the packages are there

        options = parse(words, os.environ)
        with _interruptible():
            return command(options)
    except UsageError as exc:
        problems = "".join(f"\n  {problem}" for problem in exc.problems)
        return _told(f"wrong options (see --help):{problems}", MISUSED)
    except (LoaderError, JostlerError) as exc:
        return _told(str(exc), FAILED)
    except KeyboardInterrupt:
        return _told("interrupted: the work for this question is cancelled", INTERRUPTED)
    except BrokenPipeError:  # the reader of the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _told(text: str, status: int) -> int:
    sys.stderr.write(f"{PROG}: {text}\n")
    return status


@contextmanager
def _interruptible() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C; while the work is being cancelled, both are ignored."""

    def interrupted(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def command(options: QueryOptions) -> int:
    """Answer a question; return the exit status.

    Raises:
        LoaderError: bucket, Spark or BigQuery refuse something, or cannot be reached.
    """
    from loader.query.archive import Archive  # noqa: PLC0415 - after the packages are there

    text = sys.stdin.read() if options.question == "-" else options.question
    archive = Archive(
        options.bucket,
        experiments=options.experiment,
        lookups=options.lookup,
        project=options.project,
        location=options.location,
        naming=options.naming,
        master=options.master,
        patience_s=options.patience_s,
        collapse_repeats=options.collapse_repeats,
        on_line=_spark_line,
    )
    try:
        with _ended(archive):
            return _run(archive, text, options)
    except QueryError as exc:
        return _told(_marked(text, exc), MISUSED)


@contextmanager
def _ended(archive: Archive) -> Iterator[None]:
    """End Spark with the command, whatever happens."""
    try:
        yield
    finally:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            archive.close()
            if "pyspark" in sys.modules:
                jvm.end()
        finally:
            signal.signal(signal.SIGINT, before)


def _spark_line(line: str) -> None:
    if " ERROR " in line or "Exception" in line:
        sys.stderr.write(f"{PROG}: spark: {line}\n")


def _run(archive: Archive, text: str, options: QueryOptions) -> int:
    question = archive.question(text, options.language, options.now)
    for what, why in archive.tables.problems:
        _told(f"{what}: {why}", FAILED)
    if options.sql:
        sql = archive.bigquery_text(question, options.now) if options.bigquery else question.sql
        sys.stdout.write(f"{sql}\n")
        return ANSWERED
    if options.explain:
        _explain(archive, text, options)
        return ANSWERED
    with Following() as following:
        engine = "bigquery" if options.bigquery else "spark"
        answer = archive.answer(question, engine=engine, limit=options.limit, now=options.now)
        following.of(answer)
        with answer:
            _print(answer, options, following)
    return _noted(answer.notes, options)


def _explain(archive: Archive, text: str, options: QueryOptions) -> None:
    """Print what Spark would read."""
    found = archive.explain(text, language=options.language, now=options.now)
    for one in found:
        days = f"{one.days[0]} to {one.days[-1]}" if one.days else "none"
        lines = (
            f"table    {one.table}",
            f"days     {len(one.days)}: {days}",
            f"bundles  {one.bundles}",
            f"bytes    {one.size_bytes} ({size(one.size_bytes)}) at the most",
            f"columns  {', '.join(one.columns) or 'none'}",
            *_nodes(one),
            *_words(one),
        )
        sys.stdout.write("\n".join(lines) + "\n")


def _nodes(one: Explained) -> list[str]:
    """Return whose bundles are left out."""
    if one.nodes is None:
        return []
    return [f"nodes    {', '.join(one.nodes) or 'none'}; not read: {one.others} bundles of others"]


def _words(one: Explained) -> list[str]:
    """Return what the text index leaves out."""
    if not one.words:
        return []
    lines = [f"words    {one.words}"]
    if one.blocks:
        lines.append(f"blocks   {one.skipped} of {one.blocks} are skipped by the text index")
    if one.unfiltered:
        lines.append(f"scanned  {one.unfiltered} bundles without text index")
    return lines


def _print(answer: Answer, options: QueryOptions, following: Following) -> None:
    from loader.cli.answers import write  # noqa: PLC0415 - pyarrow
    from loader.query.charts import bars, charted, plot  # noqa: PLC0415 - as above

    shown = charted(answer)
    if options.plot or options.bars:
        table = shown.table()
        following.stop()
        if options.plot:
            plot(table, options.plot)
        if options.bars:
            with _out(options.out) as out:
                out.write(bars(table).encode())
            return
        shown = shown.again(table)
    with _out(options.out) as out:
        write(shown, options.format, out, following.stop if options.out is None else lambda: None)


@contextmanager
def _out(path: Path | None) -> Iterator[BinaryIO]:
    """Open the file for rows; it gets its name when it is whole."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with ExitStack() as undo:
        undo.callback(part.unlink, missing_ok=True)
        try:
            with part.open("xb") as file:
                yield file
            part.replace(path)
        except OSError as exc:
            raise LoaderError(f"--out {path}: {exc.strerror or exc}") from exc


def _noted(notes: Notes, options: QueryOptions) -> int:
    """Say what was left out; return the exit status."""
    for what, why in [*notes.damaged[:DAMAGED_SHOWN], *notes.problems[:DAMAGED_SHOWN]]:
        _told(f"{what}: left out: {why}", FAILED)
    left = []
    if more := max(0, len(notes.damaged) - DAMAGED_SHOWN):
        left.append(f"{more} more damaged bundles")
    if notes.bad:
        left.append(f"{notes.bad} bad rows")
    if notes.repeated:
        left.append(f"{notes.repeated} rows of files stored twice")
    if notes.collapsed:
        left.append(f"{notes.collapsed} files with the body of the file before")
    if notes.unindexed:
        left.append(f"the times of {notes.unindexed} bundles without index")
    if notes.unfiltered:
        _told(
            f"{notes.unfiltered} of {notes.bundles} bundles have no text index and were searched"
            " whole: `jostler-load index --text` makes one",
            FAILED,
        )
    if left:
        _told(f"left out: {', '.join(left)}", FAILED)
    return FAILED if options.strict and not notes.well else ANSWERED


def _marked(text: str, error: QueryError) -> str:
    """Return an error with the line it is in, and a mark below the words that are wrong."""
    begin = text.rfind("\n", 0, error.start) + 1
    end = text.find("\n", error.start)
    line = text[begin : end if end >= 0 else len(text)]
    width = max(1, min(error.end, begin + len(line)) - error.start)
    blank = "".join("\t" if char == "\t" else " " for char in line[: error.start - begin])
    return f"{error}\n  {line}\n  {blank}{'^' * width}"


if __name__ == "__main__":
    sys.exit(main())
