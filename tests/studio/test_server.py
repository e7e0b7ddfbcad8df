"""Clients that connect and do not complete a request."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from acex.studio import server
from acex.studio.security import SecurityMiddleware

TOKEN = "the-token-that-was-printed"
HEAD = "POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n"
HALF = {"nothing": "", "half of the headers": HEAD, "half of the body": HEAD + "\r\n{{"}


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers once it has the whole body of a request."""
    while scope["type"] == "http" and (await receive()).get("more_body"):
        pass
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"hello"})


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, *, token: str | None) -> Iterator[int]:
    """A port on which `serve` answers, in a thread."""
    started = list[uvicorn.Server]()

    class Started(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            started.append(self)

    monkeypatch.setattr(uvicorn, "Server", Started)
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    app = SecurityMiddleware(hello, port=port, token=token)
    thread = threading.Thread(target=server.serve, args=(app, sock), daemon=True)
    thread.start()
    try:
        yield port
    finally:
        started[0].should_exit = True
        thread.join(30)


def status(port: int) -> int:
    page = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    page.request("GET", "/", headers={"authorization": f"Bearer {TOKEN}"})
    return page.getresponse().status


def half_open(port: int, sent: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(sent.format(port=port).encode())
    return connection


def test_300_half_open_connections_lock_no_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 600)  # none of them ends by itself
    with served(monkeypatch, token=TOKEN) as port, ExitStack() as held:
        for i in range(300):
            try:
                held.enter_context(half_open(port, list(HALF.values())[i % 3]))
            except OSError:  # closed by the server already
                continue
        assert [status(port) for _ in range(3)] == [200, 200, 200]


@pytest.mark.parametrize("what", HALF)
def test_a_request_that_is_not_completed_is_closed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    with served(monkeypatch, token=None) as port, half_open(port, HALF[what]) as connection:
        try:
            answer = connection.recv(4096)
        except ConnectionResetError:
            answer = b""
        assert answer == b""
        assert status(port) == 200


def test_a_connection_is_used_again_after_a_complete_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, token=None) as port:
        page = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(2):
            page.request("POST", "/", b"{}", headers={"content-type": "application/json"})
            answer = page.getresponse()
            assert answer.status == 200 and answer.read() == b"hello"
