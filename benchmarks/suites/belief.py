"""Measure what limits strategy "feasible": its candidates and its belief.

    python -m benchmarks run --suite belief --rows 20
    python -m benchmarks table --suite belief

The variants run on simulated validation tasks, on kinds of simulated tasks not used to choose any constant
(`SIMULATED`), and on the paper's data sets:

- "ceiling": a search whose belief is the model's own answers, so that only the candidates limit it. A miss has a small
  P(hit), so that the search continues with new candidates if none of them is a hit.
- "no groups": the search without reverting groups of changes, for comparison.
- "revision 5": the search with the network's P(hit) for rows and with less patience, for comparison.
- "none", "outcomes": the current search. At every third query, before and after the first hit, candidates of all
  families are recorded with their P(hit) and the label that the model would return.

A raw line has either the best cost at 15, 30 and 60 queries, the least cost known and the changes of both hits (phase
"search"), or statistics of the candidates recorded in one phase and one bin of P(hit): their number, mean P(hit), hits,
log loss, and the area under the ROC curve within a query (the same in all bins of a phase). New ideas are evaluated
here first; constants are chosen on the simulated tasks only.

    python -m benchmarks run --suite outlook-simulated

compares P(something cheaper exists), as stated by the search, with the observed frequency, on simulated tasks used
neither for training nor for constants ("outlook-forest-*" do the same on the paper's data sets).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from acex.arrays import BoolArray, FloatArray
from acex.search import belief, candidates, feasible
from acex.search.belief import Belief
from acex.search.evidence import Points
from acex.search.feasible import Feasible
from acex.search.problem import Problem, Stop
from benchmarks.belief.learn import begun, noted_candidates
from benchmarks.belief.simulated import TEST, USUAL, VALIDATION, Kind, task
from benchmarks.problems import IsHit, cheapest_hit, cost_and_changes, problems
from benchmarks.published import PAPER
from benchmarks.suite import Job, Line, Suite
from benchmarks.suites import anytime
from benchmarks.suites.anytime import NONE_FOUND, helped
from benchmarks.table import Table

BUDGETS = (15, 30, 60)
NOTED_EVERY = 3
BARELY = 1e-3  # P(hit) of a miss in a search that knows the answers
SIMULATED = {  # first seed, and the kind of task
    "simulated": (VALIDATION, USUAL),
    "usual": (TEST, USUAL),
    "wide": (TEST, Kind((60, 150))),
    "noisy": (TEST, Kind((3, 25), noisy=True)),
    "wider": (TEST, Kind((60, 200))),
    "sparse": (TEST, Kind((40, 200), sparse=True)),
    "rare": (TEST, Kind((30, 150), rare=True)),
    "apart": (TEST, Kind(apart=True)),
}
DATA = (*SIMULATED, *PAPER)
BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)  # lower ends


def instance(job: Job) -> tuple[Problem, IsHit]:
    """The problem of a job, with outcomes if its method has them, and which points are hits."""
    if job.data in SIMULATED:
        first, kind = SIMULATED[job.data]
        case = task(first + job.row, 1, kind)[0]
        return case.with_outcomes(case.outcomes) if job.method == "outcomes" else case.problem, case.is_hit
    of = problems(job.data)
    problem = of.of(job.row)
    return helped(of.scenario, problem, job.row) if job.method == "outcomes" else problem, of.is_hit(job.row)


def measure(job: Job) -> list[Line]:
    """The cost at each budget and, for the current search, the quality of its belief."""
    problem, is_hit = instance(job)
    is_noted = job.method in ("none", "outcomes")
    answers = patch.object(Belief, "probability", lambda self, points: np.where(is_hit(points.X), 1.0, BARELY))
    history, strategy, rng = begun(problem, None, None), Feasible(effort="spend"), np.random.default_rng(job.seed)
    best = np.full(max(BUDGETS) + 1, np.inf)
    noted: dict[str, list[tuple[FloatArray, BoolArray]]] = {"before": [], "after": []}
    changed: dict[str, Any] = {
        "ceiling": answers,
        "no groups": patch.object(candidates, "MIN_CHANGES", np.inf),
        "revision 5": patch.multiple(belief, ROW_ODDS=0.0, ROW_SPREAD=1.0),
    }
    patience = patch.object(feasible, "PATIENCE", 0.3 if job.method == "revision 5" else feasible.PATIENCE)
    with patience, changed.get(job.method, nullcontext()):
        while (n := len(history.queries)) < max(BUDGETS):
            round_ = feasible._Round(problem, strategy, history, 0, job.seed)
            best[n:] = round_.best
            if n % NOTED_EVERY == 1 and is_noted:
                X = noted_candidates(problem, round_, rng)
                if len(X):
                    p_hit = round_.belief.probability(Points(round_.context, X))
                    noted["after" if round_.success.any() else "before"].append((p_hit, is_hit(X)))
            query = round_.next()
            if isinstance(query, Stop):
                break
            history = history.with_answer(query, bool(is_hit(query.point[None])[0]))
    end = feasible._Round(problem, strategy, history, 0, job.seed)
    best[len(history.queries) :] = end.best
    common: Line = {"columns": len(problem.factual)}
    changes = int((end._cheapest_hits[0] != problem.factual).sum()) if end.success.any() else None
    costs = {f"J{b}": best[b] for b in BUDGETS}
    known = cost_and_changes(problem, cheapest_hit(problem, is_hit, rounds=12, n=2500))
    least, least_changes = min((best[-1], np.inf if changes is None else changes), known)
    lines = [common | {"phase": "search", "least": least, "changes": changes, "least_changes": least_changes, **costs}]
    for phase, asks in noted.items():
        lines += [common | {"phase": phase, **line} for line in binned(asks)]
    return lines


def measure_outlook(job: Job) -> list[Line]:
    """P(something cheaper exists) after some numbers of queries, and the least cost known."""
    problem, is_hit = instance(job)
    history, strategy = begun(problem, None, None), Feasible(effort="spend")
    lines: list[Line] = []
    while (n := len(history.queries)) <= max(BUDGETS):
        odds = strategy.improvement_odds(problem, history) if n in anytime.BUDGETS else ()
        round_ = feasible._Round(problem, strategy, history, 0, job.seed)
        if odds:
            stated = zip(map("chance{}".format, anytime.SHARES), odds, strict=True)
            lines.append({"queries": n, "J": round_.best, **dict(stated)})
        query = round_.next()
        if isinstance(query, Stop):
            break
        history = history.with_answer(query, bool(is_hit(query.point[None])[0]))
    least = min(round_.best, cost_and_changes(problem, cheapest_hit(problem, is_hit, rounds=12, n=2500))[0])
    return [line | {"least": least} for line in lines]


def outlook_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The calibration of the stated probabilities, with and without outcomes together."""
    best = lines.groupby(["data", "row"])["least"].transform("min")
    table = anytime.calibration(lines.assign(best=best), lines)
    return {"calibration": Table.of("P(something cheaper exists), stated and actual", table)}


def binned(asks: list[tuple[FloatArray, BoolArray]]) -> list[Line]:
    """Candidates by bins of P(hit), from P(hit) and answers of each query."""
    if not asks:
        return []
    p, hits = (np.concatenate(part) for part in zip(*asks, strict=True))
    areas = [area for area in map(area_under_curve, *zip(*asks, strict=True)) if area is not None]
    loss = -np.log(np.clip(np.where(hits, p, 1 - p), 1e-6, 1))
    at = np.searchsorted(BINS, p, side="right") - 1
    return [
        {
            **{"bin": BINS[i], "n": int((at == i).sum()), "p_hit": p[at == i].mean(), "hits": int(hits[at == i].sum())},
            **{"loss": loss[at == i].mean(), "auc": np.mean(areas) if areas else None},
        }
        for i in np.unique(at)
    ]


def area_under_curve(p_hit: FloatArray, hits: BoolArray) -> float | None:
    """The probability that a hit is ranked above a miss; None without either."""
    n, m = int(hits.sum()), int((~hits).sum())
    return float((rankdata(p_hit)[hits].sum() - n * (n + 1) / 2) / (n * m)) if n and m else None


def against(searches: pd.DataFrame, other: str) -> Table:
    """Log cost of the current search minus that of another one, on the same rows, with standard errors."""
    searches = searches[searches.groupby(["data", "row"])["method"].transform(lambda of: {"none", other} <= set(of))]
    pair = searches.pivot(index=["data", "row"], columns="method").reindex(columns=["none", other], level=1)
    out = []
    for data, part in pair.groupby(level="data", sort=False):
        line = {"data": data, "rows": len(part)}
        for b in BUDGETS:
            less = np.log(part[f"J{b}"]["none"] / part[f"J{b}"][other])
            line[f"{b}"] = f"{less.mean():+.2f} ({less.std() / np.sqrt(len(less)):.2f})"
        n, n_without = (part["changes"][method].mean() for method in ("none", other))
        out.append(line | {"changes": f"{n:.1f} instead of {n_without:.1f}"})
    return Table.of(f"log cost minus that of {other!r} at 15, 30 and 60 queries", pd.DataFrame(out))


def ceiling(ratios: pd.DataFrame) -> Table:
    """Cost over the least known of a search that knows the answers."""
    out = []
    for data, part in ratios[ratios["method"] == "ceiling"].groupby("data", sort=False):
        line = {"data": str(data).replace("_", " "), "rows": len(part)}
        for b in BUDGETS:
            J = part[f"J{b}"]
            line[f"{b}"] = f"{np.exp(np.log(J).mean()):.2f} ({J.median():.2f})"
        out.append(line)
    return Table.of("cost over the least known if the answers are known: geometric mean (median)", pd.DataFrame(out))


def widest(ratios: pd.DataFrame) -> Table:
    """Cost over the least known on the widest tables, without outcomes."""
    part = ratios[(ratios["data"] == "wider") & (ratios["method"] == "none")]
    out = []
    for b in BUDGETS:
        J = part[f"J{b}"]
        median, ninth = f"{J.median():.2f}", f"{J.quantile(0.9):.1f}"
        hit = f"{(J < NONE_FOUND).mean():.0%}"
        over = part["changes"] / part["least_changes"]  # at the end
        more = f"{over.median():.2f} ({(over > 1.5).mean():.0%})" if b == max(BUDGETS) else ""
        line = {"queries": b, "rows": len(part), "median": median, "90th percentile": ninth, "hit": hit}
        out.append(line | {"changes over best known": more})
    return Table.of("cost over the least known with 60 to 200 columns", pd.DataFrame(out))


def tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Costs over the least known; the belief by phase; its calibration."""
    searches = lines[(lines["phase"] == "search") & np.isfinite(lines["least"]) & (lines["least"] > 0)]
    best = searches.groupby(["data", "row"])["least"].transform("min")
    ratios = searches[[f"J{b}" for b in BUDGETS]].div(best, axis=0).clip(upper=NONE_FOUND)
    by = ratios.groupby([searches["data"], searches["method"]], sort=False)
    costs = np.exp(np.log(ratios).groupby([searches["data"], searches["method"]], sort=False).mean()).round(2)
    costs.insert(0, "rows", by.size())
    noted = lines[lines["phase"].isin(["before", "after"])]
    noted = noted.assign(p=noted["p_hit"] * noted["n"], loss=noted["loss"] * noted["n"])
    each = noted.drop_duplicates(["data", "method", "row", "phase"])
    keys = ["data", "method", "phase"]
    sums = noted.groupby(keys, sort=False)[["n", "p", "hits", "loss"]].sum()
    quality = pd.DataFrame({"candidates": sums["n"].astype(int)})
    for name, column in (("stated", "p"), ("actual", "hits"), ("log loss", "loss")):
        quality[name] = (sums[column] / sums["n"]).round(3)
    quality["AUC"] = each.groupby(keys, sort=False)["auc"].mean().round(3)
    bins = noted.groupby(["method", "phase", "bin"])[["n", "p", "hits"]].sum()
    stated = pd.DataFrame({"candidates": bins["n"].astype(int), "stated": (bins["p"] / bins["n"]).round(3)})
    stated["actual"] = (bins["hits"] / bins["n"]).round(3)
    ratios = ratios.join(searches[["changes", "least_changes"]]).join(searches[["data", "row", "method"]])
    return {
        "groups": against(ratios, "no groups"),
        "rows": against(ratios, "revision 5"),
        "ceiling": ceiling(ratios),
        "wider": widest(ratios),
        "costs": Table.of("cost over the least known, geometric mean", costs.reset_index()),
        "quality": Table.of("belief on candidates of all families", quality.reset_index()),
        "calibration": Table.of("P(hit), stated and actual", stated.reset_index()),
    }


COLUMNS = (
    "columns",
    "phase",
    "least",
    "changes",
    *(f"J{b}" for b in BUDGETS),
    "bin",
    "n",
    "p_hit",
    "hits",
    "loss",
    "auc",
    "least_changes",
)
SUITES = (
    Suite(
        "belief",
        DATA,
        ("ceiling", "none", "outcomes", "no groups", "revision 5"),
        COLUMNS,
        measure,
        tables,
        rows=20,
        revision=lambda method: Feasible.revision,
    ),
    Suite(
        "outlook-simulated",
        ("usual", "noisy"),
        ("none", "outcomes"),
        ("queries", "J", "least", *map("chance{}".format, anytime.SHARES)),
        measure_outlook,
        outlook_tables,
        rows=120,
        revision=lambda method: Feasible.revision,
    ),
)
