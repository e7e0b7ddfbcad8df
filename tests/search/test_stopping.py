"""The outlook: how likely a cheaper counterfactual is."""

from __future__ import annotations

import numpy as np
import pytest

from acex.search import stopping
from acex.search.feasible import Feasible
from acex.search.search import Search
from problems import MIXED, decide, evidence, problem


def test_an_outlook_gives_chances_and_what_is_much_cheaper_is_less_likely() -> None:
    p = problem(MIXED)
    strategy = Feasible()
    search = Search.begin(p, strategy)
    while search.best is None and (query := search.ask()) is not None:
        search = search.tell(query, bool(decide(p, query.point[None])[0]))
    tenth, quarter, half = strategy.improvement_odds(p, search.history)
    assert 1 >= tenth >= quarter >= half >= 0


def test_an_outlook_reads_the_likeliest_and_the_tenth_likeliest_of_what_saves_enough() -> None:
    e = evidence(problem(), 3)
    for n in (9, 10, 12):
        probability, saving = np.linspace(0.1, 0.9, n), np.full(n, 0.3)  # enough for all but the half
        seen = dict(zip(stopping.NAMES, stopping.stopping_inputs(e, probability, saving), strict=True))
        tenth = sorted(probability)[-10] if n >= 10 else 0.0
        for least in (0.05, 0.1, 0.25):
            assert (seen[f"greatest_{least}"], seen[f"tenth_{least}"]) == (0.9, tenth)
        assert (seen["greatest_0.5"], seen["tenth_0.5"]) == (0.0, 0.0)
        assert seen["expected"] == pytest.approx(0.27)


def test_without_weights_anything_may_be_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acex.search.belief.load_network", lambda prefix: None)
    ahead = stopping.Forecast.of(evidence(problem(), 3), np.ones(1), np.ones(1))
    assert (ahead.saves_soon, ahead.improvement_odds) == (1.0, (1.0, 1.0, 1.0))


def test_before_the_first_counterfactual_there_is_no_outlook() -> None:
    p = problem(MIXED)
    assert Feasible().improvement_odds(p, Search.begin(p, Feasible()).history) == ()
