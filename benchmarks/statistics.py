"""Statistics for comparing methods, including failures.

A cost is infinite if a method found nothing. Differences between methods are taken on the same rows, and rows are
resampled as clusters: lines of one row, such as those of several seeds, are not independent.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from acex.arrays import FloatArray

Z = float(stats.norm.ppf(0.975))
N_BOOTSTRAP = 2000


def wilson(k: int, n: int) -> tuple[float, float]:
    """The 95% interval of a share, k of n (Wilson 1927)."""
    middle = (k + Z**2 / 2) / (n + Z**2)
    half = Z * np.sqrt(k * (n - k) / n + Z**2 / 4) / (n + Z**2)
    return float(middle - half), float(middle + half)


def bootstrap(values: FloatArray, clusters: FloatArray, seed: int = 0) -> tuple[float, float]:
    """The 95% percentile interval of the mean of values, (n,); the values of one cluster are resampled together."""
    numbers = np.unique(clusters, return_inverse=True)[1]
    sums, sizes = np.bincount(numbers, values), np.bincount(numbers)
    chosen = np.random.default_rng(seed).integers(len(sizes), size=(N_BOOTSTRAP, len(sizes)))
    means = sums[chosen].sum(axis=1) / sizes[chosen].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def holm(p: FloatArray) -> FloatArray:
    """p-values corrected for multiple testing (Holm 1979), (n,)."""
    order = np.argsort(p)
    steps = np.asarray(p)[order] * (len(p) - np.arange(len(p)))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected


def ranks(J: pd.DataFrame) -> pd.DataFrame:
    """The rank of each method (column) on each row, 1 is best; ties, including failures, share their mean rank."""
    return J.rank(axis=1, method="average")


def sign_test(ours: FloatArray, theirs: FloatArray) -> tuple[int, int, float]:
    """The number of rows on which ours is cheaper, the number for theirs, and the p-value of the exact sign test.

    A method that found something is cheaper than one that found nothing. Costs within 0.1% of each other are equal.
    """
    both = np.isfinite(ours) & np.isfinite(theirs)
    close = np.zeros(len(ours), dtype=bool)
    close[both] = np.abs(ours[both] - theirs[both]) <= 1e-3 * np.maximum(ours[both], theirs[both])
    less, more = int(((ours < theirs) & ~close).sum()), int(((ours > theirs) & ~close).sum())
    p = stats.binomtest(less, less + more).pvalue if less + more else 1.0
    return less, more, float(p)
