"""A server on loopback that sends the same bytes, or none, on every connection."""

from __future__ import annotations

import re
import socket
import struct
import threading
from contextlib import suppress
from typing import Self

HTTP_METHOD = re.compile(rb"[A-Z]{1,10}( |$)")
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def read_request(connection: socket.socket) -> bytes:
    """Read one request to the end of its body; what is no HTTP ends with its first packet.

    A socket that is closed with unread bytes sends RST instead of FIN, and a client may send a
    body in a packet of its own: a server that read only the first would reset at random.
    """
    data = b""
    while packet := connection.recv(1 << 20):
        data += packet
        head, end, body = data.partition(b"\r\n\r\n")
        if not HTTP_METHOD.match(data):
            break
        length = CONTENT_LENGTH.search(head)
        if end and len(body) >= (int(length[1]) if length else 0):
            break
    return data


class Misbehaving:
    """A TCP server that reads a request, sends `answer` and closes the connection.

    Args:
        answer: the bytes of the reply.
        reset: end each connection with RST instead of FIN.
    """

    def __init__(self, answer: bytes, *, reset: bool = False) -> None:
        self._answer = answer
        self._reset = reset
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = f"http://{self.host}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):  # the socket was closed: the end
            while True:
                connection, _ = self._socket.accept()
                with connection, suppress(OSError):
                    self._reply(connection)

    def _reply(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        read_request(connection)
        connection.sendall(self._answer)
        if self._reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)
