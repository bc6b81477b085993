"""Why a Spark job failed, as a sentence for a person.

**Invariant:** it looks only at the text of an exception, for Py4J, Spark and Python have no common
base; whatever the text is, there is a sentence of one line.
"""

from __future__ import annotations

import re

MOST_CHARACTERS = 500
_PYTHON_RE = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)$", re.MULTILINE
)
_JAVA_RE = re.compile(r"^(?:Caused by|): ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_KNOWN = (
    (
        re.compile(r"OutOfMemoryError|GC overhead limit"),
        "Spark's JVM ran out of memory: give driver or executors more (spark.driver.memory, …)",
    ),
    (
        re.compile(r"Python worker exited unexpectedly|Python worker failed to connect back"),
        "a Python worker of Spark ended unexpectedly; it may have had too little memory",
    ),
    (
        re.compile(r"ExecutorLostFailure|executor \S+ exited|Remote RPC client disassociated"),
        "an executor was lost; it may have had too little memory, or its machine went away",
    ),
    (
        re.compile(r"Py4JNetworkError|Answer from Java side is empty|Connection refused"),
        "Spark's JVM has ended; its last lines in the log say why",
    ),
)


def cause(exc: Exception) -> str:
    """Return why a Spark job failed: what is known to an operator, or the innermost cause."""
    text = f"{type(exc).__name__}: {exc}"
    for pattern, sentence in _KNOWN:
        if pattern.search(text):
            return sentence
    if found := _PYTHON_RE.findall(text):
        return _line(found[-1])
    if found := _JAVA_RE.findall(text):
        kind, text = found[-1]
        return _line(text or kind.rpartition(".")[2])
    return _line(str(exc).strip().partition("\n")[0] or type(exc).__name__)


def _line(text: str) -> str:
    return " ".join(text.split())[:MOST_CHARACTERS]
