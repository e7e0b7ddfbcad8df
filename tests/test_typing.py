"""Type checkers and editors see the public interface: mypy accepts a user's script, and names what is wrong in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands import environment

RIGHT = """
from pathlib import Path

import numpy as np
import pandas as pd

import acex


def model(rows: pd.DataFrame) -> list[str]:
    return ["good" if income > 3000 else "bad" for income in rows["income"]]


rows = pd.DataFrame({"income": np.arange(2000.0, 4000.0, 50.0), "debt": np.linspace(0, 2, 40)})
e: acex.Explanation = acex.explain(
    acex.Model(model, name="loans", version="2026-11", class_names={"good": "approved"}, timeout=5),
    rows.iloc[0],
    rows,
    outcomes=model(rows),
    target="good",
    budget=10,
    time_limit=60.0,
    freeze=["debt"],
    ranges={"income": (0, 5000)},
    directions={"income": "increase"},
    rules=["debt <= income", lambda rows: rows["income"] > 0],
    max_changes=1,
    cost=acex.Cost(beta=1.0, weights={"income": 2.0}, per_change=0.5),
    plausibility=None,
    space=acex.Space.infer(rows, grid={"income": 50}),
    strategy=acex.Feasible(effort="spend", margin=0.7),
    ledger=Path("answers.db"),
    callback=lambda so_far: print(so_far.cost),
)
cost: float | None = e.cost
texts: list[str] = [remark.text for remark in e.remarks]
row: "pd.Series[float]" = e.counterfactual

explainer = acex.Explainer(model, rows, outcomes=model(rows), share_answers=False)
many: acex.Explanations = explainer.explain_many(rows.head(3), target=["good"], n_jobs=1, budget_total=20)
frame: pd.DataFrame = many.frame()
for step in explainer.search(rows.iloc[0], target=acex.AtLeast(0.8, label="good")):
    position: int = step.position
n: int = explainer.import_answers(rows, model(rows))
for subset in explainer.feature_subsets(rows.iloc[0], max_features=1):
    state: str = subset.state
"""

WRONG = """
import pandas as pd

import acex

rows = pd.DataFrame({"income": [1.0, 2.0]})
acex.explain(len, rows.iloc[0], rows, labels=[0, 1])
acex.Explainer(len, rows).explain(rows.iloc[0], budgte=10)
acex.Model(len, model_id="loans")
acex.Cost(category_cost=1.0)
acex.Feasible(effort="spent")
acex.explain(len, rows.iloc[0], rows, budget="many")
"""
NAMED = [
    'Unexpected keyword argument "labels" for "explain"',
    'Unexpected keyword argument "budgte" for "explain"',
    'Unexpected keyword argument "model_id" for "Model"',
    'Unexpected keyword argument "category_cost" for "Cost"',
    'Argument "effort" to "Feasible"',
    'Argument "budget" to "explain"',
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The errors of mypy in each script, checked with the settings of a careful user."""
    folder = tmp_path_factory.mktemp("scripts")
    scripts = {"right.py": RIGHT, "wrong.py": WRONG}
    for name, text in scripts.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", *scripts]
    paths = {"MYPYPATH": str(Path(__file__).parents[1] / "src")}
    ran = subprocess.run(command, env=environment(**paths), cwd=folder, capture_output=True, text=True, check=False)
    assert "Found" in ran.stdout, ran.stdout + ran.stderr
    return {name: [line for line in ran.stdout.splitlines() if line.startswith(name)] for name in scripts}


def test_a_script_with_the_right_types_is_accepted(errors: dict[str, list[str]]) -> None:
    assert errors["right.py"] == []


def test_wrong_arguments_are_named(errors: dict[str, list[str]]) -> None:
    found = [line for line in errors["wrong.py"] if "error:" in line]
    assert len(found) == len(NAMED), found
    for error, named in zip(found, NAMED, strict=True):
        assert named in error
