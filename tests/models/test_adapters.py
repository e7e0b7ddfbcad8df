"""Models as people have them, asked through acex and by themselves. The real packages: pip install 'acex[models]'."""

from __future__ import annotations

import json
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import acex
from acex import MissingExtra, load_model
from acex.models.adapters import _of_network, adapted, as_numeric, as_predict, known_labels
from acex.models.fit_check import refuse_misfit
from acex.models.labels import as_labels

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["a", "b", "c"])
TWO = (ROWS["a"] > 0).astype(int)
THREE = (ROWS["a"] > 0).astype(int) + (ROWS["b"] > 0)
MIXED = ROWS.assign(job=pd.Categorical(RNG.choice(["clerk", "nurse"], 200)))
slow = pytest.mark.slow


def package(name: str) -> Any:
    extra = "torch (CPU)" if name in ("torch", "keras") else "the extra [models]"
    return pytest.importorskip(name, reason=f"needs {extra}: {name} is not installed", exc_type=ImportError)


def labels_of(model: Any, rows: Any = ROWS) -> list[Any]:
    return as_labels(as_predict(model)(rows), len(rows))


def assert_can_be_explained(model: Any, rows: pd.DataFrame = ROWS, target: Any = 1, scores: bool = False) -> None:
    x = rows[[label != target for label in labels_of(model, rows)]].iloc[0]
    e = acex.explain(acex.Model(model, scores=scores), x, data=rows, target=target, budget=25)
    assert e.outcome == "found"
    assert labels_of(model, e.counterfactuals) == [target]


# -- XGBoost -------------------------------------------------------------------------------------------------


def xgboost_booster(objective: str, rows: pd.DataFrame = ROWS) -> Any:
    xgboost = package("xgboost")
    outcome, more = (THREE, {"num_class": 3}) if objective.startswith("multi") else (TWO, {})
    data = xgboost.DMatrix(rows, label=outcome, enable_categorical=True)
    return xgboost.train({"objective": objective, "nthread": 1, "max_depth": 3, **more}, data, 5)


@slow
@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob", "multi:softmax"])
def test_a_booster_of_xgboost_answers_as_its_classifier_would(objective: str) -> None:
    xgboost = package("xgboost")
    booster = xgboost_booster(objective)
    outcome = THREE if objective.startswith("multi") else TWO
    classifier = xgboost.XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(ROWS, outcome)
    assert known_labels(booster) == sorted(set(outcome))
    assert labels_of(booster) == classifier.predict(ROWS).tolist()
    scored = as_predict(booster, scores=True)(ROWS)
    assert_allclose(scored.probabilities, classifier.predict_proba(ROWS), atol=1e-6)
    assert labels_of(booster.predict) == labels_of(booster)
    assert labels_of(pickle.loads(pickle.dumps(adapted(booster)))) == labels_of(booster)


@slow
def test_a_booster_of_xgboost_that_gives_log_odds_decides_at_zero() -> None:
    booster = xgboost_booster("binary:logitraw")
    raw = booster.predict(package("xgboost").DMatrix(ROWS))
    assert labels_of(booster) == (raw > 0).astype(int).tolist()
    assert_allclose(as_predict(booster, scores=True)(ROWS).probabilities[:, 1], 1 / (1 + np.exp(-raw)), rtol=1e-5)


@slow
def test_a_booster_of_xgboost_can_be_explained() -> None:
    assert_can_be_explained(xgboost_booster("binary:logistic"))
    assert_can_be_explained(xgboost_booster("multi:softprob"), target=2, scores=True)
    assert_can_be_explained(xgboost_booster("binary:logistic", MIXED), MIXED)


@slow
def test_a_booster_of_xgboost_for_numbers_is_refused() -> None:
    for objective in ("reg:squarederror", "count:poisson", "rank:pairwise", "binary:hinge"):
        with pytest.raises(TypeError, match=f"XGBoost model was trained for '{objective}': it does not return labels"):
            as_predict(xgboost_booster(objective))


@slow
@pytest.mark.parametrize("ending", [".json", ".ubj"])
def test_a_file_of_xgboost_answers_as_the_model_did(ending: str, tmp_path: Path) -> None:
    xgboost = package("xgboost")
    path = tmp_path / f"m{ending}"
    early = xgboost.XGBClassifier(n_estimators=60, early_stopping_rounds=2, learning_rate=1.0, n_jobs=1)
    early.fit(ROWS[:100], TWO[:100] ^ (RNG.random(100) < 0.2), eval_set=[(ROWS[100:], TWO[100:])], verbose=False)
    assert early.best_iteration + 1 < early.get_booster().num_boosted_rounds()
    early.save_model(path)
    loaded = load_model(path)
    assert loaded.model_id.startswith("sha256:") and loaded.classes_ == [0, 1]
    assert loaded.predict(ROWS) == early.predict(ROWS).tolist()
    assert_allclose(loaded.predict_proba(ROWS)[:, 1], early.predict_proba(ROWS)[:, 1], atol=1e-6)
    with pytest.raises(ValueError, match="data"):
        acex.Explainer(loaded, ROWS[["b", "a", "c"]])
    with pytest.raises(ValueError, match="data also has 'y'"):
        refuse_misfit(loaded, ROWS.assign(y=TWO))
    assert pickle.loads(pickle.dumps(loaded)).predict(ROWS) == loaded.predict(ROWS)


# -- LightGBM ------------------------------------------------------------------------------------------------


def lightgbm_booster(objective: str, rows: pd.DataFrame = ROWS) -> Any:
    lightgbm = package("lightgbm")
    outcome, more = (THREE, {"num_class": 3}) if objective.startswith("multi") else (TWO, {})
    settings = {"objective": objective, "verbose": -1, "num_threads": 1, **more}
    return lightgbm.train(settings, lightgbm.Dataset(rows, label=outcome), 5)


@slow
@pytest.mark.parametrize("objective", ["binary", "multiclass", "multiclassova"])
def test_a_booster_of_lightgbm_answers_as_its_classifier_would(objective: str) -> None:
    lightgbm = package("lightgbm")
    booster = lightgbm_booster(objective)
    outcome = THREE if objective.startswith("multi") else TWO
    classifier = lightgbm.LGBMClassifier(objective=objective, n_estimators=5, verbose=-1, n_jobs=1).fit(ROWS, outcome)
    assert known_labels(booster) == sorted(set(outcome))
    assert labels_of(booster) == classifier.predict(ROWS).tolist()
    assert_allclose(as_predict(booster, scores=True)(ROWS).probabilities, classifier.predict_proba(ROWS), atol=1e-6)
    assert labels_of(pickle.loads(pickle.dumps(adapted(booster)))) == labels_of(booster)


@slow
def test_a_booster_of_lightgbm_can_be_explained() -> None:
    assert_can_be_explained(lightgbm_booster("binary"))
    assert_can_be_explained(lightgbm_booster("binary", MIXED), MIXED, scores=True)


@slow
def test_lightgbm_does_not_take_one_column_for_another() -> None:
    """Without a check it answers for the wrong columns."""
    with pytest.raises(ValueError, match="in another order"):
        acex.Explainer(lightgbm_booster("binary"), ROWS[["b", "a", "c"]])
    spaced = ROWS.rename(columns={"a": "a column"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it renames
        refuse_misfit(lightgbm_booster("binary", spaced), spaced)


@slow
def test_a_file_of_lightgbm_answers_as_the_model_did(tmp_path: Path) -> None:
    for objective, rows in (("binary", MIXED), ("multiclass", ROWS)):
        booster = lightgbm_booster(objective, rows)
        booster.save_model(tmp_path / "m.txt")
        loaded = load_model(tmp_path / "m.txt")
        assert labels_of(loaded, rows) == labels_of(booster, rows)
        assert_can_be_explained(loaded, rows)
    with pytest.raises(TypeError, match="'regression'"):
        as_predict(lightgbm_booster("regression"))


# -- CatBoost ------------------------------------------------------------------------------------------------

QUIET: dict[str, Any] = {"iterations": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
TEXTS = ROWS.assign(job=RNG.choice(["clerk", "nurse"], 200))


@slow
@pytest.mark.parametrize(
    "outcome", [TWO, TWO == 1, np.where(TWO, "yes", "no"), THREE], ids=["0/1", "flag", "text", "3"]
)
def test_a_classifier_of_catboost_answers_in_the_words_it_was_told(outcome: Any, tmp_path: Path) -> None:
    catboost = package("catboost")
    model = catboost.CatBoostClassifier(cat_features=["job"], **QUIET).fit(TEXTS, outcome)
    expected = [word if isinstance(word, str) else word.item() for word in model.predict(TEXTS).ravel()]
    assert labels_of(model, TEXTS) == expected
    assert known_labels(model) == np.unique(outcome).tolist()
    model.save_model(tmp_path / "m.cbm")
    loaded = load_model(tmp_path / "m.cbm")
    assert labels_of(loaded, TEXTS) == expected
    assert known_labels(loaded) == known_labels(model)
    assert_allclose(loaded.predict_proba(TEXTS), model.predict_proba(TEXTS), atol=1e-9)
    assert_can_be_explained(loaded, TEXTS, target=np.unique(outcome).tolist()[-1])
    with pytest.raises(ValueError, match="data lacks 'job'"):
        refuse_misfit(loaded, ROWS)


@slow
def test_the_plain_model_of_catboost_gives_labels_too() -> None:
    catboost = package("catboost")
    model = catboost.CatBoost({"loss_function": "Logloss", **QUIET}).fit(ROWS, TWO)
    assert labels_of(model) == model.predict(ROWS, prediction_type="Class").tolist()
    assert_can_be_explained(model, scores=True)


@slow
def test_catboost_without_labels_is_refused(tmp_path: Path) -> None:
    catboost = package("catboost")
    numbers = catboost.CatBoostRegressor(**QUIET).fit(ROWS, ROWS["a"])
    with pytest.raises(TypeError, match="'RMSE'"):
        as_predict(numbers)
    numbers.save_model(tmp_path / "m.cbm")
    loaded = load_model(tmp_path / "m.cbm")
    assert_allclose(as_numeric(loaded)(ROWS), numbers.predict(ROWS))
    with pytest.raises(TypeError, match="'RMSE'"):
        as_predict(loaded)
    with pytest.raises(TypeError, match="was trained for 'nothing yet'"):
        as_predict(catboost.CatBoostClassifier())


@slow
def test_a_threshold_of_catboost_is_not_passed_over(tmp_path: Path) -> None:
    catboost = package("catboost")
    model = catboost.CatBoostClassifier(**QUIET).fit(ROWS, TWO)
    model.set_probability_threshold(0.7)
    model.save_model(tmp_path / "m.cbm")
    loaded = load_model(tmp_path / "m.cbm")
    assert 0 < sum(labels_of(loaded)) == sum(model.predict_proba(ROWS)[:, 1] > 0.7)
    for asked in (model, loaded):
        with pytest.raises(TypeError, match="CatBoostClassifier"):
            as_predict(asked, scores=True)


# -- networks ------------------------------------------------------------------------------------------------


@slow
def test_a_module_of_torch_answers_without_chance() -> None:
    torch = package("torch")
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        net = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 3)).to(dtype)
        expected = net.eval()(torch.as_tensor(ROWS.to_numpy(), dtype=dtype)).argmax(dim=1).tolist()
        net.train()
        for asked in (net, torch.jit.script(net)):
            assert labels_of(asked) == labels_of(asked) == expected
        assert net.training  # as it was
        scored = as_predict(net, scores=True)(ROWS)
        assert_allclose(scored.probabilities.sum(axis=1), 1)
    assert_can_be_explained(net, target=labels_of(net)[0], scores=True)
    assert labels_of(pickle.loads(pickle.dumps(adapted(net)))) == expected


@slow
def test_a_module_of_torch_with_one_output_needs_a_sigmoid() -> None:
    torch = package("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
    expected = (net(torch.as_tensor(ROWS.to_numpy(), dtype=torch.float32))[:, 0] > 0.5).int().tolist()
    assert labels_of(net) == expected
    with pytest.raises(acex.ModelFailed, match="numbers"):
        acex.explain(net[0], ROWS.iloc[0], data=ROWS)
    own = type("Own", (torch.nn.Module,), {"predict": lambda self, rows: ["yes"] * len(rows)})()
    assert labels_of(own) == ["yes"] * len(ROWS)  # it says itself what it decides
    with pytest.raises(acex.ModelFailed, match="'job'"):
        acex.explain(net, TEXTS.iloc[0], data=TEXTS)


@slow
def test_a_keras_model_answers_as_it_does_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    package("torch")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = package("keras")
    keras.utils.set_random_seed(0)
    layers, entry = keras.layers, keras.layers.Input((3,))
    three = keras.Sequential([entry, layers.Dense(8, "relu"), layers.Dropout(0.5), layers.Dense(3, "softmax")])
    logits = keras.Model(entry, layers.Dense(3)(entry))
    expected = three.predict(ROWS.to_numpy(), verbose=0)
    assert labels_of(three) == labels_of(three.predict) == expected.argmax(axis=1).tolist()
    assert_allclose(as_predict(three, scores=True)(ROWS).probabilities, expected, atol=1e-6)
    assert labels_of(logits) == logits.predict(ROWS.to_numpy(), verbose=0).argmax(axis=1).tolist()
    for ending in ([layers.Dense(1, "sigmoid")], [layers.Dense(1), layers.Activation("sigmoid")]):
        two = keras.Sequential([keras.layers.Input((3,)), *ending])
        assert labels_of(two) == (two.predict(ROWS.to_numpy(), verbose=0)[:, 0] > 0.5).astype(int).tolist()
    with pytest.raises(ValueError, match="numbers"):
        labels_of(keras.Sequential([keras.layers.Input((3,)), layers.Dense(1)]))
    other = keras.layers.Input((2,))
    with pytest.raises(TypeError, match="has 2 inputs"):
        as_predict(keras.Model([entry, other], layers.Concatenate()([entry, other])))


# -- without the packages --------------------------------------------------------------------------------------


def test_outputs_become_labels_and_probabilities() -> None:
    table = np.array([[0.1, 2.0, -1.0], [3.0, 0.0, 0.0]])
    scored = as_predict(_of_network(lambda rows: table, False), scores=True)(ROWS[:2])
    assert scored.labels == [1, 0]
    assert_allclose(scored.probabilities, np.exp(table) / np.exp(table).sum(axis=1, keepdims=True))
    shares = np.array([[0.2, 0.8], [0.6, 0.4]])
    assert_allclose(_of_network(lambda rows: shares, False).predict_proba(ROWS[:2]), shares)
    one = _of_network(lambda rows: np.array([0.2, 0.8]), True)
    assert one.predict(ROWS[:2]) == [0, 1]
    assert np.ravel(as_numeric(one)(ROWS[:2])).tolist() == [0.2, 0.8]


@pytest.mark.parametrize(
    ("outputs", "ends_in_sigmoid", "message"),
    [
        (np.zeros((2, 1)), False, "1 numbers per row and does not end in a sigmoid"),
        (np.zeros((2, 3)), True, "3 numbers per row and ends in a sigmoid"),  # several labels at once?
        (np.zeros((2, 3, 4)), False, r"has the shape \(2, 3, 4\)"),
        (np.zeros((1, 3)), False, r"has the shape \(1, 3\)"),
    ],
)
def test_outputs_that_do_not_say_what_they_decide_are_refused(
    outputs: Any, ends_in_sigmoid: bool, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        _of_network(lambda rows: outputs, ends_in_sigmoid).predict(ROWS[:2])


@pytest.mark.parametrize("name", ["m.pt", "m.pth", "M.PT"])
def test_a_torch_file_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=r"(?i)m\.pth?' is not a model"):
        load_model(tmp_path / name, allow_pickle=True)


@pytest.mark.parametrize("name", ["m.json", "m.ubj", "m.txt", "m.cbm"])
def test_the_extra_for_a_booster_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for missing in ("xgboost", "lightgbm", "catboost"):
        monkeypatch.setitem(sys.modules, missing, None)
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(MissingExtra, match=r"acex\[models\]"):
        load_model(tmp_path / name)


@slow
@pytest.mark.parametrize(
    ("name", "content", "needs", "message"),
    [
        ("m.json", json.dumps({"trees": []}), "xgboost", "cannot be read as .json"),
        ("m.json", '{"learner": 3}', "xgboost", "cannot be read as"),
        ("m.json", '{"learner":' * 50_000, "xgboost", "cannot be read as"),
        ("m.ubj", "", "xgboost", "it is empty"),
        ("m.ubj", "garbage", "xgboost", "cannot be read as"),
        ("m.txt", "some notes", "lightgbm", "cannot be read as .txt"),
        ("m.txt", "tree\ngarbage", "lightgbm", "cannot be read as"),
        ("m.cbm", "garbage", "catboost", "cannot be read as"),
    ],
)
def test_garbage_is_no_booster(name: str, content: str, needs: str, message: str, tmp_path: Path) -> None:
    package(needs)
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message):
        load_model(tmp_path / name)
