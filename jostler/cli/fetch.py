"""The command `jostler fetch`: save stored files to disk.

**Invariant:** a file under its final name is complete and has the Hash of its index; no file that
was there before is changed.
"""

from __future__ import annotations

from pathlib import Path

from jostler.archive.address import AddressError
from jostler.archive.reading import RowReader, Unread
from jostler.archive.saving import Directory, DiskError, Saved, SaveError
from jostler.archive.template import Template
from jostler.cli.addresses import ADDRESSES_MOST, Files, given
from jostler.cli.archive_command import Archive, Command
from jostler.cli.cat import WHERE_FROM, complain
from jostler.cli.flags import Flag
from jostler.cli.messages import DONE
from jostler.words import counted, size

ABOUT = """usage: jostler fetch ADDRESS... [-dir D] [-template T] [flags]

Saves stored files to a directory; their modification time is Start.  ADDRESS is as for `jostler
cat`; files of one bundle are read together.
-template makes their names of the columns of index1 ({Filename}, {Size}, {TimeAdded}, {Datatype},
{Node}, {ArchiveURL}, {Line}, {Hash}, {Offset}, {Length}, {Start}, {End}, {WorkID}), of {Name}, the
end of the Filename, and of {start_iso} and {end_iso}, as 20260102T101112Z.  A slash makes a
directory.
Exit status: 0 all are there; 1 some are not; 2 wrong use.

flags:"""
FLAGS = (
    Flag(name="dir", default=".", help="directory to save to", variable=False),
    Flag(name="template", default="{Name}", help="names of the saved files", variable=False),
    *WHERE_FROM,
)


def run(archive: Archive, words: list[str]) -> int:
    """Save the files.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be searched.
    """
    template = Template(archive.values["template"])
    directory = Directory(Path(archive.values["dir"]))
    addresses = sorted(given(archive, words), key=lambda one: (one.bucket, str(one.bundle or "")))
    files, status = [], DONE
    for found in Files(archive).of(addresses):
        if isinstance(found, AddressError):
            status = complain(archive, found)
        else:
            files.append(found)
    files.sort(key=lambda file: (file.origin.bucket, file.origin.data))
    reader = archive.closing(RowReader(archive.bucket, archive.moved))
    written = already = unverified = 0
    for row in reader.read_all(files):
        if isinstance(row, Unread):
            status = complain(archive, row.error)
            continue
        try:
            path = directory.path(template.name(row.file))
            saved = directory.save(path, row.raw, row.file.begin)
        except DiskError as exc:
            status = complain(archive, exc)
            archive.say("stopped: the files that follow were not tried")
            break
        except SaveError as exc:
            status = complain(archive, exc)
            continue
        written += saved is Saved.WRITTEN
        already += saved is Saved.ALREADY
        unverified += not row.verified
        archive.progress.files += 1
        archive.progress.size_bytes += len(row.raw)
    archive.say(
        f"{counted(written, 'file')} saved, {already} already there,"
        f" {size(archive.progress.size_bytes)}"
        + (f"; {unverified} without a hash to verify" if unverified else "")
    )
    return status


main = Command(name="fetch", about=ABOUT, flags=FLAGS, most_words=ADDRESSES_MOST, run=run).main
