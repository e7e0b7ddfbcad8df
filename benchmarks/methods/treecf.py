"""The package treecf, which uses the trees of the model to find the least l1 distance for a forest or boosting."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from acex.arrays import BoolArray, FloatArray
from benchmarks.methods.method import method
from benchmarks.scenario import Forest
from benchmarks.task import CountedModel, Task

SECONDS = 10.0  # as in the package
EDGE = 1e-9  # margin above one half: a tie does not flip the label


@dataclass(frozen=True, eq=False)
class Solved:
    """Result of treecf for one row."""

    point: FloatArray | None  # a hit, (d,)
    distance: float  # its l1 distance in standard deviations; infinite without one
    is_complete: bool  # nothing nearer exists


@method(
    "treecf",
    needs=("treecf", "pip install 'acex[optimum]'"),
    given="the model itself",
    style={"color": "#8A6D00", "linestyle": ":"},
)
def treecf(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The hit of least l1 distance, (1, d) or none; one query confirms it."""
    found = solved(task, SECONDS, seed)
    if found.point is None or not model.is_hit(found.point[None])[0]:
        return np.empty((0, len(task.x)))
    return found.point[None]


def solved(task: Task, seconds: float, seed: int = 0) -> Solved:
    """The least l1 distance that a hit can have, computed from the trees."""
    import treecf as package
    from treecf.ir.parsers import parse_model

    g = task.scenario
    black_box = copy(g.model)
    if isinstance(black_box, Forest):
        black_box.__class__ = RandomForestClassifier  # treecf recognises classes by name
    model = _between_whole_numbers(parse_model(black_box), g.space.is_whole)
    names = list(model.feature_names)
    constraints = [
        package.Range(name, float(low), float(high)) if moves else package.Freeze(name)
        for name, low, high, moves in zip(names, task.region.low, task.region.high, task.movable, strict=True)
    ]
    policy: dict[str, Any] = {names[j]: "integer" for j in np.flatnonzero(g.space.is_whole & task.movable)}
    explainer = package.Explainer(model, constraints=constraints, normalizers=g.deviations, value_policy=policy)
    middle = 0.5 if model.link.name == "IDENTITY" else 0.0  # the score of a forest is a share of trees
    is_zero = g.predict(task.x[None])[0] == 0
    target = package.Target.raw(op=">=" if is_zero else "<=", value=middle + EDGE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # timeouts are reported in the result
        found = explainer.explain(task.x, target, backend="exact", time_budget_s=seconds, seed=seed)
    is_complete = bool(found.solver_stats.get("completed"))
    if not isinstance(found, package.Counterfactual):
        return Solved(None, np.inf, is_complete)
    return Solved(np.asarray(found.x_cf), float(found.distance), is_complete)


def _between_whole_numbers(model: Any, whole: BoolArray) -> Any:
    """treecf's model with cuts of whole features moved half-way: just beyond a cut at 107 it would go to 107.00001."""

    def moved(node: Any) -> Any:
        if node.feature is None or not whole[node.feature]:
            return node
        return replace(node, threshold=float(np.floor(node.threshold) + 0.5))

    trees = tuple(replace(tree, nodes=tuple(map(moved, tree.nodes))) for tree in model.trees)
    return replace(model, trees=trees)
