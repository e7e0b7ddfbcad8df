"""Two versions of strategy "feasible" on the same rows: the best cost so far against queries.

    python benchmarks/paired.py                        # the table of the committed measurement
    python benchmarks/paired.py --old ../acex-0.1.0    # measure anew; the folder is a checkout of the older version
    python benchmarks/paired.py --old ../acex-0.1.0 --rows 20 --data kc2,blood
    python benchmarks/paired.py --told                 # the same for searches as users have them, at 15 and 60 queries

For each data set, without outcomes, with the true outcomes of the reference and with the same ones shuffled: the median
over rows of J over the best that either version found (or `best_known.csv` has) at so many queries, none found counting
as infinite; and the mean difference of log J, new less old, none found counting as 50 times the best, with a mark where
the 95% interval of a paired bootstrap over rows leaves zero out: "<" the new version is better, ">" the old one.

With --told the search knows its budget and may end before it, as by default: the newer version keeps queries for
undoing changes (see `prune`), and ends where nothing cheaper could be checked.

Writes benchmarks/results/paired-forest-SEED.csv, with --told paired-told-SEED.csv: J of each row, way and version.
Needs the data sets: set ACEX_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from acex.arrays import FloatArray

HERE = Path(__file__).parent
BUDGETS = (10, 15, 20, 30, 40, 60)
TOLD = (15, 60)
SETS = ("diabetes", "breast", "kc2", "blood", "german_credit", "cmc", "nursery", "tic_tac_toe")
NONE_FOUND = 50.0


def curves_of(name: str, row: int, seed: int) -> dict[str, dict[int, float]]:
    """The best J at each of `BUDGETS`, by the version of acex that this process imports; it may be an older one."""
    from anytime import searched
    from limit import grounds

    try:
        from acex.search.hints import outcome_model
    except ImportError:  # version 0.1.0
        from acex.hints import outcome_model  # type: ignore[import-not-found, no-redef]

    g, problems = grounds(name, "forest", False, seed)
    problem, is_hit = problems.of(row), problems.is_hit(row)
    outcomes = g.labels != g.predict(g.rows[row : row + 1])[0]
    ways = {"without": None, "outcomes": outcomes, "shuffled": np.random.default_rng(row).permutation(outcomes)}
    curves = {}
    for way, told in ways.items():
        helped = problem if told is None else replace(problem, hint=outcome_model(g.space, g.reference, told))
        curve = searched(g, helped, is_hit, max(BUDGETS), row)[0]
        curves[way] = {b: float(curve[b]) for b in BUDGETS}
    return curves


def told_of(name: str, row: int, seed: int) -> dict[str, dict[int, float]]:
    """J of what a search returns that was told its budget, one of `TOLD`, and how many queries that took."""
    from anytime import price
    from limit import grounds

    import acex

    try:
        from acex.search.search import Search
    except ImportError:  # version 0.1.0
        from acex.search import Search  # type: ignore[no-redef, attr-defined]

    g, problems = grounds(name, "forest", False, seed)
    problem, is_hit = problems.of(row), problems.is_hit(row)
    told: dict[str, dict[int, float]] = {"default": {}, "asked": {}}
    for budget in TOLD:
        search = Search.begin(problem, acex.Feasible(), row, budget=budget)
        while len(search.history.queries) < budget and (query := search.ask()) is not None:
            search = search.tell(query, bool(is_hit(query.point[None])[0]))
        told["default"][budget] = np.inf if search.best is None else price(g, problem, search.best)
        told["asked"][budget] = len(search.history.queries)
    return told


def measured(source: Path, names: list[str], rows: int, seed: int, what: str) -> list[dict[str, Any]]:
    """Lines of the results file by the version whose checkout is in this folder."""
    path = os.pathsep.join([str(source / "src"), str(source / "benchmarks")])
    call = f"paired.worker({names}, {rows}, {seed}, {what!r})"
    code = f"import sys; sys.path.append({str(HERE)!r}); import paired; {call}"
    words = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
    lines: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return lines


def worker(names: list[str], rows: int, seed: int, what: str) -> None:
    """Prints the lines of this process's version; `what` is the function that makes them."""
    jobs = [(name, row) for name in names for row in range(rows)]
    curves = joblib.Parallel(n_jobs=-1)(joblib.delayed(globals()[what])(name, row, seed) for name, row in jobs)
    print(
        json.dumps(
            [
                {"data": name, "row": row, "way": way, "queries": b, "J": None if np.isinf(J) else J}
                for (name, row), ways in zip(jobs, curves, strict=True)
                for way, best in ways.items()
                for b, J in best.items()
            ]
        )
    )


def table(frame: pd.DataFrame, known: dict[tuple[str, int], float]) -> pd.DataFrame:
    """A line for each way and data set."""
    wide = frame.assign(J=frame["J"].fillna(np.inf)).pivot_table(
        index=["data", "row"], columns=["version", "way", "queries"], values="J", dropna=False
    )
    rows = zip(wide.index.get_level_values("data"), wide.index.get_level_values("row"), wide.min(axis=1), strict=True)
    least = [min(J, known.get((str(name), int(row)), np.inf)) for name, row, J in rows]
    best = pd.Series(least, index=wide.index)
    wide, best = wide[np.isfinite(best)], best[np.isfinite(best)]
    lines = []
    for way in frame["way"].unique():
        for name in [n for n in SETS if n in set(frame["data"])]:
            ratio = {v: wide.loc[name, (v, way)].div(best[name], axis=0).to_numpy() for v in ("old", "new")}
            line: dict[str, Any] = {"way": way, "data": name, "rows": len(ratio["new"])}
            for version, values in ratio.items():
                line[version] = " / ".join(f"{m:.2f}" for m in np.median(values, axis=0))
            apart = np.log(np.minimum(ratio["new"], NONE_FOUND)) - np.log(np.minimum(ratio["old"], NONE_FOUND))
            marks = zip(apart.mean(axis=0), *_interval(apart), strict=True)
            line["new - old"] = " ".join(f"{m:+.2f}{'<' if hi < 0 else '>' if lo > 0 else ' '}" for m, lo, hi in marks)
            lines.append(line)
    return pd.DataFrame(lines)


def best_known() -> dict[tuple[str, int], float]:
    """The least J that anybody has found for rows of seed 0, by data set and row."""
    told = pd.read_csv(HERE / "best_known.csv")
    return {(str(d), int(r)): float(J) for d, r, J in told[["dataset", "row", "J"]].itertuples(index=False)}


def _interval(values: FloatArray) -> FloatArray:
    """Ends of the 95% interval of the mean over rows, (2, budgets)."""
    rng = np.random.default_rng(0)
    means = [values[rng.integers(len(values), size=len(values))].mean(axis=0) for _ in range(1000)]
    ends: FloatArray = np.percentile(means, [2.5, 97.5], axis=0)
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="a checkout of the older version")
    parser.add_argument("--told", action="store_true", help="searches that know their budget, as users have them")
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    path = HERE / "results" / f"paired-{'told' if args.told else 'forest'}-{args.seed}.csv"
    what = "told_of" if args.told else "curves_of"
    if args.old is not None:
        names = args.data.split(",")
        sources = {"old": args.old, "new": HERE.parent}
        found = {version: measured(s, names, args.rows, args.seed, what) for version, s in sources.items()}
        lines = [line | {"version": version} for version, told in found.items() for line in told]
        pd.DataFrame(lines).to_csv(path, index=False, float_format="%.6g")
    results = pd.read_csv(path)
    asked = results["way"] == "asked"
    print(f"J over the best known at {' / '.join(map(str, results['queries'].unique()))} queries, medians over rows")
    print(table(results[~asked], best_known() if args.seed == 0 else {}).to_string(index=False))
    if asked.any():
        print("\nqueries that were asked, the mean over rows")
        print(results[asked].pivot_table(index="data", columns=["version", "queries"], values="J").round(1).to_string())


if __name__ == "__main__":
    main()
