"""Explanations of many rows as a table."""

from __future__ import annotations

import time
from pathlib import Path

from studios import Bank, begin, ended, loans, visiting, workspace_in


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


def test_a_row_that_was_searched_twice_is_one_row(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        for freeze in ([], ["age"]):
            ended(client, begin(client, target=["good"], freeze=freeze)["id"])
        ended(client, begin(client, {"position": 1}, target=["good"])["id"])
        many = client.get("/api/many").json()
        every = client.get("/api/many", params={"all": "1", "sort": "paid", "down": "1"}).json()
        named = client.get("/api/many", params={"q": "monthly income = 1500"}).json()
        line, other, *_ = client.get("/api/rows").json()["lines"]
    assert (many["summary"]["rows"], many["total"], many["explanations"], every["total"]) == (2, 2, 3, 3)
    assert many["summary"]["found"] == len({line["position"] for line in every["lines"] if line["outcome"] == "found"})
    paid = [line["paid"] for line in every["lines"]]
    assert paid == sorted(paid, reverse=True) and sum(paid) == many["summary"]["paid"]
    assert [line["position"] for line in named["lines"]] == [0]
    assert (line["known"]["times"], line["known"]["outcome"], other["known"]["times"]) == (2, "found", 1)


def test_an_explanation_that_has_not_ended_is_unfinished(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    list(workspace.explainer.explain_many(loans().iloc[[1]], target="good", budget=5, n_jobs=1))
    steps = iter(workspace.explainer.search(loans().iloc[0], target="good", budget=5, freeze=["monthly_income"]))
    next(steps), next(steps)
    with visiting(workspace) as client:
        assert client.get("/api/many").json()["total"] == 2
        [line] = client.get("/api/many", params={"outcome": "unfinished"}).json()["lines"]
    assert line["position"] == 0
