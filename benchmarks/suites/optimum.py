"""The proven least cost of any counterfactual, and how far from it the methods end.

    python -m benchmarks run --suite optimum

The model is known here. It is constant between its thresholds, so only the cheapest point of each cell matters:

    y_jk   whether feature j is above its k-th threshold   y_j,k+1 implies y_jk
    l      one leaf in each tree, consistent with y        score = sum of the values of the leaves
    G      = sum of |z|, linear in y                       S^2 >= sum of z^2, linear in y as well

CP-SAT of OR-tools minimises J = 5 G + S subject to a score with the other label, with z in whole steps of 1e-5, rounded
down, so that its lower bound holds for the exact J. Plausibility is ignored, so the bound also holds for plausible
points. Cells that cost more than a known hit are left out; this hit is from `best_known.csv`, or from `treecf`, which
finds the least l1 distance in about a second. If treecf proves it, J >= (5 + 1/sqrt(m)) g1 with m movable features.

A raw line has the bound, the least J of a hit that is known, and whether both agree ("proved"). Needs
`pip install 'acex[optimum]'` and the data sets: set ACEX_DATA.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from acex.arrays import BoolArray, FloatArray, IntArray
from benchmarks import score
from benchmarks.methods import METHODS
from benchmarks.methods.treecf import solved
from benchmarks.published import PAPER
from benchmarks.scenario import Scenario, scenario
from benchmarks.suite import RESULTS, Job, Line, Suite, read
from benchmarks.suites.paper import WHITE, shared
from benchmarks.table import Table
from benchmarks.task import Task

SECONDS = 60.0  # for each of the two solvers and each row
UNIT = 100_000  # whole steps of z in a standard deviation
SCORE = 10**9  # whole steps of a score of one
AGREE = 1.001  # ratio up to which a bound counts as equal to the cost of a hit, since steps are rounded


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes of one tree, the root first; a leaf has feature -1. A point with x <= threshold goes left."""

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray  # of leaves: what the tree adds to the score


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trees whose values add up to a score; the label is 1 where it is above zero."""

    trees: list[Tree]
    base: float
    is_exact: bool  # votes: each tree adds 0 or 1/n, so that scores are equal or differ by 1/n

    @classmethod
    def of(cls, g: Scenario) -> Ensemble:
        """The trees of a fitted random forest or histogram boosting of scikit-learn, with two classes."""
        model = g.model
        if hasattr(model, "estimators_"):
            parts = [e.tree_ for e in model.estimators_]
            shares = [t.value[:, 0, 1] / t.value[:, 0].sum(axis=1) / len(parts) for t in parts]
            arrays = [
                (np.maximum(t.feature, -1), t.threshold, t.children_left, t.children_right, share)
                for t, share in zip(parts, shares, strict=True)
            ]
            base = -0.5
        else:
            nodes = [predictor.nodes for (predictor,) in model._predictors]
            names = ("num_threshold", "left", "right", "value")
            arrays = [
                (np.where(t["is_leaf"], -1, t["feature_idx"].astype(int)), *(t[name] for name in names)) for t in nodes
            ]
            base = float(np.ravel(model._baseline_prediction)[0])
        whole = g.space.is_whole
        trees = []
        for feature, cut, *rest in arrays:
            # Cuts between the same two whole numbers are equivalent.
            cut = np.where(whole[feature] & (feature >= 0), np.floor(cut) + 0.5, cut)
            trees.append(Tree(feature, cut, *rest))
        n = len(trees)
        votes = np.concatenate([t.value[t.feature < 0] * n for t in trees])
        return cls(trees, base, base == -0.5 and SCORE % n == 0 and bool(np.isin(votes, (0.0, 1.0)).all()))

    def thresholds(self, j: int) -> FloatArray:
        """The distinct thresholds of feature j, ascending."""
        return np.unique(np.concatenate([t.threshold[t.feature == j] for t in self.trees]))


@dataclass(frozen=True, eq=False)
class Axis:
    """The thresholds of one feature, and the cost of passing each.

    Passing a threshold above the factual costs at least the step to it; so does falling below one under the factual.
    """

    cuts: FloatArray  # ascending, (k,)
    is_up: BoolArray  # whether a cut lies at or above the factual, (k,)
    prices: IntArray  # z at the nearest point beyond, in whole steps, rounded down, (k,)

    @classmethod
    def of(cls, task: Task, ensemble: Ensemble, j: int, most: float) -> Axis:
        """The cuts of feature j that cost at most `most` in J by themselves."""
        x, low, high = task.x[j], task.region.low[j], task.region.high[j]
        cuts = ensemble.thresholds(j)
        cuts = cuts[(cuts >= min(low, x)) & (cuts < max(high, x))] if task.movable[j] else cuts[:0]
        is_up = cuts >= np.float32(x)
        nearest = np.where(is_up, np.ceil(cuts), np.floor(cuts)) if task.scenario.space.is_whole[j] else cuts
        z = np.abs(nearest - x) / task.scenario.deviations[j]
        keep = 6 * z <= most  # J of one step z is 5 z + z
        return cls(cuts[keep], is_up[keep], np.floor(z[keep] * UNIT).astype(np.int64))

    def point(self, x: float, beyond: BoolArray, whole: bool) -> float:
        """The value nearest to x with these cuts passed, (k,)."""
        if (beyond & self.is_up).any():
            cut = self.cuts[np.flatnonzero(beyond & self.is_up)[-1]]
            return float(np.ceil(cut)) if whole else above(cut)
        if (~beyond & ~self.is_up).any():
            cut = self.cuts[np.flatnonzero(~beyond & ~self.is_up)[0]]
            return float(np.floor(cut)) if whole else below(cut)
        return x


def above(cut: float) -> float:
    """The least single-precision number above a cut: trees compare in single precision."""
    nearest = np.float32(cut)
    return float(nearest if nearest > cut else np.nextafter(nearest, np.float32(np.inf)))


def below(cut: float) -> float:
    """The greatest single-precision number that is not above a cut."""
    nearest = np.float32(cut)
    return float(nearest if nearest <= cut else np.nextafter(nearest, np.float32(-np.inf)))


@dataclass(frozen=True)
class Bounds:
    """Bounds on the least J of a row: no hit costs less than `lower`, and some hit costs `upper`."""

    lower: float
    upper: float

    @property
    def is_proved(self) -> bool:
        return self.upper <= AGREE * self.lower or self.lower == np.inf


def bounds(task: Task, ensemble: Ensemble, seconds: float, hit: float = np.inf) -> Bounds:
    """Lower and upper bound on J of any hit that the row may become; infinite where it is proved that there is none.

    Args:
        seconds: for each of the two solvers.
        hit: the cost of a hit from another source.
    """
    first = least_l1(task, seconds)
    most = min(first.upper, hit)
    if not np.isfinite(most):
        return Bounds(first.lower, most)
    second = least_J(task, ensemble, most, seconds)
    return Bounds(max(first.lower, second.lower), second.upper)


def least_J(task: Task, ensemble: Ensemble, most: float, seconds: float) -> Bounds:
    """Bounds by CP-SAT, among points that cost at most `most`, which is the cost of a hit."""
    from ortools.sat.python import cp_model

    d = len(task.x)
    axes = [Axis.of(task, ensemble, j, most) for j in range(d)]
    model = cp_model.CpModel()
    beyond = [[model.new_bool_var(f"y{j}_{k}") for k in range(len(axis.cuts))] for j, axis in enumerate(axes)]
    for literals in beyond:
        for lower, higher in pairwise(literals):
            model.add_implication(higher, lower)

    g, squares = [], []
    for axis, literals in zip(axes, beyond, strict=True):
        for side in (True, False):
            order = np.flatnonzero(axis.is_up == side)
            order = order if side else order[::-1]
            passed = [literals[k] if side else literals[k].negated() for k in order]
            prices = axis.prices[order]
            for literal, more, more_squared in zip(
                passed, np.diff(prices, prepend=0), np.diff(prices**2, prepend=0), strict=True
            ):
                g.append(int(more) * literal)
                squares.append(int(more_squared) * literal)

    scores = []
    for tree in ensemble.trees:
        for literal, value in add_tree(model, list(reachable(tree, axes, task.x)), beyond):
            scores.append(round(value * SCORE) * literal)
    total = sum(scores) + round(ensemble.base * SCORE)
    slack = 0 if ensemble.is_exact else len(ensemble.trees)  # so that rounding excludes no hit
    before = task.scenario.predict(task.x[None])[0]
    model.add(total >= 1 - slack if before == 0 else total <= slack)

    ceiling = int(np.ceil(most * UNIT)) + 1
    length = model.new_int_var(0, ceiling, "S")
    square = model.new_int_var(0, ceiling**2, "S squared")
    model.add_multiplication_equality(square, [length, length])
    model.add(square >= sum(squares))
    model.add(5 * sum(g) + length <= ceiling)
    model.minimize(5 * sum(g) + length)

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    lower, upper, ends = 0.0, most, time.monotonic() + seconds
    while ends > time.monotonic():
        solver.parameters.max_time_in_seconds = max(ends - time.monotonic(), 0.1)
        status = solver.solve(model)
        if status == cp_model.INFEASIBLE:  # there is no hit below `most`
            return Bounds(most, upper)
        lower = max(lower, (solver.best_objective_bound - 1) / UNIT)  # S is rounded up by less than a step
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        chosen = [np.array([solver.boolean_value(y) for y in literals], dtype=bool) for literals in beyond]
        J = cost_of_hit(task, witness(task, axes, chosen))
        upper = min(upper, J)
        if status == cp_model.FEASIBLE or np.isfinite(J):
            break
        # The model breaks this tie the other way: exclude this cell.
        flat = [
            y.negated() if c else y for ys, cs in zip(beyond, chosen, strict=True) for y, c in zip(ys, cs, strict=True)
        ]
        model.add_bool_or(flat)
    return Bounds(lower, upper)


def witness(task: Task, axes: list[Axis], beyond: list[BoolArray]) -> FloatArray:
    """The cheapest point of a cell, (d,)."""
    parts = zip(axes, task.x.tolist(), beyond, task.scenario.space.is_whole, strict=True)
    return np.array([axis.point(x, passed, whole) for axis, x, passed, whole in parts])


def cost_of_hit(task: Task, x: FloatArray) -> float:
    """J of a point if it is a hit that the row may become, and infinite otherwise."""
    model = task.scenario
    is_hit = model.predict(x[None])[0] != model.predict(task.x[None])[0]
    return float(task.cost(x[None])[0]) if is_hit and task.allowed(x[None])[0] else np.inf


Box = dict[int, tuple[int, int]]
"""By feature: how many cuts are certainly passed, and how many can be."""


def reachable(tree: Tree, axes: list[Axis], x: FloatArray) -> Iterator[tuple[Box, float]]:
    """The leaves that a point can fall into, each with its box and its value."""
    waiting: list[tuple[int, Box]] = [(0, {})]
    while waiting:
        node, box = waiting.pop()
        j = int(tree.feature[node])
        if j < 0:
            yield box, float(tree.value[node])
            continue
        cuts, cut = axes[j].cuts, tree.threshold[node]
        k = int(np.searchsorted(cuts, cut))
        if k == len(cuts) or cuts[k] != cut:  # too expensive to pass, or outside the range of the feature
            goes_left = np.float32(x[j]) <= cut
            waiting.append((int((tree.left if goes_left else tree.right)[node]), box))
            continue
        low, high = box.get(j, (0, len(cuts)))
        if high > k:
            waiting.append((int(tree.right[node]), box | {j: (max(low, k + 1), high)}))
        if low <= k:
            waiting.append((int(tree.left[node]), box | {j: (low, min(high, k))}))


def add_tree(model: Any, leaves: list[tuple[Box, float]], beyond: list[list[Any]]) -> Iterator[tuple[Any, float]]:
    """Add one literal per leaf, exactly one of which is true; returned with the leaf's value."""
    literals = [model.new_bool_var("leaf") for _ in leaves]
    model.add_exactly_one(literals)
    for literal, (box, value) in zip(literals, leaves, strict=True):
        for j, (low, high) in box.items():
            if low > 0:
                model.add_implication(literal, beyond[j][low - 1])
            if high < len(beyond[j]):
                model.add_implication(literal, beyond[j][high].negated())
        yield literal, value


def least_l1(task: Task, seconds: float) -> Bounds:
    """Bounds by treecf: the cost of its hit, and a lower bound on J if its l1 distance is proven to be the least."""
    found = solved(task, seconds)
    if found.point is None:
        return Bounds(np.inf if found.is_complete else 0.0, np.inf)
    factor = 5 + 1 / np.sqrt(task.movable.sum())  # an l2 norm is at least the l1 norm over the root of the dimension
    return Bounds(float(factor * found.distance) if found.is_complete else 0.0, cost_of_hit(task, found.point))


@cache
def _ensemble(data: str) -> Ensemble:
    return Ensemble.of(scenario(data))


def measure(job: Job) -> list[Line]:
    """The bounds of a row."""
    s = scenario(job.data)
    hits = pd.read_csv(RESULTS / "best_known.csv").set_index(["dataset", "row"])["J"].to_dict()
    started = time.perf_counter()
    found = bounds(Task(s, s.rows[job.row]), _ensemble(job.data), SECONDS, hits.get((job.data, job.row), np.inf))
    seconds = round(time.perf_counter() - started, 1)
    return [{"lower": found.lower, "upper": found.upper, "proved": found.is_proved, "seconds": seconds}]


def proved() -> dict[tuple[str, int], float]:
    """The least J of the rows for which it is proven, by data set and row."""
    lines = read(RESULTS / "optimum.csv")
    lines = lines[lines["proved"]]
    return dict(zip(zip(lines["data"], lines["row"], strict=True), lines["lower"], strict=True))


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """J of each method of the mixed test over the proven optimum / over the best known, medians over rows."""
    everything = read(RESULTS / "mixed.csv")
    compared, optima = shared(everything), proved()
    compared = compared[(compared["method"] != WHITE) & (compared["row"] <= lines["row"].max())]
    known = score.best_known(compared)
    valid = everything[everything["valid"] & (everything["row"] <= lines["row"].max())]
    rows = []
    for method in (m for m in METHODS if m in {*compared["method"], WHITE}):
        cells = []
        for name in PAPER:
            runs = valid[(valid["method"] == method) & (valid["data"] == name)]
            costs = list(zip(runs["row"], runs["J"], strict=True))
            by_optimum = [J / optima[name, row] for row, J in costs if (name, row) in optima]
            by_known = [J / known[name, row] for row, J in costs]
            both = [f"{np.median(values):.2f}" if values else "–" for values in (by_optimum, by_known)]
            cells.append(" / ".join(both))
        rows.append([method, *cells])
    share = [f"{lines[lines['data'] == name]['proved'].mean():.0%}" for name in PAPER]
    title = "J over the proved optimum / over the best known, medians over rows"
    return {"gap": Table(title, ["method", *PAPER], [*rows, ["*rows proved*", *share]])}


def missing(data: str, method: str) -> str | None:
    """Why the suite cannot run; None if both solvers are installed."""
    installed = find_spec("ortools") and find_spec("treecf")
    return None if installed else "cp-sat needs ortools and treecf: pip install 'acex[optimum]'"


SUITES = (
    Suite(
        "optimum",
        PAPER,
        ("cp-sat",),
        ("lower", "upper", "proved", "seconds"),
        measure,
        tables,
        rows=20,
        missing=missing,
    ),
)
