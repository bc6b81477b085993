"""Numbered load jobs, under every interleaving of loaders, late bundles, failures and crashes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loader.bigquery.attempts import LABEL, Ended, load
from loader.bigquery.warehouse import Job

PAUSES = ("go on", "a bundle comes", "another loader runs", "crash")


class CrashError(Exception):
    """The loader was killed."""


@dataclass
class Model:
    """A day: its bundles (only ever more), its partition, its jobs and its ledger.

    `draw` says what happens at each point where a loader could be held up.
    """

    draw: st.DataObject
    bundles: int = 1
    partition: int = 0
    jobs: dict[int, Job] = field(default_factory=dict)
    ledger: list[tuple[int, int]] = field(default_factory=list)
    depth: int = 0
    events: int = 0

    def pause(self) -> None:
        if self.events >= 20:
            return
        self.events += 1
        what = self.draw.draw(st.sampled_from(PAUSES))
        if what == "crash":
            raise CrashError
        if what == "a bundle comes":
            self.bundles += 1
        if what == "another loader runs" and self.depth < 3:
            self.depth += 1
            self.run()
            self.depth -= 1

    def submit(self, attempt: int) -> tuple[Job, bool]:
        raise NotImplementedError

    def look(self, attempt: int) -> Job | None:
        self.pause()
        return self.jobs.get(attempt)

    def run(self) -> None:
        try:
            while not self.round():
                pass
        except CrashError:
            pass

    def round(self) -> bool:
        """Plan and load as a loader does; return whether it is content."""
        attempt = max((attempt for attempt, _ in self.ledger), default=0)
        newest = max(self.ledger, default=(0, 0))[1]
        self.pause()
        listed = self.bundles
        self.pause()
        if newest == listed:
            return True
        ended = load(
            _Submits(self, listed),
            str(listed),
            attempt,
            is_unchanged=lambda: self.bundles == listed,
            pause=lambda _: None,
        )
        self.pause()
        if ended.overtaken:
            return False
        assert ended.job
        if not ended.job.reason:
            self.ledger.append((ended.attempt, listed))
        return True


@dataclass
class _Submits:
    model: Model
    listed: int

    def submit(self, attempt: int) -> tuple[Job, bool]:
        model = self.model
        model.pause()
        ours = attempt not in model.jobs
        if ours:
            assert attempt == len(model.jobs) + 1, "a number was left out"
            reason = model.draw.draw(st.sampled_from(["", "", "backendError"]))
            model.jobs[attempt] = job(str(self.listed), reason)
            if not reason:
                assert self.listed >= model.partition, "a newer listing was overwritten"
                model.partition = self.listed
        model.pause()
        return model.jobs[attempt], ours

    def look(self, attempt: int) -> Job | None:
        return self.model.look(attempt)

    def counts(self, job: Job) -> bool:
        """Rows were lost, or the run was forced: a new job must do no harm."""
        model = self.model
        model.pause()
        return model.events >= 20 or model.draw.draw(st.booleans())

    def lost(self, job: Job) -> str:
        return ""


def job(fingerprint: str, reason: str = "") -> Job:
    return Job(id="j", labels={LABEL: fingerprint}, rows=1, reason=reason, errors=())


@settings(max_examples=400, deadline=None)
@given(draw=st.data())
def test_nothing_newer_is_ever_overwritten_and_a_calm_run_makes_all_good(
    draw: st.DataObject,
) -> None:
    """Whatever was held up, killed or late: the partition only ever gains."""
    model = Model(draw)
    for _ in range(3):
        model.run()
    model.events = 1000

    for _ in range(3):  # three failures in a row end a run
        model.run()
        if model.partition == model.bundles and model.ledger:
            break

    assert model.partition == model.bundles or all(j.reason for j in [*model.jobs.values()][-9:])


class Jobs:
    """Jobs that end as they are told to."""

    def __init__(
        self,
        *reasons: str,
        taken: dict[int, Job] | None = None,
        adopts: bool = True,
        gone: str = "",
    ) -> None:
        self.adopts = adopts
        self.gone = gone
        self.reasons = list(reasons)
        self.taken = taken or {}
        self.submitted: list[int] = []

    def submit(self, attempt: int) -> tuple[Job, bool]:
        if attempt in self.taken:
            return self.taken[attempt], False
        self.submitted.append(attempt)
        return job("f", self.reasons.pop(0)), True

    def look(self, attempt: int) -> Job | None:
        return self.taken.get(attempt)

    def counts(self, job: Job) -> bool:
        return self.adopts

    def lost(self, job: Job) -> str:
        return self.gone


def loaded(jobs: Jobs, *, attempt: int = 0, is_unchanged: bool = True) -> Ended:
    return load(jobs, "f", attempt, is_unchanged=lambda: is_unchanged, pause=lambda _: None)


def test_a_transient_failure_is_tried_three_times() -> None:
    jobs = Jobs("backendError", "rateLimitExceeded", "backendError", "")

    assert sorted(loaded(jobs, attempt=4).failed) == [5, 6, 7]


def test_other_failures_are_not_tried_again() -> None:
    jobs = Jobs("invalid", "")

    assert loaded(jobs).failed.keys() == {1}
    assert jobs.submitted == [1]


@pytest.mark.parametrize("is_unchanged", [True, False])
def test_a_job_of_the_same_fingerprint_is_adopted(is_unchanged: bool) -> None:
    ended = loaded(Jobs(taken={1: job("old"), 2: job("f")}), is_unchanged=is_unchanged)

    assert ended.adopted
    assert ended.attempt == 2


def test_a_newer_job_of_another_fingerprint_leads_to_a_new_listing() -> None:
    assert loaded(Jobs(taken={1: job("f"), 2: job("x")}), is_unchanged=False).overtaken
    jobs = Jobs("", taken={1: job("f"), 2: job("x")})
    assert loaded(jobs).attempt == 3


def test_a_job_that_does_not_count_leads_to_a_new_one_without_a_new_listing() -> None:
    ended = loaded(Jobs("", taken={1: job("f")}, adopts=False), is_unchanged=False)

    assert (ended.attempt, ended.adopted, ended.overtaken) == (2, False, False)


def test_a_job_whose_objects_are_gone_is_not_followed_by_another() -> None:
    jobs = Jobs("", taken={1: job("x")}, gone="1 of 2")

    assert loaded(jobs).lost == "1 of 2"
    assert jobs.submitted == []
    assert loaded(Jobs("", taken={1: job("f")}, gone="1 of 2", adopts=False)).attempt == 2
