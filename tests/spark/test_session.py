"""Spark's JVM is started in vain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it
from loader.spark.session import session
with session("local[1]"):
    pass
"""
SUBMIT = """#!/bin/sh
echo $$ > "$SPARK_HOME/pid"
sleep 0.5
kill -INT $PPID
exec sleep 600
"""
# Not at once: the interpreter runs its handlers of a fork then, and ignores what is raised in them.


def test_an_interrupt_while_spark_starts_leaves_no_jvm_behind(tmp_path: Path) -> None:
    """A program that never says its port stands for the JVM, which ignores the end of its input."""
    submit = tmp_path / "bin/spark-submit"
    submit.parent.mkdir()
    submit.write_text(SUBMIT)
    submit.chmod(0o755)

    ran = subprocess.run(
        [sys.executable, "-c", START],
        env=os.environ | {"SPARK_HOME": str(tmp_path)},
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode in (1, 130, -signal.SIGINT), ran.stderr
    stat = Path("/proc", (tmp_path / "pid").read_text().strip(), "stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"
