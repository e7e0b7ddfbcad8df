"""What earlier explanations of the same model are worth to later ones: cost reached with few queries.

    python benchmarks/pooled.py                              # diabetes, forest: 40 rows explained, the next 20 measured
    python benchmarks/pooled.py --data kc2 --seed 1 --few 5,10,20

Explains `--before` withheld rows with 60 queries each on one ledger, then each of the following `--rows` with few
queries on a copy of it, and the same rows alone: pool off, a fresh ledger. J is the paper's, d2n + 5 g1n on codes; its
mean is over the rows found, so compare it only where as many are found.

Needs the data sets: set ACEX_DATA.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import joblib
import numpy as np

import acex
from acex.arrays import FloatArray
from acex.bench.ground import ground

ENOUGH = 60
Curve = FloatArray  # the best J after 0, 1, ..., queries; infinite before the first hit


def curve(name: str, seed: int, row: int, budget: int, ledger: Path | None) -> Curve:
    """The best J of one withheld row against rows paid for; with a ledger, what it holds is used and added to."""
    g = ground(name, seed)
    explainer = acex.Explainer(
        g.predict,
        g.reference,
        space=g.space,
        plausibility=acex.Plausibility(kind="lof", scale=False),
        pool=ledger is not None,
        ledger=ledger,
        model_id=name,
    )
    best = np.full(budget + 1, np.inf)

    def note(e: acex.Explanation) -> None:
        if e.outcome == "found":
            J = g.cost(e.counterfactuals.to_numpy(float)[:1], g.rows[row])[0]
            best[e.n_queries :] = np.minimum(best[e.n_queries :], J)

    explainer.explain(g.rows[row], budget=budget, strategy=acex.Feasible(effort="spend"), callback=note, seed=row)
    explainer.ledger.close()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="diabetes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--before", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--few", default="10,15,20")
    parser.add_argument("--ledger", type=Path, help="keep the ledger of the rows before in this file, or use it")
    args = parser.parse_args()
    few = [int(n) for n in args.few.split(",")]
    name, seed = args.data, args.seed
    rows = range(args.before, args.before + args.rows)
    with tempfile.TemporaryDirectory() as folder:
        ledger = args.ledger or Path(folder) / "before.db"
        if not ledger.exists():
            for row in range(args.before):
                curve(name, seed, row, ENOUGH, ledger)

        def pooled(row: int) -> Curve:
            own = Path(folder) / f"{row}.db"
            shutil.copy(ledger, own)  # later rows know nothing of each other
            return curve(name, seed, row, max(few), own)

        jobs = joblib.Parallel(n_jobs=-1)
        alone = np.array(jobs(joblib.delayed(curve)(name, seed, row, ENOUGH, None) for row in rows))
        known = np.array(jobs(joblib.delayed(pooled)(row) for row in rows))
    print(f"{name}, seed {seed}: {args.rows} rows after {args.before} that were explained with {ENOUGH} queries each")
    possible = np.isfinite(alone[:, ENOUGH])
    for what, curves, at in (("alone", alone, [*few, ENOUGH]), ("pooled", known, few)):
        for n in at:
            J = curves[possible, n]
            mean, ratio = J[np.isfinite(J)].mean(), np.median(J / alone[possible, ENOUGH])
            found = f"{np.isfinite(J).sum()} of {possible.sum()} found"
            print(
                f"{what:7s}{n:3d} queries: mean J {mean:6.2f}, {ratio:5.2f} times alone at {ENOUGH} (median), {found}"
            )


if __name__ == "__main__":
    main()
