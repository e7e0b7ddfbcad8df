"""Curves of rules on simulated tasks (draft)."""
from learn import *
from simulated import VALIDATION
BUDGETS = (10, 15, 20, 30, 40, 60)

def curve(case, mode, rules, seed, n=60):
    rng = np.random.default_rng([9, seed]); p, known, odds = informed(case, rng, mode)
    hist = begin(p, known, odds); out = np.full(n + 1, np.inf)
    t0 = time.process_time()
    while len(hist.queries) < n:
        q = Feasible(0.0).next_query(p, hist, seed=seed) if rules is None else L.next_query(p, rules, hist, seed)
        if isinstance(q, Stop): break
        hit = bool(case.is_hit(q.point[None])[0]); hist = hist.told(q, hit, None if odds is None else odds(q.point))
        if hit and p.plausible(q.point[None])[0]: out[len(hist.queries):] = np.minimum(out[len(hist.queries):], p.cost(q.point[None])[0])
    return out, time.process_time() - t0

def nearest(case, n=60):
    from anytime import nearest as rival
    raise NotImplementedError

def evaluate(args):
    seed, weights, plans = args
    if weights is not None and (L.NET is None or getattr(L, "WPATH", None) != weights):
        L.NET = Network.load(weights, "hit_"); L.WPATH = weights
    out = []
    try:
        for i, case in enumerate(task(VALIDATION + seed, 1)):
            lim = least_cost(case)
            for name, mode, rules in plans:
                c, secs = curve(case, mode, rules, seed * 10 + i)
                out.append((seed, i, name, mode, lim, c, secs))
    except Exception:
        import traceback
        return [("err", traceback.format_exc()[-600:])]
    return out

def table(results, budgets=BUDGETS):
    best = {}
    for s, i, name, mode, lim, c, secs in results: best[s, i] = min(best.get((s, i), np.inf), lim, c[-1])
    rows = {}
    for s, i, name, mode, lim, c, secs in results:
        if np.isfinite(best[s, i]) and best[s, i] > 0: rows.setdefault((mode, name), []).append((np.minimum(c / best[s, i], 50.), secs))
    for (mode, name), v in sorted(rows.items()):
        R = np.array([x[0] for x in v]); lg = np.log(R)
        print(f"{mode:9s} {name:34s} n={len(R)} gm " + " ".join(f"{np.exp(lg[:, b].mean()):6.3f}" for b in budgets) + "  med " + " ".join(f"{np.median(R[:, b]):5.2f}" for b in budgets) + "  none " + " ".join(f"{(R[:, b] >= 50).mean():.2f}" for b in (10, 15, 30)) + f"  s {np.mean([x[1] for x in v]):.2f}", flush=True)
