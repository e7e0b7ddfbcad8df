"""The columns of the data and those that the model was fitted with: what does not fit is told, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from skl2onnx import to_onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import acex
from acex.models.fit_check import refuse_misfit

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.normal(size=(60, 3)), columns=["income", "debt", "years at work"])
OUTCOME = pd.Series(np.where(NUMBERS["income"] > 0, "good", "bad"))
MIXED = NUMBERS.assign(job=RNG.choice(["clerk", "nurse"], 60), rank=RNG.integers(1, 4, 60))
FOREST = RandomForestClassifier(3, random_state=0)


def fitted(rows: Any = NUMBERS, model: Any = None) -> Any:
    return (RandomForestClassifier(3, random_state=0) if model is None else model).fit(rows, OUTCOME)


def by_name() -> Any:
    encoder = make_column_transformer((OneHotEncoder(), ["job"]), (StandardScaler(), ["income", "debt"]))
    return fitted(MIXED, make_pipeline(encoder, RandomForestClassifier(3, random_state=0)))


def no_query(rows: Any) -> Any:
    raise AssertionError("nothing must be asked")


# -- what fits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "data", "labels"),
    [
        (fitted(), NUMBERS, OUTCOME),
        (fitted().predict, NUMBERS, None),
        (fitted(NUMBERS.to_numpy()), NUMBERS.to_numpy(), None),
        (fitted(NUMBERS.to_numpy()), NUMBERS, None),  # without names only their number is known
        (fitted(), NUMBERS.to_numpy(), None),
        (by_name(), MIXED, OUTCOME),
        (by_name(), MIXED[["job", "debt", "income"]], None),  # a ColumnTransformer looks for what it needs
        (by_name(), MIXED.assign(note="none"), None),
        (fitted(MIXED, make_pipeline(FunctionTransformer(lambda r: r[["debt"]]), FOREST)), MIXED.assign(n=1), None),
        (fitted(model=VotingClassifier([("a", FOREST)])), NUMBERS.assign(extra=1), None),  # it may pick inside
        (lambda rows: ["good"] * len(rows), MIXED, OUTCOME),
        (lambda rows: ["good"] * len(rows), MIXED.to_numpy(), OUTCOME),
        (lambda rows: ["good"] * len(rows), MIXED[:5].assign(y=OUTCOME), OUTCOME[:5]),  # may be chance
    ],
)
def test_columns_that_fit_are_let_pass(model: Any, data: Any, labels: Any) -> None:
    refuse_misfit(model, data, labels)


# -- the outcome left among the columns ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model", [fitted(), fitted().predict_proba, GridSearchCV(FOREST, {}, cv=2).fit(NUMBERS, OUTCOME)]
)
@pytest.mark.parametrize("labels", [OUTCOME, None])
def test_the_outcome_left_among_the_columns_is_named(model: Any, labels: Any) -> None:
    with pytest.raises(ValueError, match="data also has 'y'"):
        refuse_misfit(model, NUMBERS.assign(y=OUTCOME), labels)


def test_the_outcome_is_named_even_where_the_model_would_ignore_it() -> None:
    """It would ignore every change of it, and each would be paid for."""
    with pytest.raises(ValueError, match="data also has 'y', 'note'"):
        refuse_misfit(by_name(), MIXED.assign(y=OUTCOME, note="none"), None)


def test_for_a_function_a_column_that_equals_the_labels_is_the_outcome() -> None:
    with pytest.raises(ValueError, match="'y' of data equals the outcomes"):
        acex.Explainer(no_query, NUMBERS.assign(y=OUTCOME), outcomes=OUTCOME)
    codes = (OUTCOME == "good").astype(float).to_numpy()
    with pytest.raises(ValueError, match=r"number 3 .*of data equals the outcomes"):
        acex.Explainer(no_query, np.column_stack([NUMBERS, codes]), outcomes=codes)


def test_a_column_that_the_model_was_fitted_with_is_no_outcome_left_behind() -> None:
    leak = NUMBERS.assign(y=(OUTCOME == "good").astype(int))
    refuse_misfit(fitted(leak), leak, leak["y"])


# -- fewer, more, in another order, one-hot --------------------------------------------------------------------


def test_a_model_that_wants_fewer_columns_says_which_are_too_many() -> None:
    with pytest.raises(
        ValueError, match=r"with the columns 'income', 'debt', 'years at work'; data also has 'id', 'n'.*drop"
    ) as caught:
        refuse_misfit(fitted(), NUMBERS.assign(id=range(60), n=1))
    assert "outcome" not in str(caught.value)


def test_a_model_that_wants_more_columns_says_which_are_missing() -> None:
    with pytest.raises(ValueError, match=r"data lacks 'debt'\.$"):
        refuse_misfit(fitted(), NUMBERS.drop(columns="debt"))
    with pytest.raises(ValueError, match="'debt'"):
        refuse_misfit(fitted(), NUMBERS.rename(columns={"debt": "dept"}))
    with pytest.raises(ValueError, match=r"data lacks 'job'\.$"):
        refuse_misfit(by_name(), MIXED.drop(columns=["job", "rank"]))


def test_a_model_that_wants_another_order_says_so() -> None:
    with pytest.raises(ValueError, match="'income'"):
        refuse_misfit(fitted(), NUMBERS[["debt", "income", "years at work"]])


@pytest.mark.parametrize("separator", ["_", "="])
def test_a_model_that_wants_one_hot_columns_says_so(separator: str) -> None:
    model = fitted(pd.get_dummies(MIXED, prefix_sep=separator))
    with pytest.raises(ValueError, match=rf"one-hot columns, such as 'job{separator}(clerk|nurse)'") as caught:
        refuse_misfit(model, MIXED, OUTCOME)
    assert "pd.get_dummies(rows).reindex(columns=model.feature_names_in_, fill_value=0)" in str(caught.value)


def test_the_advice_for_one_hot_columns_is_good() -> None:
    model = fitted(pd.get_dummies(MIXED))

    def encoding(rows: pd.DataFrame) -> Any:
        return model.predict(pd.get_dummies(rows).reindex(columns=model.feature_names_in_, fill_value=0))

    bad = MIXED[encoding(MIXED) == "bad"].iloc[0]
    assert acex.explain(encoding, bad, data=MIXED, target="good", budget=20).outcome == "found"


@pytest.mark.parametrize("data", [NUMBERS.assign(id=range(60)), NUMBERS.assign(id=range(60)).to_numpy()])
def test_where_there_are_no_names_the_number_of_columns_tells(data: Any) -> None:
    with pytest.raises(ValueError, match=r"3 columns, and data has 4"):
        refuse_misfit(fitted(NUMBERS.to_numpy()), data)


def test_without_names_too_the_outcome_is_named() -> None:
    codes = (OUTCOME == "good").astype(int)
    with pytest.raises(ValueError, match=r"number 3 .*of data equals the outcomes"):
        refuse_misfit(fitted(NUMBERS.to_numpy()), np.column_stack([NUMBERS, codes]), codes)


def test_a_calibrated_forest_is_left_to_say_so_itself() -> None:
    """Estimators inside estimators may pick columns: nothing is refused that might work."""
    model = CalibratedClassifierCV(FOREST, cv=2).fit(NUMBERS, OUTCOME)
    refuse_misfit(model, NUMBERS.assign(extra=1))


# -- files, and before a query is spent ------------------------------------------------------------------------


def test_a_model_from_a_file_knows_its_columns(tmp_path: Path) -> None:
    skops.io.dump(fitted(), tmp_path / "m.skops")
    with pytest.raises(ValueError, match="data also has 'id'"):
        refuse_misfit(acex.load_model(tmp_path / "m.skops"), NUMBERS.assign(id=1))
    (tmp_path / "m.onnx").write_bytes(to_onnx(by_name(), MIXED[:1]).SerializeToString())
    onnx = acex.load_model(tmp_path / "m.onnx")
    refuse_misfit(onnx, MIXED)
    with pytest.raises(ValueError, match="data lacks 'job'"):
        refuse_misfit(onnx, MIXED.drop(columns="job"))


def test_nothing_is_asked_before_the_columns_fit() -> None:
    model = fitted(model=LogisticRegression())
    model.decision_function = no_query
    with pytest.raises(ValueError, match="'y' is the outcome"):
        acex.explain(model, NUMBERS.assign(y=OUTCOME).iloc[0], data=NUMBERS.assign(y=OUTCOME), target="good")
