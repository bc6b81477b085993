"""The Spark session: every setting that matters, in one place, with its reason.

**Invariant:** what the operator or spark-submit sets is left as it is; nothing of Spark is imported
before the first bundle has to be read, so a run with nothing to do starts no JVM.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from loader.errors import RunError
from loader.spark.jvm import kept_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

SETTINGS: dict[str, str] = {
    # Rows come in batches of our own making; the default of 10,000 would cut them smaller.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # A worker keeps its judges (compiled decoders, nulls learned) and its connections.
    "spark.python.worker.reuse": "true",
    # DATE and TIMESTAMP mean UTC, wherever the driver runs.
    "spark.sql.session.timeZone": "UTC",
    # Nobody looks at it, and it takes a port and half a second.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Our own events say what matters; Spark's warnings would stand between them.
    "spark.log.level": "ERROR",
    # Small days have few rows: partitions of the window are joined until they are worth a task.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "32",
}
LOCAL: dict[str, str] = {
    # The driver is the executor: it sorts the keys of ten million rows, 40 bytes each.
    "spark.driver.memory": "2g",
    # On a laptop the host's own name often does not resolve.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Ten million keys are sorted in memory without it; four tasks per core would be overhead.
    "spark.sql.shuffle.partitions": "4",
}

_SUBMITTED = "PYSPARK_GATEWAY_PORT"


@contextmanager
def session(master: str, said: Callable[[str], None] | None = None) -> Iterator[SparkSession]:
    """Start Spark, or join the session that spark-submit or a test began, and end what we began.

    Args:
        master: URL; empty for what spark-submit says, else all cores of this machine.
        said: takes the lines that the JVM writes to standard error, if it is started here.

    Raises:
        RunError: Spark does not start.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415 - see the module's invariant
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - see the module's invariant
    from pyspark.errors import PySparkException  # noqa: PLC0415 - as above
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above

    theirs = SparkContext._active_spark_context is not None  # noqa: SLF001 - no public question
    if _SUBMITTED in os.environ:  # the JVM is there, and knows what spark-submit was told
        SparkContext._ensure_initialized()  # noqa: SLF001 - SparkConf is empty before
    conf = SparkConf()
    url = master or conf.get("spark.master", "") or "local[*]"
    if url.startswith("local"):
        # Workers would otherwise take the python3 of PATH; and Spark would warn of loopback.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("jostler-load").master(url)
    for key, value in (SETTINGS | LOCAL if url.startswith("local") else SETTINGS).items():
        if not conf.contains(key):
            builder = builder.config(key, value)
    try:
        with kept_apart(said) if said and not theirs else nullcontext():
            spark = builder.getOrCreate()
    except (PySparkException, Py4JError) as exc:
        told = str(exc).partition("\n")[0]
        hint = "install Java 17 or 21, or set JAVA_HOME" if "JAVA_GATEWAY" in told else ""
        raise RunError(f"Spark does not start ({url}): {told}", hint=hint) from exc
    try:
        yield spark
    finally:
        if not theirs:
            spark.stop()
