"""What several folders of tests share: one GCS server, one BigQuery, one Spark for each worker."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.gcs import GcsServer
from tests.support.proxy import FaultyServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.loader.world import BigQueryServer, World


# A short-lived JVM is better off without its optimising compiler and with one collector thread.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LONGEST_FIRST = ("loader", "crash", "demo", "spark", "e2e", "k8s", "browser", "embedded")
"""Folders whose files take long: one that began last would be waited for by all workers."""


def pytest_configure() -> None:
    """Let the programs under test take Ctrl-C, also if the tests run in a shell's background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # which child processes inherit
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest; within a file the order stays."""

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(Path(__file__).parent).parts[0]
        return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=rank)


@pytest.fixture(scope="session")
def gcs() -> Iterator[GcsServer]:
    """Run a GCS server that keeps its objects in memory."""
    with GcsServer() as server:
        yield server


@pytest.fixture(scope="session")
def faulty_gcs(gcs: GcsServer) -> Iterator[FaultyServer]:
    """Requests of the loader, and of tests, go through this; those of BigQuery do not."""
    with FaultyServer(gcs.port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def warehouse(gcs: GcsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BigQueryServer]:
    from tests.loader.world import BigQueryServer  # noqa: PLC0415 - most tests need no BigQuery

    server = BigQueryServer(tmp_path_factory.mktemp("bigquery"), gcs.url)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def environment(faulty_gcs: FaultyServer, warehouse: BigQueryServer) -> Iterator[None]:
    """Lead the clients of this process, and of Spark's workers, to the test's servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_EMULATOR_HOST", faulty_gcs.url)
        patch.setenv("BIGQUERY_EMULATOR_HOST", warehouse.url)
        patch.setenv("JAVA_TOOL_OPTIONS", QUICK_JVM)
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setattr("loader.giving_up.PAUSE_S", 0.02)
        yield


@pytest.fixture(scope="session")
def spark(environment: None) -> Iterator[SparkSession]:
    from loader.spark.session import session  # noqa: PLC0415 - after the environment is set

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with session("local[2]") as running:
        yield running


@pytest.fixture
def world(
    environment: None, faulty_gcs: FaultyServer, warehouse: BigQueryServer
) -> Iterator[World]:
    """A bucket and a project of the test's own; at the end ledger, rejects and tables agree."""
    from tests.loader.world import World  # noqa: PLC0415 - as above

    faulty_gcs.faults.clear()
    warehouse.clear()
    made = World(warehouse, faulty_gcs)
    faulty_gcs.seen.clear()
    yield made
    faulty_gcs.faults.clear()
    warehouse.clear()
    _adds_up(made)
    made.close()


def _adds_up(world: World) -> None:
    from google.api_core.exceptions import NotFound  # noqa: PLC0415 - used here alone

    try:
        world.client.get_table("jostler.loads")
    except NotFound:
        return  # the test never came so far
    world.assert_adds_up()
