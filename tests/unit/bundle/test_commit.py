"""The commit: each step only when the one before is durable, and each can be repeated."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, cast

import pytest

from jostler.bundle import Commit, Confined, Halt, Journal, Stage, UploadJob, UploadStats
from jostler.errors import ConflictError, TransientError
from tests.unit.agent.world import BUCKET, Bucket
from tests.unit.bundle.parts import bundle_of, header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jostler.storage import Storage

NAME = str(header().name)


class Parts:
    """A commit, and what it works on."""

    def __init__(self, root: Path) -> None:
        self.bucket = Bucket()
        self.journal = Journal(root / "state")
        self.commit = Commit(
            lambda _: cast("Storage", self.bucket),
            self.journal,
            Confined(str(root / "spool")),
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
