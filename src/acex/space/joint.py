"""Plausibility of kind "joint": each feature is predicted from the others, and points are scored by their errors.

    y     (n, q)   targets of the regressions: the normal score of a number, and 1 or 0 for each category
    phi   (n, p)   basis functions of points: y, further functions of the numbers, products of two columns of y
    S              the basis functions that depend on a feature; the feature is predicted from all others
    K     (p, p)   inverse of phi' phi + ridge, with centred basis functions

Each column of y has a ridge regression on the basis functions outside S, and one inverse gives all of them:
e = inv(K_SS) K_S phi is the residual of the basis functions in S, and the leverage of a row is phi' K phi - e' K_SS e.
So each row of the reference gets a leave-one-out error, with which the errors of new points are compared.

The size of the error is predicted from the same basis functions: the price of a small diamond is predictable to within
fifty dollars, the price of a large one only to within thousands. A number far from all known values, between two of
them or outside their range, gets an additional error: its distance to the nearest one, less the usual distance there.

A missing number is replaced by its prediction and has no error. Missing numbers of the reference are filled in the same
way, in `ROUNDS` iterations, and do not count in estimates of the error. A missing category is one more category.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.feature import MISSING_CODE
from acex.space.scale import Scale

# Chosen on simulated tables (suite "plausible" of benchmarks/); similar values work as well.
MOST_LEVELS = 20  # number of categories of a feature that are distinguished, the most frequent ones
MOST_BASIS = 200
BENDS = (0.25, 0.5, 0.75)  # ranks at which the slope of a piecewise linear function may change
BEND, PRODUCT = 0.5, 0.1  # scale of these basis functions relative to y: a ridge penalises a smaller scale more
RIDGES = (0.0003, 0.003, 0.03, 0.3)  # as shares of the number of rows; each feature uses the one of least error
RIDGE_ROWS, SPREAD_ROWS = 1.0, 300.0  # number of rows added to each ridge; ridge of the regressions of error sizes
NO_ERROR = 0.1  # share of the usual error added before taking logarithms, which limits the effect of tiny errors
LEAST_ERROR = 1e-3  # in normal scores; added to each spread, which would be zero for an exactly predictable feature
LEAST_CHANCE = 0.003  # lower bound on the probability of a category; lower still if the regression is rarely wrong
SURE = 0.1  # that lower bound as a share of the squared spread
FARTHEST = 4.0  # standard deviations at which basis functions are clipped
GAP, NEIGHBOURS = 3.0, 5  # error per standard deviation out of reach of known values; neighbours that define the reach
ROUNDS = 2  # iterations of filling in missing numbers of the reference
POWER = 3.0  # of the norm over features: the larger, the more the largest error dominates


@dataclass(frozen=True, eq=False)
class Basis:
    """The basis functions: compute y and phi of points."""

    numbers: IntArray  # the ordered features that vary
    knots: tuple[tuple[FloatArray, FloatArray, FloatArray], ...]  # per number: values, their normal scores, their ranks
    reaches: tuple[FloatArray, ...]  # per number: distance from each value to its fifth-nearest neighbour
    middle: FloatArray  # mean of each number
    per_unit: FloatArray  # 1 / s of each number
    categories: IntArray  # the nominal features that vary
    levels: tuple[FloatArray, ...]  # per nominal feature: the codes that are distinguished
    owners: IntArray  # for each column of y, the position of its feature in `features`, (q,)
    n_bends: int
    pairs: IntArray  # columns of y whose products are basis functions, (2, k)
    plain: bool  # whether the numbers themselves are basis functions too

    @classmethod
    def of(cls, scale: Scale, reference: FloatArray) -> Basis:
        """The basis for a reference, (m, d), with as many bends and products as fit into `MOST_BASIS`."""
        from scipy.special import ndtri

        varies = (scale.deviations > 0) & (reference != MISSING_CODE).any(axis=0)  # a sample may lack all values
        numbers, categories = np.flatnonzero(varies & ~scale.is_nominal), np.flatnonzero(varies & scale.is_nominal)
        knots = []
        for column in (known[known != MISSING_CODE] for known in reference[:, numbers].T):
            values, counts = np.unique(column, return_counts=True)
            ranks = (np.cumsum(counts) - counts / 2) / len(column)
            knots.append((values, ndtri(ranks), ranks))
        levels = []
        for column in reference[:, categories].T:
            codes, counts = np.unique(column, return_counts=True)
            levels.append(np.sort(codes[np.argsort(-counts, kind="stable")[:MOST_LEVELS]]))
        n, q = len(numbers), len(numbers) + sum(map(len, levels))
        room = MOST_BASIS - q
        plain = room >= n
        room -= n * plain
        n_bends = max(min(len(BENDS), room // max(n, 1)), 0)
        room = max(room - n * n_bends, 0)
        owners = np.repeat(np.arange(n + len(levels)), [1] * n + [len(codes) for codes in levels])
        first, second = np.triu_indices(q)
        usable = (first < n) & ((owners[first] != owners[second]) | (first == second))  # at least one is a number
        pairs = np.vstack([first, second])[:, usable]
        if pairs.shape[1] > room:
            pairs = pairs[:, np.sort(np.random.default_rng(0).choice(pairs.shape[1], room, replace=False))]
        reaches = tuple(_reach(values) for values, _, _ in knots)
        known = reference[:, numbers]
        middle, per_unit = known.mean(axis=0, where=_where(known != MISSING_CODE)), scale.per_unit[numbers]
        return cls(
            numbers, tuple(knots), reaches, middle, per_unit, categories, tuple(levels), owners, n_bends, pairs, plain
        )

    @cached_property
    def features(self) -> IntArray:
        """The features that are predicted: numbers first, then categories."""
        return np.concatenate([self.numbers, self.categories])

    @cached_property
    def sizes(self) -> FloatArray:
        """Scale of each basis function, (p,)."""
        n = len(self.numbers)
        kinds = ((1.0, len(self.owners)), (BEND, n * (self.plain + self.n_bends)), (PRODUCT, self.pairs.shape[1]))
        return np.concatenate([np.full(count, size) for size, count in kinds])

    def groups(self) -> Iterator[tuple[IntArray, IntArray]]:
        """For each feature, its columns of y and S."""
        numbers = np.arange(len(self.numbers))
        single = [self.owners, np.tile(numbers, int(self.plain)), np.repeat(numbers, self.n_bends)]
        first, second = (np.concatenate([*single, self.owners[half]]) for half in self.pairs)
        for j in range(len(self.features)):
            yield np.flatnonzero(self.owners == j), np.flatnonzero((first == j) | (second == j))

    def expected(self, X: FloatArray) -> FloatArray:
        """y of points, (n, q)."""
        y = np.empty((len(X), len(self.owners)))
        for i, (x, (values, scores, _)) in enumerate(zip(X[:, self.numbers].T, self.knots, strict=True)):
            y[:, i] = np.interp(x, values, scores)
        at = len(self.numbers)
        for column, codes in zip(X[:, self.categories].T, self.levels, strict=True):
            y[:, at : at + len(codes)] = column[:, None] == codes
            at += len(codes)
        return y

    def gaps(self, X: FloatArray) -> FloatArray:
        """Distance of each number from the nearest known value, less its reach, in deviations, (n, numbers)."""
        gaps = np.empty((len(X), len(self.numbers)))
        for i, (x, (values, _, _), reach) in enumerate(
            zip(X[:, self.numbers].T, self.knots, self.reaches, strict=True)
        ):
            above = np.clip(np.searchsorted(values, x), 1, len(values) - 1)
            nearest = above - (x - values[above - 1] < values[above] - x)
            gaps[:, i] = np.maximum(np.abs(x - values[nearest]) - reach[nearest], 0.0) * self.per_unit[i]
        return gaps

    def gaps_without(self, reference: FloatArray) -> FloatArray:
        """The same for each row of the reference, with that row left out, (m, numbers)."""
        gaps = np.zeros((len(reference), len(self.numbers)))
        for i, (x, reach) in enumerate(zip(reference[:, self.numbers].T, self.reaches, strict=True)):
            known = x != MISSING_CODE
            values, where, counts = np.unique(x[known], return_inverse=True, return_counts=True)
            steps = np.concatenate([[np.inf], np.diff(values), [np.inf]])
            at = np.arange(len(values))
            nearest = np.where(steps[:-1] <= steps[1:], at - 1, at + 1).clip(0, len(values) - 1)
            alone = np.maximum(np.minimum(steps[:-1], steps[1:]) - reach[nearest], 0.0)
            gaps[known, i] = np.where(counts == 1, alone, 0.0)[where] * self.per_unit[i]
        return gaps

    def missing(self, X: FloatArray) -> BoolArray:
        """Which numbers of points are missing, (n, numbers)."""
        return np.asarray(X[:, self.numbers] == MISSING_CODE)

    def __call__(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """phi of points, given their y, (n, p)."""
        y = np.clip(y, -FARTHEST, FARTHEST)
        blocks = [y]
        if self.plain:
            steps = (X[:, self.numbers] - self.middle) * self.per_unit
            blocks.append(np.clip(steps, -2 * FARTHEST, 2 * FARTHEST))
        if self.n_bends:
            bends = np.array(BENDS[: self.n_bends])
            ranks = (np.interp(X[:, j], values, r) for j, (values, _, r) in zip(self.numbers, self.knots, strict=True))
            blocks += [np.maximum(r[:, None] - bends, 0.0) for r in ranks]
        return np.hstack([*blocks, y[:, self.pairs[0]] * y[:, self.pairs[1]]])


@dataclass(frozen=True, eq=False)
class JointModel:
    """The regressions fitted to a reference; they predict y as centre + ((phi - mean) * per) @ slopes."""

    basis: Basis
    mean: FloatArray  # of each basis function, (p,)
    per: FloatArray  # factor of each basis function, (p,)
    centre: FloatArray  # mean of y, (q,)
    slopes: FloatArray  # (p, q)
    spreads: FloatArray  # usual error of each column of y, (q,)
    widening: FloatArray  # slopes of the logarithm of the error, (p, q)
    own: FloatArray  # strangeness of each reference row, with that row left out, (m,)

    @classmethod
    def of(cls, scale: Scale, reference: FloatArray) -> JointModel:
        """The regressions for reference points, (m, d)."""
        basis = Basis.of(scale, reference)
        out = cls._of(basis, reference, scale.filled(reference))
        for _ in range(ROUNDS if basis.missing(reference).any() else 0):
            out = cls._of(basis, reference, out.filled(reference))
        return out

    @classmethod
    def _of(cls, basis: Basis, reference: FloatArray, filled: FloatArray) -> JointModel:
        y = basis.expected(filled)
        phi = basis(filled, y)
        q = y.shape[1]
        missing = np.zeros(y.shape, dtype=bool)
        missing[:, : len(basis.numbers)] = basis.missing(reference)
        known = _where(~missing)
        mean, deviations = phi.mean(axis=0), phi.std(axis=0)
        per = np.where(deviations > LEAST_ERROR**2, basis.sizes / np.maximum(deviations, LEAST_ERROR**2), 0.0)
        phi = (phi - mean) * per
        groups = list(basis.groups())
        errors, slopes = _regressions(phi, deviations[:q], groups)
        usual = np.sqrt((errors**2).mean(axis=0, where=known)) + LEAST_ERROR
        logarithms = np.log(np.abs(errors) / usual + NO_ERROR)
        logarithms -= logarithms.mean(axis=0, where=known)
        logarithms[missing] = 0.0
        wider, widening = _spreads(phi, logarithms, groups)
        wider = np.exp(wider)
        spreads = usual * np.sqrt(((errors / usual / wider) ** 2).mean(axis=0, where=known)) + LEAST_ERROR
        out = cls(basis, mean, per, y.mean(axis=0), slopes, spreads, widening, np.zeros(0))
        off = out._off(y, y - errors, spreads * wider, basis.gaps_without(reference))
        off[:, : len(basis.numbers)][basis.missing(reference)] = 0.0
        return replace(out, own=_combined(off))

    def off(self, X: FloatArray) -> FloatArray:
        """Distance of each feature of `basis.features` from its prediction, in deviations, (n, f)."""
        missing, X = self.basis.missing(X), self.filled(X)
        y = self.basis.expected(X)
        predicted = ((self.basis(X, y) - self.mean) * self.per) @ np.hstack([self.slopes, self.widening])
        q = y.shape[1]
        off = self._off(y, self.centre + predicted[:, :q], self.spreads * np.exp(predicted[:, q:]), self.basis.gaps(X))
        off[:, : missing.shape[1]][missing] = 0.0
        return off

    def filled(self, X: FloatArray) -> FloatArray:
        """The points with predictions in place of missing numbers, (n, d)."""
        missing = self.basis.missing(X)
        if not missing.any():
            return X
        X = X.copy()
        places = [(missing[:, i], j, self.basis.knots[i]) for i, j in enumerate(self.basis.numbers)]
        for gaps, j, (values, scores, _) in places:
            X[gaps, j] = np.interp(0.0, scores, values)
        y = self.basis.expected(X)
        predicted = self.centre + ((self.basis(X, y) - self.mean) * self.per) @ self.slopes
        for i, (gaps, j, (values, scores, _)) in enumerate(places):
            X[gaps, j] = np.interp(predicted[gaps, i], scores, values)
        return X

    def strangeness(self, X: FloatArray) -> FloatArray:
        """One score per point for all its features, dominated by the largest error, (n,)."""
        return _combined(self.off(X))

    def _off(self, y: FloatArray, predicted: FloatArray, spreads: FloatArray, gaps: FloatArray) -> FloatArray:
        n = len(self.basis.numbers)
        off = np.empty((len(y), len(self.basis.features)))
        off[:, :n] = np.abs(y - predicted)[:, :n] / spreads[:, :n] + GAP * gaps
        at = n
        for j, codes in enumerate(self.basis.levels, start=n):
            least = np.clip(SURE * spreads[:, at : at + len(codes)] ** 2, LEAST_ERROR**2, LEAST_CHANCE)
            chances = np.clip(predicted[:, at : at + len(codes)], least, 1.0)
            is_it = y[:, at : at + len(codes)] > 0
            rare = np.clip(1.0 - chances.sum(axis=1), LEAST_CHANCE, 1.0)  # any category that is not distinguished
            chance = np.where(is_it.any(axis=1), (chances * is_it).sum(axis=1), rare)
            # z with exp(-z^2 / 2) = chance / largest chance, as for a normal variable that is z deviations off.
            off[:, j] = np.sqrt(2 * np.log(np.maximum(chances.max(axis=1), chance) / chance))
            at += len(codes)
        return off


def _where(known: BoolArray) -> Any:
    """The `where=` argument for NumPy reductions: True if no value is missing, else the mask."""
    return True if known.all() else known


def _reach(values: FloatArray) -> FloatArray:
    """Distance from each of ascending values to its fifth-nearest neighbour, (v,); their range if there are fewer."""
    if len(values) <= NEIGHBOURS:
        return np.full(len(values), values[-1] - values[0])
    below, above = np.full((2, NEIGHBOURS + 1, len(values)), np.inf)
    below[0] = above[0] = 0.0
    for k in range(1, NEIGHBOURS + 1):
        steps = values[k:] - values[:-k]
        below[k, k:] = above[k, :-k] = steps
    reach: FloatArray = np.maximum(below, above[::-1]).min(axis=0)
    return reach


def _combined(off: FloatArray) -> FloatArray:
    together: FloatArray = (off**POWER).sum(axis=1) ** (1 / POWER)
    return together


Groups = list[tuple[IntArray, IntArray]]


def _regressions(phi: FloatArray, units: FloatArray, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Leave-one-out errors of y in the reference, (m, q), and slopes, (p, q).

    Args:
        units: standard deviations of y; the first q basis functions are y in these units.
    """
    (m, p), q = phi.shape, len(units)
    errors, slopes, least = np.empty((m, q)), np.zeros((p, q)), np.full(len(groups), np.inf)
    gram = phi.T @ phi
    for ridge in RIDGES:
        K = np.linalg.inv(gram + (ridge * m + RIDGE_ROWS) * np.eye(p))
        seen = phi @ K
        leverage = np.einsum("ij,ij->i", seen, phi)
        for i, (columns, S) in enumerate(groups):
            inverse = np.linalg.inv(K[np.ix_(S, S)])
            remains = seen[:, S] @ inverse
            own = leverage - np.einsum("ij,ij->i", remains, seen[:, S]) + 1 / m
            at = np.searchsorted(S, columns)
            error = remains[:, at] * units[columns] / (1.0 - np.clip(own, 0.0, 0.95))[:, None]
            size = float(np.abs(error).mean())
            if size < least[i]:
                least[i], errors[:, columns] = size, error
                slopes[:, columns] = -(K[:, S] @ inverse)[:, at] * units[columns]
                slopes[np.ix_(S, columns)] = 0.0
    return errors, slopes


def _spreads(phi: FloatArray, wanted: FloatArray, groups: Groups) -> tuple[FloatArray, FloatArray]:
    """Leave-one-out predictions of `wanted` from the basis functions outside S, (m, q), and slopes, (p, q)."""
    gram, products = phi.T @ phi, phi.T @ wanted
    K, slopes = np.linalg.inv(gram + SPREAD_ROWS * np.eye(len(gram))), np.zeros_like(products)
    seen, predicted = phi @ K, np.empty_like(wanted)
    leverage = np.einsum("ij,ij->i", seen, phi)
    for columns, S in groups:
        v = products[:, columns]
        v[S] = 0.0
        v = K @ v
        v -= K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], v[S])
        v[S] = 0.0
        slopes[:, columns] = v
        own = leverage - np.einsum("ij,ij->i", np.linalg.solve(K[np.ix_(S, S)], seen[:, S].T).T, seen[:, S])
        rest = (wanted[:, columns] - phi @ v) / (1.0 - np.clip(own + 1 / len(phi), 0.0, 0.95))[:, None]
        predicted[:, columns] = wanted[:, columns] - rest
    return predicted, slopes
