"""How usual a row is, and why it is not, in words: which value does not go with which other one.

What is strange follows from all columns together (see `space/joint.py`); what a person can check is a pair of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.search.problem import Problem
from acex.space.feature import MISSING_CODE
from acex.space.plausibility import Joint
from acex.space.space import Space
from acex.values import Remark

STRANGEST, OFF = 3, 2.0  # features that are looked at, and how many deviations they are off at least
NEAR, FEWEST = 0.02, 20  # rows that count as near, as a share of all and at least
RARE = 0.05  # a larger share of near rows as low or as high is nothing to tell
ALONE = 3.0  # a value that is not rarer by this factor beside the other one is rare by itself


class _Pair(NamedTuple):
    """How rare the value of one feature is among rows that are near in another."""

    surprise: float
    feature: int
    beside: int
    near: BoolArray  # which rows of the reference, (m,)
    share: float  # of them that are as low, or as high, or of the same category


def affinity(problem: Problem, X: FloatArray) -> FloatArray:
    """How much points look like the reference, 1 for all where there is no filter, (n,)."""
    density = problem.density
    return np.ones(len(X)) if density is None or not len(X) else density.affinity(X)


def rarest_values(problem: Problem, x: FloatArray) -> Remark | None:
    """The pair of values of a point, (d,), that is rarest among known rows; None where none is rare."""
    if not isinstance(problem.density, Joint):
        return None
    model = problem.density.model
    judged = model.basis.features
    off = model.off(x[None])[0]
    strangest = [judged[i] for i in np.argsort(-off, kind="stable")[:STRANGEST] if off[i] >= OFF]
    pairs = [
        pair
        for beside in judged
        if x[beside] != MISSING_CODE
        if (near := _near(problem, x, beside)).sum() >= FEWEST
        for pair in (_pair(problem, x, j, beside, near) for j in strangest if j != beside)
        if pair.share <= RARE
    ]
    best = max(pairs, key=lambda pair: pair.surprise, default=None)
    if best is None:
        return None
    everywhere = _pair(problem, x, best.feature, best.beside, np.ones(len(problem.reference), dtype=bool))
    alone = everywhere.share <= ALONE * max(best.share, 1 / best.near.sum())
    pair = everywhere if alone else best
    space = problem.region.space
    columns = (space.names[pair.feature], space.names[pair.beside])
    return Remark("rare_values", _sentence(space, problem.reference, x, pair), columns)


def unusual_row(problem: Problem) -> tuple[Remark, ...]:
    """A remark where the factual itself is less usual than the filter requires."""
    density = problem.density
    if not isinstance(density, Joint) or density.least(problem.factual) == density.settings.threshold:
        return ()
    why = rarest_values(problem, problem.factual)
    text = f"The row itself is unusual among the data{f' ({why})' if why else ''}; a counterfactual may be as unusual."
    return (Remark("unusual_row", text, why.columns if why else ()),)


def _near(problem: Problem, x: FloatArray, j: int) -> BoolArray:
    """The reference rows with about the same value in a feature, (m,)."""
    column = problem.reference[:, j]
    if problem.scale.is_nominal[j]:
        return np.asarray(column == x[j])
    distance = np.abs(column - x[j])
    n = min(max(FEWEST, int(NEAR * len(column))), len(column))
    return np.asarray(distance <= np.partition(distance, n - 1)[n - 1])


def _pair(problem: Problem, x: FloatArray, j: int, beside: int, near: BoolArray) -> _Pair:
    values = problem.reference[near & (problem.reference[:, j] != MISSING_CODE), j]
    if problem.scale.is_nominal[j]:
        share, beyond = float((values == x[j]).mean()), 0.0
    else:
        share = float(min((values <= x[j]).mean(), (values >= x[j]).mean()))
        outside = max(values.min() - x[j], x[j] - values.max(), 0.0)
        beyond = float(outside / (values.std() + 0.01 * problem.scale.deviations[j]))
    return _Pair(np.log1p(beyond) - np.log(share + 0.01), j, beside, near, share)


def _sentence(space: Space, reference: FloatArray, x: FloatArray, pair: _Pair) -> str:
    feature, beside = space.features[pair.feature], space.features[pair.beside]
    known, others = (reference[pair.near, j] for j in (pair.feature, pair.beside))
    known, others = known[known != MISSING_CODE], others[others != MISSING_CODE]
    value, other = (f.text(f.read(x[j])) for f, j in ((feature, pair.feature), (beside, pair.beside)))
    low, high = (beside.text(beside.read(end)) for end in (others.min(), others.max()))
    where = f" with {beside.name} {low}" if low == high else f" with {beside.name} {low} to {high}"
    what, where = (value, "") if pair.near.all() else (f"{value} with {beside.name} {other}", where)
    if not feature.ordered:
        rare = "none has" if pair.share == 0 else f"{_share(pair.share)} have"
        rare = f"{rare} {feature.name} {value}"
    else:
        is_low = (known <= x[pair.feature]).mean() <= (known >= x[pair.feature]).mean()
        end = known.min() if is_low else known.max()
        word = ("below" if is_low else "above") if feature.is_number else ("before" if is_low else "after")
        none = f"none has {feature.name} {word} {feature.text(feature.value(end))}"
        rare = none if pair.share == 0 else f"{_share(pair.share)} are as {'low' if is_low else 'high'}"
    return f"{feature.name} {what}: of {len(known)} known rows{where} {rare}"


def _share(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"only {100 * share:.0f}%"
