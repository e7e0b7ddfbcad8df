"""A short answer beside a realistic one, what is in the way of an answer, and answers that may be improved."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.audit.verify import verify
from acex.engine.certificate import parsed
from acex.engine.explanation import Explanation
from acex.engine.recorded import load_explanation
from acex.studio.serializers import explanation_json

rng = np.random.default_rng(0)
ALIKE = pd.DataFrame(  # eight columns that say nearly the same: a realistic change moves most of them
    (rng.normal(size=(200, 1)) + 0.05 * rng.normal(size=(200, 8))).round(3), columns=[f"c{j}" for j in range(8)]
)
LOW = ALIKE[ALIKE["c0"] < -0.5].iloc[0]


def first_is_high(rows: pd.DataFrame) -> Any:
    return np.where(rows["c0"] > 0.5, "yes", "no")


def never(rows: pd.DataFrame) -> Any:
    return np.full(len(rows), "no")


@pytest.fixture(scope="module")
def both() -> Explanation:
    return acex.explain(first_is_high, LOW, ALIKE, budget=40)


def test_a_realistic_answer_with_many_changes_has_a_short_one_beside_it(both: Explanation) -> None:
    assert both.kinds == ("realistic", "short")
    assert len(both.changes_of(0)) > 4 >= len(both.changes_of(1))
    assert set(first_is_high(both.counterfactuals)) == {"yes"}
    assert both.affinities[1] < both.affinities[0]
    assert [step.note.counts for step in both.steps if step.position in both.ending.counterfactuals] == [True, False]
    assert len(both.ending.needed[1]) == len(both.changes_of(1))
    assert sum(step.purpose == "short" for step in both.steps) <= 0.2 * 40
    assert both.n_queries <= 40


def test_both_are_shown_with_how_unusual_they_are(both: Explanation) -> None:
    for text in (str(both), both._repr_html_(), both.to_html()):
        assert f"realistic: {len(both.changes)} changes" in text
        assert f"affinity {both.affinities[1]:.2f} (unusual)" in text
    assert [card["kind"] for card in explanation_json(both)["answers"]] == ["realistic", "short"]


def test_short_may_come_first(both: Explanation) -> None:
    e = acex.explain(first_is_high, LOW, ALIKE, budget=40, prefer="short")
    assert e.kinds == ("short", "realistic")
    assert e.cost == both.costs[1]
    assert e.plan.identity != both.plan.identity


@pytest.mark.parametrize(
    "options",
    [
        {"space": acex.Space(acex.Space.infer(ALIKE).features).like(ALIKE)},
        {"strategy": acex.Feasible(effort="spend")},
        {"plausibility": None},
        {"count": 2},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_short_answer_is_not_looked_for(options: dict[str, Any]) -> None:
    e = acex.explain(first_is_high, LOW, ALIKE, budget=12, **options)
    assert e.plan.settings["prefer"] is None
    assert e.kinds == ()
    assert all(step.purpose != "short" for step in e.steps)


def test_prefer_is_an_option_of_declared_features_too() -> None:
    space = acex.Space(acex.Space.infer(ALIKE).features).like(ALIKE)
    e = acex.Explainer(first_is_high, ALIKE, space=space).search(LOW, prefer="realistic")
    assert e.plan.settings["prefer"] == "realistic"


@pytest.mark.parametrize(
    "options",
    [
        {"prefer": "long"},
        {"prefer": "short", "count": 2},
        {"prefer": "short", "max_changes": 2},
        {"prefer": "short", "strategy": "penalty"},
        {"prefer": "short", "plausibility": None},
    ],
)
def test_prefer_is_refused_where_it_means_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="prefer"):
        acex.explain(first_is_high, LOW, ALIKE, **options)


def test_both_survive_json_certificate_redaction_and_ledger(both: Explanation) -> None:
    again = Explanation.from_json(both.to_json())
    assert (again.kinds, str(again)) == (both.kinds, str(both))
    document = parsed(both.to_json())
    assert verify(document).holds
    assert document["kinds"] == ["realistic", "short"]
    redacted = json.loads(both.to_json(redact=["c0"]))
    assert redacted["kinds"] == ["realistic", "short"]
    assert all("c0" not in row for row in redacted["counterfactuals"])
    assert verify(parsed(both.to_json(redact=["c0"]))).holds


def test_both_are_read_from_the_ledger_and_reused(tmp_path: Path) -> None:
    model = acex.Model(first_is_high, name="first")
    with acex.Ledger(tmp_path / "l.db") as ledger:
        e = acex.explain(model, LOW, ALIKE, budget=40, ledger=ledger)
        assert load_explanation(ledger, e.plan.identity).kinds == ("realistic", "short")
        again = acex.explain(model, LOW, ALIKE, budget=40, ledger=ledger)
        assert (again.n_queries, again.kinds, again.costs) == (0, e.kinds, e.costs)


@pytest.mark.parametrize(
    ("options", "in_the_way"),
    [
        ({"max_changes": 2}, {"max_changes"}),
        ({"max_changes": 2, "outcomes": None}, {"max_changes", "plausibility"}),
        ({"ranges": {"c0": (-3, 0)}}, {"ranges"}),
        ({"freeze": ["c0"]}, {"freeze"}),
        ({"directions": {"c0": "decrease"}}, {"directions"}),
        ({"rules": "c0 < 0.2"}, {"rules"}),
    ],
    ids=lambda given: "-".join(sorted(given)),
)
def test_advice_names_what_is_in_the_way(options: dict[str, Any], in_the_way: set[str]) -> None:
    options = {"outcomes": first_is_high(ALIKE)} | options
    e = acex.explain(never, LOW, ALIKE, target="yes", budget=6, **options)
    assert in_the_way <= e.ending.excluded.keys()
    assert all(name in e.advice for name in in_the_way)
    assert e.n_queries <= 6
    again = Explanation.from_json(e.to_json())
    assert again.advice == e.advice
    assert e.advice in unescape(e.to_html())
    assert in_the_way <= explanation_json(e)["excluded"].keys()
    assert verify(parsed(e.to_json())).holds


def test_advice_without_an_obstacle_is_general() -> None:
    e = acex.explain(never, LOW, ALIKE, target="yes", plausibility=None, budget=4)
    assert not e.ending.excluded
    assert "Raise budget" in e.advice


def test_an_answer_with_many_changes_says_what_helps() -> None:
    def all_high(rows: pd.DataFrame) -> Any:
        return np.where((rows > 0.5).all(axis=1), "yes", "no")

    e = acex.explain(all_high, LOW, ALIKE, budget=30)
    assert e.kinds == ()
    (remark,) = [remark for remark in e.remarks if remark.code == "may_be_improved"]
    assert "8 of 8 features" in remark.text
    assert "known outcomes" in remark.text and "a larger budget" in remark.text
    assert remark.text in str(e)
    assert remark.text in e.to_html()


def test_a_settled_search_does_not_advise_a_larger_budget() -> None:
    impatient = acex.Feasible(tolerance=0.999)
    e = acex.explain(lambda rows: rows["c0"] > 0.5, LOW, ALIKE, budget=60, strategy=impatient, prefer=None)
    assert e.stopped_by == "settled"
    (remark,) = [remark for remark in e.remarks if remark.code == "may_be_improved"]
    assert 'effort="spend"' in remark.text and "a larger budget" not in remark.text
