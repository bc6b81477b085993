"""Takes docs/status-page.png of a real agent, docs/serve-page.png of an archive's overview.

`make screenshot` runs it.

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
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from jostler.archive import sample
from jostler.archive.bucket_catalogue import BucketCatalogue
from jostler.archive.load_status import LoadStatus
from jostler.archive.serve.summary import Summary
from jostler.storage import open_storage
from tests.browser.browser import Browser, missing
from tests.support.agent import RunningAgent, arguments
from tests.support.gcs import GcsServer
from tests.support.serving import NOW, Serving
from tests.support.spool import Spool, document

DOCS = Path(__file__).parents[2] / "docs"
PICTURE = DOCS / "status-page.png"
ARCHIVE_PICTURE = DOCS / "serve-page.png"
MINUTES = 2
BUCKET = "archive-sandbox"
SIZE = (1100, 800)
ARCHIVE_SIZE = (1100, 360)


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
        _take_archive(browser, Path(top))
    for picture in (PICTURE, ARCHIVE_PICTURE):
        _shrink(picture)


def _take_archive(browser: Browser, top: Path) -> None:
    """Take the overview of the made-up archive, of which BigQuery lacks the two latest days."""
    bucket = open_storage((top / "archive").as_uri())
    sample.write(bucket, NOW)

    def loaded(first: date, last: date) -> set[tuple[str, date]]:
        days = [first + timedelta(days=n) for n in range((last - first).days - 1)]
        return {(datatype, day) for datatype in (sample.SPEED, sample.PING) for day in days}

    catalogue = BucketCatalogue(bucket, [sample.PLACE])
    with Serving() as serving, closing(catalogue):
        summary = Summary(catalogue, NOW.date, loaded)
        serving.show(catalogue, summary=summary, ledger=Unasked())
        browser.fresh(size=ARCHIVE_SIZE)
        browser.driver.get(serving.url)
        browser.picture(ARCHIVE_PICTURE)


class Unasked:
    """A ledger that no page of the picture asks."""

    def rows(self, _datatype: str, _day: date) -> list[dict[str, object]]:
        return []

    def status(self, _today: date) -> LoadStatus:
        return LoadStatus()


def _shrink(picture: Path) -> None:
    if pngquant := shutil.which("pngquant"):
        options = ("--force", "--strip", "--quality", "70-95", "--output", str(picture))
        subprocess.run([pngquant, *options, str(picture)], check=True)


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
