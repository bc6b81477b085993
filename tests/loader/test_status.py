"""`jostler-load status`: how the loads stand, in short, at length, and for programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from loader.bigquery import attempts
from loader.cli.main import main
from tests.loader.plain import load
from tests.loader.world import row

if TYPE_CHECKING:
    from tests.loader.world import World

# The command counts rejected rows of seven days and due days of 31, by the clock of this machine.
# These days are far from either limit, so that midnight may pass while the tests run.
FAILED = datetime.now(UTC).date() - timedelta(days=2)
REFUSED, GOOD, UNSEEN = (FAILED - timedelta(days=back) for back in (1, 2, 3))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "pause", lambda _: None)


def asked(world: World, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["status", "--project", world.project, *words])
    return code, capsys.readouterr().out


def table(status: str) -> dict[str, Any]:
    found = json.loads(status)["tables"]
    (foo,) = [one for one in found if one["datatype"] == "foo1"]
    return dict(foo)


def test_status_of_good_refused_and_failed_days(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """One day good, one refused, one failing, one not seen yet: the short form and the long one."""
    world.put_schema()
    world.put_bundle([row(1, day=GOOD)], day=GOOD)
    world.put_bundle([b"bad"], day=REFUSED)
    world.put_bundle([row(2, day=FAILED)], day=FAILED)
    world.fault("job_error", job=f"foo1-{FAILED:%Y%m%d}", reason="accessDenied", times=1)
    # A failure before a success is over.
    world.fault("job_error", job=f"foo1-{GOOD:%Y%m%d}", reason="backendError", times=1)
    assert load(world).code == 1
    asks = "(Experiment, Datatype, StartDate) VALUES ('exp', 'foo1', '2020-01-01')"
    world.sql(f"INSERT INTO jostler.requests {asks}")
    world.put_bundle([row(3, day=UNSEEN)], day=UNSEEN)

    code, short = asked(world, capsys, "exp")
    _, long = asked(world, capsys, "exp", "-v")
    _, listed = asked(world, capsys, "--bucket", world.url, "--format", "json")

    assert code == 1
    head, line, *_ = short.splitlines()
    assert head.split("  ")[0] == "table"
    assert line.split()[0] == "raw_exp.foo1"
    assert str(GOOD) in line
    assert line.split()[-4:] == ["1", "2", "50.00%", "1"]  # due, failing, rejected, requests
    assert "1 of its 1 rows are bad (first line 1 of gs://" in short
    assert "the operator must grant a right" in short
    assert "Grant the roles that docs/loader.md lists" not in short
    assert "permission: " in long
    assert "2020-01-01" in long  # the request
    assert "Grant the roles that docs/loader.md lists" in long
    assert f"line 1 of {world.url}" in long
    found = table(listed)
    assert found["due"] == 2  # the failed one, and the one that only the bucket knows
    assert found["newest_day"] == str(GOOD)
    assert {one["status"]: one["class"] for one in found["failing"]} == {
        "rejected": "data",
        "failed": "permission",
    }


def test_status_of_a_good_table_is_zero_and_of_another_experiment_says_so(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.put_schema()
    world.put_bundle([row(1)])
    assert load(world).code == 0

    assert asked(world, capsys, "exp")[0] == 0
    code, text = asked(world, capsys, "other")
    assert (code, text.strip()) == (
        1,
        f"the ledger of {world.project}.jostler has no row of other",
    )


def test_status_reads_the_ledger_of_an_older_loader(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the columns Experiment, Datatype and FailureClass."""
    world.put_schema()
    world.put_bundle([b"bad"])
    assert load(world).code == 1
    world.age_ledger("Experiment", "Datatype", "FailureClass", "RequestID")

    code, text = asked(world, capsys, "exp", "-v")

    assert code == 1
    assert "data: " in text
    assert "was refused: 1 of its 1 rows are bad" in text


@pytest.mark.parametrize(
    "words", [["--frobnicate"], ["a/b"], ["exp", "--bucket", "x"], ["exp", "--format", "xml"]]
)
def test_wrong_words_are_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--project", "p", *words]) == 2
    assert "wrong options" in capsys.readouterr().err
