"""The state directory: the agent's own, beside the spool, moved there from its earlier place."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Journal, state_dir
from tests.unit.bundle.parts import header, record_of

if TYPE_CHECKING:
    from pathlib import Path

AGENT, OTHER = os.geteuid(), 12345
as_root = pytest.mark.skipif(AGENT != 0, reason="gives files to another user")


def write_one(directory: Path) -> Path:
    """Have the journal of a directory write one record; return its file."""
    journal = Journal(directory)
    with journal.open() or pytest.fail("locked"):
        journal.write(record_of(2))
    (path,) = directory.glob("*.sealed")
    return path


@pytest.mark.parametrize(
    "path",
    [
        "../../secret/key.json",
        "foo1/2026/01/02/../../../../../secret/key.json",
        "/secret/key.json",
        "foo1/2026/01/02/.hidden.json",
        ".jostler/x.sealed",
        "foo1//2026/01/02/a.json",
        "m.json",
        "",
        "bar1/2026/01/02/of-another-datatype.json",
        "foo1/2026/01/03/of-another-day.json",
        "index1/2026/01/02/m.json",
    ],
)
def test_a_record_of_files_that_no_intake_takes_is_not_obeyed(tmp_path: Path, path: str) -> None:
    """Whoever came to write one could have any file uploaded and unlinked."""
    record = write_one(tmp_path / "state")
    *lines, last = record.read_text().splitlines()
    record.write_text("\n".join([*lines, json.dumps([path, *json.loads(last)[1:]])]) + "\n")

    records, ((named, why),) = Journal(tmp_path / "state").load()

    assert (records, named) == ([], record)
    assert "ValueError" in why


def test_a_record_under_the_name_of_another_is_not_obeyed(tmp_path: Path) -> None:
    record = write_one(tmp_path / "state")
    record.rename(record.with_name("other.jsonl.gz.sealed"))
    assert Journal(tmp_path / "state").load()[0] == []


@pytest.mark.parametrize("hurt", ["group", "owner", "link"])
def test_a_record_that_others_may_have_written_is_not_obeyed(tmp_path: Path, hurt: str) -> None:
    record = write_one(tmp_path / "state")
    if hurt == "group":
        record.chmod(0o664)
    elif hurt == "link":
        record.rename(tmp_path / "elsewhere")
        record.symlink_to(tmp_path / "elsewhere")
    elif AGENT == 0:
        os.chown(record, OTHER, OTHER)
    else:
        pytest.skip("gives a file to another user")

    records, unreadable = Journal(tmp_path / "state").load()

    assert records == []
    assert len(unreadable) == 1


def test_a_directory_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    directory.chmod(0o777)
    with pytest.raises(state_dir.UnsafeError, match="chmod go-w"):
        Journal(directory).open()


@as_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    os.chown(directory, OTHER, OTHER)
    with pytest.raises(state_dir.UnsafeError, match="belongs to uid 12345"):
        Journal(directory).open()


def test_a_directory_that_its_group_may_write_is_closed_to_it(tmp_path: Path) -> None:
    """Kubernetes opens each volume that it mounts to the pod's group: no reason not to start."""
    directory = tmp_path / "state"
    directory.mkdir()
    directory.chmod(0o2775)
    with Journal(directory).open() or pytest.fail("locked"):
        assert directory.stat().st_mode & 0o7777 == 0o2755


def test_the_default_lies_beside_the_spool(tmp_path: Path) -> None:
    """Whether or not anything is there yet."""
    assert state_dir.default(tmp_path, "exp") == tmp_path / ".jostler-exp"
    (tmp_path / "exp").mkdir()
    assert state_dir.default(tmp_path, "exp") == tmp_path / ".jostler-exp"


def test_on_a_disk_of_its_own_the_spool_keeps_the_state(tmp_path: Path) -> None:
    """What lies beside it may be a container's own layer, which is gone after a restart."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as disk:
        if os.stat(disk).st_dev == tmp_path.stat().st_dev:  # noqa: PTH116
            pytest.skip("one disk alone")
        (tmp_path / "exp").symlink_to(disk)
        assert state_dir.default(tmp_path, "exp") == tmp_path / "exp" / ".jostler"
        (tmp_path / ".jostler-exp").mkdir()
        assert state_dir.default(tmp_path, "exp") == tmp_path / ".jostler-exp"


def test_the_earlier_place_is_emptied(tmp_path: Path) -> None:
    """Its records are gone on with; only when its own agent has ended."""
    old, new = tmp_path / "exp" / ".jostler", tmp_path / ".jostler-exp"
    record = write_one(old)
    earlier = Journal(old)
    running = earlier.open()
    assert running
    with running:
        assert Journal(new, old).open() is None
        earlier.add_vanished({"foo1/2026/01/02/a.json": b"\1" * 16})

    journal = Journal(new, old)
    with journal.open() or pytest.fail("locked"):
        ((found,), unreadable) = journal.load()
    assert found.header == header()
    assert unreadable == []
    assert journal.vanished() == {"foo1/2026/01/02/a.json": b"\1" * 16}
    assert not old.exists()
    assert (new / record.name).exists()


def test_an_earlier_place_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    """A link, or another user's directory, in a place where producers may write."""
    elsewhere, old, new = tmp_path / "elsewhere", tmp_path / "old", tmp_path / "new"
    record = write_one(elsewhere)
    old.symlink_to(elsewhere)
    with Journal(new, old).open() or pytest.fail("locked"):
        assert record.exists()
    if AGENT == 0:
        old.unlink()
        os.chown(elsewhere, OTHER, OTHER)
        with Journal(new, elsewhere).open() or pytest.fail("locked"):
            assert record.exists()


def test_a_directory_that_is_removed_while_it_is_used_is_made_again(tmp_path: Path) -> None:
    """With its lock; whatever was to be done with a record goes on."""
    directory = tmp_path / "state"
    journal = Journal(directory)
    with journal.open() or pytest.fail("locked"):
        first = record_of(2)
        journal.write(first)
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()

        journal.remove(journal.mark_stored(first))
        second = record_of(2, header(microsecond=7))
        journal.write(second)

        assert [found.header for found in journal.load()[0]] == [second.header]
        assert Journal(directory).open() is None
