import sys, multiprocessing as mp
from trial import *
from learn import _begin
def main():
    out, secs = Path(sys.argv[1]), float(sys.argv[2]); end = time.time() + secs
    N, O, S = "none", "outcomes", "shuffled"
    plans = [("default", N, {}), ("default", O, {}), ("default", S, {}), ("default", "learnt", {}),
        ("pat.1", N, dict(PATIENCE=.1)), ("pat.1", O, dict(PATIENCE=.1)), ("pat.1", S, dict(PATIENCE=.1)),
        ("pat1", N, dict(PATIENCE=1.)), ("pat1", O, dict(PATIENCE=1.)), ("nodraw", N, dict(DRAWN_FROM=999)), ("nodraw", O, dict(DRAWN_FROM=999)), ("draw2", N, dict(DRAWN_EVERY=2)), ("draw2wide", N, dict(DRAWN_EVERY=2, DRAWN_NEAREST=.6)), ("nowiden", N, dict(MORE_PATIENCE=1.0))]
    pool = mp.get_context("fork").Pool(int(sys.argv[3]), _begin, (str(out / "weights.npz"),)); res = []; it = pool.imap_unordered(evaluate, [(s, plans) for s in range(3000)])
    while time.time() < end:
        try: res += it.next(timeout=max(.1, end - time.time()))
        except mp.TimeoutError: break
    pool.terminate(); print([r for r in res if r[0] == "err"][:2]); res = [r for r in res if r[0] != "err"]; table(res); pickle.dump(res, open(out / "curves.pkl", "wb"))
if __name__ == "__main__": main()
