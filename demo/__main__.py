"""The command `python -m demo`: the whole way, without an account.

Exit status: 0 it all adds up; 1 it does not, or something failed; 2 wrong use.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from demo.page import Page
from demo.processes import DemoError, Processes
from demo.questions import archive_commands, commands, program
from demo.story import BUCKET, EXPERIMENT, Story

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

DONE, FAILED = 0, 1


def _stop(_number: int, _frame: FrameType | None) -> None:
    """End as at Ctrl-C, so that what was started is ended."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # the end is short, and must not be cut off
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--keep", action="store_true", help="keep the directory with bucket, tables and logs"
    )
    keep = parser.parse_args(argv).keep
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _stop)
    home = Path(tempfile.mkdtemp(prefix="jostler-demo-"))
    page, status = Page(), FAILED
    try:
        status = _tell(home, page)
    except KeyboardInterrupt:
        sys.stderr.write("\ndemo: interrupted; every process is ended\n")
    finally:
        if not keep and status == DONE:
            shutil.rmtree(home, ignore_errors=True)
    _look_further(home, page, keep=keep, status=status)
    return status


def _tell(home: Path, page: Page) -> int:
    try:
        with Processes(home) as processes:
            Story(home, processes, page).tell()
    except DemoError as exc:
        sys.stderr.write(f"\ndemo: failed: {exc}\n")
        return FAILED
    page.say(f"Done in {page.spent_s:.0f} s; no process is left behind.")
    return DONE


def _look_further(home: Path, page: Page, *, keep: bool, status: int) -> None:
    """Say what is left and what to do with it."""
    if status != DONE:
        page.say(f"Kept for you to look into: {home} (*.log are the programs' output)")
    elif keep:
        page.step("Look further")
        page.say(f"Kept: {home}")
        page.say("bucket/ has the objects, bigquery/ the tables, *.log what the programs said.")
        page.say("See the archive on a page, or list it:")
        page.block("\n".join(archive_commands(home / "bucket" / BUCKET, EXPERIMENT)), cut=False)
        page.say("Ask BigQuery again:")
        page.block("\n".join(commands(home)), cut=False)
    else:
        page.say("Look further: `python -m demo --keep` leaves bucket, tables and logs, and says")
        page.say("how to see them on a page (jostler serve) and how to ask them (jostler-sql).")
        page.say("Five weeks of a made-up archive on a page, at once:")
        page.block(f"{program('jostler')} serve -demo", cut=False)


if __name__ == "__main__":
    sys.exit(main())
