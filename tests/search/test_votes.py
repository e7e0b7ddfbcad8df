"""A model that contradicts itself: votes, what they are worth, and that each is paid for once."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import acex
from acex.arrays import FloatArray
from acex.ledger.maintenance import check
from acex.ledger.row_keys import as_vote, canonical, is_vote, without_vote
from acex.ledger.sql import Ledger
from acex.search.problem import History, Query
from acex.search.surrogate import fit
from acex.search.votes import Noise, Tally
from ledgers import run
from toys import high as truth

X = np.random.default_rng(0).normal(size=(60, 2)).round(3)
NAME = "sums-v1"
LOW = next(x for x in X if x.sum() < -1)


class Fickle:
    """The model with a share of its answers flipped, by how often it was asked the row; it writes down a bill."""

    def __init__(self, share: float, bill: Path | None = None, dies_at: int | None = None) -> None:
        self.share, self.bill, self.dies_at = share, bill, dies_at
        self.times: Counter[str] = Counter()

    def __call__(self, rows: FloatArray) -> Any:
        labels = truth(rows)
        for i, form in enumerate(canonical(rows)):
            self.times[form] += 1
            rng = np.random.default_rng([*map(ord, form), self.times[form]])
            if rng.random() < self.share:
                labels[i] = "low" if labels[i] == "high" else "high"
            if self.bill is not None:
                with self.bill.open("a") as file:
                    file.write(form.replace(" ", "") + "\n")
        if sum(self.times.values()) == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return labels


def explained(model: Any, ledger: Any = None, **options: Any) -> acex.Explanation:
    options = dict[str, Any](target="high", noise=0.1, budget=20) | options
    settings: dict[str, Any] = {name: options.pop(name) for name in ("noise", "confirm", "scores") if name in options}
    return acex.explain(acex.Model(model, name=NAME, **settings), LOW, data=X, ledger=ledger, **options)


# -- what votes are worth ----------------------------------------------------------------------------------------


def answered(*answers: tuple[float, bool], p_hit: float = 0.3) -> History:
    """A history of points on a line, the factual at 0."""
    history = History((), ()).with_answer(Query(np.zeros(1), "factual"), False)
    for x, hit in answers:
        history = history.with_answer(Query(np.array([x]), "first", p_hit=p_hit), hit)
    return history


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.floats(0.01, 0.4), st.floats(0.02, 0.45))
def test_the_probability_of_a_hit_is_bayes_rule(answers: list[bool], share: float, chance: float) -> None:
    tally = Tally(Noise(share), answered(*((1.0, hit) for hit in answers), p_hit=chance))
    of_hit, of_miss = chance, 1 - chance
    for hit in answers:  # one after the other, not by their difference
        of_hit, of_miss = of_hit * (1 - share if hit else share), of_miss * (share if hit else 1 - share)
    assert_allclose(tally.certainty, [0.0, of_hit / (of_hit + of_miss)], rtol=1e-9)


def test_a_strategy_sees_each_row_once_and_the_majority() -> None:
    tally = Tally(Noise(0.1), answered((1, False), (2, True), (1, True), (1, True), (2, False)))
    assert tally.history.X.ravel().tolist() == [0, 1, 2]
    assert tally.history.hits == (False, True, False)  # one for and one against is no hit
    assert tally.position(1) == 3  # where the row first got the answer that holds


def test_the_votes_that_are_kept_are_as_many_as_a_lead_takes_on_average() -> None:
    share, confirm = 0.2, 5
    tally = Tally(Noise(share, confirm), answered(*[(1.0, True)] * 3, p_hit=0.3))
    # Steps to a lead of 5 from leads of 4, 3, ..., -95: one, and what is left after a vote for or against.
    leads = np.arange(100)
    steps = np.eye(100)
    steps[leads[1:], leads[:-1]] -= 1 - share
    steps[leads[:-1], leads[1:]] -= share
    expected = np.linalg.solve(steps, np.ones(100))
    assert tally._votes_needed(np.array([1])) == np.ceil(expected[1])  # from a lead of 3


def test_a_vote_belongs_to_the_round_in_which_it_is_asked() -> None:
    history = answered((1, True)).with_answer(Query(np.array([2.0]), "first", round=1), False)
    history = history.with_answer(Query(np.array([3.0]), "first", round=2), True)
    vote = Tally(Noise(0.1), history)._vote(1)
    assert (vote.point.tolist(), vote.round, vote.purpose) == ([1.0], 2, "vote")


def test_the_share_is_learnt_from_rows_that_were_asked_more_than_once() -> None:
    steady = Tally(Noise("auto"), answered(*[(1.0, True)] * 10, (2.0, False))).share
    fickle = Tally(Noise("auto"), answered(*[(1.0, True)] * 7, *[(1.0, False)] * 3)).share
    assert 0 < steady < 0.08 < fickle < 0.35


def test_the_automatic_share_counts_the_answers_against_each_majority() -> None:
    # 8% counts like 8 answers. Point 1 has 2 of 7 against its majority, point 2 has 1 of 3; point 3 was asked once.
    answers = [*[(1.0, True)] * 5, *[(1.0, False)] * 2, *[(2.0, False)] * 2, (2.0, True), (3.0, True)]
    assert Tally(Noise("auto"), answered(*answers)).share == pytest.approx((0.64 + 3) / (8 + 10))
    assert Tally(Noise("auto"), answered((1.0, True))).share == pytest.approx(0.08)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("p_hit", [0.02, 0.3])
def test_no_point_of_lower_probability_than_99_percent_is_confirmed(share: float, p_hit: float) -> None:
    for n in range(1, 15):
        tally = Tally(Noise(share, confirm=1), answered(*[(1.0, True)] * n, p_hit=p_hit))
        assert tally.confirmed[1] == (tally.certainty[1] >= 0.99), n


def test_the_gaussian_process_takes_probabilities_as_labels() -> None:
    """Of two labels at one point, each of weight one half, as of one probability: the same likelihood, by hand."""
    Z, t = np.array([[0.0], [1.0]]), np.array([0.3, 0.9])
    post = fit(Z, t, kernel=fit(Z, np.array([0.0, 1.0])).kernel)
    f = post.kernel(Z, Z) @ post.a
    assert_allclose(post.a, t - 1 / (1 + np.exp(-f)), atol=1e-6)  # the gradient of the objective vanishes
    sharp = fit(Z, np.array([0.0, 1.0]), kernel=post.kernel)
    assert (np.abs(post.probability(Z) - 0.5) < np.abs(sharp.probability(Z) - 0.5)).all()


# -- explanations ------------------------------------------------------------------------------------------------


def test_without_noise_confirm_changes_nothing() -> None:
    loans = acex.datasets.loan()
    model: Any = lambda rows: (rows["income"] > 3000).map({True: "approved", False: "rejected"})  # noqa: E731
    x = loans.rows[model(loans.rows) == "rejected"].iloc[0]
    plain = acex.explain(model, x, data=loans.rows, budget=8)
    e = acex.explain(acex.Model(model, noise=0, confirm=5), x, data=loans.rows, budget=8)
    assert [s.row for s in e.steps] == [s.row for s in plain.steps]
    assert e.plan.identity == plain.plan.identity


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_wrong_answer_is_outvoted(share: float) -> None:
    e = explained(Fickle(share), noise=share, budget=40)
    assert truth(e.counterfactuals.to_numpy(float)).tolist() == ["high"]
    n_for, n_all, certainty = e.ending.votes[0]
    assert 2 * n_for > n_all and certainty > 0.9
    assert e.label_after == "high" and e.label_before == "low"
    assert e.n_queries == len(e.steps) <= 40
    assert f"a hit with probability {min(certainty, 0.999):.3g} after {n_for} of {n_all} votes" in str(e)
    assert f"after {n_for} of {n_all} votes" in e.to_html()
    assert acex.Explanation.from_json(e.to_json()).ending.votes == e.ending.votes


def test_a_factual_that_is_answered_wrongly_at_first_is_no_end() -> None:
    class FirstWrong(Fickle):
        def __call__(self, rows: FloatArray) -> Any:
            first = not self.times
            labels = super().__call__(rows)
            return np.where(first, "high", labels)

    e = explained(FirstWrong(0.0), budget=15)
    assert [s.label for s in e.steps if s.purpose == "factual"] == ["high", "low", "low", "low", "low"]
    assert (e.label_before, e.outcome) == ("low", "found")


@pytest.mark.parametrize("budget", [2, 3, 5, 9])
def test_votes_keep_to_the_budget(budget: int) -> None:
    model = Fickle(0.2)
    e = explained(model, budget=budget, noise="auto")
    assert e.n_queries == sum(model.times.values()) <= budget


def test_queries_in_rounds_vote_too() -> None:
    model = Fickle(0.1)
    e = explained(model, budget=24, queries_per_round=4)
    assert e.n_queries == sum(model.times.values()) <= 24
    assert max(model.times.values()) >= 3


# -- the ledger --------------------------------------------------------------------------------------------------


@given(st.lists(st.one_of(st.integers(), st.text(), st.floats(allow_nan=False), st.none()), min_size=1), st.integers(2))
def test_a_vote_is_a_row_of_its_own_and_leads_back(values: list[Any], times: int) -> None:
    form = json.dumps(values)
    vote = as_vote(form, times)
    assert json.loads(vote) == [*values, {"vote": times}]
    assert without_vote(vote) == form == as_vote(form, 1) == without_vote(form)
    assert is_vote(vote) and not is_vote(form)


def test_votes_that_are_known_are_free_and_the_record_tells_the_same(tmp_path: Path) -> None:
    path, model = tmp_path / "ledger.db", Fickle(0.1)
    first = explained(model, path)
    sent = sum(model.times.values())
    again = explained(model, path)
    assert sum(model.times.values()) == sent == first.n_queries
    with Ledger(path) as ledger:
        [name] = ledger.tables.explanations()["id"]
        stored = acex.load_explanation(ledger, name)
        assert len(ledger.tables.answers(NAME)) == sent
        assert check(ledger.database.address) == []
    assert again.ending.votes == stored.ending.votes == first.ending.votes
    assert [s.best for s in stored.steps] == [s.best for s in first.steps]


def _explain(path: Path, bill: Path, dies_at: int | None) -> None:
    explained(Fickle(0.0, bill, dies_at), path, budget=16)


def test_a_process_that_is_killed_amid_a_vote_pays_for_no_answered_vote_twice(tmp_path: Path) -> None:
    alone, bill, path = tmp_path / "alone", tmp_path / "bill", tmp_path / "ledger.db"
    _explain(tmp_path / "other.db", alone, None)
    # The third row that is sent is the factual once more.
    assert run(_explain, [(path, bill, 3)]) == [-signal.SIGKILL]
    _explain(path, bill, None)
    whole, paid = alone.read_text().split(), bill.read_text().split()
    assert paid[:8] == [*whole[:3], whole[2], *whole[3:7]]  # only the vote in flight was sent again
    assert Counter(paid)[whole[0]] == Counter(whole)[whole[0]] + 1
    assert len(paid) <= 16


def test_labels_that_are_told_are_votes_where_one_is_wanted(tmp_path: Path) -> None:
    session = acex.Explainer(acex.Model(truth, name=NAME, noise=0.1), X, ledger=tmp_path / "l.db").search(
        LOW, target="high", queries_per_round=2, budget=14
    )
    n_told = 0
    while (rows := session.ask()) is not None:
        session.tell(rows, truth(rows))
        n_told += len(rows)
    e = session.explanation()
    assert e.outcome == "found" and e.n_queries == n_told <= 14
    n_for, n_asked = e.ending.votes[0][:2]
    assert n_for == n_asked >= 3


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": 0.5}, "noise.*0.5"),
        ({"noise": -0.1}, "noise"),
        ({"noise": float("nan")}, "noise"),
        ({"noise": "much"}, "noise"),
        ({"noise": None}, "noise"),
        ({"confirm": 0}, "confirm.*0"),
        ({"confirm": 2.5}, "confirm"),
        ({"strategy": "penalty"}, "noise needs strategy 'feasible'"),
        ({"scores": True}, "noise needs labels"),
        ({"target": acex.AtLeast(3.0)}, "noise needs labels"),
    ],
)
def test_invalid_noise_is_refused(options: dict[str, Any], words: str) -> None:
    class Model:
        classes_ = ("low", "high")

        def predict(self, rows: FloatArray) -> Any:
            raise AssertionError("asked")

        predict_proba = predict

    with pytest.raises(ValueError, match=words):
        explained(Model(), **options)


def test_the_shell_takes_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from commands import run as shell
    from commands import set_up

    set_up(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ("explain", "loans.csv", "--model", "acex_test_bank:decide", "--row", 0, "--drop", "id,outcome")
    wrong = shell(*words, "--noise", "much")
    assert wrong.exit_code == 2
    assert "--noise 'much'" in wrong.stderr and "auto" in wrong.stderr
    found = shell(*words, "--noise", "auto", "--confirm", 2, "--budget", 16, "--json")
    told = json.loads(found.stdout)
    assert told["settings"]["noise"] == "auto" and told["settings"]["confirm"] == 2
    assert told["votes"][0][:2] == [2, 2]
    assert [query["purpose"] for query in told["queries"]].count("factual") == 2
