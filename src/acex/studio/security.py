"""Which requests the studio answers, and what a browser may do with the responses. Checked before any endpoint runs.

A page of another site must not control the studio through the browser of a person who has it open: by a host name that
resolves here (the Host is checked), by a form or a script (the Origin is checked, and a request that changes something
must be JSON), or inside a frame. On an address that others can reach, a token is required as well.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import re
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES = 256 * 1024  # of a request
COOKIE = "acex-studio"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
LOCAL = ("127.0.0.1", "localhost", "[::1]")


class RequestRefused(Exception):
    """A request that is not answered, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class SecurityMiddleware:
    """Passes requests on to an application, or refuses them.

    Args:
        port: where the studio listens. hosts: host names that are accepted in addition to those of this machine.
        any_address: accept any numeric IP address as host; no name server can redirect one.
        token: required of every client; None on an address that only this machine can reach.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        port: int,
        hosts: Iterable[str] = (),
        any_address: bool = False,
        token: str | None = None,
    ) -> None:
        self._app, self._any_address = app, any_address
        names = {*LOCAL, *(host.lower() for host in hosts)}
        self._hosts = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
        self._token = None if token is None else _hashed(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
            cookie, read = self._check_token(scope, headers), _bounded(receive, headers)
        except RequestRefused as refused:
            await _answer(guarded, refused.status, json.dumps({"error": refused.message}).encode())
            return
        if cookie is not None:
            await _answer(guarded, 303, b"", [(b"location", b"/"), (b"set-cookie", cookie)])
            return
        await self._app(scope, read, guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) != 1 or not self._is_known(host):
            raise RequestRefused(421, "This host name is not allowed; see --allow-host.")
        method = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            raise RequestRefused(405, "Only GET and POST are allowed.")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise RequestRefused(403, "Requests from pages of other sites are refused.")
        opens = method == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opens:
            raise RequestRefused(403, "Requests from pages of other sites are refused.")
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise RequestRefused(415, "Expected JSON.")

    def _is_known(self, host: str) -> bool:
        if host in self._hosts:
            return True
        name = re.sub(r":\d+$", "", host)
        return self._any_address and _is_number(name)

    def _check_token(self, scope: Scope, headers: Headers) -> bytes | None:
        """The cookie for a client that opens the address with the token; None for one that may proceed."""
        if self._token is None:
            return None
        if scope["path"] == "/" and (given := parse_qs(scope["query_string"].decode("latin-1")).get("token")):
            if not hmac.compare_digest(_hashed(given[0]), self._token):
                raise RequestRefused(401, "This is not the token that was printed when the studio was started.")
            return f"{COOKIE}={given[0]}; Path=/; HttpOnly; SameSite=Strict".encode("latin-1", "replace")
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given_now = bearer if scheme.lower() == "bearer" else _cookie(headers)
        if not hmac.compare_digest(_hashed(given_now), self._token):
            raise RequestRefused(401, "Open the address with the token that was printed when the studio was started.")
        return None


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _cookie(headers: Headers) -> str:
    try:
        morsel = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if morsel is None else morsel.value


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _bounded(receive: Receive, headers: Headers) -> Receive:
    """Reads no more than a request may have, and raises `RequestRefused` beyond that.

    Raises:
        RequestRefused: the declared length is too large.
    """
    size, seen = headers.get("content-length", "0"), 0
    if not size.isdecimal() or int(size) > MAX_BYTES:
        raise RequestRefused(413, f"A request may have at most {MAX_BYTES} bytes.")

    async def read() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BYTES:
            raise RequestRefused(413, f"A request may have at most {MAX_BYTES} bytes.")
        return message

    return read


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
