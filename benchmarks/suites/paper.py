"""The paper's evaluation with every method: the mixed and the fixed test, moons, MNIST and tuning a controller.

mixed     each withheld row once
fixed     two rows, one of each label, with many seeds; distances on raw codes
moons     the paper's instance in the plane, for a plot
mnist     an 8 that becomes a 9, for a plot
control   a controller that must pass five limits, with many histories
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from acex.arrays import FloatArray
from acex.space.cost import n_changed
from benchmarks import figures, heat_exchanger, score
from benchmarks.methods import METHODS
from benchmarks.published import PAPER
from benchmarks.scenario import Scenario, scenario
from benchmarks.suite import RESULTS, Job, Line, Suite
from benchmarks.table import NOTHING, Table, bold, listed, number
from benchmarks.task import CapReached, CountedModel, Explain, Task

COLUMNS = (
    *("cap", "label", "reference", "queries", "distinct", "candidates", "valid", "is_reference_row"),
    *("J", "d2", "g1", "d2n", "g1n", "n_changed", "affinity", "seconds", "curve"),
)
PUBLISHED = (  # methods compared in the paper
    *("penalty", "ace-published", "baycon", "moc", "moc-stop", "moc-ice", "growing-spheres", "growing-spheres-raw"),
)
AS_IN_THE_PAPER = {  # method whose figures in the paper are comparable, if not its own (`score.NAMES`)
    "ace-published": "penalty", "moc-stop": "moc", "moc-ice": "moc", "growing-spheres-raw": "growing-spheres",
}  # fmt: skip
PAPERS_IMAGE = {"ACE": (59, 5.47), "OmniXAI": (59, 7.44)}  # queries and l2 distance with pixels of 0 to 1
PAPERS_MOONS = {"ACE": (14, 0.68), "Growing Spheres": (501, 0.592)}
COMPARED = ("feasible", "feasible-labels", "penalty", "growing-spheres", "moc", "baycon", "nearest")
WHITE = "treecf"  # reads the model; drawn as a reference line
MEASURES = {"queries": 0, "d2": 2, "g1": 2, "affinity": 2, "validity": 2}  # with number of digits
GRIDS = {  # number of digits, and whether lower is better
    "score": ("CFE score S", 3, True),
    "J": ("mean cost J", 2, True),
    "queries": ("mean queries", 0, True),
    "amortised": ("mean queries, labels of the reference queried once for all rows", 0, True),
    "validity": ("validity", 2, False),
    "reference_rows": ("share of answers that are rows of the reference", 2, False),
}
PASSED = {"control-10": 10, "control-1": 1, "control-0": 0}  # number of controllers of a history that pass
MOSTLY_VALID = 0.9  # least validity of a method for its mean cost to count as the best
PICTURED = 20  # rows in the plot of curves, for which all methods have results


# -- measuring ---------------------------------------------------------------------------------------------------


def measure(job: Job) -> list[Line]:
    """The result of a method on a row; if it reaches the cap, its best hit is its answer."""
    return measure_by(METHODS[job.method].explain, job)


def measure_by(explain: Explain, job: Job) -> list[Line]:
    """Like `measure`, for a function that need not be registered."""
    s = scenario(job.data, job.seed if job.data in PASSED else 0)
    task = Task(s, s.rows[job.row])
    model = CountedModel(task, job.cap)
    started = time.perf_counter()
    try:
        candidates = explain(task, model, job.seed)
    except CapReached:
        candidates = np.empty((0, len(task.x))) if model.best is None else model.best[None]
    line: Line = {
        "seconds": round(time.perf_counter() - started, 3),
        "queries": model.queries,
        "distinct": model.distinct,
        "candidates": len(candidates),
        "curve": [[asked, float(f"{J:.6g}")] for asked, J in model.curve],
        "label": model.before,
        "reference": len(s.reference),
        "factual": task.x.tolist(),
        "asked": model.answers if job.data == "moons" else None,
        **measured(task, candidates),
    }
    if job.data == "mnist" and line.get("is_reference_row"):  # the best hit that is not a reference row
        hits = np.array([row for row, label in model.answers if label != model.before])
        line["made"] = measured(task, hits[[not s.in_reference(x) for x in hits]])
    if job.data in PASSED and line["valid"]:
        line["robustness"] = heat_exchanger.robustness(np.array(line["counterfactual"]))
    return [line]


def measured(task: Task, candidates: FloatArray) -> Line:
    """The measures of the valid candidate of least J; checking validity with the model does not count as a query."""
    s = task.scenario
    if len(candidates):
        before = s.predict(task.x[None])[0]
        candidates = candidates[task.allowed(candidates) & (s.predict(candidates) != before)]
    if len(candidates) == 0:
        return {"valid": False}
    best = candidates[np.argmin(task.cost(candidates))]
    step, z = best - task.x, (best - task.x) / s.deviations
    return {
        "valid": True,
        "J": float(task.cost(best[None])[0]),
        "d2": float(np.linalg.norm(step)),
        "g1": float(np.abs(step).sum()),
        "d2n": float(np.linalg.norm(z)),
        "g1n": float(np.abs(z).sum()),
        "n_changed": int(n_changed(best[None], task.x)[0]),
        "affinity": float(s.density.affinity(best[None])[0]),
        "is_reference_row": s.in_reference(best),
        "counterfactual": best.tolist(),
    }


def two_rows(s: Scenario) -> tuple[int, int]:
    """The first withheld rows to which the model gives label 0 and label 1."""
    labels = s.predict(s.rows)
    return int(np.argmax(labels == 0)), int(np.argmax(labels == 1))


def missing(data: str, method: str) -> str | None:
    """Why a method cannot run on a data set; None if it can."""
    return METHODS[method].refuses(scenario(data))


# -- tables ------------------------------------------------------------------------------------------------------


def shared(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of the first rows that the compared methods have in common, of all methods that have these rows."""
    n = lines.groupby(["method", "data"]).size().groupby("method").min()
    least = int(n[n.index.isin(COMPARED)].min() if n.index.isin(COMPARED).any() else n.min())
    return lines[lines["method"].isin(n.index[n >= least]) & (lines["row"] < least)]


def mixed_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Methods by data sets over shared rows, and our means and the paper's over all rows."""
    blind = shared(lines)
    blind = blind[blind["method"] != WHITE]
    found = score.means(blind)
    tables = {"given": given()}
    for name, (title, digits, has_best) in GRIDS.items():
        wide = by_data(found, name)
        if name == "amortised":
            wide = wide[[METHODS[str(method)].labels_reference for method in wide.index]]
        # A mean cost over only the few rows that a method can explain does not count as the best.
        judged = wide.where(by_data(found, "validity") >= MOSTLY_VALID) if name == "J" else wide
        is_best = (judged.round(digits) == judged.round(digits).min()) & has_best
        tables[name] = bold(wide, is_best, digits, f"mixed: {title}")
    wide = by_data(score.needed(blind, 1.25), "queries")
    title = "mixed: queries until half of the rows are within 1.25 of the best known cost"
    tables["needed"] = bold(wide, wide == wide.min(), 0, title)
    return tables | {"apart": apart(lines), "authors": authors(), "penalty": penalty(lines)} | beside(lines, "mixed")


def by_data(lines: pd.DataFrame, measure: str) -> pd.DataFrame:
    """A measure, methods by data sets, in our order."""
    wide = lines.pivot_table(index="method", columns="data", values=measure, sort=False, dropna=False)
    return wide.reindex(index=[m for m in METHODS if m in wide.index], columns=[d for d in PAPER if d in wide.columns])


def given() -> Table:
    """Input of each method in addition to labels, and whether it labels the reference."""
    ours = [m for m in METHODS.values() if m.explain.__module__.startswith("benchmarks.methods.")]
    rows = [[f"`{m.name}`", m.given, "yes" if m.labels_reference else ""] for m in ours]
    return Table("methods", ["method", "given in addition to labels", "queries the labels of the reference"], rows)


def beside(lines: pd.DataFrame, suite: str) -> dict[str, Table]:
    """For each data set (and label of the fixed test), our means and the paper's, with the best in bold."""
    papers = score.published()
    by = ["data", "label"] if suite == "fixed" else ["data"]
    tables = {}
    for where, ours in score.means(lines, by, raw=suite == "fixed").groupby(by, sort=False):
        place = dict(zip(by, where, strict=True))
        theirs = papers[papers["suite"] == suite]
        for name, value in place.items():
            theirs = theirs[theirs[name] == value]
        words = ", label ".join(map(str, place.values()))
        tables["-".join(map(str, place.values()))] = one_beside(f"{suite}: {words}", ours, theirs.set_index("method"))
    return tables


def one_beside(title: str, ours: pd.DataFrame, theirs: pd.DataFrame) -> Table:
    """Means with standard deviations, ours and the paper's."""
    measures = {**MEASURES, "score": 2}
    valid = ours[ours["validity"] > 0]
    best = {name: valid[name].agg("max" if name in ("affinity", "validity") else "min") for name in measures}
    rows = []
    for line in ours.sort_values("score").to_dict("records"):
        cells = [str(line["method"]), METHODS[line["method"]].given, str(line["n"])]
        for name, digits in measures.items():
            text = number(line[name], digits)
            if f"{name}_std" in line and np.isfinite(line[name]):
                text += f" ({number(line[f'{name}_std'], digits)})"
            cells.append(f"**{text}**" if np.isclose(line[name], best[name]) else text)
            known = theirs[name].get(AS_IN_THE_PAPER.get(line["method"], line["method"])) if len(theirs) else None
            cells.append("" if known is None else number(known, digits))
        rows.append([*cells, number(line["reference_rows"], 2)])
    names = [{"score": "S"}.get(name, name) for name in measures]
    header = ["method", "given", "n", *(word for name in names for word in (name, "paper")), "reference rows"]
    return Table(title, header, rows)


def apart(lines: pd.DataFrame) -> Table:
    """Means of the mixed test that differ from the paper's by more than a fifth, ours against theirs."""
    names = ("penalty", "ace-published", "growing-spheres", "growing-spheres-raw", "moc-stop", "moc-ice", "baycon")
    of = {name: AS_IN_THE_PAPER.get(name, name) for name in names}
    papers = score.published()
    rows = []
    for ours, theirs in of.items():
        part = lines[lines["method"] == ours]
        if part.empty:
            continue
        found = score.means(part).set_index("data")
        known = papers[(papers["suite"] == "mixed") & (papers["method"] == theirs)].set_index("data")
        cells = []
        for name, digits in MEASURES.items():
            pairs = [(d, found[name][d], known[name].get(d, np.nan)) for d in PAPER if d in found.index]
            far = [(d, a, b) for d, a, b in pairs if np.isfinite(b) and abs(a - b) > 0.2 * abs(b)]
            cells.append(listed(f"{d} ({number(a, digits)} against {number(b, digits)})" for d, a, b in far))
        rows.append([f"`{ours}`", *cells])
    return Table("mixed: more than a fifth off the paper's mean, ours against theirs", ["method", *MEASURES], rows)


def authors_file() -> pd.DataFrame:
    """Results of the authors' own code, which was run once."""
    return pd.read_csv(RESULTS / "authors.csv", dtype=str, keep_default_na=False)


def authors() -> Table:
    """The authors' own code and our two strategies on the same rows."""
    lines = authors_file()
    header = ["data", "rows", "code", "rows asked", "it reports", "valid", "J", "affinity"]
    return Table("the authors' code", header, lines[lines["data"].isin(PAPER)].to_numpy().tolist())


def penalty(lines: pd.DataFrame) -> Table:
    """Strategy "penalty", the paper's figures, and the proven least J."""
    from benchmarks.suites.optimum import proved

    papers = score.published()
    papers = papers[(papers["suite"] == "mixed") & (papers["method"] == "penalty")].set_index("data")
    papers["J"] = papers["d2"] + 5 * papers["g1"]
    rows = []
    ours = lines[lines["method"] == "penalty"]
    for line in score.means(ours).to_dict("records") if len(ours) else ():
        name = line["data"]
        cells = [name.replace("_", " "), str(line["n"])]
        for measure, digits in (("queries", 0), ("d2", 2), ("g1", 2), ("J", 1)):
            theirs = f" ({papers.loc[name, measure]:.{digits}f})" if name in papers.index else ""
            cells.append(f"{line[measure]:.{digits}f}{theirs}")
        least = [J for (data, row), J in proved().items() if data == name and row < line["n"] and np.isfinite(J)]
        rows.append([*cells, f"{np.mean(least):.1f} ({len(least)} rows)" if least else NOTHING])
    header = ["", "rows", "queries (paper)", "d2n (paper)", "g1n (paper)", "J (paper)", "least J, proved for"]
    return Table("penalty beside the paper", header, rows)


def fixed_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """By data set and label: the paper's ACE / "penalty" / "feasible", and every method compared with the paper's."""
    papers = score.published()
    papers = papers[(papers["suite"] == "fixed") & (papers["method"] == "penalty")]
    found = score.means(lines, ("data", "label"), raw=True)
    columns = [papers, *(found[found["method"] == method] for method in ("penalty", "feasible"))]
    indexed = [part.set_index(["data", "label"]) for part in columns]
    rows = []
    for name, label in sorted(indexed[1].index, key=lambda at: (PAPER.index(at[0]), at[1])):
        cells = [
            " / ".join(number(part[measure].get((name, label), np.nan), digits) for part in indexed)
            for measure, digits in MEASURES.items()
        ]
        rows.append([name.replace("_", " "), str(label), *cells])
    title = "fixed: ACE in the paper / penalty / feasible"
    ace = Table(title, ["data", "label", *MEASURES], rows)
    return {"ace": ace, "spheres": spheres(found), "published": as_published(found), **beside(lines, "fixed")}


def spheres(found: pd.DataFrame) -> Table:
    """Growing Spheres in the paper, in raw units and scaled; queries over d2 are layers of 0.2 in raw units."""
    methods = ("growing-spheres-raw", "growing-spheres")
    return beside_fixed(found, "growing-spheres", methods, "fixed: Growing Spheres in the paper / raw units / scaled")


def as_published(found: pd.DataFrame) -> Table:
    """ACE in the paper, as published and with all repairs."""
    return beside_fixed(
        found, "penalty", ("ace-published", "penalty"), "fixed: ACE in the paper / as published / penalty"
    )


def beside_fixed(found: pd.DataFrame, theirs: str, methods: Sequence[str], title: str) -> Table:
    """Means of the paper and of two methods, by data set and label, with the number of seeds of the first."""
    papers = score.published()
    papers = papers[(papers["suite"] == "fixed") & (papers["method"] == theirs)].set_index(["data", "label"])
    ours = [found[found["method"] == method].set_index(["data", "label"]) for method in methods]
    rows = []
    for at in sorted(ours[0].index, key=lambda at: (PAPER.index(at[0]), at[1])):
        cells = [
            " / ".join(number(part[measure].get(at, np.nan), digits) for part in (papers, *ours))
            for measure, digits in MEASURES.items()
        ]
        rows.append([at[0].replace("_", " "), str(at[1]), str(ours[0]["n"][at]), *cells])
    return Table(title, ["data", "label", "seeds", *MEASURES], rows)


def control_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The number of trials until a controller passes, its cost, and how often it passes with other noise."""
    header = ["history", "method", "n", "passed", "trials until the first", "trials in all", "J", "passes under noise"]
    rows = []
    order = lines.sort_values("data", key=lambda names: -names.map(PASSED), kind="stable")
    for (name, method), runs in order.groupby(["data", "method"], sort=False):
        # The start itself is the first query of every method and not counted as a trial.
        first = [curve[0][0] - 1 for curve in runs["curve"] if curve]
        values = (np.mean(first) if first else np.nan, (runs["queries"] - 1).mean(), runs["J"].mean())
        cells = [f"{PASSED[str(name)]} of {heat_exchanger.HISTORY} pass", str(method), str(len(runs))]
        cells += [f"{runs['valid'].mean():.0%}", *(number(v, n) for v, n in zip(values, (1, 1, 2), strict=True))]
        rows.append([*cells, number(runs["robustness"].astype(float).mean(), 2)])
    return {"trials": Table("control: trials until a controller passes", header, rows)}


# -- pictures ----------------------------------------------------------------------------------------------------


def mixed_pictures(lines: pd.DataFrame) -> dict[str, Figure]:
    """Cost against queries; a method that reads the model needs no queries."""
    blind = lines[(lines["row"] < PICTURED) & (lines["method"] != WHITE)]
    return {"benchmark": figures.draw_curves(figures.curves_record(blind))}


def counts(lines: pd.DataFrame, papers: dict[str, tuple[int, float]], unit: float = 1.0) -> Table:
    """Queries and l2 distance (in `unit`) of each method, and the numbers printed in the paper."""
    rows = [[f"*{name} in the paper*", "1 of 1", number(n, 0), number(d, 2), ""] for name, (n, d) in papers.items()]
    for method, runs in lines.groupby("method", sort=False):
        d2, J = runs["d2"].mean() / unit, runs["J"].mean()
        found = f"{int(runs['valid'].sum())} of {len(runs)}"
        rows.append([f"`{method}`", found, number(runs["queries"].mean(), 0), number(d2, 2), number(J, 1)])
    return Table("queries and distance beside the paper's", ["method", "answers", "queries", "l2 distance", "J"], rows)


def moons_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """The paper's instance with the counts in the paper, and the other rows."""
    return {"counts": counts(lines[lines["row"] == 0], PAPERS_MOONS), **beside(lines, "moons")}


def mnist_tables(lines: pd.DataFrame) -> dict[str, Table]:
    """Queries and distance with pixels of 0 to 1, and the paper's."""
    return {"counts": counts(lines, PAPERS_IMAGE, unit=255.0), **beside(lines, "mnist")}


def moons_pictures(lines: pd.DataFrame) -> dict[str, Figure]:
    """Both decision boundaries, and the queries."""
    runs: dict[str, Any] = {line["method"]: line for line in lines[lines["row"] == 0].to_dict("records")}
    records = [figures.boundary_record(scenario("moons"), runs[m]) for m in figures.IN_THE_PLANE if m in runs]
    return {"moons": figures.draw_boundaries(records)}


def mnist_pictures(lines: pd.DataFrame) -> dict[str, Figure]:
    """An 8 and its counterfactuals by each method."""
    return {"mnist": figures.draw_digits(figures.digits_record(lines[lines["row"] == 0]))}


def repeated(data: str, step: int) -> Sequence[tuple[int, int]]:
    """Two rows of the fixed test, or the start of a controller, with another seed at each step."""
    return [(0, step)] if data in PASSED else [(row, step) for row in _two_rows(data)]


@cache
def _two_rows(data: str) -> tuple[int, int]:
    return two_rows(scenario(data))


def suite(name: str, data: Sequence[str], methods: Sequence[str], **fields: Any) -> Suite:
    """A suite of explanations by `METHODS`."""
    columns = (*COLUMNS, *fields.pop("columns", ()))
    fields.setdefault("tables", lambda lines: beside(lines, name))
    return Suite(
        name,
        tuple(data),
        tuple(methods),
        columns,
        measure,
        revision=lambda method: METHODS[method].revision,
        missing=fields.pop("missing", missing),
        **fields,
    )


def no_network(data: str, method: str) -> str | None:
    """Why MNIST cannot be measured; None if torch, for the convolutional network, is installed."""
    return None if find_spec("torch") else "mnist needs torch for its convolutional network: pip install torch"


CONTROL = ("feasible", "feasible-labels", "feasible-margin", "penalty", "nearest", "growing-spheres")
SUITES = (
    suite(
        "mixed",
        PAPER,
        [name for name in METHODS if name not in ("feasible-margin", "feasible-150")],
        rows=100,
        tables=mixed_tables,
        pictures=mixed_pictures,
    ),
    suite("fixed", PAPER, ("feasible", *PUBLISHED), rows=100, instances=repeated, tables=fixed_tables),
    suite(
        "moons",
        ("moons",),
        ("feasible", *PUBLISHED, "nearest", "random"),
        columns=("factual", "counterfactual", "asked"),
        tables=moons_tables,
        pictures=moons_pictures,
    ),
    suite(
        "mnist",
        ("mnist",),
        ("feasible", "penalty", "ace-published", "gradient", "omnixai"),
        rows=5,
        columns=("factual", "counterfactual", "made"),
        tables=mnist_tables,
        pictures=mnist_pictures,
        missing=no_network,
    ),
    suite(
        "control",
        tuple(PASSED),
        CONTROL,
        rows=100,
        columns=("robustness",),
        instances=repeated,
        tables=control_tables,
    ),
)
