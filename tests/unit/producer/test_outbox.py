"""The way of files into the spool: whole, durable, never replacing one another."""

from __future__ import annotations

import errno
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from jostler.producer import system
from jostler.producer.outbox import STAGING, NameTakenError, Outbox, Outcome, Published
from jostler.watchdir import How, open_arrivals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "2026/01/02/a.json"


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    with Outbox(tmp_path / "foo1") as made:
        yield made


def staged_files(outbox: Outbox) -> list[str]:
    return [path.name for path in outbox.top.glob(f"{STAGING}*/*/*")]


def test_a_published_file_has_its_bytes_its_name_and_its_time(outbox: Outbox) -> None:
    """And nothing of it is staged any more."""
    staged = outbox.stage(NAME, b'{"Rate": 93.20}', mtime_ns=1_700_000_000_123_456_000)
    assert not (outbox.top / NAME).exists()
    assert outbox.publish([staged]) == [Published(NAME, Outcome.WRITTEN)]
    assert (outbox.top / NAME).read_bytes() == b'{"Rate": 93.20}'
    assert (outbox.top / NAME).stat().st_mtime_ns == 1_700_000_000_123_456_000
    assert staged_files(outbox) == []


def test_the_same_content_is_already_there_and_another_is_an_error(outbox: Outbox) -> None:
    """The same means: the same row, whatever its line breaks."""
    outbox.publish([outbox.stage(NAME, b'{"a":1}')])
    again = outbox.publish([outbox.stage(NAME, b'{"a":1}\n')])
    assert again == [Published(NAME, Outcome.ALREADY_THERE)]
    others = [outbox.stage("2026/01/02/new.json", b"{}"), outbox.stage(NAME, b'{"a":2}')]
    with pytest.raises(NameTakenError, match=r"2026/01/02/a\.json is there with other content"):
        outbox.publish(others)
    assert (outbox.top / NAME).read_bytes() == b'{"a":1}'
    assert not (outbox.top / "2026/01/02/new.json").exists()
    assert staged_files(outbox) == []


def test_another_name_is_chosen_once_for_the_same_content(outbox: Outbox) -> None:
    """So that a repetition finds the file which the first try wrote."""
    outbox.publish([outbox.stage(NAME, b'{"a":1}')])
    (first,) = outbox.publish([outbox.stage(NAME, b'{"a":2}')], rename=True)
    assert first.outcome is Outcome.RENAMED
    assert (outbox.top / first.filename).read_bytes() == b'{"a":2}'
    (second,) = outbox.publish([outbox.stage(NAME, b'{"a":2}')], rename=True)
    assert second == Published(first.filename, Outcome.ALREADY_THERE)


@pytest.mark.parametrize("has_flag", [True, False])
def test_no_file_is_replaced_by_one_that_was_not_there_when_it_was_looked_for(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch, has_flag: bool
) -> None:
    """Also where the file system knows no rename that replaces nothing."""
    if not has_flag:
        monkeypatch.setattr(system, "_function", lambda _name: None)
    monkeypatch.setattr(outbox, "_refuse_taken", lambda _staged: None)
    outbox.publish([outbox.stage(NAME, b'{"a":1}')])
    with pytest.raises(NameTakenError):
        outbox.publish([outbox.stage(NAME, b'{"a":2}')])
    assert (outbox.top / NAME).read_bytes() == b'{"a":1}'
    outbox.publish([outbox.stage("2026/01/02/b.json", b'{"a":2}')])
    assert (outbox.top / "2026/01/02/b.json").read_bytes() == b'{"a":2}'
    assert staged_files(outbox) == []


def test_a_watcher_sees_final_names_alone_and_each_at_once(tmp_path: Path) -> None:
    """A rename is an event; what is staged lies where the agent neither watches nor looks."""
    top = tmp_path / "foo1"
    top.mkdir()
    with open_arrivals([top], extensions=(".json", "0", "1")) as arrivals, Outbox(top) as outbox:
        outbox.publish([outbox.stage(NAME, b"{}")])  # makes the folder, which a scan reads
        until = time.monotonic() + 60
        seen: dict[str, How] = {}
        while not seen and time.monotonic() < until:
            arrivals.wait(0.1)
            seen |= dict(arrivals.take(10))
        outbox.stage("2026/01/02/staged.json", b"{}")
        outbox.publish([outbox.stage("2026/01/02/b.json", b"{}")])
        while len(seen) < 2 and time.monotonic() < until:
            arrivals.wait(0.1)
            seen |= dict(arrivals.take(10))
    assert seen.keys() == {f"{top}/{NAME}", f"{top}/2026/01/02/b.json"}
    assert seen[f"{top}/2026/01/02/b.json"] is How.EVENT


def test_what_a_killed_process_staged_is_removed_and_what_lives_is_not(tmp_path: Path) -> None:
    """The lock on the directory ends with its process."""
    top = tmp_path / "foo1"
    ready, told = os.pipe()
    child = os.fork()
    if not child:
        made = Outbox(top)
        made.stage(NAME, b"{}")
        os.write(told, b".")
        signal.pause()
    os.read(ready, 1)
    with Outbox(top) as other:
        lived = staged_files(other)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(lived) == 1
        with Outbox(top):
            assert staged_files(other) == []
        assert other.publish([other.stage(NAME, b"{}")])  # its own directory was left alone
    assert [path.name for path in top.iterdir()] == ["2026"]


def test_a_full_disk_leaves_nothing_behind(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a final name nor a staged file."""

    def full(_fd: int, content: bytes) -> int:
        del content
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space"):
            outbox.stage(NAME, b"{}")
    assert staged_files(outbox) == []
    assert not (outbox.top / NAME).exists()


def test_contents_are_synced_before_names_and_names_before_the_end(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file and its folder by fsync, many by one syncfs each."""
    done: list[str] = []
    real_fsync, real_move = os.fsync, system.rename_new

    def fsync(fd: int) -> None:
        done.append("folder" if os.path.isdir(f"/proc/self/fd/{fd}") else "file")  # noqa: PTH112
        real_fsync(fd)

    def move(name: str, new: str, *, source: int, target: int) -> None:
        done.append("move")
        real_move(name, new, source=source, target=target)

    outbox.publish([outbox.stage(NAME, b"{}")])  # the folder is there from now on
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr("jostler.producer.folders.rename_new", move)
    for module in ("outbox", "folders"):
        monkeypatch.setattr(f"jostler.producer.{module}.sync_all", lambda _fd: done.append("all"))
    outbox.publish([outbox.stage("2026/01/02/b.json", b"{}")])
    assert done == ["file", "move", "folder"]
    done.clear()
    many = [outbox.stage(f"2026/01/02/m{nth}.json", b"{}") for nth in range(20)]
    outbox.publish(many)
    if system.can_sync_all():
        assert done == ["all", *["move"] * 20, "all"]
    else:
        assert done == [*["file"] * 20, *["move"] * 20, "folder"]
