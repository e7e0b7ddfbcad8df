"""Requests that the studio must refuse, each tried."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from acex.studio.app import MAX_BYTES, studio_app
from acex.studio.security import COOKIE, SecurityMiddleware
from commands import set_up as set_up_bank
from studios import HOME, PORT, Bank, in_threads, serving_studio, visiting, workspace_in, workspace_of

TOKEN = "the-token-that-was-printed"
PLAN = {"row": {"position": 0}}
POLICY = dict.fromkeys(("default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types"), "'none'")
POLICY |= {"script-src": "'self'", "connect-src": "'self'", "require-trusted-types-for": "'script'"}
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def answered(scope: dict[str, Any], **settings: Any) -> tuple[list[Any], list[Any]]:
    """What the middleware sends for a request that no client would make, and what it passes on."""
    sent, through = list[Any](), list[Any]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        through.append(scope)

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    middleware = SecurityMiddleware(app, port=PORT, **settings)
    asyncio.run(middleware({"method": "GET", "path": "/", "query_string": b"", **scope}, receive, send))
    return sent, through


def test_two_hosts_in_one_request_are_refused() -> None:
    """A proxy may read the one, the studio the other."""
    known, evil = (b"host", f"127.0.0.1:{PORT}".encode()), (b"host", b"evil.example")
    assert answered({"type": "http", "headers": [known]})[1]
    for hosts in ([known, evil], [evil, known], [known, known], []):
        sent, through = answered({"type": "http", "headers": hosts})
        assert sent[0]["status"] == 421 and not through


def test_there_are_no_web_sockets(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client, pytest.raises(WebSocketDisconnect):
        client.websocket_connect("/").__enter__()


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(a: bytes, b: bytes) -> bool:
        compared.append((a, b))
        return a == b

    monkeypatch.setattr("acex.studio.security.compare_digest", compare)
    host = (b"host", f"127.0.0.1:{PORT}".encode())
    for given in ("", "x", TOKEN[:-1], TOKEN, TOKEN * 9):
        for way in (
            {"headers": [host], "query_string": f"token={given or 'y'}".encode()},
            {"headers": [host, (b"authorization", f"Bearer {given}".encode())]},
            {"headers": [host, (b"cookie", f"{COOKIE}={given}".encode())]},
        ):
            compared.clear()
            answered({"type": "http", **way}, token=TOKEN)
            assert len(compared) == 1


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"10.0.0.7:{PORT}",
        "",
        "localhost:80",
    ],
)
def test_a_name_that_leads_here_is_not_enough(host: str, tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        for path in ("/", "/static/app.js", "/api/workspace"):
            assert client.get(path, headers={"host": host}).status_code == 421
        assert client.post("/api/plan", json=PLAN, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_this_machine_is_known_by_its_names(host: str, tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        assert client.get("/api/workspace", headers={"host": host, "origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"http://localhost.evil:{PORT}", "https://127.0.0.1"]
)
def test_a_page_from_elsewhere_can_neither_ask_nor_spend(origin: str, tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        assert client.get("/api/workspace", headers={"origin": origin}).status_code == 403
        for path in ("/api/searches", "/api/many", "/api/ask"):
            assert client.post(path, json=PLAN | {"pay": True}, headers={"origin": origin}).status_code == 403
    assert bank.asked == []


def test_a_form_of_a_page_from_elsewhere_is_no_json(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            response = client.post("/api/plan", content=json.dumps(PLAN), headers={"content-type": kind})
            assert response.status_code == 415


def test_a_script_of_another_site_that_hides_its_origin_is_known_by_the_browser(tmp_path: Path) -> None:
    with in_threads():
        app = studio_app(workspace_in(tmp_path), port=PORT)
    with TestClient(app, base_url=HOME) as client:
        for site in ("cross-site", "same-site"):
            elsewhere = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            assert client.get("/api/workspace", headers=elsewhere).status_code == 403
            assert client.get("/static/app.js", headers=elsewhere).status_code == 403
            assert client.get("/api/workspace", headers=elsewhere | {"sec-fetch-mode": "navigate"}).status_code == 403
            assert client.get("/", headers=elsewhere).status_code == 403
            assert client.get("/", headers=elsewhere | {"sec-fetch-mode": "navigate"}).status_code == 200  # a link


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_answered(method: str, tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        assert client.request(method, "/api/workspace").status_code == 405
        assert client.request(method, "/nothing").status_code == 405  # before any route is looked up


def test_every_answer_forbids_scripts_and_frames_and_being_kept(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        answers = [client.get(path) for path in ("/", "/static/style.css", "/api/workspace", "/nothing")]
        answers += [client.get("/", headers={"host": "evil.example"}), client.post("/api/plan", json=[])]
        for answer in answers:
            policy = dict(rule.strip().split(" ", 1) for rule in answer.headers["content-security-policy"].split(";"))
            assert "unsafe" not in str(policy) and policy.items() >= POLICY.items()
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert "access-control-allow-origin" not in answer.headers


def test_no_script_of_the_page_turns_text_into_markup() -> None:
    folder = Path(__file__).parents[2] / "src/acex/studio/static"
    for path in folder.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", text), path
        assert not re.findall(r"https?://(?!www\.w3\.org/)", text), path


def test_a_request_has_an_end(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        as_json = {"content-type": "application/json"}
        assert client.post("/api/plan", content=b" " * (MAX_BYTES + 1), headers=as_json).status_code == 413

        def endless() -> Any:
            for _ in range(2 + MAX_BYTES // 65536):
                yield b" " * 65536

        assert client.post("/api/plan", content=endless(), headers=as_json).status_code == 413
        assert client.post("/api/plan", content=b"[" * 100_000, headers=as_json).status_code == 422
        assert client.get("/api/rows", params={"page": "9" * 9999}).status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/security.py", "/static//etc/passwd", "/static/%00",
        "/static/..\\app.py", "/etc/passwd", "/api/searches/..%2f..%2fetc%2fpasswd", "/static/",
    ],
)  # fmt: skip
def test_no_file_of_the_machine_can_be_read(path: str, tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        assert client.get(path).status_code == 404


def test_where_others_can_reach_it_a_token_is_wanted(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path), token=TOKEN) as client:
        for path in ("/", "/static/app.js", "/api/workspace", "/?token=another", f"/?token={TOKEN[:-1]}", "/?token="):
            answer = client.get(path)
            assert answer.status_code == 401 and TOKEN not in answer.text, path
        assert client.get("/api/workspace").json()["error"]
        page = client.get("/", headers={"accept": "text/html,*/*"})  # as browsers ask for it
        assert page.status_code == 401 and "<h1>" in page.text and 'name="token"' in page.text
        assert client.post("/api/ask", json=PLAN | {"pay": True}).status_code == 401
        assert client.get(f"/api/workspace?token={TOKEN}").status_code == 401  # only the first page takes it
        assert client.get("/api/workspace", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/workspace", headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
        welcome = client.get(f"/?token={TOKEN}", follow_redirects=False)
        assert welcome.status_code == 303 and welcome.headers["location"] == "/"
        cookie = welcome.headers["set-cookie"]
        assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
        assert client.get("/api/workspace").status_code == 200  # the cookie is there now
        assert client.get("/api/workspace", headers={"cookie": f"{COOKIE}=another"}).status_code == 401


def test_on_every_address_of_the_machine_numbers_are_known_but_names_only_if_allowed(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path), any_address=True, hosts=["studio.example"]) as client:

        def status(host: str) -> int:
            return client.get("/api/workspace", headers={"host": host, "origin": f"http://{host}"}).status_code

        assert status(f"10.1.2.3:{PORT}") == status(f"[fd00::1]:{PORT}") == status(f"studio.example:{PORT}") == 200
        assert status("studio.example") == 200  # a proxy has another port
        assert status(f"evil.example:{PORT}") == status(f"10.1.2.3.evil.example:{PORT}") == 421


@pytest.mark.slow
@pytest.mark.parametrize(("host", "needs"), [("127.0.0.1", False), ("localhost", False), ("0.0.0.0", True)])
def test_only_this_machine_needs_no_token(host: str, needs: bool, tmp_path: Path) -> None:
    with serving_studio(tmp_path, "--demo", "--port", "0", "--host", host) as (_, address):
        assert ("?token=" in address) == needs
        page = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
        page.request("GET", "/api/workspace")
        assert page.getresponse().status == (401 if needs else 200)


def test_a_ledgers_password_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up_bank(tmp_path)
    address = "postgresql://me:secret@host/acex"
    setup = workspace_of("loans.csv", "acex_test_bank:decide", ledger=address).setup
    assert "secret" not in setup and "ACEX_LEDGER" in setup
