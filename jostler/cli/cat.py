"""The command `jostler cat`: write stored files to standard output.

**Invariant:** what is written is `raw` as it is stored, and has the Hash of its index; a row that
has another one is reported and not written.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from jostler.archive.address import AddressError
from jostler.archive.reading import RowReader
from jostler.cli import streams
from jostler.cli.addresses import ADDRESSES_MOST, Files, given
from jostler.cli.archive_command import Archive, Command
from jostler.cli.archive_flags import LOOKBACK, WHICH
from jostler.cli.messages import DONE, FAILED
from jostler.errors import JostlerError
from jostler.words import shown

if TYPE_CHECKING:
    from jostler.archive.reading import Row
    from jostler.cli.flags import Flag

ABOUT = """usage: jostler cat ADDRESS... [flags]

Writes the content of stored files to standard output, as it is stored: the file's own bytes on one
line.  Of one file nothing is added; of several each ends with a line feed.
ADDRESS is a bundle's URL and a Filename (gs://bucket/.../...-data.jsonl.gz#2026/01/02/a.json, as
`jostler list -format url` writes it), a Filename, a file's own name, or a Hash; - reads addresses
from standard input, one a line.  Own names and hashes are searched in the days of -start and -end,
or else of -lookback.
Exit status: 0 all were written; 1 some were not; 2 wrong use.

flags:"""
WHERE_FROM: tuple[Flag, ...] = (
    *(flag for flag in WHICH if flag.name not in {"name", "hash"}),
    LOOKBACK,
)


def run(archive: Archive, words: list[str]) -> int:
    """Write the files.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be searched.
    """
    addresses = given(archive, words)
    reader = archive.closing(RowReader(archive.bucket, archive.moved))
    status = DONE
    for file in Files(archive).of(addresses):
        if isinstance(file, AddressError):
            status = complain(archive, file)
            continue
        try:
            row: Row = reader.read(file)
        except JostlerError as exc:
            status = complain(archive, exc)
            continue
        if not row.verified:
            archive.say(f"{file.address}: not verified, its index has no hash of what is stored")
        _write(row.raw, alone=len(addresses) == 1)
    return status


def complain(archive: Archive, exc: JostlerError) -> int:
    """Say why a file cannot be had; return the exit status."""
    archive.say(f"{exc}" + (f" ({exc.hint})" if exc.hint else ""))
    return FAILED


def _write(raw: bytes, *, alone: bool) -> None:
    """Write one file: unchanged into a pipe or file, without control characters on a terminal."""
    if sys.stdout.isatty():
        raw, alone = shown(raw.decode(errors="surrogateescape")).encode(), False
    streams.write_bytes(raw if alone else raw + b"\n")


main = Command(name="cat", about=ABOUT, flags=WHERE_FROM, most_words=ADDRESSES_MOST, run=run).main
