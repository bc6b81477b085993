"""Load jobs with the data in the request: multipart uploads, and resumable uploads in chunks.

**Invariant:** a job is submitted only after all its data has been written to a file.

The reply to a chunk that does not continue the last one has the range received so far.
Source: "Upload data" of the REST reference.
"""

from __future__ import annotations

import re
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedded.model.errors import invalid, not_found
from embedded.model.wire import Call, Json, Reply, json_object

if TYPE_CHECKING:
    from pathlib import Path

    from embedded.jobs.jobs import Jobs

RESUME_INCOMPLETE = 308
PIECE = re.compile(r"bytes (?:([0-9]+)-[0-9]+|\*)/([0-9]+|\*)")
PARTS = 2


@dataclass(frozen=True, slots=True)
class _Session:
    project: str
    job: Json
    path: Path


class Uploads:
    """The unfinished uploads.

    Args:
        jobs: the jobs, to submit to.
        directory: the directory for the data.
    """

    def __init__(self, jobs: Jobs, directory: Path) -> None:
        self._jobs = jobs
        self._directory = directory
        self._sessions: dict[str, _Session] = {}
        self._lock = threading.Lock()

    def begin(self, call: Call) -> Reply:
        """Handle a multipart upload, or begin a resumable one."""
        kind = call.query.get("uploadType", "")
        if kind == "multipart":
            job, media = _parts(call)
            path = self._new_file()
            path.write_bytes(media)
            return self._submit(_Session(call.names["project"], job, path))
        if kind != "resumable":
            raise invalid(f"Invalid value for uploadType: {kind!r}")
        name = uuid.uuid4().hex
        session = _Session(call.names["project"], call.json(), self._new_file())
        session.path.touch()
        with self._lock:
            self._sessions[name] = session
        location = f"{call.url}?uploadType=resumable&upload_id={name}"
        return Reply(headers={"location": location, "x-guploader-uploadid": name})

    def proceed(self, call: Call) -> Reply:
        """Append a chunk to a resumable upload; the last chunk submits the job."""
        name = call.query.get("upload_id", "")
        with self._lock:
            session = self._sessions.get(name)
        if session is None:
            raise not_found("Upload", name)
        start, total = _piece(call)
        size = session.path.stat().st_size
        # A client repeats a chunk if the reply to it was lost; its start is then below `size`.
        # It is not written again, and the reply says how far the data goes.
        if start == size and call.body:
            with session.path.open("ab") as out:
                out.write(call.body)
            size += len(call.body)
        if total != size:
            so_far = {"range": f"bytes=0-{size - 1}"} if size else {}
            return Reply(status=RESUME_INCOMPLETE, headers=so_far)
        with self._lock:
            self._sessions.pop(name, None)
        return self._submit(session)

    def _submit(self, session: _Session) -> Reply:
        try:
            return Reply(self._jobs.submit(session.project, session.job, session.path))
        except BaseException:
            session.path.unlink(missing_ok=True)
            raise

    def _new_file(self) -> Path:
        return self._directory / f"upload-{uuid.uuid4().hex}"


def _piece(call: Call) -> tuple[int, int]:
    """Return the start of a chunk and the total size, in bytes; -1 for what is not given."""
    content_range = call.headers.get("content-range")
    if content_range is None:
        return 0, len(call.body)
    found = PIECE.fullmatch(content_range)
    if found is None:
        raise invalid(f"Invalid Content-Range: {content_range}")
    start, total = found.groups()
    return int(start or -1), -1 if total == "*" else int(total)


def _parts(call: Call) -> tuple[Json, bytes]:
    """Split a multipart/related body (RFC 2046 §5.1) into the job and its data."""
    found = re.search(r'boundary="?([^";]+)"?', call.headers.get("content-type", ""))
    if found is None:
        raise invalid("A multipart upload without a boundary")
    delimiter = b"--" + found[1].encode()
    body = b"\r\n" + call.body
    pieces = body.split(b"\r\n" + delimiter)[1:-1]
    if len(pieces) != PARTS:
        raise invalid(f"A multipart upload has {PARTS} parts, not {len(pieces)}")
    job, media = (piece.split(b"\r\n\r\n", 1)[-1] for piece in pieces)
    return json_object(job), media
