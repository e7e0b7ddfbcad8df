"""The learned belief and its weights."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import logit

from acex.search import stopping
from acex.search.belief import ROW_ODDS, ROW_SPREAD, WEIGHTS, Belief, BeliefNetwork, load_network
from acex.search.belief_inputs import NAMES, REVISION, belief_inputs
from acex.search.evidence import Points, SearchContext
from problems import MIXED, asked, problem


def test_the_weights_were_trained_on_the_current_inputs() -> None:
    """To change the meaning of an input, increase the revision and train: python -m benchmarks train."""
    hit, ahead = load_network("hit_"), load_network("outlook_")
    assert hit is not None and ahead is not None
    assert (hit.revision, hit.names) == (REVISION, NAMES)
    assert (ahead.revision, ahead.names) == (REVISION, stopping.NAMES)


def test_the_weights_are_those_of_the_record_and_small() -> None:
    record = json.loads(WEIGHTS.with_suffix(".json").read_text())
    assert record["sha256 of weights.npz"] == hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
    assert record["revision of traits"] == REVISION
    assert WEIGHTS.stat().st_size <= 200_000


def test_a_network_gives_what_its_formula_says() -> None:
    rng = np.random.default_rng(0)
    W, b, V, c = (rng.normal(size=shape) for shape in ((3, 4), (4,), (4, 2), (2,)))
    network = BeliefNetwork(np.ones(3), np.full(3, 2.0), ((W, b), (V, c)), ("x", "y", "z"), 1)
    x = rng.normal(size=(5, 3))
    z = ((x - 1) / 2) @ W + b
    assert_allclose(network.log_odds(x), (z / (1 + np.exp(-z))) @ V + c, rtol=1e-5)


def test_a_network_is_read_as_it_was_written(tmp_path) -> None:  # type: ignore[no-untyped-def]
    network = load_network("hit_")
    assert network is not None
    np.savez(tmp_path / "w.npz", **network.arrays("other_"))  # type: ignore[arg-type]
    again = BeliefNetwork.load(tmp_path / "w.npz", "other_")
    x = np.random.default_rng(0).normal(size=(4, len(NAMES)))
    assert_allclose(again.log_odds(x), network.log_odds(x))
    assert again.names == network.names


def test_rows_are_less_certain_than_the_network_says_unless_outcomes_are_known() -> None:
    p = problem(MIXED, plausible=False)
    history, context, network = asked(p, 20), p.cached(SearchContext), load_network("hit_")
    assert network is not None
    rows = context.candidates.X[:40]
    others = p.region.snap((rows + context.candidates.X[40:80]) / 2)
    points = Points(context, np.vstack([rows, others[~Points(context, others).is_row]]))
    assert points.is_row.sum() == len(rows) < len(points)
    hinted = replace(p, hint=lambda X: np.full(len(X), 0.5))
    for belief, raised in ((Belief(p, history), points.is_row), (Belief(hinted, history), np.zeros(len(points), bool))):
        of = Points(belief.evidence.context, points.X)
        as_trained = network.log_odds(belief_inputs(belief.evidence, of))[:, 0]
        expected = np.where(raised, (as_trained + ROW_ODDS) / ROW_SPREAD, as_trained)
        assert_allclose(logit(belief.probability(of)), expected, rtol=1e-6, atol=1e-6)


def test_a_point_within_a_miss_is_less_likely_than_one_that_holds_a_hit() -> None:
    p = problem(MIXED, plausible=False)
    history = asked(p, 20)
    assert history.is_hit.any()
    belief = Belief(p, history)
    hit, miss = history.X[history.is_hit][0], history.X[1:][~history.is_hit[1:]][0]
    numeric = ~p.scale.is_nominal
    near_hit = p.region.snap(np.where(numeric, p.factual + 0.98 * (hit - p.factual), hit)[None])
    in_miss = p.region.snap(np.where(numeric, p.factual + 0.9 * (miss - p.factual), miss)[None])
    likely, unlikely = belief.probability(Points(p.cached(SearchContext), np.vstack([near_hit, in_miss])))
    assert likely > unlikely
