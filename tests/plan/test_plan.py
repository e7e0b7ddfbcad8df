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
from acex.plan.step import Ending, Note, Step, in_order
from acex.plan.target import Target
from toys import not_asked

DATA = pd.DataFrame(
    {"income": np.arange(1000, 5000, 100), "debt": np.linspace(0, 1, 40), "job": ["cook", "clerk"] * 20}
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


def step(position: int, label: str, cost: float, counts: bool = True) -> Step:
    return Step(position, {"a": position}, "row", label, False, 0.0, 1, None, 0, Note(position, cost, counts))


def test_the_best_so_far_follows_hits_that_count() -> None:
    costs, labels, counts = (0, 9, 8, 7, 3, 5), ["no", "yes", "no", "yes", "yes", "yes"], (1, 1, 1, 0, 1, 1)
    steps = [step(i, label, c, bool(k)) for i, (label, c, k) in enumerate(zip(labels, costs, counts, strict=True))]
    steps = in_order(steps, Target.of("yes"))
    assert [s.hit for s in steps] == [False, True, False, True, True, True]
    assert [s.best for s in steps] == [np.inf, 9, 9, 9, 3, 3]
    assert Ending.so_far(steps, Target.of("yes")).counterfactuals == (4,)


def test_the_factual_is_no_hit_also_where_it_has_the_label_wanted() -> None:
    steps = in_order([step(0, "yes", 0)], Target.of("yes"))
    assert not steps[0].hit
    assert Ending.so_far(steps, Target.of("yes")).outcome == "already_target"
    assert Ending.so_far(in_order([step(0, "no", 0)], Target.of("yes")), Target.of("yes")).outcome == "budget_spent"


def test_notes_of_earlier_versions_are_read() -> None:
    note = {
        "first": 3,
        "cost": 1.5,
        "counts": True,
        "affinity": 0.9,
        "round": 2,
        "penalty": 0.0,
        "hope": 0.4,
        "chance": 0.2,
    }
    read = Note.from_dict(note)
    assert (read.max_p_hit, read.p_hit) == (0.4, 0.2)
    assert Note.from_dict({"first": 0, "cost": 0.0, "counts": False}) == Note(0, 0.0, False)


def test_notes_and_endings_come_back_from_json() -> None:
    note = Note(3, 1.5, True, 0.9, 2, 10.0, 0.4)
    assert Note.from_dict(json.loads(json.dumps(note.to_dict()))) == note
    for ending in (
        Ending("found", "settled", (3, 5), (0.7, 0.8), (acex.Remark("a", "b"),)),
        Ending("failed", error="no"),
    ):
        assert Ending.from_dict(json.loads(json.dumps(ending.to_dict()))) == ending
