"""Values that are missing, for models that take them: a gap is a value of its own, and disturbs no other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from pandas.testing import assert_frame_equal
from sklearn.ensemble import HistGradientBoostingClassifier

import acex
from acex import Continuous, Nominal, Plausibility, Region, Space
from acex.audit.verify import verify
from acex.engine.certificate import parsed
from acex.ledger import canonical
from acex.options import Options
from acex.search.evidence import Points, SearchContext
from acex.space.cost import Cost
from acex.space.feature import MISSING_CODE
from acex.space.rules import Rule
from acex.space.scale import Quantiles, Scale
from acex.space.space import holds_gaps, rows_in_form
from acex.spreadsheets import write_csv
from strategies import frames, modest

N = 150


def table(seed: int = 0) -> pd.DataFrame:
    """Loans with gaps in every column, of dtypes that hold them in their own ways."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "income": rng.integers(10, 90, N) * 100.0,
            "age": pd.array(rng.integers(18, 80, N), dtype="Int64"),
            "job": pd.array(rng.choice(["clerk", "cook", "nurse"], N), dtype="string"),
            "owner": pd.array(rng.random(N) < 0.5, dtype="boolean"),
            "rating": pd.Categorical(rng.choice(["low", "high"], N), ["low", "high"], ordered=True),
            "since": pd.date_range("2020-01-01", periods=N, freq="D"),
        }
    )
    for name in data.columns:
        data.loc[rng.random(N) < 0.15, name] = None
    return data


DATA = table()


def codes(rows: pd.DataFrame) -> Any:
    """What the model is given: numbers, and NaN."""
    days = (rows["since"] - pd.Timestamp("2020-01-01")).dt.days
    job = rows["job"].map({"clerk": 0, "cook": 1, "nurse": 2})
    rating = rows["rating"].map({"low": 0, "high": 1})
    columns = (rows["income"], rows["age"], job, rows["owner"], rating, days)
    return np.column_stack([column.astype("Float64").to_numpy(float, na_value=np.nan) for column in columns])


IS_GOOD = (DATA["income"] > 5000) | (DATA["job"] == "clerk").fillna(False)
TREES = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(codes(DATA), np.array(IS_GOOD, dtype=bool))


class Bank:
    """A model that takes gaps, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[pd.DataFrame] = []

    def __call__(self, rows: pd.DataFrame) -> Any:
        assert rows.dtypes.tolist() == DATA.dtypes.tolist()
        self.asked.append(rows)
        return np.where(TREES.predict(codes(rows)), "good", "bad")

    @property
    def n_asked(self) -> int:
        return sum(map(len, self.asked))


def rejected(missing: str | None) -> pd.DataFrame:
    """The rows that are bad and have a gap in this column, or none at all."""
    bad = ~TREES.predict(codes(DATA))
    has = DATA.notna().all(axis=1) if missing is None else DATA[missing].isna()
    rows: pd.DataFrame = DATA[bad & has.to_numpy()]
    return rows


SPACE = acex.Space.infer(DATA, missing="keep")
KEEP: dict[str, Any] = {"data": DATA, "space": SPACE, "target": "good", "budget": 15}


@pytest.fixture(scope="module")
def explainer() -> acex.Explainer:
    return acex.Explainer(Bank(), DATA, share_answers=False, space=acex.Space.infer(DATA, missing="keep"))


@pytest.fixture(scope="module")
def filled(explainer: acex.Explainer) -> acex.Explanation:
    """A row without an income, for which one is asked."""
    return explainer.explain(rejected("income").iloc[0], target="good", budget=15, ranges={"income": (0, 9000)})


# -- rows and points ---------------------------------------------------------------------------------------


@modest
@given(frames(), st.data())
def test_rows_with_gaps_come_back_with_values_and_dtypes(rows: pd.DataFrame, draw: st.DataObject) -> None:
    for name in [c for c in rows.columns if holds_gaps(rows[c].dtype)]:
        gone = draw.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        assume(not all(gone))
        rows[name] = (
            rows[name].mask(np.array(gone)) if rows[name].dtype != object else rows[name].mask(np.array(gone), None)
        )
    space = Space.infer(rows, missing="keep")
    X = space.encode(rows)
    assert np.isfinite(X).all()
    assert (space.is_gap(X) == rows.isna().to_numpy()).all()
    assert_frame_equal(space.decode(X), rows)
    assert (space.snap(X) == X).all()
    again = Space.from_dict(json.loads(json.dumps(space.to_dict())))
    assert (again.encode(rows) == X).all()
    assert_frame_equal(again.decode(X), rows)


def test_a_gap_in_a_column_of_objects_stays_none_or_nan() -> None:
    for gap in (None, float("nan")):
        rows = pd.DataFrame({"word": pd.Series(["a", gap, "b"], dtype=object)})
        back = Space.infer(rows, missing="keep")
        [_, told, _] = back.decode(back.encode(rows))["word"].tolist()
        assert told is None if gap is None else told is not None and np.isnan(told)


def test_rows_are_asked_again_with_their_gaps() -> None:
    rows = DATA.assign(word=pd.Series(["a", None] * (N // 2), dtype=object))
    space = Space.infer(rows, missing="keep")
    written = [json.loads(form) for form in canonical(rows)]
    again = rows_in_form(written, space.form())
    assert_frame_equal(again, rows)
    assert again["word"].iloc[1] is None


def test_gaps_of_an_array_are_nan() -> None:
    rows = np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 4.0]], dtype=np.float32)
    space = Space.infer(rows, missing="keep")
    np.testing.assert_array_equal(space.decode(space.encode(rows)), rows)


def test_without_keep_nothing_is_as_it_was_not() -> None:
    data = DATA.dropna()
    assert not any(f.gaps for f in Space.infer(data).features)
    assert "gaps" not in json.dumps(Space.infer(data).to_dict())


def test_a_kind_that_has_no_place_for_gaps_says_so() -> None:
    with pytest.raises(ValueError, match="'yes'"):
        Continuous("a", 0, 1, gaps="yes")  # type: ignore[arg-type]
    data = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]})
    with pytest.raises(ValueError, match="'b': every value is missing"):
        Space.infer(data, missing="keep")
    with pytest.raises(ValueError, match="'drop'"):
        Space.infer(numbers(), missing="fill")  # type: ignore[arg-type]


# -- gaps of the reference disturb nothing -----------------------------------------------------------------


def numbers(n: int = 300, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n).round(2)
    return pd.DataFrame({"a": a, "b": (2 * a + 0.2 * rng.normal(size=n)).round(2), "c": rng.normal(size=n).round(2)})


def with_gaps(data: pd.DataFrame, share: float = 0.25) -> pd.DataFrame:
    hidden = np.random.default_rng(2).random(data.shape) < share
    return data.mask(hidden)


def test_scale_quantiles_and_grid_are_those_of_the_known_values() -> None:
    data = with_gaps(numbers())
    space = Space.infer(data, missing="keep")
    X = space.encode(data)
    scale = Scale.of(space, X)
    for j, name in enumerate(data.columns):
        known = data[name].dropna()
        alone = Space.infer(known.to_frame())
        points = alone.encode(known.to_frame())
        assert_allclose(scale.deviations[j], Scale.of(alone, points).deviations[0])
        values, ranks = Quantiles.of(scale, X).knots[j]
        expected = Quantiles.of(Scale.of(alone, points), points).knots[0]
        assert_allclose(values, expected[0])
        assert_allclose(ranks, expected[1])
        assert (space.features[j].grid, space.features[j].low) == (alone.features[0].grid, known.min())
        assert scale.middle[j] in known.tolist()


@pytest.mark.parametrize("kind", ["joint", "lof"])
def test_rows_look_as_real_among_rows_with_gaps_as_among_whole_ones(kind: Any) -> None:
    whole, holey = numbers(), with_gaps(numbers())
    fresh = numbers(100, seed=5)
    odd = fresh.assign(b=-fresh["b"])[fresh["b"].abs() > 2]
    shares = []
    for data in (whole, holey):
        space = Space.infer(data, missing="keep").reaching(pd.concat([fresh, odd]))[0]
        points = space.encode(data)
        density = Plausibility(kind=kind).fit(points, Scale.of(space, points))
        shares.append((density.plausible(space.encode(fresh)).mean(), density.plausible(space.encode(odd)).mean()))
        assert np.isfinite(density.score(points)).all()
    assert_allclose(shares[0], shares[1], atol=0.1)
    assert shares[1][0] > 0.9
    assert kind == "lof" or shares[1][1] < 0.1


def test_what_is_missing_is_never_strange_itself() -> None:
    data = with_gaps(numbers())
    space = Space.infer(data, missing="keep")
    points = space.encode(data)
    density = Plausibility(kind="joint").fit(points, Scale.of(space, points))
    whole = numbers(100, seed=5)
    odd = whole.assign(b=-whole["b"])[whole["b"].abs() > 2]
    assert not density.plausible(space.reaching(odd)[1]).any()
    unknown = odd.assign(b=np.nan)
    assert density.plausible(space.reaching(unknown)[1]).mean() > 0.9


def test_a_search_sees_finite_numbers_only(explainer: acex.Explainer) -> None:
    _, problem = explainer._planner.plan(rejected("income").iloc[0], Options.of({"target": "good"}))
    context = problem.cached(SearchContext)
    points = Points(context, problem.reference)
    for numbers_seen in (points.Z, points.S, points.R, points.costs, points.ranks, context.rows.Z, problem.projected):
        assert np.isfinite(numbers_seen).all()
    assert np.abs(points.Z).max() < 100
    assert np.abs(points.S).max() < 100
    assert problem.region.contains(problem.projected).all()


# -- what a row may become ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["income", "age", "job", "since"])
def test_a_gap_stays_a_gap(explainer: acex.Explainer, name: str) -> None:
    row = rejected(name).iloc[[0]]
    e = explainer.explain(row, target="good", budget=15)
    assert e.outcome == "found"
    assert e.trace[name].isna().all()
    assert_frame_equal(e.trace[row.columns].iloc[:1], row.reset_index(drop=True))
    assert e.counterfactuals.dtypes.tolist() == DATA.dtypes.tolist()


def test_a_row_of_gaps_only_says_how_they_may_change() -> None:
    data = pd.DataFrame({"job": ["clerk", "cook", None] * 20})
    explainer = acex.Explainer(lambda rows: rows["job"] == "cook", data, space=Space.infer(data, missing="keep"))
    with pytest.raises(ValueError, match=r"missing in the row \(ranges or values let it change\)"):
        explainer.explain({"job": None}, target=True)
    assert explainer.explain({"job": None}, target=True, values={"job": ["cook"]}, budget=3).outcome == "found"


def test_a_value_stays_a_value_and_the_model_sees_the_table_s_own_dtypes() -> None:
    bank = Bank()
    e = acex.explain(bank, rejected(None).iloc[0], **KEEP)
    assert bank.n_asked == e.n_queries
    assert all(rows.notna().all(axis=None) for rows in bank.asked)


RANGES: dict[str, Any] = {
    "income": (0, 9000),
    "age": (20, 60),
    "job": ["clerk", "cook"],
    "owner": [True, False],
    "rating": ["low", "high"],
    "since": ("2020-02-01", "2020-03-01"),
}


@pytest.mark.parametrize("name", DATA.columns)
def test_a_value_is_found_where_one_is_asked_for(explainer: acex.Explainer, name: str) -> None:
    limits: dict[str, Any] = {"values" if isinstance(RANGES[name], list) else "ranges": {name: RANGES[name]}}
    e = explainer.explain(rejected(name).iloc[0], target="good", budget=15, **limits)
    assert e.outcome == "found"
    [change] = [change for _, change in e.changes.iterrows() if change["feature"] == name]
    assert pd.isna(change["before"])
    assert e.trace[name].iloc[1:].notna().all()
    if name in ("income", "age"):
        assert e.trace[name].iloc[1:].between(*RANGES[name]).all()
    assert any(f"{name} would have to change from missing to " in sentence.lower() for sentence in e.sentences())


@pytest.mark.parametrize("name", ["income", "job", "rating"])
def test_a_gap_is_made_where_one_is_asked_for(explainer: acex.Explainer, name: str) -> None:
    e = explainer.explain(rejected(None).iloc[0], target="good", budget=10, values={name: [None]})
    assert e.trace[name].iloc[1:].isna().all()
    assert verify(parsed(e.to_json())).holds


def test_a_category_may_be_given_or_missing() -> None:
    space = Space((Nominal("job", ("a", "b", "c"), gaps=True), Continuous("x", 0, 1)))
    region = Region.of(space, np.array([0.0, 0.5]), values={"job": ["b", None]})
    assert region.allowed[0].tolist() == [1.0, 3.0]
    assert space.features[0].limits(region.allowed[0]) == ["b", None]
    plain = Region.of(space, np.array([0.0, 0.5]))
    assert plain.snap(np.array([[3.0, 0.5], [2.0, 0.5]]))[:, 0].tolist() == [0.0, 2.0]


def test_a_change_from_and_to_a_gap_costs_what_a_category_does_whichever_the_value() -> None:
    data = numbers()
    space = Space.infer(data, missing="keep")
    X = space.encode(data)
    scale, x = Scale.of(space, X), X[0].copy()
    gap = x.copy()
    gap[1] = MISSING_CODE
    costs = Cost(per_category=1.5).function(space, scale, gap)(np.where(np.arange(3) == 1, X, gap))
    assert_allclose(costs, 6 * 1.5)
    assert_allclose(Cost(per_category=1.5).function(space, scale, x)(gap[None]), 6 * 1.5)
    assert_allclose(Cost(per_category=None).function(space, scale, gap)(x[None]), 6 * 2.0)
    far = np.linalg.norm(scale.coordinates(gap[None]) - scale.coordinates(X), axis=1)
    assert (far >= 2.0).all()


def test_rules_say_nothing_where_a_value_is_missing() -> None:
    space = Space.infer(with_gaps(numbers()), missing="keep")
    rule = Rule.of("a <= b", space)
    X = np.array(
        [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [MISSING_CODE, 1.0, 0.0], [1.0, MISSING_CODE, 0.0], [2.0, 1.0, MISSING_CODE]]
    )
    assert rule.holds(X, X[0]).tolist() == [True, False, True, True, False]


def test_a_constraint_sees_the_gaps(explainer: acex.Explainer) -> None:
    seen = []

    def known_age(rows: pd.DataFrame) -> Any:
        seen.append(rows["income"].isna().all())
        return rows["age"].notna().to_numpy()

    row = DATA[DATA["income"].isna() & DATA["age"].notna()].iloc[0]
    assert explainer.explain(row, budget=5, rules=[known_age]).steps
    assert seen and all(seen)


def test_the_paper_s_strategy_leaves_gaps_alone_and_fills_in_none(explainer: acex.Explainer) -> None:
    row = rejected("age").iloc[0]
    e = explainer.explain(row, target="good", strategy="penalty", budget=6)
    assert len(e.trace) > 1 and e.trace["age"].isna().all()
    with pytest.raises(ValueError, match="'feasible'"):
        explainer.search(row, strategy="penalty", ranges={"age": (20, 60)})


# -- what is wrong is said ---------------------------------------------------------------------------------


def test_a_gap_in_the_row_names_keep_where_gaps_are_dropped() -> None:
    with pytest.raises(ValueError, match="'income'"):
        acex.explain(Bank(), rejected("income").iloc[0], **KEEP | {"space": None})


def test_all_gaps_in_the_row_are_reported_together() -> None:
    data = numbers()
    with pytest.raises(ValueError, match="'a': the value is missing"):
        acex.explain(lambda rows: [0] * len(rows), {"a": None, "b": 1.0, "c": np.nan}, data=data)


def test_a_gap_where_the_column_cannot_hold_one_is_refused() -> None:
    data = pd.DataFrame({"n": np.arange(30), "x": np.arange(30.0)})
    with pytest.raises(ValueError, match="'n': the value is missing"):
        acex.explain(
            lambda rows: [0] * len(rows), {"n": None, "x": 1.0}, data=data, space=acex.Space.infer(data, missing="keep")
        )


def test_a_gap_cannot_be_asked_for_where_there_are_none() -> None:
    data = numbers()
    with pytest.raises(ValueError, match=r"values\['a'\]"):
        acex.explain(lambda rows: [0] * len(rows), data.iloc[0], data=data, values={"a": [None]})


# -- ledger, files, batches, shell -------------------------------------------------------------------------


def test_nothing_is_paid_twice_and_all_is_as_it_was(tmp_path: Path) -> None:
    path, row, bank = tmp_path / "ledger.db", rejected("income").iloc[0], Bank()
    options: dict[str, Any] = KEEP | {"ranges": {"income": (0, 9000)}, "ledger": path}
    model = acex.Model(bank, name="bank")
    first = acex.explain(model, row, **options)
    again = acex.explain(model, row, **options)
    assert bank.n_asked == first.n_queries > 1
    assert again.n_queries == 0
    assert_frame_equal(again.trace, first.trace)
    with acex.Ledger(path) as ledger:
        stored = acex.load_explanation(ledger, ledger.tables.explanations()["id"].iloc[0])
    assert_frame_equal(stored.trace, first.trace)
    assert stored.costs == first.costs


def test_an_explanation_with_gaps_comes_back_from_json_and_is_verified(filled: acex.Explanation) -> None:
    text = filled.to_json()
    assert "NaN" not in text
    back = acex.Explanation.from_json(text)
    assert_frame_equal(back.trace, filled.trace)
    assert back.to_json() == text
    assert verify(parsed(text), model=Bank()).holds


def test_reports_and_letters_have_a_word_for_it(explainer: acex.Explainer, filled: acex.Explanation) -> None:
    page = filled.to_html()
    assert "missing" in page
    assert not re.search(r"\b(nan|NaT|None)\b|&lt;NA&gt;", page.partition("<script")[0])
    stays = explainer.explain(rejected("age").iloc[0], target="good", budget=10)
    assert "stays missing" in stays.to_html()
    german = acex.sentences.Templates(switch="{feature}: {after} statt {before}", words={"missing": "keine Angabe"})
    assert "statt keine Angabe" in " ".join(filled.sentences(german))
    assert filled.plot("changes").axes


def test_a_batch_takes_rows_with_gaps(explainer: acex.Explainer) -> None:
    rows = pd.concat([rejected("income").head(1), rejected("job").head(1), rejected(None).head(1)])
    many = explainer.explain_many(rows, target="good", budget=8, n_jobs=1, progress=False)
    found = pd.concat([e.counterfactuals.set_axis([name]) for name, e in zip(rows.index, many, strict=True) if e.costs])
    assert len(found) and found.dtypes.tolist() == DATA.dtypes.tolist()
    assert (found.isna() == rows.loc[found.index].isna()).all(axis=None)
    assert not re.search(r"\b(nan|NaT|None)\b", write_csv(many.table()))


def test_the_shell_keeps_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    data = with_gaps(numbers(60)).assign(job=pd.Series(["a", "b", None] * 20, dtype=object))
    data.loc[0] = [np.nan, -1.0, 0.5, None]
    data.to_csv("rows.csv", index=False)
    Path("model_with_gaps.py").write_text(
        "import numpy as np\ndef decide(rows):\n    return np.where(rows.b.fillna(-9) > 0, 'yes', 'no')\n"
    )
    command = ["explain", "rows.csv", "--model", "model_with_gaps:decide", "--row", 0, "--budget", 8]
    refused = run(*command)
    assert refused.exit_code == 2
    assert "--missing keep" in refused.stderr
    kept = run(*command, "--missing", "keep", "--json")
    assert kept.exit_code == 0, kept.stderr
    told = json.loads(kept.stdout)
    assert told["counterfactuals"][0]["a"] is None and told["counterfactuals"][0]["job"] is None
    filled = run(*command, "--missing", "keep", "--range", "a=:", "--values", "job=a|missing")
    assert "missing" in filled.stdout
    gone = run(*command, "--missing", "keep", "--values", "c=missing", "--json")
    assert json.loads(gone.stdout)["counterfactuals"][0]["c"] is None
    assert "--missing keep" in run(*command, "--values", "c=missing").stderr
    assert "'drop' or 'keep', got 'fill'" in run(*command, "--missing", "fill").stderr
