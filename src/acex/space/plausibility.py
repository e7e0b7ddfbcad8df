"""Does a point look like the reference? A hard filter, of one of two kinds.

*joint*: each value fits the others of its row, as in the reference (see `joint`). *lof*: the local outlier factor
(Breunig et al. 2000), as in the paper: the surroundings of a point are about as dense as those of its neighbours.

Both have scikit-learn's sign, as in the paper: scores near -1 are usual, and a point is plausible when its score is
above the threshold.
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

MOST_ROWS = 10_000  # the fit compares rows with each other; a sample of this size is as good
USUAL = 0.98  # share of the reference above the threshold of -1.5: about as many new rows pass as with "lof"
LEAST_WAY = 0.5  # deviations between the median of strangeness and the threshold, however similar the rows are


@dataclass(frozen=True)
class Plausibility:
    """What counts as realistic, and how strict the filter is.

    Args:
        threshold: least score of a plausible point; -1.5 as in the paper, lower is more lenient.
        kind: "joint": each value has to fit the others of its row. "lof": the local outlier factor, as in the paper.
            None means "joint", or "lof" for strategy "penalty", or if `neighbours` or `scale` are set.
        neighbours: with "lof", how many reference rows a point is compared with; 20 by default.
        scale: with "lof", compare features in standard deviations, the default; False takes the raw codes, as in the
            paper, where one feature with large numbers decides alone.
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
        """The same settings, with this kind where none was set."""
        return self if self.kind else replace(self, kind=kind)

    @property
    def described(self) -> dict[str, Any]:
        """In plain values, as plans have it. That of kind "lof" is what acex 0.1.0 wrote, which knew no other."""
        left_out = "kind" if self.kind == "lof" else ""
        return {name: value for name, value in asdict(self).items() if value is not None and name != left_out}

    def fit(self, reference: FloatArray, scale: Scale, seed: int = 0) -> Density:
        """The filter for these reference points, (m, d); fitted once, used for every candidate."""
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
        """How usual each point is, (n,): about -1 for those like others, less for stranger ones."""

    def least(self, factual: FloatArray) -> float:
        """What the score of a plausible point has to exceed, where this point, (d,), is explained."""
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
    """Do the values of a point fit each other? Its strangeness, where -1 is the median of the reference."""

    model: JointModel
    median: float  # of the strangeness of reference rows
    way: float  # from there to what only few of them exceed

    @classmethod
    def of(cls, settings: Plausibility, reference: FloatArray, scale: Scale) -> Joint:
        """The filter for reference points, (m, d)."""
        model = JointModel.of(scale, reference)
        median, most = np.quantile(model.own, [0.5, USUAL]).tolist()
        return cls(settings, model, median, max(most - median, LEAST_WAY))

    def score(self, X: FloatArray) -> FloatArray:
        return -1.0 - 0.5 * (self.model.strangeness(X) - self.median) / self.way

    def least(self, factual: FloatArray) -> float:
        # An unusual row is real too, and what makes it unusual may not be changeable.
        return min(self.settings.threshold, float(self.score(factual[None])[0]))


@dataclass(frozen=True, eq=False)
class Neighbourhood(Density):
    """The local outlier factor among the reference."""

    scale: Scale
    lof: Any
    points: FloatArray  # the reference in coordinates, (m, D), where the filter takes distances

    @classmethod
    def of(cls, settings: Plausibility, reference: FloatArray, scale: Scale) -> Neighbourhood:
        """The filter for reference points, (m, d)."""
        from sklearn.neighbors import LocalOutlierFactor

        assert settings.neighbours is not None
        n = min(settings.neighbours, len(reference) - 1)
        by_graph = bool(settings.scale) and len(scale.metric.squares) > 0  # scikit-learn does not know our metric then
        lof = LocalOutlierFactor(n_neighbors=n, novelty=True, metric="precomputed" if by_graph else "minkowski")
        reference = scale.filled(reference)  # a gap does not make the other values unusual
        Z = scale.coordinates(reference) if settings.scale else reference
        density = cls(settings, scale, lof, Z if by_graph else Z[:0])
        with warnings.catch_warnings():
            # Rows that occur more than `neighbours` times make scikit-learn warn; nothing to act on here.
            warnings.filterwarnings("ignore", message="Duplicate values", category=UserWarning)
            lof.fit(density.seen(Z, n + 1))  # each row is nearest to itself
        return density

    def seen(self, Z: FloatArray, n: int) -> Any:
        """Points as the filter takes them: as they are, or as a sparse table of distances to the n nearest, (a, m)."""
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
