"""With batches, the agent does what it does without."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostler.agent.batching import ALONE_MAX, BATCH_FILES, Batching, Run
from jostler.agent.taking import Taken, Taking
from jostler.agent.tally import Tally
from jostler.bundle import (
    Archiver,
    Confined,
    Limits,
    OpenBundles,
    SealReason,
    Stamp,
    native_reader,
    read_batch,
)
from jostler.bundle.entry import Entries
from jostler.bundle.index import index_object
from jostler.config import BadFiles
from jostler.format.compression import AUTO
from jostler.schema import Field, Judge, Use
from jostler.schema.native import find
from jostler.watchdir import Arrival, How
from tests.unit.agent.parts import DAY, Looking
from tests.unit.bundle.parts import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jostler.bundle import Bundle, InFlight, ReadBatch

NATIVE = find(Use.AUTO)
JUDGE = Judge((Field(name="a", type="INTEGER"), Field(name="b", type="STRING")))
GOOD = [b'{"a":%d}' % number for number in range(4)]
CONTENTS = [
    *(b'{"a":1,\n"b":"\xc3\xa9"}\r\n', b'{"b":"x"}\n', b'{"b":"' + b"x" * 90 + b'"}', b"{}"),
    *(b'{"a":"x"}', b'{"a":1,"a":2}', b'{"a":1,"A":null}', b"[]", b"", b'{"b":"\n"}'),
    *(b' {"a":1}', b'{"a":1}\n{"a":2}', b'{"c":1}', b'{"c":null}', b"\xef\xbb\xbf{}"),
    b'{"b":"' + b"y" * 500 + b'"}',
    *(b'{"a":1,"\\u0061":2}', b'{"A":-0}', b'{"a":1e3}', b'{"a":1e400}', b'{"a":01}', b'{"a":NaN}'),
    *(b'{"a":9223372036854775807}', b'{"a":9223372036854775808}', b'{"a":"-9223372036854775809"}'),
    *(b'{"b":"\\ud800"}', b'{"b":"\xed\xa0\x80"}', b'{"b":"\\u00e9\\/"}', b'{"b":"\x01"}'),
    *(b'{"a":1}\x00', b'\xef\xbb\xbf{"a":1}', b" \n\t", b"\x0c{}", '{"a":1}'.encode("utf-16")),
    *(b'{\n  "a" : 1 ,\r\n\t"b" : null\n}\n\n', b'{"a":[1]}', b'{"x":{"y":null}}', b"{}{}", b"{"),
]
NAMES = ["a", "b", "c", "d", "e", "f", "g", "h", "..x", "sp ace", "k"]


class Side:
    """An agent up to its open and sealed bundles, which takes files together or one by one."""

    def __init__(self, root: Path, judge: Judge, reader: ReadBatch = read_batch) -> None:
        self.looking = Looking(root, judge=judge.flaw, reader=reader)
        self.sealed: list[Bundle] = []
        self.open_bundles = OpenBundles(
            Stamp(
                bucket="gs://bkt",
                place=PLACE,
                node="node1",
                archiver=Archiver(version="jostler@1", commit="abc"),
                compression=AUTO,
            ),
            Limits(max_bytes=700, max_age_s=60.0),
            self.looking.in_flight,
            memory_max=30_000,
            sealed=self._sealed,
            monotonic_s=lambda: 0.0,
            now=lambda: datetime(2026, 1, 2, tzinfo=UTC),
        )
        self.tally = Tally()
        self.taking = Taking(
            self.looking.intake,
            self.open_bundles,
            self.looking.left,
            self.tally,
            spool=Confined(str(root)),
            bad_files=BadFiles.UPLOAD,
        )

    def _sealed(self, _one: InFlight, bundle: Bundle) -> None:
        self.sealed.append(bundle)

    def take(self, arrivals: list[Arrival], *, batches: bool) -> int:
        """Take files as the loop does; return how many were taken in batches."""
        todo, batching, together = deque(arrivals), Batching(), 0
        self.taking.begin_round()
        while todo:
            run = batching.next(todo) if batches else None
            taken = self.taking.take_batch(run) if run else None
            files, is_cut = taken or (0, False)
            if taken is not None:
                batching.took(files, is_cut=is_cut)
            if files:
                together += files
                for _ in range(files):
                    todo.popleft()
            elif self.taking.take(todo[0]) is Taken.NO_ROOM:
                break
            else:
                todo.popleft()
        return together

    def told(self) -> list[object]:
        """Return what came of it, without the instants at which files were read."""
        held_bytes = self.looking.in_flight.open_bytes
        self.open_bundles.seal_all(SealReason.SHUTDOWN)
        bundles = [
            (
                str(bundle.header.name),
                bundle.reason,
                bundle.row_bytes,
                [(e.path, e.state, e.hash, e.facts) for e in bundle.attempt.entries],
                (bundle.data, index(bundle)),
            )
            for bundle in self.sealed
        ]
        left = self.looking.left
        tally = self.tally
        return [
            bundles,
            held_bytes,
            sorted(self.looking.in_flight.paths()),
            (left.finished, left.doubtful, left.overdue, left.waiting),
            (tally.taken, tally.file_bytes, tally.rejected, tally.vanished),
        ]


def index(bundle: Bundle) -> bytes:
    """Return the index object that a bundle has if all its files were read in 1970."""
    attempt = bundle.attempt
    entries = Entries(entry._replace(added_us=0) for entry in attempt.entries)
    return index_object(bundle.header, replace(attempt, entries=entries))


def arrivals(root: Path, files: list[tuple[str, bytes, How]]) -> list[Arrival]:
    (root / DAY).mkdir(parents=True)
    found = []
    for number, (name, content, how) in enumerate(files):
        path = root / DAY / f"{name}{number}.json"
        path.write_bytes(content)
        os.utime(path, (1_700_000_000, 1_700_000_000))
        found.append(Arrival(str(path), how))
    return found


@pytest.fixture(scope="module", autouse=True)
def _frozen() -> Iterator[None]:
    """Let all rejected files be read in one instant: it stands in their rows.

    Compressed, two instants may differ in length, and a bundle that is one byte larger may leave no
    room for the next.
    """
    now_ns = time.time_ns() + 60 * 10**9  # later than all that the tests write
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: now_ns)
        yield


files = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.one_of(st.sampled_from(GOOD), st.sampled_from(CONTENTS)),
        st.sampled_from([How.SCAN, How.SCAN, How.SCAN, How.EVENT]),
    ),
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(files)
def test_batches_change_nothing_of_what_comes_of_the_files(
    found: list[tuple[str, bytes, How]],
) -> None:
    """Neither bundles, their order and their limits, nor what is left on the disk, nor counts."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        met = arrivals(root, found)
        together, alone = Side(root, JUDGE), Side(root, JUDGE)
        together.take(met, batches=True)
        alone.take(met, batches=False)

        assert together.told() == alone.told()
        for bundle in together.sealed:
            assert bundle.row_bytes <= 700 or bundle.rejections


@pytest.mark.skipif(not NATIVE.module, reason=NATIVE.why_not)
@settings(max_examples=50, deadline=None)
@given(files)
def test_the_native_module_changes_no_byte_of_any_object(
    found: list[tuple[str, bytes, How]],
) -> None:
    """From the same spool and with the same clock; nor anything else."""
    judge = Judge(JUDGE.fields, NATIVE)
    assert judge.native
    with TemporaryDirectory() as directory:
        root = Path(directory)
        met = arrivals(root, found)
        with_it, without = Side(root, judge, native_reader(judge.native)), Side(root, JUDGE)
        with_it.take(met, batches=True)
        without.take(met, batches=False)

        assert with_it.told() == without.told()


def test_nearly_all_ordinary_files_are_taken_in_batches(tmp_path: Path) -> None:
    """The first one of each bundle opens it."""
    met = arrivals(tmp_path, [("m", b'{"a":1}', How.SCAN)] * 20)
    side = Side(tmp_path, JUDGE)
    taken = side.take(met, batches=True)
    bundles = len(side.sealed) + len(side.open_bundles.open_bundles)
    assert taken >= 20 - 2 * bundles


def line(*names: str, how: How = How.SCAN) -> deque[Arrival]:
    return deque(Arrival(f"/spool/{name}", how) for name in names)


def test_a_run_is_of_one_directory_and_one_way_of_being_found() -> None:
    todo = line("x/a", "x/b", "y/c")
    assert Batching().next(todo) == Run("/spool/x", ["a", "b"], How.SCAN)
    todo[1] = Arrival("/spool/x/b", How.EVENT)
    assert Batching().next(todo) is None
    many = line(*(f"x/{number}" for number in range(BATCH_FILES + 1)))
    run = Batching().next(many)
    assert run
    assert len(run.names) == BATCH_FILES


def test_where_batches_fail_they_become_rare() -> None:
    """A directory of odd files is not read twice; one that works makes up for all that failed."""
    batching, todo = Batching(), line("x/a", "x/b")
    alone = []
    for _ in range(9):
        batching.took(0, is_cut=True)
        alone.append(0)
        while batching.next(todo) is None:
            alone[-1] += 1
    assert alone == [1, 3, 7, 15, 31, 63, ALONE_MAX, ALONE_MAX, ALONE_MAX]
    batching.took(5, is_cut=True)
    assert batching.next(todo) is None
    assert batching.next(todo)


def test_a_full_batch_is_followed_by_another() -> None:
    """Only the file that ended a batch is taken alone: of large files, a batch holds but a few."""
    batching, todo = Batching(), line("x/a", "x/b")
    batching.took(5, is_cut=False)
    assert batching.next(todo)
