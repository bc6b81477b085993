"""Bundles: rows, blocks, the open and the sealed bundle, the journal and the commit."""

from jostler.bundle.batch import Batch, BatchRules, ReadBatch, read_batch
from jostler.bundle.bundle import Attempt, Bundle, Header, Limits, OpenBundle, SealReason
from jostler.bundle.cleaning import Beside
from jostler.bundle.cleanup import Cleaned, Cleanup
from jostler.bundle.commit import Commit
from jostler.bundle.confined import Confined, NotAFileError
from jostler.bundle.delivery import Delivery
from jostler.bundle.entry import Entry, FileState
from jostler.bundle.events import CleanedUp, Event, GivenBack, Stored
from jostler.bundle.file import read_file, unlink_in_state, unlink_stored
from jostler.bundle.in_flight import InFlight, State
from jostler.bundle.in_flight_bundles import InFlightBundles, Released
from jostler.bundle.index import index_object, native_index_rows
from jostler.bundle.job import Halt, Stage, UploadJob
from jostler.bundle.journal import SEALED, Journal
from jostler.bundle.judging import NOTED_BYTES, Judging
from jostler.bundle.native_batch import native_reader
from jostler.bundle.open_bundles import OpenBundles, Put, Room, Stamp
from jostler.bundle.record import Record
from jostler.bundle.retry import Backoff, Retries
from jostler.bundle.upload_stats import FailedAttempt, Recurring, UploadCounts, UploadStats
from jostler.bundle.uploads import Crash, Uploads
from jostler.format.index_row import Facts
from jostler.format.row import (
    REJECT_WHOLE_BYTES,
    Archiver,
    Rejection,
    content_hash,
    has_hash,
    one_line,
    rejected_most,
)
from jostler.log import EveryMinute

__all__ = [
    "NOTED_BYTES",
    "REJECT_WHOLE_BYTES",
    "SEALED",
    "Archiver",
    "Attempt",
    "Backoff",
    "Batch",
    "BatchRules",
    "Beside",
    "Bundle",
    "Cleaned",
    "CleanedUp",
    "Cleanup",
    "Commit",
    "Confined",
    "Crash",
    "Delivery",
    "Entry",
    "Event",
    "EveryMinute",
    "Facts",
    "FailedAttempt",
    "FileState",
    "GivenBack",
    "Halt",
    "Header",
    "InFlight",
    "InFlightBundles",
    "Journal",
    "Judging",
    "Limits",
    "NotAFileError",
    "OpenBundle",
    "OpenBundles",
    "Put",
    "ReadBatch",
    "Record",
    "Recurring",
    "Rejection",
    "Released",
    "Retries",
    "Room",
    "SealReason",
    "Stage",
    "Stamp",
    "State",
    "Stored",
    "UploadCounts",
    "UploadJob",
    "UploadStats",
    "Uploads",
    "content_hash",
    "has_hash",
    "index_object",
    "native_index_rows",
    "native_reader",
    "one_line",
    "read_batch",
    "read_file",
    "rejected_most",
    "unlink_in_state",
    "unlink_stored",
]
