"""The commit: each step only when the one before is durable, and each can be repeated."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from jostler.bundle import Commit, Confined, Halt, Journal, Record, Stage, UploadJob, UploadStats
from jostler.bundle.index import Part, index_object, rows
from jostler.bundle.stored_index import describes
from jostler.errors import ConflictError, TransientError
from jostler.format.compression import SMALL
from jostler.storage import upload_id
from tests.unit.agent.world import BUCKET, Bucket
from tests.unit.bundle.parts import bundle_of, header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.storage import Storage

NAME = str(header().name)


class LateBucket(Bucket):
    """A bucket in which an object of an earlier process may arrive after it was looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.late: dict[str, bytes] = {}

    def upload_id(self, name: str) -> str | None:
        found = super().upload_id(name)
        self.objects |= self.late
        return found


class Parts:
    """A commit, and what it works on."""

    def __init__(self, root: Path) -> None:
        self.spool = root / "spool"
        self.bucket = LateBucket()
        self.journal = Journal(root / "state")
        self.commit = Commit(
            lambda _: cast("Storage", self.bucket),
            self.journal,
            Confined(str(self.spool)),
            UploadStats(),
        )

    def states(self) -> list[bool]:
        return [record.stored for record in self.journal.load()[0]]


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = Parts(tmp_path)
    with made.journal.open() or pytest.fail("locked"):
        yield made


def job() -> UploadJob:
    return UploadJob.of(bundle_of(3, header(BUCKET)), 0.0)


def test_a_bundle_is_journalled_before_it_is_sent_and_marked_when_it_has_its_index(
    parts: Parts,
) -> None:
    """Step by step, as a process may die between any two."""
    seen = []
    one: UploadJob | Halt = job()
    while isinstance(one, UploadJob) and not one.ended:
        steps = iter([False, True])
        one = parts.commit.advance(one, lambda steps=steps: next(steps))
        assert isinstance(one, UploadJob)
        seen.append((one.stage, parts.states(), len(parts.bucket.objects)))
    assert seen == [
        (Stage.JOURNALLED, [False], 0),
        (Stage.UPLOADED, [False], 1),
        (Stage.INDEXED, [False], 2),
        (Stage.STORED, [True], 2),
    ]
    assert gzip.decompress(parts.bucket.objects[NAME]).count(b"\n") == 3


@pytest.mark.parametrize("decided", [True, False])
def test_the_index_has_the_rows_that_are_written_for_it(parts: Parts, *, decided: bool) -> None:
    """As far as the writer that the agent was given can write them."""
    marks = b'"Version":"', b'"Version":"marked '

    def written(part: Part) -> list[bytes] | None:
        return [one.replace(*marks) for one in rows(part)] if decided else None

    commit = Commit(
        lambda _: cast("Storage", parts.bucket),
        parts.journal,
        Confined(str(parts.spool)),
        UploadStats(),
        written,
    )
    assert isinstance(commit.advance(job()), UploadJob)

    expected = gzip.decompress(INDEX)
    index = gzip.decompress(parts.bucket.objects[str(header().index_name)])
    assert index == (expected.replace(*marks) if decided else expected)


@pytest.mark.parametrize("fault", ["down", "lost"])
@pytest.mark.parametrize("request_", [0, 1])
def test_a_step_that_fails_halts_the_job_and_can_be_repeated(
    parts: Parts, fault: str, request_: int
) -> None:
    """Whether or not the bucket did what was asked."""
    parts.bucket.faults[request_] = fault
    halt = parts.commit.advance(job())
    assert isinstance(halt, Halt)
    assert isinstance(halt.error, TransientError)
    assert halt.cause == BUCKET
    assert halt.what == (NAME, str(header().index_name))[request_]

    done = parts.commit.advance(halt.job)

    assert isinstance(done, UploadJob)
    assert done.stage is Stage.STORED
    assert len(parts.bucket.objects) == 2


def test_a_name_that_another_took_is_left_to_it(parts: Parts) -> None:
    """The files start afresh, and the journal forgets."""
    parts.bucket.faults[0] = "data"
    done = parts.commit.advance(job())
    assert isinstance(done, UploadJob)
    assert done.stage is Stage.GIVEN_BACK
    assert parts.states() == []
    assert parts.bucket.objects[NAME] == b"another's"


def test_an_index_of_another_is_the_bundles_own_trouble(parts: Parts) -> None:
    """No other bundle can have it, so none waits for it."""
    parts.bucket.faults[1] = "index1"
    halt = parts.commit.advance(job())
    assert isinstance(halt, Halt)
    assert isinstance(halt.error, ConflictError)
    assert halt.cause == NAME
    assert halt.job.stage is Stage.UPLOADED


def test_an_index_that_says_the_same_in_other_bytes_is_the_bundles_own(parts: Parts) -> None:
    """A process that dies between index and journal may be followed by one with another zlib."""
    parts.bucket.faults[1] = "lost"
    halt = parts.commit.advance(job())
    assert isinstance(halt, Halt)
    index = str(header().index_name)
    other = gzip.compress(gzip.decompress(parts.bucket.objects[index]))
    assert other != parts.bucket.objects[index]
    parts.bucket.objects[index] = other

    done = parts.commit.advance(halt.job)

    assert isinstance(done, UploadJob)
    assert done.stage is Stage.STORED
    assert parts.bucket.objects[index] == other


def write_files(parts: Parts) -> None:
    for number in range(3):
        path = parts.spool / f"foo1/2026/01/02/m{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'{"UUID":"%d"}' % number)


def of_another_version(record: Record) -> Record:
    """What the journal has when another version of a library compressed the bundle."""
    (attempt,) = record.attempts
    return replace(record, attempts=(replace(attempt, upload_id="0" * 32),))


def test_a_bundle_that_is_made_again_with_other_bytes_is_stored(parts: Parts) -> None:
    """Nothing of it had arrived, so which bytes it has makes no difference."""
    write_files(parts)
    record = of_another_version(job().record)
    parts.journal.write(record)

    done = parts.commit.advance(UploadJob.replay(record, 0.0))

    assert isinstance(done, UploadJob)
    assert done.stage is Stage.STORED
    assert done.winner
    assert done.winner.upload_id == upload_id(parts.bucket.objects[NAME])
    assert describes(parts.bucket.objects[str(header().index_name)], done.header, done.winner)


def test_a_bundle_whose_block_ended_early_is_made_again_with_equal_bytes(parts: Parts) -> None:
    """The record says where blocks begin, so the object is that of the first attempt."""
    write_files(parts)
    bundle = bundle_of(3, header(BUCKET), block_ends=2)
    assert len(bundle.attempt.blocks) == 2
    record = Record.of(bundle)
    parts.journal.write(record)

    done = parts.commit.advance(UploadJob.replay(record, 0.0))

    assert isinstance(done, UploadJob)
    assert len(done.record.attempts) == 1
    assert parts.bucket.objects[NAME] == bundle.data


def test_bytes_that_arrive_late_win_over_those_made_again(parts: Parts) -> None:
    """The rows are stored once, and the index is that of the object which is there."""
    write_files(parts)
    earlier = bundle_of(3, replace(header(BUCKET), compression=SMALL))
    record = replace(Record.of(earlier), header=header(BUCKET))
    parts.journal.write(record)
    parts.bucket.late[NAME] = earlier.data

    done = parts.commit.advance(UploadJob.replay(record, 0.0))

    assert isinstance(done, UploadJob)
    assert done.stage is Stage.STORED
    assert done.winner
    assert done.winner.upload_id == earlier.attempt.upload_id
    assert parts.bucket.objects[NAME] == earlier.data
    assert describes(parts.bucket.objects[str(header().index_name)], done.header, earlier.attempt)


INDEX = index_object(header(BUCKET), bundle_of(3, header(BUCKET)).attempt)


def altered(*changes: bytes) -> bytes:
    plain = gzip.decompress(INDEX)
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in plain
        plain = plain.replace(old, new, 1)
    return gzip.compress(plain, mtime=0)


def test_an_index_that_was_made_again_from_the_data_is_the_bundles_own() -> None:
    """`jostler audit -fix` knows neither when a file was read nor its line breaks."""
    attempt = bundle_of(3, header(BUCKET)).attempt
    made = altered(b':40.000000Z"', b':40.000001Z"', b'"Size":', b'"Size":9')
    assert describes(made, header(BUCKET), attempt)


@pytest.mark.parametrize(
    "data",
    [
        b"another's",
        INDEX[:-20],
        gzip.compress(b"", mtime=0),
        gzip.compress(gzip.decompress(INDEX) + b"\n", mtime=0),
        gzip.compress(b"".join(gzip.decompress(INDEX).splitlines(keepends=True)[:2]), mtime=0),
        gzip.compress(b'{"raw":{}}\n' * 3, mtime=0),
        altered(b'"Line":2', b'"Line":3'),
        altered(b'"Offset":10', b'"Offset":11'),
        altered(b':40.000000Z"', b':40.000001Z"', b'"Hash":"', b'"Hash":"0'),
        altered(b'"Filename":"2026/01/02/m0.json","Size"', b'"Filename":"2026/01/02/x","Size"'),
    ],
)
def test_an_index_that_says_anything_else_is_not_the_bundles_own(data: bytes) -> None:
    """Of another bundle or attempt, damaged, or of something else altogether."""
    attempt = bundle_of(3, header(BUCKET)).attempt
    assert describes(INDEX, header(BUCKET), attempt)
    assert not describes(data, header(BUCKET), attempt)


def test_an_object_that_arrived_before_a_crash_is_found_by_its_bytes(parts: Parts) -> None:
    """The next process does not need the files for that: they are not even there."""
    parts.bucket.faults[0] = "lost"
    halt = parts.commit.advance(job())
    assert isinstance(halt, Halt)
    (record,), _ = parts.journal.load()

    done = parts.commit.advance(UploadJob.replay(record, 0.0))

    assert isinstance(done, UploadJob)
    assert done.stage is Stage.STORED
    assert parts.bucket.without_index() == []


def test_a_bundle_whose_files_are_gone_after_a_crash_is_given_up(parts: Parts) -> None:
    """There is nothing left to store."""
    parts.bucket.faults[0] = "down"
    parts.commit.advance(job())
    (record,), _ = parts.journal.load()

    done = parts.commit.advance(UploadJob.replay(record, 0.0))

    assert isinstance(done, UploadJob)
    assert done.stage is Stage.GIVEN_BACK
    assert parts.states() == []
