"""A number is wanted, of a regressor, of a function, of a label's probability: all that is promised of labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

import acex
from acex.engine.explanation import asked_rows
from acex.engine.recorded import load_explanation
from acex.errors import ModelFailed
from acex.ledger import canonical
from acex.ledger.sql import Ledger
from acex.search.evidence import one_sided, unit_of
from commands import run
from ledgers import Bill, Seller, killed
from servers import Handler, serving
from toys import not_asked

RNG = np.random.default_rng(3)
DATA = pd.DataFrame({"size": RNG.normal(80, 20, 120).round(1), "rooms": RNG.integers(1, 6, 120)})
RENT = (7 * DATA["size"] + 55 * DATA["rooms"] + 1 / 3).to_numpy()
X = DATA[(RENT > 600) & (RENT < 680)].iloc[0]


def rent(rows: pd.DataFrame) -> Any:
    return (7 * rows["size"] + 55 * rows["rooms"] + 1 / 3).to_numpy()


@pytest.mark.parametrize(
    "target", [acex.Between(800, 830), acex.AtLeast(800), acex.AtMost(500), acex.Relative(0.2), {"at_most": 500}]
)
def test_the_counterfactuals_number_is_in_the_range_and_is_the_models_own(target: Any) -> None:
    e = acex.explain(rent, X, data=DATA, target=target, budget=15)
    low, high = e.plan.target.limits(e.label_before)  # type: ignore
    assert e.outcome == "found" and e.n_queries <= 15
    assert low <= e.label_after <= high
    assert e.label_after == rent(e.counterfactuals)[0]
    assert e.trace["hit"].tolist() == [False, *(low <= n <= high for n in e.trace["label"][1:])]


def test_estimators_of_numbers_are_asked_for_them() -> None:
    model = LinearRegression().fit(DATA, RENT)
    e = acex.explain(model, X, data=DATA, outcomes=RENT, target=acex.AtLeast(800), budget=12)
    assert e.label_after >= 800  # type: ignore[operator]
    with pytest.raises(ValueError, match="LinearRegression is a regressor"):
        acex.explain(model, X, data=DATA)


def test_the_probability_of_a_label_may_be_what_is_wanted() -> None:
    model = LogisticRegression(max_iter=1000).fit(DATA, np.where(RENT > 800, "dear", "cheap"))
    explainer = acex.Explainer(acex.Model(model, scores=True), DATA)
    e = explainer.explain(X, target=acex.AtLeast(0.9, label="dear"), budget=20)
    assert e.label_after == model.predict_proba(e.counterfactuals)[0, 1] >= 0.9
    assert e.sentences() and e.to_html().count("A probability of 0.9")
    f = explainer.explain(X, target="dear", budget=20)  # the same answers serve labels
    assert f.label_after == "dear" and f.n_reused > 0


def test_what_is_met_already_costs_one_query() -> None:
    e = acex.explain(rent, X, data=DATA, target=acex.AtLeast(100))
    assert (e.outcome, e.n_queries) == ("already_target", 1)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (lambda rows: ["a"] * len(rows), {}, "got 'a', which is not a finite number"),
        (lambda rows: [True] * len(rows), {}, "got True, which is not a finite number"),
        (lambda rows: [np.nan] * len(rows), {}, "got nan, which is not a finite number"),
        (lambda rows: np.ones((len(rows), 2)), {}, r"expected 1 numbers, got an array of shape \(1, 2\)"),
        (lambda rows: 3.0, {}, r"expected 1 numbers, got 3\.0"),
        (lambda rows: [0.0] * len(rows), {"target": acex.Relative(0.1)}, "is 0"),
        (rent, {"target": acex.AtLeast(0.8, label="dear")}, "scores"),
        (rent, {"scores": True}, "label="),
        (rent, {"outcomes": ["a"] * len(DATA)}, "outcomes"),
        (LogisticRegression().fit(DATA, RENT > 700), {}, "expected a number, but the model returns labels"),
    ],
)
def test_what_no_query_could_mend_is_said_and_no_wrong_answer_is_written_down(
    model: Any, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    said: Any = {"target": acex.AtLeast(800), "ledger": tmp_path / "l.db"} | options
    scores = said.pop("scores", False)
    with pytest.raises((ValueError, TypeError, ModelFailed), match=words):
        acex.explain(acex.Model(model, name="m", scores=scores), X, data=DATA, budget=5, **said)
    if "is 0" not in words:
        assert not Ledger(tmp_path / "l.db").answers("m")


def test_labels_and_numbers_under_one_name_are_told_apart(tmp_path: Path) -> None:
    settings: Any = {"data": DATA, "ledger": tmp_path / "l.db", "budget": 4}
    acex.explain(acex.Model(rent, name="m"), X, target=acex.AtLeast(800), **settings)
    with pytest.raises(ValueError, match="a number and not a label"):
        acex.explain(acex.Model(lambda rows: rent(rows) > 700, name="m"), X, **settings)


# -- the ledger ----------------------------------------------------------------------------------------------


def test_numbers_are_written_down_exactly_and_the_record_is_the_explanation(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        explainer = acex.Explainer(acex.Model(rent, name="m"), DATA, ledger=ledger)
        e = explainer.explain(X, target=acex.Between(800, 830), budget=10)
        assert [answer.label for answer in ledger.answers("m")] == rent(asked_rows(e)).tolist()
        again = load_explanation(ledger, e.plan.identity)
        assert again.trace.equals(e.trace) and again.plan.target == e.plan.target
        assert again.to_html().count("800 to 830")
    back = acex.Explanation.from_json(e.to_json())
    assert back.trace.equals(e.trace) and back.plan.target == e.plan.target
    other = explainer.search(X, target=acex.Between(800, 831)).plan
    assert other.identity != e.plan.identity == explainer.search(X, target=acex.Between(800.0, 830)).identity


FOR_MONEY: Any = {
    "data": DATA,
    "target": acex.Between(800, 830),
    "strategy": acex.Feasible(effort="spend"),  # keeps nothing of the budget back, so that the budget may differ by one
}


def explain_for_money(folder: Path, at: int = 0) -> acex.Explanation:
    """What a process does that may be killed at a call of the model."""
    seller = Seller(rent, Bill(folder / "bill"), at)
    return acex.explain(acex.Model(seller, name="m"), X, ledger=folder / "l.db", budget=9, **FOR_MONEY)


@pytest.mark.parametrize("at", [1, 4])
def test_killed_at_a_query_it_goes_on_and_pays_at_most_for_that_one_again(at: int, tmp_path: Path) -> None:
    killed(lambda: explain_for_money(tmp_path, at))
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.abandon("m")
    e = explain_for_money(tmp_path)
    bill = Counter(Bill(tmp_path / "bill").lines())
    assert bill.total() <= 9 and sorted(bill.values())[:-1] == [1] * (len(bill) - 1)
    assert bill.most_common(1)[0][1] == 2 and e.n_reused == at - 1
    whole = acex.explain(rent, X, budget=8, **FOR_MONEY)
    assert canonical(asked_rows(e)) == canonical(asked_rows(whole))


# -- every way to ask ----------------------------------------------------------------------------------------


def test_ask_and_tell_ask_what_explain_asks() -> None:
    expected = acex.explain(rent, X, data=DATA, target=acex.AtLeast(800), budget=8)
    session = acex.Explainer(not_asked, DATA).search(X, target=acex.AtLeast(800), budget=8)
    while (rows := session.ask()) is not None:
        with pytest.raises(ValueError, match="'many'"):
            session.tell(rows, ["many"])
        session.tell(rows, rent(rows))
    assert session.explanation().trace.equals(expected.trace)


def test_many_rows_learn_from_each_others_numbers() -> None:
    explainer = acex.Explainer(rent, DATA)
    explainer.import_answers(DATA[:5], RENT[:5])
    many = explainer.explain_many(DATA[RENT < 700].head(4), target=acex.Relative(0.15), budget=8, n_jobs=1)
    frame = many.frame()
    assert frame["outcome"].tolist() == ["found"] * 4
    assert (frame["label_after"] >= 1.15 * frame["label_before"] - 1e-9).all()


def numbers(handler: Handler) -> None:
    rows = pd.DataFrame(handler.body["rows"], columns=DATA.columns)
    handler.reply(200, json.dumps({"labels": rent(rows).tolist()}))


def test_a_server_of_numbers_is_asked_for_them() -> None:
    with serving(numbers) as server:
        model = acex.HttpModel(server.url, protocol="json", request={"rows": "$rows"}, labels="labels")
        e = acex.explain(model, X, data=DATA, target=acex.AtLeast(800), budget=6)
        assert e.label_after == rent(e.counterfactuals)[0] >= 800
        with pytest.raises(ModelFailed, match="which is a score, not a label"):
            acex.explain(model, X, data=DATA, budget=6)
    with serving(lambda handler: handler.reply(200, '{"labels": ["a"]}')) as server:
        model = acex.HttpModel(server.url, protocol="json", request={"rows": "$rows"}, labels="labels")
        with pytest.raises(ModelFailed, match="one number per row: got 'a'"):
            acex.explain(model, X, data=DATA, target=acex.AtLeast(800))


# -- for people ----------------------------------------------------------------------------------------------


def test_sentences_report_and_picture_speak_of_numbers() -> None:
    e = acex.explain(rent, X, data=DATA, target=acex.Between(800, 830), budget=10)
    page = e.to_html()
    assert "An answer of 8" in page and "answer wanted" in page and "800 to 830" in page
    assert "The model itself answered 8" in page
    assert str(e).startswith(f"{e.label_before:.4g} -> 8")
    assert e.plot("numbers").axes[0].get_ylabel() == "the model's answer"
    none = acex.explain(rent, X, data=DATA, target=acex.AtLeast(1e6), budget=4)
    assert "never at least 1000000" in none.summary() and "An answer of" in none.to_html()
    with pytest.raises(ValueError, match="this one has labels"):
        acex.explain(lambda rows: rent(rows) > 700, X, data=DATA, budget=3).plot("numbers")


# -- the shell -----------------------------------------------------------------------------------------------

CODE = "def rent(rows):\n    return (7 * rows['size'] + 55 * rows['rooms'] + 1 / 3).to_numpy()\n"


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acex_test_rents.py").write_text(CODE, encoding="utf-8")
    DATA.to_csv("flats.csv", index=False)


@pytest.mark.usefixtures("_folder")
def test_the_shell_takes_ranges() -> None:
    row = ("flats.csv", "--row", DATA.index.get_loc(X.name), "--budget", 8, "--ledger", "l.db", "--model-name", "m")
    model = ("--model", "acex_test_rents:rent")
    done = run("explain", *row, *model, "--target-range", "800..830", "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert 800 <= answer["label_after"] <= 830 and answer["target"] == {"between": [800.0, 830.0]}
    assert run("audit", "l.db", *model, "--model-name", "m", "--n", 3).stdout.startswith("0 of 3 labels changed")
    assert run("ask", *row, "--target-range", "+30%", "--seed", 1, "--out", "todo.csv").exit_code == 4
    todo = pd.read_csv("todo.csv")
    todo.assign(label=[repr(n) for n in rent(todo).tolist()]).to_csv("todo.csv", index=False)
    told = run("tell", "todo.csv", "--ledger", "l.db")
    assert told.exit_code == 0, told.stderr
    batch = run(
        "batch", "flats.csv", *model, "--where", "rooms == 1", "--target-range", "..500", "--budget", 3, "--json"
    )
    assert batch.exit_code in (0, 1), batch.stderr


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize(
    "said", ["100-120", "..", "a..b", "1..b", "100..120..130", "10", "%", "", "5..1", "5..5", "nan..", "0%"]
)
def test_a_range_that_is_none_is_told_before_anything_is_asked(said: str) -> None:
    done = run("explain", "flats.csv", "--row", 0, "--model", "acex_test_rents:rent", "--target-range", said)
    assert done.exit_code == 2
    assert "100..120" in done.stderr or "the first number must be below" in done.stderr or "Relative" in done.stderr


# -- evidence ------------------------------------------------------------------------------------------------


def test_a_range_with_two_ends_has_the_probability_of_its_inside() -> None:
    mean, variance = RNG.normal(size=50) * 3, RNG.random(50) + 0.1
    s = np.sqrt(variance)
    inside = norm(mean, s).cdf(1.5) - norm(mean, s).cdf(0)
    assert_allclose(norm.cdf(one_sided(mean, variance, 1.5) / s), inside, atol=1e-9)
    mild = np.abs(mean / s) < 5  # beyond that the probability is 0 or 1
    assert_allclose(one_sided(mean, variance, 1e9)[mild], mean[mild], atol=1e-6)


def test_a_unit_is_half_of_the_spread_of_what_was_seen_or_a_quarter_of_the_way_of_the_factual() -> None:
    assert_allclose(unit_of(np.array([-1.0, 9.0, -1.0, 9.0])), 5 / 2)
    assert_allclose(unit_of(np.array([-10.0, -9.0, -10.0, -9.0])), 10 / 4)
    assert_allclose(unit_of(np.array([-0.01, 0.01])), 0.01 / 2)  # small numbers have a small unit
    assert unit_of(np.zeros(3)) == 1


def test_numbers_in_other_units_are_the_same_evidence() -> None:
    beyond = RNG.normal(size=9) * 3 - 5
    assert_allclose(unit_of(1000 * beyond), 1000 * unit_of(beyond))
    e, f = (
        acex.explain(lambda rows, u=u: u * rent(rows), X, data=DATA, target=acex.Between(800 * u, 830 * u), budget=8)
        for u in (1.0, 1024.0)
    )
    assert canonical(asked_rows(e)) == canonical(asked_rows(f))
