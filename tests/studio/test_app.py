"""Every address of the studio, without a browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import acex
from studios import Bank, begin, ended, loans, visiting, workspace_in


def test_the_page_and_its_files_are_served(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        page = client.get("/").text
        for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
            assert client.get(name).status_code == 200, name
        for name in re.findall(r'from "\./(\w+\.js)"', client.get("/static/app.js").text):
            assert "text/javascript" in client.get(f"/static/{name}").headers["content-type"]
        assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|style=|https?://", page)


def test_to_look_at_everything_asks_nothing(tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        client.get("/api/workspace"), client.get("/api/rows"), client.get("/api/rows/3"), client.get("/api/many")
        client.post("/api/plan", json={"row": {"position": 0}, "options": {"budget": 5}})
        client.post("/api/ask", json={"row": {"position": 0}})
    assert bank.asked == []


def test_a_plan_says_what_it_costs_before_anything_is_asked(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path, price=0.25)) as client:
        options = {"budget": 6, "freeze": ["age"], "directions": {"monthly_income": "increase"}, "weights": {"debt": 3}}
        options |= {"values": {"job": ["clerk", "cook"]}, "ranges": {"debt": [None, 0.4]}}
        plan = client.post("/api/plan", json={"row": {"position": 0}, "options": options}).json()
        assert client.get("/api/workspace").json()["price"] == 0.25
    age = loans()["age"][0]
    assert (plan["most"], plan["decision"]) == (6, None)
    rules = {rule["text"]: (rule["option"], rule["column"]) for rule in plan["rules"]}
    assert rules[f"Age stays {age}."] == ("freeze", "age")
    assert rules["Monthly income may only rise."] == ("directions", "monthly_income")
    assert rules["Job may become clerk or cook, nothing else."] == ("values", "job")


def test_a_what_if_row_is_asked_only_when_it_is_paid_and_free_from_then_on(tmp_path: Path) -> None:
    bank = Bank()
    values = {"age": "40", "monthly_income": "3999", "debt": "0.1", "job": "cook"}
    with visiting(workspace_in(tmp_path, bank, price=2.0)) as client:
        look = client.post("/api/ask", json={"row": {"values": values}}).json()
        assert (look["known"], look["label"], look["price"], bank.asked) == (False, None, 2.0, [])
        paid = client.post("/api/ask", json={"row": {"values": values}, "pay": True}).json()
        assert (paid["label"], paid["paid"], len(bank.asked)) == ("good", 1, 1)
        again = client.post("/api/ask", json={"row": {"values": values}, "pay": True}).json()
        assert (again["label"], again["paid"], len(bank.asked)) == ("good", 0, 1)
        assert client.get("/api/many").json()["lines"] == []  # to look a row up is no explanation


def test_what_if_names_values_outside_the_data_and_gives_the_number_that_is_wanted(tmp_path: Path) -> None:
    class Sure(Bank):
        classes_ = ("bad", "good")

        def predict_proba(self, rows: Any) -> Any:
            return [[1 - min(income / 4000, 1), min(income / 4000, 1)] for income in rows["monthly_income"]]

    values = {"age": "99", "monthly_income": "3000", "debt": "0.1", "job": "cook"}
    body = {"row": {"values": values}, "options": {"target": {"at_least": 0.9, "label": "good"}}, "pay": True}
    with visiting(workspace_in(tmp_path, acex.Model(Sure(), name="bank", scores=True))) as client:
        answer = client.post("/api/ask", json=body).json()
    assert (answer["label"], answer["number"], answer["outside"]) == ("good", 0.75, ["age"])


@pytest.mark.parametrize("value", ["", "many", "nan", "inf", None, [], "2.5"])
def test_an_invalid_what_if_row_is_refused(value: Any, tmp_path: Path) -> None:
    bank = Bank()
    values = {"age": value, "monthly_income": "3999", "debt": "0.1", "job": "cook"}
    with visiting(workspace_in(tmp_path, bank)) as client:
        response = client.post("/api/ask", json={"row": {"values": values}, "pay": True})
    assert response.status_code == 422 and "age" in response.json()["error"] and bank.asked == []


def test_what_is_taken_along_is_the_explanation(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path, price=0.5)) as client:
        identity = begin(client, target=["good"])["id"]
        ended(client, identity)

        def take(what: str) -> Any:
            response = client.get(f"/api/searches/{identity}/exports/{what}")
            assert response.status_code == 200, response.text
            return response

        report = take("report.html")
        assert "sandbox" in report.headers["content-security-policy"] and "at 0.5 each: 4" in report.text
        answers = take("counterfactuals.csv")
        assert answers.text.splitlines()[0].startswith("age,monthly_income")
        assert "attachment" in answers.headers["content-disposition"]
        assert len(take("queries.csv").text.splitlines()) == 9
        assert acex.Explanation.from_json(take("explanation.json").text).outcome == "found"
        assert client.get(f"/api/searches/{identity}/exports/passwd").status_code == 404


def test_a_notice_has_the_fields_that_a_person_entered(tmp_path: Path) -> None:
    names = [
        "organisation",
        "date",
        "subject",
        "reference",
        "system",
        "role",
        "sources",
        "correct",
        "human",
        "keep_until",
        "contact",
    ]
    with visiting(workspace_in(tmp_path)) as client:
        identity = begin(client, target=["good"])["id"]
        ended(client, identity)
        path = f"/api/searches/{identity}/exports/notice.html"
        notice = client.get(path, params={name: f"<{name}> 7" for name in names})
        assert client.get(path).status_code == 422
    assert notice.status_code == 200 and "&lt;reference&gt; 7" in notice.text and "monthly income" in notice.text
    assert "sandbox" in notice.headers["content-security-policy"]


@pytest.mark.parametrize("body", [{}, {"rows": {"most": 0}}, {"rows": {"most": 2}, "budget_total": 0}, {"rows": []}])
def test_an_invalid_batch_is_refused(body: Any, tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        assert client.post("/api/many", json=body).status_code == 422


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        for path in ("/nothing", "/api/rows/40", f"/api/searches/{'0' * 32}", "/api/searches/..", "/static/none.js"):
            assert client.get(path).status_code == 404, path
