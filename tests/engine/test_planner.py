"""What people wish of a counterfactual: few changes, what a category counts, a margin, labels in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import acex
from acex.audit.verify import verify
from acex.engine.certificate import parsed
from acex.engine.explanation import asked_rows
from acex.engine.recorded import load_explanation
from acex.search.candidates import from_hits, from_reference, random_points
from acex.space.region import Region
from commands import run
from problems import MIXED, problem

COOK = {"income": 2500.0, "debt": 1.3, "years": 2.0, "job": "cook"}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    numbers = {"income": rng.normal(3000, 800, 120), "debt": rng.normal(1, 0.4, 120), "years": rng.normal(4, 2, 120)}
    return pd.DataFrame({**numbers, "job": rng.choice(["cook", "nurse", "clerk"], 120)})


def total(rows: pd.DataFrame) -> pd.Series[float]:
    return rows["income"] / 800 - rows["debt"] / 0.4 + rows["years"] / 2


def approves(rows: pd.DataFrame) -> list[str]:
    return ["yes" if t > 3.5 else "no" for t in total(rows)]


# -- few changes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2])
def test_no_row_that_is_asked_changes_more_features_than_allowed(rows: pd.DataFrame, most: int) -> None:
    e = acex.explain(approves, COOK, data=rows, budget=25, max_changes=most, plausibility=None)
    X = e.plan.space.encode(asked_rows(e))
    assert (X[1:] != X[0]).sum(axis=1).max() <= most
    assert e.outcome == "found" and 1 <= len(e.changes) <= most


@given(st.integers(1, 5), st.integers(0, 100))
@settings(max_examples=15, deadline=None)
def test_candidates_change_few_features_where_few_may_change(most: int, seed: int) -> None:
    p = problem(MIXED)
    p = replace(p, region=Region.of(MIXED, p.factual, max_changes=most))
    rng = np.random.default_rng(seed)
    for X in (
        p.projected,
        from_reference(p, rng, 60),
        from_hits(p, rng, p.projected[:4], 60),
        random_points(p, rng, 60),
    ):
        assert p.region.contains(X).all()
        assert len(np.unique(X, axis=0)) > 4


def test_few_changes_that_cannot_be_are_refused_before_anything_is_asked(rows: pd.DataFrame) -> None:
    limits = {"income": (3000, 4000), "debt": (0, 1)}
    with pytest.raises(ValueError, match="by ranges and values 2 features cannot stay"):
        acex.explain(approves, COOK, data=rows, max_changes=1, ranges=limits)
    with pytest.raises(ValueError, match="max_changes"):
        acex.explain(approves, COOK, data=rows, max_changes=0)
    with pytest.raises(ValueError, match="max_changes"):
        acex.explain(approves, COOK, data=rows, max_changes=2, strategy="penalty")


# -- what a category counts ------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [0.5, 1.0, 3.0])
def test_a_change_of_category_counts_as_many_deviations_as_was_said(rows: pd.DataFrame, cost: float) -> None:
    def cooks(rows: pd.DataFrame) -> list[str]:
        return ["yes" if job == "nurse" else "no" for job in rows["job"]]

    e = acex.explain(cooks, COOK, data=rows, budget=20, cost=acex.Cost(per_category=cost))
    assert e.changes["feature"].tolist() == ["job"]
    assert_allclose(e.costs[0], (1 + 5) * cost)


def test_where_nothing_is_said_of_categories_the_paper_counts_one_over_the_deviation(rows: pd.DataFrame) -> None:
    def cooks(rows: pd.DataFrame) -> list[str]:
        return ["yes" if job == "nurse" else "no" for job in rows["job"]]

    own = acex.explain(cooks, COOK, data=rows, budget=20, cost=acex.Cost(per_category=None))
    assert_allclose(own.costs[0], 6 / own.plan.scale.deviations[3])
    plan = acex.Explainer(cooks, rows).search(COOK, strategy="penalty").plan
    assert plan.settings["cost"]["per_category"] is None


def test_a_cheaper_category_is_changed_instead_of_numbers(rows: pd.DataFrame) -> None:
    def either(rows: pd.DataFrame) -> list[str]:
        return ["yes" if job == "nurse" or t > 2.5 else "no" for job, t in zip(rows["job"], total(rows), strict=True)]

    features = [
        set(acex.explain(either, COOK, data=rows, budget=40, cost=acex.Cost(per_category=cost)).changes["feature"])
        for cost in (0.2, 20.0)
    ]
    assert features[0] == {"job"} and "job" not in features[1]


# -- the fewest first ------------------------------------------------------------------------------------


@given(st.floats(0.1, 5), st.integers(0, 20))
@settings(max_examples=20, deadline=None)
def test_a_charge_adds_the_same_for_every_change(charge: float, seed: int) -> None:
    p = problem(MIXED, seed=seed)
    plain, charged = p.cost, replace(p.cost, per_change=charge)
    changed = (p.reference != p.factual).sum(axis=1)
    assert_allclose(charged(p.reference) - plain(p.reference), 6 * charge * changed, rtol=1e-9, atol=1e-9)


def test_with_a_charge_one_long_step_is_taken_instead_of_two_short_ones(rows: pd.DataFrame) -> None:
    def either(rows: pd.DataFrame) -> list[str]:
        short = (rows["debt"] < 1.1) & (rows["years"] > 2.5)
        return ["yes" if a or b else "no" for a, b in zip(short, rows["income"] > 3300, strict=True)]

    told = [
        acex.explain(either, COOK, data=rows, budget=40, plausibility=None, cost=acex.Cost(per_change=charge))
        for charge in (0.0, 1.0)
    ]
    assert [len(e.changes) for e in told] == [2, 1]
    assert_allclose(told[1].costs[0], 6 * (1 + np.abs(told[1].changes["step"]).sum()))
    assert verify(parsed(told[1].to_json())).holds
    assert acex.Explanation.from_json(told[1].to_json()).settings["cost"]["per_change"] == 1.0


def test_a_charge_that_is_none_or_that_the_strategy_does_not_know_is_refused(rows: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="per_change"):
        acex.explain(approves, COOK, data=rows, cost=acex.Cost(per_change=-1))
    with pytest.raises(ValueError, match="per_change"):
        acex.explain(approves, COOK, data=rows, cost=acex.Cost(per_change=1), strategy="penalty")


# -- a margin --------------------------------------------------------------------------------------------


def test_margin_as_an_argument_is_the_margin_of_the_strategy(rows: pd.DataFrame) -> None:
    e = acex.explain(approves, COOK, data=rows, budget=15, strategy=acex.Feasible(margin=0.6))
    assert e.settings["strategy"]["margin"] == 0.6 and len(e.robustness) == 1
    same = acex.explain(approves, COOK, data=rows, budget=15, strategy=acex.Feasible(margin=0.6))
    pd.testing.assert_frame_equal(same.trace, e.trace)
    with pytest.raises(ValueError, match=r"margin: .*got 2"):
        acex.explain(approves, COOK, data=rows, strategy=acex.Feasible(margin=2))


# -- labels in words -------------------------------------------------------------------------------------


class Coded:
    """The same decisions as numbers, by a model that says which there are."""

    classes_ = (0, 1)

    def predict(self, rows: pd.DataFrame) -> list[int]:
        return [int(answer == "yes") for answer in approves(rows)]


NAMES = {0: "rejected", 1: "approved"}


def test_labels_have_their_names_in_the_result_its_texts_its_json_and_from_the_ledger(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    e = acex.explain(
        acex.Model(Coded(), class_names={0: "rejected", 1: "approved"}, name="coded"),
        COOK,
        data=rows,
        outcomes=["approved" if y == "yes" else "rejected" for y in approves(rows)],
        target="approved",
        budget=12,
        ledger=tmp_path / "a.db",
    )
    assert (e.label_before, e.label_after, e.target) == ("rejected", "approved", "approved")
    assert set(e.trace["label"]) == {"rejected", "approved"}
    assert e.steps[0].label == 0  # as the model said it
    assert "rejected -> approved" in str(e) and "Approved if " in e.to_html()
    back = acex.Explanation.from_json(e.to_json())
    pd.testing.assert_frame_equal(back.trace, e.trace)
    assert back.label_after == "approved" and back.steps[0].label == 0
    with acex.Ledger(tmp_path / "a.db") as ledger:
        assert {answer.label for answer in ledger.answers("coded")} == {0, 1}
        told = load_explanation(ledger, e.plan.identity)
        assert (told.label_before, told.label_after, told.target) == ("rejected", "approved", "approved")


def test_names_are_words_only_and_change_no_question(rows: pd.DataFrame) -> None:
    plain = acex.explain(Coded(), COOK, data=rows, target=1, budget=10)
    named = acex.explain(acex.Model(Coded(), class_names=NAMES), COOK, data=rows, target="approved", budget=10)
    pd.testing.assert_frame_equal(asked_rows(plain), asked_rows(named))
    assert plain.plan.identity == named.plan.identity


def test_told_labels_may_be_names_and_so_may_those_of_a_batch(rows: pd.DataFrame) -> None:
    explainer = acex.Explainer(acex.Model(Coded(), class_names=NAMES), rows)
    session = explainer.search(COOK, target="approved", budget=4)
    while (asked := session.ask()) is not None:
        session.tell(asked, [NAMES[label] for label in Coded().predict(pd.DataFrame(asked))])
    assert session.explanation().label_before == "rejected"
    many = explainer.explain_many(pd.DataFrame([COOK] * 2), target="approved", budget=6, n_jobs=1).frame()
    assert set(many["label_before"]) == {"rejected"} and set(many["label_after"]) <= {"approved", None}


def test_a_target_that_is_no_name_and_no_label_is_refused(rows: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="'granted'"):
        acex.explain(acex.Model(Coded(), class_names=NAMES), COOK, data=rows, target="granted")


CODED = """
def model(rows):
    return [int(t > 3) for t in rows["income"] / 800 - rows["debt"] / 0.4 + rows["years"] / 2]
"""


def test_the_shell_takes_the_same_wishes(tmp_path: Path, rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "rows.csv"
    rows.to_csv(table, index=False)
    (tmp_path / "acex_test_coded.py").write_text(CODED)
    monkeypatch.syspath_prepend(tmp_path)
    wishes = ["--class-name", "0=rejected", "--class-name", "1=approved", "--target", "approved", "--margin", "0.5"]
    wishes += ["--max-changes", "2", "--per-category", "0.5", "--per-change", "1", "--budget", "12", "--json"]
    row = int(np.argmin(total(rows)))
    told = run("explain", table, "--model", "acex_test_coded:model", "--row", row, *wishes)
    e = acex.Explanation.from_json(told.stdout)
    assert e.label_before == "rejected" and e.target == "approved"
    asked = e.settings
    assert (asked["max_changes"], asked["cost"]["per_category"], asked["strategy"]["margin"]) == (2, 0.5, 0.5)
    assert asked["cost"]["per_change"] == 1
    assert run("explain", table, "--model", "acex_test_coded:model", "--row", row, "--class-name", "1").exit_code == 2


def test_the_report_says_the_models_own_probability_or_else_how_steady_it_seems(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    def probable(rows: pd.DataFrame) -> pd.DataFrame:
        p = 1 / (1 + np.exp(3.5 - total(rows)))
        return pd.DataFrame({"yes": p, "no": 1 - p})

    e = acex.explain(
        acex.Model(probable, scores=True, name="p"), COOK, data=rows, target="yes", budget=10, ledger=tmp_path / "b.db"
    )
    [p] = e.probabilities
    assert_allclose(p, probable(e.counterfactuals)["yes"].iloc[0])
    assert f"a probability of {p:.2f}" in e.to_html() and e.robustness == ()
    with acex.Ledger(tmp_path / "b.db") as ledger:
        assert load_explanation(ledger, e.plan.identity).probabilities == (p,)
    assert acex.Explanation.from_json(e.to_json()).probabilities == (p,)
    labels = acex.explain(approves, COOK, data=rows, target="yes", budget=10)
    assert labels.probabilities == () and "The search estimates" in labels.to_html()


# -- an unusual row -------------------------------------------------------------------------------------------------


def about_the_row(plausibility: acex.Plausibility | None = None, **odd: object) -> list[str]:
    """The columns of the remarks on a usual person with some values replaced."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 70, 600)
    data = pd.DataFrame({"age": age, "years": (rng.random(600) * (age - 17)).astype(int), "tall": rng.normal(size=600)})
    explainer = acex.Explainer(lambda rows: rows["age"] > 30, data, plausibility=plausibility)
    session = explainer.search({"age": 40, "years": 10, "tall": 0.1} | odd, budget=2)
    return [name for remark in session.plan.remarks if remark.code == "unusual_row" for name in remark.columns]


def test_an_unusual_row_gets_a_remark_that_names_what_is_unusual() -> None:
    joint = acex.Plausibility(kind="joint")
    assert about_the_row(joint) == []
    assert {"age", "years"} & set(about_the_row(joint, age=30, years=40))
    assert about_the_row(acex.Plausibility(kind="lof"), age=30, years=40) == about_the_row(None, age=30, years=40) == []


@pytest.mark.parametrize(
    ("options", "forced"),
    [
        ({"values": {"job": ["nurse", "clerk"]}, "ranges": {"debt": (0.5, 1.2)}}, ("debt", "job")),
        ({"values": {"job": ["cook", "clerk"]}, "ranges": {"debt": (0.5, 1.5)}}, ()),
    ],
)
def test_changes_that_ranges_or_values_force_get_a_remark(
    rows: pd.DataFrame, options: dict[str, Any], forced: tuple[str, ...]
) -> None:
    plan = acex.Explainer(approves, rows).search(COOK, target="yes", budget=5, **options).plan
    assert [remark.columns for remark in plan.remarks if remark.code == "forced"] == [forced][: bool(forced)]


@pytest.mark.parametrize(("rule", "is_broken"), [("debt <= 0.5", True), ("debt <= 5", False)])
def test_a_row_that_breaks_a_rule_gets_a_remark(rows: pd.DataFrame, rule: str, is_broken: bool) -> None:
    plan = acex.Explainer(approves, rows).search(COOK, target="yes", budget=5, rules=[rule]).plan
    columns = [remark.columns for remark in plan.remarks if remark.code == "rules_broken" and rule in remark.text]
    assert columns == [("debt",)][:is_broken]
