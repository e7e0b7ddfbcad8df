"""Every address of the studio, without a browser."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acex
from acex.studio.demo import PYTHON as DEMO_PYTHON
from acex.studio.demo import demo_workspace
from commands import set_up as set_up_bank
from studios import Bank, begin, ended, loans, same_elsewhere, visiting, workspace_in, workspace_of


def test_the_page_and_its_files_are_served(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        page = client.get("/").text
        for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', page):
            assert client.get(name).status_code == 200, name
        for name in re.findall(r'from "\./(\w+\.js)"', client.get("/static/app.js").text):
            assert "text/javascript" in client.get(f"/static/{name}").headers["content-type"]
        assert not re.findall(r"<script(?![^>]*src=)|\son\w+=|style=|https?://", page)


def test_the_workspace_describes_each_feature_and_its_known_values(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        about = client.get("/api/workspace").json()
    age, income, _, job = about["features"]
    assert (about["model"], about["labels"]) == ("bank", ["bad", "good"])
    assert income["title"] == "monthly income" and sum(age["bars"]) == 40
    assert job["categories"] == ["clerk", "cook", "nurse"] and sum(job["bars"]) == 40


def test_rows_are_found_by_any_column_and_by_decision(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:

        def found(**body: Any) -> list[int]:
            return [line["position"] for line in client.get("/api/rows", params=body).json()["lines"]]

        assert len(found()) == 25 and len(found(page=1)) == 15
        assert found(q="CASE-39") == [39]
        assert found(q="job:cook") == [i for i, job in enumerate(loans()["job"]) if job == "cook"][:25]
        bad = found(decision="bad", q="job:cook")
        assert bad and all(loans()["monthly_income"][i] <= 2200 for i in bad)
        assert found(q="no such thing") == []


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
    age = loans()["age"][0]
    assert (plan["most"], plan["money"], plan["decision"]) == (6, 1.5, None)
    assert f"Age stays {age}." in plan["rules"] and "Monthly income may only rise." in plan["rules"]
    assert "Job may become clerk or cook, nothing else." in plan["rules"]


def test_remarks_are_structured(tmp_path: Path) -> None:
    typed = {"values": {"age": 99, "monthly_income": 1500, "debt": 0.3, "job": "cook"}}  # beyond all known ages
    with visiting(workspace_in(tmp_path)) as client:
        remark, *_ = client.post("/api/plan", json={"row": typed}).json()["remarks"]
        explanation = ended(client, begin(client, typed)["id"])["explanation"]
    assert remark["columns"] == ["age"] and remark["code"] and "99" in remark["text"] and not remark["is_warning"]
    assert remark in explanation["remarks"]


def test_a_search_is_followed_step_by_step(tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        identity = begin(client, target=["good"])["id"]
        result = ended(client, identity)
        stream = client.get(f"/api/searches/{identity}/events").text
        later = client.get(f"/api/searches/{identity}/events", headers={"last-event-id": "5"}).text
    assert result["state"] == "ended" and result["paid"] == len(bank.asked) == 8
    best = result["explanation"]["answers"][0]
    assert best["label"] == "good" and "monthly income" in best["sentence"]
    assert [step["position"] for step in result["steps"]] == list(range(8))
    assert re.findall(r"^id: (\d+)$", stream, flags=re.M) == [str(i) for i in range(8)]
    assert re.findall(r"^id: (\d+)$", later, flags=re.M) == ["6", "7"]
    assert json.loads(re.findall(r"^event: state\ndata: (.*)$", stream, flags=re.M)[-1])["state"] == "ended"


def test_the_studio_finds_what_the_library_finds(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        result = ended(client, begin(client, target=["good"])["id"])
    e = acex.explain(acex.Model(Bank(), name="bank"), loans().iloc[0], loans(), target="good", budget=8)
    assert result["explanation"]["answers"][0]["cost"] == pytest.approx(e.costs[0])


def test_ten_more_questions_go_on_where_it_ended(tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        identity = begin(client, target=["good"], budget=4)["id"]
        ended(client, identity)
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 9}).status_code == 200
        result = ended(client, identity)
    assert result["paid"] == len(bank.asked) == len(set(bank.asked)) == 9 and result["budget"] == 9


def test_of_several_answers_more_questions_make_another_search_with_what_is_known_for_free(tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        first = begin(client, target=["good"], budget=8, count=2)["id"]
        ended(client, first)
        second = client.post(f"/api/searches/{first}/resume", json={"budget": 14}).json()["id"]
        assert second != first and ended(client, second)["state"] == "ended"
    assert len(bank.asked) == len(set(bank.asked)) <= 22


def test_a_search_stops_and_resumes_without_paying_twice(tmp_path: Path) -> None:
    bank = Bank(pause=0.03)
    with visiting(workspace_in(tmp_path, bank)) as client:
        identity = begin(client, target=["good"], budget=20)["id"]
        while not bank.asked:
            time.sleep(0.01)
        assert client.post(f"/api/searches/{identity}/stop", json={}).json()["state"] in ("stopping", "stopped")
        result = ended(client, identity)
        assert result["state"] == "stopped" and 0 < result["paid"] < 20
        client.post(f"/api/searches/{identity}/resume", json={"budget": 10})
        assert ended(client, identity)["paid"] == len(bank.asked) == len(set(bank.asked))


def test_equal_options_at_the_same_time_are_one_search(tmp_path: Path) -> None:
    bank = Bank(pause=0.02)
    with visiting(workspace_in(tmp_path, bank)) as client:
        first, second = (begin(client, target=["good"])["id"] for _ in range(2))
        assert first == second
        ended(client, first)
    assert len(bank.asked) == len(set(bank.asked))


def test_a_restarted_studio_reads_its_searches_from_the_ledger(tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        options = {"target": ["good"], "budget": 5, "freeze": ["age"], "ranges": {"monthly_income": [1000, 3000]}}
        options |= {"directions": {"debt": "decrease"}, "weights": {"job": 3}}
        identity = begin(client, **options)["id"]
        before = ended(client, identity)
    with visiting(workspace_in(tmp_path, bank)) as client:
        after = client.get(f"/api/searches/{identity}").json()
        assert (after["state"], after["explanation"]) == ("ended", before["explanation"])
        assert [s["changes"] for s in after["steps"]] == [s["changes"] for s in before["steps"]]
        client.post(f"/api/searches/{identity}/resume", json={"budget": 7})
        assert ended(client, identity)["paid"] == len(bank.asked) == len(set(bank.asked)) == 7


def test_what_was_interrupted_says_so_and_goes_on(tmp_path: Path) -> None:
    bank = Bank()
    workspace = workspace_in(tmp_path, bank)
    session = workspace.explainer.search(loans().iloc[[0]], target=["good"], budget=8)
    for _ in zip(range(3), session, strict=False):
        pass
    with visiting(workspace_in(tmp_path, bank)) as client:
        result = client.get(f"/api/searches/{session.identity}").json()
        assert (result["state"], result["paid"], result["n_steps"]) == ("interrupted", 3, 3)
        stream = client.get(f"/api/searches/{session.identity}/events").text
        assert '"state": "interrupted"' in stream
        client.post(f"/api/searches/{session.identity}/resume", json={"budget": 8})
        assert ended(client, session.identity)["paid"] == len(bank.asked) == 8


def test_what_was_made_with_other_settings_is_shown_but_not_gone_on_with(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    e = workspace.explainer.explain(loans().iloc[[0]], target=["good"], budget=5, rules=[lambda rows: rows["age"] > 0])
    with visiting(workspace) as client:
        assert client.get(f"/api/searches/{e.plan.identity}").json()["state"] == "ended"
        response = client.post(f"/api/searches/{e.plan.identity}/resume", json={"budget": 9})
        assert response.status_code == 422 and "settings" in response.json()["error"]


def test_answers_of_several_searches_of_a_row_stand_side_by_side(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        first = begin(client, target=["good"])["id"]
        ended(client, first)
        second = begin(client, target=["good"], freeze=["job", "age"])["id"]
        ended(client, second)
        other = begin(client, {"position": 1})["id"]
        ended(client, other)
        beside = client.get(f"/api/searches/{first}/answers").json()
    assert [result["id"] for result in beside] == [first, second]
    assert beside[1]["options"]["freeze"] == ["age", "job"]


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


@pytest.mark.parametrize("value", ["", "many", "nan", "inf", None, [], "2.5"])
def test_an_invalid_what_if_row_is_refused(value: Any, tmp_path: Path) -> None:
    bank = Bank()
    values = {"age": value, "monthly_income": "3999", "debt": "0.1", "job": "cook"}
    with visiting(workspace_in(tmp_path, bank)) as client:
        response = client.post("/api/ask", json={"row": {"values": values}, "pay": True})
    assert response.status_code == 422 and "age" in response.json()["error"] and bank.asked == []


def test_the_budget_of_the_model_holds_across_searches(tmp_path: Path) -> None:
    bank = Bank()
    workspace = workspace_in(tmp_path, bank)
    workspace.ledger.budget("bank", rows=12)
    with visiting(workspace) as client:
        begun = [begin(client, {"position": i}, target=["good"], budget=8)["id"] for i in (0, 1, 2, 4)]
        result = [ended(client, identity) for identity in begun]
        assert client.get("/api/workspace").json()["remaining"] == 0
        plan = client.post("/api/plan", json={"row": {"position": 7}}).json()
    assert len(bank.asked) == 12 and plan["most"] == 0
    assert any("budget" in t["error"].lower() or t["state"] == "ended" for t in result)


def test_a_failing_model_is_reported_and_the_search_can_resume(tmp_path: Path) -> None:
    class Moody(Bank):
        is_broken = True

        def predict(self, rows: pd.DataFrame) -> list[str]:
            if self.is_broken and len(self.asked) >= 3:
                raise RuntimeError("out of order")
            return super().predict(rows)

    bank = Moody()
    with visiting(workspace_in(tmp_path, bank)) as client:
        identity = begin(client, target=["good"])["id"]
        result = ended(client, identity)
        assert result["state"] == "failed" and "out of order" in result["error"] and result["n_steps"] == 3
        bank.is_broken = False
        client.post(f"/api/searches/{identity}/resume", json={"budget": 8})
        assert ended(client, identity)["state"] == "ended"


def test_what_is_taken_along_is_the_explanation(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path, price=0.5)) as client:
        identity = begin(client, target=["good"])["id"]
        result = ended(client, identity)

        def take(what: str) -> Any:
            response = client.get(f"/api/searches/{identity}/exports/{what}")
            assert response.status_code == 200, response.text
            return response

        report = take("report.html")
        assert "sandbox" in report.headers["content-security-policy"] and "at 0.5 each: 4" in report.text
        letter = take("letter.txt").text
        assert result["explanation"]["answers"][0]["sentences"][0] in letter and "promise" in letter
        answers = take("answers.csv")
        assert answers.text.splitlines()[0].startswith("acex_row,acex_label,acex_cost,age")
        assert "attachment" in answers.headers["content-disposition"]
        assert len(take("steps.csv").text.splitlines()) == 9
        assert acex.Explanation.from_json(take("explanation.json").text).outcome == "found"
        assert client.get(f"/api/searches/{identity}/exports/passwd").status_code == 404


def test_the_commands_to_take_along_give_the_same_explanation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    set_up_bank(tmp_path)
    given: dict[str, Any] = {"outcomes": "outcome", "drop": ["id"], "budget": 6, "seed": 3}
    workspace = workspace_of("loans.csv", "acex_test_bank:decide", **given)
    options: dict[str, Any] = {"target": ["good"], "freeze": ["age"], "ranges": {"income": [None, 3500]}}
    options |= {"values": {"job": ["clerk", "cook"]}, "weights": {"debt": 3}, "directions": {"income": "increase"}}
    typed = {"age": 30, "income": 900, "debt": 0.25, "job": "cook"}
    with visiting(workspace) as client:
        for row in ({"position": 0}, {"values": typed}):
            identity = begin(client, row, **options)["id"]
            ended(client, identity)
            same_elsewhere(client, identity)


def test_an_answer_that_holds_close_by_says_how_far_it_does(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        identity = begin(client, target=["good"], budget=20, margin=0.7, max_changes=1)["id"]
        result = ended(client, identity)
        commands = client.get(f"/api/searches/{identity}/exports/commands").json()
    [answer] = result["explanation"]["answers"]
    assert result["options"]["margin"] == 0.7 and answer["robustness"] > 0.5 and len(answer["changes"]) == 1
    assert "--max-changes 1 --margin 0.7" in commands["shell"] and "margin=0.7" in commands["python"]
    with visiting(workspace_in(tmp_path)) as client:  # after a restart
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 21}).status_code == 200


def test_many_rows_become_a_table_with_groups(tmp_path: Path) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        body = {"rows": {"decision": "bad", "most": 3}, "options": {"target": ["good"], "budget": 6}}
        assert client.post("/api/many", json=body | {"budget_total": 15}).json()["total"] == 3
        for _ in range(500):
            result = client.get("/api/many", params={"by": "job"}).json()
            if not result["batch"]["live"]:
                break
            time.sleep(0.02)
    assert result["batch"]["done"] == 3 and result["batch"]["paid"] == len(bank.asked) <= 15
    assert {line["position"] for line in result["lines"]} <= set(range(40)) and len(result["lines"]) == 3
    assert all(line["outcome"] == "found" and line["changes"] for line in result["lines"])
    assert sum(group["rows"] for group in result["groups"]) == 3
    assert result["summary"]["found"] == 3 and result["summary"]["paid"] == len(bank.asked)


def test_what_a_shell_has_explained_is_in_the_table_too(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    list(workspace.explainer.explain_many(loans().iloc[:2], target="good", budget=5, n_jobs=1))
    with visiting(workspace) as client:
        lines = client.get("/api/many", params={"by": "monthly_income"}).json()["lines"]
        assert sorted(line["position"] for line in lines) == [0, 1]
        assert client.get(f"/api/searches/{lines[0]['id']}").json()["state"] == "ended"


@pytest.mark.parametrize("body", [{}, {"rows": {"most": 0}}, {"rows": {"most": 2}, "budget_total": 0}, {"rows": []}])
def test_an_invalid_batch_is_refused(body: Any, tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        assert client.post("/api/many", json=body).status_code == 422


def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        for path in ("/nothing", "/api/rows/40", f"/api/searches/{'0' * 32}", "/api/searches/..", "/static/none.js"):
            assert client.get(path).status_code == 404, path


def test_names_and_values_of_others_come_back_as_they_are_and_only_as_json(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    rows = loans().rename(columns={"job": evil, "age": "</script>"})
    rows[evil] = [evil if job == "cook" else job for job in rows[evil]]
    with visiting(workspace_in(tmp_path, rows=rows)) as client:
        about = client.get("/api/workspace")
        assert about.headers["content-type"] == "application/json"
        assert evil in about.json()["features"][3]["categories"] and about.json()["features"][3]["name"] == evil
        identity = begin(client, target=["good"])["id"]
        ended(client, identity)
        assert evil not in client.get(f"/api/searches/{identity}/exports/report.html").text


def test_the_demonstration_needs_nothing(tmp_path: Path) -> None:
    workspace = demo_workspace(acex.Ledger(tmp_path / "demo.db"))
    with visiting(workspace) as client:
        identity = begin(client, {"position": 17}, budget=4)["id"]
        result = ended(client, identity)
        commands = client.get(f"/api/searches/{identity}/exports/commands").json()
    assert result["state"] == "ended" and result["explanation"]["before"] == "rejected"
    assert commands["shell"] is None and commands["why_not"] and commands["python"].startswith(DEMO_PYTHON)


def test_rules_of_the_workspace_hold_in_every_search_and_are_shown(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    limited = replace(workspace, options={**workspace.options, "rules": ["monthly_income <= 200 * age"]})
    with visiting(limited) as client:
        result = begin(client, budget=12)
        done = ended(client, result["id"])
        assert any("200" in rule and "age" in rule for rule in done["rules"])
        asked = acex.load_explanation(limited.ledger, result["id"]).trace
    assert (asked["monthly_income"][1:] <= 200 * asked["age"][1:]).all()
