"""Bundles: rows, blocks, the open and the sealed bundle, the journal and the commit."""

from jostler.bundle.blocks import LEVELS
from jostler.bundle.bundle import Attempt, Bundle, Header, Limits, OpenBundle, SealReason, display
from jostler.bundle.commit import Commit
from jostler.bundle.entry import Entry, FileState
from jostler.bundle.file import NotAFileError, content_hash, read_file
from jostler.bundle.journal import Journal, Record
from jostler.bundle.retry import Backoff, EveryMinute, Tries
from jostler.bundle.row import (
    REJECT_WHOLE_BYTES,
    Archiver,
    Rejection,
    one_line,
    rejected_most,
)
from jostler.bundle.shelf import Put, Shelf, Stamp
from jostler.bundle.sweep import Outcome, Stored, Sweep
from jostler.bundle.troubles import Fared, Trouble, Troubles
from jostler.bundle.uploads import Crash, Uploads

__all__ = [
    "LEVELS",
    "REJECT_WHOLE_BYTES",
    "Archiver",
    "Attempt",
    "Backoff",
    "Bundle",
    "Commit",
    "Crash",
    "Entry",
    "EveryMinute",
    "Fared",
    "FileState",
    "Header",
    "Journal",
    "Limits",
    "NotAFileError",
    "OpenBundle",
    "Outcome",
    "Put",
    "Record",
    "Rejection",
    "SealReason",
    "Shelf",
    "Stamp",
    "Stored",
    "Sweep",
    "Tries",
    "Trouble",
    "Troubles",
    "Uploads",
    "content_hash",
    "display",
    "one_line",
    "read_file",
    "rejected_most",
]
