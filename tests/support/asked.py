"""An agent with nothing but `/why.json` on a port of loopback."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from jostler import __main__, agent, cli
from jostler.start import watched
from jostler.tables import read_schemas
from jostler.watchdir import open_arrivals
from jostler.why.live import reply

at = sys.argv.index("-prometheusx.listen-address")
_, address = sys.argv[at : at + 2]
del sys.argv[at : at + 2]
config = cli.configure(cli.parse_flags(sys.argv[1:], os.environ), lambda path: path)
__main__.start_log(config)
with open_arrivals(watched(config), extensions=config.extensions) as arrivals:
    stop, abort = threading.Event(), threading.Event()
    made = agent.Agent(config, read_schemas(config.datatypes), arrivals, stop=stop, abort=abort)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query, errors="surrogateescape")
            body = json.dumps(reply(config, made.questions, query["name"][0])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    def end(*_: object) -> None:
        stop.set()
        arrivals.wake()

    signal.signal(signal.SIGTERM, end)
    server = ThreadingHTTPServer(("127.0.0.1", int(address.rpartition(":")[2])), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.exit(0 if made.run() else 1)
