"""The command `jostler latest`: the newest file of each node.

**Invariant:** it only reads.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jostler.archive.catalogue import latest
from jostler.cli.archive_command import Archive, Command
from jostler.cli.archive_flags import FORMAT, LOOKBACK
from jostler.cli.list import write
from jostler.cli.messages import DONE, FAILED
from jostler.cli.records import FILES

ABOUT = """usage: jostler latest DATATYPE [NODE] [flags]

Shows the file with the greatest Start, and of equal ones the greatest TimeAdded, of each node that
stored files of the datatype within -lookback: a node that fell silent shows by the age of its file.
Files that begin more than 24 hours ahead of this machine's clock are passed over.
Exit status: 0 found; 1 there is none, or something could not be read; 2 wrong use.

flags:"""

FLAGS = (LOOKBACK, FORMAT)


def run(archive: Archive, words: list[str]) -> int:
    """Show the newest files.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be searched.
    """
    if not words:
        raise ValueError("DATATYPE: required: jostler latest DATATYPE [NODE]")
    now = datetime.now(UTC)
    since = now - timedelta(seconds=archive.values["lookback"])
    query = replace(
        archive.query(words[:1]),
        nodes=tuple(words[1:]),
        first_day=since.date(),
        last_day=now.date() + timedelta(days=1),
    )
    found = latest(archive.catalogue, query, now, archive.tally)
    write(archive, found, FILES)
    if not found:
        archive.say(f"no file of {' of '.join(words)} since {since.date()}; see -lookback")
    return DONE if found else FAILED


main = Command(name="latest", about=ABOUT, flags=FLAGS, most_words=2, run=run).main
