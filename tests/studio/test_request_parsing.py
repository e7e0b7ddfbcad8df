"""Options of the studio: every declared one, names of labels, targets of numbers, dates, gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.studio.request_parsing import PLAIN, declarations_json
from acex.studio.workspace import Workspace
from studios import FLATS, begin, ended, flats, same_elsewhere, visiting, workspace_in, workspace_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with flats.csv and models that value them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acex_test_flats.py").write_text(FLATS, encoding="utf-8")
    flats().to_csv("flats.csv", index=False)
    return tmp_path


def flats_workspace(model: str, **given: Any) -> Workspace:
    """The workspace of `acex studio flats.csv`."""
    return workspace_of("flats.csv", f"acex_test_flats:{model}", **{"budget": 8, **given})


def test_labels_are_called_by_their_names_everywhere(folder: Path) -> None:
    table = flats().assign(outcome=["lent" if size > 60 else "refused" for size in flats()["size"]])
    table.to_csv("flats.csv", index=False)
    workspace = flats_workspace("lends", outcomes="outcome", class_names=["0=refused", "1=lent"])
    with visiting(workspace) as client:
        about = client.get("/api/workspace").json()
        assert sorted(about["labels"]) == ["lent", "refused"] and about["answers"] == "labels"
        assert client.get("/api/rows/0").json()["decision"] == {"label": "refused", "source": "file"}
        identity = begin(client, target=["lent"])["id"]
        result = ended(client, identity)
        assert {step["label"] for step in result["steps"]} == {"lent", "refused"}
        assert (result["explanation"]["before"], result["wanted"], result["options"]["target"]) == (
            "refused",
            ["lent"],
            ["lent"],
        )
        assert result["explanation"]["answers"][0]["label"] == "lent" and result["explanation"]["sentence"].startswith(
            "Lent if"
        )
        assert client.get("/api/rows/0").json()["decision"] == {"label": "refused", "source": "model"}
        assert {"position": 0}.items() <= client.get("/api/rows?decision=refused").json()["lines"][0].items()
        [line] = client.get("/api/many").json()["lines"]
        assert (line["before"], line["after"]) == ("refused", "lent")
        ask = {"row": {"values": {"size": "100", "built": "1999-01-01"}}, "pay": True}
        assert client.post("/api/ask", json=ask).json()["label"] == "lent"
        same_elsewhere(client, identity)
    with visiting(flats_workspace("lends", outcomes="outcome", class_names=["0=refused", "1=lent"])) as client:
        assert client.get(f"/api/searches/{identity}").json()["options"]["target"] == ["lent"]
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 9}).status_code == 200


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
    with visiting(flats_workspace("agent")) as client:
        about = client.get("/api/workspace").json()
        assert about["answers"] == "numbers" and about["labels"] == [] and about["options"]["target"] == []
        refused = client.post("/api/plan", json={"row": {"position": 0}, "options": {"target": []}})
        assert refused.status_code == 422 and "which number" in refused.json()["error"]
        identity = begin(client, target=target)["id"]
        result = ended(client, identity)
        assert result["state"] == "ended" and result["wanted"] == [words] and result["options"]["target"] == target
        assert result["explanation"]["answers"], result["explanation"]["sentence"]
        same_elsewhere(client, identity)
    with visiting(flats_workspace("agent")) as client:
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 9}).status_code == 200


def test_the_number_of_a_row_of_ones_own_is_asked_for_and_many_rows_have_numbers(folder: Path) -> None:
    with visiting(flats_workspace("agent", target_range="600..")) as client:
        assert client.get("/api/workspace").json()["options"]["target"] == {"at_least": 600}
        ask = {"row": {"values": {"size": "50", "built": "1990-01-01"}}, "pay": True}
        assert client.post("/api/ask", json=ask).json()["label"] == "500.0"
        body = {"rows": {"most": 2}, "options": {"target": {"at_least": 900}, "budget": 5}}
        assert client.post("/api/many", json=body).status_code == 200
        while (result := client.get("/api/many").json())["batch"]["live"]:
            pass
        assert result["batch"]["done"] == 2 and all(float(line["before"]) for line in result["lines"])


def test_a_probability_can_be_wanted_where_the_model_gives_them(tmp_path: Path) -> None:
    class Scorer:
        classes_ = ("bad", "good")

        def predict_proba(self, rows: pd.DataFrame) -> Any:
            p = (rows.iloc[:, 1] / 5000).clip(0, 1).to_numpy(dtype=float)
            return np.stack([1 - p, p], axis=1)

        def predict(self, rows: pd.DataFrame) -> Any:
            return np.array(self.classes_)[self.predict_proba(rows).argmax(axis=1)]

    model = acex.Model(Scorer(), name="s", scores=True)
    with visiting(workspace_in(tmp_path, model)) as client:
        assert client.get("/api/workspace").json()["scores"]
        result = ended(client, begin(client, target={"at_least": 0.6, "label": "good"}, budget=15)["id"])
        code = client.get(f"/api/searches/{result['id']}/exports/code").json()
    assert (
        result["wanted"] == ["good with a probability of at least 0.6"] and result["explanation"]["outcome"] == "found"
    )
    assert "acex.AtLeast(" in code["python"]


def test_dates_are_typed_in_limited_and_taken_along(folder: Path) -> None:
    with visiting(flats_workspace("agent", target_range="600..")) as client:
        card = client.get("/api/workspace").json()["features"][1]
        assert card["kind"] == "moment" and card["places"] == sorted(set(card["places"])) and sum(card["bars"]) == 30
        assert card["low"] == flats()["built"].min() and card["high"] == flats()["built"].max()
        options = {"freeze": ["size"], "ranges": {"built": ["1995-05-01", None]}, "target": {"relative": 0.05}}
        typed = {"values": {"size": 40, "built": "1993-01-01"}}
        plan = client.post("/api/plan", json={"row": typed, "options": options}).json()
        assert any("1995-05-01" in rule["text"] for rule in plan["rules"]), plan
        identity = begin(client, typed, **options)["id"]
        result = ended(client, identity)
        assert result["state"] == "ended" and result["row"] == {"size": "40", "built": "1993-01-01"}
        assert all(step["changes"][0][2] >= "1995-05-01" for step in result["steps"][1:])
        same_elsewhere(client, identity)
        known = begin(client, {"position": 3}, target={"relative": 0.1})["id"]
        assert ended(client, known)["position"] == 3
        assert {line["position"] for line in client.get("/api/many?by=built").json()["lines"]} == {3, None}
        for wrong in ("yesterday", "", "1993-13-01", None, 7):
            values = {"size": 40, "built": wrong}
            assert client.post("/api/plan", json={"row": {"values": values}}).status_code == 422
    with visiting(flats_workspace("agent", target_range="600..")) as client:
        assert client.get(f"/api/searches/{identity}").json()["options"]["ranges"] == {"built": ["1995-05-01", None]}
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 9}).status_code == 200


def test_limits_of_the_command_are_where_the_page_begins(folder: Path) -> None:
    given = {"ranges": ["built=1995-05-01..", "size=30:"], "weights": ["size=2"], "freeze": ["size"]}
    with visiting(flats_workspace("agent", target_range="600..", **given)) as client:
        options = client.get("/api/workspace").json()["options"]
        assert options["ranges"] == {"built": ["1995-05-01", None], "size": [30, None]}
        assert options["weights"] == {"size": 2} and options["freeze"] == ["size"]
        for changed in (options, options | {"freeze": []}):
            identity = begin(client, **changed)["id"]
            ended(client, identity)
            same_elsewhere(client, identity)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_every_plain_option_is_on_the_form_and_in_the_exported_code(folder: Path, name: str) -> None:
    [choices] = [d["choices"] for d in declarations_json() if d["name"] == name] or [None]
    number = 0.5 if PLAIN[name].decides else 600  # seconds
    value = {"count": 3, "number": number, "text": (choices or ["penalty"])[-1]}[PLAIN[name].kind]
    with visiting(flats_workspace("lends", budget=4)) as client:
        identity = begin(client, **{name: value})["id"]
        result = ended(client, identity)
        assert result["state"] == "ended" and result["options"][name] == value
        same_elsewhere(client, identity)
    with visiting(flats_workspace("lends", budget=4)) as client:  # after a restart
        assert client.get(f"/api/searches/{identity}").json()["options"][name] == value
        assert client.post(f"/api/searches/{identity}/resume", json={"budget": 5}).status_code == 200


def test_a_page_can_return_to_the_default_of_an_option_of_the_command(folder: Path) -> None:
    with visiting(flats_workspace("lends", margin=0.9, effort="spend", max_changes=6)) as client:
        options = client.get("/api/workspace").json()["options"]
        assert {"margin": 0.9, "effort": "spend", "max_changes": 6}.items() <= options.items()
        first, second = begin(client, budget=4), begin(client, budget=4, margin=None, effort=None)
        results = [ended(client, search["id"]) for search in (first, second)]
        for result in results:
            same_elsewhere(client, result["id"])
    rules = [[rule["text"] for rule in result["rules"]] for result in results]
    assert "Margin: 0.9." in rules[0] and "Max changes: 6." in rules[1]
    assert results[1]["options"].get("margin") is None and results[1]["options"].get("effort") != "spend"


def test_rows_with_gaps_are_shown_and_say_what_is_wrong_with_them(folder: Path) -> None:
    table = flats().astype({"size": float})
    table.loc[2, "size"] = np.nan
    table.loc[3, "built"] = None
    table.to_csv("flats.csv", index=False)
    with visiting(flats_workspace("agent", target_range="600..")) as client:
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
    with visiting(flats_workspace("lends", missing="keep", values=["size=missing"])) as client:
        about = client.get("/api/workspace").json()
        card = about["features"][0]
        assert card["gaps"] and sum(card["bars"]) == 28 and card["low"] >= 20
        assert about["options"]["values"] == {"size": [None]}
        typed = {"values": {"size": "", "built": "1999-01-01"}}
        plan = client.post("/api/plan", json={"row": typed, "options": about["options"]}).json()
        assert [rule["text"] for rule in plan["rules"]] == ["Size may become missing, nothing else."]
        for row in ({"position": 0}, {"position": 2}, typed):
            identity = begin(client, row, target=[])["id"]
            result = ended(client, identity)
            assert result["state"] == "ended" and result["position"] == row.get("position"), result["error"]
            assert all(before != after for step in result["steps"] for _, before, after in step["changes"])
            same_elsewhere(client, identity)
        groups = client.get("/api/many?by=size").json()["groups"]
    assert sum(group["rows"] for group in groups) == 3
    with visiting(flats_workspace("lends", missing="keep", values=["size=missing"])) as client:
        assert client.get(f"/api/searches/{identity}").status_code == 200


def test_a_schema_and_the_options_of_the_data_are_in_the_exported_code(folder: Path) -> None:
    table = flats().assign(kind=["flat", "house", "boat"] * 10)
    table.to_csv("flats.csv", sep=";", index=False)
    column = '{ name = "kind", kind = "nominal", categories = ["flat", "house", "boat"] }'
    Path("schema.toml").write_text(f'rules = ["size <= 115"]\nfeatures = [{column}]\n', encoding="utf-8")
    given = {"schema": Path("schema.toml"), "grid": ["size=5"], "other": ["kind=boat"], "missing": "keep"}
    with visiting(flats_workspace("lends", **given, plausibility="lof", share_answers=True)) as client:
        identity = begin(client, target=[])["id"]
        assert any("115" in rule["text"] for rule in ended(client, identity)["rules"])
        same_elsewhere(client, identity)


def test_a_row_without_an_outcome_keeps_its_place(folder: Path) -> None:
    table = flats()
    table["outcome"] = [None if i in (1, 4) else str(int(size > 60)) for i, size in enumerate(table["size"])]
    table.to_csv("flats.csv", index=False)
    with visiting(flats_workspace("lends", outcomes="outcome", grid=["size=5"], plausibility="none")) as client:
        assert client.get("/api/rows").json()["total"] == 30
        assert client.get("/api/rows/1").json()["decision"] == {"label": None, "source": None}
        assert client.get("/api/rows/7").json()["values"]["built"] == flats().loc[7, "built"]
        identity = begin(client, {"position": 7}, target=[])["id"]
        assert ended(client, identity)["position"] == 7
        same_elsewhere(client, identity)
