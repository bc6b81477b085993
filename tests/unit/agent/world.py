"""A whole agent in one thread, on a disk and a bucket that fail when they are told to."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import tempfile
from collections import Counter, deque
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from msgspec.structs import replace

from jostler.agent.ages import Ages
from jostler.agent.disk_lack import Space
from jostler.agent.giving_up import GivingUp
from jostler.agent.intake import Intake
from jostler.agent.left import LeftFiles
from jostler.agent.loop import Loop
from jostler.agent.low_disk import LowDisk
from jostler.agent.rules import Rules
from jostler.agent.taking import Taking
from jostler.agent.tally import Tally
from jostler.bundle import (
    Archiver,
    Commit,
    Confined,
    Delivery,
    Halt,
    InFlightBundles,
    Journal,
    Limits,
    OpenBundles,
    Stamp,
    UploadJob,
    UploadStats,
    content_hash,
)
from jostler.config import BadFiles, DiskLackAction
from jostler.errors import ConflictError, TransientError
from jostler.format.compression import AUTO
from jostler.format.row import DISK_LACK
from jostler.full_sign import FullSign
from jostler.schema import json_object_flaw
from jostler.storage import StoredObject, upload_id
from jostler.watchdir import Arrival, How
from tests.unit.bundle.parts import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from jostler.bundle import Cleanup, Crash
    from jostler.config import Config
    from jostler.schema import Flaw
    from jostler.storage import Storage

BUCKET = "gs://bkt"
MAX_BYTES = 900  # four rows, so that a batch has more than one
MAX_AGE_S = 10.0
MEMORY_MAX = 20_000
STEPS_MOST = 1000  # of a few files, with many faults before them
PLENTY = Space(free_bytes=1000, size_bytes=1000, limit_bytes=100)
NUMBER_RE = re.compile(rb"-(\d+)-")


def content_of(number: int, *, good: bool = True) -> bytes:
    """Make a file that has its number in it; a bad one may look like an object at its beginning."""
    if good:
        return b'{"UUID":"-%d-"}' % number
    return (b'{"-%d-"' if number % 2 else b'["-%d-"') % number


def number_in(content: bytes) -> int:
    """Return the number that a file has in it."""
    found = NUMBER_RE.search(content)
    assert found
    return int(found[1])


class Bucket:
    """Objects in memory.

    Attributes:
        requests: so many were made.
        faults: what happens to a request of a number: `down`, it is not answered; `lost`, it is
            carried out and its reply lost; `index1` or `data`, if it is to make such an object,
            the object is found there with other bytes.
        next_taken: `index1` or `data`, if the next such object is found there with other bytes.
        foreign: names of these objects.
        lies: index objects that say something else than their data objects hold.
    """

    url = BUCKET

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests = 0
        self.faults: dict[int, str] = {}
        self.next_taken = ""
        self.foreign: set[str] = set()
        self.lies: list[str] = []

    def put_new(
        self, name: str, data: bytes, _metadata: Mapping[str, str], *, digest: str = ""
    ) -> None:
        assert digest in {"", upload_id(data)}
        fault = self._fault()
        kind = "index1" if "-index1." in name else "data"
        if kind in {fault, self.next_taken} and name not in self.objects:
            self.next_taken = ""
            self.objects[name] = b"another's"
            self.foreign.add(name)
        if self.objects.setdefault(name, data) != data:
            raise ConflictError(f"{name} holds other bytes")
        if "-index1." in name:
            self._compare(name, data)
        if fault == "lost":
            raise TransientError("the reply was lost")

    def upload_id(self, name: str) -> str | None:
        self._fault()
        data = self.objects.get(name)
        return None if data is None else upload_id(data)

    def read(self, name: str) -> StoredObject:
        self._fault()
        return StoredObject(self.objects[name], "1")

    def _compare(self, name: str, index: bytes) -> None:
        """Compare an index object with its data object, row by row."""
        data = next(self.objects[ours] for ours in self._ours() if index_of(ours) == name)
        found = [json.loads(line)["raw"] for line in gzip.decompress(index).splitlines()]
        rows = gzip.decompress(data).splitlines()
        if len(found) != len(rows) or any(map(_lies, found, rows)):
            self.lies.append(name)

    def remove_foreign(self) -> None:
        for name in self.foreign:
            del self.objects[name]
        self.foreign.clear()

    def _fault(self) -> str:
        fault = self.faults.pop(self.requests, "")
        self.requests += 1
        if fault == "down":
            raise TransientError("the bucket is down")
        return fault

    def without_index(self) -> list[str]:
        """Return the data objects that have no index object."""
        return [name for name in self._ours() if not self._has_index(name)]

    def _ours(self) -> list[str]:
        return [n for n in self.objects if "-data.jsonl.gz" in n and n not in self.foreign]

    def _has_index(self, name: str) -> bool:
        return index_of(name) in self.objects and index_of(name) not in self.foreign

    def stored(self) -> Counter[int]:
        """Count the files whose row is durable, and whose index is too."""
        found: Counter[int] = Counter()
        raws = (raw for raw in self._raws() if raw.get("Reason") != DISK_LACK)
        found.update(map(_number_of_row, raws))
        return found

    def given_up(self) -> Counter[str]:
        """Count the durable rows of files that were given up, by path."""
        raws = [raw for raw in self._raws() if raw.get("Reason") == DISK_LACK]
        assert not any(raw["Content"] for raw in raws)
        return Counter(f"{raw['Datatype']}/{raw['Filename']}" for raw in raws)

    def _raws(self) -> Iterator[dict[str, Any]]:
        for name in filter(self._has_index, self._ours()):
            for line in gzip.decompress(self.objects[name]).splitlines():
                yield json.loads(line)["raw"]


def index_of(name: str) -> str:
    """Return the name of a data object's index object."""
    return re.sub(r"/exp/[^/]+/", "/exp/index1/", name).replace("-data.", "-index1.")


def _number_of_row(raw: dict[str, Any]) -> int:
    return number_in(base64.b64decode(raw["Content"]) if "Content" in raw else raw["UUID"].encode())


def _lies(index_row: dict[str, Any], line: bytes) -> bool:
    """Return whether a row of an index has another file name or hash than its row of data."""
    row = json.loads(line)
    raw = row["raw"]
    is_rejected = "Content" in raw
    content = base64.b64decode(raw["Content"]) if is_rejected else line.partition(b'"raw":')[2][:-1]
    filename = raw["Filename"] if is_rejected else row["archiver"]["Filename"]
    digest = "" if raw.get("Reason") == DISK_LACK else content_hash(content).hex()
    return (index_row["Filename"], index_row["Hash"]) != (filename, digest)


class Disk:
    """What the kernel does, and refuses, in the spool and the state directory.

    Attributes:
        undeletable: names of files that may not be unlinked.
        syncs: so many fsync(2) were made.
        failing_syncs: those of these numbers fail.
        violations: files that were unlinked, and neither durable nor listed as given up.
        given_up: the numbers of those that were listed, and the path of each.
        unlinks_left: after so many, the process dies instead of the next; None: never.
    """

    def __init__(
        self, bucket: Bucket, journal: Callable[[], Journal], root: str, patch: pytest.MonkeyPatch
    ) -> None:
        self._journal = journal
        self._root = root
        self.given_up: dict[int, str] = {}
        self.unlinks_left: int | None = None
        self._bucket = bucket
        self._unlink = os.unlink
        self.undeletable: set[str] = set()
        self.syncs = 0
        self.failing_syncs: set[int] = set()
        self.violations: list[str] = []
        patch.setattr(os, "unlink", self.unlink)
        patch.setattr(os, "fsync", self.fsync)

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None:
            if path in self.undeletable:
                raise PermissionError(13, "Permission denied", path)
            fd = os.open(path, os.O_RDONLY, dir_fd=dir_fd)
            content = os.read(fd, 1000)
            os.close(fd)
            if self.unlinks_left is not None:
                if not self.unlinks_left:
                    raise Killed
                self.unlinks_left -= 1
            directory = Path(f"/proc/self/fd/{dir_fd}").readlink()
            below = f"{directory.relative_to(self._root)}/{path}"
            if self._bucket.stored()[number_in(content)]:
                pass
            elif self._is_listed(below):
                self.given_up[number_in(content)] = below
            else:
                self.violations.append(f"{path} was unlinked with {content!r}, which is not stored")
        self._unlink(path, dir_fd=dir_fd)

    def _is_listed(self, path: str) -> bool:
        """Say whether a record of the journal, or a row of the bucket, has a path as given up."""
        records, _ = self._journal().load()
        return any(path in one.given_up for one in records) or path in self._bucket.given_up()

    def fsync(self, _fd: int) -> None:
        self.syncs += 1
        if self.syncs - 1 in self.failing_syncs:
            raise OSError(28, "No space left on device")


class Killed(BaseException):
    """The process died."""


class Clock:
    """Seconds that pass when they are told to; `step_s` of them with each look.

    No microsecond comes twice, as with a real clock: two bundles a second apart would have one name
    if the list of given-up files in the first one gets a new name, which is that of a second later.
    """

    def __init__(self) -> None:
        self.s = 1000.0
        self.step_s = 0.0
        self._looks = 0

    def monotonic_s(self) -> float:
        self.s += self.step_s
        return self.s

    def now(self) -> datetime:
        self._looks += 1
        passed = timedelta(seconds=self.s, microseconds=self._looks)
        return datetime(2026, 1, 2, tzinfo=UTC) + passed


class StepUploads:
    """Carries out jobs as far as it is told to, instead of threads."""

    def __init__(self, commit: Commit) -> None:
        self._commit = commit
        self.jobs: deque[UploadJob] = deque()
        self._outcomes: list[UploadJob | Halt | Crash] = []

    @property
    def pending(self) -> int:
        return len(self.jobs) + len(self._outcomes)

    def put(self, job: UploadJob) -> None:
        self.jobs.append(job)

    def take(self) -> list[UploadJob | Halt | Crash]:
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def carry(self, steps: int) -> None:
        """Do some steps of the oldest job."""
        if not self.jobs:
            return
        left = steps

        def stopped() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        done = self._commit.advance(self.jobs.popleft(), stopped)
        if isinstance(done, Halt) or done.ended:
            self._outcomes.append(done)
        else:
            self.jobs.appendleft(done)


class StepCleaning:
    """Cleans up beside the loop as far as it is told to, instead of a thread.

    Attributes:
        beside: whether the next clean-up begins beside the loop, or is done in it.
    """

    def __init__(self) -> None:
        self.beside = False
        self._part: Cleanup | None = None
        self._outcome: bool | None = None

    @property
    def is_at_work(self) -> bool:
        return self._part is not None and self._outcome is None

    def step(self, cleanup: Cleanup) -> bool:
        if self._part is None:
            if not self.beside:
                return cleanup.step(1000)
            self._part = cleanup
        if self._outcome is None:
            return False
        assert self._part is cleanup
        outcome, self._part, self._outcome = self._outcome, None, None
        return outcome

    def work(self, files: int) -> bool:
        """Look at some files; return whether there were any."""
        if self._part is None or self._outcome is not None:
            return False
        self._outcome = self._part.step(files)
        return True


class World:
    """A spool, a bucket and an agent that can die."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="jostler-model-"))
        self.spool = self.root / "spool"
        self.spool.mkdir()
        self._patch = pytest.MonkeyPatch()
        self.bucket = Bucket()
        self.disk = Disk(self.bucket, lambda: self.journal, str(self.spool), self._patch)
        self.clock = Clock()
        self._touched = 10**18
        self.start()

    def close(self) -> None:
        self._patch.undo()
        shutil.rmtree(self.root)

    def start(self) -> None:
        """Start an agent; one that there was has died."""
        self.in_flight = InFlightBundles()
        self.journal = Journal(self.root / "state")
        lock = self.journal.open()
        assert lock
        lock.close()
        files, stats = Confined(str(self.spool)), UploadStats()
        commit = Commit(lambda _: cast("Storage", self.bucket), self.journal, files, stats)
        self.uploads = StepUploads(commit)
        self.cleaning = StepCleaning()
        self.left = LeftFiles(Ages(0.0, 0.0), self.root / "state" / "kept")
        self.delivery = Delivery(
            self.in_flight,
            self.uploads,
            self.journal,
            files,
            stats,
            keep=self.left.keep,
            cleaning=self.cleaning,
            monotonic_s=self.clock.monotonic_s,
        )
        stamp = Stamp(
            bucket=BUCKET,
            place=PLACE,
            node="node1",
            archiver=Archiver(version="jostler@1", commit="abc"),
            compression=AUTO,
        )
        self.open_bundles = OpenBundles(
            stamp,
            Limits(max_bytes=MAX_BYTES, max_age_s=MAX_AGE_S),
            self.in_flight,
            memory_max=MEMORY_MAX,
            sealed=lambda one, _: self.delivery.start(one),
            monotonic_s=self.clock.monotonic_s,
            now=self.clock.now,
            backlog=lambda: self.loop.backlog,
        )
        self.judges: dict[str, Callable[[bytes], Flaw | None]] = {"foo1": json_object_flaw}
        rules = Rules(judges=self.judges, max_bytes=MAX_BYTES, read_tries=1)
        intake = Intake(rules, files, self.in_flight, self.left)
        self.tally = Tally()
        self.arrived: deque[Arrival] = deque()
        self.arrivals = SimpleNamespace(take=self._take, scanning=False, waiting=0)
        nothing = SimpleNamespace(
            stored=lambda _: None,
            met=lambda *_: None,
            ask_due=lambda *_: None,
            keep=lambda _: None,
        )
        self.giving_up = GivingUp(
            files,
            ["foo1"],
            lambda name: name.endswith(".json"),
            in_flight=self.in_flight,
            left=self.left,
            open_bundles=self.open_bundles,
            journal=self.journal,
            delivery=self.delivery,
            tally=self.tally,
            young_s=-1.0,
        )
        low_disk = LowDisk(
            DiskLackAction.REMOVE_OLDEST,
            lambda: PLENTY,
            FullSign(self.spool),
            giving_up=self.giving_up,
            open_bundles=self.open_bundles,
            in_flight=self.in_flight,
        )
        self.loop = Loop(
            cast("Config", SimpleNamespace(bucket=BUCKET, spool=self.spool)),
            cast("Any", self.arrivals),
            taking=Taking(
                intake,
                self.open_bundles,
                self.left,
                self.tally,
                spool=files,
                bad_files=BadFiles.UPLOAD,
            ),
            left=self.left,
            open_bundles=self.open_bundles,
            delivery=self.delivery,
            low_disk=low_disk,
            directories=cast("Any", nothing),
            rescans=cast("Any", nothing),
            reporter=cast("Any", nothing),
            tally=self.tally,
        )
        self.left.load(intake.state_of)
        for record in self.journal.load()[0]:
            self.delivery.replay(record)

    def _take(self, most: int) -> list[Arrival]:
        taken = [self.arrived.popleft() for _ in range(min(most, len(self.arrived)))]
        # A file is reported only while it is there.
        return [arrival for arrival in taken if os.path.lexists(arrival.path)]

    # What services do

    def write(self, path: str, content: bytes, *, rename: bool, announced: bool) -> None:
        target = self.spool / path
        with suppress(FileExistsError):
            target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or target.is_dir():
            return
        written = target.with_name(".part") if rename else target
        written.write_bytes(content)
        if rename:
            written.rename(target)
        if announced:
            self.arrived.append(Arrival(str(target), How.EVENT))

    def files(self) -> Iterator[Path]:
        for path in sorted(self.spool.rglob("*.json")):
            if path.is_file() and not path.is_symlink():
                yield path

    def give_up(self) -> int:
        """Give up files as if the disk were full.

        Their times are set first, to some of their own, because the files of a test change again
        within the same tick of the kernel's clock.
        """
        for path in self.files():
            self._touched += 1
            os.utime(path, ns=(self._touched, self._touched))
        return self.giving_up.give_up(replace(PLENTY, free_bytes=0))

    def scan(self) -> None:
        self.arrived.extend(Arrival(str(path), How.SCAN) for path in self.files())

    def run(self, rounds: int) -> None:
        """Let everything happen that can, and time pass."""
        for _ in range(rounds):
            steps = 0
            while self.loop.step() | bool(self.uploads.jobs) | self.cleaning.work(20):
                self.uploads.carry(20)
                steps += 1
                assert steps < STEPS_MOST, "the agent does not come to rest"
            self.clock.s += 60.0
