"""The rules of the published algorithm, one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from acex.arrays import FloatArray
from acex.search import penalty
from acex.search.maximise import Scored, best_acceptable
from acex.search.penalty import Penalty
from acex.search.problem import History, Problem, Query
from acex.search.search import Search
from acex.space.kinds import Continuous
from acex.space.space import Space
from problems import answered, problem, run

PLANE = Space((Continuous("a", 0, 10), Continuous("b", 0, 10)))
QUICK = Penalty(n0=6, sobol=256, epsilon=0.1)


def within_a_round(p: Problem, settings: Penalty = QUICK) -> Search:
    """A search whose last answer belongs to an acquisition, with more to come in its round."""
    search = run(Search.begin(p, settings), settings.n0 + 2)
    assert [q.purpose for q in search.history.queries[-2:]] == ["acquire", "acquire"]
    return search


# -- a round converges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "purpose"), [(0.09, "boundary"), (0.11, "acquire")])
def test_a_round_ends_when_the_best_point_is_within_epsilon_of_the_last(
    monkeypatch: pytest.MonkeyPatch, step: float, purpose: str
) -> None:
    search = within_a_round(problem(PLANE, plausible=False))
    last = search.history.queries[-1]
    near = last.point + np.array([step, 0.0]) * search.problem.scale.deviations
    far = PLANE.high - last.point

    def maximise(*args: Any) -> Scored | None:
        """The nearer point if it may be proposed."""
        candidates = np.stack([near, far])
        return best_acceptable(candidates, np.array([2.0, 1.0]), args[-1], above=0.0)

    monkeypatch.setattr(penalty, "maximise", maximise)
    query = search.ask()
    assert query is not None and query.purpose == purpose and query.round == last.round
    if purpose == "acquire":
        assert_array_equal(query.point, near)


def test_what_is_within_epsilon_of_an_earlier_point_is_not_proposed() -> None:
    p = problem(PLANE, plausible=False)
    history = run(Search.begin(p, QUICK), 40).history
    Z = p.scale.coordinates(history.X)
    for i, query in enumerate(history.queries):
        if query.purpose == "acquire":
            assert np.linalg.norm(Z[:i] - Z[i], axis=1).min() > QUICK.epsilon


# -- the incumbent (R22) ---------------------------------------------------------------------------------


def surrogate(p: Problem, n: int = 25, settings: Penalty = QUICK) -> penalty._Surrogate:
    return penalty._Surrogate(p, settings, answered(p, n))


@pytest.mark.parametrize("weight", [1e-3, 3.0, 30.0, 1e6])
def test_the_incumbent_is_the_evidence_of_least_cost_and_penalty(weight: float) -> None:
    s = surrogate(problem(PLANE))
    f = expit(s.posterior.latent(s.Z)[0])
    J = s.problem.cost(s.history.X) + weight * np.abs(f - 0.5)
    J[~s.problem.plausible(s.history.X)] = np.inf
    score = s.improvement(weight)
    assert score.incumbent_cost == pytest.approx(s.problem.cost(s.history.X)[J.argmin()])
    assert_allclose(score.joint.b, s.Z[[J.argmin()]])


def test_the_incumbent_moves_from_the_factual_to_the_boundary_as_the_penalty_grows() -> None:
    s = surrogate(problem(PLANE))
    assert s.improvement(1e-3).incumbent_cost == 0.0
    assert s.improvement(1e6).incumbent_cost > 0.0


# -- the Sobol step (R5) -----------------------------------------------------------------------------------


def test_the_sobol_step_takes_the_cheapest_new_point_among_those_closest_to_one_half() -> None:
    s = surrogate(problem(PLANE))
    chosen = penalty._closest_boundary_point(s, np.random.default_rng(4))
    X = np.unique(penalty._sobol_points(s.problem, s.settings.sobol, np.random.default_rng(4)), axis=0)
    off = np.abs(s.posterior.probability(s.problem.scale.coordinates(X)) - 0.5)
    n_close = max((off < penalty.BOUNDARY_BAND).sum(), int(penalty.BOUNDARY_SHARE * s.settings.sobol))
    close = X[off <= np.sort(off)[n_close - 1]]
    close = close[s.problem.admissible(close, s.history.asked)]
    assert chosen is not None
    assert_array_equal(chosen, close[s.problem.cost(close).argmin()])
    assert off[(chosen == X).all(axis=1)][0] < np.median(off)


def test_sobol_points_fill_the_box_in_the_plane_and_rays_from_the_factual_beyond() -> None:
    p = problem(PLANE, plausible=False)
    X = penalty._sobol_points(p, 1024, np.random.default_rng(0))
    cells = np.histogram2d(X[:, 0], X[:, 1], bins=8, range=[[0, 10], [0, 10]])[0]
    assert cells.min() == cells.max() == 16  # a scrambled net of 2^10 points
    cube = problem(Space(tuple(Continuous(name, 0, 10) for name in "abc")), plausible=False)
    X = penalty._sobol_points(cube, 1024, np.random.default_rng(0))
    rows = np.array([row for row in cube.projected - cube.factual if row.any()])
    steps = X[::2] - cube.factual  # every second one lies on the way to a row
    shares = np.linalg.norm(steps, axis=1)[:, None] / np.linalg.norm(rows, axis=1)
    on_the_way = np.abs(steps[:, None] - shares[..., None] * rows).max(axis=2).min(axis=1)
    assert on_the_way.max() < 1e-9 and (shares.min(axis=1) <= 1 + 1e-9).all()


def test_sobol_rays_are_filled_evenly_from_the_factual_to_their_ends() -> None:
    """Where all rays end in one row, positions on them are a net of the unit interval."""
    cube = problem(Space(tuple(Continuous(name, 0, 10) for name in "abc")), plausible=False)
    end = cube.projected[np.argmax(cube.cost(cube.projected))]
    one_row = replace(cube, reference=np.repeat(end[None], 2, axis=0))
    X = penalty._sobol_points(one_row, 1024, np.random.default_rng(0))[::2]
    shares = np.linalg.norm(X - cube.factual, axis=1) / np.linalg.norm(end - cube.factual)
    assert np.histogram(shares, bins=8, range=(0, 1))[0].tolist() == pytest.approx([64] * 8, abs=12)
    assert shares.max() > 0.98


# -- starts and draws (R16, R17, R21) ----------------------------------------------------------------------


def test_draws_around_the_factual_reach_both_ends_of_the_region_and_never_leave_it() -> None:
    p = problem()
    X = penalty.around_factual(p, np.random.default_rng(0), 4000, np.full(4000, 3.0), np.ones(4000))
    assert p.region.contains(X).all()
    width = p.region.high - p.region.low
    movable = p.region.movable
    assert (X.min(axis=0) <= p.region.low + 0.02 * width)[movable].all()
    assert (X.max(axis=0) >= p.region.high - 0.02 * width)[movable].all()
    assert (X[:, ~movable] == p.factual[~movable]).all()


def test_draws_have_the_deviation_they_are_asked_for_and_move_as_many_features() -> None:
    wide = Space(tuple(Continuous(name, -1000, 1000) for name in "abcd"))
    p = problem(wide, plausible=False)
    p = replace(p, region=replace(p.region, factual=np.zeros(4)))
    X = penalty.around_factual(p, np.random.default_rng(0), 4000, np.full(4000, 0.2), np.full(4000, 0.5))
    steps = (X - p.factual) / p.scale.deviations
    moved = p.factual != X
    assert moved.any(axis=1).all() and moved.mean() == pytest.approx(0.5 + 0.5 / 4, abs=0.02)
    assert steps[moved].std() == pytest.approx(0.2, rel=0.05)


def test_with_many_features_half_of_the_starts_go_along_principal_components() -> None:
    def starts(d: int) -> tuple[Problem, FloatArray]:
        space = Space(tuple(Continuous(f"x{j}", -50, 50) for j in range(d)))
        p = problem(space, plausible=False)
        history = History((Query(p.factual, "factual"),), (False,))
        return p, penalty._starts(penalty._Surrogate(p, QUICK, history), np.random.default_rng(0))

    p, few = starts(penalty.PCA_FEATURES - 1)
    p, many = starts(penalty.PCA_FEATURES)
    assert len(many) == len(few) + penalty.N_STARTS
    along = (many - p.factual)[penalty.N_STARTS : 2 * penalty.N_STARTS]
    basis = np.linalg.qr((p.principal_moves / p.scale.deviations).T)[0]
    Z = along / p.scale.deviations
    assert_allclose(Z @ basis @ basis.T, Z, atol=1e-8)
    assert np.abs(Z).max() > 0.1


def test_starts_lie_between_the_factual_and_the_cheapest_hits_too() -> None:
    s = surrogate(problem(PLANE))
    starts = penalty._starts(s, np.random.default_rng(0))
    hits = s.history.X[s.history.is_hit]
    hits = hits[np.argsort(s.problem.cost(hits))][:5]
    assert (starts[:, None] == hits).all(axis=2).any(axis=0).all()
    steps, way = starts - s.problem.factual, hits[0] - s.problem.factual
    share = steps @ way / (way @ way)
    between = (np.abs(steps - share[:, None] * way).max(axis=1) < 1e-9) & (share > 0) & (share < 1)
    assert between.sum() >= 8


# -- ends ------------------------------------------------------------------------------------------------------


def test_a_search_without_a_hit_ends_when_nothing_was_likely_for_ten_asks() -> None:
    def history(hopes: list[float]) -> History:
        points = [np.array([float(i), 0.0]) for i in range(len(hopes))]
        queries = tuple(Query(x, "acquire", max_p_hit=h) for x, h in zip(points, hopes, strict=True))
        return History(queries, (False,) * len(queries))

    assert penalty._hopeless(history([0.9] + [0.01] * 10))
    assert not penalty._hopeless(history([0.03] + [0.01] * 9))
    assert not penalty._hopeless(history([0.01] * 9))


def test_where_a_round_finds_nothing_the_cheapest_row_that_was_not_asked_is(monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem(PLANE, plausible=False)
    search = run(Search.begin(p, QUICK), QUICK.n0, never=True)
    monkeypatch.setattr(penalty, "maximise", lambda *args: None)
    monkeypatch.setattr(penalty, "_closest_boundary_point", lambda *args: None)
    query = search.ask()
    rows = p.projected[p.admissible(p.projected, search.history.asked)]
    assert query is not None
    assert_array_equal(query.point, rows[p.cost(rows).argmin()])


@pytest.mark.parametrize("weight", [3.0, 1e6])
def test_the_incumbents_moments_are_those_of_the_delta_method(weight: float) -> None:
    s = surrogate(problem(PLANE))
    score = s.improvement(weight)
    latent, variance = (float(v[0]) for v in s.posterior.latent(score.joint.b))
    slope = (expit(latent + 1e-5) - expit(latent - 1e-5)) / 2e-5
    assert_allclose(score._incumbent, (expit(latent), variance * slope**2, slope), rtol=1e-6)
