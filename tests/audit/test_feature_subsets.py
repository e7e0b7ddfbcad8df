"""Feature subsets: what one feature alone can do, or two, within one budget."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.ledger import canonical
from acex.ledger.sql import Ledger
from ledgers import Bill, Seller, killed

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "income": RNG.integers(10, 60, 150) * 100,
        "debt": RNG.integers(0, 30, 150) * 100,
        "age": RNG.integers(20, 70, 150),
        "job": RNG.choice(["cook", "clerk"], 150),
    }
)
X = {"income": 3000, "debt": 1500, "age": 40, "job": "cook"}
OPTIONS: Any = {"target": "yes", "freeze": ["age"], "plausibility": None}


def decide(rows: pd.DataFrame) -> Any:
    """Income alone can do, debt and job only together."""
    enough = (rows["income"] >= 4500) | ((rows["debt"] <= 500) & (rows["job"] == "clerk"))
    return np.where(enough, "yes", "no")


def explainer(asked: Any = decide, **settings: Any) -> acex.Explainer:
    return acex.Explainer(asked, DATA, plausibility=None, **settings)


def test_each_set_is_found_not_found_or_not_asked_for_and_says_so() -> None:
    subsets = explainer().feature_subsets(X, target="yes", freeze=["age"], budget=60, queries_each=10)
    states = {e.features: e.state for e in subsets.entries}
    assert states.pop(("debt",)) in ("not found", "impossible")
    # A pair with income adds nothing, and age is frozen.
    assert states == {("income",): "found", ("job",): "impossible", ("debt", "job"): "found"}
    assert subsets.n_queries <= 60
    for entry in subsets.entries:
        if entry.explanation is not None:  # nothing else was ever changed
            asked = entry.explanation.trace
            others = [name for name in DATA.columns if name not in entry.features]
            assert (asked[others] == asked[others].iloc[0]).all(axis=None)
            assert entry.explanation.label_after in (None, "yes")
    assert subsets.frame()["state"].tolist() == [e.state for e in subsets.entries]
    assert "Enough alone: income" in str(subsets)
    assert "no plausible change is left after 1 row" in subsets.to_html()


def test_several_features_that_are_each_enough_are_not_called_a_set() -> None:
    asked = explainer(lambda rows: np.where((rows["income"] >= 4500) | (rows["debt"] <= 500), "yes", "no"))
    subsets = asked.feature_subsets(X, target="yes", freeze=["age"], budget=30, queries_each=10)
    assert str(subsets).startswith("Enough alone: income and debt (")


def test_a_feature_without_a_plausible_change_is_not_called_asked() -> None:
    subsets = explainer().feature_subsets(X, target="yes", rules=["job == 'cook'"], budget=30, max_features=1)
    [job] = [e for e in subsets.entries if e.features == ("job",)]
    assert (job.state, job.asked, job.words) == ("impossible", 0, "no: no plausible change is left")


def test_the_budget_is_for_all_sets_and_the_rest_is_not_asked() -> None:
    bill: list[str] = []

    def seller(rows: pd.DataFrame) -> Any:
        bill.extend(canonical(rows))
        return decide(rows)

    subsets = explainer(seller).feature_subsets(X, target="yes", budget=7, queries_each=4)
    assert len(bill) == len(set(bill)) == subsets.n_queries <= 7
    assert "not asked" in subsets.frame()["state"].tolist()
    assert [e.asked for e in subsets.entries if e.state == "not asked"][-1] == 0
    assert "; not asked: " in subsets.summary


def test_a_row_that_is_already_as_wanted_has_none() -> None:
    subsets = explainer().feature_subsets(X | {"income": 5000}, target="yes")
    assert subsets.entries == () and subsets.n_queries == 1 and "Nothing to change" in str(subsets)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"max_features": 0}, "max_features"),
        ({"max_features": 4}, "max_features"),
        ({"queries_each": 1}, "queries_each"),
        ({"budget": 1}, "budget"),
        ({"freeze": list(DATA.columns)}, "No feature can change"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_sent(options: dict[str, Any], name: str) -> None:
    def refuse(rows: Any) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match=name):
        explainer(refuse).feature_subsets(X, **options)


def found(folder: Path, at: int = 0) -> Any:
    seller = Seller(decide, Bill(folder / "bill"), at)
    rules = ["debt <= income"]
    with Ledger(folder / "l.db") as ledger:
        ledger.abandon("m")
        return explainer(acex.Model(seller, name="m"), ledger=ledger).feature_subsets(
            X, target="yes", budget=14, queries_each=4, rules=rules
        )


def test_killed_in_the_middle_it_goes_on_within_the_same_budget(tmp_path: Path) -> None:
    killed(lambda: found(tmp_path, at=6))
    subsets = found(tmp_path)
    lines = Bill(tmp_path / "bill").lines()
    bill = Counter(lines)
    assert bill.total() <= 14 and sorted(bill.values())[-2:] == [1, 2]  # the row in flight alone
    assert all(debt <= income for income, debt, *_ in map(json.loads, bill))
    again = found(tmp_path)
    assert again.frame().equals(subsets.frame()) and Bill(tmp_path / "bill").lines() == lines


def test_a_command_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run

    monkeypatch.chdir(tmp_path)
    code = "def decide(rows):\n    return ['yes' if income >= 4500 else 'no' for income in rows.income]\n"
    Path("acex_test_subsets.py").write_text(code, encoding="utf-8")
    DATA.to_csv("people.csv", index=False)
    Path("x.json").write_text(json.dumps(X), encoding="utf-8")
    words = ("subsets", "people.csv", "--model", "acex_test_subsets:decide", "--x", "x.json", "--target", "yes")
    done = run(*words, "--budget", 12, "--queries-each", 4, "--max-features", 1, "--out", "subsets.html")
    assert done.exit_code == 0, done.stderr
    assert "income" in done.stdout and "yes" in done.stdout
    assert "income" in Path("subsets.html").read_text(encoding="utf-8")
    written = json.loads(run(*words, "--budget", 12, "--max-features", 1, "--json").stdout)["feature_subsets"]
    assert {line["cost"] is None for line in written if line["state"] != "found"} == {True}
    assert written[0]["features"] == ["income"] and written[0]["counterfactual"]["income"] >= 4500
    assert run(*words, "--freeze", "income", "--budget", 6, "--max-features", 1).exit_code == 1
    assert run(*words, "--max-features", 9).exit_code == 2
