"""Which requests the studio accepts, and what browsers may do with the responses. Checked before any endpoint runs.

A page of another site must not control the studio through the browser of a person who has it open: by DNS rebinding
(so the Host header is checked), by a form or a script (so the Origin header is checked, and POST requests must be
JSON), or inside a frame. On an address that other machines can reach, a token is required as well.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from hmac import compare_digest
from importlib.resources import files

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "acex-studio"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
TOKEN_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
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


class SecurityMiddleware:
    """ASGI middleware that passes requests on to an application, or rejects them.

    Args:
        port: where the studio listens. hosts: host names that are accepted in addition to those of this machine.
        any_address: accept any numeric IP address as host, which is safe because DNS is not involved.
        token: required from every client; None on an address that only this machine can reach.
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
        self._local = {f"{name}:{port}" for name in LOCAL} | (set(LOCAL) if port == 80 else set())
        self._names = {host.lower() for host in hosts}
        self._token = None if token is None else token.encode(errors="surrogateescape")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # lifespan events; websockets have no route
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        request = Request(scope)
        response: Response | None
        try:
            self._check_source(request)
            response = self._check_token(request)
        except HTTPException as refused:
            response = JSONResponse({"error": refused.detail}, refused.status_code)
            if refused.status_code == 401 and "text/html" in request.headers.get("accept", ""):  # a person's browser
                page = files("acex.studio") / "static" / "token.html"
                response = HTMLResponse(
                    page.read_text(encoding="utf-8"), 401, {"content-security-policy": TOKEN_POLICY}
                )
        await (response or self._app)(scope, receive, send_with_headers)

    def _check_source(self, request: Request) -> None:
        headers, method = request.headers, request.method
        host = headers.get("host", "").lower()
        if len(headers.getlist("host")) != 1 or not self._is_known(host):
            raise HTTPException(421, "This host name is not allowed; see --allow-host.")
        if method not in ("GET", "HEAD", "POST"):
            raise HTTPException(405, "Only GET and POST are allowed.")
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            raise HTTPException(403, "Requests from pages of other sites are refused.")
        opens = method == "GET" and request.scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not opens:
            raise HTTPException(403, "Requests from pages of other sites are refused.")
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise HTTPException(415, "Expected JSON.")

    def _is_known(self, host: str) -> bool:
        name = re.sub(r":\d+$", "", host)  # a proxy may use another port
        return host in self._local or name in self._names or (self._any_address and _is_ip_address(name))

    def _check_token(self, request: Request) -> Response | None:
        """The response that sets the cookie, if the address has the token; None for a request that may proceed."""
        if self._token is None:
            return None
        in_address = request.query_params.get("token") if request.scope["path"] == "/" else None
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = in_address or (bearer if scheme.lower() == "bearer" else request.cookies.get(COOKIE, ""))
        if not compare_digest(given.encode(errors="surrogateescape"), self._token):
            raise HTTPException(401, "Open the address with the token that was printed when the studio was started.")
        if not in_address:
            return None
        response = RedirectResponse("/", 303)
        response.set_cookie(COOKIE, given, httponly=True, samesite="strict")
        return response


def _is_ip_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
