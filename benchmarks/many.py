"""Many rows of one model: what shared evidence saves, and what it costs in time.

    python benchmarks/many.py --part pooling --data diabetes     # one process for each data set; goes on when stopped
    python benchmarks/many.py --part taught --data diabetes      # ten queries, beside 60 alone of version 0.1.0
    python benchmarks/many.py --part taught-table
    python benchmarks/many.py --part table                       # what must hold, from the files that pooling wrote
    python benchmarks/many.py --part picture                     # docs/pictures/many.png, from the same files
    python benchmarks/many.py --part speed                       # one explanation against scikit-learn's fits
    python benchmarks/many.py --part throughput                  # 1, 2 and 4 processes
    python benchmarks/many.py --part ledger                      # 10^3 to 10^6 answers in the ledger
    python benchmarks/many.py --part turns                       # questions a second that a ledger takes

`pooling` withholds 200 rows of a data set and explains them four times, in the order of work of `explain_many`:

    alone    60 queries a row, no shared evidence
    pooled   60 queries a row, each row learns from all before it: the learning curve
    taught   the second hundred with 10 queries a row, after the first hundred with 60
    ten      10 queries a row from the first row on

It writes benchmarks/results/many-DATA-SEED.csv, a line for each row and way: the best J (the paper's, d2n + 5 g1n on
codes) after 10 and after all queries, and how many it took to reach what the row reaches alone. Ledgers are kept in the
folder --work, where a run that was stopped goes on. Needs the data sets: set ACEX_DATA.

The other parts use generated data of 20 features and a model that answers at once. They write many-throughput.csv and
many-ledger.csv there; run them on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import acex
from acex.arrays import FloatArray
from acex.batch.order import order_of_work
from acex.bench.ground import Ground, ground
from acex.ledger import Question, canonical

RESULTS = Path(__file__).parent / "results"
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "many.png"
DATA = ("diabetes", "breast", "kc2", "blood", "german_credit")
N_ROWS, FEW, ENOUGH = 200, 10, 60
KEEP_ON = acex.Feasible(effort="spend")


# -- what shared evidence saves ----------------------------------------------------------------------


def explainer_of(g: Ground, ledger: Path, pool: bool) -> acex.Explainer:
    plausibility = acex.Plausibility(kind="lof", scale=False)
    return acex.Explainer(
        g.predict, g.reference, space=g.space, plausibility=plausibility, pool=pool, ledger=ledger, model_id=g.name
    )


def curves(g: Ground, rows: FloatArray, budget: int, ledger: Path, *, pool: bool) -> FloatArray:
    """The best J after 0, 1, ..., `budget` rows paid for, (n, budget + 1); infinite before the first hit."""
    explainer = explainer_of(g, ledger, pool)
    out = np.full((len(rows), budget + 1), np.inf)
    for i, x in enumerate(rows):  # in this order, which is the order of work
        session = explainer.search(x, budget=budget, strategy=KEEP_ON)
        e = session.run()
        J = np.where(e.queries["hit"], g.cost(e.asked.to_numpy(float), x), np.inf)
        J[~session.problem.plausible(e.asked.to_numpy(float))] = np.inf
        paid = np.cumsum([ask.paid > 0 for ask in explainer.ledger.asks(session.identity)])
        np.minimum.at(out[i], np.minimum(paid, budget), J)
        print(f"{g.name} {ledger.stem}: row {i + 1} of {len(rows)}, J {J.min():.2f}", flush=True)
    explainer.ledger.close()
    best: FloatArray = np.minimum.accumulate(out, axis=1)
    return best


def pooling(name: str, seed: int, n_rows: int, enough: int, work: Path) -> pd.DataFrame:
    """A line for each row and way of explaining it."""
    g = ground(name, seed, n_withheld=N_ROWS)
    spread = acex.Explainer(g.predict, g.reference, space=g.space).spread
    rows = g.rows[:n_rows]
    rows = rows[order_of_work(*spread(rows))]
    half = n_rows // 2
    folder = work / f"{name}-{seed}-{n_rows}-{enough}"
    folder.mkdir(parents=True, exist_ok=True)
    ways: dict[str, FloatArray] = {}
    ways["alone"] = curves(g, rows, enough, folder / "alone.db", pool=False)
    ways["pooled"] = np.vstack([curves(g, rows[:half], enough, folder / "pooled.db", pool=True)])
    taught = folder / "taught.db"
    if not taught.exists():
        shutil.copy(folder / "pooled.db", folder / "copy.db")  # closed, so the file is all there is
        (folder / "copy.db").rename(taught)
    second = curves(g, rows[half:], FEW, taught, pool=True)
    ways["taught"] = np.vstack([ways["pooled"][:, : FEW + 1], second])
    ways["pooled"] = np.vstack([ways["pooled"], curves(g, rows[half:], enough, folder / "pooled.db", pool=True)])
    ways["ten"] = curves(g, rows, FEW, folder / "ten.db", pool=True)
    alone = ways["alone"][:, -1]
    frames = [
        pd.DataFrame(
            {
                "data": name,
                "seed": seed,
                "way": way,
                "row": np.arange(n_rows),
                "J_few": J[:, FEW],
                "J": J[:, -1],
                "J_alone": alone,
                # Reached: what the row reaches alone, or one percent more; the budget and one where it is not.
                "needed": np.where(1.01 * alone[:, None] >= J, np.arange(J.shape[1]), J.shape[1]).min(axis=1),
            }
        )
        for way, J in ways.items()
    ]
    return pd.concat(frames)


def taught(name: str, seed: int, work: Path) -> pd.DataFrame:
    """The second hundred with 10 queries a row, after the first hundred with 60 ("J") and with 10 ("J_ten").

    Beside version 0.1.0 with 60 queries alone, which wrote the committed file of `pooling`.
    """
    before = pd.read_csv(RESULTS / f"many-{name}-{seed}.csv")
    alone = before[before["way"] == "alone"].set_index("row")["J"]
    g = ground(name, seed, n_withheld=N_ROWS)
    spread = acex.Explainer(g.predict, g.reference, space=g.space).spread
    rows = g.rows[order_of_work(*spread(g.rows))]
    folder = work / f"taught-{name}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    curves(g, rows[: N_ROWS // 2], ENOUGH, folder / "taught.db", pool=True)
    J = curves(g, rows[N_ROWS // 2 :], FEW, folder / "taught.db", pool=True)[:, FEW]
    second = np.arange(N_ROWS // 2, N_ROWS)
    J_ten = curves(g, rows, FEW, folder / "ten.db", pool=True)[second, FEW]
    told = {"data": name, "seed": seed, "row": second, "J": J, "J_ten": J_ten}
    return pd.DataFrame({**told, "J_alone_0.1.0": alone[second].to_numpy()})


def taught_table() -> None:
    """Print ten queries after a hundred rows over 60 queries alone of 0.1.0."""
    for file in sorted(RESULTS.glob("taught-*.csv")):
        told = pd.read_csv(file)
        alone = told["J_alone_0.1.0"]
        for way, J in (("after a hundred with 60", told["J"]), ("ten from the first row on", told["J_ten"])):
            both = np.isfinite(J) & np.isfinite(alone)
            mean, median = J[both].mean() / alone[both].mean(), (J[both] / alone[both]).median()
            print(f"{file.stem}, {way}: found {both.sum()} of {len(told)}, J {mean:.3f}, median ratio {median:.3f}")


def results() -> pd.DataFrame:
    files = sorted(RESULTS.glob("many-*-*.csv"))
    if not files:
        raise SystemExit(f"There is no many-DATA-SEED.csv in {RESULTS}: run --part pooling first.")
    return pd.concat([pd.read_csv(file) for file in files])


def table() -> None:
    """Print the second hundred with 10 queries a row beside 60 queries alone."""
    lines = []
    for (name, seed), all_ways in results().groupby(["data", "seed"], sort=False):
        n = all_ways["row"].max() + 1
        second = all_ways[all_ways["row"] >= n // 2]
        alone = second[second["way"] == "alone"].set_index("row")
        for way in ("alone", "taught", "ten"):
            told = second[second["way"] == way].set_index("row")
            found = np.isfinite(told["J_few"])
            both = found & np.isfinite(alone["J"])
            lines.append(
                {
                    "data": name,
                    "seed": seed,
                    "way": way,
                    "rows": len(told),
                    "found": round(float(found.mean()), 3),
                    "J at 10": round(float(told["J_few"][both].mean()), 2),
                    "J at 60 alone": round(float(alone["J"][both].mean()), 2),
                    "ratio": round(float(told["J_few"][both].mean() / alone["J"][both].mean()), 3),
                    "median ratio": round(float((told["J_few"] / alone["J"])[both].median()), 3),
                }
            )
    print(pd.DataFrame(lines).to_string(index=False))


def picture() -> None:
    """Draw queries needed against rows explained."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    told = results()
    names = [name for name in DATA if name in set(told["data"])]
    fig, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3.0), sharey=True, squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for way, colour in (("alone", "0.6"), ("pooled", "C0")):
            needed = told[(told["data"] == name) & (told["way"] == way)].groupby("row")["needed"].mean()
            smooth = needed.rolling(25, min_periods=10, center=True).mean()
            ax.plot(needed.index + 1, smooth, color=colour, label=way)
        ax.set_title(name.replace("_", " "))
        ax.set_xlabel("rows explained")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylim(0, ENOUGH)
    axes[0, 0].set_ylabel("queries needed for the cost\nthat 60 queries alone reach")
    axes[0, 0].legend(frameon=False)
    fig.tight_layout()
    fig.savefig(PICTURE, dpi=130, metadata={"Software": None})
    print(PICTURE)


# -- what it costs in time ---------------------------------------------------------------------------

N_FEATURES, QUERIES = 20, 30
MIXING = np.random.default_rng(1).normal(size=(N_FEATURES, N_FEATURES))
WEIGHTS = np.random.default_rng(2).normal(size=N_FEATURES)


def generated(n: int, seed: int) -> FloatArray:
    """Rows with features that depend on each other, (n, 20)."""
    rows: FloatArray = np.random.default_rng(seed).normal(size=(n, N_FEATURES)) @ (np.eye(N_FEATURES) + 0.3 * MIXING)
    return rows


def decide(X: FloatArray) -> Any:
    """0 or 1; 1 for a few of the rows."""
    return (X @ WEIGHTS + 2 * np.sin(X[:, 0]) > 2.0).astype(int)


def with_answers(path: Path, n: int) -> acex.Explainer:
    """An explainer over a ledger of n answers, about points between rows."""
    reference = generated(600, 0)
    explainer = acex.Explainer(decide, reference, ledger=path, model_id="generated")
    rng, done = np.random.default_rng(3), explainer.ledger.account("generated").last_sequence
    while done < n:
        k = min(n - done, 20_000)
        pairs = reference[rng.integers(len(reference), size=(2, k))]
        X = explainer.space.snap(pairs[0] + rng.random((k, 1)) * (pairs[1] - pairs[0]) + rng.normal(size=(k, 1)) / 1e3)
        explainer.ledger.import_answers("generated", canonical(X), decide(X).tolist())
        done = explainer.ledger.account("generated").last_sequence
    return explainer


def to_explain(n: int) -> FloatArray:
    """Rows that are 0."""
    rows = np.clip(generated(20 * n + 100, 4), generated(600, 0).min(axis=0), generated(600, 0).max(axis=0))
    chosen: FloatArray = rows[decide(rows) == 0][:n]
    return chosen


def core_seconds(explainer: acex.Explainer, x: FloatArray) -> float:
    """Seconds of one core for one explanation of 30 queries."""
    start = time.process_time()
    explainer.search(x, budget=QUERIES, strategy=KEEP_ON).run()
    return time.process_time() - start


def core_seconds_of_fits() -> float:
    """Seconds of one core for 30 fits of scikit-learn's classifier on 60 points."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    X = generated(60, 5)
    start = time.process_time()
    for _ in range(QUERIES):
        GaussianProcessClassifier(ConstantKernel() * Matern(nu=2.5)).fit(X, X @ WEIGHTS > 0)
    return time.process_time() - start


def speed(n_rows: int) -> None:
    """Print what an explanation with 500 answers at hand takes, beside the fits, turn by turn."""
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explainer = with_answers(Path(folder) / "ledger.db", 500)
        rows = to_explain(n_rows + 1)
        core_seconds(explainer, rows[0])  # the first one reads the answers
        pairs = np.array([(core_seconds(explainer, x), core_seconds_of_fits()) for x in rows[1:]])
    ours, fits = np.median(pairs, axis=0)
    ratio = np.median(pairs[:, 0] / pairs[:, 1])
    print(f"{QUERIES} queries: {ours:.2f} s of one core; {QUERIES} fits: {fits:.2f} s; ratio {ratio:.2f} (median)")


def throughput(n_rows: int, folder_of_results: Path) -> None:
    """Write rows a second with 1, 2 and 4 processes."""
    lines = []
    rows = to_explain(n_rows)
    for n_jobs in (1, 2, 4):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.db"
            explainer = with_answers(path, 500)
            explainer.explain_many(generated(8, 0), budget=2, n_jobs=n_jobs).frame()  # the processes start
            before = path.stat().st_size
            start = time.perf_counter()
            frame = explainer.explain_many(rows, budget=QUERIES, strategy=KEEP_ON, n_jobs=n_jobs).frame()
            seconds = time.perf_counter() - start
            explainer.ledger.close()
            grown = path.stat().st_size - before
        assert frame["error"].isna().all()
        line = {"processes": n_jobs, "rows": n_rows, "seconds": seconds, "rows_per_second": n_rows / seconds}
        lines.append(line | {"kB_of_ledger_a_query": grown / frame["queries"].sum() / 1e3})
        print(lines[-1], flush=True)
    table = pd.DataFrame(lines)
    table["times_one"] = table["rows_per_second"] / table["rows_per_second"].iloc[0]
    table.round(4).to_csv(folder_of_results / "many-throughput.csv", index=False)
    print(table.to_string(index=False))


def ledgers(n_rows: int, most: int, work: Path, folder_of_results: Path) -> None:
    """Write what an explanation takes with 10^3 to 10^6 answers in the ledger."""
    work.mkdir(parents=True, exist_ok=True)
    lines = []
    for n in (10**k for k in range(3, 7) if 10**k <= most):
        path, own = work / f"answers-{n}.db", work / "measured.db"
        with_answers(path, n).ledger.close()
        shutil.copy(path, own)  # the answers to what is measured are not kept
        with threadpool_limits(1):
            explainer = with_answers(own, n)
            rows = to_explain(n_rows + 1)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            first = core_seconds(explainer, rows[0])
            later = [core_seconds(explainer, x) for x in rows[1:]]
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            explainer.ledger.close()
        lines.append(
            {
                "answers": n,
                "MB on disk": path.stat().st_size / 1e6,
                "first explanation, s": first,
                "each later one, s": float(np.median(later)),
                "more memory, MB": grown / 1024,
            }
        )
        print(lines[-1], flush=True)
    table = pd.DataFrame(lines).round(3)
    table.to_csv(folder_of_results / "many-ledger.csv", index=False)
    print(table.to_string(index=False))


def turns(n: int) -> None:
    """Print how many questions a second a ledger takes from one process: those of one model take turns."""
    with tempfile.TemporaryDirectory() as folder:
        where = os.environ.get("ACEX_TEST_POSTGRES") or str(Path(folder) / "ledger.db")
        with acex.Ledger(where) as ledger:
            model = f"turns-{time.time_ns()}"
            start = time.perf_counter()
            for i in range(n):
                row = f"[{i}]"
                ledger.claim(model, [Question(row)])
                ledger.record(model, [row], [0])
            print(f"{ledger}: {n / (time.perf_counter() - start):.0f} questions a second from one process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", required=True, choices=list(PARTS))
    parser.add_argument("--data", choices=DATA, default="diabetes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=N_ROWS, help="fewer for a try; results then go to --work")
    parser.add_argument("--enough", type=int, default=ENOUGH)
    parser.add_argument("--answers", type=int, default=10**6, help="the largest ledger of --part ledger")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "acex-many")
    args = parser.parse_args()
    PARTS[args.part](args)


def _folder(args: argparse.Namespace) -> Path:
    """Where results go: a try with smaller numbers does not overwrite them."""
    return RESULTS if (args.rows, args.enough, args.answers) == (N_ROWS, ENOUGH, 10**6) else Path(args.work)


def run_pooling(args: argparse.Namespace) -> None:
    told = pooling(args.data, args.seed, args.rows, args.enough, args.work)
    path = _folder(args) / f"many-{args.data}-{args.seed}.csv"
    told.round(6).to_csv(path, index=False)
    print(path)


def run_taught(args: argparse.Namespace) -> None:
    path = RESULTS / f"taught-{args.data}-{args.seed}.csv"
    taught(args.data, args.seed, args.work).to_csv(path, index=False, float_format="%.6g")
    print(path)


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "pooling": run_pooling,
    "taught": run_taught,
    "table": lambda args: table(),
    "taught-table": lambda args: taught_table(),
    "picture": lambda args: picture(),
    "speed": lambda args: speed(min(args.rows, 15)),
    "throughput": lambda args: throughput(min(args.rows, 60), _folder(args)),
    "turns": lambda args: turns(500),
    "ledger": lambda args: ledgers(min(args.rows, 15), args.answers, args.work, _folder(args)),
}

if __name__ == "__main__":
    main()
