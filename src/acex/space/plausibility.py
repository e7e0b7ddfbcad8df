"""Does a point look like the reference? The local outlier factor (Breunig et al. 2000) as a hard filter.

scikit-learn's sign is kept, as in the paper: scores near -1 are inliers, and a point is plausible when
its score is above the threshold.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.space.scale import Scale
from acex.values import is_count, is_finite

MOST_ROWS = 10_000  # the fit compares rows with each other; a sample of this size says the same


@dataclass(frozen=True)
class Plausibility:
    """How strict the filter is.

    Args:
        threshold: least score of a plausible point; -1.5 as in the paper, lower is more lenient.
        neighbours: how many reference rows a point is compared with.
        scale: compare features in standard deviations; False takes the raw codes, as in the paper, where
            one feature with large numbers decides alone.
    """

    threshold: float = -1.5
    neighbours: int = 20
    scale: bool = True

    def __post_init__(self) -> None:
        if not (is_finite(self.threshold) and self.threshold < 0):
            raise ValueError(f"threshold must be a negative number such as -1.5, got {self.threshold!r}.")
        if not is_count(self.neighbours):
            raise ValueError(f"neighbours must be a whole number of at least 1, got {self.neighbours!r}.")

    def fit(self, reference: FloatArray, scale: Scale, seed: int = 0) -> Density:
        """The filter for these reference points, (m, d); fitted once, used for every candidate."""
        from sklearn.neighbors import LocalOutlierFactor

        if len(reference) > MOST_ROWS:
            chosen = np.random.default_rng(seed).choice(len(reference), MOST_ROWS, replace=False)
            reference = reference[np.sort(chosen)]
        if len(reference) < 2:
            raise ValueError(
                f"Plausibility needs at least 2 reference rows, got {len(reference)}; plausibility=None turns it off."
            )
        n = min(self.neighbours, len(reference) - 1)
        by_graph = self.scale and len(scale.metric.squares) > 0  # scikit-learn does not know our metric then
        lof = LocalOutlierFactor(n_neighbors=n, novelty=True, metric="precomputed" if by_graph else "minkowski")
        Z = scale.coordinates(reference) if self.scale else reference
        density = Density(self, scale, lof, Z if by_graph else Z[:0])
        with warnings.catch_warnings():
            # Rows that occur more than `neighbours` times make scikit-learn warn; nothing to act on here.
            warnings.filterwarnings("ignore", message="Duplicate values", category=UserWarning)
            lof.fit(density.seen(Z, n + 1))  # everybody is nearest to itself
        return density


@dataclass(frozen=True, eq=False)
class Density:
    """A fitted filter."""

    settings: Plausibility
    scale: Scale
    lof: Any
    points: FloatArray  # the reference in coordinates, (m, D), where the filter is told distances

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
        Z = self.scale.coordinates(X) if self.settings.scale else X
        scores: FloatArray = self.lof.score_samples(self.seen(Z, self.lof.n_neighbors))
        return scores

    def plausible(self, X: FloatArray) -> BoolArray:
        """Which points are inliers, (n,)."""
        if len(X) == 0:
            return np.zeros(0, dtype=bool)
        return self.score(X) > self.settings.threshold

    def affinity(self, X: FloatArray) -> FloatArray:
        """The paper's alpha = clip(exp(1 + score), 0, 1) of each point, (n,); near 1 for inliers."""
        return np.clip(np.exp(1.0 + self.score(X)), 0.0, 1.0)
