"""The command `jostler-sql`: run SQL in BigQuery or in the embedded BigQuery, print the result.

**Invariant:** standard output contains only the result; an error is one line on standard error.
Exit status: 0 answered; 1 not answered; 2 wrong use; 130 interrupted.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from typing import TYPE_CHECKING

from loader.cli import extras
from loader.cli.cells import cell, csv_field, padded, plain, width

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loader.bigquery.ask import Answer

ANSWERED, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130
_EPILOG = """\
With BIGQUERY_EMULATOR_HOST=http://127.0.0.1:9050 the statement runs in the embedded BigQuery (see
docs/embedded.md), otherwise in Google's, with the credentials of this machine.
Exit status: 0 answered; 1 not answered; 2 wrong use; 130 interrupted."""


def as_table(answer: Answer) -> str:
    """Write an answer as a table with aligned columns, numbers to the right."""
    if not answer.columns:
        changed = answer.changed
        return "done\n" if changed is None else f"{changed} rows changed\n"
    rows = [[cell(value) for value in row] for row in answer.rows]
    widths = [max(map(width, column)) for column in zip(answer.columns, *rows, strict=True)]
    rule = ["-" * width for width in widths]
    lines = []
    for line in [list(answer.columns), rule, *rows]:
        texts = (
            padded(text, wide, right=number)
            for text, wide, number in zip(line, widths, answer.numeric, strict=True)
        )
        lines.append("  ".join(texts).rstrip() + "\n")
    return "".join(lines)


def as_json(answer: Answer) -> str:
    """Write an answer as one JSON object per line, in a form that a load job accepts."""
    return "".join(
        json.dumps(dict(zip(answer.columns, map(plain, row), strict=True)), ensure_ascii=False)
        + "\n"
        for row in answer.rows
    )


def as_csv(answer: Answer) -> str:
    """Write an answer as CSV with a heading; NULL is an empty field, nested values are JSON."""
    if not answer.columns:
        return ""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([csv_field(value) for value in row] for row in answer.rows)
    return out.getvalue()


FORMATS: dict[str, Callable[[Answer], str]] = {"table": as_table, "json": as_json, "csv": as_csv}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="jostler-sql",
        description="Run BigQuery SQL and print the answer.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("sql", metavar="SQL", help="the statement, or - to read standard input")
    parser.add_argument(
        "--project",
        default="",
        help="project to ask; if not given, that of the credentials, or demo for the embedded one",
    )
    parser.add_argument("--location", default="", help="where the datasets are, such as US")
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="table",
        help="table (default); json, one object a line; csv, with a head",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status (2 for wrong use, by SystemExit as argparse does)."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        sys.stderr.write("jostler-sql: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _run(argv: Sequence[str] | None) -> int:
    parser = _parser()
    given = parser.parse_args(argv)
    sql = sys.stdin.read() if given.sql == "-" else given.sql
    if not sql.strip():
        parser.error("the statement is empty")
    if missing := extras.missing("google.cloud.bigquery"):
        sys.stderr.write(f"jostler-sql: {missing}\n")
        return FAILED
    from loader.bigquery.ask import AskError, ask, connect  # noqa: PLC0415 - of the extra

    try:
        sys.stdout.write(FORMATS[given.format](ask(connect(given.project, given.location), sql)))
        sys.stdout.flush()
    except AskError as exc:
        sys.stderr.write(f"jostler-sql: {exc}\n")
        return FAILED
    return ANSWERED


if __name__ == "__main__":
    sys.exit(main())
