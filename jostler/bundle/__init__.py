"""Bundles: rows, blocks, the open and the sealed bundle, the journal and the commit."""

from jostler.bundle.bundle import Attempt, Bundle, Header, Limits, OpenBundle, SealReason
from jostler.bundle.cleanup import Cleanup, Outcome, Stored
from jostler.bundle.commit import Commit
from jostler.bundle.confined import Confined, NotAFileError
from jostler.bundle.entry import Entry, FileState
from jostler.bundle.file import content_hash, read_file
from jostler.bundle.journal import SEALED, Journal
from jostler.bundle.judging import NOTED_BYTES, Judging
from jostler.bundle.open_bundles import OpenBundles, Put, Stamp
from jostler.bundle.record import Record
from jostler.bundle.retry import Backoff, Tries
from jostler.bundle.upload_stats import Fared, Recurring, Trouble, UploadStats
from jostler.bundle.uploads import Crash, Uploads
from jostler.format.blocks import LEVELS
from jostler.format.row import (
    REJECT_WHOLE_BYTES,
    Archiver,
    Rejection,
    one_line,
    rejected_most,
)
from jostler.log import EveryMinute

__all__ = [
    "LEVELS",
    "NOTED_BYTES",
    "REJECT_WHOLE_BYTES",
    "SEALED",
    "Archiver",
    "Attempt",
    "Backoff",
    "Bundle",
    "Cleanup",
    "Commit",
    "Confined",
    "Crash",
    "Entry",
    "EveryMinute",
    "Fared",
    "FileState",
    "Header",
    "Journal",
    "Judging",
    "Limits",
    "NotAFileError",
    "OpenBundle",
    "OpenBundles",
    "Outcome",
    "Put",
    "Record",
    "Recurring",
    "Rejection",
    "SealReason",
    "Stamp",
    "Stored",
    "Tries",
    "Trouble",
    "UploadStats",
    "Uploads",
    "content_hash",
    "one_line",
    "read_file",
    "rejected_most",
]
