"""What the other columns let expect of each: against scikit-learn's ridge regression, and rows left out one by one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score

import acex
from acex.arrays import FloatArray
from acex.space import joint as joint_module
from acex.space.joint import MOST_BASIS, Basis, JointModel
from acex.space.kinds import Continuous, Integer, Nominal, Ordinal
from acex.space.plausibility import Joint, Plausibility
from acex.space.scale import Scale
from acex.space.space import Space

SPACE = Space(
    (
        Continuous("size", -9, 9),
        Integer("money", 0, 100_000),
        Nominal("colour", ("red", "green", "blue")),
        Continuous("same", 5, 5),
        Ordinal("school", ("low", "middle", "high")),
    )
)


def rows(n: int, seed: int = 0) -> FloatArray:
    """Money follows from size and colour, school is by itself."""
    rng = np.random.default_rng(seed)
    size, colour = rng.normal(size=n), rng.integers(0, 3, n)
    money = np.exp(6 + size + 0.5 * (colour == 2) + 0.1 * rng.normal(size=n))
    return SPACE.snap(np.column_stack([size, money, colour, np.full(n, 5.0), rng.integers(0, 3, n)]))


def joint(space: Space, R: FloatArray, threshold: float = -1.5) -> Joint:
    density = Plausibility(threshold).fit(R, Scale.of(space, R))
    assert isinstance(density, Joint)
    return density


@pytest.mark.parametrize("ridge", [0.003, 0.3])
def test_the_regressions_are_those_of_scikit_learn_also_with_a_row_left_out(
    ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_module, "RIDGES", (ridge,))
    R = rows(40)
    basis = Basis.of(Scale.of(SPACE, R), R)
    y = basis.expected(R)
    phi = basis(R, y)
    units = phi.std(axis=0)[: y.shape[1]]
    phi = (phi - phi.mean(axis=0)) * basis.sizes / phi.std(axis=0)
    groups = list(basis.groups())
    errors, slopes = joint_module._regressions(phi, units, groups)
    assert len(groups) == 4  # the column that never varies is not judged
    for columns, S in groups:
        others = np.setdiff1d(np.arange(phi.shape[1]), S)
        assert_array_equal(slopes[np.ix_(S, columns)], 0)
        theirs = Ridge(alpha=ridge * 40 + 1).fit(phi[:, others], y[:, columns])
        assert_allclose(slopes[np.ix_(others, columns)], theirs.coef_.reshape(len(columns), -1).T, atol=1e-8)
        for i in (0, 7, 39):
            without = np.arange(40) != i
            theirs = Ridge(alpha=ridge * 40 + 1).fit(phi[without][:, others], y[without][:, columns])
            told = theirs.predict(phi[[i]][:, others]).ravel()
            assert_allclose(errors[i, columns], y[i, columns] - told, atol=1e-8)


def test_the_spread_is_a_ridge_regression_of_the_errors_on_the_other_traits() -> None:
    rng = np.random.default_rng(0)
    phi, wanted = rng.normal(size=(50, 6)), rng.normal(size=(50, 2))
    phi, wanted = phi - phi.mean(axis=0), wanted - wanted.mean(axis=0)
    groups = [(np.array([0]), np.array([0, 3])), (np.array([1]), np.array([1, 2, 3]))]
    told, slopes = joint_module._spreads(phi, wanted, groups)
    for columns, S in groups:
        others = np.setdiff1d(np.arange(6), S)
        theirs = Ridge(alpha=joint_module.SPREAD_ROWS).fit(phi[:, others], wanted[:, columns].ravel())
        assert_allclose(slopes[others, columns[0]], theirs.coef_, atol=1e-10)
        assert_array_equal(slopes[S, columns[0]], 0)
        without = np.arange(50) != 7
        theirs.fit(phi[without][:, others], wanted[without, columns[0]])
        assert_allclose(told[7, columns[0]], theirs.predict(phi[[7]][:, others])[0])


def test_a_value_that_does_not_fit_the_others_is_noticed_though_each_by_itself_is_usual() -> None:
    R, X = rows(400), rows(300, seed=1)
    density, lof = joint(SPACE, R), Plausibility(kind="lof").fit(R, Scale.of(SPACE, R))
    mixed = X.copy()
    mixed[:, 1] = np.random.default_rng(2).permutation(X[:, 1])
    is_mixed = np.repeat([False, True], len(X))

    def auc(score: object) -> float:
        return float(roc_auc_score(is_mixed, score))

    both = np.vstack([X, mixed])
    assert auc(-density.score(both)) > 0.85 > 0.7 > auc(-lof.score(both))
    assert density.plausible(X).mean() > 0.93
    off = density.model.off(mixed)
    assert [SPACE.names[j] for j in density.model.basis.features] == ["size", "money", "school", "colour"]
    strange = ~density.plausible(mixed)
    assert np.isin(off[strange].argmax(axis=1), [0, 1]).mean() > 0.95  # size or money, which do not fit each other


def test_a_category_that_does_not_fit_is_noticed() -> None:
    rng = np.random.default_rng(0)
    space = Space((Continuous("weight", 0, 9000), Nominal("animal", ("mouse", "cow", "horse"))))
    animal = rng.integers(0, 3, 300)
    R = np.column_stack([np.exp(np.array([-4.0, 6.3, 6.2])[animal] + 0.1 * rng.normal(size=300)), animal])
    cow, mouse = R[R[:, 1] == 1][:20], R[R[:, 1] == 0][:20]
    heavy_mouse, horse = cow.copy(), cow.copy()
    heavy_mouse[:, 1], horse[:, 1] = 0, 2
    density = joint(space, R)
    assert density.plausible(np.vstack([cow, mouse, horse])).mean() > 0.9
    assert density.plausible(heavy_mouse).mean() <= 0.05


def test_where_numbers_spread_more_they_may_be_farther_off() -> None:
    rng = np.random.default_rng(0)
    space = Space((Continuous("a", -9, 9), Continuous("b", -99, 99)))
    a = rng.uniform(0, 3, 2000)
    R = np.column_stack([a, a + rng.normal(size=2000) * np.exp(a - 2)])
    off = joint(space, R).model.off(np.array([[0.5, 2.5], [2.8, 4.8]]))[:, 1]
    assert off[0] > 2 * off[1]


def test_a_number_in_a_gap_or_beyond_the_ends_is_as_strange_as_it_is_far_away() -> None:
    rng = np.random.default_rng(0)
    space = Space((Continuous("a", -1e4, 1e4), Continuous("b", -1e4, 1e4)))
    R = np.where(rng.random((300, 1)) < 0.5, rng.normal(size=(300, 2)), 50 + rng.normal(size=(300, 2)))
    density = joint(space, R)
    X = np.array([[25.0, 25.0], [0.1, 0.2], [50.2, 49.8], [500.0, 50.0]])
    assert density.plausible(X).tolist() == [False, True, True, False]
    # Beyond the distance of the nearest value to its own fifth neighbour, in standard deviations.
    for x in (25.0, 500.0, 52.0, 50.3, R[3, 0]):
        nearest = R[np.abs(R[:, 0] - x).argmin(), 0]
        reach = np.sort(np.abs(R[:, 0] - nearest))[5]
        gap = max(abs(x - nearest) - reach, 0) / R[:, 0].std()
        assert_allclose(density.model.basis.gaps(np.array([[x, 0.0]]))[0, 0], gap)
    for i in np.argsort(R[:, 0])[[0, 1, 100, -1]]:  # a known row, had it not been there
        distance = np.abs(np.delete(R[:, 0], i) - R[i, 0])
        nearest = np.delete(R[:, 0], i)[distance.argmin()]
        gap = max(distance.min() - np.sort(np.abs(R[:, 0] - nearest))[5], 0) / R[:, 0].std()
        assert_allclose(density.model.basis.gaps_without(R)[i, 0], gap)


def test_the_threshold_is_what_two_of_a_hundred_known_rows_exceed() -> None:
    R = rows(500)
    density = joint(SPACE, R)
    own = -1 - 0.5 * (density.model.own - density.median) / density.way
    assert np.median(own) == pytest.approx(-1)
    assert (own > -1.5).mean() == pytest.approx(0.98, abs=0.003)
    assert joint(SPACE, R, threshold=-1.2).plausible(rows(300, 1)).mean() < density.plausible(rows(300, 1)).mean()


def test_a_strange_row_may_stay_as_strange_as_it_is() -> None:
    R = rows(300)
    density = joint(SPACE, R)
    usual, strange = R[0], R[0].copy()
    strange[1] = 90_000
    assert density.least(usual) == -1.5
    assert density.least(strange) == float(density.score(strange[None])[0]) < -1.5
    assert Plausibility(kind="lof").fit(R, Scale.of(SPACE, R)).least(strange) == -1.5  # as in the paper
    data, row = SPACE.decode(R), SPACE.decode(strange[None]).iloc[0]
    e = acex.explain(lambda r: r["school"] == "high", row, data=data, budget=9)
    assert e.outcome == "found"


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 12), d=st.integers(1, 4), seed=st.integers(0, 999), kinds=st.integers(0, 15))
def test_few_rows_and_rows_that_occur_twice_are_judged_alike_each_time(n: int, d: int, seed: int, kinds: int) -> None:
    rng = np.random.default_rng(seed)
    space = Space(tuple(Nominal(f"f{j}", (0, 1, 2)) if kinds >> j & 1 else Integer(f"f{j}", 0, 2) for j in range(d)))
    R = rng.integers(0, 3, (n, d)).astype(float)[rng.integers(0, n, n)]
    density = joint(space, R)
    X = np.vstack([R, rng.integers(0, 3, (20, d))])
    assert np.isfinite(density.score(X)).all()
    assert_array_equal(density.score(X), joint(space, R).score(X))
    assert_allclose(density.score(X)[::-1], density.score(X[::-1]), atol=1e-12)
    assert joint(space, np.repeat(R[:1], 5, axis=0)).plausible(R[:1]).all()  # nothing varies


def test_a_sample_without_any_value_of_a_column_is_judged_by_the_others() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(300, 2)).round(2), columns=[*"ab"])
    rows["seldom"] = np.where(np.arange(300) < 2, np.arange(300), np.nan)
    space = acex.Space.infer(rows, missing="keep")
    points = space.encode(rows)
    scale = Scale.of(space, points)
    assert np.isfinite(JointModel.of(scale, points[2:]).strangeness(points)).all()


def test_very_many_categories_and_very_many_columns_have_room() -> None:
    rng = np.random.default_rng(0)
    town = Nominal("town", tuple(range(10_000)))
    space = Space((Continuous("a", -9, 9), town, *(Continuous(f"b{j}", -9, 9) for j in range(300))))
    R = np.column_stack([rng.normal(size=300), rng.integers(0, 10_000, 300), rng.normal(size=(300, 300))])
    found = JointModel.of(Scale.of(space, R), R)
    assert found.slopes.shape == (301 + 20, 301 + 20)  # no room for more than one trait a column
    assert np.isfinite(found.strangeness(R)).all()
    few = Basis.of(Scale.of(SPACE, rows(100)), rows(100))
    assert len(few.sizes) == few(rows(100), few.expected(rows(100))).shape[1] <= MOST_BASIS


# -- diamonds ------------------------------------------------------------------------------------------------


def stones(n: int, seed: int = 0) -> pd.DataFrame:
    """Made-up diamonds: sizes follow from the weight, the price from weight and clarity."""
    rng = np.random.default_rng(seed)
    carat = np.round(np.exp(rng.normal(-0.4, 0.55, n)), 2)
    clarity = rng.integers(0, 4, n)
    length = 6.45 * carat ** (1 / 3) * np.exp(0.012 * rng.normal(size=n))
    frame = {
        "carat": carat,
        "clarity": np.array(["I1", "SI2", "VS1", "IF"])[clarity],
        "price": np.round(4200 * carat**1.75 * np.exp(0.12 * clarity + 0.15 * rng.normal(size=n))),
        "length": np.round(length, 2),
        "width": np.round(length * np.exp(0.008 * rng.normal(size=n)), 2),
        "table": np.round(rng.normal(57, 2, n)),
    }
    return pd.DataFrame(frame)


def test_a_large_stone_for_little_money_and_a_long_narrow_one_are_refused() -> None:
    data = stones(1500)
    space = Space.infer(data)
    R = space.encode(data)
    density, lof = joint(space, R), Plausibility(kind="lof").fit(R, Scale.of(space, R))
    large = data[data["carat"].between(0.8, 0.95)].head(10)
    cheap, narrow = large.assign(price=549.0), large.assign(length=5.25, width=6.33)
    assert density.plausible(space.encode(large)).all()
    for odd in (cheap, narrow):
        assert not density.plausible(space.encode(odd)).any()
    assert lof.plausible(space.encode(cheap)).mean() > 0.5  # which is why the local outlier factor is not enough


@pytest.mark.slow
@pytest.mark.skipif(find_spec("plotnine") is None, reason="plotnine, which ships the diamonds, is not installed")
def test_both_stones_are_refused_among_the_real_diamonds() -> None:
    spec = find_spec("plotnine")
    assert spec is not None and spec.submodule_search_locations
    data = pd.read_csv(Path(spec.submodule_search_locations[0]) / "data" / "diamonds.csv")
    space = Space.infer(data)
    density = joint(space, space.encode(data))
    large = data[data["carat"].between(0.84, 0.88)].sample(200, random_state=0)
    assert density.plausible(space.encode(large)).mean() > 0.95
    for odd in (large.assign(price=549), large.assign(x=5.25, y=6.33)):
        assert not density.plausible(space.encode(odd)).any()
