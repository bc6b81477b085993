"""Why a Spark job failed, from the texts that Spark gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loader.spark.failure import MOST_CHARACTERS, cause


class Py4JJavaError(Exception):
    """Py4J's has the same name and text."""


BEGIN = (
    "An error occurred while calling o47.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0"
    " failed 1 times, most recent failure: Lost task 0.0: "
)
PYTHON = (
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "worker.py", line 830, in main\n    process()\n'
    '  File "verify.py", line 1, in verified\n    raise ValueError("bundle 7")\n'
    "ValueError: bundle 7\n\n\tat org.apache.spark.api.python.Base.handle(PythonRunner.scala:572)\n"
)
DISK = (
    "java.lang.RuntimeException\n\tat A.b(A.java:1)\nCaused by: java.io.IOException: disk is full\n"
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BEGIN + PYTHON, "ValueError: bundle 7"),
        (BEGIN + DISK, "disk is full"),
        (BEGIN + "java.lang.OutOfMemoryError: Java heap space\n\tat A.b", "ran out of memory"),
        (BEGIN + "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
         "a Python worker of Spark ended unexpectedly"),
        (BEGIN + "ExecutorLostFailure (executor 3 exited caused by one of the running tasks)",
         "an executor was lost"),
        ("[Errno 111] Connection refused", "Spark's JVM has ended"),
        ("something\nelse", "something"),
        ("", "Py4JJavaError"),
    ],
)  # fmt: skip
def test_the_innermost_cause_is_reported(text: str, told: str) -> None:
    assert told in cause(Py4JJavaError(text))


@given(st.text())
def test_there_is_always_one_line(text: str) -> None:
    told = cause(Py4JJavaError(text))

    assert told
    assert len(told.splitlines()) == 1
    assert len(told) <= MOST_CHARACTERS
