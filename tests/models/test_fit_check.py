"""The columns of the data are those that the model was fitted with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from skl2onnx import to_onnx
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import acex
from acex.models.fit_check import refuse_misfit
from toys import not_asked

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


# -- what fits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "data", "outcomes"),
    [
        (fitted(), NUMBERS, OUTCOME),
        (fitted().predict, NUMBERS, None),
        (fitted().predict_proba, NUMBERS, None),
        (fitted(NUMBERS.to_numpy()), NUMBERS.to_numpy(), None),
        (fitted(NUMBERS.to_numpy()), NUMBERS, None),  # without names only their number is known
        (fitted(), NUMBERS.to_numpy(), None),
        (by_name(), MIXED, OUTCOME),
        (lambda rows: ["good"] * len(rows), MIXED, OUTCOME),
        (lambda rows: ["good"] * len(rows), MIXED.to_numpy(), OUTCOME),
        (lambda rows: ["good"] * len(rows), MIXED[:5].assign(y=OUTCOME), OUTCOME[:5]),  # may be chance
    ],
)
def test_columns_that_fit_are_accepted(model: Any, data: Any, outcomes: Any) -> None:
    refuse_misfit(model, data, outcomes)


# -- the outcome left among the columns ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [fitted(), fitted().predict_proba, by_name(), GridSearchCV(FOREST, {}, cv=2).fit(NUMBERS, OUTCOME)],
)
@pytest.mark.parametrize("outcomes", [OUTCOME, None])
def test_the_outcome_left_among_the_columns_is_named(model: Any, outcomes: Any) -> None:
    rows = MIXED if "job" in model_names(model) else NUMBERS
    with pytest.raises(ValueError, match="data also has 'y'"):
        refuse_misfit(model, rows.assign(y=OUTCOME), outcomes)


def model_names(model: Any) -> list[str]:
    return list(getattr(model, "__self__", model).feature_names_in_)


def test_for_a_function_a_column_that_equals_the_outcomes_is_refused() -> None:
    with pytest.raises(ValueError, match="'y'"):
        acex.Explainer(not_asked, NUMBERS.assign(y=OUTCOME), outcomes=OUTCOME)
    codes = (OUTCOME == "good").astype(float).to_numpy()
    with pytest.raises(ValueError, match="data"):
        acex.Explainer(not_asked, np.column_stack([NUMBERS, codes]), outcomes=codes)


def test_a_column_that_the_model_was_fitted_with_may_equal_the_outcomes() -> None:
    leak = NUMBERS.assign(y=(OUTCOME == "good").astype(int))
    refuse_misfit(fitted(leak), leak, leak["y"])


# -- fewer, more, in another order -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (fitted(), NUMBERS.assign(id=range(60), n=1), "also has 'id', 'n'"),
        (fitted(), NUMBERS.drop(columns="debt"), "lacks 'debt'"),
        (fitted(), NUMBERS.rename(columns={"debt": "dept"}), "lacks 'debt' and also has 'dept'"),
        (by_name(), MIXED.drop(columns=["job", "rank"]), "lacks 'job', 'rank'"),
        (by_name(), MIXED.assign(note="none"), "also has 'note'"),
        (fitted(), NUMBERS[["debt", "income", "years at work"]], "in another order"),
        (fitted(pd.get_dummies(MIXED)), MIXED, r"lacks 'job_clerk', 'job_nurse' and also has 'job'.*encode"),
        (fitted(model=VotingClassifier([("a", FOREST)])), NUMBERS.assign(extra=1), "also has 'extra'"),
    ],
)
def test_columns_that_do_not_fit_are_named(model: Any, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        refuse_misfit(model, data)


def test_the_advice_for_encoded_columns_works() -> None:
    model = fitted(pd.get_dummies(MIXED))

    def encoding(rows: pd.DataFrame) -> Any:
        return model.predict(pd.get_dummies(rows).reindex(columns=model.feature_names_in_, fill_value=0))

    bad = MIXED[encoding(MIXED) == "bad"].iloc[0]
    assert acex.explain(encoding, bad, data=MIXED, target="good", budget=20).outcome == "found"


@pytest.mark.parametrize("data", [NUMBERS.assign(id=range(60)), NUMBERS.assign(id=range(60)).to_numpy()])
def test_without_names_the_number_of_columns_is_checked(data: Any) -> None:
    with pytest.raises(ValueError, match="3 columns, and data has 4"):
        refuse_misfit(fitted(NUMBERS.to_numpy()), data)


def test_without_names_the_outcome_is_named_too() -> None:
    codes = (OUTCOME == "good").astype(int)
    with pytest.raises(ValueError, match="outcomes"):
        refuse_misfit(fitted(NUMBERS.to_numpy()), np.column_stack([NUMBERS, codes]), codes)


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
    model.decision_function = not_asked
    with pytest.raises(ValueError, match="also has 'y'"):
        acex.explain(model, NUMBERS.assign(y=OUTCOME).iloc[0], data=NUMBERS.assign(y=OUTCOME), target="good")
