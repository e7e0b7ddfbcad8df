"""From model, data and row to an explanation, as a user calls it."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

import acex
from acex.arrays import FloatArray
from acex.engine.explanation import asked_rows, is_reference_row
from benchmarks.generated import moons
from benchmarks.published import mnist
from conftest import needs_data
from toys import bank, people

QUICK = acex.Penalty(n0=8, sobol=256)


def loan() -> tuple[Any, pd.DataFrame, pd.Series[Any]]:
    """A model of loans, its data and a rejected row."""
    data = acex.datasets.loan()
    forest = RandomForestClassifier(30, random_state=0).fit(data.codes, data.outcomes)

    def model(rows: pd.DataFrame) -> Any:
        assert isinstance(rows, pd.DataFrame) and (rows.dtypes == data.rows.dtypes).all()
        assert list(rows.columns) == list(data.rows.columns)
        return forest.predict(data.space.encode(rows))

    rejected = data.rows[model(data.rows) == "rejected"]
    return model, data.rows, rejected.iloc[3]


def test_a_rejected_loan_is_explained() -> None:
    model, rows, x = loan()
    e = acex.explain(model, x, data=rows, target="approved", budget=60, freeze=["age"], seed=1)
    assert e.outcome == "found"
    assert (e.label_before, e.label_after) == ("rejected", "approved")
    assert model(e.counterfactuals)[0] == "approved"
    assert e.counterfactual["age"] == x["age"]
    assert (e.counterfactuals.dtypes == rows.dtypes).all()
    assert e.n_queries <= 60 and len(e.trace) == e.n_queries
    assert set(e.changes["feature"]) == {c for c in rows.columns if e.counterfactual[c] != x[c]}


def test_a_counterfactual_that_is_a_row_of_the_data_says_so() -> None:
    data = pd.DataFrame({"a": [0, 5, 9], "b": [1, 1, 1]})
    row = data.iloc[0]
    known = acex.explain(lambda rows: rows["a"] == 9, row, data=data, plausibility=None)
    assert known.counterfactual.to_dict() == {"a": 9, "b": 1}
    assert is_reference_row(known)
    made = acex.explain(lambda rows: rows["a"] > 5, row, data=data, plausibility=None)
    assert made.counterfactual["a"] == 6 and not is_reference_row(made)
    none = acex.explain(lambda rows: rows["a"] > 9, row, data=data, plausibility=None)
    assert not is_reference_row(none)


def test_every_row_asked_keeps_to_the_constraints() -> None:
    model, rows, x = loan()
    asked: list[pd.DataFrame] = []

    def watched(batch: pd.DataFrame) -> Any:
        asked.append(batch)
        return model(batch)

    acex.explain(
        watched,
        x,
        data=rows,
        budget=40,
        freeze=["age", "purpose"],
        ranges={"loan_amount": (5000, 20000)},
        values={"housing": ["own", "rent"]},
        directions={"education": "increase", "duration_months": "decrease"},
        rules=[lambda batch: batch["income"] < 5000],
        strategy=QUICK,
    )
    seen = pd.concat(asked)[1:]  # the first is the factual
    assert len(seen) > 20
    assert (seen["age"] == x["age"]).all() and (seen["purpose"] == x["purpose"]).all()
    assert seen["loan_amount"].between(5000, 20000).all()
    assert seen["housing"].isin(["own", "rent"]).all()
    assert (seen["education"].cat.codes >= list(rows["education"].cat.categories).index(x["education"])).all()
    assert (seen["duration_months"] <= x["duration_months"]).all()
    assert (seen["income"] < 5000).all()


def test_a_row_that_has_the_target_already_costs_one_query() -> None:
    model, rows, _ = loan()
    approved = rows[model(rows) == "approved"].iloc[0]
    e = acex.explain(model, approved, data=rows, target="approved")
    assert (e.outcome, e.n_queries) == ("already_target", 1)
    with pytest.raises(acex.NoCounterfactual, match="already approved"):
        _ = e.counterfactual


def test_answers_are_kept_so_a_second_explanation_goes_on_where_the_first_ended() -> None:
    model, rows, x = loan()
    explainer = acex.Explainer(model, rows)
    first = explainer.explain(x, budget=25, strategy=QUICK)
    second = explainer.explain(x, budget=2, strategy=QUICK)
    assert (first.n_queries, first.n_reused) == (25, 0)
    assert (second.n_queries, second.n_reused) == (2, 25)
    pd.testing.assert_frame_equal(asked_rows(first), asked_rows(second)[:25])


def test_the_budget_is_a_hard_cap_and_small_ones_still_work() -> None:
    model, rows, x = loan()
    for budget in (2, 3, 9):
        sent: list[int] = []

        def counted(batch: pd.DataFrame, sent: list[int] = sent) -> Any:
            sent.append(len(batch))
            return model(batch)

        e = acex.explain(counted, x, data=rows, budget=budget, strategy=QUICK)
        assert sum(sent) == e.n_queries == budget
        assert e.stopped_by == "budget"


def test_the_callback_sees_each_state() -> None:
    model, rows, x = loan()
    states: list[acex.Explanation] = []
    e = acex.explain(model, x, data=rows, budget=12, strategy=QUICK, callback=states.append)
    assert [s.n_queries for s in states] == list(range(1, 13))
    # What is worked out once, at the end, is all that the last one lacks.
    ended = replace(e.ending, stopped_by="unfinished", robustness=(), improvement_odds=())
    assert states[-1].to_json() == replace(e, ending=ended).to_json()


def test_more_than_two_classes_and_a_target_among_them() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LogisticRegression().fit(X, y)
    x = X[model.predict(X) == 0][0]
    e = acex.explain(model, x, data=X, target=2, budget=60, strategy=acex.Penalty(n0=15))
    assert e.label_after == 2
    with pytest.raises(ValueError, match="target"):
        acex.explain(model, x, data=X, target=7)


def test_arrays_come_back_as_arrays() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)

    def model(rows: Any) -> Any:
        assert isinstance(rows, np.ndarray) and rows.dtype == np.float32 and rows.ndim == 2
        return (rows.sum(axis=1) > 1).astype(int)

    e = acex.explain(model, X[0], data=X, freeze=[1], budget=40, strategy=QUICK)
    assert e.outcome == "found"
    assert e.counterfactual["x1"] == X[0, 1]
    assert model(e.counterfactuals.to_numpy(np.float32))[0] != model(X[:1])[0]


def two_moons() -> tuple[SVC, pd.DataFrame, float]:
    data = moons()
    svc = SVC(kernel="rbf", gamma=1).fit(data.rows.to_numpy(), data.outcomes)
    axes = [np.linspace(data.rows[c].min(), data.rows[c].max(), 601) for c in data.rows]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    z = (grid - [0.55, 0.25]) / data.rows.to_numpy().std(axis=0)
    cost = np.sqrt((z**2).sum(axis=1)) + 5 * np.abs(z).sum(axis=1)
    flips = svc.predict(grid) != svc.predict([[0.55, 0.25]])
    return svc, data.rows, float(cost[flips].min())


@pytest.mark.parametrize("seeds", [3, pytest.param(10, marks=pytest.mark.slow)])
def test_the_papers_two_dimensional_example(seeds: int) -> None:
    """At most 30 queries, within 1.15 times the least cost of a flip on a fine grid, in the median."""
    svc, rows, limit = two_moons()
    ratios = []
    for seed in range(seeds):
        e = acex.explain(
            lambda batch: svc.predict(batch.to_numpy()),
            {"x0": 0.55, "x1": 0.25},
            data=rows,
            budget=30,
            strategy=acex.Penalty(n0=4),
            seed=seed,
        )
        assert e.label_after != e.label_before and e.n_queries <= 30
        ratios.append(e.costs[0] / limit)
    assert np.median(ratios) <= 1.15


def explain_digit(reference: FloatArray, model: Any, x: FloatArray) -> None:
    assert acex.explain(model, x, data=reference, budget=30).outcome == "found"
    e = acex.explain(model, x, data=reference, budget=80, strategy=acex.Penalty(n0=50))
    assert e.outcome == "found" and e.n_queries <= 80
    best = e.counterfactuals.to_numpy()
    assert model(best)[0] == e.label_after != e.label_before == model(x[None])[0]
    # Better than simply showing the nearest known image of the other digit that was asked.
    others = e.trace[e.trace["hit"] & (e.trace["purpose"] == "initial")]
    assert e.costs[0] <= others["cost"].min()


def test_an_image_of_64_pixels_is_explained_within_80_queries() -> None:
    X, y = load_digits(n_class=2, return_X_y=True)
    explain_digit(X, LogisticRegression(max_iter=2000).fit(X, y).predict, X[0])


@pytest.mark.slow
@needs_data
def test_an_image_of_784_pixels_is_explained_within_80_queries() -> None:
    data = mnist()
    network = MLPClassifier((50,), max_iter=10, random_state=0).fit(data.rows.to_numpy() / 255, data.outcomes)
    x = mnist(split="test").rows.to_numpy()[0]
    explain_digit(data.rows.to_numpy()[:2000], lambda rows: network.predict(rows / 255), x)


def test_a_reference_of_50000_rows_works() -> None:
    X = np.random.default_rng(0).normal(size=(50_000, 20))
    for strategy in (QUICK, "feasible"):
        e = acex.explain(lambda rows: rows[:, 0] > 0.5, X[0], data=X, budget=15, strategy=strategy)
        assert e.settings["n_reference"] == 50_000
        assert e.n_queries <= 15 and e.outcome == "found"


def test_constant_columns_stay_as_they_are_and_cost_nothing() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:, 1] = 4.0
    e = acex.explain(lambda rows: rows[:, 0] > 0, X[0], data=X, budget=30, strategy=QUICK)
    assert (asked_rows(e)["x1"] == 4.0).all()
    assert np.isfinite(e.costs).all()


SCRIPT = """
import numpy as np, acex
X = np.random.default_rng(0).normal(size=(200, 4))
e = acex.explain(lambda r: r[:, 0] + r[:, 1] > 1, X[0], data=X, budget=14, strategy=acex.Penalty(n0=6, sobol=256))
print(np.array([list(s.row.values()) for s in e.steps]).tobytes().hex())
"""


def test_the_same_questions_in_every_process() -> None:
    seen = set()
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        out = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, check=True)
        seen.add(out.stdout)
    assert len(seen) == 1 and len(seen.pop()) > 14 * 4 * 16  # hexadecimal digits of doubles


@needs_data
@pytest.mark.parametrize("strategy", ["feasible", "penalty"])
@pytest.mark.parametrize("name", ["diabetes", "german_credit"])
def test_the_papers_data_are_explained(name: str, strategy: str) -> None:
    from benchmarks.scenario import scenario
    from benchmarks.task import Task

    g = scenario(name)
    x = g.rows[0]
    e = acex.Explainer(g.predict, g.reference, space=g.space, plausibility=acex.Plausibility(scale=False)).explain(
        x, budget=60, strategy=strategy
    )
    best = e.counterfactuals.to_numpy(float)
    assert g.predict(best)[0] != g.predict(x[None])[0]
    assert Task(g, x).allowed(best).all()
    assert e.n_queries <= 60


def test_the_examples_in_docstrings_are_true() -> None:
    import acex.api
    import acex.space.space

    for module in (acex.api, acex.space.space):
        result = doctest.testmod(module)
        assert result.attempted > 0 and result.failed == 0


# -- more than one answer, and more than labels ----------------------------------------------------------------


def test_several_counterfactuals_are_verified_different_and_within_the_budget() -> None:
    model, rows, x = loan()
    e = acex.explain(model, x, data=rows, target="approved", count=3, budget=60)
    assert e.n_queries <= 60 and len(e.counterfactuals) >= 2
    assert (model(e.counterfactuals) == "approved").all()
    assert list(e.costs) == sorted(e.costs)
    features = [set(e.changes_of(i)["feature"]) for i in range(len(e.counterfactuals))]
    assert all(a - b and b - a for i, a in enumerate(features) for b in features[:i])
    assert str(e).count("or (cost") == len(e.counterfactuals) - 1
    assert acex.Explanation.from_json(e.to_json()).costs == e.costs


def test_any_of_several_labels_will_do() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.digitize(X[:, 0], [-1, 0.0, 1.0])
    model = LogisticRegression().fit(X, y)
    x = X[model.predict(X) == 0][0]
    e = acex.explain(model, x, data=X, target=[2, 3], budget=40)
    assert e.label_after in (2, 3) and e.settings["target"] == [2, 3]
    assert acex.explain(model, x, data=X, target=[0, 3], budget=40).outcome == "already_target"
    with pytest.raises(ValueError, match="target 9 is not a label"):
        acex.explain(model, x, data=X, target=[1, 9])


def test_scores_of_an_estimator_and_of_a_function() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = LogisticRegression().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    x = X[model.predict(X) == "no"][0]
    e = acex.explain(acex.Model(model, scores=True), x, data=X, budget=30)
    f = acex.explain(
        acex.Model(lambda rows: pd.DataFrame(model.predict_proba(rows), columns=model.classes_), scores=True),
        x,
        data=X,
        budget=30,
    )
    assert e.label_after == f.label_after == "yes" and e.costs == f.costs
    assert model.predict(e.counterfactuals.to_numpy()).tolist() == ["yes"]


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (SVC(), TypeError, "scores=True .*SVC"),
        (lambda rows: ["a"] * len(rows), acex.ModelFailed, "a DataFrame of probabilities"),
        (lambda rows: pd.DataFrame({"a": [0.3], "b": [1.7]}), acex.ModelFailed, "probabilities from 0 to 1, got 1.7"),
    ],
)
def test_scores_that_are_none_are_refused(model: Any, error: type[Exception], message: str) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    if isinstance(model, SVC):
        model.fit(X, X[:, 0] > 0)
    with pytest.raises(error, match=message):
        acex.explain(acex.Model(model, scores=True), X[0], data=X)


def test_a_margin_is_reported() -> None:
    model, rows, x = loan()
    e = acex.explain(model, x, data=rows, budget=40, strategy=acex.Feasible(margin=0.6))
    assert len(e.robustness) == 1 and 0 < e.robustness[0] < 1
    assert acex.Explanation.from_json(e.to_json()).robustness == e.robustness
    plain = acex.explain(model, x, data=rows, budget=10)
    assert len(plain.robustness) == 1  # without scores that is all that can be said


def test_a_margin_with_known_outcomes_and_nothing_found_is_no_error() -> None:
    model, rows, x = loan()
    outcomes = model(rows)
    seen: list[str] = []
    steady = acex.Feasible(margin=0.6)
    acex.explain(
        model, x, data=rows, outcomes=outcomes, budget=3, callback=lambda e: seen.append(e.outcome), strategy=steady
    )
    assert seen[0] == "unfinished"  # after the factual alone there is no counterfactual yet


@pytest.mark.parametrize("count", [0, 2.5, "3"])
def test_a_count_that_is_no_number_is_refused(count: Any) -> None:
    model, rows, x = loan()
    with pytest.raises(ValueError, match="count"):
        acex.explain(model, x, data=rows, count=count)
    with pytest.raises(ValueError, match="'feasible'"):
        acex.explain(model, x, data=rows, count=2, strategy="penalty")


def test_a_target_that_the_model_never_gave_is_named() -> None:
    model, rows, x = loan()
    e = acex.explain(model, x, data=rows, target="aproved", budget=8)
    assert "never 'aproved'" in e.summary()


def test_a_target_that_is_the_label_of_the_row_in_other_capitals_costs_one_query() -> None:
    model, rows, x = loan()
    asked: list[int] = []

    def counted(table: pd.DataFrame) -> Any:
        asked.append(len(table))
        return model(table)

    with pytest.raises(ValueError, match=r"'Rejected' differs .* Did you mean 'rejected'\?"):
        acex.explain(counted, x, data=rows, target="Rejected", budget=40)
    assert sum(asked) == 1


def test_a_target_that_differs_from_an_answer_in_case_is_suggested() -> None:
    model, rows, x = loan()
    e = acex.explain(model, x, data=rows, target="Approved", budget=40, plausibility="none")
    assert "never 'Approved'. Did you mean 'approved'?" in e.summary()


def test_texts_that_a_function_never_gave_are_not_imported_unasked() -> None:
    rows = people()
    explainer = acex.Explainer(bank, rows)
    assert explainer.import_answers(rows[:9], bank(rows[:9])) == 9
    with pytest.raises(ValueError, match=r"'god' is not a label.* Did you mean 'good'"):
        explainer.import_answers(rows[9:11], ["bad", "god"])
    assert explainer.import_answers(rows[9:11], ["bad", "fair"], new_labels=True) == 2
    named = acex.Explainer(acex.Model(bank, class_names={"good": "yes", "bad": "no", "fair": "perhaps"}), rows)
    assert [named.import_answers(rows[:2], labels) for labels in (["good", "bad"], ["fair", "no"])] == [2, 0]
    numbers = acex.Explainer(lambda rows: (bank(rows) == "good").astype(int), rows)
    assert [numbers.import_answers(rows[i : i + 2], [i, i + 1]) for i in (0, 2)] == [2, 2]


def test_outcomes_belong_to_all_rows_those_with_gaps_included() -> None:
    rows = pd.DataFrame({"a": np.arange(40.0), "b": [1.0, 2.0] * 20})
    rows.loc[:9, "b"] = np.nan
    outcomes = np.where(rows["a"] > 20, "yes", "no")
    assert acex.Explainer(lambda table: table["a"] > 20, rows, outcomes=outcomes == "yes").remarks
    for wrong in (outcomes[:30], outcomes[:39]):
        with pytest.raises(ValueError, match=r"each of the 40 rows of data, the 10 with gaps included, got"):
            acex.Explainer(lambda table: table["a"] > 20, rows, outcomes=wrong)
    with pytest.raises(ValueError, match=r"the column itself, such as table\['b'\]"):
        acex.Explainer(lambda table: table["a"] > 20, rows.dropna(), outcomes="b")


def test_outcomes_in_another_order_than_the_rows_are_refused() -> None:
    model, rows, x = loan()
    outcomes = pd.Series(model(rows), index=rows.index)
    with pytest.raises(ValueError, match=r"outcomes\.loc\[data\.index\]"):
        acex.explain(model, x, data=rows, outcomes=outcomes.iloc[::-1], budget=5)
    for order in (
        outcomes,
        outcomes.reset_index(drop=True),
        outcomes.set_axis(range(1, len(rows) + 1)),
        list(outcomes),
    ):
        assert acex.Explainer(model, rows, outcomes=order).space.names == list(rows)


def test_plausibility_may_be_named() -> None:
    model, rows, x = loan()
    named, given = (acex.Explainer(model, rows, plausibility=p) for p in ("lof", acex.Plausibility(kind="lof")))
    assert named.search(x).plan.identity == given.search(x).plan.identity
    none, off = (acex.Explainer(model, rows, plausibility=p) for p in ("none", None))
    assert none.search(x).plan.identity == off.search(x).plan.identity
    with pytest.raises(ValueError, match="'joint', 'lof'"):
        acex.Explainer(model, rows, plausibility="Joint")


def test_fewer_counterfactuals_than_wanted_are_said_to_be_fewer() -> None:
    X = np.random.default_rng(0).normal(size=(200, 1))
    e = acex.explain(lambda rows: rows[:, 0] > 0, np.array([-0.5]), data=X, count=3, budget=60)
    assert len(e.counterfactuals) == 1
    assert [remark.code for remark in e.remarks] == ["fewer_found"]


def test_a_ledger_on_disk_needs_a_name_for_the_model_before_it_is_made(tmp_path: Path) -> None:
    model, rows, x = loan()
    with pytest.raises(ValueError, match="name"):
        acex.explain(model, x, data=rows, ledger=tmp_path / "answers.db")
    assert not list(tmp_path.iterdir())
    acex.explain(acex.Model(model, name="loans"), x, data=rows, ledger=tmp_path / "answers.db", budget=5)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.db"]  # closed: no log beside it
