"""Make a hit cheaper by rule: back towards the factual, undo what is not needed, back again.

A plan is a generator of points that depends only on the answers to the points before: `next_step` runs it
through what has been answered and gives the first point that has not.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TypeAlias

import numpy as np

from acex.arrays import FloatArray, IntArray
from acex.search.problem import Problem, key

BACK_FIRST, BACK_LAST = 2, 5  # bisection steps before and after undoing
SMALL = 0.03  # changes with less than this share of the cost are undone together

Plan: TypeAlias = Generator[FloatArray, bool, FloatArray]


def next_step(
    problem: Problem, hit: FloatArray, answers: Mapping[bytes, bool], misses: FloatArray
) -> FloatArray | None:
    """The next point to ask of the plan for a hit, (d,); None when the plan is finished.

    Points that are part of one of the misses, (m, d), are taken for misses too and not asked.
    """
    plan = _plan(problem, hit)
    try:
        point = next(plan)
        while True:
            known = answers.get(key(point))
            worth_asking = known is None and not problem.is_part_of(point[None], misses)[0]
            if worth_asking and problem.admissible(point[None], answers)[0]:
                return point
            point = plan.send(bool(known))  # what may not be asked, or is part of a miss, counts as a miss
    except StopIteration:
        return None


def without_smallest(problem: Problem, hit: FloatArray, answers: Mapping[bytes, bool]) -> FloatArray | None:
    """The hit with its cheapest change undone, (d,); None when that may not be asked, or nothing would be left."""
    steps = np.abs(problem.cost.steps(hit[None])[0])
    changed = np.flatnonzero(hit != problem.factual)
    if len(changed) < 2:
        return None
    point = hit.copy()
    smallest = changed[steps[changed].argmin()]
    point[smallest] = problem.home[smallest]
    return point if problem.admissible(point[None], answers)[0] else None


def _plan(problem: Problem, hit: FloatArray) -> Plan:
    hit = yield from _bisect(problem, hit, BACK_FIRST)
    steps = np.abs(problem.cost.steps(hit[None])[0])
    changed = np.flatnonzero(hit != problem.factual)
    changed = changed[np.argsort(-steps[changed], kind="stable")]
    small = steps[changed] < SMALL * steps.sum()
    hit = yield from _undo(problem, hit, changed[small], split=False)
    hit = yield from _undo(problem, hit, changed[~small], split=True)
    return (yield from _bisect(problem, hit, BACK_LAST))


def _bisect(problem: Problem, hit: FloatArray, steps: int) -> Plan:
    """Halve the way from the factual to the hit, so many times."""
    x, far = problem.factual, hit
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        point = problem.region.snap((x + middle * (far - x))[None])[0]
        point = np.where(problem.scale.is_nominal, far, point)
        if (point == hit).all() or (yield point):
            high, hit = middle, point
        else:
            low = middle
    return hit


def _undo(problem: Problem, hit: FloatArray, features: IntArray, *, split: bool) -> Plan:
    """Undo these changes, all at once if that is still a hit, else each half by itself, dearest first."""
    if len(features) == 0:
        return hit
    point = hit.copy()
    point[features] = problem.home[features]
    if (point != problem.factual).any() and (yield point):
        return point
    if split and len(features) > 1:
        half = (len(features) + 1) // 2
        hit = yield from _undo(problem, hit, features[:half], split=True)
        hit = yield from _undo(problem, hit, features[half:], split=True)
    return hit
