"""The local outlier factor as a filter, against scikit-learn's own."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import LocalOutlierFactor

import acex
from acex.arrays import FloatArray
from acex.space.kinds import Continuous, Integer, Nominal
from acex.space.plausibility import MOST_ROWS, Density, Neighbourhood, Plausibility
from acex.space.scale import Scale
from acex.space.space import Space

SPACE = Space((Continuous("size", -5, 5), Integer("money", 0, 10_000), Nominal("colour", ("red", "green", "blue"))))


def rows(n: int, seed: int = 0) -> FloatArray:
    rng = np.random.default_rng(seed)
    return SPACE.snap(np.column_stack([rng.normal(size=n), rng.gamma(2, 900, n), rng.integers(0, 3, n)]))


def fitted(n: int = 300, **settings: Any) -> tuple[FloatArray, Scale, Density]:
    R = rows(n)
    scale = Scale.of(SPACE, R)
    return R, scale, Plausibility(kind="lof", **settings).fit(R, scale)


@pytest.mark.parametrize("neighbours", [1, 5, 20])
def test_scores_are_those_of_scikit_learn_on_the_same_coordinates(neighbours: int) -> None:
    R, scale, density = fitted(neighbours=neighbours)
    theirs = LocalOutlierFactor(n_neighbors=neighbours, novelty=True).fit(scale.coordinates(R))
    X = rows(100, seed=1)
    assert_allclose(density.score(X), theirs.score_samples(scale.coordinates(X)))
    assert_array_equal(density.plausible(X), theirs.score_samples(scale.coordinates(X)) > -1.5)


def test_without_scale_the_raw_codes_are_compared() -> None:
    R, _, density = fitted(scale=False)
    theirs = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(R)
    X = rows(100, seed=1)
    assert_allclose(density.score(X), theirs.score_samples(X))
    # Then the feature with large numbers decides alone.
    far = X.copy()
    far[:, 0] += 4
    assert_allclose(density.score(far), density.score(X), rtol=0.2)


def test_a_score_at_the_threshold_is_not_above_it() -> None:
    X = rows(1, seed=1)
    R, scale, density = fitted()
    exactly = Plausibility(float(density.score(X)[0]), kind="lof").fit(R, scale)
    assert not exactly.plausible(X)[0]


def test_affinity_is_the_exponential_of_the_score_and_at_most_one() -> None:
    _, _, density = fitted()
    X = np.vstack([rows(50, seed=1), [[4.9, 9999, 0]]])
    expected = [min(max(np.exp(1 + score), 0.0), 1.0) for score in density.score(X)]
    assert_allclose(density.affinity(X), expected)
    assert density.affinity(X)[-1] < 0.5


def test_no_points_are_no_answers() -> None:
    assert fitted()[2].plausible(np.empty((0, 3))).shape == (0,)


def test_a_small_reference_has_fewer_neighbours(recwarn: pytest.WarningsRecorder) -> None:
    R, scale, density = fitted(n=2)
    assert isinstance(density, Neighbourhood) and density.lof.n_neighbors_ == 1
    assert density.plausible(R).all()
    with pytest.raises(ValueError, match="plausibility"):
        Plausibility().fit(R[:1], scale)
    assert not recwarn.list


def test_rows_that_occur_many_times_are_plausible_and_nothing_is_warned(
    recwarn: pytest.WarningsRecorder,
) -> None:
    R = np.repeat(rows(3), 50, axis=0)
    assert Plausibility(kind="lof").fit(R, Scale.of(SPACE, R)).plausible(R).all()
    assert not recwarn.list


class CountingFactor(LocalOutlierFactor):  # type: ignore[misc]
    """scikit-learn's own, which remembers what it was fitted on."""

    fits: ClassVar[list[FloatArray]] = []

    def fit(self, X: FloatArray, y: None = None) -> CountingFactor:
        self.fits.append(X)
        super().fit(X, y)
        return self


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[FloatArray]:
    """What filters are fitted on during a test."""
    CountingFactor.fits.clear()
    monkeypatch.setattr("sklearn.neighbors.LocalOutlierFactor", CountingFactor)
    return CountingFactor.fits


def test_a_large_reference_is_fitted_on_a_seeded_sample(fits: list[FloatArray]) -> None:
    wide = Space(tuple(Continuous(f"f{j}", 0, 1) for j in range(20)))
    R = np.random.default_rng(0).random((50_000, 20))
    scale = Scale.of(wide, R)
    density = Plausibility(kind="lof").fit(R, scale, seed=0)
    assert density.plausible(R[:50]).mean() > 0.8
    assert fits[0].shape == (MOST_ROWS, 20)
    # A sample without replacement, of rows of the reference.
    assert len(np.unique(fits[0], axis=0)) == MOST_ROWS
    assert np.isin(fits[0][:, 0], scale.coordinates(R)[:, 0]).all()


def test_the_sample_depends_on_the_seed_alone(fits: list[FloatArray], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acex.space.plausibility.MOST_ROWS", 100)
    R = rows(500)
    scale = Scale.of(SPACE, R)
    for seed in (0, 0, 1):
        Plausibility(kind="lof").fit(R, scale, seed=seed)
    assert len(fits[0]) == 100
    assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


def test_the_filter_is_fitted_once_for_many_rows(fits: list[FloatArray]) -> None:
    data = SPACE.decode(rows(60))
    explainer = acex.Explainer(lambda r: r["size"] > 0, data)
    for i in range(3):
        explainer.explain(data.iloc[i], budget=4, strategy=acex.Penalty(n0=3, sobol=64))
    assert [len(Z) for Z in fits] == [60]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": 0}, "threshold must be a negative number such as -1.5, got 0"),
        ({"threshold": 1.5}, "threshold must be a negative number such as -1.5, got 1.5"),
        ({"threshold": float("nan")}, "threshold must be a negative number such as -1.5, got nan"),
        ({"threshold": float("-inf")}, "threshold must be a negative number such as -1.5, got -inf"),
        ({"threshold": "low"}, "threshold must be a negative number such as -1.5, got 'low'"),
        ({"neighbours": 0}, "neighbours: expected None or a whole number of at least 1, got 0"),
        ({"neighbours": 2.5}, "neighbours: expected None or a whole number of at least 1, got 2.5"),
        ({"neighbours": True}, "neighbours: expected None or a whole number of at least 1, got True"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Plausibility(**settings)


def test_what_belongs_to_one_kind_only_chooses_it() -> None:
    assert Plausibility().kind is None
    assert Plausibility().or_else("joint").described == {"threshold": -1.5, "kind": "joint"}
    # What acex 0.1.0 wrote, so that its explanations are found again.
    as_before = {"threshold": -1.5, "neighbours": 20, "scale": True}
    assert Plausibility().or_else("lof").described == Plausibility(kind="lof").described == as_before
    assert Plausibility(scale=False) == Plausibility(kind="lof", neighbours=20, scale=False)
    assert Plausibility(neighbours=5).described == {"threshold": -1.5, "neighbours": 5, "scale": True}
    with pytest.raises(ValueError, match="'lof'"):
        Plausibility(kind="joint", neighbours=5)
    with pytest.raises(ValueError, match="'joint'"):
        Plausibility(kind="lofty")  # type: ignore[arg-type]


def test_the_penalty_strategy_keeps_the_filter_of_the_paper_unless_another_is_chosen() -> None:
    data = SPACE.decode(rows(60))
    penalty = acex.Penalty(n0=2, sobol=64)

    def filtered_by(**options: Any) -> Any:
        return acex.explain(lambda r: r["size"] > 0, data.iloc[0], data=data, budget=5, **options).settings[
            "plausibility"
        ]

    assert filtered_by(strategy=penalty) == {"threshold": -1.5, "neighbours": 20, "scale": True}
    assert filtered_by() == {"threshold": -1.5, "kind": "joint"}
    assert filtered_by(strategy=penalty, plausibility=Plausibility(kind="joint"))["kind"] == "joint"
    assert filtered_by(plausibility=Plausibility(-2.0, kind="lof"))["neighbours"] == 20
