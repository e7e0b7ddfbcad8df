"""A real HTTP server on this machine that misbehaves on purpose."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias


class Handler(BaseHTTPRequestHandler):
    """Does what the next of the server's deeds says."""

    server: Server
    body: Any

    def do_POST(self) -> None:
        self.body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            i = len(self.server.bodies)
            self.server.bodies.append(self.body)
            self.server.headers.append(dict(self.headers))
        self.server.deeds[min(i, len(self.server.deeds) - 1)](self)

    def reply(self, status: int, text: str | bytes, **headers: str) -> None:
        content = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in {"content_length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Nothing: the tests look at what was received."""


Deed: TypeAlias = Callable[[Handler], None]


class Server(ThreadingHTTPServer):
    """Its deeds are done one a request, the last one again and again."""

    daemon_threads = True

    def __init__(self, deeds: tuple[Deed, ...], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.deeds, self.lock, self.over = deeds, threading.Lock(), threading.Event()
        self.bodies: list[Any] = []  # what was received, a request each
        self.headers: list[dict[str, str]] = []
        self.poured = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/score"


@contextmanager
def serving(*deeds: Deed) -> Iterator[Server]:
    with Server(deeds) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()


def labels(handler: Handler) -> None:
    """The right answer: is the first value of each row positive?"""
    handler.reply(200, json.dumps({"labels": ["yes" if row[0] > 0 else "no" for row in handler.body["rows"]]}))


def says(status: int, text: str | bytes, **headers: str) -> Deed:
    return lambda handler: handler.reply(status, text, **headers)


def raw(answer: bytes) -> Deed:
    """Says this, whatever HTTP thinks of it, and hangs up."""

    def say(handler: Handler) -> None:
        handler.wfile.write(answer)
        handler.close_connection = True

    return say


def half(handler: Handler) -> None:
    """Promises more than it sends, then hangs up."""
    handler.reply(200, '{"labels": ["yes"', content_length="1000")


def reset(handler: Handler) -> None:
    """Cuts the connection without a word."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()


def hang_up(handler: Handler) -> None:
    """Closes the connection politely, without an answer."""
    handler.close_connection = True


def drips(start: bytes) -> Deed:
    """Sends a byte now and then, and never comes to an end."""

    def drip(handler: Handler) -> None:
        try:
            handler.wfile.write(start)
            while not handler.server.over.wait(0.02):
                handler.wfile.write(b"a")
        except OSError:  # the other side has had enough
            pass

    return drip


def pours(start: bytes) -> Deed:
    """Sends as fast as it is taken, and never comes to an end; how much was taken is in the server's `poured`."""

    def pour(handler: Handler) -> None:
        try:
            handler.wfile.write(start)
            while not handler.server.over.is_set():
                handler.wfile.write(b"a" * 65_536)
                handler.server.poured += 65_536
        except OSError:  # the other side has had enough
            pass

    return pour


drip_body = drips(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
drip_headers = drips(b"HTTP/1.1 200 OK\r\nx-slow: ")


class Unreliable:
    """A deed that does another one of these by chance each time, and remembers which rows it charged and answered.

    Args:
        free: deeds after which a client may rely on it that nothing was charged.
        charged: deeds that spoil an answer which was charged.
    """

    def __init__(self, seed: int, free: Sequence[Deed], charged: Sequence[Deed]) -> None:
        self._random, self._free, self._charged = random.Random(seed), free, charged
        self.bill: list[str] = []
        self.answered: list[str] = []
        self.places: dict[str, int] = {}  # of the rows that were answered, on the bill

    def __call__(self, handler: Handler) -> None:
        rows = [json.dumps(row) for row in handler.body["rows"]]
        with handler.server.lock:
            chance = self._random.random()
            deed = self._random.choice(self._free if chance < 0.2 else self._charged if chance < 0.4 else [labels])
            if deed not in self._free:
                self.bill += rows
            if deed is labels:
                self.answered += rows
                self.places |= {row: len(self.bill) - len(rows) + i for i, row in enumerate(rows)}
        deed(handler)
