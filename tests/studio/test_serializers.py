"""What pages are sent about an explanation."""

from __future__ import annotations

from pathlib import Path

from studios import begin, ended, visiting, workspace_in


def test_remarks_are_structured(tmp_path: Path) -> None:
    typed = {"values": {"age": 99, "monthly_income": 1500, "debt": 0.3, "job": "cook"}}  # beyond all known ages
    with visiting(workspace_in(tmp_path)) as client:
        remark, *_ = client.post("/api/plan", json={"row": typed}).json()["remarks"]
        explanation = ended(client, begin(client, typed)["id"])["explanation"]
    assert remark["columns"] == ["age"] and remark["code"] and "99" in remark["text"] and not remark["is_warning"]
    assert remark in explanation["remarks"]


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
