"""ACE as published: its parts against scikit-learn, quadrature and brute force, the whole by the public interface."""

from __future__ import annotations

import warnings
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest, qmc, truncnorm
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import acex
from acex.arrays import BoolArray, FloatArray
from acex.search.problem import History, Query
from acex.space.kinds import Continuous, Integer
from acex.space.space import Space
from benchmarks import published_ace
from benchmarks.methods import METHODS
from benchmarks.methods.ace_published import explained
from benchmarks.published_ace import REPAIRS, Laplace, PublishedAce, answer, full_branching, greedy_branching
from benchmarks.scenario import scenario
from benchmarks.suites import ablation
from benchmarks.task import CountedModel, Task

MOONS = scenario("moons")
SPACE = Space(
    (Continuous("a", 0.0, 10.0), Integer("b", 0, 8), Integer("c", 0, 3), Continuous("still", 0, 1, frozen=True))
)
QUICK: dict[str, Any] = {"n0": 8, "mc": 40, "sobol": 128, "max_rounds": 2, "categorical": ("c",)}


def labelled(n: int = 25, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    return Z, (Z[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(float)


# -- surrogate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_kernel_is_that_of_scikit_learn(nu: float) -> None:
    A, B = labelled()[0], labelled(7, 1)[0]
    squared = ((A[:, None] - B) ** 2).sum(axis=2)
    expected = (ConstantKernel(2.5) * Matern(1.7, nu=nu))(A, B)
    assert_allclose(published_ace.matern(squared, nu, 1.7, 2.5), expected, rtol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_posterior_is_that_of_scikit_learn(nu: float) -> None:
    Z, t = labelled()
    A = labelled(6, 2)[0]
    kernel = ConstantKernel(3.0, "fixed") * Matern(1.3, "fixed", nu=nu)
    known = GaussianProcessClassifier(kernel, optimizer=None, max_iter_predict=1000).fit(Z, t).base_estimator_
    ours = Laplace(Z, t, nu=nu, ell=1.3, variance=3.0)
    K_star = kernel(Z, A)
    v = np.linalg.solve(known.L_, known.W_sr_[:, None] * K_star)
    covariance = kernel(A) - v.T @ v
    mean, variance, with_first = ours.latent(A, A[0])
    assert_allclose(mean, K_star.T @ (t - known.pi_), rtol=1e-4)
    assert_allclose(variance, np.diag(covariance), rtol=1e-4)
    assert_allclose(with_first, covariance[0], rtol=1e-3, atol=1e-5)
    assert_allclose(ours.probability(A), known.predict_proba(A)[:, 1], atol=0.02)  # another approximation there


def test_the_length_scale_is_the_one_of_largest_likelihood() -> None:
    Z, t = labelled(40)
    found = published_ace.fitted_length_scale(Z.tobytes(), t.tobytes(), len(Z), 2.5)
    model = GaussianProcessClassifier(Matern(1.0), optimizer=None).fit(Z, t)
    grid = np.geomspace(0.05, 50, 300)
    likelihood = [model.log_marginal_likelihood([np.log(ell)]) for ell in grid]
    assert found == pytest.approx(grid[int(np.argmax(likelihood))], rel=0.05)
    assert published_ace.fitted_length_scale(Z.tobytes(), np.ones(40).tobytes(), len(Z), 2.5) == 1.0


# -- expected improvement --------------------------------------------------------------------------------


@pytest.mark.parametrize("gain", [-0.8, 0.0, 1.5])
def test_the_monte_carlo_improvement_is_the_integral(gain: float) -> None:
    mean, variance, covariance, mean_star, variance_star, penalty = 0.45, 0.02, 0.008, 0.7, 0.03, 10.0
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    u, v = np.meshgrid(nodes, nodes)
    w = np.outer(weights, weights) / (2 * np.pi)
    L = np.linalg.cholesky([[variance, covariance], [covariance, variance_star]])
    f, f_star = mean + L[0, 0] * u, mean_star + L[1, 0] * u + L[1, 1] * v
    integral = (w * np.maximum(gain + penalty * (np.abs(f_star - 0.5) - np.abs(f - 0.5)), 0)).sum()
    draws = np.random.default_rng(0).standard_normal((1, 400_000, 2))
    moments = (np.array([mean]), np.array([variance]), np.array([covariance]))
    found = published_ace.monte_carlo_improvement(np.array([gain]), penalty, moments, mean_star, variance_star, draws)
    assert found[0] == pytest.approx(integral, abs=0.01)


def test_few_draws_are_noise_and_the_exact_improvement_is_their_mean() -> None:
    search = searching(PublishedAce(**QUICK))
    rng = np.random.default_rng(0)
    X = search.problem.projected[:5]
    noisy = search.improvement(100.0, rng)
    draws = np.array([noisy(X) for _ in range(400)])
    exact = searching(PublishedAce(**QUICK, exact_improvement=True)).improvement(100.0, rng)(X)
    assert (draws.std(axis=0)[exact > 1e-3] > 0).all() and exact.max() > 0.1
    assert_allclose(draws.mean(axis=0), exact, rtol=0.1, atol=0.05)


# -- branch and bound ------------------------------------------------------------------------------------


def concave(X: FloatArray) -> FloatArray:
    """Separable, with its maximum at (2.4, 1.7, 0.6)."""
    value: FloatArray = 20 - (X[:, 0] - 2.4) ** 2 - 3 * (X[:, 1] - 1.7) ** 2 - (X[:, 2] - 0.6) ** 2
    return value


def test_greedy_branching_finds_the_best_floor_or_ceiling() -> None:
    low, high = np.zeros(3), np.full(3, 4.0)
    root = published_ace.climb(concave, np.ones(3), low, high)[0]
    assert_allclose(root, [2.4, 1.7, 0.6], atol=1e-3)
    found = greedy_branching(concave, root, low, high, np.array([0, 1]))
    corners = np.array([[*pair, 0.6] for pair in product([2, 3], [1, 2])])
    assert_allclose(found, corners[concave(corners).argmax()], atol=1e-3)
    assert found[:2].tolist() == [2, 2]  # the best box of the paper's example in appendix E


def test_greedy_branching_misses_a_category_that_full_branching_finds() -> None:
    def far(X: FloatArray) -> FloatArray:  # the category 3 is best, though 1.5 is the best number
        return np.asarray(5 - (X[:, 0] - 1.5) ** 2 + 9 * (X[:, 0] == 3))

    low, high, column = np.zeros(1), np.full(1, 3.0), np.array([0])
    codes = [np.arange(4.0)]
    every = np.arange(4.0)[:, None]
    assert greedy_branching(far, np.array([1.5]), low, high, column)[0] in (1, 2)
    everything = full_branching(far, np.array([1.5]), low, high, column, codes, lambda X: np.ones(len(X), bool))
    assert everything is not None and everything[0] == every[far(every).argmax(), 0] == 3

    def without_three(X: FloatArray) -> BoolArray:
        return np.asarray(X[:, 0] != 3)

    accepted = full_branching(far, np.array([1.5]), low, high, column, codes, without_three)
    assert accepted is not None and accepted[0] in (1, 2)


def test_full_branching_refuses_too_many_combinations() -> None:
    codes = [np.arange(100.0)] * 3
    with pytest.raises(ValueError, match="all_categories"):
        full_branching(concave, np.zeros(3), np.zeros(3), np.ones(3), np.arange(3), codes, lambda X: X[:, 0] > 0)


# -- samplers --------------------------------------------------------------------------------------------


def test_truncated_normals_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    low, high, mean, deviation = np.array([0.0]), np.array([2.0]), np.array([1.5]), np.array([1.2])
    drawn = [published_ace.truncated_normal(rng, mean, deviation, low, high)[0] for _ in range(2000)]
    known = truncnorm((0 - 1.5) / 1.2, (2 - 1.5) / 1.2, 1.5, 1.2)
    assert kstest(drawn, known.cdf).pvalue > 0.01


@pytest.mark.parametrize("start", ["normal", "lhs", "random", "test"])
def test_starts_lie_in_the_region_and_leave_frozen_features_alone(start: Any) -> None:
    search = searching(PublishedAce(**QUICK, start=start))
    starts = np.array(list(published_ace._starts(search, np.random.default_rng(0))))
    region = search.problem.region
    assert starts.shape == (10, 4) and (starts >= region.low).all() and (starts <= region.high).all()
    assert (starts[:, 3] == search.problem.factual[3]).all() and len(np.unique(starts, axis=0)) > 5
    rows = {row.tobytes() for row in search.problem.projected}
    assert all(x.tobytes() in rows for x in starts) == (start == "test")


def test_the_sobol_points_fill_the_box_and_categories_have_codes() -> None:
    search = searching(PublishedAce(**QUICK | {"sobol": 1024}))
    X = published_ace.sobol_points(search.settings, search.problem, np.random.default_rng(0))
    assert set(X[:, 2]) == {0, 1, 2, 3} and (X[:, 3] == search.problem.factual[3]).all()
    assert qmc.discrepancy(X[:, :1] / 10) < 1e-4  # random points have about 2e-3
    rays = published_ace.sobol_points(PublishedAce(**QUICK, sobol_rays=True), search.problem, np.random.default_rng(0))
    assert np.median(search.problem.cost(rays)) < np.median(search.problem.cost(X))


def test_the_sobol_step_asks_the_nearest_of_those_closest_to_one_half() -> None:
    search = searching(PublishedAce(**QUICK | {"sobol": 512}))
    found = published_ace.boundary_point(search, np.random.default_rng(5))
    X = published_ace.sobol_points(search.settings, search.problem, np.random.default_rng(5))
    off = np.abs(search.posterior.probability(search.coordinates(X)) - 0.5)
    close = X[off <= np.quantile(off, 0.055)]
    distance = np.linalg.norm(close - search.problem.factual, axis=1)
    assert found is not None and np.linalg.norm(found - search.problem.factual) == pytest.approx(
        distance.min(), rel=0.1
    )


# -- the whole -------------------------------------------------------------------------------------------


def reference() -> FloatArray:
    rng = np.random.default_rng(3)
    return SPACE.snap(rng.random((80, 4)) * [10, 8, 3, 1])


def rule(X: FloatArray) -> FloatArray:
    return (X[:, 0] + X[:, 1] + 2 * X[:, 2] > 9).astype(int)


X0 = np.array([2.0, 2.0, 1.0, 0.5])


def session(strategy: PublishedAce, **options: Any) -> Any:
    explainer = acex.Explainer(rule, reference(), space=SPACE, plausibility=options.pop("plausibility", None))
    return explainer.search(X0, strategy=strategy, budget=60, **options)


def searching(strategy: PublishedAce) -> Any:
    """The state of a search after its first points."""
    s = session(strategy)
    for step in s:
        if step.position == strategy.n0 - 1:
            break
    search = s._search
    return published_ace._State(strategy, search.problem, search.history)


def test_a_round_has_one_acquisition_for_each_penalty_and_ends_with_the_sobol_step() -> None:
    e = session(PublishedAce(**QUICK)).run()
    first = [step for step in e.steps if step.note.round == 1]
    assert [step.purpose for step in e.steps[1:8]] == ["initial"] * 7
    assert first[-1].purpose == "boundary" and {step.purpose for step in first[:-1]} == {"acquire"}
    penalties = [step.note.penalty for step in first[:-1]]
    all_penalties = 10.0 ** (1.5 ** np.arange(7))  # the eighth would be 10^17, above 10^15
    assert len(penalties) <= 7 and np.isclose(np.array(penalties)[:, None], all_penalties).any(axis=1).all()


def test_one_round_on_moons_is_the_papers_count_with_the_cap_of_the_authors_code() -> None:
    explainer = acex.Explainer(MOONS.predict, MOONS.reference, space=MOONS.space, plausibility=None)
    strategy = PublishedAce(n0=4, lambda_max=1e30, mc=50, sobol=256, max_rounds=1, initial="reference")
    counts = [len(explainer.explain(MOONS.rows[0], strategy=strategy, budget=60, seed=s).steps) for s in range(4)]
    # 4 first points, 9 acquisitions (8 where nothing improves at the first penalty) and the Sobol step.
    assert max(counts) in (13, 14)
    assert sum(10.0 ** (1.5**k) < 1e30 for k in range(12)) == 9


def test_points_within_epsilon_of_each_other_end_a_round() -> None:
    search = searching(PublishedAce(**QUICK))
    history = search.history
    for step in (5.0, 5.0 + 5e-4):
        point = np.array([step, 2.0, 1.0, 0.5])
        history = history.with_answer(Query(point, "acquire", 1, 100.0), False)
    query = PublishedAce(**QUICK).next_query(search.problem, history, seed=0)
    assert isinstance(query, Query) and query.purpose == "boundary"
    query = PublishedAce(**QUICK, epsilon=1e-6).next_query(search.problem, history, seed=0)
    assert isinstance(query, Query) and query.purpose == "acquire" and query.penalty >= 100.0**1.5


@pytest.mark.parametrize(
    ("steps", "repairs", "ends"),
    [
        ([(3.0, True)], [], False),  # the first counterfactual
        ([(3.0, True), (2.0, True)], [], False),  # a nearer one
        ([(3.0, True), (4.0, True)], [], True),  # a farther one
        ([(3.0, True), (4.0, True)], ["two_idle_rounds"], False),
        ([(3.0, True), (4.0, True), (3.5, True)], ["two_idle_rounds"], True),
        ([(3.0, True), (4.0, False)], [], False),  # no hit: the search goes on
        ([(3.0, True), (4.0, False)], ["best_asked"], True),
    ],
)
def test_the_search_ends_when_a_round_finds_nothing_nearer(
    steps: list[tuple[float, bool]], repairs: list[str], ends: bool
) -> None:
    search = searching(PublishedAce(**QUICK))
    history = History((), ()).with_answer(search.history.queries[0], False)
    for r, (step, hit) in enumerate(steps, start=1):
        history = history.with_answer(Query(X0 + np.array([step, 0, 0, 0]), "boundary", r), hit)
    assert published_ace._is_over(PublishedAce.with_repairs(*repairs), search.problem, history) == ends


def test_the_same_seed_asks_the_same_rows_and_another_seed_others() -> None:
    one, two, other = (session(PublishedAce(**QUICK), seed=seed).run() for seed in (0, 0, 1))
    assert [step.row for step in one.steps] == [step.row for step in two.steps]
    assert [step.row for step in one.steps] != [step.row for step in other.steps]


@pytest.mark.parametrize("names", [*([name] for name in REPAIRS), list(REPAIRS)], ids=lambda names: names[0][:18])
def test_each_repair_runs_and_its_answer_is_a_hit(names: list[str]) -> None:
    strategy = PublishedAce.with_repairs(*names, **QUICK)
    plausibility = acex.Plausibility(kind="lof") if strategy.reference_lof else None
    e = session(strategy, plausibility=plausibility).run()
    X = np.array([list(step.row.values()) for step in e.steps])
    found = answer(strategy, e.steps, X)
    assert len(e.steps) > 8 and (X[:, 3] == X0[3]).all()
    if found is not None:
        assert rule(found[None])[0] == 1
    if names == list(REPAIRS):
        assert found is not None
        hits = [step.cost for step in e.steps if step.is_counterfactual]
        assert e.costs[0] == pytest.approx(min(hits))


def test_the_answer_is_the_last_sobol_point_and_with_a_repair_the_best_asked() -> None:
    def step(purpose: str, hit: bool, cost: float) -> Any:
        return SimpleNamespace(purpose=purpose, hit=hit, cost=cost, is_counterfactual=hit)

    steps = [
        step("factual", False, 0.0), step("initial", True, 1.0), step("boundary", True, 2.0),
        step("acquire", True, 0.5), step("boundary", True, 3.0), step("boundary", False, 0.1),
    ]  # fmt: skip
    X = np.array([[0.0], [1.0], [2.0], [4.0], [3.0], [9.0]])
    assert answer(PublishedAce(), steps, X) == 3.0
    assert answer(PublishedAce(best_asked=True), steps, X) == 1.0  # the nearest
    assert answer(PublishedAce(best_asked=True, choose_by_cost=True), steps, X) == 4.0  # the cheapest
    assert answer(PublishedAce(), steps[:2], X[:2]) is None


def test_first_points_of_one_class_end_the_published_search_and_not_the_repaired_one() -> None:
    def rare(X: FloatArray) -> FloatArray:
        return (X[:, 0] > 9.9).astype(int)

    explainer = acex.Explainer(rare, reference(), space=SPACE, plausibility=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published = explainer.explain(X0, strategy=PublishedAce(**QUICK), budget=40, progress=False)
        repaired = explainer.explain(X0, strategy=PublishedAce(**QUICK, one_class=True), budget=40, progress=False)
    assert published.outcome == "exhausted" and len(published.steps) == 8
    assert len(repaired.steps) > 8


@pytest.mark.parametrize(
    ("settings", "name"),
    [({"mc": 0}, "mc"), ({"nu": 1.0}, "nu"), ({"start": "sobol"}, "start"), ({"lambda_0": 0.5}, "lambda_0")],
)
def test_a_wrong_setting_is_refused(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        PublishedAce(**settings)


def test_the_method_counts_every_row_that_it_sends() -> None:
    task = Task(MOONS, MOONS.rows[0])
    model = CountedModel(task)
    found = explained(task, model, 0, mc=50, sobol=256, max_rounds=3)
    assert METHODS["ace-published"].revision == PublishedAce.revision
    assert model.queries == model.distinct > 4
    assert len(found) == 0 or (MOONS.predict(found) != model.before).all()


def test_the_ablation_has_every_repair_and_compares_rows_that_all_variants_have() -> None:
    assert {name for names in ablation.VARIANTS.values() for name in names} == set(REPAIRS)
    line = {"data": "blood", "seed": 0, "queries": 10, "valid": True, "affinity": 1.0, "cpu": 1.0}
    lines = pd.DataFrame(
        [line | {"method": m, "row": 0, "J": 8.0 if m == "as published" else 2.0} for m in ablation.VARIANTS]
    )
    more = pd.DataFrame([line | {"method": "as published", "row": 1, "J": 100.0}])
    table = ablation.ablation_tables(pd.concat([lines, more]))["repairs"]
    ratios = {row[0]: row[5] for row in table.rows}
    assert ratios["as published"] == "1" and ratios["all repairs"] == "0.25 (0.25–0.25)"


def test_the_hyperparameters_swept_are_those_of_appendix_g() -> None:
    names = {name for setting in ablation.SETTINGS.values() for name in setting}
    assert names == {"lambda_0", "nu", "mc", "growth", "sobol", "beta", "seed"}
