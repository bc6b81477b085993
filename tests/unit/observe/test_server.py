"""The status server as clients meet it, good and bad ones."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

import pytest

from jostler.cli.flags import host_port
from jostler.web.server import REQUESTS_MAX, Reply, StatusServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


HERE = socket.gethostname()


def fail(_query: Mapping[str, str]) -> Reply:
    raise RuntimeError("broken")


def echo(query: Mapping[str, str]) -> Reply:
    return Reply(query.get("name", "nothing").encode(errors="surrogateescape"))


@pytest.fixture
def server() -> Iterator[StatusServer]:
    with StatusServer("127.0.0.1", 0, {"/echo": echo, "/broken": fail}, ["Node1"]) as made:
        made.start()
        yield made


def ask(
    server: StatusServer, path: str, method: str = "GET"
) -> tuple[int, bytes, Mapping[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=100)
    connection.request(method, path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body, dict(response.headers)


def test_a_route_is_given_the_parameters(server: StatusServer) -> None:
    """Any bytes, percent-encoded."""
    assert ask(server, "/echo?name=a%20b%FF")[:2] == (200, b"a b\xff")


def host_asked(server: StatusServer, *hosts: str) -> int:
    """Return the status for a request with these Host headers."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        lines = ["GET /echo HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close"]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        connection.settimeout(30)
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.parametrize("port", ["", ":9990"])
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "10.1.2.3", "[::1]", "node1", HERE])
def test_who_asks_by_address_or_by_a_name_of_the_machine_is_answered(
    server: StatusServer, host: str, port: str
) -> None:
    """Probes and scrapers ask by the pod's address, people by localhost or the node's name."""
    assert host_asked(server, f"{host}{port}") == 200


@pytest.mark.parametrize(
    "hosts",
    [
        *(("evil.example",), ("evil.example:9990",), ("127.0.0.1.evil.example",)),
        *(("localhost", "evil.example"), ("[",), ("",)),
    ],
)
def test_who_asks_by_another_name_is_refused(server: StatusServer, hosts: tuple[str, ...]) -> None:
    """A web page whose name was made to lead here must not read what the agent shows."""
    assert host_asked(server, *hosts) == 421


def test_old_clients_that_name_no_host_are_answered(server: StatusServer) -> None:
    """None of them is a browser."""
    assert host_asked(server) == 200


def test_head_has_no_body_and_says_how_long_it_would_be(server: StatusServer) -> None:
    """As HTTP wants it."""
    status, body, headers = ask(server, "/echo", "HEAD")
    assert (status, body, headers["Content-Length"]) == (200, b"", "7")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"])
def test_nothing_can_be_changed(server: StatusServer, method: str) -> None:
    """There are no other methods."""
    assert ask(server, "/echo", method)[0] == 501


def test_browsers_are_told_to_trust_nothing(server: StatusServer) -> None:
    """No scripts, no frames, no guessing of types, no cache; on errors as well."""
    for path in ("/echo", "/nowhere", "/broken"):
        headers = ask(server, path)[2]
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nowhere", 404), ("/../etc/passwd", 404), ("/echo?" + "a=1&" * 50, 400)],
)
def test_what_is_not_there_is_said(server: StatusServer, path: str, status: int) -> None:
    """And nothing of the request comes back."""
    assert ask(server, path)[0] == status


@pytest.mark.parametrize("line", [b"GET http://[ HTTP/1.0", b"\xff\x00", b"GET", b"GET / HTTP/9.9"])
def test_what_is_no_request_is_refused(server: StatusServer, line: bytes) -> None:
    """And the next one is served."""
    with socket.create_connection(("127.0.0.1", server.port), 30) as connection:
        connection.sendall(line + b"\r\n\r\n")
        connection.settimeout(30)
        assert b"jostler" not in connection.recv(1 << 16).split(b"\r\n")[0]
    assert ask(server, "/echo")[0] == 200


def test_a_route_that_fails_hurts_nobody(server: StatusServer) -> None:
    """The client is told, the next one is served."""
    assert ask(server, "/broken")[0] == 500
    assert ask(server, "/echo")[0] == 200


def test_clients_that_say_nothing_keep_nobody_from_an_answer(server: StatusServer) -> None:
    """A liveness probe must not fail because somebody connects and waits."""
    silent = [
        socket.create_connection(("127.0.0.1", server.port), 30) for _ in range(3 * REQUESTS_MAX)
    ]
    for _ in range(REQUESTS_MAX):
        assert ask(server, "/echo")[0] == 200
    for connection in silent:
        connection.close()


def test_a_port_that_is_taken_is_an_error(server: StatusServer) -> None:
    """Two agents must not share one silently."""
    with pytest.raises(OSError, match="in use"):
        StatusServer("127.0.0.1", server.port, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":9990", ("", 9990)),
        ("localhost:1", ("localhost", 1)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_addresses(text: str, expected: tuple[str, int]) -> None:
    """As Go's net.Listen takes them."""
    assert host_port(text) == expected


@pytest.mark.parametrize("text", ["", "9990", "host", "host:", "h:x", ":99999", "u@h:1", "a:1/b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    """With the text in the message."""
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        host_port(text)
