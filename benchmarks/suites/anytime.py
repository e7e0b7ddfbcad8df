"""The best cost so far against queries: strategy "feasible" with various kinds of help, and the method "nearest".

    python -m benchmarks run --suite anytime-forest-0            # 50 withheld rows of each data set
    python -m benchmarks run --suite anytime-svc-0,anytime-mlp-0 --methods feasible,labels
    python -m benchmarks table --suite anytime-forest-0

J is the paper's, d2n + 5 g1n on codes; only plausible hits count. The whole budget is spent. Help is the true outcomes
of the reference ("labels"; "shuffled": in random order, which must not hurt) or the model's probability ("scores");
"settled" stops by itself. "0.1.0" is an earlier version and needs a checkout of it (`benchmarks/earlier.py`). Best
known is the least cost of all methods here, of a search with 100,000 queries ("limit", in the lines of "nearest") and,
for the forest of seed 0, in `best_known.csv`. "nearest" is not given the filter, "nearest-filter" is.

The suites "outlook-*" record P(something cheaper exists) as stated by the search, to compare it with the observed
frequency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import pandas as pd

import acex
from acex.arrays import FloatArray
from acex.search.hints import outcome_model
from acex.search.problem import Problem
from acex.search.search import Search
from benchmarks import earlier
from benchmarks.methods import METHODS as REGISTERED
from benchmarks.problems import MODELS, IsHit, least_cost, problems
from benchmarks.published import PAPER
from benchmarks.scenario import Scenario
from benchmarks.statistics import bootstrap, holm, sign_test, wilson
from benchmarks.suite import RESULTS, Job, Line, Suite, newest, read
from benchmarks.table import Table, listed
from benchmarks.task import CapReached, CountedModel, Panel, Task

BUDGETS = (5, 10, 15, 20, 30, 40, 60, 100, 150)
METHODS = ("feasible", "labels", "shuffled", "scores", "nearest", "nearest-filter", "settled", "0.1.0")
SETTINGS = (  # model, seed of the withheld rows, and their number
    *(("forest", 0, 50), ("forest", 1, 40), ("forest", 2, 20)),
    *((name, 0, 20) for name in MODELS if name != "forest"),
)
GOALS = {  # targets: medians of J over the best known, by data set or model, and queries
    "others": {15: 1.5, 30: 1.2, 60: 1.08},
    "kc2": {15: 4.0, 30: 2.0, 60: 1.4},
    "german_credit": {15: 2.0, 30: 1.15, 60: 1.03},
}
GOALS_WITH_OUTCOMES = {
    "others": {5: 1.25, 10: 1.12, 20: 1.06},
    "kc2": {5: 2.5, 10: 1.6, 20: 1.3},
    "apart": {5: 1.5, 10: 1.25, 20: 1.1},
}
SHORT = 60  # budget with help, and with other models
NONE_FOUND = 50.0  # ratio of J to the best known that is used if there is no hit
SHARES = (0.1, 0.25, 0.5)  # "cheaper" means by at least this share
Curve = FloatArray  # the best J after 0, 1, ..., queries; infinite before the first hit


@cache
def limit(data: str, model: str, seed: int, row: int) -> float:
    """The least cost for a row, cached because the methods of a row run one after the other."""
    of = problems(data, model, seed)
    return least_cost(of.of(row), of.is_hit(row))


# -- searches ----------------------------------------------------------------------------------------------------


def searched(
    s: Scenario,
    problem: Problem,
    is_hit: IsHit,
    n: int,
    seed: int,
    odds: Callable[[FloatArray], float | None] = lambda x: None,
    effort: Literal["settle", "spend"] = "spend",
) -> Iterator[tuple[Search, float]]:
    """The search after each query and its best J so far."""
    search, best = Search.begin(problem, acex.Feasible(effort=effort), seed, odds=odds(problem.factual)), np.inf
    while len(search.history.queries) < n and (query := search.ask()) is not None:
        hit = bool(is_hit(query.point[None])[0])
        search = search.tell(query, hit, odds(query.point))
        if hit and problem.plausible(query.point[None])[0]:
            best = min(best, float(s.cost(query.point[None], problem.factual)[0]))
        yield search, best


def nearest_curve(task: Task, problem: Problem, n: int) -> Curve:
    """The best plausible J of the method "nearest" after 0, 1, ..., n distinct queries."""
    model = CountedModel(task, cap=20 * n)
    with suppress(CapReached):
        REGISTERED["nearest"].explain(task, model, 0)
    X, labels = (np.array(part) for part in zip(*model.answers[:n], strict=True))
    good = (labels != model.before) & problem.plausible(X)
    return best_so_far(np.where(good, task.cost(X), np.inf), n)


def best_so_far(J: FloatArray, n: int) -> Curve:
    """The best J after 0, 1, ..., n queries, from the J of the first ones (infinite for a miss)."""
    curve = np.full(n + 1, np.inf)
    curve[1 : len(J) + 1] = J
    return np.asarray(np.minimum.accumulate(curve))


def helped(s: Scenario, problem: Problem, row: int, shuffled: bool = False) -> Problem:
    """The problem with a hint from the true outcomes of the reference."""
    outcomes = s.labels != s.predict(s.rows[row : row + 1])[0]
    if shuffled:
        outcomes = np.random.default_rng(row).permutation(outcomes)
    return replace(problem, hint=outcome_model(s.space, s.reference, outcomes))


def measure(job: Job, model: str, seed: int) -> list[Line]:
    """J of a method at each budget."""
    of = problems(job.data, model, seed)
    s, problem, is_hit = of.scenario, of.of(job.row), of.is_hit(job.row)
    most = max(BUDGETS) if (model, seed) == ("forest", 0) else SHORT
    asked = None
    if job.method in ("nearest", "nearest-filter"):
        panel: Panel = "filter" if job.method == "nearest-filter" else "own"
        curve = nearest_curve(Task(s, s.rows[job.row], panel), problem, most)
    elif job.method == "0.1.0":
        X = earlier.asked(job.data, model, seed, job.row, most)
        assert np.array_equal(X[0], problem.factual)
        curve = best_so_far(np.where(is_hit(X) & problem.plausible(X), s.cost(X, problem.factual), np.inf), most)
    else:
        n = most if job.method in ("feasible", "settled") else SHORT
        odds: Any = _odds(s, problem) if job.method == "scores" else lambda x: None
        if job.method in ("labels", "shuffled"):
            problem = helped(s, problem, job.row, shuffled=job.method == "shuffled")
        effort: Literal["settle", "spend"] = "settle" if job.method == "settled" else "spend"
        curve = np.full(n + 1, np.inf)
        for search, best in searched(s, problem, is_hit, n, job.row, odds, effort):
            asked = len(search.history.queries)
            curve[asked:] = best
    at = {f"J{b}": curve[b] if b < len(curve) else None for b in BUDGETS}
    least = limit(job.data, model, seed, job.row) if job.method == "nearest" else None  # recorded in one line per row
    return [{"limit": least, "queries": asked if job.method == "settled" else None, **at}]


def measure_outlook(job: Job, model: str, seed: int) -> list[Line]:
    """P(something cheaper exists) at each budget with a hit, alone or with outcomes ("labels")."""
    of = problems(job.data, model, seed)
    s, problem, is_hit = of.scenario, of.of(job.row), of.is_hit(job.row)
    most = max(BUDGETS) if (model, seed) == ("forest", 0) and job.method == "feasible" else SHORT
    if job.method == "labels":
        problem = helped(s, problem, job.row)
    lines: list[Line] = []
    for search, best in searched(s, problem, is_hit, most, job.row):
        n = len(search.history.queries)
        chances = acex.Feasible().improvement_odds(problem, search.history) if n in BUDGETS[1:] else ()
        if chances:  # None before the first hit, or if no cheaper point is allowed
            lines.append({"queries": n, "J": best, **dict(zip(map("chance{}".format, SHARES), chances, strict=True))})
    return lines


def _odds(s: Scenario, problem: Problem) -> Callable[[FloatArray], float]:
    before = s.predict(problem.factual[None])[0]
    column = list(s.model.classes_).index(before)

    def odds(x: FloatArray) -> float:
        miss = s.model.predict_proba(x[None])[0, column]
        return float(np.log((1 - miss + 1e-6) / (miss + 1e-6)))

    return odds


# -- tables ------------------------------------------------------------------------------------------------------


def complete(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of the methods that have as many rows of a data set as "feasible"."""
    n = lines.groupby(["data", "method"])["row"].transform("size")
    least = lines["data"].map(lines[lines["method"] == "feasible"].groupby("data").size()).fillna(0)
    return lines[n >= least]


def with_best_known(lines: pd.DataFrame, has_known: bool) -> pd.DataFrame:
    """The lines of rows that have a counterfactual, with the least J known of each row."""
    lines = complete(lines)
    J = lines.filter(regex=r"^(J\d+|limit)$").min(axis=1)
    best = J.groupby([lines["data"], lines["row"]]).transform("min")
    if has_known:
        known = pd.read_csv(RESULTS / "best_known.csv").set_index(["dataset", "row"])["J"]
        best = np.fmin(best, known.reindex(pd.MultiIndex.from_frame(lines[["data", "row"]])).to_numpy())
    kept: pd.DataFrame = lines.assign(best=best)[np.isfinite(best)]
    return kept


def ratio(lines: pd.DataFrame, budget: int) -> FloatArray:
    """J over the best known at a budget, (rows,); infinite if nothing was found."""
    return np.asarray((lines[f"J{budget}"] / lines["best"]).fillna(np.inf))


def medians(lines: pd.DataFrame) -> pd.DataFrame:
    """Medians over rows of J over the best known, and the share of rows with a hit if it is below 100%."""
    out = []
    for (name, method), part in lines.groupby(["data", "method"], sort=False):
        if method == "settled":
            continue
        line = {"data": name, "method": method, "rows": len(part)}
        for b in BUDGETS:
            if part[f"J{b}"].notna().any():
                found = np.isfinite(ratio(part, b)).mean()
                line[f"@{b}"] = f"{np.median(ratio(part, b)):.2f}" + ("" if found == 1 else f" ({found:.0%})")
        out.append(line)
    return pd.DataFrame(out).fillna("")


def behind(lines: pd.DataFrame) -> pd.DataFrame:
    """Mean difference of log J, with ">" (behind) or "<" (ahead) where the 95% interval excludes zero.

    "feasible" against "nearest" with and without the filter, "shuffled" against "feasible"; no hit counts as 50 times
    the best known.
    """
    out = []
    for name, part in lines.groupby("data", sort=False):
        of = {method: some.sort_values("row") for method, some in part.groupby("method")}
        for ours, rival in (("feasible", "nearest"), ("feasible", "nearest-filter"), ("shuffled", "feasible")):
            if not {ours, rival} <= of.keys():
                continue
            line = {"data": name, "method": ours, "against": rival}
            both = pd.concat([of[ours], of[rival]])
            for b in (15, 30) if rival == "feasible" else [b for b in BUDGETS if both[f"J{b}"].notna().any()]:
                logs = [np.log(np.minimum(ratio(of[m], b), NONE_FOUND)) for m in (ours, rival)]
                apart = logs[0] - logs[1]
                low, high = interval(apart)
                line[f"@{b}"] = f"{apart.mean():+.2f}{'>' if low > 0 else '<' if high < 0 else ''}"
            out.append(line)
    return pd.DataFrame(out).fillna("")


def interval(values: FloatArray) -> tuple[float, float]:
    """The 95% interval of the mean by the bootstrap."""
    chosen = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    low, high = np.percentile(values[chosen].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def by_itself(lines: pd.DataFrame) -> pd.DataFrame:
    """Early hits, queries until the search settles, and the ratio of the cost then to that at 60 queries."""
    out = []
    for name, part in lines.groupby("data", sort=False):
        alone, settled = (part[part["method"] == method].sort_values("row") for method in ("feasible", "settled"))
        if settled.empty:
            continue
        lost = ratio(settled, max(BUDGETS)) / ratio(alone, SHORT)
        hits = {f"hit@{b}": f"{np.isfinite(ratio(alone, b)).mean():.0%}" for b in (10, 15)}
        asked = f"{settled['queries'].mean():.1f}"
        out.append({"data": name, **hits, "settled after": asked, "cost over that at 60": f"{np.nanmedian(lost):.3f}"})
    return pd.DataFrame(out)


def calibration(lines: pd.DataFrame, stated: pd.DataFrame) -> pd.DataFrame:
    """P(something cheaper exists) in bins of at least 100 cases, compared with the observed frequency.

    A bin holds if the stated probability is within the 95% interval, and nearly holds if it is within 0.1 of the share.
    The interval is by the bootstrap over rows, since the values stated by one search are dependent; it is at least as
    wide as that of Wilson.
    """
    best = lines.groupby(["data", "row"])["best"].first().rename("best").reset_index()
    stated = stated.merge(best, on=["data", "row"])
    out = []
    for share in SHARES:
        chance = stated[f"chance{share}"].to_numpy()
        actual = (stated["best"] <= (1 - share) * stated["J"]).to_numpy()
        order, rows = (
            np.argsort(chance, kind="stable"),
            stated.groupby(["data", "row"]).ngroup().to_numpy().astype(float),
        )
        for part in np.array_split(order, max(min(10, len(order) // 100), 1)):
            ends = bootstrap(actual[part].astype(float), rows[part]), wilson(int(actual[part].sum()), len(part))
            low, high = min(end[0] for end in ends), max(end[1] for end in ends)
            mean = float(chance[part].mean())
            holds = "yes" if low <= mean <= high else "nearly" if abs(mean - actual[part].mean()) <= 0.1 else "no"
            cells = {"stated": f"{mean:.2f}", "actual": f"{actual[part].mean():.2f}", "95%": f"{low:.2f} to {high:.2f}"}
            out.append({"cheaper by": f"{share:.0%}", "cases": len(part), **cells, "holds": holds})
    return pd.DataFrame(out)


def cost_by_queries(lines: pd.DataFrame) -> Table:
    """Medians of "feasible", with and without outcomes, and "nearest", in the order of the paper."""
    found = medians(lines)
    found = found[found["method"].isin(("feasible", "labels", "nearest", "nearest-filter"))].drop(columns="rows")
    found = found.sort_values("data", key=lambda names: names.map(PAPER.index), kind="stable")
    found["method"] = found["method"].replace({"labels": "feasible-labels"})
    return Table.of("J over the best known after so many queries", found.rename(columns=lambda name: name.strip("@")))


def current(model: str, seed: int) -> pd.DataFrame:
    """The newest lines of one suite with the least J known; empty without a file."""
    lines = newest(read(RESULTS / f"anytime-{model}-{seed}.csv"))
    return with_best_known(lines, (model, seed) == ("forest", 0)) if len(lines) else lines


def other_models() -> Table:
    """One line per data set, one column per model except the forest."""
    columns = {}
    for model in sorted(MODELS.keys() - {"forest"}):
        lines = current(model, 0)
        columns[model] = {
            name: " / ".join(
                f"{np.median(ratio(part[part['method'] == method], b)):.2f}"
                for method, b in (("labels", 15), ("feasible", 60))
            )
            for name, part in lines.groupby("data", sort=False)
        }
    title = "medians with outcomes at 15 / without at 60 queries"
    return Table.of(title, pd.DataFrame(columns).rename_axis("data").reset_index())


def setting_name(model: str, seed: int) -> str:
    """The model, with the seed of the rows if there are several."""
    return f"{model} {seed}" if model == "forest" else model


def by_setting(method: str, goals: dict[str, dict[int, float]]) -> Table:
    """Medians at the budgets of the goals, data sets by model and seed; bold if the goal is missed."""
    columns: dict[str, dict[str, str]] = {}
    for model, seed, _ in SETTINGS:
        lines = current(model, seed)
        for name, part in lines[lines["method"] == method].groupby("data", sort=False):
            found = {b: round(float(np.median(ratio(part, b))), 2) for b in goals["others"]}
            goal = goals.get(model) or goals.get(str(name), goals["others"])
            cell = " / ".join(f"**{J:.2f}**" if goal[b] < J else f"{J:.2f}" for b, J in found.items())
            columns.setdefault(setting_name(model, seed), {})[str(name).replace("_", " ")] = cell
    frame = pd.DataFrame(columns).reindex([name.replace("_", " ") for name in PAPER])
    title = f"medians of {method!r} at {', '.join(map(str, goals['others']))} queries"
    return Table.of(title, frame.fillna("").rename_axis("data").reset_index())


def worse_anywhere(ours: str, rival: str, budgets: Sequence[int]) -> Table:
    """At each budget, data sets and models where one of two methods is cheaper on more rows; Holm over all of them."""
    out = []
    for budget in budgets:
        signs = {}
        for model, seed, _ in SETTINGS:
            lines = current(model, seed)
            if lines.empty:
                continue
            wide = lines.pivot_table(index=["data", "row"], columns="method", values=f"J{budget}", dropna=False)
            if not {ours, rival} <= set(wide.columns):
                continue
            for name, part in wide[[ours, rival]].dropna().groupby(level="data", sort=False):
                test = sign_test(part[ours].to_numpy(), part[rival].to_numpy())
                signs[f"{name} {setting_name(model, seed)}"] = test
        corrected = holm(np.array([p for _, _, p in signs.values()]))
        found = [
            (name, less, more) for (name, (less, more, _)), p in zip(signs.items(), corrected, strict=True) if p < 0.05
        ]
        cheaper = sum(less > more for _, less, more in found)
        costlier = listed(f"{name} ({less} to {more})" for name, less, more in found if less < more)
        out.append({"queries": budget, "compared": len(signs), "cheaper on": cheaper, "costlier on": costlier})
    return Table.of(f"{ours!r} against {rival!r}, significant after Holm's correction", pd.DataFrame(out))


def tables(lines: pd.DataFrame, model: str, seed: int) -> dict[str, Table]:
    """Medians, significance, and results of the search when it stops by itself."""
    is_first = (model, seed) == ("forest", 0)
    lines = with_best_known(lines, is_first)
    out = {
        "medians": Table.of("J over the best known, medians", medians(lines)),
        "behind": Table.of("behind (>) or ahead (<): mean difference of log J", behind(lines)),
    }
    if "settled" in set(lines["method"]):
        out["by-itself"] = Table.of("by itself", by_itself(lines))
    if is_first:
        out |= {
            "cost-by-queries": cost_by_queries(lines),
            "other-models": other_models(),
            "settings": by_setting("feasible", GOALS),
            "settings-outcomes": by_setting("labels", GOALS_WITH_OUTCOMES),
            "nearest-filter": worse_anywhere("feasible", "nearest-filter", (15, 30, 60, 150)),
            "earlier": worse_anywhere("feasible", "0.1.0", (15, 30, 60, 150)),
            "scores": worse_anywhere("scores", "feasible", (15, 30, 60)),
            "outcomes": worse_anywhere("labels", "feasible", (10, 20, 60)),
        }
    return out


def outlook_tables(lines: pd.DataFrame, model: str, seed: int) -> dict[str, Table]:
    """The calibration against the best known of the suite "anytime-*" with the same model and seed."""
    table = calibration(current(model, seed), lines)
    return {"calibration": Table.of("P(something cheaper exists), stated and actual", table)}


def revision(method: str) -> int:
    """The revision of strategy "feasible" or of the method "nearest"; 0.1.0 does not change."""
    if method == "0.1.0":
        return 1
    return REGISTERED["nearest"].revision if method.startswith("nearest") else acex.Feasible.revision


def why_missing(data: str, method: str, model: str) -> str | None:
    """Scores need a model with probabilities, and 0.1.0 a checkout."""
    if method == "0.1.0":
        return earlier.why_not(model)
    return f"{model} has no probabilities" if method == "scores" and model == "svc" else None


SUITES = (
    *(
        Suite(
            f"anytime-{model}-{seed}",
            PAPER,
            METHODS,
            ("limit", "queries", *(f"J{b}" for b in BUDGETS)),
            partial(measure, model=model, seed=seed),
            partial(tables, model=model, seed=seed),
            rows=rows,
            revision=revision,
            missing=partial(why_missing, model=model),
        )
        for model, seed, rows in SETTINGS
    ),
    *(
        Suite(
            f"outlook-forest-{seed}",
            PAPER,
            ("feasible", "labels"),
            ("queries", "J", *map("chance{}".format, SHARES)),
            partial(measure_outlook, model="forest", seed=seed),
            partial(outlook_tables, model="forest", seed=seed),
            rows=rows,
            revision=revision,
        )
        for seed, rows in ((0, 50), (1, 40))
    ),
)
