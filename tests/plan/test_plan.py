"""A plan is all that decides what is asked; its identity says so."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.plan.plan import Plan
from toys import not_asked

DATA = pd.DataFrame(
    {"income": np.arange(1000, 5000, 100), "debt": (np.linspace(0, 1, 40) ** 2).round(3), "job": ["cook", "clerk"] * 20}
)
ROW = DATA.iloc[3]


def plan(
    data: pd.DataFrame = DATA,
    row: Any = ROW,
    setup: dict[str, Any] | None = None,
    model: Any = not_asked,
    **options: Any,
) -> Plan:
    return acex.Explainer(model, data, **(setup or {})).search(row, **options).plan


@pytest.mark.parametrize(
    "changed",
    [
        {"target": "good"},
        {"seed": 1},
        {"freeze": ["job"]},
        {"ranges": {"income": (0, 3000)}},
        {"directions": {"debt": "decrease"}},
        {"values": {"income": [1000, 3000]}},
        {"cost": acex.Cost(weights={"debt": 2.0})},
        {"cost": acex.Cost(beta=1.0)},
        {"strategy": "penalty"},
        {"strategy": acex.Feasible(tolerance=0.1)},
        {"queries_per_round": 2},
        {"count": 2},
        {"rules": [lambda rows: rows["income"] > 0]},
        {"row": DATA.iloc[4]},
        {"data": DATA.iloc[:-1]},
        {"setup": {"outcomes": ["good", "bad"] * 20}},
        {"setup": {"plausibility": None}},
        {"setup": {"share_answers": False}},
        {"model": acex.Model(not_asked, name="another")},
        {"setup": {"seed": 1}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_decides_what_is_asked_is_part_of_the_identity(changed: dict[str, Any]) -> None:
    assert plan(**changed).identity != plan().identity


def test_the_budget_is_no_part_of_it_unless_it_is_divided() -> None:
    assert plan(budget=10).identity == plan(budget=99).identity
    assert plan(budget=10, count=2).identity != plan(budget=99, count=2).identity


def test_versions_and_units_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = plan().identity
    monkeypatch.setattr("acex._version.__version__", "9.9")
    monkeypatch.setattr("acex.engine.planner.__version__", "9.9")
    space = acex.Space.infer(DATA)
    assert plan(setup={"space": space.adjust(units={"income": "euros"})}).identity == before


def test_equal_limits_in_other_words_are_the_same_plan() -> None:
    assert plan(values={"job": ["cook", "clerk"]}).identity == plan(values={"job": ["clerk", "cook"]}).identity
    assert plan(ranges={"income": (-np.inf, np.inf)}).identity == plan().identity


def test_the_identity_is_the_same_in_every_process() -> None:
    code = (
        "import acex, numpy as np, pandas as pd\n"
        "d = pd.DataFrame({'a': np.arange(40.0), 'b': list('xy') * 20})\n"
        "print(acex.Explainer(len, d).search(d.iloc[1], rules=[lambda r: r['a'] > 0]).identity)"
    )
    told = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(told) == 1 and len(told.pop().strip()) == 32


def test_a_rule_that_cannot_be_pinned_down_makes_a_plan_of_its_own_and_says_so() -> None:
    allowed = {1, 2}
    rule = lambda rows: np.array([allowed.__contains__(1)] * len(rows))  # noqa: E731
    assert plan(rules=[rule]).remarks == ()
    method = [True].__len__
    odd = lambda rows: np.array([method() == 1] * len(rows))  # noqa: E731
    one, two = plan(rules=[odd]), plan(rules=[odd])
    assert one.identity != two.identity
    assert one.remarks[0].code == "cannot_resume"


def test_what_may_become_of_each_feature_is_told() -> None:
    told = plan(freeze=["debt"], ranges={"income": (1000, 2000)}).may_become
    assert told == {"income": (1000, 2000), "debt": None, "job": ["clerk", "cook"]}


def test_a_plan_comes_back_from_what_is_written_of_it() -> None:
    p = plan(target=["good", "fair"], ranges={"income": (1000, 2000)}, freeze=["job"])
    settings = json.loads(json.dumps(p.settings))
    space = json.loads(json.dumps(p.described_space()))
    back = Plan.from_record(settings, dict(p.factual), acex.Space.from_dict(space), space["deviations"])
    assert back.settings == p.settings
    assert back.space == p.space and np.array_equal(back.scale.deviations, p.scale.deviations)
    assert back.target == p.target


def test_lists_of_allowed_values_among_the_ranges_of_version_0_2_are_values() -> None:
    p = plan()
    ranges = {"income": [1000, 2000], "job": ["cook", "clerk"], "debt": [None]}
    back = Plan.from_record({**p.settings, "ranges": ranges}, dict(p.factual), p.space, p.scale.deviations)
    assert back.settings["ranges"] == {"income": [1000, 2000]}
    assert back.settings["values"] == {"job": ["cook", "clerk"], "debt": [None]}
