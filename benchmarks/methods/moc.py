"""MOC (Dandl et al. 2020, "Multi-Objective Counterfactual Explanations"): NSGA-II with four objectives.

    F   (n, 4): 0 for a hit and 1 for a miss; Gower distance to the factual; number of changed features;
        Gower distance to the nearest reference row

An individual is a point with a flag for each feature that keeps it at the factual's value. The constants below were
tuned by the authors, and survival is theirs: hits before misses, duplicates last, and crowding both among objectives
and among points. Categories count as their codes.

moc        175 generations. The first population keeps a feature with probability one half, and mutation is normal with
           the feature's deviation: the package's options "random" and no conditional mutator
moc-stop   the same, but it stops (an option of the package) if the volume that the population dominates has not grown
           for ten generations. ACE's paper seems to have run it like this: its fewest queries, 220, are the first
           population and ten generations, which is too few if the first hit comes late
moc-ice    as in MOC's paper, with the same stopping rule. The first population changes a feature the more often, the
           more the model's answer varies along it (its ICE curve, whose points are queries too), and mutation draws
           from the feature's distribution given the others: a transformation tree in the paper, and here the values of
           the 20 reference rows that are nearest in the other features
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from acex.arrays import BoolArray, FloatArray, IntArray
from benchmarks.methods.gower import gower, widths
from benchmarks.methods.method import method
from benchmarks.task import CountedModel, Task

POPULATION, GENERATIONS = 20, 175
RECOMBINED, RECOMBINED_VALUE, RECOMBINED_FLAG = 0.57, 0.85, 0.88  # probabilities: of a pair, then of each feature
MUTATED, MUTATED_VALUE, MUTATED_FLAG = 0.79, 0.56, 0.32  # of a child, then of each feature
PATIENCE, MOST_GENERATIONS = 10, 500  # of the stopping rule
SPREAD = 5.0  # of simulated binary crossover: greater keeps children nearer to their parents
ICE_POINTS = 20  # points of the ICE curve of each feature
ICE_RANGE = 0.01, 0.99  # probabilities to change the features of least and greatest variation
NEIGHBOURS = 20  # reference rows that a conditional mutation draws from
NEEDS = ("pymoo", "pip install 'acex[bench]'")


@method("moc", needs=NEEDS, style={"color": "#009E73"})
def moc(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The hits that are not dominated by any other point queried, (k, d)."""
    return _evolved(task, model, seed, GENERATIONS, patience=GENERATIONS)


@method("moc-stop", needs=NEEDS, style={"color": "#009E73", "linestyle": ":"})
def moc_until_it_stagnates(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """The same, but it stops if the dominated volume has not grown for some generations."""
    return _evolved(task, model, seed, MOST_GENERATIONS, PATIENCE)


@method("moc-ice", needs=NEEDS, style={"color": "#009E73", "linestyle": "--"})
def moc_with_ice_curves(task: Task, model: CountedModel, seed: int) -> FloatArray:
    """With the first population and the mutation of MOC's paper."""
    return _evolved(task, model, seed, MOST_GENERATIONS, PATIENCE, as_in_paper=True)


def _evolved(
    task: Task, model: CountedModel, seed: int, generations: int, patience: int, as_in_paper: bool = False
) -> FloatArray:
    rng = np.random.default_rng(seed)
    values = rng.uniform(task.region.low, task.region.high, (POPULATION, len(task.x)))
    changed = ice_probabilities(task, model) if as_in_paper else np.full(len(task.x), 0.5)
    keep = rng.random(values.shape) < 1 - changed
    X = task.project(np.where(keep, task.x, values))
    F = objectives(task, X, model.is_hit(X))
    all_X, all_F = [X], [F]
    volumes = [volume(task, F)]
    for generation in range(generations):
        if generation >= patience and volumes[-1] <= volumes[-1 - patience]:
            break
        children, flags = offspring(task, rng, X, keep, fitness(task, X, F), conditional=as_in_paper)
        found = objectives(task, children, model.is_hit(children))
        all_X.append(children)
        all_F.append(found)
        X, keep, F = np.vstack([X, children]), np.vstack([keep, flags]), np.vstack([F, found])
        best = np.argsort(fitness(task, X, F), kind="stable")[:POPULATION]
        X, keep, F = X[best], keep[best], F[best]
        volumes.append(volume(task, F))
    X, F = np.vstack(all_X), np.vstack(all_F)
    hits, first = np.unique(X[F[:, 0] == 0], axis=0, return_index=True)
    return hits[fronts(F[F[:, 0] == 0][first]) == 0] if len(hits) else hits


def ice_probabilities(task: Task, model: CountedModel) -> FloatArray:
    """How often the first population changes each feature, (d,), from the deviation of the labels along it."""
    deviations = np.zeros(len(task.x))
    for j in np.flatnonzero(task.movable):
        curve = np.repeat(task.x[None], ICE_POINTS, axis=0)
        curve[:, j] = np.linspace(task.region.low[j], task.region.high[j], ICE_POINTS)
        curve = np.unique(task.project(curve), axis=0)
        deviations[j] = model.is_hit(curve).std()
    movable = deviations[task.movable]
    least, most = ICE_RANGE
    spread = np.ptp(movable)
    if spread == 0:  # the answer varies along no feature, or equally along all
        return np.full(len(task.x), 0.5)
    return np.asarray(least + (most - least) * np.clip((deviations - movable.min()) / spread, 0, 1))


def conditional_values(task: Task, rng: np.random.Generator, X: FloatArray, mutated: BoolArray) -> FloatArray:
    """The points with mutated features drawn from reference rows that are similar in the other features, (n, d)."""
    reference, width = task.scenario.reference, widths(task)
    X = X.copy()
    for j in rng.permutation(X.shape[1]):
        which = np.flatnonzero(mutated[:, j])
        others = np.delete(np.arange(X.shape[1]), j)
        if len(which) == 0 or len(others) == 0:
            continue
        distances = cdist(X[np.ix_(which, others)] / width[others], reference[:, others] / width[others], "cityblock")
        k = min(NEIGHBOURS, len(reference))
        nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
        X[which, j] = reference[nearest[np.arange(len(which)), rng.integers(0, k, len(which))], j]
    return X


def objectives(task: Task, X: FloatArray, is_hit: BoolArray) -> FloatArray:
    """The objectives, which are minimised, (n, 4)."""
    to_factual = gower(task, X, task.x[None])[:, 0]
    to_reference = gower(task, X, task.scenario.reference).min(axis=1)
    return np.column_stack([~is_hit, to_factual, (task.x != X).sum(axis=1), to_reference])


def volume(task: Task, F: FloatArray) -> float:
    """The volume of the objective space that the points dominate, up to the worst possible values."""
    from pymoo.indicators.hv import HV

    worst = np.array([1.0, 1.0, len(task.x), 1.0])
    return float(HV(ref_point=worst)(F))


def fronts(F: FloatArray) -> IntArray:
    """The non-dominated front of each point, 0 is best, (n,)."""
    from pymoo.util.nds.non_dominated_sorting import NonDominatedSorting

    ranks: IntArray = NonDominatedSorting().do(F, return_rank=True)[1]
    return ranks


def fitness(task: Task, X: FloatArray, F: FloatArray) -> IntArray:
    """The rank of each point, best first, (n,)."""
    n = len(X)
    front = np.full(n, n, dtype=float)  # duplicates come last
    once = np.sort(np.unique(F, axis=0, return_index=True)[1])
    hits, misses = once[F[once, 0] == 0], once[F[once, 0] == 1]
    if len(hits):
        front[hits] = fronts(F[hits])
    front[misses] = n - 1 - np.arange(len(misses))[::-1] / n  # labels do not tell how close a miss is: oldest first
    crowding = np.zeros(n)
    for f in np.unique(front[hits]):
        members = np.flatnonzero(front == f)
        crowding[members] = lonely(task, X[members], F[members])
    places = np.empty(n, dtype=np.intp)
    places[np.lexsort((-crowding, front))] = np.arange(n)
    return places


def lonely(task: Task, X: FloatArray, F: FloatArray) -> FloatArray:
    """How far points of a front are from their neighbours, by ranks among objectives and among points, (n,)."""
    among_objectives, among_points = np.zeros(len(F)), np.zeros(len(F))
    distances = gower(task, X, X)
    for column in F.T:
        order = np.argsort(column, kind="stable")
        ends, inner = order[[0, -1]], order[1:-1]
        before, after = order[:-2], order[2:]
        among_objectives[ends] = among_points[ends] = np.inf
        among_objectives[inner] += (column[after] - column[before]) / max(np.ptp(column), 1e-12)  # 0 if all are equal
        among_points[inner] += distances[inner, before] + distances[inner, after]
    ranks: FloatArray = rankdata(among_objectives) + rankdata(among_points)
    return ranks


def offspring(
    task: Task,
    rng: np.random.Generator,
    X: FloatArray,
    keep: BoolArray,
    places: IntArray,
    conditional: bool = False,
) -> tuple[FloatArray, BoolArray]:
    """The children, as many as parents, (n, d), and their flags, (n, d)."""
    n, d = X.shape
    rivals = rng.integers(0, n, (2, n))
    winners = np.where(places[rivals[0]] < places[rivals[1]], rivals[0], rivals[1])
    mother, father = winners[: n // 2], winners[n // 2 :]

    pair = rng.random((n // 2, 1)) < RECOMBINED
    u = rng.random((n // 2, d))
    spread = np.where(u < 0.5, 2 * u, 1 / (2 * (1 - u))) ** (1 / (SPREAD + 1))
    spread = np.where(pair & (rng.random(u.shape) < RECOMBINED_VALUE), spread, 1.0)
    middle, half = (X[mother] + X[father]) / 2, (X[mother] - X[father]) / 2
    values = np.vstack([middle + spread * half, middle - spread * half])
    swap = pair & (rng.random(u.shape) < RECOMBINED_FLAG)
    flags = np.vstack([np.where(swap, keep[father], keep[mother]), np.where(swap, keep[mother], keep[father])])

    child = rng.random((n, 1)) < MUTATED
    noise = rng.standard_normal((n, d)) * task.scenario.deviations
    mutated = child & (rng.random((n, d)) < MUTATED_VALUE)
    values = conditional_values(task, rng, values, mutated) if conditional else values + np.where(mutated, noise, 0.0)
    # A new flag is drawn with the frequency of the other flags, so that the number of changes stays about the same.
    share = (flags.sum(axis=1, keepdims=True) + 1) / (d + 2)
    redrawn = child & (rng.random((n, d)) < 2 * MUTATED_FLAG)
    flags = np.where(redrawn, rng.random((n, d)) < share, flags)
    return task.project(np.where(flags, task.x, values)), flags
