"""Where a search looks: candidates of strategy "feasible"."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from acex.search.candidates import enumerate_region, from_hits, from_reference, random_points, simplified
from acex.search.problem import key
from acex.space.kinds import Continuous, Nominal
from acex.space.scale import Quantiles
from acex.space.space import Space
from problems import DISCRETE, MIXED, all_points, problem


def test_a_share_of_the_way_begins_at_the_factual_and_ends_at_the_row() -> None:
    p = problem()
    rows = p.reference[1:20]
    for in_ranks in (np.zeros((19, 1), dtype=bool), np.ones((19, 1), dtype=bool)):
        zero = p.quantiles.between(p.factual, rows, np.zeros((19, 1)), in_ranks)
        one = p.quantiles.between(p.factual, rows, np.ones((19, 1)), in_ranks)
        half = p.quantiles.between(p.factual, rows, np.full((19, 1), 0.5), in_ranks)
        assert_array_equal(zero, np.repeat(p.factual[None], 19, axis=0))
        assert_array_equal(one, rows)
        low, high = np.minimum(p.factual, rows), np.maximum(p.factual, rows)
        numeric = ~p.scale.is_nominal
        assert ((half >= low - 1e-9) & (half <= high + 1e-9))[:, numeric].all()
        assert (half[:, ~numeric] == rows[:, ~numeric]).all()


def test_what_is_wanted_of_a_way_is_as_if_all_were_wanted() -> None:
    p, rng = problem(MIXED), np.random.default_rng(3)
    rows, share, in_ranks = p.reference[1:20], rng.random((19, 1)), rng.random((19, 1)) < 0.5
    wanted = rng.random(rows.shape) < 0.5
    whole = p.quantiles.between(p.factual, rows, share, in_ranks)
    part = p.quantiles.between(p.factual, rows, share, in_ranks, wanted)
    assert_array_equal(part[wanted], whole[wanted])
    ranks = p.quantiles.ranks(np.vstack([p.factual, rows]))
    along = ranks[0] + share * (ranks[1:] - ranks[0])
    curved = np.flatnonzero(in_ranks)
    numeric = [j for j in p.scale.numeric if p.scale.space.features[j].codes(p.region.allowed[j]) is None]
    assert numeric
    assert_allclose(p.quantiles.ranks(whole)[np.ix_(curved, numeric)], along[np.ix_(curved, numeric)], atol=1e-9)


@pytest.mark.parametrize("space", [MIXED, DISCRETE])
def test_candidates_keep_to_the_region(space: Space) -> None:
    p = problem(space)
    rng = np.random.default_rng(0)
    for X in (from_reference(p, rng, 500), from_hits(p, rng, p.projected[:5], 500)):
        assert p.region.contains(X).all()
        assert len(np.unique(X, axis=0)) > 20


def test_variations_of_a_hit_are_mostly_cheaper_than_it() -> None:
    p = problem()
    hits = p.projected[:3]
    X = from_hits(p, np.random.default_rng(0), hits, 900)
    assert (p.cost(X) < p.cost(hits).max()).mean() > 0.6


def test_of_the_variations_of_a_hit_every_third_undoes_changes_and_the_others_shrink_them_or_add_noise() -> None:
    wide = Space(tuple(Continuous(f"f{j}", -50, 50) for j in range(6)))
    p = problem(wide, plausible=False)
    hit = p.factual - np.sign(p.factual) * p.scale.deviations
    X = from_hits(p, np.random.default_rng(0), hit[None], 900)
    undone = (p.factual == X).mean(axis=1)
    assert undone[0::3].mean() > 0.3 and undone[1::3].max() == undone[2::3].max() == 0
    share = (X - p.factual) / (hit - p.factual)
    assert ((share[1::3] >= 0) & (share[1::3] <= 1 + 1e-9)).all()
    assert (X[2::3] == hit).mean() > 0.5


def test_a_small_region_is_listed_in_full() -> None:
    p = problem(DISCRETE)
    X = enumerate_region(p)
    assert X is not None
    assert {key(x) for x in X} == {key(x) for x in all_points(DISCRETE)}
    assert enumerate_region(problem(MIXED)) is None


def test_simpler_versions_of_a_hit_undo_each_change_and_cost_less() -> None:
    p = problem(plausible=False)
    hit = p.region.snap((p.factual + np.array([3.0, 2, 1, 0, 900, 0]))[None])[0]
    hit[3] = (p.factual[3] + 1) % 3
    X = simplified(p, hit)
    assert p.region.contains(X).all()
    assert (p.cost(X) <= p.cost(hit[None])[0]).all()
    changed = np.flatnonzero(hit != p.factual)
    for j in changed:
        undone = hit.copy()
        undone[j] = p.factual[j]
        assert (undone == X).all(axis=1).any()


def test_points_anywhere_reach_beyond_the_reference_and_keep_to_the_region() -> None:
    space = Space((Continuous("a", -10, 10), Continuous("b", -10, 10), Nominal("c", ("x", "y", "z"))))
    p = problem(space, plausible=False)
    reference = p.reference / np.array([4.0, 4.0, 1.0])
    p = replace(p, reference=reference, quantiles=Quantiles.of(p.scale, reference))
    X = random_points(p, np.random.default_rng(0), 400)
    assert p.region.contains(X).all()
    low, high = (end(np.vstack([p.reference, p.factual])[:, :2], axis=0) for end in (np.min, np.max))
    assert (X[:, :2].max(axis=0) > high).all()
    assert (X[:, :2] >= low - (high - low) / 4).all() and (X[:, :2] <= high + (high - low) / 4).all()
    assert set(X[:, 2]) == {0.0, 1.0, 2.0}
