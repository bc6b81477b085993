"""A standalone cluster of Spark over loopback, from the pip package, and `spark-submit` to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

import jostler
import loader
from tests.support.gcs import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

UP_S = 180.0
SUBMIT_S = 400.0


@contextmanager
def standalone(home: Path) -> Iterator[str]:
    """Run a master and two workers; yield the master's URL.

    Args:
        home: directory for their logs and work.
    """
    deploy = "org.apache.spark.deploy"
    spark = Path(str(pyspark.__file__)).parent
    port, web = free_port(), free_port()
    url = f"spark://127.0.0.1:{port}"
    environ = {
        **os.environ,
        "SPARK_HOME": str(spark),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(home / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
    }
    master = ["Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)]
    worker = ["Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "600m", url]
    with ExitStack() as stack:
        for number, (daemon, *arguments) in enumerate([master, worker, worker]):
            log = home / f"daemon{number}.log"
            out = stack.enter_context(log.open("wb"))
            process = subprocess.Popen(
                [spark / "bin/spark-class", f"{deploy}.{daemon.lower()}.{daemon}", *arguments],
                env=environ,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
            stack.callback(_end, process)
            told = "started at" if daemon == "Master" else "Successfully registered"
            deadline_s = time.monotonic() + UP_S
            while told not in log.read_text():
                assert time.monotonic() < deadline_s, f"{daemon} is not up: {log.read_text()}"
                time.sleep(0.05)
        yield url


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)  # a worker leaves executors behind otherwise
    process.wait(timeout=100)


def package(path: Path) -> Path:
    """Zip the packages as docs/loader.md says, for executors that have neither."""
    with zipfile.ZipFile(path, "w") as out:
        for module in (jostler, loader):
            root = Path(str(module.__file__)).parent
            for file in root.rglob("*.py"):
                out.write(file, file.relative_to(root.parent))
    return path


def submit(master: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `spark-submit loader/job.py` where only the zip has the code.

    Args:
        master: of the cluster.
        home: directory that it is run in.
        arguments: of the job.
    """
    code = package(home / "jostler.zip")
    job = home / "job.py"
    shutil.copy(Path(str(loader.__file__)).with_name("job.py"), job)
    command = Path(sys.executable).with_name("spark-submit")
    return subprocess.run(
        [
            *(str(command), "--master", master, "--py-files", str(code)),
            *("--executor-memory", "512m", "--driver-memory", "512m", str(job), *arguments),
        ],
        capture_output=True,
        text=True,
        timeout=SUBMIT_S,
        check=False,
        cwd=home,
        env={
            **{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
    )
