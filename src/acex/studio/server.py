"""The HTTP server of the studio: uvicorn, with limits for clients that connect without completing a request.

uvicorn waits for a request without a time limit, and responds with 503 to everyone while too many connections are open.
Without these limits, anyone who can connect could lock out users with a valid token.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256
MAX_WAITING = 64  # connections without a complete request
REQUEST_SECONDS = 5.0  # time to complete a request, from connecting or from the first byte of a later one


def serve(app: ASGIApp, sock: socket.socket) -> None:
    """Serve requests on a socket until the process is interrupted."""
    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        log_level="warning",
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=64 * 1024,
    )
    uvicorn.Server(config).run(sockets=[sock])


class LimitedProtocol(H11Protocol):
    """A connection that is closed if its request takes too long or too many connections are waiting."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._opened_at = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None

    @property
    def _is_waiting(self) -> bool:
        """Whether the connection is waiting for a request or the rest of one."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing()

    def _set_deadline(self) -> None:
        if not self._is_waiting and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif self._is_waiting and self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()
        waiting = [c for c in self.connections if isinstance(c, LimitedProtocol) and c._is_waiting]
        if len(waiting) > MAX_WAITING:
            # Close the oldest one of the address with most waiting connections; one in use is recent or soon idle.
            addresses = [c.client[0] if c.client else "" for c in waiting]
            [(most, _)] = Counter(addresses).most_common(1)
            of_address = [c for c, address in zip(waiting, addresses, strict=True) if address == most]
            min(of_address, key=lambda c: c._opened_at).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)
