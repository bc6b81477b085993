"""Entry point of the loader's image: Spark's `executor` and `driver`, else the loader.

**Invariant:** replaces itself by what it starts, so that this is process 1 and gets the signals; no
shell is asked.  It does for PyPI's Spark, which has no image, what Spark's own entrypoint.sh does.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTION = re.compile(r"SPARK_JAVA_OPT_(\d+)")
BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"


def command(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the program to run and its arguments.

    Args:
        arguments: of the container; the first word may be one that Spark gives.
        environ: of the container; Spark says by it what an executor needs.

    Raises:
        KeyError: Spark has not set a variable that it always sets.
    """
    first, rest = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    if first == "executor":
        return _executor(environ)
    if first == "driver":
        address = environ["SPARK_DRIVER_BIND_ADDRESS"]
        conf = ["--conf", f"spark.driver.bindAddress={address}"]
        return ["spark-submit", *conf, "--deploy-mode", "client", *rest]
    if first in {"spark-submit", "jostler", "jostler-load"}:
        return [first, *rest]
    return ["jostler-load", *arguments]


def _executor(environ: Mapping[str, str]) -> list[str]:
    spark = environ.get("SPARK_HOME", "/opt/spark")
    classes = [environ.get("SPARK_CONF_DIR", f"{spark}/conf"), f"{spark}/jars/*"]
    if extra := environ.get("SPARK_EXTRA_CLASSPATH"):
        classes.insert(0, extra)
    numbered = sorted((int(m[1]), environ[m[0]]) for m in map(OPTION.fullmatch, environ) if m)
    memory = environ["SPARK_EXECUTOR_MEMORY"]
    return [
        str(Path(environ.get("JAVA_HOME", "/usr")) / "bin/java"),
        *(option for _, option in numbered),
        *(f"-Xms{memory}", f"-Xmx{memory}", "-cp", ":".join(classes), BACKEND),
        *("--driver-url", environ["SPARK_DRIVER_URL"]),
        *("--executor-id", environ["SPARK_EXECUTOR_ID"]),
        *("--cores", environ["SPARK_EXECUTOR_CORES"]),
        *("--app-id", environ["SPARK_APPLICATION_ID"]),
        *("--hostname", environ["SPARK_EXECUTOR_POD_IP"]),
        *("--resourceProfileId", environ["SPARK_RESOURCE_PROFILE_ID"]),
        *("--podName", environ["SPARK_EXECUTOR_POD_NAME"]),
    ]


if __name__ == "__main__":
    started = command(sys.argv[1:], os.environ)
    os.execvp(started[0], started)  # noqa: S606 - the point: no shell, no child
