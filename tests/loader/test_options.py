"""Arguments and environment: one value, or all mistakes at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date

import pytest

from loader.cli.main import main
from loader.cli.options import HELP, parse, variable
from loader.errors import UsageError
from loader.plan.window import EVERYTHING, Period, Window, months_before, of_period

TODAY = date(2026, 3, 31)
NEEDED = ("--bucket", "gs://bucket", "--project", "proj")


def test_the_environment_says_the_same_as_arguments_and_arguments_win() -> None:
    by_flag = parse(
        [*NEEDED, "--datatype", "a", "--datatype", "b", "--share", "0.3", "--force"], {}, TODAY
    )
    environ = {
        "JOSTLER_LOAD_BUCKET": "gs://bucket",
        "JOSTLER_LOAD_PROJECT": "other",
        "JOSTLER_LOAD_DATATYPE": "a,b",
        "JOSTLER_LOAD_SHARE": "0.3",
        "JOSTLER_LOAD_FORCE": "true",
    }

    assert parse(["--project", "proj"], environ, TODAY) == by_flag


def test_all_mistakes_are_told_at_once() -> None:
    argv = ["--bucket", "bucket", "--share", "2", "--parallel-days", "0", "--naming", "x"]
    argv += ["--start", "2026/02/30", "--datatype", "a.b", "--frobnicate"]

    with pytest.raises(UsageError) as caught:
        parse(argv, {"JOSTLER_LOAD_FORCE": "maybe", "JOSTLER_LOAD_BUKCET": "x"}, TODAY)

    told = "\n".join(caught.value.problems)
    for word in ("bucket", "project", "share", "parallel-days", "naming", "start", "datatype"):
        assert f"--{word}" in told
    for word in ("--frobnicate", "--force", "JOSTLER_LOAD_BUKCET"):
        assert word in told


@pytest.mark.parametrize(
    "argv",
    [
        ["--start", "2026/01/02", "--end", "2026/01/02"],
        ["--start", "2026/01/02", "--period", "daily"],
        ["--staging", "bucket/x"],
        ["--meta-dataset", "a-b"],
        ["--patience", "0"],
        ["--max-bad-fraction", "nan"],
        ["--api", "v3"],
        ["--bucket"],
    ],
)
def test_wrong_use(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        parse([*NEEDED, *argv], {}, TODAY)


@pytest.mark.parametrize(
    ("given", "staging"),
    [
        ("", "gs://bucket/loader-staging"),
        ("gs://other", "gs://other/loader-staging"),
        ("gs://other/", "gs://other/loader-staging"),
        ("gs://other/x/", "gs://other/x"),
        ("file:///d", "file:///d"),
    ],
)
def test_staging_always_has_a_prefix_in_a_bucket(given: str, staging: str) -> None:
    """Cleaning it lists everything below the prefix, which may be a whole archive."""
    found = parse(["--bucket", "gs://bucket", "--project", "proj", "--staging", given], {}, TODAY)

    assert found.staging == staging


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (
            ("--period", "weekly"),
            "--period: 'weekly' is not one of daily, monthly, annually, every",
        ),
        (("--naming", "x"), "--naming: 'x' is not one of mlab, third-party"),
        (("--api", "v3"), "--api: 'v3' is not one of v1, v2, all"),
        (("--share", "half"), "--share: 'half' is not a number"),
        (("--patience", "long"), "--patience: 'long' is not a number"),
    ],
)
def test_a_choice_that_is_none_is_told_with_those_there_are(
    option: tuple[str, str], told: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse(["--bucket", "gs://bkt", "--project", "p", *option], {}, TODAY)
    (problem,) = caught.value.problems
    assert problem.startswith(told)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--dry-run", "--verify-only"], "--dry-run and --verify-only: only one of them"),
        (["--verify-only", "--force"], "--force and --verify-only: only one of them"),
    ],
)
def test_switches_that_say_different_things_are_refused(argv: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        parse([*NEEDED, *argv], {}, TODAY)


def test_the_window_may_be_open_on_either_side() -> None:
    window = parse([*NEEDED, "--start", "2026/01/02"], {}, TODAY).window
    assert window == Window(start=date(2026, 1, 2), end=EVERYTHING.end)
    window = parse([*NEEDED, "--end", "2026/01/02"], {}, TODAY).window
    assert window == Window(start=EVERYTHING.start, end=date(2026, 1, 2))


def test_wrong_use_ends_with_2_and_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nope"]) == 2
    told = capsys.readouterr().err
    assert "--nope" in told
    assert "JOSTLER_LOAD_PROJECT" in told


def test_help_tells_each_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    told = capsys.readouterr().out
    assert all(f"--{name}" in told for name, *_ in HELP)
    assert variable("max-bad-fraction") in told


@pytest.mark.parametrize("argv", [["--help"], ["--nope"]])
def test_help_and_mistakes_come_without_spark_or_bigquery(argv: list[str]) -> None:
    code = (
        "import sys\nfrom loader.cli.main import main\ntry:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "sys.exit(any(m in sys.modules for m in ('pyspark', 'google.cloud.bigquery')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, env=os.environ, check=False
    )
    assert ran.returncode == 0


def test_output_that_nobody_takes_gives_no_trace() -> None:
    """As of `jostler-load --help | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "loader", "--help"],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": ""},  # what is left at the end is the trouble
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_periods_lie_side_by_side() -> None:
    """What one window no longer sees, the next does."""
    daily, monthly, annually = (of_period(p, TODAY) for p in list(Period)[:3])
    assert (daily.start, daily.end) == (date(2026, 3, 30), date(2026, 4, 1))
    assert (monthly.start, monthly.end) == (date(2026, 2, 28), daily.start)
    assert (annually.start, annually.end) == (date(2025, 3, 31), monthly.start)
    assert of_period(Period.EVERYTHING, TODAY) == EVERYTHING


def test_months_are_of_the_calendar() -> None:
    assert months_before(date(2024, 3, 30), 1) == date(2024, 2, 29)
    assert months_before(date(2024, 1, 5), 1) == date(2023, 12, 5)
    assert months_before(date(2024, 2, 29), 12) == date(2023, 2, 28)
