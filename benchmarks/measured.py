"""Figures of the other pages (scale, noise, ranges, ledger, research, ...) from benchmarks/results: see pages.py."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import anytime
import numpy as np
import paired as paired_runs
import pandas as pd
from words import RESULTS, _csv, _listed, _number, _table, apart, fixed, mixed

from acex.bench import score
from acex.datasets import PAPER
from acex.search import belief_inputs

USERS = ("diamonds", "weather", "loan")
FILTERS = {"german_credit": "german credit", "tic_tac_toe": "tic-tac-toe"}


# -- beside the paper ------------------------------------------------------------------------------------------------


def apart_table() -> str:
    """For each of the paper's methods and measures the data sets whose mean is more than a fifth off the paper's."""
    measures = {"queries": 0, "d2": 2, "g1": 2, "affinity": 2, "validity": 2}
    of = {"penalty": "penalty", "growing-spheres": "growing-spheres", "moc-stop": "moc", "baycon": "baycon"}
    lines = [[f"`{ours}`", *(apart(m, ours, n, theirs) for m, n in measures.items())] for ours, theirs in of.items()]
    return _table(["method", *measures], lines)


def fixed_table() -> str:
    """The fixed test by data set and label: the paper's ACE / "penalty" / "feasible"."""
    published = score.paper()
    papers = published[(published["suite"] == "fixed") & (published["method"] == "penalty")]
    means = score.means(fixed())
    columns = [papers, *(means[means["method"] == method] for method in ("penalty", "feasible"))]
    by_row = [lines.set_index(["data", "label"]) for lines in columns]
    lines = []
    for name in PAPER:
        for label in sorted(by_row[1].loc[name].index):
            cells = [
                " / ".join(_number(lines[measure].get((name, label), np.nan), digits) for lines in by_row)
                for measure, digits in {"queries": 0, "d2": 2, "g1": 2, "affinity": 2, "validity": 2}.items()
            ]
            lines.append([name.replace("_", " "), str(label), *cells])
    return _table(["data", "label", "queries", "d2", "g1", "affinity", "validity"], lines)


def fixed_fewer() -> str:
    """In how many rows of that table "feasible" asks less than "penalty"."""
    queries = score.means(fixed()).set_index(["data", "label", "method"])["queries"].unstack("method")
    return f"{(queries['feasible'] < queries['penalty']).sum()} of {len(queries)}"


def fixed_seeds() -> int:
    """How many seeds each row and method of the fixed test has at least."""
    return int(fixed().groupby(["data", "row", "method"]).size().min())


# -- what a million rows cost -----------------------------------------------------------------------------------


def processes() -> str:
    """Rows a second by the number of processes (`many.py --part throughput`)."""
    lines = [
        [str(int(p["processes"])), f"{p['rows_per_second']:.2f}", f"{p['times_one']:.2f}"]
        for p in _csv("many-throughput.csv").to_dict("records")
    ]
    return _table(["processes", "rows a second", "times one"], lines)


def row_seconds() -> float:
    """Seconds of one process for a row of 30 queries."""
    one = _csv("many-throughput.csv").iloc[0]
    return float(one["seconds"] / one["rows"])


def kB_a_query() -> float:
    """What the ledger takes on disk for a query."""
    return float(_csv("many-throughput.csv")["kB_of_ledger_a_query"].max())


def ledgers() -> str:
    """Seconds of an explanation and size on disk by the answers in the ledger (`many.py --part ledger`)."""
    lines = _csv("many-ledger.csv")
    rows = {
        "first explanation of a process, s": [f"{v:.2f}" for v in lines["first explanation, s"]],
        "each later one, s": [f"{v:.2f}" for v in lines["each later one, s"]],
        "MB on disk": [f"{v:.3g}" for v in lines["MB on disk"]],
    }
    header = ["answers in the ledger", *(_number(n, 0) for n in lines["answers"])]
    return _table(header, [[name, *cells] for name, cells in rows.items()])


def worker_memory() -> float:
    """MB that a worker takes more with any of these ledgers."""
    return float(_csv("many-ledger.csv")["more memory, MB"].max())


def caller_memory(kept: str) -> float:
    """kB a row that the caller of the largest batch keeps: "ledger" or "all kept"."""
    lines = _csv("memory.csv")
    return float(lines[lines["kept in"] == kept].sort_values("rows")["kb_a_row"].iloc[-1])


def startup(what: str) -> float:
    """CPU seconds of a new process over those of `import pandas`."""
    text = (RESULTS / "startup.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| `{re.escape(what)}` \| \S+ \| (\S+) \|", text, flags=re.MULTILINE)
    assert found, what
    return float(found[1])


def journal(column: str) -> float:
    """What the journal costs an explanation (`journal.py`)."""
    return float(_csv("journal.csv")[column].iloc[0])


# -- noise and numbers --------------------------------------------------------------------------------------------


def noises() -> str:
    """Found, right, cost and queries by the share of answers that are flipped (`noise.py`)."""
    lines = _csv("noise.csv")
    base = lines[lines["flipped"] == 0].set_index(["data", "row"])["cost"]
    rows = []
    for share, part in lines.groupby("flipped"):
        right = part[part["found"] & (part["valid"].astype(str) == "True")].set_index(["data", "row"])["cost"]
        times = np.exp(np.log((right / base).dropna()).mean())
        found = f"{part['found'].sum()} of {len(part)}"
        rows.append([f"{share:.0%}", found, str(len(right)), f"{times:.2f}", f"{part['queries'].mean():.0f}"])
    return _table(["flipped", "found", "right", "cost, times that without noise", "queries"], rows)


def numbers() -> str:
    """A range asked for as numbers and by yes and no (`ranges.py`)."""
    rows = []
    for (name, wish), group in _csv("ranges.csv").groupby(["table", "range"], sort=False):
        number, label = (group[group["way"] == way].set_index(["model", "row"]) for way in ("number", "yes/no"))
        ratio = (number["after_30"] / label["after_30"]).to_numpy()
        cost = float(np.exp(np.log(ratio[np.isfinite(ratio) & (ratio > 0)]).mean()))
        close = [float(part["close"].fillna(31).median()) for part in (number, label)]
        found = [float(np.isfinite(part["after_10"]).mean()) for part in (number, label)]
        rows.append(
            [
                {"houses": "houses, made up"}.get(str(name), str(name)),
                {"middle": "a tenth in the middle"}.get(str(wish), str(wish)),
                *("more than 30" if c > 30 else f"{c:g}" for c in close),
                f"{cost:.2f}",
                *(f"{f:.0%}" for f in found),
            ]
        )
    header = ["table", "wanted", "close: number", "close: yes/no", "cost: number"]
    return _table([*header, "found after 10: number", "found after 10: yes/no"], rows)


def dice_found() -> float:
    """The share of rows for which DiCE found a number in the range."""
    return float(np.isfinite(_csv("ranges-dice.csv")["cost"]).mean())


def dice_queries() -> float:
    """The median of the rows that DiCE asked for."""
    return float(_csv("ranges-dice.csv")["queries"].median())


def dice_cost(which: str) -> float:
    """DiCE's cost over ours after 30 queries: the least or greatest median by table and range."""
    place = ["table", "model", "range", "row"]
    ours = _csv("ranges.csv")
    both = _csv("ranges-dice.csv").merge(ours[ours["way"] == "number"][[*place, "after_30"]], on=place)
    both = both[np.isfinite(both["cost"]) & np.isfinite(both["after_30"])]
    medians = (both["cost"] / both["after_30"]).groupby([both["table"], both["range"]]).median()
    return float(medians.agg(which))


# -- what looks real ----------------------------------------------------------------------------------------------


@cache
def _plausible() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "plausible.csv", dtype={"table": str})


def filters() -> str:
    """Area under the ROC curve with one value from another row / with two, filters by tables (`plausible.py`)."""
    lines = _plausible()
    lines = lines.assign(where=lines["table"].where(lines["group"] != "simulated", "simulated"))
    order = list(dict.fromkeys(lines["where"]))
    means = lines.groupby(["filter", "where"])[["auc one", "auc two"]].mean()
    names = dict.fromkeys(lines["filter"])
    rows = [[name, *(" / ".join(f"{v:.2f}" for v in means.loc[(name, where)]) for where in order)] for name in names]
    return _table(["filter", *(FILTERS.get(where, where) for where in order)], rows)


def auc(filter: str, group: str) -> float:
    """The mean of both areas over the tables of a group: "simulated", "users" or "paper"."""
    part = _plausible()[(_plausible()["filter"] == filter) & (_plausible()["group"] == group)]
    return float(part[["auc one", "auc two"]].to_numpy().mean())


def passing(what: str, where: str) -> str:
    """The shares of rows ("real", "one", "two" values from another) that pass lof / joint, in a group or a table."""
    lines = _plausible()
    part = lines[(lines["group"] == where) | (lines["table"] == where)]
    return " / ".join(f"{part[part['filter'] == name][f'passes {what}'].mean():.0%}" for name in ("lof", "joint"))


def filter_time(filter: str, what: str, which: str) -> float:
    """What a filter takes to "judge" or "fit", in the time of lof: the least or greatest on the tables of users."""
    lines = _plausible()
    return float(lines[(lines["filter"] == filter) & lines["table"].isin(USERS)][what].agg(which))


# -- the belief -----------------------------------------------------------------------------------------------------

WEIGHTS = Path(belief_inputs.__file__).with_name("weights.npz")


def n_traits() -> int:
    """How many numbers describe a point."""
    return len(belief_inputs.NAMES)


def weights_kB() -> float:
    """The size of the file of weights."""
    return WEIGHTS.stat().st_size / 1000


def learned(what: str) -> float:
    """From the record of the training: all "candidates", or the loss "before" or "after" the last round."""
    rounds = json.loads(WEIGHTS.with_suffix(".json").read_text(encoding="utf-8"))["rounds"]
    if what == "candidates":
        return float(sum(part["candidates"] for part in rounds))
    return float(rounds[-1][f"loss {what}"][0])


# -- the lab book ---------------------------------------------------------------------------------------------------


@cache
def _searches(seed: int) -> pd.DataFrame:
    path = RESULTS / f"anytime-forest-{seed}.csv"
    return anytime.with_best_known(_csv(path.name), anytime.is_pinned(path))


def at(method: str, data: str, queries: Sequence[int], seed: int = 0) -> str:
    """Medians of J over the best known after so many queries."""
    lines = _searches(seed)
    part = lines[(lines["method"] == method) & (lines["data"] == data)]
    return " / ".join(f"{np.median(anytime.ratio(part, q)):.2f}" for q in queries)


def short_of(method: str, queries: Sequence[int], wanted: Sequence[float]) -> str:
    """The data sets whose medians are above what was wanted after any of these queries."""
    medians = {name: [float(m) for m in at(method, name, queries).split(" / ")] for name in PAPER}
    far = [name for name in PAPER if any(m > w for m, w in zip(medians[name], wanted, strict=True))]
    return _listed(f"{name} ({at(method, name, queries)})" for name in far)


def few_found(queries: int, wanted: float, method: str = "feasible") -> str:
    """The data sets on which fewer rows than wanted have a hit after so many queries."""
    part = _searches(0)[_searches(0)["method"] == method]
    found = part.groupby("data")[f"J{queries}"].agg(lambda J: np.isfinite(J).mean())
    return _listed(f"{name} ({found[name]:.0%})" for name in PAPER if found[name] < wanted)


def worse(method: str, other: str, seed: int) -> str:
    """Where the paired bootstrap has a method behind another, and after how many queries."""
    lines = anytime.behind(_searches(seed))
    lines = lines[(lines["method"] == method) & (lines["against"] == other)].set_index("data")
    places = [(name, b) for name in PAPER for b in anytime.BUDGETS if f"@{b}" in lines.columns]
    return _listed(f"{name} (at {b})" for name, b in places if ">" in str(lines.loc[name, f"@{b}"]))


def bins_that_hold(seed: int) -> str:
    """Of how many bins the stated chance of something cheaper holds."""
    bins = anytime.calibration(_searches(seed), _csv(f"outlook-forest-{seed}.csv"))
    return f"{(bins['holds'] == 'yes').sum()} of {len(bins)}"


def unsettled(queries: int = 60) -> str:
    """The data sets on which a search goes on for more queries in the mean before it settles."""
    lines = anytime.by_itself(_searches(0)).set_index("data")["settled after"].astype(float)
    return _listed(f"{name} ({lines[name]:.0f})" for name in PAPER if lines[name] > queries)


def others_above(which: str, most: float, leaving: Sequence[str] = ("kc2",)) -> str:
    """Other models and data sets whose median is above this: "labels" at 15 or "feasible" at 60 queries."""
    cells = anytime.other_models(RESULTS).set_index("data")
    place = ("labels", "feasible").index(which)
    found = cells.map(lambda cell: float(cell.split(" / ")[place])).drop(index=list(leaving))
    values = [(name, model, float(found.loc[name, model])) for name in found.index for model in found.columns]
    return _listed(f"{model} on {name} ({value:.2f})" for name, model, value in values if value > most)


def others_on(which: str, data: str) -> str:
    """The least and the greatest median of other models on a data set."""
    cells = anytime.other_models(RESULTS).set_index("data").loc[data]
    values = [float(str(cell).split(" / ")[("labels", "feasible").index(which)]) for cell in cells]
    return f"{min(values):.2f} to {max(values):.2f}"


def first_hits(method: str, queries: int) -> float:
    """The share of rows of the mixed test whose first hit comes with this query or before."""
    curves = mixed()[mixed()["method"] == method]["curve"]
    return float(np.mean([bool(curve) and curve[0][0] <= queries for curve in curves]))


def paired(way: str, new: int, old: int, which: str) -> float:
    """J after `new` queries over that of 0.1.0 after `old`: the least or greatest geometric mean of the data sets."""
    lines = _csv("paired-forest-0.csv")
    lines = (
        lines[lines["way"] == way].set_index(["data", "row", "version", "queries"])["J"].unstack(["version", "queries"])
    )
    ratios = (lines["new", new] / lines["old", old]).replace([np.inf, 0], np.nan).dropna()
    return float(ratios.groupby(level="data").agg(lambda r: np.exp(np.log(r).mean())).agg(which))


def paired_told() -> str:
    """Searches that know their budget and may end before it, beside those of 0.1.0, a line for each data set."""
    lines = _csv("paired-told-0.csv")
    is_asked = lines["way"] == "asked"
    shown = paired_runs.table(lines[~is_asked], paired_runs.best_known()).drop(columns="way")
    asked = lines[is_asked].groupby(["version", "data", "queries"])["J"].mean().round().astype(int)
    for version in ("old", "new"):
        shown[f"queries, {version}"] = [" / ".join(map(str, asked[version, name])) for name in shown["data"]]
    return anytime.markdown(shown)


def ten_queries() -> str:
    """Ten queries a row on the second hundred over 60 queries alone of 0.1.0, a line for each data set and way."""
    lines = []
    for file in sorted(RESULTS.glob("taught-*.csv")):
        told = pd.read_csv(file)
        alone = told["J_alone_0.1.0"]
        for column, way in (("J", "after a hundred rows with 60"), ("J_ten", "ten from the first row on")):
            J = told[column]
            if J.isna().all():
                continue  # not measured
            both = np.isfinite(J) & np.isfinite(alone)
            ratio = {"mean": J[both].mean() / alone[both].mean(), "median": (J[both] / alone[both]).median()}
            shown = {name: f"{value:.2f}" for name, value in ratio.items()}
            lines.append({"data": told["data"][0], "way": way, "found": f"{np.isfinite(J).sum()} of {len(J)}", **shown})
    return anytime.markdown(pd.DataFrame(lines))


def taught_ratio(data: str, what: str) -> float:
    """Ten queries after a hundred rows over 60 queries alone, both of 0.1.0: "mean" or "median"."""
    lines = _csv(f"many-{data}-0.csv")
    lines = lines[lines["row"] >= 100]
    told = lines[lines["way"] == "taught"].set_index("row")["J_few"]
    alone = lines[lines["way"] == "alone"].set_index("row")["J"]
    both = np.isfinite(told) & np.isfinite(alone)
    if what == "mean":
        return float(told[both].mean() / alone[both].mean())
    return float((told / alone)[both].median())


def speeds(which: str, leaving: Sequence[str] = ("kc2",)) -> float:
    """The median ask of "feasible" over one fit of scikit-learn's: the least or greatest data set (`speed.py`)."""
    text = (RESULTS / "speed.txt").read_text(encoding="utf-8")
    found = re.findall(r"^\s*(\w+), feasible to 60 points +\S+ +\S+ +(\S+)", text, flags=re.MULTILINE)
    values = [float(value) for name, value in found if name not in leaving]
    return {"min": min, "max": max}[which](values)


def needless(budget: int, what: str) -> float:
    """Of explanations with so many queries (`needless.py`): "rows", "changes", "needless" ones, their "share"."""
    lines = _csv("needless.csv")
    lines = lines[lines["budget"] == budget]
    if what == "rows":
        return float(len(lines))
    return float(lines["needless"].sum() / lines["changes"].sum() if what == "share" else lines[what].sum())


def measured_line(file: str, pattern: str) -> str:
    """What a pattern finds in a line that a benchmark printed."""
    found = re.search(pattern, (RESULTS / file).read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def speed(data: str) -> float:
    """The same for one data set."""
    return speeds("min", leaving=[name for name in PAPER if name != data])
