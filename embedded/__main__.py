"""Start the embedded BigQuery from a shell: `python -m embedded --data-dir DIR --port P`.

**Invariant:** it prints one line to standard output when the server is about to listen.

If the data directory or the port is in use, it exits with status 2.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

from embedded.server import EmbeddedBigQuery
from embedded.store.database import InUseError


def _plain(text: str) -> str:
    """Return a docstring without Markdown's marks, as the description of the command line."""
    return text.replace("**", "").replace("`", "")


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m embedded", description=_plain(__doc__))
    parser.add_argument("--data-dir", type=Path, required=True, help="where the data is kept")
    parser.add_argument("--port", type=int, default=9050, help="TCP port, 0 for a free one")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument(
        "--storage-port",
        type=int,
        help="also serve the Storage Read API (gRPC) on this port, 0 for a free one; needs "
        "grpcio, pyarrow and google-cloud-bigquery-storage",
    )
    parser.add_argument(
        "--storage-cert",
        type=Path,
        help="PEM file with key and certificate for that port; without it, plain text",
    )
    args = parser.parse_args(argv)
    try:
        server = EmbeddedBigQuery(
            args.data_dir,
            args.port,
            args.host,
            storage_port=args.storage_port,
            storage_certificate=args.storage_cert,
        )
    except (InUseError, OSError, ImportError) as exc:
        print(f"embedded BigQuery: {exc}", file=sys.stderr)
        return 2
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    storage = f", Storage Read API on {server.storage_address}" if server.storage_address else ""
    print(
        f"embedded BigQuery listens on {server.url}, data in {args.data_dir}{storage}; "
        f"point clients at it with BIGQUERY_EMULATOR_HOST={server.url} and AnonymousCredentials()",
        flush=True,
    )
    server.serve(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
