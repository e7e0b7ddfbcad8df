"""Who may ask the studio, and what nobody may: each way in is tried."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from acex.studio.app import studio_app
from acex.studio.guard import COOKIE, MOST_BYTES
from studios import HOME, PORT, Bank, desk_in, visiting

TOKEN = "the-token-that-was-printed"
PLAN = {"row": {"position": 0}}


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
    with visiting(desk_in(tmp_path)) as client:
        for path in ("/", "/static/app.js", "/api/desk"):
            assert client.get(path, headers={"host": host}).status_code == 421
        assert client.post("/api/plan", json=PLAN, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_this_machine_is_known_by_its_names(host: str, tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path)) as client:
        assert client.get("/api/desk", headers={"host": host, "origin": f"http://{host}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"http://localhost.evil:{PORT}", "https://127.0.0.1"]
)
def test_a_page_from_elsewhere_can_neither_ask_nor_spend(origin: str, tmp_path: Path) -> None:
    bank = Bank()
    with visiting(desk_in(tmp_path, bank)) as client:
        assert client.get("/api/desk", headers={"origin": origin}).status_code == 403
        for path in ("/api/searches", "/api/many", "/api/ask"):
            assert client.post(path, json=PLAN | {"pay": True}, headers={"origin": origin}).status_code == 403
    assert bank.asked == []


def test_a_form_of_a_page_from_elsewhere_is_no_json(tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path)) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            response = client.post("/api/plan", content=json.dumps(PLAN), headers={"content-type": kind})
            assert response.status_code == 415


def test_a_script_of_another_site_that_hides_its_origin_is_known_by_the_browser(tmp_path: Path) -> None:
    with TestClient(studio_app(desk_in(tmp_path), port=PORT, here=True), base_url=HOME) as client:
        for site in ("cross-site", "same-site"):
            elsewhere = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
            assert client.get("/api/desk", headers=elsewhere).status_code == 403
            assert client.get("/static/app.js", headers=elsewhere).status_code == 403
            assert client.get("/api/desk", headers=elsewhere | {"sec-fetch-mode": "navigate"}).status_code == 403
            assert client.get("/", headers=elsewhere | {"sec-fetch-mode": "navigate"}).status_code == 200  # a link


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_not_answered(method: str, tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path)) as client:
        assert client.request(method, "/api/desk").status_code == 405


def test_every_answer_forbids_scripts_and_frames_and_being_kept(tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path)) as client:
        answers = [client.get(path) for path in ("/", "/static/style.css", "/api/desk", "/nothing")]
        answers += [client.get("/", headers={"host": "evil.example"}), client.post("/api/plan", json=[])]
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
            assert "frame-ancestors 'none'" in policy and answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in answer.headers


def test_no_script_of_the_page_turns_text_into_markup() -> None:
    folder = Path(__file__).parents[1] / "src/acex/studio/static"
    for path in folder.glob("*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", text), path
        assert not re.findall(r"https?://(?!www\.w3\.org/)", text), path


def test_a_request_has_an_end(tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path)) as client:
        as_json = {"content-type": "application/json"}
        assert client.post("/api/plan", content=b" " * (MOST_BYTES + 1), headers=as_json).status_code == 413

        def endless() -> Any:
            for _ in range(2 + MOST_BYTES // 65536):
                yield b" " * 65536

        assert client.post("/api/plan", content=endless(), headers=as_json).status_code == 413
        assert client.post("/api/plan", content=b"[" * 100_000, headers=as_json).status_code == 422
        assert client.get("/api/rows", params={"q": "x" * 300}).status_code == 422
        assert client.get("/api/rows", params={"page": "9" * 30}).status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/guard.py", "/static//etc/passwd", "/static/%00",
        "/static/..\\app.py", "/etc/passwd", "/api/searches/..%2f..%2fetc%2fpasswd", "/static/",
    ],
)  # fmt: skip
def test_no_file_of_the_machine_can_be_read(path: str, tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path)) as client:
        assert client.get(path).status_code == 404


def test_where_others_can_reach_it_a_token_is_wanted(tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path), token=TOKEN) as client:
        for path in ("/", "/static/app.js", "/api/desk", "/?token=another", f"/?token={TOKEN[:-1]}", "/?token="):
            answer = client.get(path)
            assert answer.status_code == 401 and TOKEN not in answer.text, path
        assert client.post("/api/ask", json=PLAN | {"pay": True}).status_code == 401
        assert client.get(f"/api/desk?token={TOKEN}").status_code == 401  # only the first page takes it
        assert client.get("/api/desk", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/desk", headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
        welcome = client.get(f"/?token={TOKEN}", follow_redirects=False)
        assert welcome.status_code == 303 and welcome.headers["location"] == "/"
        cookie = welcome.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert client.get("/api/desk").status_code == 200  # the cookie is there now
        assert client.get("/api/desk", headers={"cookie": f"{COOKIE}=another"}).status_code == 401


def test_on_every_address_of_the_machine_numbers_are_known_but_names_only_if_allowed(tmp_path: Path) -> None:
    with visiting(desk_in(tmp_path), any_address=True, hosts=["studio.example"]) as client:

        def status(host: str) -> int:
            return client.get("/api/desk", headers={"host": host, "origin": f"http://{host}"}).status_code

        assert status(f"10.1.2.3:{PORT}") == status(f"[fd00::1]:{PORT}") == status(f"studio.example:{PORT}") == 200
        assert status(f"evil.example:{PORT}") == status(f"10.1.2.3.evil.example:{PORT}") == 421


def test_a_ledgers_password_is_never_shown(tmp_path: Path) -> None:
    from acex.cli.studios import OwnModel, Room, _recipe

    room = Room(data=Path("loans.csv"), ledger="postgresql://me:secret@host/acex", model_id="v1")
    recipe = _recipe(room, OwnModel(model="bank.skops"), False)
    assert "secret" not in json.dumps([recipe.python, recipe.shell]) and recipe.environment


@pytest.mark.parametrize(
    "words", [(), ("loans.csv",), ("--model", "m.skops"), ("loans.csv", "--model", "m", "--row", "3")]
)
def test_a_command_that_names_no_model_or_names_a_row_ends_in_one_line(words: tuple[str, ...]) -> None:
    from commands import run

    result = run("studio", *words, "--port", "0")
    assert result.exit_code == 2 and result.stderr.count("\n") == 1
