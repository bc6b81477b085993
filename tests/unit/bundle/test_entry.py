"""Whether a file still is what was read: a wrong yes would delete data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Entry, FileState, NotAFileError, content_hash, read_file
from jostler.bundle.file import hash_file, still_stored

if TYPE_CHECKING:
    from pathlib import Path

OLD_NS = 1_600_000_000_123_456_789


def entry_of(path: Path, *, read_after_ns: int) -> Entry:
    """Return the entry of a file that was read so long after its last change."""
    content, state = read_file(str(path), 10**6)
    touched_ns = max(state.mtime_ns, state.ctime_ns)
    return Entry("x", state, (touched_ns + read_after_ns) // 1000 + 1, content_hash(content))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    path.write_bytes(b'{"a":1}')
    return path


def test_an_untouched_file_is_unchanged(path: Path) -> None:
    """Its state says so; nothing is read again."""
    entry = entry_of(path, read_after_ns=10**10)
    assert entry.unchanged(path.stat())
    assert still_stored(str(path), entry)


def test_a_state_that_was_read_within_the_clocks_tick_proves_nothing(path: Path) -> None:
    """Then the bytes decide."""
    entry = entry_of(path, read_after_ns=1_000_000)
    assert not entry.unchanged(path.stat())
    assert still_stored(str(path), entry)


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
    assert not still_stored(str(path), entry)


def test_a_touched_file_with_its_old_bytes_is_still_stored(path: Path) -> None:
    """A new time stamp alone makes no new file."""
    entry = entry_of(path, read_after_ns=10**10)
    os.utime(path, ns=(OLD_NS, OLD_NS))
    assert not entry.unchanged(path.stat())
    assert still_stored(str(path), entry)


def test_reading_is_bounded_and_says_whether_it_was_whole(path: Path) -> None:
    """A longer file is cut at what was asked for."""
    assert read_file(str(path), 100).whole
    cut = read_file(str(path), 3)
    assert cut.content == b'{"a'
    assert not cut.whole
    assert hash_file(str(path)) == content_hash(path.read_bytes())


def test_only_regular_files_are_read(tmp_path: Path, path: Path) -> None:
    """No link is followed and no pipe waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(path)
    for name in ("pipe", "link", "."):
        with pytest.raises(OSError):  # noqa: PT011 - which error depends on what it is
            read_file(str(tmp_path / name), 10)
    with pytest.raises(NotAFileError):
        read_file(str(tmp_path), 10)
