"""Ctrl-C at the very beginning of a program: no trace, and the status that a shell expects."""

from __future__ import annotations

import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from jostler.interrupts import end_at_once

SCRIPTS: dict[str, str] = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())[
    "project"
]["scripts"]
INTERRUPTED = (130, -signal.SIGINT)  # what a shell shows as 130
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have ignored it
waiting = sys.argv.pop(1)
class Finder:
    def find_spec(self, name, *_):
        if name == waiting:
            print("importing", flush=True)
            sys.stdin.read()
sys.meta_path.insert(0, Finder())
"""
MOMENTS = [
    ("jostler", "jostler.cli.main"),
    ("jostler", "jostler.cli.commands"),
    ("jostler-load", "loader.cli.options"),
    ("jostler-load", "loader.cli.status"),  # imported when the command is known
    ("jostler-query", "loader.cli.query"),
    ("jostler-query", "loader.cli.query_options"),
    ("jostler-sql", "loader.cli.cells"),
    ("jostler-sql", "loader.bigquery.ask"),
]
WORDS: dict[str, list[str]] = {
    "jostler": [],
    "jostler-load": ["status"],
    "jostler-query": ["SELECT 1"],
    "jostler-sql": ["SELECT 1"],
}


@pytest.mark.parametrize(("script", "module"), MOMENTS)
def test_ctrl_c_during_imports_ends_a_command_without_a_trace(script: str, module: str) -> None:
    """The process waits in the import of a module until the signal ends it."""
    at, _, name = SCRIPTS[script].partition(":")
    program = f"{PROGRAM}from {at} import {name}\nsys.exit({name}())"
    with subprocess.Popen(
        [sys.executable, "-c", program, module, *WORDS[script]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)

    assert process.returncode in INTERRUPTED, err
    assert out == ""
    assert "Traceback" not in err
    assert len(err.splitlines()) <= 1, err


def test_each_command_is_interrupted() -> None:
    """A script that is added gets its moments above."""
    assert SCRIPTS.keys() == {script for script, _ in MOMENTS}


@pytest.mark.parametrize("before", [signal.SIG_IGN, signal.default_int_handler])
def test_what_was_done_about_ctrl_c_is_done_again_after_the_import(before: signal._HANDLER) -> None:
    """A program below nohup or in the background must go on without it."""
    outside = signal.signal(signal.SIGINT, before)
    try:
        with end_at_once():
            during = signal.getsignal(signal.SIGINT)
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, outside)

    assert during == (signal.SIG_IGN if before is signal.SIG_IGN else signal.SIG_DFL)
    assert after is before or after == before
