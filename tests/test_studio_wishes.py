"""What can be wished for in the studio beyond labels and numbers that change: names of labels, numbers, dates, gaps."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.studio.workspace import Desk
from commands import run
from studios import desk_in, ended, loans, visiting
from test_studio import begin

FLATS = """
import pandas as pd
from sklearn.base import BaseEstimator, RegressorMixin
class Agent(RegressorMixin, BaseEstimator):
    def predict(self, rows):
        days = (pd.to_datetime(rows["built"]) - pd.Timestamp("1990-01-01")).dt.days
        return (10.0 * rows["size"] + days / 100).tolist()
agent = Agent()
def lends(rows):
    return [int(size > 60) for size in rows["size"]]
"""


def flats(n: int = 30) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    days = pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D")
    table = pd.DataFrame({"size": rng.integers(20, 120, n), "built": days.strftime("%Y-%m-%d")})
    table.loc[0, "size"] = 40
    return table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with flats.csv and models that value them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acex_test_flats.py").write_text(FLATS, encoding="utf-8")
    flats().to_csv("flats.csv", index=False)
    return tmp_path


def desk_of(model: str, **options: Any) -> Desk:
    """The desk that `acex studio flats.csv` has."""
    from acex.cli.studios import OwnModel, Room, _desk

    scores = options.pop("scores", False)
    room = Room(data=Path("flats.csv"), ledger="l.db", model_id="v1", **{"budget": 8, **options})
    return _desk(room, OwnModel(model=f"acex_test_flats:{model}"), acex.Ledger("l.db"), scores=scores, price=None)


def same_elsewhere(client: Any, identity: str) -> None:
    """The commands to take along lead to the same explanation."""
    told = client.get(f"/api/searches/{identity}/take/commands").json()
    *before, words = told["shell"].splitlines()
    for line in before:
        written = shlex.split(line)
        Path(written[-1]).write_text(written[2], encoding="utf-8")
    result = run(*shlex.split(words)[1:], "--dry-run", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["explanation"] == identity
    names: dict[str, Any] = {}
    exec(told["python"].replace("print(e)", ""), names)
    assert names["e"].plan.identity == identity and names["e"].n_queries == 0


def test_labels_are_called_by_their_names_everywhere(folder: Path) -> None:
    table = flats().assign(outcome=["lent" if size > 60 else "refused" for size in flats()["size"]])
    table.to_csv("flats.csv", index=False)
    desk = desk_of("lends", labels="outcome", class_name=["0=refused", "1=lent"])
    with visiting(desk) as client:
        about = client.get("/api/desk").json()
        assert sorted(about["labels"]) == ["lent", "refused"] and about["answers"] == "labels"
        assert client.get("/api/rows/0").json()["decision"] == {"label": "refused", "source": "file"}
        identity = begin(client, target=["lent"])["id"]
        told = ended(client, identity)
        assert {step["label"] for step in told["steps"]} == {"lent", "refused"}
        assert (told["told"]["before"], told["wanted"], told["wishes"]["target"]) == ("refused", ["lent"], ["lent"])
        assert told["told"]["answers"][0]["label"] == "lent" and told["told"]["sentence"].startswith("Lent if")
        assert client.get("/api/rows/0").json()["decision"] == {"label": "refused", "source": "model"}
        assert {"position": 0}.items() <= client.get("/api/rows?decision=refused").json()["lines"][0].items()
        [line] = client.get("/api/many").json()["lines"]
        assert (line["before"], line["after"]) == ("refused", "lent")
        ask = {"row": {"values": {"size": "100", "built": "1999-01-01"}}, "pay": True}
        assert client.post("/api/ask", json=ask).json()["label"] == "lent"
        same_elsewhere(client, identity)
    with visiting(desk_of("lends", labels="outcome", class_name=["0=refused", "1=lent"])) as client:
        assert client.get(f"/api/searches/{identity}").json()["wishes"]["target"] == ["lent"]
        assert client.post(f"/api/searches/{identity}/go", json={"budget": 9}).status_code == 200


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"at_least": 600}, "at least 600"),
        ({"between": [600, 700]}, "600 to 700"),
        ({"at_most": 300.5}, "at most 300.5"),
        ({"relative": 0.25}, "at least 25 % more than now"),
        ({"relative": -0.2}, "at least 20 % less than now"),
    ],
)
def test_of_a_model_that_gives_numbers_a_number_is_wanted(folder: Path, target: Any, words: str) -> None:
    with visiting(desk_of("agent")) as client:
        about = client.get("/api/desk").json()
        assert about["answers"] == "numbers" and about["labels"] == [] and about["wishes"]["target"] == []
        refused = client.post("/api/plan", json={"row": {"position": 0}, "wishes": {"target": []}})
        assert refused.status_code == 422 and "which number" in refused.json()["error"]
        identity = begin(client, target=target)["id"]
        told = ended(client, identity)
        assert told["state"] == "ended" and told["wanted"] == [words] and told["wishes"]["target"] == target
        assert told["told"]["answers"], told["told"]["sentence"]
        same_elsewhere(client, identity)
    with visiting(desk_of("agent")) as client:
        assert client.post(f"/api/searches/{identity}/go", json={"budget": 9}).status_code == 200


@pytest.mark.parametrize("target", [{"at_least": "many"}, {"between": [3]}, {"about": 3}, {}, "high", {"relative": 0}])
def test_a_number_that_is_none_is_refused_in_a_sentence(folder: Path, target: Any) -> None:
    with visiting(desk_of("agent")) as client:
        response = client.post("/api/searches", json={"row": {"position": 0}, "wishes": {"target": target}})
    assert response.status_code == 422 and response.json()["error"]


def test_the_number_of_a_row_of_ones_own_is_asked_for_and_many_rows_have_numbers(folder: Path) -> None:
    with visiting(desk_of("agent", target_range="600..")) as client:
        assert client.get("/api/desk").json()["wishes"]["target"] == {"at_least": 600}
        ask = {"row": {"values": {"size": "50", "built": "1990-01-01"}}, "pay": True}
        assert client.post("/api/ask", json=ask).json()["label"] == "500.0"
        said = {"rows": {"most": 2}, "wishes": {"target": {"at_least": 900}, "budget": 5}}
        assert client.post("/api/many", json=said).status_code == 200
        while (told := client.get("/api/many").json())["batch"]["live"]:
            pass
        assert told["batch"]["done"] == 2 and all(float(line["before"]) for line in told["lines"])


def test_a_probability_can_be_wanted_where_the_model_gives_them(tmp_path: Path) -> None:
    class Scorer:
        classes_ = ("bad", "good")

        def predict_proba(self, rows: pd.DataFrame) -> Any:
            p = (rows.iloc[:, 1] / 5000).clip(0, 1).to_numpy(dtype=float)
            return np.stack([1 - p, p], axis=1)

        def predict(self, rows: pd.DataFrame) -> Any:
            return np.array(self.classes_)[self.predict_proba(rows).argmax(axis=1)]

    explainer = acex.Explainer(acex.Model(Scorer(), name="s", scores=True), loans(), ledger=tmp_path / "l.db")
    desk = desk_in(tmp_path, explainer=explainer, scores=True)
    with visiting(desk) as client:
        assert client.get("/api/desk").json()["scores"]
        told = ended(client, begin(client, target={"at_least": 0.6, "label": "good"}, budget=15)["id"])
        commands = client.get(f"/api/searches/{told['id']}/take/commands").json()
    assert told["wanted"] == ["good with a probability of at least 0.6"] and told["told"]["outcome"] == "found"
    assert "--target good --target-range 0.6.." in commands["shell"] and "acex.AtLeast(" in commands["python"]


def test_dates_are_typed_in_limited_and_taken_along(folder: Path) -> None:
    with visiting(desk_of("agent", target_range="600..")) as client:
        card = client.get("/api/desk").json()["features"][1]
        assert card["kind"] == "moment" and card["places"] == sorted(set(card["places"])) and sum(card["bars"]) == 30
        assert card["low"] == flats()["built"].min() and card["high"] == flats()["built"].max()
        wishes = {"freeze": ["size"], "ranges": {"built": ["1995-05-01", None]}, "target": {"relative": 0.05}}
        typed = {"values": {"size": 40, "built": "1993-01-01"}}
        plan = client.post("/api/plan", json={"row": typed, "wishes": wishes}).json()
        assert any("1995-05-01" in rule for rule in plan["rules"]), plan
        identity = begin(client, typed, **wishes)["id"]
        told = ended(client, identity)
        assert told["state"] == "ended" and told["row"] == {"size": "40", "built": "1993-01-01"}
        assert all(step["changes"][0][2] >= "1995-05-01" for step in told["steps"][1:])
        same_elsewhere(client, identity)
        known = begin(client, {"position": 3}, target={"relative": 0.1})["id"]
        assert ended(client, known)["position"] == 3
        assert {line["position"] for line in client.get("/api/many?by=built").json()["lines"]} == {3, None}
        for wrong in ("yesterday", "", "1993-13-01", None, 7):
            values = {"size": 40, "built": wrong}
            assert client.post("/api/plan", json={"row": {"values": values}}).status_code == 422
    with visiting(desk_of("agent", target_range="600..")) as client:
        assert client.get(f"/api/searches/{identity}").json()["wishes"]["ranges"] == {"built": ["1995-05-01", None]}
        assert client.post(f"/api/searches/{identity}/go", json={"budget": 9}).status_code == 200


def test_margin_and_effort_are_as_the_studio_was_told_until_the_page_says_otherwise(folder: Path) -> None:
    def desk() -> Desk:
        return desk_of("agent", target_range="600..", margin=0.9, effort="spend", max_changes=6, count=1)

    with visiting(desk()) as client:
        said = client.get("/api/desk").json()
        assert said["margin"] == 0.9
        assert {"margin": 0.9, "effort": "spend", "max_changes": 6}.items() <= said["wishes"].items()
        as_told, other = begin(client, budget=4)["id"], begin(client, budget=4, margin=None, effort="settle")["id"]
        assert as_told != other
        for identity in (as_told, other):
            ended(client, identity)
            same_elsewhere(client, identity)
    with visiting(desk()) as client:
        for identity, margin, effort in ((as_told, 0.9, "spend"), (other, None, "settle")):
            wishes = client.get(f"/api/searches/{identity}").json()["wishes"]
            assert (wishes["margin"], wishes["effort"]) == (margin, effort)
            assert client.post(f"/api/searches/{identity}/go", json={"budget": 5}).status_code == 200


@pytest.mark.parametrize("wish", [{"margin": 2}, {"margin": "much"}, {"effort": "none"}, {"max_changes": 0}])
def test_wishes_that_are_none_are_refused(folder: Path, wish: Any) -> None:
    with visiting(desk_of("agent", target_range="600..")) as client:
        assert client.post("/api/plan", json={"row": {"position": 0}, "wishes": wish}).status_code == 422


def test_rows_with_gaps_are_shown_and_say_what_is_wrong_with_them(folder: Path) -> None:
    table = flats().astype({"size": float})
    table.loc[2, "size"] = np.nan
    table.loc[3, "built"] = None
    table.to_csv("flats.csv", index=False)
    with visiting(desk_of("agent", target_range="600..")) as client:
        assert client.get("/api/rows").json()["total"] == 30
        for position, name in ((2, "size"), (3, "built")):
            assert client.get(f"/api/rows/{position}").json()["values"][name] == ""
            response = client.post("/api/plan", json={"row": {"position": position}})
            assert response.status_code == 422 and name in response.json()["error"]
        assert ended(client, begin(client)["id"])["state"] == "ended"


def test_where_a_model_takes_gaps_a_row_may_have_some(folder: Path) -> None:
    table = flats().astype({"size": float})
    table.loc[[2, 5], "size"] = np.nan
    table.to_csv("flats.csv", index=False)
    with visiting(desk_of("lends", missing="keep", range=["size=missing"])) as client:
        about = client.get("/api/desk").json()
        card = about["features"][0]
        assert card["gaps"] and sum(card["bars"]) == 28 and card["low"] >= 20
        assert about["wishes"]["ranges"] == {}  # a page has no words for it, and it holds
        typed = {"values": {"size": "", "built": "1999-01-01"}}
        plan = client.post("/api/plan", json={"row": typed, "wishes": {"ranges": {}}}).json()
        assert plan["rules"] == ["Size may become missing, nothing else."]
        for row in ({"position": 0}, {"position": 2}, typed):
            identity = begin(client, row, target=[], ranges={})["id"]
            told = ended(client, identity)
            assert told["state"] == "ended" and told["position"] == row.get("position"), told["error"]
            assert all(before != after for step in told["steps"] for _, before, after in step["changes"])
            same_elsewhere(client, identity)
        groups = client.get("/api/many?by=size").json()["groups"]
    assert sum(group["rows"] for group in groups) == 3
    with visiting(desk_of("lends", missing="keep", range=["size=missing"])) as client:
        assert client.get(f"/api/searches/{identity}").status_code == 200


def test_a_row_without_an_outcome_keeps_its_place(folder: Path) -> None:
    table = flats()
    table["outcome"] = [None if i in (1, 4) else str(int(size > 60)) for i, size in enumerate(table["size"])]
    table.to_csv("flats.csv", index=False)
    with visiting(desk_of("lends", labels="outcome", grid=["size=5"], plausibility="none")) as client:
        assert client.get("/api/rows").json()["total"] == 30
        assert client.get("/api/rows/1").json()["decision"] == {"label": None, "source": None}
        assert client.get("/api/rows/7").json()["values"]["built"] == flats().loc[7, "built"]
        identity = begin(client, {"position": 7}, target=[])["id"]
        assert ended(client, identity)["position"] == 7
        same_elsewhere(client, identity)
