from learn import *
from learn import _begin
import pickle
BUDGETS = (10, 15, 20, 30, 40, 60)
def curve(case, help_, consts, seed, n=60):
    old = {k: getattr(feasible, k) for k in consts}
    for k, v in consts.items(): setattr(feasible, k, v)
    rng = np.random.default_rng([9, seed]); problem, known, odds = helped(case, help_, rng)
    history = begun(problem, known, odds); out = np.full(n + 1, np.inf); strategy = Feasible(0.0); t0 = time.process_time(); soon = []; hopes = []
    while len(history.queries) < n:
        q = strategy.next_query(problem, history, seed=seed)
        if isinstance(q, Stop): break
        hit = bool(case.is_hit(q.point[None])[0]); history = history.told(q, hit, odds(q.point) if odds else None)
        if hit and problem.plausible(q.point[None])[0]: out[len(history.queries):] = np.minimum(out[len(history.queries):], problem.cost(q.point[None])[0])
        hopes.append(q.hope)
    secs = time.process_time() - t0
    for k, v in old.items(): setattr(feasible, k, v)
    return out, secs, hopes
def evaluate(args):
    seed, plans = args; out = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for i, case in enumerate(task(VALIDATION + seed, 1)):
                lim = least_cost(case)
                for name, help_, consts in plans:
                    c, secs, hopes = curve(case, help_, consts, seed * 10 + i); out.append((seed, i, name, help_, lim, c, secs, hopes))
    except Exception: return [("err", traceback.format_exc()[-800:])]
    return out
def table(results, budgets=BUDGETS):
    best = {}
    for s, i, name, mode, lim, c, secs, _ in results: best[s, i] = min(best.get((s, i), np.inf), lim, c[-1])
    rows = {}
    for s, i, name, mode, lim, c, secs, _ in results:
        if np.isfinite(best[s, i]) and best[s, i] > 0: rows.setdefault((mode, name), []).append((np.minimum(c / best[s, i], 50.), secs))
    for (mode, name), v in sorted(rows.items()):
        R = np.array([x[0] for x in v]); lg = np.log(R)
        print(f"{mode:9s} {name:20s} n={len(R)} gm " + " ".join(f"{np.exp(lg[:, b].mean()):6.3f}" for b in budgets) + "  med " + " ".join(f"{np.median(R[:, b]):5.2f}" for b in budgets) + "  none " + " ".join(f"{(R[:, b] >= 50).mean():.2f}" for b in (10, 15, 30, 60)) + f"  s {np.mean([x[1] for x in v]):.2f}", flush=True)
