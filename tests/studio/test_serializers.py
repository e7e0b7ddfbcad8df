"""What pages are sent about an explanation."""

from __future__ import annotations

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
        ('sex looks sensitive and may change. To freeze it: freeze=["sex"] (in the shell --freeze sex).',
         "sex looks sensitive and may change. Lock what has to stay."),
        ("Kept, as in all rows of data: a == b. Space.infer(data, relations=False) turns this off.",
         "Kept, as in all known rows: a == b."),
        ("age: only values that occur in data are used. Space.infer(data, grid={'age': None}) frees a column.",
         "age: only values that occur in the known rows are used."),
        ("The model raised RuntimeError: out of order", "The model did not answer: out of order"),
        ("ModelFailed: The model raised KeyError: 'x'", "The model did not answer: 'x'"),
    ],
)  # fmt: skip
def test_pages_have_no_exceptions_and_no_advice_about_python(text: str, shown: str) -> None:
    assert page_text(text) == shown


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
