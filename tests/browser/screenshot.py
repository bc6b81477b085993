"""Takes docs/status-page.png of a real agent; `make screenshot` runs it.

An agent with a spool of its own archives files to a GCS server on this machine, refuses two, and
still holds some when the picture is taken, after `MINUTES` minutes: the charts have something to
draw.  Where pngquant is installed the picture is made smaller.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.browser.browser import Browser, missing
from tests.support.agent import RunningAgent, arguments
from tests.support.gcs import GcsServer
from tests.support.spool import Spool, document

PICTURE = Path(__file__).parents[2] / "docs" / "status-page.png"
MINUTES = 2
BUCKET = "archive-sandbox"
SIZE = (1100, 800)


def main() -> None:
    """Run the agent, write files, take the picture."""
    if lacking := missing():
        sys.exit(lacking)
    with tempfile.TemporaryDirectory() as top, Browser() as browser, GcsServer() as gcs:
        spool = Spool(Path(top, "spool"), "foo1", "bar1")
        gcs.create_bucket(BUCKET)
        argv = arguments(
            spool,
            f"gs://{BUCKET}",
            *("-prometheusx.listen-address", "127.0.0.1:0", "-bundle-age-max", "25s"),
        )
        with RunningAgent(*argv, gcs_url=gcs.url) as agent:
            port = agent.wait_for("status.listening")["port"]
            _write(spool, MINUTES * 60)
            browser.fresh(size=SIZE)
            browser.driver.get(f"http://127.0.0.1:{port}/")
            browser.picture(PICTURE)
    if pngquant := shutil.which("pngquant"):
        options = ("--force", "--strip", "--quality", "70-95", "--output", str(PICTURE))
        subprocess.run([pngquant, *options, str(PICTURE)], check=True)


def _write(spool: Spool, seconds: int) -> None:
    """Write some files a second, a bad one now and then."""
    for second in range(seconds):
        for number in range(3 + second // 20):
            datatype = "bar1" if number == 0 else "foo1"
            content = document(second * 100 + number, size=2000)
            spool.write(f"{second}-{number}.json", content, datatype=datatype, keep=False)
        if second in {seconds // 3, seconds // 2}:
            spool.write(f"<i>bad</i>-{second}.json", b'{"Rate": "fast"}', keep=False)
        time.sleep(1)


if __name__ == "__main__":
    main()
