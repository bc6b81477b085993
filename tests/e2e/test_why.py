"""`jostler why`: the right answer for a file in each state, whoever can be asked."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from jostler.format.names import BundleName, Day, Kind, Place
from jostler.storage import open_storage
from tests.support.agent import WAIT_S, RunningAgent, arguments, once, run
from tests.support.bucket import url_of
from tests.support.gcs import free_port
from tests.support.proxy import Fault, FaultyServer
from tests.support.spool import DATATYPE, DAY, EXPERIMENT, Spool, document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.gcs import GcsServer

GOOD, BAD, MISUSED, UNKNOWN = 0, 1, 2, 3
FILE = f"{DATATYPE}/{DAY}/m1.json"
SLOW = ("-bundle-age-max", "1h", "-settle-age", "1h")
BAD_DOCUMENT = b'{"UUID": {}}'


@dataclass(frozen=True)
class Said:
    """What the command said: exit status, and its JSON."""

    status: int
    answer: dict[str, Any]
    err: str

    @property
    def states(self) -> list[str]:
        return [found["state"] for found in self.answer["findings"]]

    @property
    def first(self) -> dict[str, Any]:
        first: dict[str, Any] = self.answer["findings"][0]
        return first

    def told(self, where: str) -> str:
        """Return what is said of a place, with whether it was looked at."""
        (one,) = [one for one in self.answer["looked"] if one["where"] == where]
        return f"{'looked' if one['done'] else 'NOT looked'}: {one['told']}"


def why(spool: Spool, *argv: str, gcs_url: str = "") -> Said:
    """Ask without an agent, unless an address is among the arguments."""
    address = [] if "-address" in argv else ["-address", ""]
    where = ("-local-data-dir", str(spool.root), "-experiment", EXPERIMENT)
    done = run("why", "-json", *address, *where, *argv, gcs_url=gcs_url)
    assert done.returncode != MISUSED, done.stderr
    return Said(done.returncode, json.loads(done.stdout), done.stderr)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    """Have the day's directory from the start: in a new one a file may be met without its event."""
    made = Spool(tmp_path / "spool")
    (made.experiment / DATATYPE / DAY).mkdir(parents=True)
    return made


@pytest.fixture
def bucket(tmp_path: Path) -> str:
    return url_of(tmp_path / "bucket")


@pytest.mark.parametrize(
    "name",
    ["{spool}/foo1/2026/01/02/m1.json", FILE, f"exp/{FILE}", f"{DAY}/m1.json", "m1.json"],
)
def test_a_file_on_the_disk_waits_by_whichever_name_it_is_asked_for(
    spool: Spool, name: str
) -> None:
    """Absolute, below the experiment, below the spool, as a Filename, and by its bare name."""
    spool.write("m1.json", document(1))

    said = why(spool, name.format(spool=spool.experiment))

    assert (said.status, said.states) == (GOOD, ["waiting"])
    assert said.first["file"] == FILE
    assert "no agent takes it" in said.first["why"]
    assert said.first["evidence"]["size"] == len(document(1))
    assert said.told("bucket") == "NOT looked: no -bucket given"


def test_the_experiment_is_taken_from_a_path_of_the_spool(spool: Spool) -> None:
    """No -experiment is needed beside an absolute path."""
    path = spool.write("m1.json", document(1))

    done = run("why", "-json", "-address", "", "-local-data-dir", str(spool.root), str(path))

    assert json.loads(done.stdout)["state"] == "waiting"


@pytest.mark.parametrize(
    ("path", "because"),
    [
        (f"foo1/{DAY}/.m1.json", "begins with a dot"),
        ("foo1/2026/.tmp/02/m1.json", "begins with a dot"),
        (f"foo1/{DAY}/m1.json.tmp", "does not end with .json"),
        (f"other1/{DAY}/m1.json", "'other1'"),
        ("m1.json", "no datatype's directory"),
        (f"foo1/{DAY}/link.json", "a link"),
        ("foo1/linked/01/02/m1.json", "symbolic link"),
    ],
)
def test_a_file_that_the_agent_never_looks_at_is_ignored_for_a_reason(
    spool: Spool, path: str, because: str
) -> None:
    """Names, datatypes and kinds of files by the rules of the agent itself."""
    target = spool.experiment / path
    if "linked" in path:
        (spool.root / "real/01/02").mkdir(parents=True)
        (spool.experiment / "foo1/linked").symlink_to(spool.root / "real")
    target.parent.mkdir(parents=True, exist_ok=True)
    if "link.json" in path:
        target.symlink_to("elsewhere.json")
    else:
        target.write_bytes(document(1))

    said = why(spool, "-datatype", DATATYPE, str(target))

    assert (said.status, said.states) == (BAD, ["ignored"])
    assert because in said.first["why"]


def test_an_archived_file_is_found_with_bundle_line_and_a_row_that_has_its_bytes(
    spool: Spool, bucket: str
) -> None:
    """Many rows and blocks; -show reads one block, and writes the file's own bytes."""
    for number in range(40):
        spool.write(f"m{number}.json", document(number, size=20_000))
    assert once(spool, bucket).returncode == 0

    said = why(spool, FILE, "-bucket", bucket)
    where = ("-address", "", "-experiment", EXPERIMENT, "-bucket", bucket)
    shown = run("why", FILE, "-show", *where)

    assert (said.status, said.states) == (GOOD, ["stored"])
    evidence = said.first["evidence"]
    rows = gzip.decompress(read_url(evidence["object"])).splitlines()
    assert json.loads(rows[evidence["line"] - 1])["archiver"]["Filename"] == f"{DAY}/m1.json"
    assert evidence["length"] < len(read_url(evidence["object"]))
    assert shown.stdout.encode() == document(1, size=20_000) + b"\n"
    assert "its bytes have the hash" in shown.stderr


def read_url(url: str) -> bytes:
    """Read an object of a directory bucket."""
    root, _, name = url.partition("/autoload/")
    return open_storage(root).read(f"autoload/{name}").data


def test_a_bare_name_is_looked_for_in_so_many_days_as_are_asked_for(
    spool: Spool, bucket: str
) -> None:
    """Without a day the bucket is not searched, and the answer says what is needed."""
    today = datetime.now(UTC)
    spool.write("m1.json", document(1), day=f"{today - timedelta(days=1):%Y/%m/%d}")
    assert once(spool, bucket).returncode == 0

    without = why(spool, "m1.json", "-bucket", bucket)
    within = why(spool, "m1.json", "-bucket", bucket, "-days", "3")

    assert (without.status, without.states) == (UNKNOWN, [])
    assert "-days N" in without.told("bucket")
    assert (within.status, within.states) == (GOOD, ["stored"])


def test_a_rejected_file_is_found_with_reason_field_and_bundle(spool: Spool, bucket: str) -> None:
    """A datatype that is not the file's own has no such file."""
    spool.write("bad.json", BAD_DOCUMENT)
    assert once(spool, bucket).returncode == 0

    said = why(spool, f"{DATATYPE}/{DAY}/bad.json", "-bucket", bucket)
    other = why(spool, f"bar1/{DAY}/bad.json", "-bucket", bucket)

    assert (said.status, said.states) == (BAD, ["rejected"])
    assert said.first["file"] == f"{DATATYPE}/{DAY}/bad.json"
    evidence = said.first["evidence"]
    assert (evidence["reason"], evidence["field"]) == ("wrong-type", "UUID")
    assert "/rejected1/2026/01/02/" in evidence["object"]
    assert "have the hash" in evidence["checked"]
    assert (other.status, other.states) == (UNKNOWN, [])


def test_a_file_that_was_rejected_and_then_mended_is_told_of_twice_newest_first(
    spool: Spool, bucket: str
) -> None:
    """The newest finding decides the status."""
    spool.write("m1.json", BAD_DOCUMENT)
    assert once(spool, bucket).returncode == 0
    spool.write("m1.json", document(1))
    assert once(spool, bucket).returncode == 0
    spool.write("m1.json", document(2))

    said = why(spool, FILE, "-bucket", bucket)

    assert (said.status, said.states) == (GOOD, ["waiting", "stored", "rejected"])
    hashes = [found["evidence"]["hash"] for found in said.answer["findings"]]
    assert len(set(hashes)) == 3


def test_a_file_that_comes_again_with_the_same_bytes_is_known_to_be_stored(
    spool: Spool, bucket: str
) -> None:
    """A retried delivery waits, and the answer says that nothing depends on it."""
    spool.write("m1.json", document(1))
    assert once(spool, bucket).returncode == 0
    spool.write("m1.json", document(1))

    said = why(spool, FILE, "-bucket", bucket)

    assert said.states == ["waiting", "stored"]
    assert "the same bytes are stored already" in said.first["why"]


@pytest.mark.parametrize("organized", [False, True])
def test_both_layouts_are_searched(spool: Spool, bucket: str, organized: bool) -> None:
    """With an organization, v2 and then v1."""
    spool.write("m1.json", document(1))
    v2 = ("-gcs-data-dir", "autoload/v2", "-organization", "org1") if organized else ()
    assert once(spool, bucket, *v2).returncode == 0

    said = why(spool, FILE, "-bucket", bucket, "-organization", "org1")

    assert said.states == ["stored"]
    assert ("/v2/org1/" in said.first["evidence"]["object"]) == organized


def put_go(bucket: str, filename: str, *, index_day: str = DAY) -> BundleName:
    """Store a bundle as the Go agent writes it: an absolute Filename, a bare index row."""
    name = BundleName(
        place=Place(data_dir="autoload/v1", organization="", experiment=EXPERIMENT),
        datatype=DATATYPE,
        day=Day.parse(index_day),
        created=datetime(2026, 1, 3, tzinfo=UTC),
        node="mlab1-lga01",
        kind=Kind.DATA,
    )
    archiver = {"Version": "v1", "GitCommit": "c", "ArchiveURL": "gs://x/y", "Filename": filename}
    other = {**archiver, "Filename": filename.replace("m1", "m0")}
    rows = [
        {"Date": "2026-01-02", "Archiver": a, "Raw": {"UUID": a["Filename"]}}
        for a in (other, archiver)
    ]
    added = "2026/01/02T030405.000006Z"
    index = [{"Filename": r["Archiver"]["Filename"], "Size": 9, "TimeAdded": added} for r in rows]
    storage = open_storage(bucket)
    index_name = str(name).replace("foo1/2026", "index1/2026").replace("-data.", "-index1.")
    for object_name, lines in ((str(name), rows), (index_name, index)):
        plain = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
        storage.put_new(object_name, gzip.compress(plain.encode()), {})
    return name


def test_the_go_agents_index_is_read_too(spool: Spool, bucket: str) -> None:
    """Bare rows, absolute names, no Offset: -show reads the whole bundle."""
    filename = f"/cache/data/{EXPERIMENT}/{FILE}"
    name = put_go(bucket, filename)

    said = why(spool, FILE, "-bucket", bucket, "-show")

    assert (said.status, said.states) == (GOOD, ["stored"])
    assert said.first["evidence"]["object"] == f"{bucket}/{name}"
    assert said.first["evidence"]["line"] == 2
    assert said.first["since"] == "2026-01-02T03:04:05.000006Z"
    assert json.loads(said.first["row"]) == {"UUID": filename}


def test_the_go_agent_files_by_the_clock_so_later_days_can_be_searched(
    spool: Spool, bucket: str
) -> None:
    """-days counts from the file's own day on."""
    put_go(bucket, f"/cache/data/{EXPERIMENT}/{FILE}", index_day="2026/01/03")

    assert why(spool, FILE, "-bucket", bucket).states == []
    assert why(spool, FILE, "-bucket", bucket, "-days", "2").states == ["stored"]


def test_the_indexes_of_one_node_can_be_read_alone_and_the_newest_come_first(
    spool: Spool, bucket: str
) -> None:
    """With -most 1 only the newest index is read; -node leaves out the others."""
    for number in range(2):
        spool.write(f"m{number}.json", document(number))
        assert once(spool, bucket, "-node-name", f"n{number}").returncode == 0

    newest = why(spool, FILE, "-bucket", bucket, "-most", "1")
    other = why(spool, FILE, "-bucket", bucket, "-node", "n0")

    assert newest.states == ["stored"]
    assert newest.first["evidence"]["node"] == "n1"
    assert other.states == []
    assert "1 index objects" in other.told("bucket")
    assert "of node n0 alone" in other.told("bucket")


def test_a_bundle_that_was_removed_from_the_bucket_is_missing(spool: Spool, bucket: str) -> None:
    """Its index alone is no proof."""
    spool.write("m1.json", document(1))
    assert once(spool, bucket).returncode == 0
    storage = open_storage(bucket)
    (data,) = [i.name for i in storage.list("autoload/v1/exp/foo1/")]
    storage.remove(data)

    said = why(spool, FILE, "-bucket", bucket)

    assert (said.status, said.states) == (BAD, ["missing"])


def test_what_could_not_be_read_is_said(spool: Spool, bucket: str) -> None:
    """A damaged index, an object that is no index, and indexes beyond -most."""
    for number in range(3):
        spool.write(f"m{number}.json", document(number))
        assert once(spool, bucket).returncode == 0
    storage = open_storage(bucket)
    names = [info.name for info in storage.list("autoload/v1/exp/index1/")]
    storage.remove(names[0])
    storage.put_new(names[0], b"no gzip", {})
    storage.put_new("autoload/v1/exp/index1/2026/01/02/README.md", b"?", {})

    all_of_them = why(spool, f"{DAY}/nobody.json", "-bucket", bucket).told("bucket")
    one = why(spool, f"{DAY}/m0.json", "-bucket", bucket, "-most", "1")

    assert "1 could NOT be read" in all_of_them
    assert "1 objects there are no index" in all_of_them
    assert one.status == UNKNOWN
    assert "2 more were NOT read" in one.told("bucket")


def test_a_request_that_fails_once_is_made_again(spool: Spool, gcs: GcsServer) -> None:
    """And one that fails again is told of; the other indexes are read."""
    gcs.create_bucket(bucket := f"once-{os.getpid()}")
    for number in range(2):
        spool.write(f"m{number}.json", document(number))
        assert once(spool, bucket, gcs_url=gcs.url).returncode == 0
    with FaultyServer(gcs.port) as proxy:
        fault = Fault(status=503, method="GET", path="alt=media")
        proxy.faults = [fault]
        mended = why(spool, FILE, "-bucket", bucket, gcs_url=proxy.url)
        fault.times = 100
        broken = why(spool, FILE, "-bucket", bucket, gcs_url=proxy.url)

    assert mended.states == ["stored"]
    assert "2 could NOT be read" in broken.told("bucket")


def test_a_bucket_that_does_not_answer_is_named_and_the_rest_is_reported(
    spool: Spool, gcs: GcsServer
) -> None:
    """The spool's answer stands."""
    spool.write("m1.json", document(1))

    said = why(spool, FILE, "-bucket", "no-such-bucket", gcs_url=gcs.url)

    assert said.states == ["waiting"]
    assert said.told("bucket").startswith("NOT looked: gs://no-such-bucket")


@pytest.mark.parametrize("bad", [False, True])
def test_a_sealed_file_is_found_in_the_journal_after_the_agent_was_killed(
    spool: Spool, gcs: GcsServer, bad: bool
) -> None:
    """While the bucket fails the bundle stays in the journal; kill -9 leaves it there."""
    gcs.create_bucket(bucket := f"sealed-{os.getpid()}-{bad}".lower())
    with FaultyServer(gcs.port) as proxy:
        proxy.faults = [Fault(status=503, times=0, method="POST", path="uploadType")]
        argv = arguments(spool, bucket, "-bundle-age-max", "200ms")
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            agent.wait_for("agent.started")
            proxy.faults[0].times = 10_000
            path = spool.write("m1.json", BAD_DOCUMENT if bad else document(1))
            agent.wait_for("upload.failed")
            agent.kill()

    said = why(spool, FILE)

    assert path.exists()
    assert said.states == (["rejected"] if bad else ["sealed"])
    assert said.status == (BAD if bad else GOOD)
    assert said.first["evidence"]["line"] == 1
    (entry,) = spool.journal()
    assert said.first["evidence"]["journal"] == str(spool.state_dir / entry)
    assert "no agent answers" in said.first["why"]


def test_a_file_written_anew_after_its_bundle_was_sealed_is_told_of_as_both(
    spool: Spool, gcs: GcsServer
) -> None:
    """The earlier content is on its way, the new one waits."""
    gcs.create_bucket(bucket := f"anew-{os.getpid()}")
    with FaultyServer(gcs.port) as proxy:
        proxy.faults = [Fault(status=503, times=0, method="POST", path="uploadType")]
        argv = arguments(spool, bucket, "-bundle-age-max", "200ms")
        with RunningAgent(*argv, gcs_url=proxy.url) as agent:
            agent.wait_for("agent.started")
            proxy.faults[0].times = 10_000
            spool.write("m1.json", document(1))
            agent.wait_for("upload.failed")
            agent.kill()
    spool.write("m1.json", document(2))

    said = why(spool, FILE)

    assert said.states == ["waiting", "sealed"]
    assert "written anew" in said.first["why"]


def test_an_agent_that_cannot_be_asked_is_known_by_its_lock(spool: Spool, bucket: str) -> None:
    """It may have the file in memory; nobody says that none runs."""
    path = spool.write("m1.json", document(1))
    with RunningAgent(*arguments(spool, bucket, *SLOW)) as agent:
        agent.wait_for("agent.started")
        said = why(spool, str(path))
        pid = agent.pid

    assert f"process {pid} uses" in said.first["why"]
    assert "no agent takes it" in why(spool, str(path)).first["why"]


class AskedAgent(RunningAgent):
    """A running agent that answers at `address`."""

    def __init__(self, *argv: str, gcs_url: str = "") -> None:
        self.address = f"127.0.0.1:{free_port()}"
        super().__init__(*argv, "-prometheusx.listen-address", self.address, gcs_url=gcs_url)
        self.wait_for("agent.started")

    def ask(self, *argv: str) -> Said:
        """Ask this agent, and nobody else."""
        done = run("why", "-json", "-address", self.address, *argv)
        assert done.returncode != MISUSED, done.stderr
        return Said(done.returncode, json.loads(done.stdout), done.stderr)

    def ask_until(self, true: Callable[[Said], object], *argv: str) -> Said:
        """Ask until the answer is as expected."""
        until = time.monotonic() + WAIT_S
        while not true(said := self.ask(*argv)):
            assert time.monotonic() < until, said
        return said


def test_an_open_file_is_told_by_the_agent_with_what_will_seal_its_bundle(
    spool: Spool, bucket: str
) -> None:
    """And so is a rejected one, and a bare name; nothing but -address is given."""
    with AskedAgent(*arguments(spool, bucket, *SLOW)) as agent:
        spool.write("m0.json", document(0))
        spool.write("m1.json", document(1))
        spool.write("bad.json", BAD_DOCUMENT)

        said = agent.ask_until(lambda said: said.states == ["open"], FILE)
        bare = agent.ask("m1.json")
        bad = agent.ask_until(lambda said: said.states == ["rejected"], "bad.json")

    assert (said.status, bare.first["file"]) == (GOOD, FILE)
    assert said.first["file"] == FILE
    assert said.first["evidence"]["line"] == 2
    assert said.first["evidence"]["files"] == 2
    assert re.match(
        r"the bundle is uploaded in (1 h|59 min \d+ s), or after \d+", said.first["next"]
    )
    assert said.told("agent").startswith(f"looked: {agent.address}: node node1")
    assert said.told("bucket").startswith(f"looked: {bucket}: 0 index objects")
    assert bad.status == BAD
    assert bad.first["evidence"]["reason"] == "wrong-type"


def test_a_file_that_nobody_has_closed_waits_for_its_close(spool: Spool, bucket: str) -> None:
    """However old it is; when it is closed, it is taken without waiting for its age."""
    spool.write("m1.json", document(1), age_s=600)
    with (
        (spool.experiment / FILE).open("r+b") as writing,
        AskedAgent(*arguments(spool, bucket, *SLOW)) as agent,
    ):
        while_open = agent.ask(FILE)
        writing.close()
        agent.ask_until(lambda said: said.states == ["open"], FILE)

    assert (while_open.status, while_open.states) == (GOOD, ["waiting"])
    assert while_open.first["why"] == "a process has it open for writing"


def test_a_file_that_is_bad_as_it_is_now_waits_until_it_is_sure(spool: Spool, bucket: str) -> None:
    """A scan met it half-written; -missed-age decides."""
    spool.write("m1.json", document(1)[:100], age_s=600)
    with AskedAgent(*arguments(spool, bucket, "-settle-age", "0s")) as agent:
        said = agent.ask_until(lambda said: "half written" in said.first["why"], FILE)

    assert (said.status, said.states) == (GOOD, ["waiting"])
    assert said.first["evidence"]["reason"] == "not-json"
    assert re.search(r"rejected in 2 h (50|49) min", said.first["next"])


def test_a_bad_file_that_is_kept_is_told_of_with_its_reason(spool: Spool, bucket: str) -> None:
    """With -bad-files keep; once it is mended it is a new file."""
    with AskedAgent(*arguments(spool, bucket, "-bad-files", "keep", *SLOW)) as agent:
        spool.write("m1.json", BAD_DOCUMENT)
        said = agent.ask_until(lambda said: said.states == ["kept"], FILE)
        spool.write("m1.json", document(1))
        mended = agent.ask_until(lambda said: said.states == ["open"], FILE)

    assert (said.status, mended.status) == (BAD, GOOD)
    assert said.first["why"].startswith("wrong-type: expected STRING")


def test_a_bad_file_too_large_to_be_stored_is_rejected_and_kept(spool: Spool, bucket: str) -> None:
    """Its row is a sample, its bytes are in the spool alone."""
    argv = arguments(spool, bucket, "-bundle-age-max", "200ms", "-settle-age", "1h")
    with AskedAgent(*argv) as agent:
        spool.write("m1.json", b"x" * (33 << 20), keep=False)
        agent.wait_for("bundle.stored")
        said = agent.ask_until(lambda said: len(said.states) == 2, FILE)

    assert (said.status, said.states) == (BAD, ["rejected", "kept"])
    assert "its bytes are not stored" in said.first["next"]
    assert said.answer["findings"][1]["why"].startswith("too-big")


def test_while_uploads_fail_a_file_is_sealed_and_the_next_one_waits_for_that_reason(
    spool: Spool, gcs: GcsServer
) -> None:
    """And when the bucket is back both are stored, and found there by what the agent knows."""
    gcs.create_bucket(bucket := f"failing-{os.getpid()}")
    with FaultyServer(gcs.port) as proxy:
        proxy.faults = [Fault(status=503, times=0, method="POST", path="uploadType")]
        argv = arguments(spool, bucket, "-bundle-age-max", "200ms")
        with AskedAgent(*argv, gcs_url=proxy.url) as agent:
            proxy.faults[0].times = 10_000
            spool.write("m1.json", document(1))
            agent.wait_for("upload.failed")
            sealed = agent.ask_until(lambda said: said.states == ["sealed"], FILE)
            tried = agent.ask_until(lambda said: "upload failed" in said.first["why"], FILE)
            spool.write("m2.json", document(2))
            waiting = agent.ask(f"{DATATYPE}/{DAY}/m2.json")
            proxy.faults[0].times = 0
            agent.wait_for("bundle.stored")
            agent.wait_for("bundle.stored")
            argv = [FILE, "-local-data-dir", "/nowhere", "-json", "-address", agent.address]
            stored = json.loads(run("why", *argv, gcs_url=gcs.url).stdout)

    assert (sealed.status, waiting.status) == (GOOD, GOOD)
    assert "journal" in sealed.first["evidence"]
    assert re.search(
        r"failed \d+ times, the last time with TransientError: .*503", tried.first["why"]
    )
    assert waiting.states == ["waiting"]
    assert "uploads fail" in waiting.first["why"]
    assert stored["state"] == "stored"


def test_while_uploads_lag_behind_the_next_file_waits_for_that_reason(
    spool: Spool, gcs: GcsServer
) -> None:
    """Three bundles that take half of the memory, whose uploads do not end."""
    gcs.create_bucket(bucket := f"full-{os.getpid()}")
    with FaultyServer(gcs.port) as proxy:
        slow = Fault(times=0, method="POST", path="uploadType", delay_s=30, status=0)
        proxy.faults = [slow]
        argv = arguments(spool, bucket, "-bundle-size-max", "8000", "-memory-max", "20000", *SLOW)
        with AskedAgent(*argv, gcs_url=proxy.url) as agent:
            slow.times = 10_000
            for number in range(30):
                spool.write(f"m{number}.json", document(number, size=5_000))
            said = agent.ask_until(
                lambda said: "uploads are slower" in said.first["why"], f"{DATATYPE}/{DAY}/m29.json"
            )
            agent.kill()

    assert (said.status, said.states) == (GOOD, ["waiting"])


def test_an_agent_that_is_not_ready_says_what_it_waits_for(spool: Spool, bucket: str) -> None:
    """Here for the state directory of another one; disk and journal are looked at all the same."""
    spool.write("m1.json", document(1))
    with RunningAgent(*arguments(spool, bucket, *SLOW)) as first:
        first.wait_for("agent.started")
        address = f"127.0.0.1:{free_port()}"
        argv = arguments(spool, bucket, *SLOW, "-prometheusx.listen-address", address)
        with RunningAgent(*argv) as second:
            second.wait_for("state.in_use")
            said = why(spool, FILE, "-address", address)

    assert said.states == ["waiting"]
    assert "waits for its state directory, which another agent uses" in said.first["why"]
    assert said.told("agent").startswith("NOT looked")


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become somebody else")
def test_a_file_out_of_reach_is_not_said_to_be_unknown(tmp_path: Path) -> None:
    """Whoever may not look into the directory is told so."""
    spool = Spool(tmp_path / "spool")
    path = spool.write("m1.json", document(1))
    path.parent.chmod(0o700)
    code = "import os, sys; from jostler.cli.why import main; os.setuid(65534)\n"
    code += "sys.exit(main(sys.argv[1:]))"
    argv = ("-json", "-address", "", "-local-data-dir", str(spool.root), str(path))

    done = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=False
    )

    found = json.loads(done.stdout)["findings"]
    assert [one["state"] for one in found] == ["waiting"]
    assert "uid 65534) cannot read it: Permission denied" in found[0]["why"]


@pytest.mark.parametrize(
    "name",
    ["\x1b[31mred\x07.json", "<img src=x onerror=alert(1)>.json", b"\xff\xfe.json", "a\nb.json"],
)
@pytest.mark.parametrize("archived", [False, True])
def test_hostile_names_are_found_and_harmless(
    spool: Spool, bucket: str, name: str | bytes, archived: bool
) -> None:
    """No control character reaches the terminal, as text or as JSON."""
    name = os.fsdecode(name)
    spool.write(name, document(1), keep=False)
    if archived:
        assert once(spool, bucket).returncode == 0
    asked = f"{DATATYPE}/{DAY}/{name}"

    said = why(spool, asked, "-bucket", bucket)
    argv = ("-address", "", "-local-data-dir", str(spool.root), "-experiment", EXPERIMENT)
    text = run("why", asked, *argv, "-bucket", bucket).stdout

    assert said.states == (["rejected"] if archived else ["waiting"])
    assert all(c.isprintable() or c == "\n" for c in text), ascii(text)
    assert len([line for line in text.splitlines() if line.startswith(("WAIT", "REJ"))]) == 1


def test_the_agent_finds_hostile_names_and_answers_with_escapes(spool: Spool, bucket: str) -> None:
    """Bytes that are no UTF-8, markup and control characters go through HTTP and back."""
    names = [os.fsdecode(b"\xff\x1b[2J.json"), '"><script>&name=x.json', "%2e%2e+ .json"]
    with AskedAgent(*arguments(spool, bucket, *SLOW)) as agent:
        for name in names:
            spool.write(name, document(1), keep=False)
        found = [
            agent.ask_until(lambda said: said.states == ["rejected"], f"{DATATYPE}/{DAY}/{name}")
            for name in names
        ]

    assert [said.first["evidence"]["reason"] for said in found] == ["name"] * 3
    assert found[0].first["file"] == f"{DATATYPE}/{DAY}/\\xff\\x1b[2J.json"


def test_an_unknown_file_is_unknown_and_the_answer_says_where_nobody_looked(
    spool: Spool, bucket: str
) -> None:
    """Status 3, for a script to tell from "found"."""
    said = why(spool, f"{DAY}/nobody.json")

    assert (said.status, said.answer["state"]) == (UNKNOWN, "unknown")
    for where in ("agent", "bucket", "BigQuery"):
        assert said.told(where).startswith("NOT looked")
    assert said.told("spool").startswith("looked")


@pytest.mark.parametrize(
    "argv", [[], ["a", "b"], ["x", "-nonsense"], ["../x"], ["x/"], ["x", "-address", "a b:c"]]
)
def test_wrong_use_is_said_before_anything_is_asked(argv: list[str]) -> None:
    """Status 2, and a hint."""
    done = run("why", *argv)

    assert done.returncode == MISUSED
    assert "jostler why: -help" in done.stderr


def test_neither_the_agent_nor_the_command_imports_the_loader_before_it_is_asked_for() -> None:
    """The agent's image has no BigQuery client."""
    code = "import sys, jostler.agent.agent, jostler.cli.why; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    names = done.stdout.split()
    assert "jostler.archive.bigquery" in names
    assert not [name for name in names if name.startswith(("loader", "google.cloud.bigquery"))]
