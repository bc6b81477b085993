"""A batch of the native module: what it holds, and where it ends."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from msgspec.structs import replace

from jostler.bundle import Batch, BatchRules, FileState, content_hash, native_reader, read_batch
from jostler.format.row import one_line, row
from jostler.schema import Field, Judge, Use
from jostler.schema.native import find
from tests.unit.bundle.parts import open_below

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NATIVE = find(Use.AUTO)
pytestmark = pytest.mark.skipif(not NATIVE.module, reason=NATIVE.why_not)

JUDGE = Judge((Field(name="a", type="INTEGER"), Field(name="b", type="STRING")), NATIVE)
HEAD = b'{"date":"2026-01-02","archiver":{"Version":"v","Filename":'
FOLDER = "2026/01/02/"
RULES = BatchRules(
    head=HEAD,
    folder=FOLDER,
    room_bytes=8 << 20,
    count_good=JUDGE.count_good,
    ask_writer=False,
    lease_suffices=False,
    settled_ns=0,
)
GOOD = b'{"a":1}'


def read(
    path: Path,
    names: Sequence[str],
    rules: BatchRules = RULES,
    *,
    judge: Any = JUDGE.native,  # noqa: ANN401 - or a double
) -> Batch:
    directory = os.open(path, os.O_RDONLY)
    try:
        return native_reader(judge)(directory, names, rules)
    finally:
        os.close(directory)


def written(path: Path, contents: Sequence[bytes]) -> list[str]:
    names = [f"m{nth}.json" for nth in range(len(contents))]
    for name, content in zip(names, contents, strict=True):
        (path / name).write_bytes(content)
    return names


class OnlyNative:
    """A native judge; where it takes nothing, nobody else is asked."""

    def read_batch(
        self,
        *args: Any,  # noqa: ANN401 - what there is
        **rules: Any,  # noqa: ANN401 - as above
    ) -> tuple[list[bytes], list[int], list[bytes], bool]:
        assert JUDGE.native
        batch = JUDGE.native.read_batch(*args, **rules)
        assert batch[0], "it took nothing"
        return batch


def test_each_file_gives_its_row_its_state_and_its_hash(tmp_path: Path) -> None:
    """On one line, hashed as the row has it, and larger than a batch in Python takes."""
    contents = [GOOD, b'{"a":\n 1,\r\n"b":"\xc3\xa9"}\n', b'{"b":"' + b"x" * 300_000 + b'"}', b"{}"]
    names = written(tmp_path, contents)
    os.utime(tmp_path / names[1], ns=(1, 10**18 + 1))  # else mtime and ctime are one
    facts = replace(RULES, facts=lambda *given: given)

    before_us = time.time_ns() // 1000
    batch = read(tmp_path, names, facts, judge=OnlyNative())
    after_us = time.time_ns() // 1000

    raws = list(map(one_line, contents))
    filenames = [f"{FOLDER}{name}" for name in names]
    rows = [row(HEAD, orjson.dumps(name), raw) for name, raw in zip(filenames, raws, strict=True)]
    states = [FileState.of((tmp_path / name).stat()) for name in names]
    assert batch.rows == rows
    assert batch.hashes == list(map(content_hash, raws))
    assert [tuple(batch.numbers[at : at + 4]) for at in range(0, 20, 5)] == states
    # Later than the read, a change after it would be taken for one before it.
    assert all(before_us <= us <= after_us for us in batch.numbers[4::5])
    times = [state.mtime_ns for state in states]
    assert batch.facts == list(zip(filenames, raws, times, strict=True))


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b'{"a":', b'{"a":1}{"a":2}', b'{"a":1,"A":2}', b'{"a":"x"}', b'{"c":1}'),
        *(b'{"b":"\n"}', b"\xef\xbb\xbf{}", b"{" + b" " * (1 << 20) + b"}"),
    ],
)
def test_a_file_about_which_there_is_something_to_decide_ends_it(
    tmp_path: Path, content: bytes
) -> None:
    names = written(tmp_path, [GOOD, content, GOOD])
    batch = read(tmp_path, names)
    assert len(batch.rows) == 1
    assert batch.is_cut


@pytest.mark.parametrize("kind", ["nothing", "link", "directory", "pipe"])
def test_what_is_no_file_ends_it(tmp_path: Path, kind: str) -> None:
    """No link is followed, and no open waits for the other end of a pipe."""
    names = written(tmp_path, [GOOD, GOOD, GOOD])
    file = tmp_path / names[1]
    file.unlink()
    if kind == "link":
        file.symlink_to(tmp_path / names[0])
    elif kind == "directory":
        file.mkdir()
    elif kind == "pipe":
        os.mkfifo(file)
    assert len(read(tmp_path, names).rows) == 1


def test_the_rows_never_exceed_the_room(tmp_path: Path) -> None:
    names = written(tmp_path, [GOOD] * 9)
    size = len(read(tmp_path, names).rows[0])
    for room_bytes in (0, size - 1, size, 3 * size, 3 * size + 1, 9 * size):
        batch = read(tmp_path, names, replace(RULES, room_bytes=room_bytes))
        assert len(batch.rows) == room_bytes // size
        assert batch.is_cut == (len(batch.rows) < 9)


def test_a_batch_ends_when_it_has_read_enough(tmp_path: Path) -> None:
    """That is no reason to look at the next file alone: of large ones few make a batch."""
    names = written(tmp_path, [b'{"b":"%b"}' % (b"x" * 300_000)] * 9)
    batch = read(tmp_path, names)
    assert len(batch.rows) == 4
    assert not batch.is_cut


@pytest.mark.parametrize(("suffices", "settled", "taken"), [(1, 0, 2), (0, 0, 0), (0, 1, 2)])
def test_a_file_that_a_scan_found_is_taken_if_nobody_writes_it(
    tmp_path: Path, suffices: int, settled: int, taken: int
) -> None:
    """By what the kernel says or, where that tells too little, by its age."""
    names = written(tmp_path, [GOOD, GOOD])
    settled_ns = (tmp_path / names[1]).stat().st_ctime_ns if settled else 0
    rules = replace(RULES, ask_writer=True, lease_suffices=bool(suffices), settled_ns=settled_ns)
    assert len(read(tmp_path, names, rules).rows) == taken


def test_a_file_that_was_moved_lately_is_not_settled_however_old_its_content(
    tmp_path: Path,
) -> None:
    """A copy keeps the time of its original, and the time of its last change shows the copying."""
    names = written(tmp_path, [GOOD])
    os.utime(tmp_path / names[0], (1, 1))
    changed_ns = (tmp_path / names[0]).stat().st_ctime_ns
    for settled_ns, taken in ((changed_ns - 1, 0), (changed_ns, 1)):
        rules = replace(RULES, ask_writer=True, settled_ns=settled_ns)
        assert len(read(tmp_path, names, rules).rows) == taken


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """Whether the file is taken or not."""
    names = written(tmp_path, [GOOD, GOOD, b"", b"[]"])
    read(tmp_path, names)
    assert open_below(tmp_path) == 0


def test_a_file_that_somebody_has_open_for_writing_ends_it(tmp_path: Path) -> None:
    """However old it is; the lease goes with the call."""
    names = written(tmp_path, [GOOD, GOOD])
    rules = replace(RULES, ask_writer=True, lease_suffices=True, settled_ns=1 << 62)
    with (tmp_path / names[1]).open("r+b"):
        assert len(read(tmp_path, names, rules).rows) == 1
    assert len(read(tmp_path, names, rules).rows) == 2
    with (tmp_path / names[1]).open("r+b"):
        pass  # a lease that is still held would make this wait


def test_where_it_takes_nothing_python_is_asked(tmp_path: Path) -> None:
    """A table may have a column that the native judge leaves undecided."""
    fields = (Field(name="p", type="GEOGRAPHY"),)
    judge = Judge(fields, NATIVE)
    assert judge.native
    names = written(tmp_path, [b'{"p":"POINT(1 2)"}', b'{"p":"POINT(1 95)"}'])
    rules = replace(RULES, count_good=judge.count_good)
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        batch = native_reader(judge.native)(directory, names, rules)
        assert batch.rows == read_batch(directory, names, rules).rows
    finally:
        os.close(directory)
    assert len(batch.rows) == 1
