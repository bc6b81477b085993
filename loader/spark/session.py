"""The Spark session and all its settings, each with its reason.

**Invariant:** settings of the operator or spark-submit are not changed.  Spark is imported only
when a bundle must be read, so a run with nothing to do starts no JVM.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from loader.errors import RunError
from loader.spark.jvm import kept_apart, not_left_behind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

SETTINGS: dict[str, str] = {
    # Our code makes the batches; the default of 10,000 rows would split them.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Reused workers keep their judges (compiled decoders, learned nulls) and connections.
    "spark.python.worker.reuse": "true",
    # DATE and TIMESTAMP mean UTC, wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
    # Each experiment's jobs have a pool, so a long day of one leaves cores to the others.
    "spark.scheduler.mode": "FAIR",
    # The web UI is not used, and takes a port and half a second.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark's warnings would be mixed with our events, which report all that matters.
    "spark.log.level": "ERROR",
    # Small days have few rows: merge partitions of the window until one is worth a task.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "32",
}
LOCAL: dict[str, str] = {
    # In local mode the driver is the executor: it sorts ten million keys of 40 bytes.
    "spark.driver.memory": "2g",
    # On a laptop the host's own name often does not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Without it ten million keys are sorted in memory; four tasks per core would only add overhead.
    "spark.sql.shuffle.partitions": "4",
}

LIGHT: dict[str, str] = {
    # Where executors are Python and the JVM only carries bytes between them, it took four fifths of
    # its CPU time to compile what it then hardly ran: 10 s of a first job.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}

_SUBMITTED = "PYSPARK_GATEWAY_PORT"


@contextmanager
def session(
    master: str, on_line: Callable[[str], None] | None = None, *, light: bool = False
) -> Iterator[SparkSession]:
    """Start Spark, or use the session of spark-submit or a test; stop it only if started here.

    Args:
        master: the master's URL; empty for spark-submit's, else all cores of this machine.
        on_line: called with each line that the JVM writes to standard error, if started here.
        light: whether the JVM has no work of its own but to carry what Python workers return.

    Raises:
        RunError: Spark does not start.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - see the module's invariant
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - see the module's invariant
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    theirs = SparkContext._active_spark_context is not None  # noqa: SLF001 - no public question
    if _SUBMITTED in os.environ:  # spark-submit has started the JVM, which has its settings
        SparkContext._ensure_initialized()  # noqa: SLF001 - SparkConf is empty before
    conf = SparkConf()
    url = master or conf.get("spark.master", "") or "local[*]"
    if url.startswith("local"):
        # Without these, workers would use python3 of PATH, and Spark would warn about loopback.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("jostler-load").master(url)
    for key, value in _settings(is_local=url.startswith("local"), light=light).items():
        if not conf.contains(key):
            builder = builder.config(key, value)
    try:
        with not_left_behind(), kept_apart(on_line) if on_line and not theirs else nullcontext():
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as exc:
        reason = str(exc).partition("\n")[0]
        hint = "install Java 17 or 21, or set JAVA_HOME" if "JAVA_GATEWAY" in reason else ""
        raise RunError(f"Spark does not start ({url}): {reason}", hint=hint) from exc
    try:
        yield spark
    finally:
        if not theirs:
            spark.stop()


def _settings(*, is_local: bool, light: bool) -> dict[str, str]:
    if not is_local:
        return SETTINGS
    return SETTINGS | LOCAL | (LIGHT if light else {})
