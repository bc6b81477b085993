"""The command `jostler serve`: the archive as web pages and an HTTP API.

**Invariant:** it only reads, and listens on loopback unless a flag names another address.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from jostler import log
from jostler.archive.bigquery import Tables
from jostler.archive.reading import RowReader
from jostler.cli.archive_command import PATIENCE_S, Archive, Command
from jostler.cli.archive_flags import Kind
from jostler.cli.flags import Flag, boolean, host_port, words
from jostler.cli.messages import DONE, FAILED
from jostler.errors import JostlerError
from jostler.web.hosts import listen
from jostler.words import counted

if TYPE_CHECKING:
    from datetime import date
    from types import FrameType

    from jostler.archive.serve.ledger import Ledger
    from jostler.archive.serve.served import Archive as Served
    from jostler.archive.serve.summary import Summary

REQUESTS_MAX = 256
KEEP_ALIVE_S = 10
GRACE_S = 5
ABOUT = """usage: jostler serve [flags]

Shows an archive on web pages, and answers programs: files by work id or by time, the newest file,
their content.  docs/serve.md describes pages and API.  It has no users and no passwords.
With -project the pages show what BigQuery has.  With -demo it shows a made-up archive, for a look.
Exit status: 0 ended; 1 it could not start; 2 wrong use.

flags:"""
FLAGS = (
    Flag(
        name="demo",
        read=boolean,
        default="false",
        help="serve a made-up archive from a temporary directory, which is removed at the end;"
        " no other flag is needed, and those that say where an archive is are not used",
        variable=False,
    ),
    Flag(
        name="listen-address",
        read=host_port,
        default="localhost:9991",
        help="where to listen; :9991 for all interfaces, port 0 for any free one",
        variable=False,
    ),
    Flag(
        name="allowed-hosts",
        read=words,
        help="names, beside localhost and any address, by which a browser may ask",
        variable=False,
    ),
    Flag(
        name="meta-dataset",
        default="jostler",
        help="with -project: the loader's dataset of ledger and rejects",
        variable=False,
    ),
)


def run(archive: Archive, _words: list[str]) -> int:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ValueError: wrong use.
        JostlerError: the archive cannot be opened, or the address cannot be listened on.
    """
    archive.progress.stop()
    return _serve_demo(archive) if archive.values["demo"] else _serve(archive)


def _serve_demo(archive: Archive) -> int:
    """Make an archive, serve it, and remove it."""
    from jostler.archive import sample  # noqa: PLC0415 - it writes bundles, which no other one does

    for number in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: the directory must be removed
        signal.signal(number, _leave)
    # A thread that sums up a day may still read; then what it has open is removed all the same.
    with TemporaryDirectory(prefix="jostler-demo-", ignore_cleanup_errors=True) as directory:
        where = {
            "bucket": Path(directory).as_uri(),
            "catalogue": Kind.BUCKET,
            "gcs-data-dir": sample.PLACE.data_dir,
            "experiment": sample.PLACE.experiment,
            "organization": "",
            "project": "",
            "cache-dir": "-",
        }
        with Archive("serve", {**archive.values, **where}) as demo:
            demo.progress.stop()
            made = sample.write(demo.bucket(where["bucket"]), datetime.now(UTC))
            archive.say(
                f"made up {counted(made.files, 'file')} in {counted(made.bundles, 'bundle')},"
                f" until Ctrl-C; the other commands read them, too:\n"
                f"  jostler list -days -bucket {where['bucket']} -experiment {where['experiment']}"
            )
            return _serve(demo)


def _leave(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)  # the status that a shell shows for this signal


def _serve(archive: Archive) -> int:
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from jostler.archive.serve.app import application  # noqa: PLC0415 - as above
    except ImportError as exc:
        hint = "pip install 'jostler[serve]'"
        raise JostlerError("starlette and uvicorn are not installed", hint=hint) from exc
    log.start(verbose=False, text=sys.stderr.isatty())
    served = _served(archive)
    listening = _listen(*archive.values["listen-address"])
    config = uvicorn.Config(
        application(served),
        interface="asgi3",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=REQUESTS_MAX,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
    )
    server = uvicorn.Server(config)
    host, port = listening.getsockname()[:2]
    archive.say(f"{served.name} is served on http://{_shown(host)}:{port}/")
    served.summary.start()
    try:
        server.run(sockets=[listening])
    finally:
        served.summary.close()
    return DONE if server.started else FAILED


def _served(archive: Archive) -> Served:
    from jostler.archive.serve.served import Archive as Served  # noqa: PLC0415 - an extra
    from jostler.archive.serve.stored import StoredFiles  # noqa: PLC0415 - as above
    from jostler.archive.serve.summary import Summary  # noqa: PLC0415 - as above

    values = archive.values
    places = archive.places()
    catalogue = archive.catalogue

    def loaded(first: date, last: date) -> set[tuple[str, date]]:
        assert ledger
        return ledger.loaded(first, last)

    asks = bool(values["project"])
    summary = Summary(catalogue, _today, loaded if asks else None)
    ledger = _ledger(archive, summary) if asks else None
    tables = Tables(
        project=values["project"],
        location=values["location"],
        naming=values["naming"],
        meta_dataset=values["meta-dataset"],
    )
    rows: RowReader = archive.closing(RowReader(archive.bucket, archive.moved))
    return Served(
        name=f"{values['bucket'] or values['project']} {places[0].root}",
        catalogue=catalogue,
        contents=StoredFiles(archive.bucket, places, rows, tables if asks else None),
        summary=summary,
        ledger=ledger,
        hosts=frozenset(values["allowed-hosts"]),
    )


def _ledger(archive: Archive, summary: Summary) -> Ledger:
    try:
        from jostler.archive.bigquery_tables import TableReader  # noqa: PLC0415 - an extra
        from jostler.archive.serve.ledger import Ledger  # noqa: PLC0415 - as above
        from jostler.format.bigquery_names import Naming  # noqa: PLC0415 - as above
    except ImportError as exc:
        hint = "pip install 'jostler[bigquery]'"
        raise JostlerError("google-cloud-bigquery is not installed", hint=hint) from exc
    values = archive.values
    naming = Naming(values["naming"])
    reader = TableReader(
        project=values["project"],
        location=values["location"],
        naming=naming,
        meta_dataset=values["meta-dataset"],
        patience_s=PATIENCE_S,
    )
    return Ledger(
        archive.closing(reader),
        project=values["project"],
        naming=naming,
        places=archive.places(),
        datatypes=lambda: summary.datatypes,
    )


def _today() -> date:
    return datetime.now(UTC).date()


def _listen(host: str, port: int) -> socket.socket:
    """Listen on an address; an empty host means all interfaces.

    Raises:
        JostlerError: the system refuses.
    """
    try:
        return listen(host, port)
    except OSError as exc:
        why = exc.strerror or os.strerror(exc.errno or 0)
        raise JostlerError(f"-listen-address: cannot listen on {host}:{port}: {why}") from exc


def _shown(host: str) -> str:
    if host in {"::", "0.0.0.0"}:  # noqa: S104 - compared, not listened on
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


main = Command(name="serve", about=ABOUT, flags=FLAGS, most_words=0, run=run).main
