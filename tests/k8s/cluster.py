"""A Kubernetes API of one namespace, as far as Spark asks for it, with one Role in force.

Pods that are created are run as processes of this machine by a function that the test gives: what
the container's entrypoint would do.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.k8s.manifests import Doc

PATH_RE = re.compile(r"/api/v1/namespaces/(?P<space>[^/]+)/(?P<kind>[a-z]+)(?:/(?P<name>[^/]+))?")
VERBS = {"GET": ("list", "get"), "POST": ("create", "create"), "PUT": ("update", "update")}
VERBS |= {"PATCH": ("patch", "patch"), "DELETE": ("deletecollection", "delete")}


@dataclass
class Cluster:
    """What the API holds and was asked."""

    namespace: str
    rules: list[Doc]
    start: Callable[[Doc], subprocess.Popen[bytes]]
    asked: list[tuple[str, str, bool]] = field(default_factory=list)
    pods: dict[str, Doc] = field(default_factory=dict)
    config_maps: dict[str, Doc] = field(default_factory=dict)
    made: list[Doc] = field(default_factory=list)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    versions: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="kubernetes")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for process in self.processes.values():
            process.kill()
            process.wait()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def ask(
        self, verb: str, kind: str, name: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[int, Doc]:
        """Do what is asked, if the Role allows it; return status and answer."""
        allowed = self.allows(verb, kind)
        self.asked.append((verb, kind, allowed))
        if not allowed:
            return failure(403)
        if verb == "create":
            return 201, self.create(kind, json.loads(body))
        if verb == "watch":
            return 200, {}  # ends at once: Spark goes on by asking for lists
        if name:
            found = [doc for key, doc in self.held(kind).items() if key == name]
        else:
            found = self.selected(kind, query)
        if verb.startswith("delete"):
            for doc in found:
                self.remove(kind, doc)
        if name:
            return (200, found[0]) if found else failure(404)
        version = {"resourceVersion": str(next(self.versions))}
        listed = {"pods": "PodList", "configmaps": "ConfigMapList"}[kind]
        return 200, {"kind": listed, "apiVersion": "v1", "metadata": version, "items": found}

    def allows(self, verb: str, kind: str) -> bool:
        """Say whether the Role lets its holder do this."""
        return any(kind in rule["resources"] and verb in rule["verbs"] for rule in self.rules)

    def create(self, kind: str, doc: Doc) -> Doc:
        """Hold a new object; a pod begins to run."""
        doc["metadata"] |= {"uid": str(uuid.uuid4()), "namespace": self.namespace}
        doc["metadata"] |= {"creationTimestamp": "2026-01-02T00:00:00Z"}
        doc["metadata"]["resourceVersion"] = str(next(self.versions))
        name = doc["metadata"]["name"]
        if kind == "pods":
            doc["status"] = {"phase": "Running", "containerStatuses": []}
            self.pods[name] = doc
            self.made.append(json.loads(json.dumps(doc)))
            self.processes[name] = self.start(doc)
        else:
            self.config_maps[name] = doc
        return doc

    def held(self, kind: str) -> dict[str, Doc]:
        """Return the objects of a kind."""
        return {"pods": self.pods, "configmaps": self.config_maps}.get(kind, {})

    def selected(self, kind: str, query: dict[str, list[str]]) -> list[Doc]:
        """Return the objects whose labels are as asked; only equality is known."""
        wanted = dict(
            part.split("=", 1)
            for text in query.get("labelSelector", ())
            for part in text.split(",")
            if part
        )
        return [
            doc
            for doc in self.held(kind).values()
            if wanted.items() <= doc["metadata"].get("labels", {}).items()
        ]

    def remove(self, kind: str, doc: Doc) -> None:
        """Forget an object; a pod's process is ended."""
        name = doc["metadata"]["name"]
        self.held(kind).pop(name, None)
        process = self.processes.pop(name, None) if kind == "pods" else None
        if process:
            process.kill()
            process.wait()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request after the other; the server has the cluster."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        cluster = self.server.cluster
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        place = PATH_RE.fullmatch(url.path)
        if not place or place["space"] != cluster.namespace:
            self._reply(*failure(404))
            return
        verb = VERBS[self.command][bool(place["name"])]
        verb = "watch" if query.get("watch") == ["true"] else verb
        with cluster.lock:
            self._reply(*cluster.ask(verb, place["kind"], place["name"], query, body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - http.server's

    def _reply(self, status: int, value: Doc) -> None:
        data = json.dumps(value).encode() if value else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        super().__init__(("127.0.0.1", 0), _Handler)


def failure(code: int) -> tuple[int, Doc]:
    """Return what the API says when it does not do what was asked."""
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
