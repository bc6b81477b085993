"""Fair shares with a BigQuery that is slow: the order in which load jobs begin, never seconds."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.loader.plain import load
from tests.loader.world import DAY, PLACE, Ran, World, row, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long  # many loads, one after another

FEW = replace(PLACE, experiment="few")
COUNT = 10


@pytest.fixture
def two(world: World) -> World:
    """One experiment with many due days, and another with one."""
    world.put_schema()
    world.put_schema(place=FEW)
    for number in range(COUNT):
        day = DAY + timedelta(days=number)
        world.put_bundle([row(number, day=day)], day=day)
    world.put_bundle([row(1)], place=FEW)
    return world


def jobs(world: World) -> list[Any]:
    """Return the load jobs of days in the order in which they were submitted."""
    found = [job for job in world.client.list_jobs() if "-foo1-" in job.job_id]
    return sorted(found, key=lambda job: job.created)


def names(found: Sequence[Any]) -> list[str]:
    return ["few" if "raw_few" in job.job_id else "exp" for job in found]


def test_one_day_of_an_experiment_is_loaded_while_days_of_another_are_slow(two: World) -> None:
    """The many are held up until the one is loaded: it cannot have waited for them."""
    two.fault("job_slow", job="-raw_exp-foo1-", seconds=600, times=COUNT)
    results: list[Ran] = []
    thread = threading.Thread(target=lambda: results.append(load(two, "--parallel-days", "4")))
    thread.start()

    # Which of them begins first is left open; the many take a minute, the one takes none.
    wait_until("the other experiment's day is loaded", lambda: "few" in _done(two))
    wait_until("the many are at work", lambda: len(_running(two)) >= 2)
    assert "exp" not in _done(two)

    two.bigquery.clear()
    thread.join()
    (ran,) = results
    assert "waited: few" in ran.out
    assert "waited: exp" in ran.out
    assert f"of {COUNT} days to begin" in ran.out


def _running(world: World) -> list[Any]:
    return [job for job in jobs(world) if job.state != "DONE"]


def _done(world: World) -> list[str]:
    return names([job for job in jobs(world) if job.state == "DONE"])


def test_the_share_of_an_asset_comes_before_the_option(two: World) -> None:
    """With a share of one place in four it is loaded one by one while the other waits."""
    two.put("autoload/v1/assets/exp.json", b'{"revision": 1, "share": 0.25}')
    two.fault("job_slow", job="-(raw_exp|raw_few)-foo1-", seconds=600, times=COUNT)
    thread = threading.Thread(target=lambda: load(two, "--parallel-days", "4", "--share", "1"))
    thread.start()
    wait_until("both have begun", lambda: {"few", "exp"} <= set(names(jobs(two))))

    assert sorted(names(jobs(two)[:2])) == ["exp", "few"]
    two.bigquery.clear()
    thread.join()


def test_two_loaders_with_a_request_at_once_load_each_day_once(two: World) -> None:
    """Both take it; the second finds the jobs of the first, and writes no row of its own."""
    assert load(two).code == 0
    two.sql(
        "INSERT jostler.requests (Experiment, Datatype, StartDate, EndDate)"
        " VALUES ('exp', 'foo1', '2026-01-02', '2026-01-04')"
    )
    two.fault("job_slow", job="-raw_exp-foo1-20260102-", seconds=2, times=1)
    results: list[Ran] = []
    both = [threading.Thread(target=lambda: results.append(load(two))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()

    assert [ran.code for ran in results] == [0, 0]
    again = [told for told in two.ledger() if told["Attempt"] == 2]
    assert [told["date"].day for told in sorted(again, key=lambda told: told["date"])] == [2, 3, 4]
    assert len(jobs(two)) == COUNT + 1 + 3
    (one,) = two.sql("SELECT * FROM jostler.request_status")
    assert (one["State"], one["DaysDone"], one["DaysAsked"]) == ("done", 3, 3)


def test_each_experiment_has_a_pool_in_spark(two: World, spark: SparkSession) -> None:
    """Spark makes a pool when the first job comes for it, and only if its scheduler is fair."""
    assert two.load("--engine", "spark").code == 0

    context: Any = spark.sparkContext._jsc
    pools = [pool.name() for pool in _seq(spark, context.sc().getAllPools())]
    assert {"exp", "few"} <= set(pools)
    assert str(context.sc().getSchedulingMode()) == "FAIR"


def _seq(spark: SparkSession, found: Any) -> Sequence[Any]:  # noqa: ANN401 - Scala's
    gateway: Any = spark.sparkContext._jvm
    return list(gateway.scala.jdk.javaapi.CollectionConverters.asJava(found))
