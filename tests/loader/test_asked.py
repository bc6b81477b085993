"""Who asks for days to be loaded anew gets them, once, and an answer."""

from __future__ import annotations

import contextlib
import io
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.exceptions import BadRequest

from loader.bigquery.attempts import REQUEST_LABEL
from loader.cli.main import main
from tests.loader import plain
from tests.loader.world import DAY, PLACE, World, row, wait_until
from tests.support.receiver import ReceivingServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.loader.world import Ran

pytestmark = pytest.mark.long  # many loads, one after another

FOO = "raw_exp.foo1"


def load(world: World, *more: str) -> Ran:
    """Run the loader for the one datatype that has bundles, which is faster."""
    return plain.load(world, "--datatype", "foo1", *more)


@pytest.fixture
def loaded(world: World) -> World:
    """Three days that are loaded."""
    world.put_schema()
    for number in range(3):
        day = DAY + timedelta(days=number)
        world.put_bundle([row(number, day=day)], day=day)
    assert load(world).code == 0
    return world


def ask(world: World, first: date = DAY, last: date | None = None, **columns: str) -> None:
    """Ask as a person does, in SQL."""
    values = {"Experiment": "exp", "Datatype": "foo1", **columns}
    names = ", ".join([*values, "StartDate", "EndDate"])
    texts = ", ".join(f"'{value}'" for value in values.values())
    end = f"'{last}'" if last else "NULL"
    world.sql(f"INSERT INTO jostler.requests ({names}) VALUES ({texts}, '{first}', {end})")


def status(world: World) -> list[dict[str, Any]]:
    return world.sql("SELECT * FROM jostler.request_status ORDER BY RequestedAt")


def states(world: World) -> list[tuple[Any, ...]]:
    return [(told["State"], told["DaysDone"], told["DaysAsked"]) for told in status(world)]


def attempts(world: World, day: date = DAY) -> list[int]:
    return [told["Attempt"] for told in world.ledger() if told["date"] == day]


def jobs(world: World) -> Sequence[Any]:
    return [job for job in world.client.list_jobs() if "-foo1-" in job.job_id]


def test_a_request_loads_its_days_anew_once_and_is_answered(loaded: World) -> None:
    ask(loaded, DAY, DAY + timedelta(days=1), Reason="the disk was wrong")
    (told,) = status(loaded)
    assert (told["State"], told["DaysAsked"]) == ("open", 0)
    assert told["RequestedBy"].endswith("@localhost")

    ran = load(loaded)

    assert ran.code == 0
    assert {day for (_, day), event in ran.days.items() if event["reason"] == "requested"} == {
        "2026-01-02",
        "2026-01-03",
    }
    assert states(loaded) == [("done", 2, 2)]
    assert attempts(loaded) == [1, 2]
    assert attempts(loaded, DAY + timedelta(days=2)) == [1]
    newest = [told for told in loaded.ledger() if told["Attempt"] == 2]
    assert {line["RequestID"] for line in newest} == {told["RequestID"]}
    assert {line["RequestedAt"] for line in newest} == {told["RequestedAt"]}

    assert load(loaded).code == 0
    assert attempts(loaded) == [1, 2]
    assert len(jobs(loaded)) == 5


def test_a_request_is_running_while_its_days_are_loaded(loaded: World) -> None:
    """Days done of days asked, as whoever looks meanwhile sees it."""
    ask(loaded, DAY, DAY + timedelta(days=1))
    loaded.fault("job_slow", job="-foo1-20260103-", seconds=600)
    seen: list[list[tuple[Any, ...]]] = []

    def half() -> bool:
        seen.append(states(loaded))
        return seen[-1] == [("running", 1, 2)]

    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(load, loaded, "--parallel-days", "1")
        wait_until("one of two days is loaded for it", half)
        loaded.bigquery.clear()
        assert ran.result().code == 0

    assert all(state in ([("open", 0, 0)], [("running", 0, 2)]) for state in seen[:-1])
    assert states(loaded) == [("done", 2, 2)]


def test_days_outside_of_the_runs_window_are_taken_too(loaded: World) -> None:
    """The period of the run is another matter; runs for given days take no request."""
    ask(loaded)
    assert load(loaded, "--start", "2026/01/03", "--end", "2026/01/05").code == 0
    assert states(loaded) == [("open", 0, 0)]

    assert load(loaded, "--period", "daily").code == 0

    assert states(loaded) == [("done", 1, 1)]
    assert attempts(loaded) == [1, 2]


def test_of_requests_for_one_day_the_newest_is_answered_and_with_it_the_older(
    loaded: World,
) -> None:
    ask(loaded, DAY, DAY + timedelta(days=1), RequestID="older")
    ask(loaded, DAY, RequestID="newer")

    assert load(loaded).code == 0

    assert states(loaded) == [("done", 2, 2), ("done", 1, 1)]
    told = {line["date"]: line["RequestID"] for line in loaded.ledger() if line["Attempt"] == 2}
    assert told == {DAY: "newer", DAY + timedelta(days=1): "older"}


def test_a_newer_request_replaces_one_that_failed_and_is_tried_by_each_run(loaded: World) -> None:
    ask(loaded, RequestID="older")
    loaded.fault("job_error", job="20260102", reason="invalid", message="it cannot be read")
    assert load(loaded).code == 1
    (told,) = status(loaded)
    assert (told["State"], told["DaysDone"], told["DaysAsked"]) == ("failed", 0, 1)
    assert "2026-01-02 of" in told["Error"]
    assert "it cannot be read" in told["Error"]

    ask(loaded, RequestID="newer")
    loaded.fault("job_error", job="20260102", reason="invalid")
    assert load(loaded).code == 1
    assert states(loaded) == [("failed", 0, 1)] * 2

    assert load(loaded).code == 0, "the next run tries it again"

    assert states(loaded) == [("done", 1, 1)] * 2
    assert loaded.ledger()[-1]["RequestID"] == "newer"


def test_a_request_that_cannot_be_carried_out_says_why_and_stops_nothing(loaded: World) -> None:
    ask(loaded, Experiment="exq")
    ask(loaded, Datatype="fooo1")
    ask(loaded, DAY, DAY - timedelta(days=1))
    ask(loaded, date(2020, 1, 1), date(2020, 1, 2))
    ask(loaded, RequestID="good")

    ran = plain.load(loaded)

    assert ran.code == 0
    told = status(loaded)
    assert [one["State"] for one in told] == ["failed"] * 4 + ["done"]
    assert "did you mean exp?" in told[0]["Error"]
    assert "did you mean foo1?" in told[1]["Error"]
    assert told[2]["Error"] == "EndDate 2026-01-01 is before StartDate 2026-01-02"
    assert told[3]["Error"] == "no bundle of these days is in the bucket"
    plain.load(loaded)
    assert len(loaded.sql("SELECT * FROM jostler.request_days WHERE State = 'refused'")) == 4


def test_a_request_for_days_that_bigquery_keeps_no_more_ends_with_that(world: World) -> None:
    world.put_schema()
    world.put_bundle([row(1)])
    world.put("autoload/v1/assets/exp.foo1.json", b'{"revision": 1, "retention_days": 30}')
    load(world)
    ask(world)

    assert load(world).code == 0

    (told,) = status(world)
    assert (told["State"], told["DaysDone"], told["DaysAsked"]) == ("failed", 0, 1)
    assert "2026-01-02 of" in told["Error"]
    assert "it is older than its table keeps days" in told["Error"]
    assert world.ledger() == []


def test_a_request_for_all_days_of_the_calendar_is_one_for_those_that_are_there(
    loaded: World,
) -> None:
    ask(loaded, date.min, date.max)
    ask(loaded, date(2150, 1, 1), date.max)
    ask(loaded, date.min, date(1999, 1, 1))

    assert load(loaded).code == 0

    assert states(loaded) == [("done", 3, 3), ("failed", 0, 0), ("failed", 0, 0)]


def test_a_request_for_a_datatype_that_cannot_be_used_says_so_and_others_are_loaded(
    loaded: World,
) -> None:
    """As soon as the schema is right, a later run takes the one that is about it alone."""
    schema = loaded.get(PLACE.table_schema("foo1"))
    loaded.put_schema(datatype="bar1")
    loaded.put_bundle([row(1)], datatype="bar1")
    loaded.put(PLACE.table_schema("foo1"), b"no JSON")
    ask(loaded, RequestID="alone")
    loaded.sql("INSERT jostler.requests (Experiment, StartDate) VALUES ('exp', '2026-01-02')")

    assert plain.load(loaded).code == 1

    alone, both = status(loaded)
    assert (alone["State"], alone["DaysAsked"]) == ("failed", 0)
    assert "raw_exp.foo1 cannot be loaded now: is not a table schema" in alone["Error"]
    assert (both["State"], both["DaysDone"], both["DaysAsked"]) == ("failed", 1, 2)
    assert "raw_exp.foo1: is not a table schema" in both["Error"]
    loaded.put(PLACE.table_schema("foo1"), schema)
    assert plain.load(loaded).code == 0
    assert states(loaded)[0] == ("done", 1, 1)


def test_a_request_that_no_run_selects_ends_and_a_later_run_may_take_it(loaded: World) -> None:
    """A run for some datatypes cannot know whether an experiment is misspelled."""
    for experiment, back in (("exq", 9), ("exp", 8), ("exq", 0)):
        at = f"TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {back} DAY)"
        loaded.sql(
            "INSERT jostler.requests (Experiment, StartDate, RequestedAt)"
            f" VALUES ('{experiment}', '2026-01-02', {at})"
        )

    load(loaded)

    told = status(loaded)
    assert [one["State"] for one in told] == ["failed", "failed", "open"]
    assert "no loader runs that selects all that it asks for" in told[0]["Error"]
    plain.load(loaded)
    told = {(one["Experiment"], one["State"]): one["Error"] for one in status(loaded)}
    assert set(told) == {("exq", "failed"), ("exp", "done")}
    assert "did you mean exp?" in told["exq", "failed"]


def test_a_request_whose_datatype_goes_ends_too(loaded: World) -> None:
    """Its days were taken, and no run finds the table any more."""
    ask(loaded)
    loaded.fault("job_error", job="20260102", reason="invalid")
    assert load(loaded).code == 1
    loaded.sql("DELETE FROM jostler.loads WHERE Status = 'failed'")
    loaded.remove(PLACE.table_schema("foo1"))
    plain.load(loaded, "--allow-empty")
    assert states(loaded) == [("running", 0, 1)]

    loaded.sql(
        "UPDATE jostler.request_days SET Written = TIMESTAMP_SUB(Written, INTERVAL 8 DAY)"
        " WHERE TRUE"
    )

    (told,) = status(loaded)
    assert (told["State"], told["DaysAsked"]) == ("failed", 1)
    assert "its datatype is not in the bucket any more" in told["Error"]


def test_a_request_without_an_experiment_or_a_day_is_refused_by_the_table(loaded: World) -> None:
    for sql in (
        "INSERT jostler.requests (StartDate) VALUES ('2026-01-02')",
        "INSERT jostler.requests (Experiment) VALUES ('exp')",
    ):
        with pytest.raises(BadRequest, match="cannot be null"):
            loaded.sql(sql)


def test_a_run_for_another_experiment_or_datatype_leaves_a_request_alone(loaded: World) -> None:
    """Else it would be taken with some of its days only, or refused as unknown."""
    ask(loaded)
    loaded.sql("INSERT jostler.requests (Experiment, StartDate) VALUES ('exp', '2026-01-02')")
    loaded.put_schema(datatype="bar1")

    plain.load(loaded, "--datatype", "bar1")
    assert states(loaded) == [("open", 0, 0)] * 2
    load(loaded)
    assert states(loaded) == [("done", 1, 1), ("open", 0, 0)]
    plain.load(loaded)

    assert states(loaded) == [("done", 1, 1)] * 2
    assert attempts(loaded) == [1, 2, 3]


def test_a_request_that_would_lose_rows_is_refused_for_that_day(loaded: World) -> None:
    """As any load is, after objects have gone."""
    for name in loaded.names("autoload/v1/exp/foo1/2026/01/02/"):
        loaded.remove(name)
    loaded.put_bundle([row(9)])
    ask(loaded, DAY, DAY + timedelta(days=1))

    assert load(loaded).code == 1

    (told,) = status(loaded)
    assert (told["State"], told["DaysDone"], told["DaysAsked"]) == ("failed", 1, 2)
    assert "objects that it was loaded from are gone" in told["Error"]


def test_a_day_whose_bundles_go_after_it_was_taken_is_answered(loaded: World) -> None:
    ask(loaded)
    loaded.fault("job_error", job="20260102", reason="invalid")
    assert load(loaded).code == 1
    for name in loaded.names("autoload/v1/exp/foo1/2026/01/02/"):
        loaded.remove(name)
    loaded.sql("DELETE FROM jostler.loads WHERE Status = 'failed'")

    load(loaded)

    (told,) = status(loaded)
    assert (told["State"], told["Error"].partition(": ")[2]) == ("failed", "its bundles are gone")


def test_a_day_with_too_many_bad_rows_ends_its_request_without_a_further_try(
    loaded: World,
) -> None:
    day = DAY + timedelta(days=9)
    loaded.put_bundle([b"bad"] * 3, day=day)
    ask(loaded, day)
    assert load(loaded).code == 1
    assert load(loaded).code == 1

    (told,) = status(loaded)
    assert told["State"] == "failed"
    assert "3 of 3 rows are bad" in told["Error"]
    assert len(attempts(loaded, day)) == 1


def test_a_load_from_before_a_request_is_no_answer_to_it(loaded: World) -> None:
    """A run that knew nothing of it was killed before it told the ledger: the job is not enough."""
    loaded.sql("DELETE FROM jostler.loads WHERE TRUE")
    ask(loaded)

    assert load(loaded).code == 0

    assert states(loaded) == [("done", 1, 1)]
    assert attempts(loaded) == [2]
    assert attempts(loaded, DAY + timedelta(days=1)) == [1]
    assert [REQUEST_LABEL in job.labels for job in jobs(loaded)].count(True) == 1


def test_a_killed_runs_load_for_a_request_is_adopted_with_it(loaded: World) -> None:
    ask(loaded)
    assert load(loaded).code == 0
    loaded.sql("DELETE FROM jostler.loads WHERE Attempt = 2")

    assert load(loaded).code == 0

    assert states(loaded) == [("done", 1, 1)]
    assert len(jobs(loaded)) == 4
    assert attempts(loaded) == [1, 2]


def test_a_dry_run_shows_what_was_asked_for_and_takes_nothing(loaded: World) -> None:
    ask(loaded)

    ran = load(loaded, "--dry-run")

    assert "requested" in ran.out
    assert states(loaded) == [("open", 0, 0)]


def test_a_ledger_of_a_version_without_requests_works_on(world: World) -> None:
    """With the columns of before and a row that it wrote: nothing is loaded twice or told late."""
    world.put_schema()
    world.put_bundle([row(1)])
    assert load(world).code == 0
    world.age_ledger("Experiment", "Datatype", "RequestID", "RequestedAt", "FailureClass")
    for name in ("request_status", "requests", "request_days"):
        world.client.delete_table(f"jostler.{name}")
    assert "0 days would be loaded" in load(world, "--dry-run").out

    with ReceivingServer() as hook:
        assert load(world, "--notify", hook.url).code == 0
        assert attempts(world) == [1], "the old row says that the day is loaded"
        assert hook.got == []
        ask(world)
        after = DAY + timedelta(days=1)
        world.put_bundle([row(2, day=after)], day=after)
        assert load(world, "--notify", hook.url).code == 0

        assert states(world) == [("done", 1, 1)]
        assert attempts(world) == [1, 2]
        assert len(hook.got) == 2
    told = {(line["date"], line["Attempt"]): line["Experiment"] for line in world.ledger()}
    assert told == {(DAY, 1): None, (DAY, 2): "exp", (after, 1): "exp"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert main(["status", "--project", world.project]) == 0
    assert "raw_exp.foo1" in said.getvalue()


def test_a_request_is_made_on_the_command_line(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before any load: it makes the tables; the first load takes it."""
    words = ["request", "--project", world.project, "--experiment", "exp", "--first", "2026/01/02"]

    assert main([*words, "--reason", "it's wrong"]) == 0

    said = capsys.readouterr().out
    (told,) = status(world)
    assert told["RequestID"] in said
    assert (told["StartDate"], told["EndDate"], told["Datatype"]) == (DAY, DAY, None)
    assert told["Reason"] == "it's wrong"
    world.put_schema()
    world.put_bundle([row(1)])
    plain.load(world)
    assert states(world) == [("done", 1, 1)]


def test_wrong_words_of_a_request_are_all_reported(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--experiment", "e/x", "--first", "2026/01/02", "--last", "2026/01/01"]

    assert main(["request", "--project", world.project, *words]) == 2

    said = capsys.readouterr().err
    assert "--experiment" in said
    assert "--last: 2026/01/01 is before --first 2026/01/02" in said
    assert main(["request", "--project", world.project]) == 2
