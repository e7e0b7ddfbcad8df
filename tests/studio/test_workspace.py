"""What pages show about the rows and the features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from studios import begin, ended, loans, visiting, workspace_in


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
        rows = loans()
        rich = [i for i in range(40) if rows["monthly_income"][i] > 3000 and rows["job"][i] != "cook"][:25]
        assert set(found(q="monthly income > 3000 job:nurse") + found(q="Monthly_Income>3000 job = clerk")) == set(rich)
        assert found(q='debt <= 0.3 job:"cook"') == [
            i for i in range(40) if rows["debt"][i] <= 0.3 and rows["job"][i] == "cook"
        ]


def test_a_missing_number_meets_no_comparison(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    workspace.table["years"] = pd.array([1, None, 3, *[0] * 37], dtype="Int64")
    assert workspace.matching("years > 0", "") == [0, 2] and workspace.matching("years:missing", "") == [1]


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


def test_rows_are_called_by_their_names(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path, names=[f"C/{i}" for i in range(40)])
    with visiting(workspace) as client:
        assert [line["position"] for line in client.get("/api/rows", params={"q": "c/39"}).json()["lines"]] == [39]
        assert client.get("/api/rows/3").json()["name"] == "C/3"
        identity = begin(client, target=["good"])["id"]
        assert ended(client, identity)["name"] == "C/0"
        report = client.get(f"/api/searches/{identity}/exports/report.html")
        assert client.get("/api/many").json()["lines"][0]["name"] == "C/0"
    assert 'filename="report-row-C-0.html"' in report.headers["content-disposition"] and "C/0" in report.text
