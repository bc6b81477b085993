"""Batches that the native module reads, judges, hashes and makes into rows in one call.

**Invariant:** they hold what `read_batch` gives for the same files, in the same order.  Where the
native module takes no file, `read_batch` is asked.

It reads files and changes nothing.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from jostler.bundle.batch import Batch, BatchRules, ReadBatch, read_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jostler.schema.native import NativeJudge

_END = b'"},"raw":'


def native_reader(judge: NativeJudge) -> ReadBatch:
    """Return a `ReadBatch` that asks a native judge first."""

    def read(directory: int, names: Sequence[str], rules: BatchRules) -> Batch:
        folder = rules.folder.encode()
        rows, numbers, hashes, is_cut = judge.read_batch(
            directory,
            names,
            head=rules.head,
            folder=folder,
            room_bytes=rules.room_bytes,
            ask_writer=rules.ask_writer,
            lease_suffices=rules.lease_suffices,
            settled_ns=rules.settled_ns,
        )
        if not rows:  # perhaps the native judge leaves all documents of this table undecided
            return read_batch(directory, names, rules)
        batch = Batch(rows, array("q", numbers), hashes, [], is_cut)
        if rules.facts:
            begin = len(rules.head) + len(b'"') + len(folder)
            for nth, (name, row) in enumerate(zip(names, rows, strict=False)):
                raw = row[begin + len(name.encode()) + len(_END) : -len(b"}\n")]
                mtime_ns = numbers[5 * nth + 2]
                batch.facts.append(rules.facts(rules.folder + name, raw, mtime_ns))
        return batch

    return read
