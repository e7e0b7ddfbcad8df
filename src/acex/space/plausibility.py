"""Plausibility, a hard filter for points that look like the reference; there are two kinds.

*joint*: each value fits the other values of its row, as in the reference (see `joint`). *lof*: the local outlier factor
(Breunig et al. 2000), as in the paper: the density around a point is similar to the density around its neighbours.

Both have scikit-learn's sign, as in the paper: scores near -1 are usual, and a point is plausible if its score is above
the threshold.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from acex.arrays import BoolArray, FloatArray, sampled
from acex.space.joint import JointModel
from acex.space.scale import Scale
from acex.values import check_count, is_finite, listed

Kind: TypeAlias = Literal["joint", "lof"]

MOST_ROWS = 10_000  # the fit compares rows with each other; a larger sample is no better
USUAL = 0.98  # share of the reference above the threshold -1.5: about as many new rows pass as with "lof"
LEAST_WAY = 0.5  # least distance, in deviations, from the median strangeness to the threshold


@dataclass(frozen=True)
class Plausibility:
    """What counts as realistic, and how strict the filter is.

    Args:
        threshold: least score of a plausible point; -1.5 as in the paper, lower is more lenient.
        kind: "joint": each value must fit the other values of its row. "lof": the local outlier factor, as in the
            paper. None: "joint", or "lof" for strategy "penalty" and if `neighbours` or `scale` is set.
        neighbours: with "lof", the number of reference rows that a point is compared with; 20 by default.
        scale: with "lof", measure distances in standard deviations (default). False uses the raw codes, as in the
            paper; a feature with large numbers then dominates.
    """

    threshold: float = -1.5
    neighbours: int | None = None
    scale: bool | None = None
    kind: Kind | None = None

    def __post_init__(self) -> None:
        if not (is_finite(self.threshold) and self.threshold < 0):
            raise ValueError(f"threshold must be a negative number such as -1.5, got {self.threshold!r}.")
        check_count("neighbours", self.neighbours, optional=True)
        if not (self.kind is None or self.kind in get_args(Kind)):
            raise ValueError(f"plausibility: kind must be one of {listed(get_args(Kind))}, got {self.kind!r}.")
        only_lof = self.neighbours is not None or self.scale is not None
        if only_lof and self.kind == "joint":
            raise ValueError("neighbours and scale belong to kind='lof'; kind='joint' has no such settings.")
        if only_lof or self.kind == "lof":
            neighbours, scale = 20 if self.neighbours is None else self.neighbours, self.scale in (None, True)
            for name, value in {"kind": "lof", "neighbours": neighbours, "scale": scale}.items():
                object.__setattr__(self, name, value)

    def or_else(self, kind: Kind) -> Plausibility:
        """The same settings, with this kind if none is set."""
        return self if self.kind else replace(self, kind=kind)

    @property
    def described(self) -> dict[str, Any]:
        """The settings as plain values, for plans; for "lof" in the form of acex 0.1.0, which had no other kind."""
        left_out = "kind" if self.kind == "lof" else ""
        return {name: value for name, value in asdict(self).items() if value is not None and name != left_out}

    def fit(self, reference: FloatArray, scale: Scale, seed: int = 0) -> Density:
        """The filter fitted to these reference points, (m, d)."""
        reference = sampled(reference, MOST_ROWS, seed)
        if len(reference) < 2:
            raise ValueError(
                f"Plausibility needs at least 2 reference rows, got {len(reference)}; plausibility=None turns it off."
            )
        kind = Neighbourhood if self.kind == "lof" else Joint
        return kind.of(self.or_else("joint"), reference, scale)


@dataclass(frozen=True, eq=False)
class Density(ABC):
    """A fitted filter."""

    settings: Plausibility

    @abstractmethod
    def score(self, X: FloatArray) -> FloatArray:
        """How usual each point is, (n,): about -1 for inliers, lower for outliers."""

    def least(self, factual: FloatArray) -> float:
        """The score that plausible points must exceed in an explanation of this factual, (d,)."""
        return self.settings.threshold

    def plausible(self, X: FloatArray, least: float | None = None) -> BoolArray:
        """Which points look like the reference, (n,)."""
        if len(X) == 0:
            return np.zeros(0, dtype=bool)
        return self.score(X) > (self.settings.threshold if least is None else least)

    def affinity(self, X: FloatArray) -> FloatArray:
        """The paper's alpha = clip(exp(1 + score), 0, 1) of each point, (n,); near 1 for inliers."""
        return np.clip(np.exp(1.0 + self.score(X)), 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Joint(Density):
    """How well the values of a point fit each other: its strangeness, scaled so that the reference's median is -1."""

    model: JointModel
    median: float  # of the strangeness of reference rows
    way: float  # distance from there to the `USUAL` quantile

    @classmethod
    def of(cls, settings: Plausibility, reference: FloatArray, scale: Scale) -> Joint:
        """The filter for reference points, (m, d)."""
        model = JointModel.of(scale, reference)
        median, most = np.quantile(model.own, [0.5, USUAL]).tolist()
        return cls(settings, model, median, max(most - median, LEAST_WAY))

    def score(self, X: FloatArray) -> FloatArray:
        return -1.0 - 0.5 * (self.model.strangeness(X) - self.median) / self.way

    def least(self, factual: FloatArray) -> float:
        # An unusual factual is real, and its unusual values may be frozen.
        return min(self.settings.threshold, float(self.score(factual[None])[0]))


@dataclass(frozen=True, eq=False)
class Neighbourhood(Density):
    """The local outlier factor among the reference."""

    scale: Scale
    lof: Any
    points: FloatArray  # the reference in coordinates, (m, D), if the filter takes distances; otherwise empty

    @classmethod
    def of(cls, settings: Plausibility, reference: FloatArray, scale: Scale) -> Neighbourhood:
        """The filter for reference points, (m, d)."""
        from sklearn.neighbors import LocalOutlierFactor

        assert settings.neighbours is not None
        n = min(settings.neighbours, len(reference) - 1)
        by_graph = bool(settings.scale) and len(scale.metric.squares) > 0  # scikit-learn does not have this metric
        lof = LocalOutlierFactor(n_neighbors=n, novelty=True, metric="precomputed" if by_graph else "minkowski")
        reference = scale.filled(reference)  # a gap does not make the other values unusual
        Z = scale.coordinates(reference) if settings.scale else reference
        density = cls(settings, scale, lof, Z if by_graph else Z[:0])
        with warnings.catch_warnings():
            # scikit-learn warns about rows that occur more than `neighbours` times; no action is needed.
            warnings.filterwarnings("ignore", message="Duplicate values", category=UserWarning)
            lof.fit(density.seen(Z, n + 1))  # each row is nearest to itself
        return density

    def seen(self, Z: FloatArray, n: int) -> Any:
        """Input of the filter for points: Z, or a sparse matrix of distances to the n nearest of `points`, (a, m)."""
        if self.lof.metric != "precomputed":
            return Z
        from scipy.sparse import csr_matrix

        distances, which = self.scale.metric.nearest(Z, self.points, n)
        starts = np.arange(0, distances.size + 1, n)
        return csr_matrix((distances.ravel(), which.ravel(), starts), shape=(len(Z), len(self.points)))

    def score(self, X: FloatArray) -> FloatArray:
        """The (negative) local outlier factor of each point, (n,)."""
        X = self.scale.filled(X)
        Z = self.scale.coordinates(X) if self.settings.scale else X
        scores: FloatArray = self.lof.score_samples(self.seen(Z, self.lof.n_neighbors))
        return scores
