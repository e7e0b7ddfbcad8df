"""Inputs of the networks: about fifty numbers that describe a point given the evidence.

    x   points (`Points`), n of them     e   evidence     S, R   steps in units of cost and in ranks (see `evidence`)

No input depends on the units, the number or the meaning of the features: distances are relative to the distance to the
factual or to a typical row, costs to the best hit or to reference rows. So what was learned on simulated tasks applies
to other tables. To add an input or change its meaning, increase `REVISION` and train again
(`python -m benchmarks train`); a test compares it with the revision of the weights. The names are stored with them.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import logit

from acex.arrays import FloatArray
from acex.search.evidence import HINT_CLIP, Evidence, Points, in_common
from acex.search.surrogate import moderated
from acex.space.scale import nearest

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
    *("to_hit", "hit_or_miss", "step_to_hit"),
    *("holds_hit", "holds_second_hit", "holds_hit_ranks", "along_hit", "off_hit"),
    # The best hit
    *("log_saving", "holds_best", "like_best", "undone", "best_rank"),
    # All evidence
    *("of_nearest_3", "of_nearest_7", "of_same_cost"),
    # Known outcomes
    *("hint", "hint_rank", "hint_share", "hint_success"),
    # The state of the search
    *("has_hit", "has_hint", "is_learnt", "is_scored"),
    *("log_asked", "log_hits", "log_misses", "log_known", "known_rate"),
    *("since_hit", "log_features", "dependence", "log_rows", "share_nominal"),
)
SAME_COST = 0.4  # evidence whose log cost differs by this has weight 1/e
FAR = 3.0  # relative distances are clipped here
ADDITIVE_VARIANCE, ADDITIVE_NOISE = 4.0, 0.3  # of the additive function at a typical row, and of a label
MAX_LOGIT = 8.0


Columns = dict[str, FloatArray | float]


def belief_inputs(evidence: Evidence, points: Points) -> FloatArray:
    """Inputs of the hit network, (n, len(NAMES))."""
    squared, common = evidence.squared(points), in_common(points.net_R, evidence.points.net_R)
    columns = _of_surrogate(evidence, points, squared, common) | _of_points(evidence, points)
    columns |= _of_evidence(evidence, points, squared, common) | _of_best(evidence, points) | search_inputs(evidence)
    out = np.empty((len(points), len(NAMES)))
    for i, name in enumerate(NAMES):
        out[:, i] = columns[name]
    return out


def _of_surrogate(e: Evidence, x: Points, squared: FloatArray, common: FloatArray) -> Columns:
    mean, variance = e.latent(x, hinted=False, squared=squared)
    out: Columns = {
        "gp_logit": _logit(moderated(mean, variance)),
        "gp_mean": np.clip(mean, -9, 9),
        "gp_deviation": np.sqrt(variance),
        "for_hint": float(np.clip(e.for_hint, -9, 9)),
    }
    out |= {"hinted_logit": out["gp_logit"], "hinted_mean": out["gp_mean"]}
    if e.by_hint is not None:
        hinted, hinted_variance = e.latent(x, hinted=True, squared=squared)
        out |= {"hinted_logit": _logit(moderated(hinted, hinted_variance)), "hinted_mean": np.clip(hinted, -9, 9)}
    # Kernel ridge regression with covariance min(R_i, R_j): a sum of functions of one feature, -1 at the factual.
    unit = ADDITIVE_VARIANCE / e.context.typical_change
    among = in_common(e.points.net_R, e.points.net_R) * unit
    L = np.linalg.cholesky(among + ADDITIVE_NOISE * np.eye(len(among)))
    weights = cho_solve((L, True), e.hits.astype(float), check_finite=False)
    explained = solve_triangular(L, common.T * unit, lower=True, check_finite=False, overwrite_b=True)
    out["additive_mean"] = np.clip(2.0 * unit * (common @ weights) - 1.0, -4, 4)
    out["additive_deviation"] = np.sqrt(np.maximum(x.R.sum(axis=1) * unit - (explained**2).sum(axis=0), 0.0))
    return out


def _of_points(e: Evidence, x: Points) -> Columns:
    p, context = e.problem, e.context
    distance = context.distance(x.Z)
    changed = (p.factual != x.X).sum(axis=1)
    to_rows, near = nearest(np.sqrt(p.scale.metric.squared(x.Z, context.rows.Z)), min(10, len(context.rows)))
    out: Columns = {
        "distance": np.minimum(distance / context.typical, FAR),
        "log_distance": np.log(distance / context.typical + 1e-3),
        "cost_rank": context.rank(x.costs),
        "log_cost": np.log(x.costs / context.typical_cost + 1e-4),
        "n_changed": np.log1p(changed),
        "share_changed": changed / max(int(p.region.movable.sum()), 1),
        "largest_share": x.S.max(axis=1) / (x.S.sum(axis=1) + 1e-12),
        "to_row": np.minimum(to_rows[:, 0] / context.typical, FAR),
        "to_third_row": np.minimum(to_rows[:, min(2, near.shape[1] - 1)] / context.typical, FAR),
        "rows_around": e.of_rows[near].mean(axis=1),
    }
    if p.hint is None:
        return out | {"hint": 0.0, "hint_rank": 0.5, "hint_share": 0.5}
    share = np.searchsorted(context.hinted_rows, x.hint) / len(context.hinted_rows)
    return out | {"hint": _logit(x.hint), "hint_rank": share, "hint_share": float(context.hinted_rows.mean())}


def _of_evidence(e: Evidence, x: Points, squared: FloatArray, common_ranks: FloatArray) -> Columns:
    hit, miss, typical = np.flatnonzero(e.hits), np.flatnonzero(e.is_miss), e.context.typical
    distance, reach = e.context.distance(x.Z) + 1e-9, x.S.sum(axis=1) + 1e-9
    reaches, rank_reaches = e.points.S.sum(axis=1) + 1e-9, e.points.R.sum(axis=1) + 1e-9
    apart, between = np.sqrt(squared), cdist(x.net_S, e.points.net_S, "cityblock")
    between_miss, between_hit, apart_hit = between[:, miss], between[:, hit], apart[:, hit]
    to_miss = np.minimum(_least(apart[:, miss]) / distance, FAR)
    to_hit = np.minimum(_least(apart_hit) / distance, FAR)
    in_miss = _two_greatest((reach[:, None] + reaches[miss] - between_miss) / 2)
    holds_hit = _two_greatest((reach[:, None] + reaches[hit] - between_hit) / 2 / reaches[hit])
    out: Columns = {
        "to_miss": to_miss,
        "step_to_miss": np.minimum(_least(between_miss) / reach, FAR),
        "in_miss": in_miss[0] / reach,
        "in_second_miss": in_miss[1] / reach,
        "in_miss_ranks": common_ranks[:, miss].max(axis=1, initial=0.0) / (x.R.sum(axis=1) + 1e-9),
        "to_hit": to_hit,
        "hit_or_miss": np.log((to_hit + 1e-3) / (to_miss + 1e-3)),
        "step_to_hit": np.minimum(_least(between_hit) / reach, FAR),
        "holds_hit": holds_hit[0],
        "holds_second_hit": holds_hit[1],
        "holds_hit_ranks": (common_ranks[:, hit] / rank_reaches[hit]).max(axis=1, initial=0.0),
    }
    to_near, near = nearest(apart, min(7, len(e.hits)))
    weight = 1 / (to_near + 0.05 * typical)
    is_hit = e.hits[near]
    for m in (3, 7):
        out[f"of_nearest_{m}"] = (weight * is_hit)[:, :m].sum(axis=1) / weight[:, :m].sum(axis=1)
    ratio = np.abs(np.log(x.costs + 1e-6)[:, None] - np.log(e.points.costs[1:] + 1e-6))
    weight = np.exp(-ratio / SAME_COST)
    out["of_same_cost"] = (weight @ e.hits[1:] + 0.15) / (weight.sum(axis=1) + 0.5)
    out |= {"along_hit": 0.0, "off_hit": 0.0}
    if len(hit):
        T = e.points.S[hit[apart_hit.argmin(axis=1)]]
        length = (T**2).sum(axis=1) + 1e-12
        along = (x.S * T).sum(axis=1) / length
        off = np.linalg.norm(x.S - along[:, None] * T, axis=1) / np.sqrt(length)
        out |= {"along_hit": np.clip(along, 0, FAR), "off_hit": np.minimum(off, FAR)}
    return out


def _of_best(e: Evidence, x: Points) -> Columns:
    if e.best is None:
        return dict.fromkeys(("log_saving", "holds_best", "like_best", "undone"), 0.0)
    B, cost = e.points.S[e.best], e.points.costs[e.best]
    changes = B > 0
    return {
        "log_saving": np.clip(np.log(cost / (x.costs + 1e-9)), -3, 6),
        "holds_best": in_common(x.S, B[None])[:, 0] / (B.sum() + 1e-9),
        "like_best": x.S @ B / (np.linalg.norm(x.S, axis=1) * np.linalg.norm(B) + 1e-12),
        "undone": (x.S[:, changes] < 0.5 * B[changes]).mean(axis=1) if changes.any() else 0.0,
    }


def search_inputs(e: Evidence) -> dict[str, float]:
    """The inputs that all points share: the state of the search."""
    p, n = e.problem, len(e.history.queries)
    own, known = e.hits[1:n], e.hits[n:]
    success = 0.0
    if p.hint is not None and n > 1:
        p_hint = np.clip(e.points.hint[1:n], HINT_CLIP, 1 - HINT_CLIP)
        share = float(np.clip(own.mean(), 0.1, 0.9))
        likelihood = np.where(own, np.log(p_hint / share), np.log((1 - p_hint) / (1 - share)))
        success = float(np.clip(likelihood.sum() / np.sqrt(n), -4, 4))
    since = len(own) - (int(np.flatnonzero(own)[-1]) + 1 if own.any() else 0)
    best_rank = 1.0 if e.best is None else float(e.context.rank(e.points.costs[e.best]))
    return {
        "best_rank": best_rank,
        "hint_success": success,
        "has_hit": float(e.best is not None),
        "has_hint": float(p.hint is not None),
        "is_learnt": float(p.hint_from_model),
        "is_scored": float(e.is_scored),
        "log_asked": float(np.log(n)),
        "log_hits": float(np.log1p(own.sum())),
        "log_misses": float(np.log1p((~own).sum())),
        "log_known": float(np.log1p(len(known))),
        "known_rate": float((known.sum() + 0.3) / (len(known) + 1)),
        "since_hit": float(np.log1p(since)),
        "log_features": float(np.log(p.region.movable.sum())),
        "dependence": e.context.dependence,
        "log_rows": float(np.log(len(p.reference))),
        "share_nominal": float(p.scale.is_nominal.mean()),
    }


def _logit(probability: FloatArray) -> FloatArray:
    log_odds: FloatArray = np.clip(logit(np.clip(probability, 1e-6, 1 - 1e-6)), -MAX_LOGIT, MAX_LOGIT)
    return log_odds


def _least(values: FloatArray) -> FloatArray:
    """The smallest value of each row, (n,); infinite for an empty row."""
    least: FloatArray = values.min(axis=1, initial=np.inf)
    return least


def _two_greatest(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The largest and second largest value of each row, (n,) each; at least 0."""
    values = np.hstack([np.zeros((len(values), 2)), values])
    values.partition(values.shape[1] - 2, axis=1)
    return values[:, -1], values[:, -2]
