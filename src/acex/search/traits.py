"""What the learned belief sees of a point: some fifty numbers that describe it in the light of the evidence.

None of them depends on the units of a feature, on how many there are, or on what they mean: distances are relative to
the distance to the factual or to a typical row, costs to the best hit or to rows. So what was learned on simulated tasks
holds elsewhere. Whoever changes what a number means, or adds one, raises `REVISION` and trains anew
(`benchmarks/learn.py`); a test compares it with that of the weights.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.special import logit

from acex.arrays import BoolArray, FloatArray
from acex.search.evidence import HINT_CLIP, Evidence, in_common
from acex.search.surrogate import moderated

REVISION = 1

NAMES = (
    # The Gaussian process, by distance alone and with known outcomes
    *("gp_logit", "gp_mean", "gp_deviation", "hinted_logit", "hinted_mean", "for_hint"),
    # An additive function of the changes
    *("additive_mean", "additive_deviation"),
    # The point by itself
    *("distance", "log_distance", "cost_rank", "log_cost", "n_changed", "share_changed", "largest_share"),
    # Rows around it
    *("to_row", "to_third_row", "rows_around"),
    # Misses
    *("to_miss", "step_to_miss", "in_miss", "in_second_miss", "in_miss_ranks"),
    # Hits
    *("to_hit", "hit_or_miss", "step_to_hit", "holds_hit", "holds_second_hit", "holds_hit_ranks", "along_hit", "off_hit"),
    # The best hit
    *("log_saving", "holds_best", "like_best", "undone", "best_rank"),
    # All evidence
    *("of_nearest_3", "of_nearest_7", "of_same_cost"),
    # Known outcomes
    *("hint", "hint_rank", "hint_share", "hint_success"),
    # The state of the search
    *("has_hit", "has_hint", "is_learnt", "is_scored", "log_asked", "log_hits", "log_misses", "log_known", "known_rate"),
    *("since_hit", "log_features", "dependence", "log_rows", "share_nominal"),
)
SAME_COST = 0.4  # evidence whose log cost differs by this counts 1/e
FAR = 3.0  # a relative distance that stands for anything beyond
ADDITIVE_NOISE = 0.3
MOST_LOGIT = 4.0


def traits(evidence: Evidence, X: FloatArray) -> FloatArray:
    """The traits of points, (n, len(NAMES)), in single precision."""
    columns = _of_surrogate(evidence, X) | _of_points(evidence, X) | _of_evidence(evidence, X) | _of_search(evidence)
    out = np.empty((len(X), len(NAMES)), dtype=np.float32)
    for i, name in enumerate(NAMES):
        out[:, i] = columns[name]
    return out


Columns = dict[str, FloatArray | float]


def _of_surrogate(e: Evidence, X: FloatArray) -> Columns:
    Z = e.problem.quantiles.coordinates(X)
    mean, variance = e.latent(X, Z, hinted=False)
    out: Columns = {
        "gp_logit": _logit(moderated(mean, variance)),
        "gp_mean": np.clip(mean, -9, 9),
        "gp_deviation": np.sqrt(variance),
        "for_hint": float(np.clip(e.for_hint, -9, 9)),
    }
    if e.by_hint is not None:
        hinted, hinted_variance = e.latent(X, Z, hinted=True)
        out |= {"hinted_logit": _logit(moderated(hinted, hinted_variance)), "hinted_mean": np.clip(hinted, -9, 9)}
    else:
        out |= {"hinted_logit": out["gp_logit"], "hinted_mean": out["gp_mean"]}
    # Kernel ridge with min(R_i, R_j) as covariance: a function of each feature by itself, zero at the factual.
    unit = 4.0 / max(float(np.median(e.ground.rank_directions(e.ground.rows).sum(axis=1))), 1e-9)
    among, across = in_common(e.R, e.R) * unit, in_common(e.ground.rank_directions(X), e.R) * unit
    factor = cho_factor(among + ADDITIVE_NOISE * np.eye(len(among)), lower=True, check_finite=False)
    y = 2.0 * e.hits
    solved = cho_solve(factor, across.T, check_finite=False)
    prior_variance = e.ground.rank_directions(X).sum(axis=1) * unit
    out["additive_mean"] = np.clip(solved.T @ y - 1.0, -4, 4)
    out["additive_deviation"] = np.sqrt(np.maximum(prior_variance - (across * solved.T).sum(axis=1), 0.0))
    return out


def _of_points(e: Evidence, X: FloatArray) -> Columns:
    p, ground = e.problem, e.ground
    Z, costs = p.quantiles.coordinates(X), p.cost(X)
    distance = ground.distance(Z)
    steps = np.abs(p.cost.steps(X))
    changed = (p.factual != X).sum(axis=1)
    to_rows = cdist(Z, ground.Z_rows)
    k = min(10, to_rows.shape[1])
    near = np.argpartition(to_rows, k - 1, axis=1)[:, :k]
    nearest = np.sort(np.take_along_axis(to_rows, near, axis=1), axis=1)
    believed = e.by_posterior(ground.rows, ground.Z_rows)
    out: Columns = {
        "distance": np.minimum(distance / ground.typical, FAR),
        "log_distance": np.log(distance / ground.typical + 1e-3),
        "cost_rank": np.searchsorted(ground.row_costs, costs) / len(ground.row_costs),
        "log_cost": np.log(costs / ground.typical_cost + 1e-4),
        "n_changed": np.log1p(changed),
        "share_changed": changed / max(int(p.region.movable.sum()), 1),
        "largest_share": steps.max(axis=1) / (steps.sum(axis=1) + 1e-12),
        "to_row": np.minimum(nearest[:, 0] / ground.typical, FAR),
        "to_third_row": np.minimum(nearest[:, min(2, k - 1)] / ground.typical, FAR),
        "rows_around": believed[near].mean(axis=1),
    }
    if p.hint is None:
        return out | {"hint": 0.0, "hint_rank": 0.5, "hint_share": 0.5}
    hint = p.hint(X)
    share = np.searchsorted(ground.hinted_rows, hint) / len(ground.hinted_rows)
    return out | {"hint": _logit(hint), "hint_rank": share, "hint_share": float(ground.hinted_rows.mean())}


def _of_evidence(e: Evidence, X: FloatArray) -> Columns:
    p, ground, hit, miss = e.problem, e.ground, e.hits, e.is_miss
    Z, S, costs = p.quantiles.coordinates(X), ground.directions(X), p.cost(X)
    R = ground.rank_directions(X)
    distance, reach, rank_reach = ground.distance(Z) + 1e-9, S.sum(axis=1) + 1e-9, R.sum(axis=1) + 1e-9
    apart, between = cdist(Z, e.Z), cdist(S, e.S, "cityblock")
    common, common_ranks = in_common(S, e.S), in_common(R, e.R)
    out: Columns = {}
    to_miss, to_hit = _least(apart, miss) / distance, _least(apart, hit) / distance
    inside = _two_greatest(common / reach[:, None], miss)
    out |= {
        "to_miss": np.minimum(to_miss, FAR),
        "step_to_miss": np.minimum(_least(between, miss) / reach, FAR),
        "in_miss": inside[0],
        "in_second_miss": inside[1],
        "in_miss_ranks": _two_greatest(common_ranks / rank_reach[:, None], miss)[0],
        "to_hit": np.minimum(to_hit, FAR),
        "hit_or_miss": np.log(np.minimum(to_hit, FAR) + 1e-3) - np.log(np.minimum(to_miss, FAR) + 1e-3),
        "step_to_hit": np.minimum(_least(between, hit) / reach, FAR),
    }
    holds = _two_greatest(common / (e.S.sum(axis=1) + 1e-9), hit)
    out |= {
        "holds_hit": holds[0],
        "holds_second_hit": holds[1],
        "holds_hit_ranks": _two_greatest(common_ranks / (e.R.sum(axis=1) + 1e-9), hit)[0],
    }
    order = np.argsort(apart, axis=1, kind="stable")
    for k in (3, 7):
        nearest = order[:, :k]
        weight = 1 / (np.take_along_axis(apart, nearest, axis=1) + 0.05 * ground.typical)
        out[f"of_nearest_{k}"] = (weight * hit[nearest]).sum(axis=1) / weight.sum(axis=1)
    ratio = np.abs(np.log(costs + 1e-6)[:, None] - np.log(e.costs[1:] + 1e-6))
    weight = np.exp(-ratio / SAME_COST)
    out["of_same_cost"] = (weight @ hit[1:] + 0.15) / (weight.sum(axis=1) + 0.5)
    return out | _of_hits(e, X, S, apart, costs)


def _of_hits(e: Evidence, X: FloatArray, S: FloatArray, apart: FloatArray, costs: FloatArray) -> Columns:
    best = _best(e)
    if best is None:
        names = ("along_hit", "off_hit", "log_saving", "holds_best", "like_best", "undone")
        return dict.fromkeys(names, 0.0) | {"best_rank": 1.0}
    if e.hits.any():
        hits = np.flatnonzero(e.hits)
        T = e.S[hits[apart[:, hits].argmin(axis=1)]]
        length = (T**2).sum(axis=1) + 1e-12
        along = (S * T).sum(axis=1) / length
        off = np.linalg.norm(S - along[:, None] * T, axis=1) / np.sqrt(length)
    B = e.S[best]
    changes = B > 0
    return {
        "along_hit": np.clip(along, 0, FAR),
        "off_hit": np.minimum(off, FAR),
        "log_saving": np.clip(np.log(e.costs[best] / (costs + 1e-9)), -3, 6),
        "holds_best": in_common(S, B[None])[:, 0] / (B.sum() + 1e-9),
        "like_best": S @ B / (np.linalg.norm(S, axis=1) * np.linalg.norm(B) + 1e-12),
        "undone": (S[:, changes] < 0.5 * B[changes]).mean(axis=1) if changes.any() else 0.0,
        "best_rank": float(np.searchsorted(e.ground.row_costs, e.costs[best]) / len(e.ground.row_costs)),
    }


def _best(e: Evidence) -> int | None:
    """Where the cheapest hit of the search is in the evidence; None before the first."""
    own = np.flatnonzero(e.hits[: len(e.history.queries)])
    return int(own[e.costs[own].argmin()]) if len(own) else None


def _of_search(e: Evidence) -> Columns:
    p, n = e.problem, len(e.history.queries)
    own = e.hits[1:n]
    known = e.hits[n:]
    success = 0.0
    if p.hint is not None and n > 1:
        says = np.clip(p.hint(e.X[1:n]), HINT_CLIP, 1 - HINT_CLIP)
        share = float(np.clip(own.mean(), 0.1, 0.9))
        likelihood = np.where(own, np.log(says / share), np.log((1 - says) / (1 - share)))
        success = float(np.clip(likelihood.sum() / np.sqrt(n), -4, 4))
    since = len(own) - (int(np.flatnonzero(own)[-1]) + 1 if own.any() else 0)
    return {
        "hint_success": success,
        "has_hit": float(own.any()),
        "has_hint": float(p.hint is not None),
        "is_learnt": float(p.learnt),
        "is_scored": float(e.is_scored),
        "log_asked": np.log(n),
        "log_hits": np.log1p(own.sum()),
        "log_misses": np.log1p((~own).sum()),
        "log_known": np.log1p(len(known)),
        "known_rate": float((known.sum() + 0.3) / (len(known) + 1)),
        "since_hit": np.log1p(since),
        "log_features": np.log(p.region.movable.sum()),
        "dependence": e.ground.dependence,
        "log_rows": np.log(len(p.reference)),
        "share_nominal": float(p.scale.is_nominal.mean()),
    }


def _logit(probability: FloatArray) -> FloatArray:
    return np.clip(logit(np.clip(probability, 1e-6, 1 - 1e-6)), -MOST_LOGIT - 4, MOST_LOGIT + 4)


def _least(values: FloatArray, of: BoolArray) -> FloatArray:
    """The least value in each row among some columns, (n,); infinite without any."""
    return values[:, of].min(axis=1, initial=np.inf)


def _two_greatest(values: FloatArray, of: BoolArray) -> tuple[FloatArray, FloatArray]:
    """The greatest and the second greatest in each row among some columns, (n,) each; 0 without any."""
    chosen = np.hstack([np.zeros((len(values), 2)), values[:, of]])
    chosen.partition(chosen.shape[1] - 2, axis=1)
    return chosen[:, -1], chosen[:, -2]
