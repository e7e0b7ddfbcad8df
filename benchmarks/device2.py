from device1 import *
def main():
    ctx = mp.get_context("fork"); R = L.Rules; weights = "weights1.npz"
    P = dict(first="pandora")
    plans = [("old", "none", None), ("rank1", "none", R()), ("rank2", "none", R(b=2)), ("rank4", "none", R(b=4)), ("pan.1", "none", R(**P, kappa=.1)), ("pan.3", "none", R(**P, kappa=.3)), ("pan1", "none", R(**P, kappa=1.)),
        ("pan.3mixed", "none", R(**P, kappa=.3, mixed=True)), ("rank2mixed", "none", R(b=2, mixed=True)), ("rank1draw3", "none", R(draws=3)),
        ("old", "outcomes", None), ("ei", "outcomes", R(**P)), ("ei,rank2", "outcomes", R(b=2)), ("ei1.5", "outcomes", R(**P, w=1.5)), ("log", "outcomes", R(**P, after="log")), ("pan.03", "outcomes", R(**P, after="pandora", kappa2=.03)), ("pan.1", "outcomes", R(**P, after="pandora", kappa2=.1)), ("ei,top700", "outcomes", R(**P, top=700)),
        ("old", "shuffled", None), ("ei", "shuffled", R(**P)), ("old", "learnt", None), ("ei", "learnt", R(**P))]
    pool = ctx.Pool(NP)
    res = [x for r in boxed(pool, evaluate, [(s, weights, plans) for s in range(2000)], 165, "evaluation") for x in r]
    pool.terminate()
    print([r for r in res if r[0] == "err"][:2]); res = [r for r in res if r[0] != "err"]; table(res); pickle.dump(res, open(f"{OUT}/curves.pkl", "wb"))
if __name__ == "__main__": main()
