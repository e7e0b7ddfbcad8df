import multiprocessing as mp, sys, os
from trial import *
START = time.time(); OUT = os.environ.get("OUT", "/tmp/out"); os.makedirs(OUT, exist_ok=True)
SCALE = float(os.environ.get("SCALE", 1)); NP = int(os.environ.get("NP", 16))
def boxed(pool, work, items, secs, label):
    end = time.time() + secs * SCALE; res = []; it = pool.imap_unordered(work, items, chunksize=1)
    n = 0
    while time.time() < end:
        try: res.append(it.next(timeout=max(.1, end - time.time()))); n += 1
        except (mp.TimeoutError, StopIteration): break
    print(label, "done", n, "at", round(time.time() - START), flush=True); return res
def stack(res, off):
    F, Y, S, T, err, n = [], [], [], [], [], off
    for seed, data, e in res:
        if data is None: err.append((seed, e)); continue
        f, y, l = data; F.append(f); Y.append(y); S.append(np.repeat(np.arange(n, n + len(l)), l)); n += len(l); T.append(np.full(len(f), seed))
    print("errors", len(err), [x for x in err if x[1] != "empty"][:3], "rows", sum(map(len, F)), flush=True)
    return np.vstack(F), np.vstack(Y), np.concatenate(S), np.concatenate(T), n
def threads(n):
    from threadpoolctl import threadpool_limits
    threadpool_limits(n)
def main():
    ctx = mp.get_context("fork"); D = []; off = 0; weights = None
    for r, (secs, first) in enumerate(((105, 0), (125, 20000), (115, 40000))):
        pool = ctx.Pool(NP)
        res = boxed(pool, collect, [(s, weights) for s in range(first, first + 6000)], secs, f"round {r}")
        pool.terminate(); pool.join()
        D.append(stack(res, off)); off = D[-1][4]
        F, Y, S, T = (np.concatenate([d[k] for d in D]) for k in range(4)); te = T % 12 == 0
        t = time.time(); threads(4)
        net = train(F[~te], Y[~te, :1], NAMES, REVISION, hidden=(128, 64), epochs=8 if r < 2 else 16, batch=4096, verbose=r == 2)
        threads(1)
        weights = f"{OUT}/weights{r}.npz"; np.savez(weights, **net.arrays("hit_")); print("train", F.shape, round(time.time() - t), judge(net, F[te], Y[te], S[te]), flush=True)
    rng = np.random.default_rng(0)
    for k in range(3):
        late = np.flatnonzero(T >= 20000); tasks = np.unique(T[late]); mine = tasks[k::6]; idx = late[np.isin(T[late], mine)][:125000]
        np.savez_compressed(f"{OUT}/data{k}.npz", F=F[idx].astype(np.float16), Y=Y[idx].astype(np.float16), S=S[idx].astype(np.int32), T=T[idx].astype(np.int32))
    R = L.Rules
    plans = [("old", "none", None), ("rank1", "none", R()), ("rank2", "none", R(b=2)), ("rank4", "none", R(b=4)), ("pan.03", "none", R(first="pandora", kappa=.03)), ("pan.1", "none", R(first="pandora", kappa=.1)), ("pan.3", "none", R(first="pandora", kappa=.3)),
        ("rank1draw2", "none", R(draws=2)), ("rank4draw3", "none", R(b=4, draws=3)),
        ("old", "outcomes", None), ("ei", "outcomes", R(first="pandora")), ("ei1.5", "outcomes", R(first="pandora", w=1.5)), ("log", "outcomes", R(first="pandora", after="log")), ("pan.01", "outcomes", R(first="pandora", after="pandora", kappa2=.01)), ("pan.03", "outcomes", R(first="pandora", after="pandora", kappa2=.03)), ("pan.1", "outcomes", R(first="pandora", after="pandora", kappa2=.1))]
    pool = ctx.Pool(NP); left = 570 * SCALE - (time.time() - START)
    res = [x for r in boxed(pool, evaluate, [(s, weights, plans) for s in range(2000)], left / SCALE, "evaluation") for x in r]
    pool.terminate()
    print([r for r in res if r[0] == "err"][:2]); res = [r for r in res if r[0] != "err"]; table(res); pickle.dump(res, open(f"{OUT}/curves.pkl", "wb"))
if __name__ == "__main__": main()
