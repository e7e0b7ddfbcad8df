"""A menu: what can be done with one feature alone, or with two, within one budget."""

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
from commands import run
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
    menu = explainer().menu(X, target="yes", freeze=["age"], budget=60, each=10)
    assert [e.features for e in menu if len(e.features) == 1 and e.state == "found"] == [("income",)]
    assert menu["job"].state == "impossible" and menu["debt"].state in ("not found", "impossible")
    assert menu[("job", "debt")].state == "found"
    assert menu.n_queries <= 60
    with pytest.raises(KeyError, match="age"):
        menu["age"]  # frozen: no dish
    for entry in menu:
        if entry.explanation is not None:  # nothing else was ever changed
            asked = entry.explanation.asked
            others = [name for name in DATA.columns if name not in entry.features]
            assert (asked[others] == asked[others].iloc[0]).all(axis=None)
            assert entry.explanation.label_after in (None, "yes")
    assert menu.frame()["state"].tolist() == [e.state for e in menu]
    assert "Income would do alone" in str(menu) or "income would do alone" in str(menu).lower()
    assert "asked and not found" in menu.to_html() or "every plausible value" in menu.to_html()


def test_the_budget_is_for_all_sets_and_the_rest_is_not_asked() -> None:
    bill: list[str] = []

    def seller(rows: pd.DataFrame) -> Any:
        bill.extend(canonical(rows))
        return decide(rows)

    menu = explainer(seller).menu(X, target="yes", budget=7, each=4)
    assert len(bill) == len(set(bill)) == menu.n_queries <= 7
    assert "not asked" in menu.frame()["state"].tolist()
    assert [e.asked for e in menu if e.state == "not asked"][-1] == 0
    assert "were not asked for" in menu.summary


def test_what_is_met_already_needs_no_menu() -> None:
    menu = explainer().menu(X | {"income": 5000}, target="yes")
    assert len(menu) == 0 and menu.n_queries == 1 and "nothing has to change" in str(menu)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"most": 0}, "most must be 1, 2 or 3"),
        ({"most": 4}, "most must be 1, 2 or 3"),
        ({"each": 1}, "each must be a whole number of at least 2"),
        ({"count": 2}, "one counterfactual for each set"),
        ({"budget": 1}, "budget must be a whole number of at least 2"),
        ({"freeze": list(DATA.columns)}, "No feature can change"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(options: dict[str, Any], words: str) -> None:
    def nobody(rows: Any) -> Any:
        raise AssertionError

    with pytest.raises(ValueError, match=words):
        explainer(nobody).menu(X, **options)


def cooked(folder: Path, at: int = 0) -> Any:
    seller = Seller(decide, Bill(folder / "bill"), at)
    rules = ["debt <= income"]
    with Ledger(folder / "l.db") as ledger:
        ledger.abandon("m")
        return explainer(seller, ledger=ledger, model_id="m").menu(X, target="yes", budget=14, each=4, rules=rules)


def test_killed_in_the_middle_it_goes_on_within_the_same_budget(tmp_path: Path) -> None:
    killed(lambda: cooked(tmp_path, at=6))
    menu = cooked(tmp_path)
    lines = Bill(tmp_path / "bill").lines()
    bill = Counter(lines)
    assert bill.total() <= 14 and sorted(bill.values())[-2:] == [1, 2]  # the row in flight alone
    assert all(debt <= income for income, debt, *_ in map(json.loads, bill))
    again = cooked(tmp_path)
    assert again.frame().equals(menu.frame()) and Bill(tmp_path / "bill").lines() == lines


def test_the_shell_serves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "def decide(rows):\n    return ['yes' if income >= 4500 else 'no' for income in rows.income]\n"
    Path("acex_test_menu.py").write_text(code, encoding="utf-8")
    DATA.to_csv("people.csv", index=False)
    Path("x.json").write_text(json.dumps(X), encoding="utf-8")
    words = ("menu", "people.csv", "--model", "acex_test_menu:decide", "--x", "x.json", "--target", "yes")
    done = run(*words, "--budget", 12, "--each", 4, "--most", 1, "--out", "menu.html")
    assert done.exit_code == 0, done.stderr
    assert "income" in done.stdout and "yes" in done.stdout
    assert "What can be done" in Path("menu.html").read_text(encoding="utf-8")
    told = json.loads(run(*words, "--budget", 12, "--most", 1, "--json").stdout)
    assert told["menu"][0]["features"] == ["income"] and told["menu"][0]["counterfactual"]["income"] >= 4500
    assert run(*words, "--freeze", "income", "--budget", 6, "--most", 1).exit_code == 1
    assert run(*words, "--most", 9).exit_code == 2
