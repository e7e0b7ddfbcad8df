"""Searches that pages follow, stop and resume, also after a restart."""

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
from studios import Bank, begin, ended, loans, visiting, workspace_in


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


@pytest.mark.parametrize("options", [{"budget": 40}, {"budget": 9, "count": 2}], ids=["settled", "several answers"])
def test_at_most_ten_more_questions_continue_the_same_search(tmp_path: Path, options: dict[str, int]) -> None:
    bank = Bank()
    with visiting(workspace_in(tmp_path, bank)) as client:
        identity = begin(client, target=["good"], **options)["id"]
        before = ended(client, identity)
        assert before["paid"] <= options["budget"] and not before["extended"]
        budget = before["paid"] + 10
        resumed = client.post(f"/api/searches/{identity}/resume", json={"budget": budget}).json()
        assert (resumed["id"], resumed["budget"], resumed["extended"]) == (identity, budget, True)
        after = ended(client, identity)
    assert before["paid"] < after["paid"] == len(bank.asked) == len(set(bank.asked)) <= budget
    assert after["steps"][: before["n_steps"]] == before["steps"]
    with visiting(workspace_in(tmp_path, bank)) as client:
        again = client.get(f"/api/searches/{identity}").json()
        assert (again["state"], again["budget"], again["paid"]) == ("ended", budget, after["paid"])
        client.post(f"/api/searches/{identity}/resume", json={"budget": after["paid"] + 10})
        assert ended(client, identity)["paid"] <= after["paid"] + 10


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
        beside = client.post("/api/answers", json={"row": {"position": 0}}).json()
    assert [result["id"] for result in beside] == [first, second]
    assert beside[1]["options"]["freeze"] == ["age", "job"]


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


def test_rules_of_the_workspace_hold_in_every_search_and_are_shown(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    limited = replace(workspace, options={**workspace.options, "rules": ["monthly_income <= 200 * age"]})
    with visiting(limited) as client:
        result = begin(client, budget=12)
        done = ended(client, result["id"])
        assert any("200" in rule["text"] and "age" in rule["text"] for rule in done["rules"])
        asked = acex.load_explanation(limited.ledger, result["id"]).trace
    assert (asked["monthly_income"][1:] <= 200 * asked["age"][1:]).all()


def test_known_answers_are_judged_by_the_rules_of_the_page(tmp_path: Path) -> None:
    typed = {"age": "40", "monthly_income": "3999", "debt": "0.1", "job": "cook"}
    with visiting(workspace_in(tmp_path)) as client:
        identity = begin(client, target=["good"])["id"]
        [best, *_] = ended(client, identity)["explanation"]["answers"]
        changed = [change["feature"] for change in best["changes"]]
        client.post("/api/ask", json={"row": {"values": typed}, "pay": True})

        def breaks(tried: tuple[dict[str, str], ...] = (), **options: Any) -> list[list[str]]:
            body = {"row": {"position": 0}, "options": options, "tried": tried}
            return [entry["breaks"] for entry in client.post("/api/answers", json=body).json()]

        assert breaks(target=["good"]) == [[]]
        [[sentence]] = breaks(target=["good"], freeze=changed[:1])
        assert "stays" in sentence
        [[sentence]] = breaks(target=["bad"])
        assert "good" in sentence
        assert breaks(target=["good"], max_changes=len(changed)) == [[]]
        tried = breaks((typed,), target=["good"], ranges={"monthly_income": [None, 3000]})
        assert len(tried) == 2 and any("3000" in sentence for sentence in tried[1])  # a hit that somebody tried
        assert len(breaks(({**typed, "age": "41"},), target=["good"])) == 1  # not asked


def test_a_search_that_has_settled_only_has_to_be_opened(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        identity = begin(client, target=["good"], budget=40)["id"]
        assert ended(client, identity)["explanation"]["stopped_by"] == "settled"
        plan = client.post("/api/plan", json={"row": {"position": 0}, "options": {"target": ["good"], "budget": 40}})
    assert (plan.json()["id"], plan.json()["most"]) == (identity, 0) and plan.json()["paid"] > 0
