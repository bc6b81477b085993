"""Put defects back into the agent, one at a time, and see the model find each.

usage: python -m tests.torture.defects [--tries 3] [WORD...]

The model is tests/unit/agent/test_model.py.  The defects are those that attacks once found between
the seal of a bundle and the unlink of its files, and some that batches could have.  Each is an edit
of one function's source, made in memory; a function that no longer has these words is an error, so
no defect is silently left out.  A row shows after how many examples the model failed, in each try.
With WORDs: only defects whose names have one of them.  The exit status is 1 if one was not found.
"""

from __future__ import annotations

import argparse
import inspect
import logging
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from jostler.agent import intake
from jostler.agent.intake import Intake
from jostler.bundle import (
    Cleanup,
    Commit,
    Delivery,
    InFlightBundles,
    Journal,
    OpenBundles,
    cleanup,
    commit,
)
from tests.unit.agent.test_model import Promise

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES_MAX = 500
"""Five times as many as `make check` has: the rarest defect took up to a few hundred."""


@dataclass(frozen=True)
class Defect:
    """An edit of one function.

    Attributes:
        name: what goes wrong.
        owner: the class or module whose attribute the function is.
        function: its name.
        words: what stands in its source, once.
        instead: what is to stand there.
    """

    name: str
    owner: Any
    function: str
    words: str
    instead: str

    def put_back(self, patch: pytest.MonkeyPatch) -> None:
        """Replace the function.

        Raises:
            ValueError: its source does not have the words, or more than once.
        """
        function = getattr(self.owner, self.function)
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.words) != 1:
            raise ValueError(f"{self.name}: {self.function} has {self.words!r} not once")
        names = function.__globals__
        found: dict[str, Any] = {}
        code = "from __future__ import annotations\n" + source.replace(self.words, self.instead)
        exec(compile(code, self.name, "exec"), names, found)
        patch.setattr(self.owner, self.function, found[self.function])


DEFECTS = (
    Defect("journal never written", Commit, "_write", "self._journal.write(job.record)", "pass"),
    Defect(
        "index never written",
        Commit,
        "_index",
        "self._storage(job).put_new(name, index, metadata)",
        "pass",
    ),
    Defect(
        "an object of the same name is taken for ours",
        Commit,
        "_upload",
        "return job.taken()",
        "return job.uploaded(attempt, object_bytes=len(job.data), upload_s=0.0)",
    ),
    Defect(
        "states not compared before unlink", cleanup, "unlink_unchanged", "return False", "pass"
    ),
    Defect("bytes not compared before unlink", cleanup, "unlink_stored", "return False", "pass"),
    Defect(
        "5: a directory moved away and back is stored again",
        InFlightBundles,
        "cleaned",
        "self.remember_vanished(path, digest)",
        "pass",
    ),
    Defect(
        "9: a bundle is sealed before it is open",
        OpenBundles,
        "add",
        "if reason and found:",
        "if reason:",
    ),
    Defect(
        "12: marking a record as stored cannot be repeated",
        Journal,
        "mark_stored",
        "if not self._path(stored).exists():\n            self.write(stored)",
        "raise",
    ),
    Defect(
        "13: one bundle that cannot be stored stops all",
        commit,
        "_cause",
        "JOURNAL if isinstance(error, OSError) else str(job.header.name)",
        "job.header.bucket",
    ),
    Defect(
        "14: a second clean-up looks at paths that are gone",
        Cleanup,
        "_look_at_next",
        "if self._is_mine(row[0]):",
        "if True:",
    ),
    Defect(
        "a clean-up beside the loop is taken for ended before it is",
        Delivery,
        "clean_up",
        "if not self._cleaning.step(cleanup):",
        "if not self._cleaning.step(cleanup) and not self._cleaning.is_at_work:",
    ),
    Defect(
        "17: a directory in place of a file is undeletable for ever",
        Cleanup,
        "_look_at",
        "except (FileNotFoundError, NotADirectoryError, NotAFileError):",
        "except FileNotFoundError:",
    ),
    Defect(
        "a replayed bundle does not own its files",
        InFlightBundles,
        "replay",
        "self._owners[path] = one",
        "pass",
    ),
    Defect(
        "batch: it takes files that belong to a bundle",
        Intake,
        "_is_any_known",
        "self._in_flight.knows_any(paths) or",
        "",
    ),
    Defect(
        "batch: the bundle does not own its files",
        InFlightBundles,
        "add_batch",
        "self._owners.update(zip(paths, repeat(one)))",
        "pass",
    ),
    Defect(
        "batch: a file that vanished after it was stored is not known again",
        InFlightBundles,
        "knows_any",
        "not self.vanished.keys().isdisjoint(numbers) or",
        "",
    ),
    Defect(
        "batch: a file that cannot be unlinked is not known again",
        InFlightBundles,
        "knows_any",
        "one.owns_aside(number)",
        "False",
    ),
    Defect(
        "batch: bad files are taken for good ones",
        intake,
        "read_batch",
        "good = rules.count_good(documents)",
        "good = len(documents)",
    ),
    Defect(
        "batch: rows have the hashes of their neighbours",
        intake,
        "read_batch",
        "hashes.append(content_hash(raw))",
        "hashes.insert(0, content_hash(raw))",
    ),
)


def examples_until_found(defect: Defect, most: int) -> int | None:
    """Return how many examples the model made until it failed; None if it did not."""
    made = 0

    class Counted(Promise):
        def __init__(self) -> None:
            nonlocal made
            made += 1
            super().__init__()

    with pytest.MonkeyPatch.context() as patch:
        defect.put_back(patch)
        try:
            run_state_machine_as_test(
                Counted,
                settings=settings(
                    max_examples=most,
                    stateful_step_count=50,
                    deadline=None,
                    database=None,
                    phases=(Phase.generate,),  # a failing example need not be made small
                    report_multiple_bugs=False,
                    suppress_health_check=list(HealthCheck),
                ),
            )
        except BaseException as exc:
            if isinstance(exc, KeyboardInterrupt):
                raise
            return made - 1  # the last one was the failing one once more
    return None


def main() -> int:
    """Try each defect; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=3, help="runs of the model for each defect")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only defects with these words")
    options = parser.parse_args()
    logging.disable()
    wanted: Callable[[Defect], bool] = lambda defect: (  # noqa: E731 - two lines
        not options.words or any(word in defect.name for word in options.words)
    )
    missed = 0
    for defect in filter(wanted, DEFECTS):
        found = [examples_until_found(defect, EXAMPLES_MAX) for _ in range(options.tries)]
        missed += sum(count is None for count in found)
        shown = ", ".join("not found" if count is None else str(count) for count in found)
        print(f"{defect.name:70} {shown}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
