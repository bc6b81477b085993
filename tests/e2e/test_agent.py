"""From files that a service writes to rows in a bucket, with real processes."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from jostler.storage import open_storage
from tests.support.agent import RunningAgent, arguments, once, run
from tests.support.bucket import assert_all_archived, problems, reasons, rows, url_of
from tests.support.disk import fill, small_disk
from tests.support.spool import DAY, Spool, document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.gcs import GcsServer

QUICK = ("-bundle-age-max", "200ms", "-settle-age", "200ms")


def wait_until_empty(spool: Spool, agent: RunningAgent) -> None:
    while spool.left() or spool.journal():
        agent.wait_for("bundle.stored")


@pytest.mark.parametrize("kind", ["directory", "gcs"])
def test_files_written_while_the_agent_runs_are_archived(
    tmp_path: Path, gcs: GcsServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half by rename and half by open-write-close, of two datatypes, on two days."""
    bucket = url_of(tmp_path / "bucket")
    if kind == "gcs":
        bucket = "live"
        gcs.create_bucket(bucket)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", gcs.url)
    spool = Spool(tmp_path / "spool", "foo1", "bar1")
    with RunningAgent(*arguments(spool, bucket, *QUICK)) as agent:
        agent.wait_for("agent.started")
        for number in range(80):
            spool.write(
                f"m{number}.json",
                document(number, size=2000),
                rename=number % 2 == 0,
                datatype=("foo1", "bar1")[number % 3 == 0],
                day=("2026/01/02", "2026/01/03")[number % 5 == 0],
            )
        wait_until_empty(spool, agent)
        assert agent.stop() == 0

    assert_all_archived(spool, bucket)
    assert len(rows(bucket, "foo1")) + len(rows(bucket, "bar1")) == 80
    names = {info.name for info in open_storage(bucket).list("autoload/v1/tables/")}
    assert names == {
        f"autoload/v1/tables/exp/{datatype}.table.json"
        for datatype in ("foo1", "bar1", "index1", "rejected1")
    }


@pytest.mark.slow
def test_a_burst_that_overflows_the_queue_is_archived_completely(tmp_path: Path) -> None:
    """40,000 files, more than the kernel queues, while the agent cannot read its events."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    argv = arguments(spool, bucket, "-bundle-age-max", "2s", "-settle-age", "1s")
    with RunningAgent(*argv) as agent:
        agent.wait_for("agent.started")
        (spool.experiment / "foo1" / "2026" / "01" / "02").mkdir(parents=True)
        spool.write("first.json", document(0))
        agent.wait_for("bundle.stored")
        os.kill(agent.pid, signal.SIGSTOP)
        day = spool.experiment / "foo1" / DAY
        for number in range(40_000):
            with open(f"{day}/b{number}.json", "wb") as file:  # noqa: PTH123 - a burst is quick
                file.write(b'{"UUID":"%d"}' % number)
        os.kill(agent.pid, signal.SIGCONT)
        agent.wait_for("watch.overflowed")
        stored = 1
        while stored < 40_001:
            stored += agent.wait_for("bundle.stored")["files"]
        assert agent.stop() == 0

    assert spool.left() == []
    uuids = [row["raw"]["UUID"] for row in rows(bucket, "foo1")]
    assert len(uuids) == 40_001
    assert len(set(uuids)) == 40_001


def test_each_bad_file_ends_in_rejected1_with_its_reason(tmp_path: Path) -> None:
    """Good ones, pretty-printed or not, are archived beside them; the spool is empty."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    bad = {
        "not-json.json": (b'{"UUID":', "not-json"),
        "array.json": (b"[]", "not-object"),
        "unknown.json": (b'{"Nope":1}', "unknown-field"),
        "type.json": (b'{"Rate":"fast"}', "wrong-type"),
        "twice.json": (b'{"Rate":1,"rate":2}', "duplicate-key"),
        "null.json": (b'{"Samples":[null]}', "null-element"),
        "range.json": (b'{"Samples":[{"T":9223372036854775808}]}', "out-of-range"),
        "time.json": (b'{"StartTime":"2026-13-01T00:00:00Z"}', "bad-timestamp"),
        "utf8.json": (b'{"UUID":"\xff"}', "not-utf8"),
        "nan.json": (b'{"Rate":NaN}', "not-json"),
        "empty.json": (b"", "empty"),
        "big.json": (document(1, size=300_000), "too-big"),
        "sp ace.json": (document(2), "name"),
        "dots..json": (document(3), "name"),
    }
    for name, (content, _) in bad.items():
        spool.write(name, content, keep=False)
    spool.write("deep.json", document(4), day="2026/01/02/03", keep=False)
    spool.write("feb.json", document(5), day="2026/02/30", keep=False)
    for number in range(10):
        pretty = json.dumps(json.loads(document(number)), indent=2).replace("\n", "\r\n")
        spool.write(f"pretty{number}.json", b"\xef\xbb\xbf" * (number % 2) + pretty.encode())

    done = once(spool, bucket, "-bundle-size-max", "100KB")

    assert done.returncode == 0, done.stdout
    expected = {f"{DAY}/{name}": reason for name, (_, reason) in bad.items()}
    expected |= {"2026/01/02/03/deep.json": "path", "2026/02/30/feb.json": "path"}
    assert reasons(bucket) == expected
    assert_all_archived(spool, bucket)
    for row in rows(bucket, "rejected1"):
        name = row["raw"]["Filename"].rpartition("/")[2]
        if name in bad:
            assert base64.b64decode(row["raw"]["Content"]) == bad[name][0]
        assert row["raw"]["Datatype"] == "foo1"
        assert row["raw"]["Detail"]


def test_a_flaw_is_named_by_its_field(tmp_path: Path) -> None:
    """The rejected1 row and the log line say where, what was expected and what was found."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write("x.json", b'{"Samples":[{"T":1},{"T":1.5}]}', keep=False)

    done = once(spool, bucket)

    (row,) = rows(bucket, "rejected1")
    assert row["raw"]["Field"] == "Samples[1].T"
    assert "INTEGER" in row["raw"]["Detail"]
    assert '"field":"Samples[1].T"' in done.stdout


@pytest.mark.parametrize(("choice", "left"), [("keep", 1), ("delete", 0)])
def test_bad_files_can_be_kept_or_deleted(tmp_path: Path, choice: str, left: int) -> None:
    """Both are counted and said; nothing of them goes to the bucket."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write("bad.json", b"{", keep=False)
    spool.write_many(2)

    done = once(spool, bucket, "-bad-files", choice)

    assert len(spool.left()) == left
    assert rows(bucket, "rejected1") == []
    assert problems(bucket, spool.originals) == []
    assert "file.rejected" in done.stdout
    assert done.returncode == 0


def test_what_is_not_the_agents_is_not_touched(tmp_path: Path) -> None:
    """Hidden files, other extensions, links and pipes stay where they are."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    target = spool.write("good.json", document(1))
    for name in (".hidden.json", "notes.txt", "x.json.tmp"):
        spool.write(name, b"{}", keep=False)
    target.with_name("link.json").symlink_to(target)
    os.mkfifo(target.with_name("pipe.json"))

    assert once(spool, bucket).returncode == 0
    assert spool.left() == [
        f"{DAY}/{name}"
        for name in (".hidden.json", "link.json", "notes.txt", "pipe.json", "x.json.tmp")
    ]
    assert len(rows(bucket, "foo1")) == 1
    assert rows(bucket, "rejected1") == []


def test_a_half_written_file_met_by_a_scan_is_never_rejected(tmp_path: Path) -> None:
    """It waits until it is closed, however long it pauses, and is then archived whole."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    content = document(7)
    path = spool.write("slow.json", content)
    with path.open("wb") as file:
        file.write(content[:50])
        file.flush()
        with RunningAgent(*arguments(spool, bucket, *QUICK)) as agent:
            agent.wait_for("agent.started")
            spool.write("other.json", document(8))
            agent.wait_for("bundle.stored")
            spool.write("another.json", document(9))
            agent.wait_for("bundle.stored")
            file.write(content[50:])
            file.close()
            wait_until_empty(spool, agent)
            assert agent.stop() == 0
    assert rows(bucket, "rejected1") == []
    assert_all_archived(spool, bucket)


def test_files_from_before_the_start_are_archived_within_seconds(tmp_path: Path) -> None:
    """Good ones need not be as old as missed-age."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write_many(5)
    with RunningAgent(*arguments(spool, bucket, *QUICK, "-missed-interval", "1h")) as agent:
        wait_until_empty(spool, agent)
        assert agent.stop() == 0
    assert_all_archived(spool, bucket)


def test_once_leaves_young_bad_files_alone_unless_told(tmp_path: Path) -> None:
    """-missed-age decides; 0s takes everything."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write("old.json", b"{", keep=False, age_s=7200)
    spool.write("young.json", b"{", keep=False)

    once(spool, bucket, "-missed-age", "1h")
    assert spool.left() == [f"{DAY}/young.json"]
    once(spool, bucket, "-missed-age", "0s")
    assert spool.left() == []


def test_sigterm_flushes_what_is_open(tmp_path: Path) -> None:
    """A bundle that is far from full or old is uploaded, and the status says all is well."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    with RunningAgent(*arguments(spool, bucket, "-verbose")) as agent:
        agent.wait_for("agent.started")
        spool.write_many(3)
        for _ in range(3):
            agent.wait_for("file.taken")
        assert agent.stop() == 0
    assert_all_archived(spool, bucket)


def test_the_agent_can_be_told_when_to_stop(tmp_path: Path) -> None:
    """-test-interval ends a run as SIGTERM does."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write_many(3)
    argv = arguments(spool, bucket, "-test-interval", "1s", "-settle-age", "0s")
    with RunningAgent(*argv) as agent:
        assert agent.wait() == 0
    assert_all_archived(spool, bucket)


def test_memory_is_bounded_whatever_the_number_of_days(tmp_path: Path) -> None:
    """Files of many days and datatypes open many bundles; the held bytes stay below the limit."""
    spool = Spool(tmp_path / "spool", "foo1", "bar1")
    bucket = url_of(tmp_path / "bucket")
    for number in range(120):
        month, day = divmod(number // 2, 28)
        spool.write(
            f"m{number}.json",
            document(number, size=3000),
            datatype=("foo1", "bar1")[number % 2],
            day=f"2026/{month + 1:02d}/{day + 1:02d}",
        )

    done = once(spool, bucket, "-memory-max", "60KB", "-bundle-size-max", "30KB")

    assert done.returncode == 0, done.stdout
    assert '"reason":"memory"' in done.stdout
    assert_all_archived(spool, bucket)


@pytest.mark.long
def test_a_hundred_thousand_small_files_need_little_memory(tmp_path: Path) -> None:
    """A backlog is a stream: the peak is that of a few bundles, not of the backlog."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    day = spool.experiment / "foo1" / DAY
    day.mkdir(parents=True)
    for number in range(30_000):
        (day / f"b{number}.json").write_bytes(b'{"UUID":"%d"}' % number)
    with RunningAgent(*arguments(spool, bucket, *QUICK, "-bundle-size-max", "1MB")) as agent:
        stored = 0
        while stored < 30_000:
            stored += agent.wait_for("bundle.stored")["files"]
        assert agent.peak_rss_bytes() < 100 * 1024 * 1024
        assert agent.stop() == 0
    assert len(rows(bucket, "foo1")) == 30_000


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")


@needs_root
def test_files_that_may_not_be_deleted_are_stored_once(tmp_path: Path) -> None:
    """Read but not delete: said loudly, and unlinked when it becomes possible."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write_many(3)
    for path in (spool.experiment / "foo1").rglob("*"):
        os.chown(path, OTHER_UID, OTHER_UID)

    first = _run_unprivileged(arguments(spool, bucket, "-once", "-missed-age", "0s"))
    second = _run_unprivileged(arguments(spool, bucket, "-once", "-missed-age", "0s"))

    assert "files.undeletable" in first.stdout
    assert (first.returncode, second.returncode) == (1, 1)
    assert len(spool.left()) == 3
    assert len(rows(bucket, "foo1")) == 3
    assert once(spool, bucket).returncode == 0
    assert_all_archived(spool, bucket)


@needs_root
def test_an_unreadable_file_is_reported_and_stays(tmp_path: Path) -> None:
    """Nothing is deleted whose bytes were not stored."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    path = spool.write("secret.json", document(1), keep=False)
    path.chmod(0o600)
    os.chown(path, OTHER_UID, OTHER_UID)
    argv = arguments(spool, bucket, *QUICK, "-test-interval", "5s", "-missed-age", "0s")

    done = _run_unprivileged(argv)

    assert '"reason":"unreadable"' in done.stdout, done.stdout
    assert spool.left() == [f"{DAY}/secret.json"]
    assert reasons(bucket) == {f"{DAY}/secret.json": "unreadable"}


@needs_root
def test_once_says_that_an_unreadable_file_is_left(tmp_path: Path) -> None:
    """Exit status 0 would claim that nothing is left which should have gone."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write_many(2)
    path = spool.write("secret.json", document(1), keep=False)
    path.chmod(0o600)
    os.chown(path, OTHER_UID, OTHER_UID)

    done = _run_unprivileged(arguments(spool, bucket, "-once", "-missed-age", "0s"))

    assert done.returncode == 1
    assert spool.left() == [f"{DAY}/secret.json"]
    assert reasons(bucket) == {f"{DAY}/secret.json": "unreadable"}
    assert len(rows(bucket, "foo1")) == 2


def test_a_file_too_big_to_travel_stays(tmp_path: Path) -> None:
    """Its rejected1 row holds a sample; nothing is deleted whose bytes are not stored."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    huge = b'{"UUID":"' + b"x" * (33 << 20) + b'"}'
    spool.write("huge.json", huge, keep=False)

    done = once(spool, bucket)

    assert done.returncode == 1
    assert spool.left() == [f"{DAY}/huge.json"]
    (row,) = rows(bucket, "rejected1")
    assert row["raw"]["Reason"] == "too-big"
    assert row["raw"]["Size"] == len(huge)
    assert base64.b64decode(row["raw"]["Content"]) == huge[: 64 << 10]


OTHER_UID = 12345


def _run_unprivileged(argv: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the agent as a root that may only do what its files' modes allow."""
    caps = "-dac_override,-dac_read_search,-fowner"
    return subprocess.run(
        ["setpriv", "--bounding-set", caps, sys.executable, "-m", "jostler", *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@needs_root
def test_a_full_disk_drains(tmp_path: Path) -> None:
    """The journal's reserve lets a spool that filled its disk be uploaded and emptied."""
    with small_disk(tmp_path / "disk", 40) as disk:
        spool = Spool(disk / "spool")
        bucket = url_of(tmp_path / "bucket")
        with RunningAgent(*arguments(spool, bucket, *QUICK)) as agent:
            agent.wait_for("agent.started")
            os.kill(agent.pid, signal.SIGSTOP)
            spool.write_many(20)
            fill(disk / "fill")
            os.kill(agent.pid, signal.SIGCONT)
            wait_until_empty(spool, agent)
            assert agent.stop() == 0
        assert len(rows(bucket, "foo1")) == 20


def test_a_second_agent_on_the_same_spool_waits(tmp_path: Path) -> None:
    """A new pod may start while the old one drains; they never work at the same time."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    with RunningAgent(*arguments(spool, bucket)) as first:
        first.wait_for("agent.started")
        with RunningAgent(*arguments(spool, bucket)) as second:
            second.wait_for("state.in_use")
            assert once(spool, bucket).returncode == 1
            assert first.stop() == 0
            second.wait_for("agent.started")
            assert second.stop() == 0


def test_v2_objects_lie_below_their_organization(tmp_path: Path) -> None:
    """As the Go agent names them; table schemas are all organizations'."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write_many(2)
    done = once(spool, bucket, "-gcs-data-dir", "autoload/v2", "-organization", "org1")

    assert done.returncode == 0
    names = [info.name for info in open_storage(bucket).list("")]
    assert any(name.startswith(f"autoload/v2/org1/exp/foo1/{DAY}/") for name in names)
    assert "autoload/v2/tables/exp/foo1.table.json" in names
    assert_all_archived(spool, bucket)


def test_a_bad_file_that_stays_is_rejected_once(tmp_path: Path) -> None:
    """However many scans meet it, until it changes."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "bucket")
    spool.write("bad.json", b"{", keep=False, age_s=3600)
    flags = ("-bad-files", "keep", "-missed-age", "1s", "-missed-interval", "50ms")
    with RunningAgent(*arguments(spool, bucket, *flags, *QUICK)) as agent:
        agent.wait_for("file.rejected")
        for number in range(3):  # each is met by a scan or an event, after more scans
            spool.write(f"m{number}.json", document(number))
            agent.wait_for("bundle.stored")
        assert agent.stop() == 0
    assert agent.log[-1]["kept"] == 1


def test_once_gives_up_when_the_bucket_fails_before_all_is_read(tmp_path: Path) -> None:
    """With status 1, and everything is still on disk."""
    spool = Spool(tmp_path / "spool")
    bucket = tmp_path / "bucket"
    spool.write_many(200)
    blocked = bucket / "autoload/v1/exp/foo1"
    blocked.parent.mkdir(parents=True)
    blocked.write_bytes(b"a file where a directory must be")

    done = once(spool, url_of(bucket), "-flush-timeout", "1s", "-bundle-size-max", "10000")

    assert done.returncode == 1
    assert len(spool.left()) == 200
    blocked.unlink()
    assert once(spool, url_of(bucket)).returncode == 0
    assert_all_archived(spool, url_of(bucket))


@needs_root
def test_what_cannot_be_unlinked_is_counted_once(tmp_path: Path) -> None:
    """A restart tries again and counts the same files no more than once."""
    spool = Spool(tmp_path / "spool")
    bucket = url_of(tmp_path / "my bucket")
    spool.write_many(3)
    for path in (spool.experiment / "foo1").rglob("*"):
        os.chown(path, OTHER_UID, OTHER_UID)
    done = _run_unprivileged(arguments(spool, bucket, "-once", "-missed-age", "0s"))
    assert '"archived":3' in done.stdout
    assert problems(bucket, spool.originals) == []


@pytest.mark.parametrize("flag", ["-state-dir", "-local-data-dir"])
def test_a_directory_that_cannot_be_made_is_named_by_its_flag(tmp_path: Path, flag: str) -> None:
    """Without a trace, and with the status of wrong use."""
    spool = Spool(tmp_path / "spool")
    schema = f"foo1:{spool.schema_file('foo1')}"
    argv = [*arguments(spool, url_of(tmp_path / "b")), "-datatype-file", schema]
    done = run(*argv, "-state-dir", str(tmp_path / "state"), "-once", flag, "/proc/none")
    assert done.returncode == 2
    assert f"jostler: {flag}: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_file_that_only_a_scan_met_is_rejected_when_it_comes_of_age(tmp_path: Path) -> None:
    """By a scan of its own: not by the next periodic one, which may be an interval later."""
    spool = Spool(tmp_path / "spool")
    spool.write("bad.json", b"[]", keep=False)
    argv = arguments(spool, url_of(tmp_path / "bucket"), "-settle-age", "0s", "-missed-age", "3s")
    with RunningAgent(*argv, "-missed-interval", "1h") as agent:
        agent.wait_for("file.rejected", reason="not-object")
        assert agent.stop() == 0
