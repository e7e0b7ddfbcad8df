"""Experimental."""
from __future__ import annotations
from dataclasses import dataclass, replace
import numpy as np
from scipy.special import expit
from acex.search.climb import best_position
from acex.search.evidence import Evidence
from acex.search.families import everything, from_hits, from_reference
from acex.search.feasible import _imagined_hits as _im0, _sample
def _imagined_hits(p): return p.once(_im0)
from acex.search.problem import Query, Stop
from acex.search.traits import traits

NET = None

@dataclass(frozen=True)
class Rules:
    first: str = "rank"   # rank, pandora, draw
    a: float = 1.0
    b: float = 1.0
    kappa: float = 0.1
    after: str = "ei"     # ei, pandora, log
    w: float = 1.0
    kappa2: float = 0.03
    draws: int = 0        # every so many asks before first hit is a real draw
    r0: float = 0.4
    widen: float = 1.15
    polish: bool = False
    mixed: bool = False
    n_ref: int = 600
    n_hits: int = 1200
    top: int = 300
    rand: int = 80

def prob(e, X):
    return expit(NET.log_odds(traits(e, X))[:, 0]) if len(X) else np.zeros(0)

def structured(p, h):
    und = np.repeat(h[None], len(h), 0); k = np.arange(len(h)); und[k, k] = p.home; und = und[h != p.factual]
    sh = np.array([.3, .5, .7, .85, .93])[:, None]
    line = p.region.snap(p.factual + sh * (h - p.factual)); line = np.where(p.scale.is_nominal, h, line)
    s = np.abs(p.cost.steps(h[None])[0]); order = np.argsort(s); order = order[(h != p.factual)[order]]
    cum = []
    for m in range(2, len(order)):
        x = h.copy(); x[order[:m]] = p.home[order[:m]]; cum.append(x)
    half = h.copy()
    each = np.repeat(h[None], len(h), 0); each[k, k] = np.where(p.scale.is_nominal, h, (h + p.factual) / 2); each = p.region.snap(each[h != p.factual])
    return np.vstack([und, line, each, *([np.array(cum)] if cum else [])])

def next_query(p, rules, history, seed, max_asked=None):
    rng = np.random.default_rng([seed, len(history.queries)])
    X = history.X
    ok = history.is_hit & p.plausible(X)
    may = lambda A: p.admissible(A, history.useless)
    e = Evidence(p, history)
    if history.known is not None:
        K = history.known.X[history.known.is_hit]; c = p.cost(K); best = p.cost(X[ok]).min(initial=np.inf)
        m = (c < best) & (c > 0)
        j = best_position(K[m], 1 / c[m], may)
        if j is not None: return Query(K[m][j], "known")
    return first(p, rules, history, e, rng, may) if not ok.any() else after(p, rules, history, e, rng, may, X[ok])

def first(p, rules, history, e, rng, may):
    n = len(history.queries)
    E = everything(p)
    fam = [E] if E is not None else [_sample(p.projected)]
    im = _imagined_hits(p)
    if E is None and rules.mixed and p.hint is None:
        fam += [from_reference(p, rng, rules.n_ref)]
    if E is None and p.hint is not None:
        fam += [im, from_reference(p, rng, rules.n_ref)]
        if len(im): fam += [from_hits(p, rng, im, rules.n_hits)]
    X = np.vstack(fam); c = p.cost(X); X, c = X[c > 0], c[c > 0]
    if len(X) == 0: return Stop("exhausted")
    rank = np.searchsorted(e.ground.row_costs, c) / len(e.ground.row_costs)
    gp = e.by_posterior(X, p.quantiles.coordinates(X))
    pre = np.argsort(-(gp * (1 - rank) ** 1.0), kind="stable")[:rules.top // 2]
    pre1 = np.argsort(-(gp * (1 - rank) ** 4.0), kind="stable")[:rules.top // 2]
    ra = rng.permutation(len(X))[:rules.rand]
    idx = np.unique(np.concatenate([pre, pre1, ra]))
    X, c, rank = X[idx], c[idx], rank[idx]
    P = prob(e, X)
    draw = rules.draws and n >= 3 and n % rules.draws == 0
    if draw:
        lim = min(1.0, rules.r0 * rules.widen ** (n - 1))
        s = np.log(P + 1e-9) + rng.gumbel(size=len(P)); s = np.exp(s) * (rank <= lim)
    elif rules.first == "rank":
        s = P ** rules.a * (1 - rank + 1e-6) ** rules.b
    else:
        s = -np.log(c) - rules.kappa / (P + 1e-6); s = np.exp(np.clip(s - s.max(), -600, 0)) 
    j = best_position(X, s, may)
    if j is None:
        X = from_reference(p, rng, 1500); X = X[p.cost(X) > 0]
        P = prob(e, X); j = best_position(X, P, may)
        if j is None: return Stop("exhausted")
    return Query(X[j], "first", hope=float(P[j]))

def after(p, rules, history, e, rng, may, hits):
    hits = hits[np.argsort(p.cost(hits), kind="stable")]
    best = float(p.cost(hits[:1])[0])
    E = everything(p)
    if E is not None:
        X = E; n_str = 0
    else:
        st = structured(p, hits[0]); n_str = len(st)
        X = np.vstack([st, _sample(p.projected), from_reference(p, rng, rules.n_ref), from_hits(p, rng, np.vstack([hits[:5], _imagined_hits(p)[:2]]), rules.n_hits)])
    c = p.cost(X); sv = 1 - c / best
    ok = (sv > .003) & (c > 0)
    keep = np.zeros(len(X), bool); keep[:n_str] = True
    X, sv, c, keep = X[ok], sv[ok], c[ok], keep[ok]
    if len(X) == 0: return Stop("settled")
    if len(X) > rules.top + rules.rand:
        gp = e.by_posterior(X, p.quantiles.coordinates(X))
        pre = np.argsort(-(gp ** .7 * sv), kind="stable")[:rules.top]
        ra = rng.permutation(len(X))[:rules.rand]
        idx = np.unique(np.concatenate([pre, ra, np.flatnonzero(keep)])); X, sv, c = X[idx], sv[idx], c[idx]
    P = prob(e, X)
    if rules.after == "ei": s = P ** rules.w * sv
    elif rules.after == "log": s = P ** rules.w * np.minimum(-np.log(np.maximum(1 - sv, 1e-3)), 2.0)
    else:
        s = -np.log(np.maximum(c / best, 1e-3)) - rules.kappa2 / (P + 1e-6); s = np.exp(np.clip(s - s.max(), -600, 0))
    j = best_position(X, s, may)
    return Stop("settled") if j is None else Query(X[j], "refine", hope=float(P[j]))
