"""Groups side by side: numbers by other hands, intervals that cover, tests that find nothing where nothing is."""

from __future__ import annotations

import json
import math
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import acex
from acex.audit.groups import Groups, estimate, grouping, holm, p_value, wilson
from acex.engine.row_result import RowResult
from toys import high as model


def line(cost: float = math.nan, features: tuple[str, ...] = (), queries: int = 5, outcome: str = "") -> RowResult:
    outcome = outcome or ("budget_spent" if math.isnan(cost) else "found")
    changes = dict.fromkeys(features, (0, 1))
    return RowResult(outcome, "no", "yes", cost, len(features), 0, changes, queries, 0, None)


def generated(n: int, seed: int = 0, shift: float = 0.0) -> tuple[list[RowResult], pd.Series[Any]]:
    """Rows of two groups; those of b cost more by `shift`."""
    rng = np.random.default_rng(seed)
    groups = pd.Series(rng.choice(["a", "b"], n), name="sex")
    names = np.array(["income", "debt", "score"])
    lines = []
    for group in groups:
        is_found = rng.uniform() < 0.8
        changed = tuple(names[rng.uniform(size=3) < 0.5]) or ("income",)
        cost = float(rng.gamma(4.0)) + (shift if group == "b" else 0.0) if is_found else math.nan
        lines.append(line(cost, changed if is_found else (), int(rng.integers(2, 15))))
    return lines, groups


def test_the_table_is_what_pandas_counts() -> None:
    lines, groups = generated(300)
    lines += [line(outcome="already_target"), line(outcome="failed", queries=1)]
    groups = pd.Series([*groups, "a", "b"], name="sex")
    compared = Groups.of(lines, groups)
    frame = pd.DataFrame(lines).assign(sex=groups)
    explained = frame[frame["outcome"].isin(["found", "budget_spent"])].groupby("sex")
    found = frame[frame["outcome"] == "found"].groupby("sex")
    table = compared.table
    assert table["rows"].to_dict() == frame.groupby("sex").size().to_dict()
    assert table["explained"].to_dict() == explained.size().to_dict()
    np.testing.assert_allclose(table["share"], found.size() / explained.size())
    for name, q in (("cost_q1", 0.25), ("cost", 0.5), ("cost_q3", 0.75)):
        np.testing.assert_allclose(table[name], found["cost"].quantile(q))
    np.testing.assert_allclose(table["changes"], found["n_changes"].mean())
    np.testing.assert_allclose(table["queries"], explained["queries"].mean())
    for name, low, high in (("share", "share_low", "share_high"), ("cost", "cost_low", "cost_high")):
        assert ((table[low] < table[name]) & (table[name] < table[high])).all()
    for group, feature, stated in compared.features[["group", "feature", "share"]].to_numpy().tolist():
        of = frame[(frame["outcome"] == "found") & (frame["sex"] == group)]
        assert stated == pytest.approx(np.mean([feature in changes for changes in of["changes"]]))
    assert compared.by == "sex" and compared.warnings == ()


@pytest.mark.parametrize("measure", ["cost", "changes"])
def test_intervals_are_those_of_whole_bootstrap_samples(measure: str) -> None:
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, size=31)
    take: Any = np.median if measure == "cost" else np.mean
    draws = take(rng.choice(values, size=(20_000, 31)), axis=1)
    value, low, high = estimate(measure, rng, values)
    assert value == take(values)
    np.testing.assert_allclose([low, high], np.quantile(draws, [0.025, 0.975]), rtol=0.05)


@pytest.mark.parametrize("measure", ["found", "cost", "changes"])
def test_p_values_are_those_of_random_permutations(measure: str) -> None:
    rng = np.random.default_rng(3)
    x, y = {
        "found": (np.repeat([1.0, 0.0], [9, 5]), np.repeat([1.0, 0.0], [4, 8])),
        "cost": (rng.gamma(4.0, size=12), rng.gamma(4.0, size=9) + 1.0),
        "changes": (rng.integers(1, 4, 12).astype(float), rng.integers(2, 5, 10).astype(float)),
    }[measure]
    take: Any = np.median if measure == "cost" else np.mean
    seen = abs(take(x) - take(y))
    shuffled = rng.permuted(np.tile(np.concatenate([x, y]), (20_000, 1)), axis=1)
    apart = np.abs(take(shuffled[:, : len(x)], axis=1) - take(shuffled[:, len(x) :], axis=1))
    assert p_value(measure, rng, x, y) == pytest.approx((apart >= seen - 1e-12).mean(), abs=0.03)


def test_one_value_of_a_group_has_no_p_value_but_one_of_its_share() -> None:
    rng, one, more = np.random.default_rng(0), np.array([1.0]), np.array([1.0, 0.0, 1.0])
    assert all(math.isnan(p_value(measure, rng, one, more)) for measure in ("cost", "changes", "queries"))
    assert p_value("found", rng, one, more) == 1.0


def test_a_group_of_one_row_has_numbers_without_intervals() -> None:
    compared = Groups.of([line(1.5, ("income",)), line(2.0), line(3.0)], pd.Series(["a", "b", "b"], name="sex"))
    assert "nan" not in str(compared)
    [of_one] = [text for text in str(compared).splitlines() if text.startswith("a ") and "%" in text]
    assert of_one.split() == ["a", "1", "100%", "(21%", "to", "100%)", "1.5", "1", "5"]


def test_adjusted_p_values_are_holm_s() -> None:
    # By hand: 3 * 0.01, then max(2 * 0.02, before), then max(0.04, before).
    np.testing.assert_allclose(holm(np.array([0.04, np.nan, 0.01, 0.02])), [0.04, np.nan, 0.03, 0.04])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]


def test_a_difference_that_is_there_is_found_and_one_that_is_not_is_not() -> None:
    for shift, is_there in ((2.0, True), (0.0, False)):
        compared: Any = Groups.of(*generated(400, shift=shift)).differences.set_index("measure")
        assert (compared.loc["cost", "p_adjusted"] < 0.01) == is_there
        assert (compared.loc["cost", "low"] <= 0 <= compared.loc["cost", "high"]) != is_there
        assert (compared.loc[["found", "changes", "queries"], "p_adjusted"] > 0.05).all()


def test_more_than_two_groups_are_each_compared_with_all_others() -> None:
    lines, _ = generated(120)
    compared = Groups.of(lines, pd.Series(["x", "y", "z"] * 40, name="g")).differences
    assert compared.groupby("group").size().to_dict() == {"x": 4, "y": 4, "z": 4}
    assert set(compared["other"]) == {"all others"}
    mine = [one.cost for one, g in zip(lines, ["x", "y", "z"] * 40, strict=True) if g == "x" and one.outcome == "found"]
    rest = [one.cost for one, g in zip(lines, ["x", "y", "z"] * 40, strict=True) if g != "x" and one.outcome == "found"]
    assert compared.iloc[1]["difference"] == pytest.approx(np.median(mine) - np.median(rest))


def test_small_and_lopsided_groups_get_a_warning() -> None:
    lines = [line(1.0, ("a",))] * 40 + [line()] * 5
    compared: Any = Groups.of(lines, pd.Series(["big"] * 40 + ["small"] * 5, name="g"))
    assert "fewer than 30 explained rows: small (5)" in compared.warnings[0]
    assert "differ much" in compared.warnings[1]
    assert np.isnan(compared.table.loc["small", "cost"]) and compared.table.loc["small", "share"] == 0
    assert "By g:" in str(compared) and "small" in str(compared)
    assert "only one group" in Groups.of(lines, pd.Series(["g"] * 45, name="g")).warnings[0]


def test_a_group_whose_rows_all_failed_has_no_numbers() -> None:
    lines = [line(1.0, ("a",))] * 40 + [line(outcome="failed")] * 3
    compared = Groups.of(lines, pd.Series(["good"] * 40 + ["bad"] * 3, name="g"))
    assert "nan" not in str(compared).lower() and "cannot be compared: bad." in compared.warnings[0]
    json.dumps(compared.to_dict(), allow_nan=False)


def test_the_same_seed_gives_the_same_numbers() -> None:
    lines, groups = generated(100)
    first, second = (Groups.of(lines, groups, seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, second.table)
    pd.testing.assert_frame_equal(first.differences, second.differences)


def test_a_redacted_column_makes_no_groups() -> None:
    rows = pd.DataFrame({"sex": ["f", "m", "f"], "old": [True, False, True]})
    for by in ("sex", ["old", "sex"], rows["sex"], rows):
        with pytest.raises(ValueError, match="'sex' is redacted"):
            grouping(by, rows, redact=["sex"])
    assert grouping("old", rows, redact=["sex"]).tolist() == ["True", "False", "True"]


def test_groups_are_columns_crossed_or_values() -> None:
    rows = pd.DataFrame({"sex": ["f", "m", None], "old": [True, False, True]})
    assert grouping("sex", rows).tolist() == ["f", "m", "(missing)"]
    assert grouping(["sex", "old"], rows).tolist() == ["f / True", "m / False", "(missing) / True"]
    assert grouping(["sex", "old"], rows).name == "sex and old"
    assert grouping(["sex", "sex"], rows).name == "sex"  # named twice
    assert grouping(pd.Series([1, 2, 2], name="band"), rows).name == "band"
    assert grouping(np.array([1, 2, 2]), rows).tolist() == ["1", "2", "2"]


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("age", "by: 'age' is not a column of the rows; there are 'n'"),
        ([], "by: .* is not a column"),
        ("n", "by: n has 30 groups"),
        (pd.Series([1, 2]), "by: expected one value for each of 30 rows, got 2"),
    ],
)
def test_wrong_groups_are_refused(by: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        grouping(by, pd.DataFrame({"n": range(30)}))


def test_ten_thousand_rows_take_little_memory() -> None:
    lines, groups = generated(10_000)
    tracemalloc.start()
    compared = Groups.of(lines, groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert compared.table["rows"].sum() == 10_000
    assert peak < 100e6


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["found", "cost", "changes"])
@pytest.mark.parametrize("n", [30, 120])
def test_intervals_cover_what_is_true(measure: str, n: int) -> None:
    """Of 1500 samples 95% should; between 92.5% and 97.5% pass."""
    rng = np.random.default_rng([n, len(measure)])
    draw: Any = {
        "found": lambda m: 1.0 * rng.binomial(1, 0.8, size=m),
        "cost": lambda m: rng.gamma(4.0, size=m),
        "changes": lambda m: 1.0 + rng.poisson(1.5, size=m),
    }[measure]
    true = {"found": 0.8, "cost": scipy.stats.gamma(4.0).median(), "changes": 2.5}[measure]
    one, two = 0, 0
    for _ in range(1500):
        x, y = draw(n), draw(n)
        if measure == "found":
            _, low, high = wilson(int(x.sum()), n)
        else:
            _, low, high = estimate(measure, rng, x)
        one += low <= true <= high
        _, low, high = estimate(measure, rng, x, y)
        two += low <= 0 <= high
    assert 0.925 <= one / 1500 <= 0.975
    assert 0.925 <= two / 1500 <= 0.985


@pytest.mark.slow
def test_p_values_of_groups_that_do_not_differ_are_spread_evenly() -> None:
    rng = np.random.default_rng(0)
    for measure in ("cost", "changes"):
        draw: Any = {"cost": lambda m: rng.gamma(4.0, size=m), "changes": lambda m: 1.0 + rng.poisson(1.5, size=m)}[
            measure
        ]
        p = np.array([p_value(measure, rng, draw(40), draw(60)) for _ in range(600)])
        for level in (0.05, 0.2, 0.5):
            assert abs((p <= level).mean() - level) < 4 * math.sqrt(level * (1 - level) / 600)


# -- of a batch ------------------------------------------------------------------------------------------------

X = pd.DataFrame(np.random.default_rng(0).normal(size=(160, 3)).round(4), columns=list("abc"))


def low() -> pd.DataFrame:
    rows: pd.DataFrame = X[model(X) == "low"].head(24)
    return rows


def test_a_batch_is_summed_up_by_groups() -> None:
    sex = pd.Series(["f", "m"] * 12, name="sex", index=low().index)
    many = acex.Explainer(model, X).explain_many(low(), target="high", budget=6, n_jobs=1)
    groups = many.summary(by=sex).groups
    assert groups is not None and groups.table["rows"].to_dict() == {"f": 12, "m": 12}
    assert "By sex:" in str(many.summary(by=sex))
    other = many.summary(by=np.repeat(["x", "y"], 12)).groups
    assert other is not None and other.table.index.tolist() == ["x", "y"]
    figure = groups.plot()
    assert "by sex" in figure.get_suptitle()
    costs, features = figure.axes
    found = groups.table["found"]
    assert [label.get_text() for label in costs.get_yticklabels()] == [f"f ({found['f']})", f"m ({found['m']})"]
    assert len(features.lines) == 2 and len(features.get_yticklabels()) == groups.features["feature"].nunique()


def test_no_group_comes_first_and_a_total_budget_gets_a_warning() -> None:
    by = np.repeat(["x", "y"], 12)
    many = acex.Explainer(model, X).explain_many(low(), target="high", budget=2, budget_total=60, n_jobs=1)
    first = [by[i] for i, _ in many.as_finished()][:12]
    assert 2 <= first.count("x") <= 10
    groups = many.summary(by=by).groups
    assert groups is not None and "budget_total" in groups.warnings[0]


@pytest.mark.slow
def test_a_null_experiment_finds_no_difference_and_the_same_with_one_group_first_does() -> None:
    """Names of groups are drawn by chance, and rows learn from each other; see the suite "groups" of benchmarks/."""
    from benchmarks.suite import Job
    from benchmarks.suites.groups import measure

    def measured(way: str) -> pd.DataFrame:
        jobs = [Job("simulated", way, seed, seed) for seed in range(8)]
        lines = pd.DataFrame([line for job in jobs for line in measure(job)]).dropna(subset="p")
        return lines.assign(small=lines["p"] <= 0.05)

    drawn, first = measured("drawn"), measured("first")
    assert drawn["small"].sum() <= scipy.stats.binom(len(drawn), 0.05).ppf(0.999)
    found = first[first["measure"] == "found"]
    assert found["small"].sum() >= 3  # of 8, where chance gives less than one
    assert found["difference"].mean() < -0.1


def test_values_with_the_index_of_the_rows_in_another_order_are_refused() -> None:
    rows = pd.DataFrame({"a": [1, 2, 3]}, index=["x", "y", "z"])
    sex = pd.Series(["f", "m", "m"], index=rows.index)
    assert grouping(sex, rows).tolist() == grouping(sex.to_numpy(), rows).tolist() == ["f", "m", "m"]
    for by in (sex.iloc[::-1], sex.iloc[::-1].to_frame("sex")):
        with pytest.raises(ValueError, match=r"by: the index is that of X in another order\. Pass by\.loc"):
            grouping(by, rows)
