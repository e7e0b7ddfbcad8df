"""Who may ask the studio, and what a browser may do with what it answers. Looked at before any page sees a request.

A page elsewhere that knows the address must not drive the studio with the browser of a person who has it open: by a
name that leads here (the Host is checked), by a form or a script of its own (the Origin is checked, and what changes
something must be JSON), or inside a frame. On an address that others can reach, a token is wanted besides.
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

MOST_BYTES = 256 * 1024  # of what a page sends
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


class Refused(Exception):
    """A request that is not answered, with the status that says why."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class Guard:
    """Lets requests through to an application, or answers them itself.

    Args:
        port: where the studio listens. hosts: names under which it may be asked, besides those of this machine.
        any_address: it may also be asked under any address that is a number, which no name service can turn elsewhere.
        token: what whoever asks has to know; None on an address that only this machine can reach.
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
            let_in, read = self._let_in(scope, headers), _bounded(receive, headers)
        except Refused as refused:
            await _answer(guarded, refused.status, json.dumps({"error": refused.words}).encode())
            return
        if let_in is not None:
            await _answer(guarded, 303, b"", [(b"location", b"/"), (b"set-cookie", let_in)])
            return
        await self._app(scope, read, guarded)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) != 1 or not self._is_known(host):
            raise Refused(421, "This is not a name under which the studio answers; see --allow-host.")
        method = scope["method"]
        if method not in ("GET", "HEAD", "POST"):
            raise Refused(405, "Only GET and POST are answered.")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise Refused(403, "A page from elsewhere may not ask the studio.")
        opens = method == "GET" and scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opens:
            raise Refused(403, "A page from elsewhere may not ask the studio.")
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "Expected JSON.")

    def _is_known(self, host: str) -> bool:
        if host in self._hosts:
            return True
        name = re.sub(r":\d+$", "", host)
        return self._any_address and _is_number(name)

    def _let_in(self, scope: Scope, headers: Headers) -> bytes | None:
        """None where whoever asks may; else the cookie for one who has just brought the token."""
        if self._token is None:
            return None
        if scope["path"] == "/" and (given := parse_qs(scope["query_string"].decode("latin-1")).get("token")):
            if not hmac.compare_digest(_hashed(given[0]), self._token):
                raise Refused(401, "This is not the token that was printed when the studio was started.")
            return f"{COOKIE}={given[0]}; Path=/; HttpOnly; SameSite=Strict".encode("latin-1", "replace")
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        given_now = bearer if scheme.lower() == "bearer" else _cookie(headers)
        if not hmac.compare_digest(_hashed(given_now), self._token):
            raise Refused(401, "Open the address with the token that was printed when the studio was started.")
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
    """Reads no more than a page may send, and raises `Refused` then.

    Raises:
        Refused: it says itself that it is more.
    """
    size, seen = headers.get("content-length", "0"), 0
    if not size.isdecimal() or int(size) > MOST_BYTES:
        raise Refused(413, f"A request may have {MOST_BYTES} bytes.")

    async def read() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise Refused(413, f"A request may have {MOST_BYTES} bytes.")
        return message

    return read


async def _answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
