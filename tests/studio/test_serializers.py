"""What pages are sent about an explanation."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from acex.studio.serializers import page_text
from studios import begin, ended, visiting, workspace_in


def test_remarks_are_structured(tmp_path: Path) -> None:
    typed = {"values": {"age": 99, "monthly_income": 1500, "debt": 0.3, "job": "cook"}}  # beyond all known ages
    with visiting(workspace_in(tmp_path)) as client:
        remark, *_ = client.post("/api/plan", json={"row": typed}).json()["remarks"]
        explanation = ended(client, begin(client, typed)["id"])["explanation"]
    assert remark["columns"] == ["age"] and remark["code"] and "99" in remark["text"] and not remark["is_warning"]
    assert remark in explanation["remarks"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Kept, as in all rows of data: a == b.", "Kept, as in all known rows: a == b."),
        ("age: only values that occur in data are used.", "age: only values that occur in the known rows are used."),
        ("The model raised RuntimeError: out of order", "The model did not answer: out of order"),
        ("ModelFailed: The model raised KeyError: 'x'", "The model did not answer: 'x'"),
    ],
)  # fmt: skip
def test_pages_have_their_own_words_and_no_exceptions(text: str, shown: str) -> None:
    assert page_text(text) == shown


def test_pages_and_reports_have_no_advice_about_python(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        shown = ended(client, begin(client, target=["good"])["id"])
        report = client.get(f"/api/searches/{shown['id']}/exports/report.html").text
    remarks = [remark for remark in shown["explanation"]["remarks"] if remark["code"] == "sensitive"]
    assert remarks and not any("advice" in remark or "freeze" in remark["text"] for remark in remarks)
    assert remarks[0]["text"] in html.unescape(report) and "freeze=" not in report.split("data-certificate")[0]


def test_an_answer_that_holds_close_by_says_how_far_it_does(tmp_path: Path) -> None:
    with visiting(workspace_in(tmp_path)) as client:
        identity = begin(client, target=["good"], budget=20, margin=0.7, max_changes=1)["id"]
        result = ended(client, identity)
        code = client.get(f"/api/searches/{identity}/exports/code").json()
    [answer] = result["explanation"]["answers"]
    assert result["options"]["margin"] == 0.7 and "decided the same" in answer["robust"] and len(answer["changes"]) == 1
    assert "max_changes=1" in code["python"] and "margin=0.7" in code["python"]
    with visiting(workspace_in(tmp_path)) as client:  # after a restart
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 21}).status_code == 200
