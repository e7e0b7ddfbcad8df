"""Train the belief of strategy "feasible" on simulated searches. (draft)"""
from __future__ import annotations
import os, sys, time, pickle, warnings
warnings.simplefilter("ignore")
from dataclasses import replace
import numpy as np
from scipy.special import expit
import acex.search.learned as L
from acex.search import feasible
from acex.search.evidence import Evidence
from acex.search.families import everything, from_hits, from_reference
from acex.search.feasible import Feasible
from acex.search.hints import outcome_model
from acex.search.network import Network
from acex.search.problem import History, Query, Stop
from acex.search.traits import NAMES, REVISION, traits
from simulated import Case, earlier_answers, least_cost, task

N_QUERIES = 50

def informed(case, rng, mode=None):
    """problem, known, odds-function-or-None of a case with a random kind of help."""
    p = case.problem; u = rng.random() if mode is None else -1
    known, odds = None, None
    m = mode
    if m is None:
        m = ("none" if u < .38 else "outcomes" if u < .62 else "shuffled" if u < .68 else "stale" if u < .76 else "known" if u < .82 else "learnt" if u < .92 else "scores")
    if m == "outcomes": p = case.with_outcomes(case.outcomes)
    elif m == "shuffled": p = case.with_outcomes(rng.permutation(case.outcomes))
    elif m == "stale":
        y = case.outcomes.copy(); f = rng.random(len(y)) < rng.uniform(.05, .4); y[f] = rng.permutation(y)[f]; p = case.with_outcomes(y)
    elif m in ("known", "learnt"):
        known, hint = earlier_answers(case, rng, int(rng.integers(1, 5)) if m == "known" else int(rng.integers(9, 40)))
        if m == "learnt" and hint is not None: p = replace(p, hint=hint, learnt=True)
    elif m == "scores" and case.gives_scores and known is None:
        odds = lambda x: float(np.clip(case.odds(x[None])[0], -14, 14))
    return p, known, odds

def begin(p, known, odds):
    h = History((), (), (), known)
    return h.told(Query(p.factual, "factual"), False, None if odds is None else odds(p.factual))

def sampled(p, hist, rng, best):
    rows = p.projected
    E = everything(p)
    fams = [rows[rng.choice(len(rows), min(len(rows), 120), replace=False)], from_reference(p, rng, 100)] if E is None else [E[rng.permutation(len(E))[:200]]]
    H = hist.X[hist.is_hit]
    if len(H) and E is None:
        H = H[np.argsort(p.cost(H))]
        fams += [from_hits(p, rng, H[:5], 150), L.structured(p, H[0])]
    elif E is None and p.hint is not None:
        im = L._imagined_hits(p)
        if len(im): fams += [im, from_hits(p, rng, im, 80)]
    lim = best * .99 if np.isfinite(best) else np.inf
    out = []
    for X in fams:
        c = p.cost(X); X = X[(c > 0) & (c < lim)]
        out.append(X[rng.permutation(len(X))[:14]])
    return np.vstack(out)

def favourites(p, hist, rng, best, e):
    H = hist.X[hist.is_hit & p.plausible(hist.X)]
    X = [p.projected[rng.permutation(len(p.projected))[:150]], from_reference(p, rng, 120)]
    if len(H): H = H[np.argsort(p.cost(H))]; X += [from_hits(p, rng, H[:5], 200)]
    X = np.vstack(X); c = p.cost(X)
    sv = 1 - c / best if np.isfinite(best) else 1 - np.searchsorted(e.ground.row_costs, c) / len(e.ground.row_costs)
    ok = (sv > .005) & (c > 0); X, sv = X[ok], sv[ok]
    if len(X) == 0: return X
    P = L.prob(e, X); return X[np.argsort(-P * sv)[:14]]

def some_rules(rng):
    return L.Rules(first=str(rng.choice(["rank", "pandora"])), a=1., b=float(rng.choice([1, 2, 4])), kappa=float(rng.choice([.03, .1, .3])),
        after=str(rng.choice(["ei", "pandora", "log"])), w=float(rng.choice([1., 1.5])), kappa2=float(rng.choice([.01, .03, .06])), draws=int(rng.choice([0, 2, 3])))

def collect(args):
    seed, weights = args
    if weights is not None and (L.NET is None or getattr(L, "WPATH", None) != weights):
        L.NET = Network.load(weights, "hit_"); L.WPATH = weights
    rng = np.random.default_rng([5, seed, weights is not None])
    F, Y, info = [], [], []
    try:
        for i, case in enumerate(task(seed, 3)):
            p, known, odds = informed(case, rng)
            old = weights is None or rng.random() < .12
            rules = some_rules(rng)
            hist = begin(p, known, odds); best = np.inf
            while len(hist.queries) < N_QUERIES:
                t = len(hist.queries)
                if t < 7 or (t + i) % 3 == 0:
                    X = sampled(p, hist, rng, best)
                    e = Evidence(p, hist)
                    if weights is not None: X = np.vstack([X, favourites(p, hist, rng, best, e)])
                    X = np.unique(X, axis=0)
                    X = X[p.region.contains(X)]
                    if p.density is not None and len(X): X = X[p.plausible(X) | (rng.random(len(X)) < .15)]
                    if len(X) > 2:
                        F.append(traits(e, X))
                        Y.append(np.column_stack([case.is_hit(X), 1 - p.cost(X) / best if np.isfinite(best) else np.full(len(X), np.nan), np.full(len(X), t)]).astype(np.float32))
                if old: q = Feasible(0.0).next_query(p, hist, seed=seed)
                else: q = L.next_query(p, rules, hist, seed * 10 + i)
                if isinstance(q, Stop): break
                hit = bool(case.is_hit(q.point[None])[0])
                hist = hist.told(q, hit, None if odds is None else odds(q.point))
                if hit and p.plausible(q.point[None])[0]: best = min(best, float(p.cost(q.point[None])[0]))
    except Exception as error:
        import traceback
        return seed, None, traceback.format_exc()[-700:]
    if not F: return seed, None, "empty"
    lengths = np.array([len(f) for f in F])
    return seed, (np.vstack(F), np.vstack(Y), lengths), ""

def gather(seeds, weights, pool):
    F, Y, S, T, errors = [], [], [], [], []
    n = 0
    for seed, data, err in pool.imap_unordered(collect, [(s, weights) for s in seeds], chunksize=1):
        if data is None: errors.append((seed, err)); continue
        f, y, lengths = data
        F.append(f); Y.append(y); S.append(np.repeat(np.arange(n, n + len(lengths)), lengths)); n += len(lengths); T.append(np.full(len(f), seed))
    print("errors", len(errors), [x for x in errors if x[1] != "empty"][:2], flush=True)
    return np.vstack(F), np.vstack(Y), np.concatenate(S), np.concatenate(T)

def train(F, t, names, revision, hidden=(96, 64), epochs=14, batch=2048, rate=2e-3, seed=0, decay=1e-4, verbose=True, weight=None):
    """Adam on cross entropy, one-cycle rate; NaN targets are left out. t: (n, outputs)."""
    rng = np.random.default_rng(seed)
    centre, spread = F.mean(0).astype(np.float32), (F.std(0) + 1e-3).astype(np.float32)
    sizes = (F.shape[1], *hidden, t.shape[1])
    P = []
    for a, b in zip(sizes, sizes[1:]):
        P += [(rng.normal(size=(a, b)) * np.sqrt((2 if b != sizes[-1] else .3) / a)).astype(np.float32), np.zeros(b, np.float32)]
    m = [np.zeros_like(x) for x in P]; v = [np.zeros_like(x) for x in P]
    A = np.clip((F - centre) / spread, -6, 6).astype(np.float32); t = t.astype(np.float32)
    steps = epochs * (len(A) // batch); k = 0
    avg = None
    for ep in range(epochs):
        perm = rng.permutation(len(A)); total = 0.0
        for i in range(0, len(A) - batch + 1, batch):
            idx = perm[i:i + batch]; x, y = A[idx], t[idx]
            hs, zs, gs = [x], [], []
            h = x
            for j in range(0, len(P) - 2, 2):
                z = h @ P[j] + P[j + 1]; g = 1 / (1 + np.exp(-np.clip(z, -30, 30))); h = z * g; zs.append(z); gs.append(g); hs.append(h)
            out = h @ P[-2] + P[-1]
            s = 1 / (1 + np.exp(-np.clip(out, -30, 30)))
            d = (s - y); bad = np.isnan(d); d[bad] = 0; d /= batch
            total += -(np.where(bad, 0, np.nan_to_num(y) * np.log(s + 1e-9) + (1 - np.nan_to_num(y)) * np.log(1 - s + 1e-9))).mean()
            grads = [None] * len(P)
            grads[-2], grads[-1] = hs[-1].T @ d, d.sum(0)
            d = d @ P[-2].T
            for j in range(len(P) - 4, -1, -2):
                l = j // 2; d = d * (gs[l] * (1 + zs[l] * (1 - gs[l])))
                grads[j], grads[j + 1] = hs[l].T @ d, d.sum(0)
                if j: d = d @ P[j].T
            k += 1; u = k / steps
            lr = rate * (min(u / .15, 1.0) if u < .15 else .5 * (1 + np.cos(np.pi * (u - .15) / .85)) + 1e-3)
            for q in range(len(P)):
                m[q] = .9 * m[q] + .1 * grads[q]; v[q] = .999 * v[q] + .001 * grads[q] ** 2
                P[q] = P[q] - lr * (m[q] / (1 - .9 ** k) / (np.sqrt(v[q] / (1 - .999 ** k)) + 1e-8) + (decay * P[q] if P[q].ndim == 2 else 0)).astype(np.float32)
        if verbose: print("epoch", ep, "loss", round(total / max(1, len(A) // batch), 4), flush=True)
    layers = tuple((P[j], P[j + 1]) for j in range(0, len(P), 2))
    return Network(centre, spread, layers, tuple(names), revision)

def judge(net, F, Y, S):
    """log loss, AUC and greedy value within asks, before and after first hit."""
    lo = np.vstack([net.log_odds(F[i:i + 200000]) for i in range(0, len(F), 200000)])[:, 0]; p = expit(lo); y = Y[:, 0]
    out = {"loss": float(-(y * np.log(p + 1e-9) + (1 - y) * np.log(1 - p + 1e-9)).mean())}
    gp = np.where(F[:, NAMES.index("for_hint")] > 0, F[:, NAMES.index("hinted_logit")], F[:, NAMES.index("gp_logit")])
    start = np.flatnonzero(np.r_[True, S[1:] != S[:-1]]); end = np.r_[start[1:], len(S)]
    from scipy.stats import rankdata
    for name, s in (("net", lo), ("gp", gp)):
        a, b, val = [], [], []
        for i, j in zip(start, end):
            yy = y[i:j]; k = yy.sum()
            if 0 < k < j - i:
                r = rankdata(s[i:j]); auc = (r[yy > 0].sum() - k * (k + 1) / 2) / (k * (j - i - k)); (b if np.isnan(Y[i, 1]) else a).append(auc)
            if not np.isnan(Y[i, 1]):
                z = i + np.argmax(expit(s[i:j]) * Y[i:j, 1]); val.append(y[z] * Y[z, 1])
        out[name] = [round(float(np.mean(v)), 4) for v in (a, b, val)]
    return out
