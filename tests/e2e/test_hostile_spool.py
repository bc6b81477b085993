"""What a producer may do in the spool, by accident or on purpose, harms nobody else."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from jostler.bundle import Journal
from tests.support.agent import RunningAgent, arguments, once
from tests.support.bucket import assert_all_archived, rows, url_of
from tests.support.disk import fill, small_disk
from tests.support.spool import DAY, Spool, document
from tests.unit.bundle.parts import header, record_of

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ("-bundle-age-max", "1s", "-settle-age", "200ms")


def test_a_directory_replaced_by_a_link_leads_to_no_file_outside(tmp_path: Path) -> None:
    """What lies there is neither uploaded nor deleted, although a file of that path was taken."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "m.json"
    secret.write_bytes(document(77))
    os.utime(secret, (1_600_000_000, 1_600_000_000))
    with RunningAgent(*arguments(spool, bucket, *QUICK, "-verbose")) as agent:
        agent.wait_for("agent.started")
        path = spool.write("m.json", document(1))
        agent.wait_for("file.taken")
        path.parent.rename(path.parent.with_name(".away"))
        path.parent.symlink_to(outside)
        agent.wait_for("bundle.stored")
        spool.write("later.json", document(2), day="2026/01/03")
        agent.wait_for("bundle.stored")
        assert agent.stop() == 0

    assert secret.exists()
    uploaded = [row["raw"]["UUID"] for row in rows(bucket, "foo1")]
    assert len(uploaded) == 2
    assert not [uuid for uuid in uploaded if uuid.startswith("u-77-")]


# Not every file system keeps such times; what it makes of them is as good a test.
@pytest.mark.parametrize("mtime_ns", [-1, -(2**31) * 10**9, 2**63 + 10**9, 2**34 * 10**9])
def test_a_file_of_any_time_is_archived(tmp_path: Path, mtime_ns: int) -> None:
    """And its good neighbours with it."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write_many(2)
    odd = spool.write("odd.json", document(9))
    os.utime(odd, ns=(mtime_ns, mtime_ns))

    assert once(spool, bucket).returncode == 0
    assert_all_archived(spool, bucket)
    assert (spool.experiment / "foo1" / DAY).is_dir()


def test_a_datatypes_directory_may_be_no_link(tmp_path: Path) -> None:
    """Whoever points it elsewhere would have the agent delete what lies there."""
    spool = Spool(tmp_path / "spool")
    (tmp_path / "elsewhere").mkdir()
    directory = spool.experiment / "foo1"
    directory.rmdir()
    directory.symlink_to(tmp_path / "elsewhere")

    done = once(spool, url_of(tmp_path / "bucket"))

    assert done.returncode == 2
    assert f"{directory} is a symbolic link" in done.stderr


def test_a_spool_that_is_removed_is_made_again(tmp_path: Path) -> None:
    """With its state; the bundle that was on its way is finished, and files arrive as before."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    with RunningAgent(*arguments(spool, bucket, *QUICK, "-verbose")) as agent:
        agent.wait_for("agent.started")
        spool.write("m.json", document(1))
        agent.wait_for("file.taken")
        shutil.rmtree(spool.experiment)
        shutil.rmtree(spool.state_dir)
        assert agent.wait_for("bundle.stored")["unlinked"] == 1
        if not any(line["event"] == "spool.made_again" for line in agent.log):
            agent.wait_for("spool.made_again")
        assert (spool.experiment / "foo1").is_dir()
        spool.write("later.json", document(2))
        agent.wait_for("bundle.stored")
        assert agent.stop() == 0
    assert_all_archived(spool, bucket)


def test_a_record_for_another_bucket_is_kept_and_not_obeyed(tmp_path: Path) -> None:
    """Its files wait with it; the others go where the agent's flags say."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    journal = Journal(spool.state_dir)
    with journal.open() or pytest.fail("locked"):
        journal.write(record_of(1, header(url_of(tmp_path / "foreign"))))
    spool.write("m0.json", b'{"UUID":"0"}', keep=False)
    spool.write("other.json", document(1))

    done = once(spool, bucket)

    assert done.returncode == 1
    assert "journal.foreign" in done.stdout
    assert spool.left() == [f"{DAY}/m0.json"]
    assert len(spool.journal()) == 1
    assert not (tmp_path / "foreign").exists()
    assert len(rows(bucket, "foo1")) == 1


def test_an_agent_that_first_starts_on_a_full_disk_empties_it(tmp_path: Path) -> None:
    """It has neither directory nor reserve, and whoever fills the disk goes on with it."""
    with small_disk(tmp_path / "disk", 3) as disk:
        spool = Spool(disk / "spool")
        bucket = url_of(tmp_path / "bucket")
        spool.originals = tmp_path / "originals"
        spool.write_many(100, size=5000)
        fill(disk / "ballast")

        done = once(spool, bucket, "-bundle-size-max", "100000")

        assert done.returncode == 0, done.stdout[-2000:]
        assert spool.left() == []
        assert_all_archived(spool, bucket)
        assert "journal.full" in done.stdout
