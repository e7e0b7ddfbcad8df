"""The methods of others: each is checked against its own paper or package, on a rule that is known."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.kinds import Continuous, Integer
from acex.space.space import Space
from benchmarks.methods import FILES, METHODS, baycon, cfnow, dice, gower, gradient, growing_spheres, moc, treecf
from benchmarks.scenario import Forest, Scenario
from benchmarks.task import CapReached, CountedModel, Explain, Task

SPACE = Space(
    (
        Continuous("a", 0.0, 1.0),
        Continuous("b", -2.0, 4.0),
        Integer("n", 0, 5),
        Integer("coin", 0, 1),
        Continuous("fixed", 0.0, 10.0, frozen=True),
    )
)
X0 = np.array([0.21, 1.5, 2.0, 0.0, 3.3])
N_REFERENCE = 200


class Rule:
    """A model that is known, and counts for itself."""

    def __init__(self, rule: Callable[[FloatArray], BoolArray]) -> None:
        self.rule, self.rows = rule, 0

    def predict(self, X: FloatArray) -> IntArray:
        self.rows += len(X)
        return self.rule(X).astype(np.intp)


def a_is_high(X: FloatArray) -> BoolArray:
    high: BoolArray = X[:, 0] > 0.5
    return high


def sum_is_high(X: FloatArray) -> BoolArray:
    high: BoolArray = X[:, 0] + X[:, 1] / 6 + X[:, 2] / 5 > 1.3
    return high


def never(X: FloatArray) -> BoolArray:
    return np.zeros(len(X), dtype=bool)


def task(
    rule: Callable[[FloatArray], BoolArray] = a_is_high,
    space: Space = SPACE,
    x: FloatArray = X0,
    categories: tuple[int, ...] = (),
) -> Task:
    rng = np.random.default_rng(0)
    reference = space.snap(space.low + rng.random((N_REFERENCE, len(space))) * (space.high - space.low))
    labels = rule(reference).astype(np.intp)
    is_category = np.isin(np.arange(len(space)), categories)
    return Task(Scenario("rule", space, Rule(rule), x[None], reference, labels, reference.std(axis=0), is_category), x)


def peer(name: str, *marks: pytest.MarkDecorator) -> object:
    reason = METHODS[name].missing()
    skip = pytest.mark.skipif(reason is not None, reason=str(reason))
    return pytest.param(METHODS[name].explain, id=name, marks=[skip, *marks])


OWN = [growing_spheres.growing_spheres, growing_spheres.growing_spheres_raw, gradient.gradient]
EVOLVED = (moc.moc, moc.moc_until_it_stagnates, moc.moc_with_ice_curves)
SLOW = [pytest.param(m, marks=pytest.mark.slow) for m in (*EVOLVED, baycon.baycon)]
PEERS = [peer("dice-random"), peer("dice-genetic"), peer("hopskipjump", pytest.mark.slow)]
NICE = peer("nice")


# -- what holds for all ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [a_is_high, sum_is_high])
@pytest.mark.parametrize("method", [*OWN, *SLOW, *PEERS])
def test_a_method_returns_hits_that_the_row_may_become(
    method: Explain, rule: Callable[[FloatArray], BoolArray]
) -> None:
    t = task(rule)
    found = method(t, CountedModel(t), 0)
    assert len(found) >= 1
    assert t.allowed(found).all()
    assert (found[:, 4] == X0[4]).all() and (found[:, 2] == np.round(found[:, 2])).all()
    assert rule(found).all()


@pytest.mark.parametrize("method", [*OWN, *SLOW, *PEERS, NICE])
def test_every_query_is_counted(method: Explain) -> None:
    t = task(sum_is_high)
    model = CountedModel(t)
    method(t, model, 0)
    assert 60 < t.scenario.model.rows == model.distinct <= model.queries  # what is known is not sent again


@pytest.mark.parametrize("method", [*OWN, *SLOW, *PEERS, NICE])
def test_the_same_seed_asks_the_same(method: Explain) -> None:
    first, second = CountedModel(task(sum_is_high)), CountedModel(task(sum_is_high))
    np.random.seed(0)  # noqa: NPY002
    one = method(first.task, first, 3)
    np.random.seed(1)  # noqa: NPY002
    assert_allclose(method(second.task, second, 3), one)
    assert second.curve == first.curve and second.queries == first.queries


@pytest.mark.parametrize(
    "method", [*OWN, *SLOW, NICE, peer("dice-random"), peer("dice-genetic", pytest.mark.slow), peer("hopskipjump")]
)
def test_without_a_counterfactual_a_method_ends(method: Explain) -> None:
    t = task(never)
    model = CountedModel(t, cap=8000)
    try:
        assert len(method(t, model, 0)) == 0
    except CapReached:
        assert model.best is None


@pytest.mark.parametrize("method", [*PEERS, NICE])
def test_a_package_prints_nothing_and_leaves_the_global_numbers_alone(
    method: Explain, capfd: pytest.CaptureFixture[str]
) -> None:
    before = random.getstate(), str(np.random.get_state())  # noqa: NPY002
    t = task()
    method(t, CountedModel(t), 0)
    assert (random.getstate(), str(np.random.get_state())) == before  # noqa: NPY002
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    absent = replace(METHODS["nice"], needs=("no_such_module", "make peers"))
    assert absent.missing() == "nice needs no_such_module, which is not installed: make peers"
    assert METHODS["growing-spheres"].missing() is None


def test_every_file_with_a_method_is_listed() -> None:
    folder = Path(inspect.getfile(gower)).parent
    files = {path.stem for path in folder.glob("*.py") if "\n@method(" in path.read_text(encoding="utf-8")}
    assert files == set(FILES)


# -- Growing Spheres -------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 20), st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_a_shell_has_1000_steps_of_lengths_between_its_radii(d: int, i: int, seed: int) -> None:
    low = i * growing_spheres.STEP
    lengths = np.sqrt((growing_spheres.shell(np.random.default_rng(seed), d, low) ** 2).sum(axis=1))
    assert lengths.shape == (1000,)
    assert low - 1e-9 <= lengths.min() and lengths.max() <= low + 0.2 + 1e-9
    assert stats.kstest((lengths - low) / 0.2, "uniform").pvalue > 1e-9


def test_layers_grow_and_two_valued_features_are_coins() -> None:
    t = task()
    layers = growing_spheres.layers(t, 0, gower.widths(t))
    first, second = next(layers), next(layers)
    for X, high in ((first, 0.2), (second, 0.4)):
        assert X.shape == (1000, 5) and t.allowed(X).all()
        assert abs(X[:, 3].mean() - 0.5) < 0.1
        steps = np.abs(X - X0)[:, :2] / gower.widths(t)[:2]
        assert steps.max() <= high + 1e-9
    assert np.abs(second[:, 1] - X0[1]).mean() > np.abs(first[:, 1] - X0[1]).mean()


def test_what_is_frozen_takes_no_part_of_a_step() -> None:
    ends = (-5.0, 5.0)
    t = task(
        space=Space((Continuous("a", *ends), Continuous("b", *ends), Continuous("c", *ends, frozen=True))),
        x=np.zeros(3),
    )
    layers = growing_spheres.layers(t, 0, gower.widths(t))
    for i in range(3):
        steps = next(layers) / gower.widths(t)
        lengths = np.linalg.norm(steps[:, :2], axis=1)
        assert 0.2 * i - 1e-9 <= lengths.min() and lengths.max() <= 0.2 * (i + 1) + 1e-9
        assert (steps[:, 2] == 0).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_the_projection_stays_a_hit_and_changes_no_more(seed: int) -> None:
    t = task(sum_is_high)
    rng = np.random.default_rng(seed)
    X = t.project(SPACE.low + rng.random((50, 5)) * (SPACE.high - SPACE.low))
    hit = X[sum_is_high(X)][0]
    model = CountedModel(t)
    projected = growing_spheres.projected(t, model, hit)
    changed = hit != X0
    assert sum_is_high(projected[None])[0]
    assert ((projected == hit) | (projected == X0)).all()
    assert model.queries <= 1 + changed.sum()
    # Of the changes that are left, the one tried last cannot be undone: others may have been tried too early.
    left = np.flatnonzero(projected != X0)
    last = left[np.argmax(np.abs(hit - X0)[left] / gower.widths(t)[left])]
    undone = projected.copy()
    undone[last] = X0[last]
    assert not sum_is_high(undone[None])[0]


def test_growing_spheres_asks_whole_layers_and_undoes_what_does_not_matter() -> None:
    t = task()
    model = CountedModel(t)
    found = growing_spheres.growing_spheres(t, model, 0)[0]
    assert 0.5 < found[0] < 0.6 and (found[1:] == X0[1:]).all()
    # The boundary is 0.29 ranges away: in the second layer.
    assert 2001 <= model.queries <= 2001 + len(X0)


def test_in_raw_units_layers_are_counted_in_the_units_of_the_table_and_nothing_is_undone() -> None:
    wide = Space((Continuous("a", 0.0, 100.0), Continuous("b", 0.0, 100.0)))
    t = task(lambda X: X[:, 0] > 51.3, wide, np.array([50.0, 50.0]))
    model = CountedModel(t)
    found = growing_spheres.growing_spheres_raw(t, model, 0)[0]
    assert model.queries == 1 + 7 * 1000  # 1.3 is in the seventh layer of 0.2
    assert 1.3 < np.linalg.norm(found - t.x) < 1.4 and found[1] != 50.0


# -- MOC -------------------------------------------------------------------------------------------------


def dominated(F: FloatArray) -> list[bool]:
    """Which points another one is better than, by comparing all."""
    return [any((g <= f).all() and (g < f).any() for g in F) for f in F]


def test_gower_is_the_mean_of_steps_over_ranges() -> None:
    t = task()
    width = np.ptp(t.scenario.reference, axis=0)
    expected = [
        [np.mean([abs(p - q) / w for p, q, w in zip(x, y, width, strict=True)]) for y in SPACE_ROWS] for x in X0_ROWS
    ]
    assert_allclose(gower.gower(t, X0_ROWS, SPACE_ROWS), expected)


X0_ROWS = np.array([X0, [0.9, -1.0, 5.0, 1.0, 3.3]])
SPACE_ROWS = np.array([X0, [0.0, 4.0, 0.0, 1.0, 9.0], [1.0, 1.0, 1.0, 1.0, 1.0]])


def test_the_objectives_are_those_of_the_paper() -> None:
    t = task()
    x = np.array([[0.81, 1.5, 3.0, 0.0, 3.3]])
    F = moc.objectives(t, np.vstack([x, X0]), np.array([True, False]))
    ranges = np.ptp(t.scenario.reference, axis=0)
    nearest = min(np.mean(np.abs(x[0] - row) / ranges) for row in t.scenario.reference)
    assert_allclose(F[0], [0, (0.6 / ranges[0] + 1 / ranges[2]) / 5, 2, nearest])
    assert_allclose(F[1, :3], [1, 0, 0])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=25))
def test_the_first_front_is_what_nothing_dominates(rows: list[tuple[int, ...]]) -> None:
    F = np.array(rows, dtype=float)
    assert ((moc.fronts(F) > 0) == dominated(F)).all()


def test_hits_come_before_misses_and_doubles_last() -> None:
    t = task()
    X = np.array([[0.2, 1, 2, 0, 3.3], [0.9, 1, 2, 0, 3.3], [0.9, 1, 2, 0, 3.3], [0.6, 1.5, 2, 0, 3.3]])
    places = moc.fitness(t, X, moc.objectives(t, X, a_is_high(X)))
    assert sorted(places[[1, 3]]) == [0, 1] and places[0] == 2 and places[2] == 3


def test_nothing_that_moc_asked_dominates_what_it_returns() -> None:
    t = task(sum_is_high)
    model = CountedModel(t)
    found = moc.moc(t, model, 0)
    assert model.queries == 1 + 20 + 175 * 20 and t.scenario.model.rows == model.distinct
    assert t.allowed(found).all() and sum_is_high(found).all()
    asked = np.array([row for row, _ in model.answers])
    hits = asked[sum_is_high(asked)]
    every = moc.objectives(t, hits, np.ones(len(hits), dtype=bool))
    F = moc.objectives(t, found, np.ones(len(found), dtype=bool))
    assert not any(((every <= f).all(axis=1) & (every < f).any(axis=1)).any() for f in F)
    assert len(np.unique(found, axis=0)) == len(found) > 1


def test_the_volume_grows_with_hits_and_is_that_of_the_box_for_one_point() -> None:
    t = task()
    miss, hit = np.array([[1.0, 0.2, 1.0, 0.3]]), np.array([[0.0, 0.25, 2.0, 0.5]])
    assert moc.volume(t, miss) == 0.0
    assert moc.volume(t, np.vstack([miss, hit])) == pytest.approx(1 * 0.75 * 3 * 0.5)


def test_without_a_hit_stagnation_ends_after_ten_generations() -> None:
    t = task(never)
    model = CountedModel(t)
    assert len(moc.moc_until_it_stagnates(t, model, 0)) == 0
    assert model.queries == 1 + 20 * (1 + moc.PATIENCE)


def test_the_first_population_changes_what_the_label_depends_on() -> None:
    t = task()  # the label depends on the first feature alone
    model = CountedModel(t)
    changed = moc.ice_probabilities(t, model)
    assert changed[0] == pytest.approx(0.99) and (changed[1:] <= 0.01 + 1e-9).all()
    assert 1 + 20 + 20 + 6 + 2 >= model.queries > 40  # the curve of each feature that may change
    t = task(never)
    assert (moc.ice_probabilities(t, CountedModel(t)) == 0.5).all()


def test_a_conditional_mutation_draws_what_goes_with_the_other_features() -> None:
    t = task()
    reference = t.scenario.reference
    reference[:, 1] = 6 * reference[:, 0] - 2  # b follows from a
    X = np.tile(X0, (200, 1))
    X[:, 0] = np.linspace(0, 1, 200)
    mutated = np.zeros(X.shape, dtype=bool)
    mutated[:, 1] = True
    drawn = moc.conditional_values(t, np.random.default_rng(0), X, mutated)
    assert (drawn[:, [0, 2, 3, 4]] == X[:, [0, 2, 3, 4]]).all() and np.isin(drawn[:, 1], reference[:, 1]).all()
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.6


def test_children_keep_the_features_that_their_flags_keep() -> None:
    t = task()
    rng = np.random.default_rng(0)
    X = t.project(SPACE.low + rng.random((20, 5)) * (SPACE.high - SPACE.low))
    keep = rng.random(X.shape) < 0.5
    children, flags = moc.offspring(t, rng, X, keep, np.arange(20))
    assert children.shape == flags.shape == (20, 5)
    assert (children[flags] == np.tile(X0, (20, 1))[flags]).all() and t.allowed(children).all()


def test_children_are_spread_as_simulated_binary_crossover_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moc, "MUTATED", 0.0)
    monkeypatch.setattr(moc, "RECOMBINED", 1.0)
    monkeypatch.setattr(moc, "RECOMBINED_VALUE", 1.0)
    n, wide = 2000, Space((Continuous("a", -1e3, 1e3),))
    t = task(a_is_high, wide, np.zeros(1))
    X = np.random.default_rng(1).random((n, 1))
    children, _ = moc.offspring(t, np.random.default_rng(0), X, np.zeros((n, 1), dtype=bool), np.arange(n))
    parents = X[np.random.default_rng(0).integers(0, n, (2, n)).min(axis=0)]  # the better of two, drawn first
    (first, second), (mother, father) = np.split(children[:, 0], 2), np.split(parents[:, 0], 2)
    assert_allclose(first + second, mother + father, atol=1e-9)
    apart = np.abs(mother - father) > 1e-3
    spread = (first - second)[apart] / (mother - father)[apart]

    # Deb and Agrawal (1995): their density (e + 1) / 2 beta^e, and beta^-(e + 2) beyond 1, integrated.
    power = moc.SPREAD + 1
    share = np.where(spread < 1, spread**power / 2, 1 - spread**-power / 2)
    assert stats.kstest(share, "uniform").pvalue > 1e-4


# -- BayCon ----------------------------------------------------------------------------------------------


def test_the_score_is_nearness_times_the_share_of_features_left_alone() -> None:
    t = task()
    X = np.array([[0.81, 1.5, 3.0, 0.0, 3.3]] * 2)
    low, high = np.quantile(t.scenario.reference, [0.05, 0.95], axis=0)
    ranges = high - low + 1  # as in the authors' DataAnalyzer
    near = 1 - (0.6 / ranges[0] + 1 / ranges[2]) / 5
    assert_allclose(baycon.score(t, X, np.array([True, False])), [near * 3 / 5, 0.0], atol=1e-5)
    category = task(categories=(2,))
    near = 1 - (0.6 / ranges[0] + 1) / 5
    assert_allclose(baycon.score(category, X, np.array([True, False])), [near * 3 / 5, 0.0], atol=1e-5)


def test_numbers_are_drawn_between_quantiles_and_categories_from_all_that_occur() -> None:
    t, rng = task(categories=(2,)), np.random.default_rng(0)
    X = np.vstack([baycon.around(t, rng), baycon.anywhere(t, rng)])
    low, high = np.quantile(t.scenario.reference, [0.05, 0.95], axis=0)
    grid = 0.01 * (high - low)
    for j in (0, 1):
        drawn = X[X[:, j] != X0[j], j]
        assert drawn.min() >= low[j] - grid[j] and drawn.max() <= high[j] + grid[j]
    assert set(X[:, 2]) == set(t.scenario.reference[:, 2])


def test_a_number_that_all_rows_share_is_left_alone_without_a_word() -> None:
    t, rng = task(), np.random.default_rng(0)
    reference = t.scenario.reference.copy()
    reference[:, 1] = 2.0
    t = Task(replace(t.scenario, reference=reference), X0)
    with np.errstate(all="raise"):
        X = baycon.anywhere(t, rng)
    assert (X[:, 1] == X0[1]).all() and (X[:, 0] != X0[0]).any()


def test_candidates_are_asked_by_expected_improvement() -> None:
    rng = np.random.default_rng(0)
    known, candidates = rng.random((40, 3)), rng.random((30, 3))
    forest = RandomForestRegressor(100, random_state=0).fit(known, np.sin(5 * known).sum(axis=1))
    chosen = baycon.most_promising(forest, known, candidates)

    best = max(forest.predict(known))
    trees = np.array([tree.predict(candidates) for tree in forest.estimators_])

    def improvement(values: FloatArray) -> float:
        mean, spread = np.mean(values), np.std(values)
        density = stats.norm(mean, spread).pdf
        return float(quad(lambda y: (y - best - 0.001) * density(y), best + 0.001, mean + 12 * spread)[0])

    expected = np.array([improvement(values) for values in trees.T])
    assert len(chosen) == 20
    assert_allclose(expected[chosen], np.sort(expected)[::-1][:20], atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(st.floats(-5, 5), st.floats(0.1, 3), st.floats(-8, 8), st.floats(0.1, 4), st.integers(0, 2**32 - 1))
def test_draws_are_normal_and_cut_off(mean: float, spread: float, start: float, width: float, seed: int) -> None:
    low, high = mean + start, mean + start + width  # the mean may lie outside
    draws = baycon._normal(np.random.default_rng(seed), 500, *(np.array([v]) for v in (mean, spread, low, high)))
    other = stats.truncnorm((low - mean) / spread, (high - mean) / spread, loc=mean, scale=spread)
    assert stats.kstest(draws[:, 0], other.cdf).pvalue > 1e-9


def test_far_from_the_mean_draws_stay_at_the_near_end() -> None:
    draws = baycon._normal(np.random.default_rng(0), 50, *(np.array([v]) for v in (0.0, 1.0, 100.0, 200.0)))
    assert (draws >= 100).all() and (draws < 101).all()


def test_neighbours_lie_between_origin_and_factual_and_random_points_everywhere() -> None:
    t, rng = task(), np.random.default_rng(0)
    origin = np.array([0.9, -1.0, 5.0, 1.0, 3.3])
    near = baycon.towards(t, rng, origin, 100)
    grid = 0.01 * gower.widths(t)
    assert (near >= np.minimum(origin, X0) - grid).all() and (near <= np.maximum(origin, X0) + grid).all()
    X = baycon.anywhere(t, rng)
    assert len(X) > 1000 and t.allowed(X).all() and (X != X0).any(axis=1).all()
    assert np.ptp(X[:, 1]) > 4.5  # of 6, without a twentieth at either end
    new = baycon.new(t, X[0], X, known=X[:100])
    assert not {row.tobytes() for row in new} & {row.tobytes() for row in X[:100]}


@pytest.mark.slow
def test_baycon_asks_in_the_order_of_1000_queries_and_ends_near_the_boundary() -> None:
    t = task()
    model = CountedModel(t)
    found = baycon.baycon(t, model, 0)
    assert 300 < model.queries < 5000
    best = found[np.argmin(t.cost(found))]
    assert 0.5 < best[0] < 0.55 and (best[1:] == X0[1:]).all()


# -- gradient --------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_input_gradient_is_that_of_finite_differences(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = gradient.Network(
        rng.standard_normal((d, 6)), rng.standard_normal(6), rng.standard_normal(6), rng.standard_normal()
    )
    z = rng.standard_normal(d)

    def value(p: FloatArray) -> float:
        return network.logit(p)[0]

    assert_allclose(network.logit(z)[1], approx_fprime(z, value, 1e-7), atol=1e-4)


def test_the_network_tells_hits_from_misses() -> None:
    Z = np.random.default_rng(0).standard_normal((60, 2))
    is_hit = Z[:, 0] > 0.3
    network = gradient.Network.fit(Z, is_hit, 0)
    assert np.mean([(network.logit(z)[0] > 0) == hit for z, hit in zip(Z, is_hit, strict=True)]) > 0.95


def test_a_greater_lambda_goes_further_and_never_out_of_the_region() -> None:
    t = task()
    straight = gradient.Network(np.eye(5)[:, :1], np.zeros(1), np.array([20.0]), -10.0)  # sees only the first feature
    ends = [gradient.descended(t, straight, np.zeros(5), weight) for weight in (0.01, 0.1, 100.0)]
    assert 0 < ends[0][0] < ends[1][0] < ends[2][0]
    assert all((z[1:] == 0).all() for z in ends)
    assert t.allowed(X0 + ends[2] * t.scenario.deviations)[0]


def test_the_gradient_method_takes_labels_and_a_few_queries_more() -> None:
    t = task()
    model = CountedModel(t)
    found = gradient.gradient(t, model, 0)
    assert found.shape == (1, 5) and a_is_high(found)[0]
    assert 61 < model.queries <= 61 + gradient.DOUBLINGS


def test_the_gradient_method_works_on_pixels() -> None:
    space = Space(tuple(Continuous(f"pixel {i}", 0.0, 1.0) for i in range(784)))
    x = np.full(784, 0.45)
    t = task(lambda X: X[:, :100].mean(axis=1) > 0.5, space, x)
    found = gradient.gradient(t, CountedModel(t), 0)
    assert found.shape == (1, 784) and found[0, :100].mean() > 0.5
    step = np.abs(found[0] - x)
    assert step[:100].mean() > step[100:].mean()


def test_omnixai_finds_the_nearest_point_in_l1_that_the_network_calls_a_hit() -> None:
    # f = 20 tanh(z0 + z1 / 4) - 10 is zero where z0 + z1 / 4 = atanh(1/2): in l1 the first feature alone is nearest.
    network = gradient.Network(np.array([[1.0], [0.25], [0.0]]), np.zeros(1), np.array([20.0]), -10.0)
    ends = np.full(3, 1.0)
    found = gradient.bisected(network, -ends, ends)
    assert found is not None and network.logit(found)[0] > 0
    assert np.abs(found).sum() < 1.3 * np.arctanh(0.5) and abs(found[2]) < 0.02
    never_a_hit = gradient.Network(np.zeros((3, 1)), np.zeros(1), np.zeros(1), -1.0)
    assert gradient.bisected(never_a_hit, -ends, ends) is None


def test_omnixai_asks_as_many_rows_as_ace_for_an_image_and_once_more() -> None:
    t = task(sum_is_high)
    model = CountedModel(t)
    found = gradient.omnixai(t, model, 0)
    assert model.queries in (60, 61)  # the factual, 59 rows, and the answer unless there is none
    assert len(found) == 0 or sum_is_high(found).all()


# -- peers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [NICE])
def test_nice_takes_all_its_changes_from_one_row_and_pays_for_the_labels(method: Explain) -> None:
    t = task(sum_is_high)
    model = CountedModel(t)
    found = method(t, model, 0)[0]
    assert model.queries > 1 + N_REFERENCE
    changed = found != X0
    assert sum_is_high(found[None])[0]
    assert (t.scenario.reference[:, changed] == found[changed]).all(axis=1).any()


@pytest.mark.parametrize("method", [peer("dice-random")])
def test_dice_samples_1000_points_for_one_change_and_1000_for_two(method: Explain) -> None:
    t = task()
    model = CountedModel(t)
    method(t, model, 0)
    assert 2000 <= model.queries < 2050


@pytest.mark.parametrize("method", [peer("dice-genetic")])
def test_dices_genetic_search_pays_for_the_labels_of_the_reference(method: Explain) -> None:
    t = task()
    model = CountedModel(t)
    method(t, model, 0)
    assert N_REFERENCE < model.queries < N_REFERENCE + dice.GENETIC_LIMIT
    asked = np.array([row for row, _ in model.answers], dtype=np.float32)  # the precision that DiCE keeps
    assert set(map(tuple, t.scenario.reference.astype(np.float32))) <= set(map(tuple, asked))


@pytest.mark.parametrize("method", [peer("dice-kdtree")])
def test_dices_tree_goes_from_a_row_of_the_reference_towards_the_factual(method: Explain) -> None:
    space = Space((Integer("a", 0, 9), Integer("b", 0, 9), Integer("c", 0, 9)))
    t = task(lambda X: X[:, 0] > 4, space, np.array([2.0, 5.0, 5.0]))
    model = CountedModel(t)
    (found,) = method(t, model, 0)
    assert N_REFERENCE < model.queries < N_REFERENCE + 50
    between = (np.minimum(t.x, t.scenario.reference) <= found) & (np.maximum(t.x, t.scenario.reference) >= found)
    assert found[0] > 4 and between.all(axis=1).any()


@pytest.mark.parametrize("method", [peer("dice-kdtree")])
def test_where_no_row_keeps_what_is_frozen_the_tree_has_nothing(method: Explain) -> None:
    t = task()
    assert len(method(t, CountedModel(t), 0)) == 0


@pytest.mark.parametrize("method", [peer("cfnow")])
def test_cfnow_gets_scores_and_pays_for_each(method: Explain) -> None:
    forest = RandomForestClassifier(20, random_state=0)
    t = task(sum_is_high)
    forest.fit(t.scenario.reference, t.scenario.labels)
    t = Task(replace(t.scenario, model=forest), X0)
    model = CountedModel(t)
    found = method(t, model, 0)
    assert len(found) and t.allowed(found).all() and model.queries > 20
    assert (forest.predict(found) != model.before).any()


@given(st.integers(0, 2**32 - 1))
def test_cfnow_refines_the_same_way_in_less_time(seed: int) -> None:
    """Its refining compares with all points found so far; those that differ in two features cannot matter."""
    refining: Any = pytest.importorskip("cfnow._fine_tune")
    rng = np.random.default_rng(seed)
    factual, point, *found = rng.integers(0, 2, (2 + rng.integers(1, 9), 4)).astype(float)
    original = refining._generate_change_vectors
    arguments: Any = (pd.Series(factual), factual, point, lambda i: "num", [[rng.integers(4)]], [], [], 0.1, found)
    for now, before in zip(cfnow.of_neighbours(original)(*arguments), original(*arguments), strict=True):
        assert np.array_equal(now, before)


@pytest.mark.parametrize("method", [peer("cfnow")])
def test_where_cfnow_would_search_for_ever_it_is_an_error(method: Explain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cfnow, "STUCK", 0.1)
    forest = RandomForestClassifier(20, random_state=0)
    forest.fit(task(a_is_high).scenario.reference, np.arange(N_REFERENCE) < 1)  # it has no counterfactual
    t = task(a_is_high)
    t = Task(replace(t.scenario, model=forest), X0)
    with pytest.raises(RuntimeError, match="no change is left"):
        method(t, CountedModel(t), 0)


@pytest.mark.parametrize("method", [peer("treecf")])
@pytest.mark.parametrize("seed", range(3))
def test_treecf_finds_the_least_l1_distance(seed: int, method: Explain) -> None:
    space = Space((Integer("a", 0, 8), Integer("b", 0, 8), Integer("c", 0, 8), Integer("stays", 0, 8, frozen=True)))
    t = task(lambda X: X[:, 0] + X[:, 1] - X[:, 2] > 6, space, np.array([2.0, 3.0, 4.0, 1.0]))
    forest = Forest(10, random_state=seed).fit(t.scenario.reference, t.scenario.labels)
    t = Task(replace(t.scenario, model=forest), t.x)
    found = treecf.solved(t, 10.0)
    axes = [np.arange(9.0)] * 3 + [np.array([1.0])]
    everything = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    hits = everything[forest.predict(everything) != forest.predict(t.x[None])[0]]
    least = (np.abs(hits - t.x) / t.scenario.deviations).sum(axis=1).min()
    assert found.is_complete and found.distance == pytest.approx(least)
    assert len(method(t, CountedModel(t), 0)) == 1


@pytest.mark.parametrize("method", [peer("hopskipjump", pytest.mark.slow)])
def test_hopskipjump_finds_the_boundary_and_ends_one_step_beyond(method: Explain) -> None:
    space = Space((Continuous("a", 0.0, 1.0), Continuous("b", 0.0, 1.0), Continuous("fixed", 0.0, 1.0, frozen=True)))
    t = task(a_is_high, space, np.array([0.2, 0.4, 0.7]))
    model = CountedModel(t)
    found = method(t, model, 0)[0]
    assert 20_000 < model.queries < 30_000
    assert model.best is not None
    assert_allclose(model.best, [0.5, 0.4, 0.7], atol=0.01)
    # Its last step, of 1/sqrt(50) of the distance, is not followed by a search for the boundary.
    assert_allclose(found, [0.5 + 0.3 / np.sqrt(50), 0.4, 0.7], atol=0.01)
