"""Whether a file still is what was read: a wrong yes would delete data."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Confined, Entry, FileState, NotAFileError, content_hash
from jostler.bundle.entry import Entries
from jostler.bundle.file import Read, hash_file, read_file, unlink_stored
from jostler.format.row import one_line

if TYPE_CHECKING:
    from pathlib import Path

OLD_NS = 1_600_000_000_123_456_789


def read(path: Path, most: int = 10**6) -> Read:
    return read_file(Confined(str(path.parent)), path.name, most)


def unlinked(path: Path, entry: Entry) -> bool:
    """Unlink the file if it still is what was read; say whether it was."""
    with Confined(str(path.parent)).directories() as directories:
        answer = unlink_stored(directories, entry)
    assert path.exists() is not answer
    return answer


def entry_of(path: Path, *, read_after_ns: int) -> Entry:
    """Return the entry of a file that was read so long after its last change."""
    content, state, *_ = read(path)
    touched_ns = max(state.mtime_ns, state.ctime_ns)
    added_us = (touched_ns + read_after_ns) // 1000 + 1
    return Entry(path.name, state, added_us, content_hash(content))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_bytes(b'{"a":1}')
    return path


def test_an_untouched_file_is_unchanged(path: Path) -> None:
    """Its state says so; nothing is read again."""
    entry = entry_of(path, read_after_ns=10**10)
    assert entry.unchanged(path.stat())
    assert unlinked(path, entry)


def test_a_state_that_was_read_within_the_clocks_tick_proves_nothing(path: Path) -> None:
    """Then the bytes decide."""
    entry = entry_of(path, read_after_ns=1_000_000)
    assert not entry.unchanged(path.stat())
    assert unlinked(path, entry)


def test_a_file_system_of_whole_seconds_has_a_longer_tick(path: Path) -> None:
    """One second after a time stamp without a fraction, another change may have the same."""
    state = FileState(1, 7, 1_600_000_000 * 10**9, 1_600_000_000 * 10**9)
    whole = 1_600_000_000 * 10**9
    fields = {"st_mtime_ns": whole, "st_ctime_ns": whole}
    status = os.stat_result((0, 1, 0, 0, 0, 0, 7, 0, 0, 0), fields)
    soon = Entry("x", state, 1_600_000_001 * 10**6, b"")
    late = Entry("x", state, 1_600_000_003 * 10**6, b"")
    assert FileState.of(status) == state
    assert not soon.unchanged(status)
    assert late.unchanged(status)


def test_other_bytes_of_the_same_size_and_times_are_seen(path: Path) -> None:
    """The change of inode times cannot be undone by the producer."""
    entry = entry_of(path, read_after_ns=10**10)
    before = path.stat()
    path.write_bytes(b'{"a":2}')
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not unlinked(path, entry)


def test_a_touched_file_with_its_old_bytes_is_still_stored(path: Path) -> None:
    """A new time stamp alone makes no new file."""
    entry = entry_of(path, read_after_ns=10**10)
    os.utime(path, ns=(OLD_NS, OLD_NS))
    assert not entry.unchanged(path.stat())
    assert unlinked(path, entry)


@pytest.mark.parametrize(
    "content",
    [b'\xef\xbb\xbf{\r\n "a": 1\r\n}\n', b"{\n}" + b" \n" * 800_000, b"\n" * 5, b"{}"],
    ids=["bom", "several chunks", "only breaks", "none"],
)
def test_the_hash_is_of_the_bytes_on_one_line(path: Path, content: bytes) -> None:
    """As the row has them; a file that was rejected or stored long ago has that of its bytes."""
    path.write_bytes(content)
    assert hash_file(Confined(str(path.parent)), path.name) == content_hash(one_line(content))
    now_us = time.time_ns() // 1000  # within the tick: the bytes decide
    for digest in (content_hash(one_line(content)), content_hash(content)):
        path.write_bytes(content)
        assert unlinked(path, Entry(path.name, read(path, 1).state, now_us, digest))


def test_a_file_of_another_size_is_another_file(path: Path) -> None:
    """Though on one line its bytes are the same."""
    entry = entry_of(path, read_after_ns=1_000)
    path.write_bytes(b'{"a":\n1}')
    assert not unlinked(path, entry)


def test_reading_is_bounded_and_says_whether_it_was_whole(path: Path) -> None:
    """A longer file is cut at what was asked for."""
    assert read(path, 100).whole
    cut = read(path, 3)
    assert cut.content == b'{"a'
    assert not cut.whole
    assert hash_file(Confined(str(path.parent)), path.name) == content_hash(path.read_bytes())


def test_only_regular_files_are_read(tmp_path: Path, path: Path) -> None:
    """No link is followed and no pipe waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(path)
    for name in ("pipe", "link", "."):
        with pytest.raises(OSError):  # noqa: PT011 - which error depends on what it is
            read(tmp_path / name, 10)
    with pytest.raises(NotAFileError):
        read(tmp_path, 10)


def test_numbers_of_any_size_are_kept(path: Path) -> None:
    """Times before 1970 and after 2262 and the highest inodes; a wrong clock stops nobody."""
    for inode, mtime_ns in ((2**64 - 1, -1), (1, 2**70), (2**63, -(2**70)), (1, 2**63 - 1)):
        state = FileState.fitted(inode, 7, mtime_ns, mtime_ns)
        (kept,) = Entries([Entry("x", state, 10**15, b"")])
        assert kept.state == state
        assert FileState.fitted(*state) == state
    assert FileState.fitted(1, 7, 2**70, 1) != FileState.fitted(1, 7, 2**62, 1)
