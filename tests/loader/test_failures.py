"""Failing services, killed loaders, two loaders at once: nothing is lost, nothing is doubled."""

from __future__ import annotations

import signal
from datetime import date
from typing import TYPE_CHECKING

import pytest

from loader.bigquery import attempts
from tests.loader.test_load import FOO, names
from tests.loader.world import DAY, World, row, wait_until
from tests.support.proxy import Fault

if TYPE_CHECKING:
    import subprocess

OTHER_DAY = date(2026, 1, 3)
in_process = pytest.mark.usefixtures("spark")


@pytest.fixture
def loaded(world: World) -> World:
    """A bucket with three good rows of one day, and a ledger that has nothing of them yet."""
    world.put_schema()
    world.put_bundle([row(1), row(2), row(3)])
    return world


@in_process
def test_a_job_whose_reply_is_lost_is_found_again(loaded: World) -> None:
    """BigQuery took the job and said 503: the client asks again, gets 409, and looks it up."""
    loaded.fault("unavailable_after", method="POST", path=f"projects/{loaded.project}/jobs$")

    assert loaded.load().code == 0
    assert loaded.rows() == names(1, 2, 3)
    assert [told["Attempt"] for told in loaded.ledger()] == [1]
    assert loaded.bigquery.faults() == []


@in_process
def test_a_ledger_that_takes_no_more_jobs_just_now_is_written_after_a_pause(
    loaded: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days that end together all tell it; a partitioned table takes 50 jobs in ten seconds."""
    pauses: list[int] = []
    monkeypatch.setattr(attempts, "pause", pauses.append)
    loaded.fault("job_error", job="-loads-", reason="rateLimitExceeded", times=2)

    assert loaded.load().code == 0
    assert pauses == [1, 2]
    assert [told["Status"] for told in loaded.ledger()] == ["success"]
    assert loaded.bigquery.faults() == []


@in_process
@pytest.mark.parametrize("fault", ["unavailable_before", "unavailable_after"])
def test_a_ledger_that_fails_for_a_moment_is_written_once(loaded: World, fault: str) -> None:
    upload = f"/upload/bigquery/v2/projects/{loaded.project}/jobs"
    loaded.fault(fault, method="POST", path=upload)

    assert loaded.load().code == 0
    assert [told["Status"] for told in loaded.ledger()] == ["success"]
    assert loaded.bigquery.faults() == []


@in_process
def test_a_job_that_ends_in_error_is_tried_again_under_a_new_number(loaded: World) -> None:
    loaded.fault("job_error", job="foo1", reason="backendError", times=2)

    assert loaded.load().code == 0
    columns = ("Attempt", "Status", "ErrorClass", "FailureClass")
    told = [tuple(line[name] for name in columns) for line in loaded.ledger()]
    failed = [(number, "failed", "backendError", "transient") for number in (1, 2)]
    assert told == [*failed, (3, "success", "", "")]
    assert loaded.rows() == names(1, 2, 3)


@in_process
def test_a_job_that_fails_for_good_fails_its_day_alone_and_a_later_run_loads_it(
    loaded: World,
) -> None:
    loaded.put_bundle([row(4, day=OTHER_DAY)], day=OTHER_DAY)
    loaded.fault("job_error", job="20260102", reason="invalid", message="cannot be read")

    first = loaded.load()

    assert first.code == 1
    assert "cannot be read" in first.out
    assert loaded.rows() == []
    assert loaded.rows(day=OTHER_DAY) == names(4, day=OTHER_DAY)
    (told,) = (line for line in loaded.ledger() if line["Status"] == "failed")
    assert told["RowsWithheld"] == 3
    assert "cannot be read" in told["Errors"]

    second = loaded.load()

    assert second.code == 0
    assert second.days[FOO, "2026-01-02"]["reason"] == "failed before"
    assert loaded.rows() == names(1, 2, 3)


@in_process
def test_a_quota_that_is_used_up_fails_the_day_and_says_so(loaded: World) -> None:
    path = f"projects/{loaded.project}/jobs$"
    loaded.fault("quota_exceeded", method="POST", path=path, times=1)

    first = loaded.load()

    assert first.code == 1
    assert "Quota exceeded" in first.out
    assert [line["Status"] for line in loaded.ledger()] == ["failed"]
    assert loaded.load().code == 0
    assert loaded.rows() == names(1, 2, 3)


@in_process
def test_a_bucket_that_fails_for_a_moment_is_asked_again(loaded: World) -> None:
    loaded.gcs.faults.append(Fault(status=503, times=2, path="data.jsonl.gz"))

    assert loaded.load().code == 0
    assert loaded.rows() == names(1, 2, 3)


@in_process
def test_an_object_that_cannot_be_read_fails_its_day_alone(loaded: World) -> None:
    name = loaded.put_bundle([row(4, day=OTHER_DAY)], day=OTHER_DAY)
    path = name.rpartition("/")[2]
    loaded.gcs.faults.append(Fault(status=403, times=100, path=path))

    first = loaded.load()

    assert first.code == 1
    assert loaded.rows() == names(1, 2, 3)
    assert loaded.rows(day=OTHER_DAY) == []
    (told,) = (line for line in loaded.ledger() if line["Status"] == "failed")
    assert (told["ErrorClass"], told["date"]) == ("BucketError", OTHER_DAY)
    assert told["FailureClass"] == "permission"
    loaded.gcs.faults.clear()
    assert loaded.load().code == 0
    assert loaded.rows(day=OTHER_DAY) == names(4, day=OTHER_DAY)


@in_process
def test_a_bucket_that_cannot_be_listed_ends_the_run(loaded: World) -> None:
    loaded.gcs.faults.append(Fault(status=403, times=100, method="GET", path="prefix="))

    assert loaded.load().code == 1
    assert loaded.rows_or_none() is None


@in_process
def test_bigquery_that_cannot_be_asked_ends_the_run(loaded: World) -> None:
    loaded.fault("quota_exceeded", times=1000)

    ran = loaded.load()

    assert ran.code == 1
    assert "Quota exceeded" in ran.err
    assert loaded.reads() == []


@pytest.mark.long
@in_process
def test_a_ledger_that_cannot_be_written_leaves_the_day_to_the_next_run(loaded: World) -> None:
    """Rows are there, the ledger knows nothing: the next run finds the job and tells of it."""
    loaded.fault("job_error", job="-loads-", reason="backendError", times=1000)

    assert loaded.load().code == 1
    assert loaded.rows() == names(1, 2, 3)
    assert loaded.ledger() == []
    loaded.bigquery.clear()

    assert loaded.load().code == 0
    assert [(line["Attempt"], line["Status"]) for line in loaded.ledger()] == [(1, "success")]
    assert loaded.rows() == names(1, 2, 3)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for a loader's end; return its exit status and all that it said."""
    out, err = process.communicate(timeout=200)
    return process.returncode, out + err


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("JAVA_HOME", "/nonexistent", "Spark does not start (local[1]): [JAVA_GATEWAY_EXITED]"),
        ("BIGQUERY_EMULATOR_HOST", "http://127.0.0.1:9", "refuses connections"),
    ],
)
def test_what_cannot_begin_says_why_in_a_line(
    loaded: World, variable: str, value: str, said: str
) -> None:
    """Without Java, and without BigQuery: exit 1, and no trace of calls."""
    code, told = ended(loaded.start("--patience", "1", "--engine", "spark", **{variable: value}))

    (line,) = (line for line in told.splitlines() if line.startswith("jostler-load: "))
    assert code == 1
    assert said in line
    assert "Traceback" not in told


@pytest.mark.long
@pytest.mark.slow
def test_a_loader_killed_between_load_and_ledger_is_made_good_by_the_next(
    loaded: World, request: pytest.FixtureRequest
) -> None:
    """With bad rows: the next run adopts the job, and writes rejects and ledger once."""
    loaded.put_bundle([*(row(n) for n in range(10, 40)), b"bad"])
    upload = f"/upload/bigquery/v2/projects/{loaded.project}/jobs"
    loaded.fault("slow", seconds=120, method="POST", path=upload)
    process = loaded.start()
    wait_until("the first upload is held up", lambda: loaded.bigquery.faults() == [])
    wait_until("the rows are there", lambda: len(loaded.rows()) == 33)
    process.send_signal(signal.SIGKILL)
    ended(process)
    assert loaded.ledger() == []
    request.getfixturevalue("spark")

    ran = loaded.load()

    assert ran.code == 0, ran.err
    assert [(line["Attempt"], line["Status"]) for line in loaded.ledger()] == [(1, "success")]
    assert len(loaded.rows()) == 33
    assert len(loaded.rejects()) == 1
    jobs = [job.job_id for job in loaded.client.list_jobs()]
    assert len([job for job in jobs if "-foo1-20260102-" in job]) == 1


@pytest.mark.slow
@pytest.mark.long
def test_two_loaders_at_once_load_each_day_once(loaded: World) -> None:
    """Both are about the same bundles: the second finds the job of the first."""
    loaded.put_bundle([*(row(n, day=OTHER_DAY) for n in range(9)), b"bad"], day=OTHER_DAY)
    loaded.fault("job_slow", seconds=3, job="jostler-raw_exp-foo1-", times=2)
    spark = ("--engine", "spark")
    both = [loaded.start("--max-bad-fraction", "0.2", *spark) for _ in range(2)]

    results = [ended(process) for process in both]

    assert [code for code, _ in results] == [0, 0], results
    lines = [line for _, said in results for line in said.splitlines()]
    assert [line for line in lines if "spark.said" in line]
    assert not [line for line in lines if line.startswith(("WARNING", "Setting", "Using "))]
    told = [(line["date"], line["Attempt"], line["Status"]) for line in loaded.ledger()]
    assert sorted(told) == [(DAY, 1, "success"), (OTHER_DAY, 1, "success")]
    assert loaded.rows() == names(1, 2, 3)
    assert len(loaded.rows(day=OTHER_DAY)) == 9
    assert len(loaded.rejects()) == 1


@pytest.mark.slow
def test_a_loader_that_was_overtaken_does_not_undo_what_the_newer_one_loaded(
    loaded: World, request: pytest.FixtureRequest
) -> None:
    """The first has listed before a late bundle came, and submits its job after the second's.

    Its job would replace the day by less; it finds its number taken, lists again, and is content.
    """
    jobs = f"projects/{loaded.project}/jobs$"
    loaded.fault("unavailable_before", method="POST", path=jobs, times=5)
    slow = loaded.start()
    wait_until("its job is refused", lambda: loaded.bigquery.faults()[0]["times"] < 5)
    slow.send_signal(signal.SIGSTOP)
    loaded.bigquery.clear()
    loaded.put_bundle([row(4)])
    request.getfixturevalue("spark")

    assert loaded.load().code == 0
    assert loaded.rows() == names(1, 2, 3, 4)
    slow.send_signal(signal.SIGCONT)
    code, said = ended(slow)

    assert code == 0, said
    assert "another loader has loaded what the bucket holds" in said
    assert loaded.rows() == names(1, 2, 3, 4)
    assert [(line["Attempt"], line["Status"]) for line in loaded.ledger()] == [(1, "success")]
