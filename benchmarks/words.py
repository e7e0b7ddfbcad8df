"""What the figures of README and docs are computed by, from the files under benchmarks/results: see pages.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import anytime
import numpy as np
import pandas as pd

from acex.bench import score
from acex.bench.methods import METHODS
from acex.bench.records import read
from acex.bench.table import Cell, Table, markdown, tables
from acex.datasets import PAPER

RESULTS = Path(__file__).parent / "results"
HARD = ("diabetes", "breast", "kc2", "blood", "german_credit")
WHITE = "treecf"  # knows the model: no rival
COMPARED = ("feasible", "feasible-labels", "penalty", "growing-spheres", "moc", "baycon", "nearest")
PAPERS = ("feasible", "penalty", "growing-spheres", "moc", "baycon")  # the paper's systems and ours
WITH_NEAREST = (*PAPERS, "nearest")
BLIND = tuple(m.name for m in METHODS.values() if m.told not in ("scores", "the model itself"))


# -- the mixed and the fixed test, tuning a controller -------------------------------------------------------


@cache
def results() -> pd.DataFrame:
    """All that is kept of the paper's suites."""
    return score.frame(read(RESULTS / "paper"))


@cache
def mixed() -> pd.DataFrame:
    """The results of the mixed test."""
    found = results()
    return found[found["suite"] == "mixed"]


@cache
def fixed() -> pd.DataFrame:
    """The results of the fixed test."""
    found = results()
    return found[found["suite"] == "fixed"]


@cache
def n_rows(method: str) -> int:
    """How many rows a method has at least, over the data sets it does; 0 for one without results."""
    counts = mixed()[mixed()["method"] == method].groupby("data").size()
    return int(counts.min()) if len(counts) else 0


@cache
def shared() -> int:
    """How many rows of each data set the methods have that comparisons are made with."""
    return min(map(n_rows, COMPARED))


@cache
def compared() -> pd.DataFrame:
    """The rows that all of these methods have, of every method that has them and does not know the model."""
    full = [m for m in METHODS if n_rows(m) >= shared() and m != WHITE]
    return mixed()[mixed()["method"].isin(full) & (mixed()["row"] < shared())]


@cache
def compared_means() -> pd.DataFrame:
    """Their means, in one normalisation."""
    return score.means(compared())


def ratio(measure: str, method: str, other: str, data: str | None = None) -> float:
    """The mean of a measure over all rows for which both methods have one, over that of the other method."""
    part = mixed()[mixed()["data"].isin([data] if data else list(PAPER))]
    one, two = (part[part["method"] == m].set_index(["data", "row"])[measure] for m in (method, other))
    both = pd.concat([one, two], axis=1, join="inner").dropna().to_numpy(dtype=float)
    return float(both[:, 0].mean() / both[:, 1].mean())


def extreme_ratio(measure: str, method: str, other: str, which: str) -> str:
    """The least ("min") or the greatest ("max") ratio of the data sets, and which it is."""
    values = {name: ratio(measure, method, other, name) for name in PAPER}
    name = (min if which == "min" else max)(values, key=lambda n: values[n])
    return f"{values[name]:.2f} ({name.replace('_', ' ')})"


def higher(measure: str, method: str, other: str) -> int:
    """On how many data sets a method has the greater mean of a measure, over the same rows."""
    return sum(ratio(measure, method, other, name) > 1 + 1e-6 for name in PAPER)


def best(measure: str, method: str, among: Sequence[str]) -> int:
    """On how many data sets a method has the least of a measure; a score is normalised over those methods alone."""
    found = compared_means()
    count = 0
    for _, part in found[found["method"].isin(among)].groupby("data"):
        values = score.scores(part) if measure == "score" else part[measure].to_numpy()
        count += bool(np.isclose(values[part["method"] == method][0], np.nanmin(values)))
    return count


def most(measure: str, method: str) -> int:
    """The greatest value for a row of the mixed test."""
    return int(mixed()[mixed()["method"] == method][measure].max())


def mean(measure: str, method: str, data: str) -> float:
    """The mean of a measure over the shared rows of a data set."""
    found = compared_means()
    return float(found[(found["method"] == method) & (found["data"] == data)][measure].iloc[0])


def where(measure: str, method: str, other: str) -> str:
    """On which data sets a method has the lower mean of a measure, over rows that both have one for."""
    return _listed(name for name in PAPER if ratio(measure, method, other, name) < 1 - 1e-6)


def apart(measure: str, method: str, digits: int = 0, papers: str | None = None, suite: str = "mixed") -> str:
    """Where the mean of a test is more than a fifth off the paper's, ours against theirs; the fixed test by label."""
    keys = ["data", "label"] if suite == "fixed" else ["data"]
    published = score.paper()
    published = published[(published["suite"] == suite) & (published["method"] == (papers or method))]
    theirs = published.set_index(keys)[measure]
    ours = fixed() if suite == "fixed" else mixed()
    found = score.means(ours[ours["method"] == method]).set_index(keys)[measure]
    both = {name: (found[name], theirs[name]) for name in found.index if name in theirs.index}
    far = {name: (a, b) for name, (a, b) in both.items() if np.isfinite(b) and abs(a - b) > 0.2 * abs(b)}
    in_order = sorted(far.items(), key=lambda item: PAPER.index(item[0] if suite == "mixed" else item[0][0]))
    words = {name if suite == "mixed" else " ".join(map(str, name)): values for name, values in in_order}
    return _listed(f"{n} ({_number(a, digits)} against {_number(b, digits)})" for n, (a, b) in words.items())


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names) or "none"


def grid(measure: str, methods: Sequence[str] | None = None) -> str:
    """A measure of the mixed test over the shared rows, methods by data sets."""
    digits = {"queries": 0, "amortised": 0, "J": 2, "score": 3, "reference_rows": 2, "validity": 2}[measure]
    values = _by_data(compared_means(), measure, methods)
    is_best = values.round(digits) == values.round(digits).min()
    if measure in ("reference_rows", "validity"):
        is_best[:] = False
    table = _bolded(values, is_best, digits)
    return f"{table}\n{_authors_row(measure)}" if measure in ("J", "queries") else table


def _authors_row(measure: str) -> str:
    """What the authors' own code reaches, over rows of its own, as the last row of a grid."""
    lines = _authors()
    theirs = lines[lines["code"] == "the authors' code"].set_index("data")[{"queries": "asked", "J": "J"}[measure]]
    cells = [str(theirs.get(name, "–")) for name in PAPER]
    return "| " + " | ".join(["*the authors' code of ACE, 14 rows (tic tac toe 6)*", *cells]) + " |"


def needed(within: float = 1.25) -> str:
    """Queries until half of the rows are within a ratio of the best known cost, methods by data sets."""
    values = _by_data(score.needed(compared()), f"{within:g}x")
    return _bolded(values, values == values.min(), 0)


def _by_data(lines: pd.DataFrame, measure: str, methods: Sequence[str] | None = None) -> pd.DataFrame:
    values = lines.pivot_table(index="method", columns="data", values=measure, sort=False, dropna=False)
    order = [m for m in METHODS if m in values.index and (methods is None or m in methods)]
    return values.reindex(index=order, columns=[name for name in PAPER if name in values.columns])


def digit(method: str, measure: str, made: bool = False) -> float:
    """A measure of the answer for the first 8, or of the best that the method made itself."""
    found = results()
    line = found[(found["suite"] == "mnist") & (found["row"] == 0) & (found["method"] == method)].iloc[0]
    return float(line["made"][measure] if made else line[measure])


def told() -> str:
    """What each method is given beside labels, and whether it labels the reference."""
    lines = [[f"`{m.name}`", m.told, "yes" if m.labels_reference else ""] for m in METHODS.values()]
    return _table(["method", "told beside labels", "asks for the labels of the reference"], lines)


def trials() -> str:
    """The table of tuning a controller."""
    return _only(markdown(_named("control: trials until a controller passes")))


def trial(method: str, history: str, column: str) -> str:
    """One cell of the table of controllers."""
    table = _named("control: trials until a controller passes")
    row = next(r for r in table.rows if r[0].text.startswith(f"{history} of") and r[1].text == method)
    return row[table.header.index(column)].text


@cache
def _all_tables() -> list[Table]:
    return tables(results())


def _named(title: str) -> Table:
    return next(table for table in _all_tables() if table.title == title)


def _only(text: str) -> str:
    """A table without its title."""
    return text.split("\n\n", 1)[1].rstrip()


def authors() -> str:
    """What the authors' own code reaches on the data sets here, beside our two strategies on the same rows."""
    header = ["data", "rows", "code", "rows asked", "it reports", "valid", "J", "affinity"]
    lines = _authors()
    return _table(header, lines[lines["data"].isin(PAPER)].to_numpy().tolist())


def authors_on(data: str, column: str) -> str:
    """One figure of the authors' own code."""
    lines = _authors()
    return str(lines[(lines["data"] == data) & (lines["code"] == "the authors' code")][column].iloc[0])


def _authors() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "authors.csv", dtype=str, keep_default_na=False)


def penalty_table() -> str:
    """Strategy "penalty" beside the paper's figures, and the least J that is proved."""
    published = score.paper()
    published = published[(published["suite"] == "mixed") & (published["method"] == "penalty")].set_index("data")
    published["J"] = published["d2"] + 5 * published["g1"]
    lines = []
    for line in score.means(mixed()[mixed()["method"] == "penalty"]).to_dict("records"):
        name = line["data"]
        cells = [name.replace("_", " "), str(line["n"])]
        for measure, digits in (("queries", 0), ("d2", 2), ("g1", 2), ("J", 1)):
            theirs = f" ({published.loc[name, measure]:.{digits}f})" if name in published.index else ""
            cells.append(f"{line[measure]:.{digits}f}{theirs}")
        lines.append([*cells, _least(name, line["n"])])
    header = ["", "rows", "queries (paper)", "d2n (paper)", "g1n (paper)", "J (paper)", "least J, proved for"]
    return _table(header, lines)


def _least(name: str, n: int) -> str:
    """The mean of the proved optima of the first n rows, and of how many it is."""
    bounds = _csv("optimum-forest-0.csv")
    part = bounds[(bounds["data"] == name) & (bounds["row"] < n) & bounds["proved"] & np.isfinite(bounds["lower"])]
    return f"{part['lower'].mean():.1f} ({len(part)} rows)" if len(part) else "–"


# -- the proved optimum ----------------------------------------------------------------------------------------


def optimum() -> str:
    """J over the proved optimum beside J over the best known, medians over the shared rows, methods by data sets."""
    bounds, found = _csv("optimum-forest-0.csv"), compared()
    known = score.best_known(found)
    proved = {(b["data"], b["row"]): b["lower"] for b in bounds.to_dict("records") if b["proved"]}
    everything = mixed()[(mixed()["row"] < shared()) & mixed()["valid"]]
    lines = []
    for method in (m for m in METHODS if m in {*found["method"], WHITE}):
        cells = []
        for name in PAPER:
            runs = everything[(everything["method"] == method) & (everything["data"] == name)]
            costs = list(zip(runs["row"], runs["J"], strict=True))
            by_optimum = [J / proved[name, row] for row, J in costs if (name, row) in proved]
            by_known = [J / known["mixed", name, row] for row, J in costs]
            both = [f"{np.median(values):.2f}" if values else "–" for values in (by_optimum, by_known)]
            cells.append(" / ".join(both))
        lines.append([method, *cells])
    share = [f"{proved_share(name):.0%}" for name in PAPER]
    return _table(["method", *PAPER], [*lines, ["*rows proved*", *share]])


def extreme_gap(method: str, which: str) -> str:
    """The least or the greatest median of J over the proved optimum of the data sets, and which it is."""
    bounds = _csv("optimum-forest-0.csv")
    found = mixed()[(mixed()["method"] == method) & mixed()["valid"]]
    proved = bounds[bounds["proved"]]
    both = found.merge(proved[["data", "row", "lower"]], on=["data", "row"])
    medians = (both["J"] / both["lower"]).groupby(both["data"]).median()
    name = str(medians.idxmin() if which == "min" else medians.idxmax())
    return f"{medians[name]:.2f} ({name.replace('_', ' ')})"


def proved_share(data: str) -> float:
    """Of how many of the rows that were tried the least cost is proved; not a number where none was."""
    bounds = _csv("optimum-forest-0.csv")
    return float(bounds[bounds["data"] == data]["proved"].mean())


# -- cost against queries, many rows -----------------------------------------------------------------------------


@cache
def searches() -> pd.DataFrame:
    """What `anytime.py` has measured on the forest, with the best known of each row."""
    return anytime.with_best_known(_csv("anytime-forest-0.csv"), has_known=True)


def cost_by_queries(budgets: Sequence[int] = (10, 15, 20, 30, 40, 60, 100, 150)) -> str:
    """Median J over the best known after so many queries, of "feasible", with and without outcomes, and "nearest"."""
    found = anytime.ratios(searches())
    found = found[found["method"].isin(("feasible", "labels", "nearest"))]
    order = [name for name in PAPER if name in set(found["data"])]
    found = found.sort_values("data", key=lambda names: names.map(order.index), kind="stable")
    named = {"labels": "feasible-labels"}
    columns = [f"@{b}" for b in budgets]
    lines = [[d, named.get(m, m), *cells] for d, m, *cells in found[["data", "method", *columns]].to_numpy().tolist()]
    return _table(["data", "method", *map(str, budgets)], lines)


def against_nearest(which: str) -> str:
    """Where "feasible" is "ahead" of "nearest", or "behind" it, by the paired bootstrap: after which queries."""
    lines = anytime.behind(searches())
    lines = lines[lines["against"] == "nearest"].set_index("data")
    sign = {"ahead": "<", "behind": ">"}[which]
    return _spans({n: [b for b in anytime.BUDGETS if sign in str(lines.loc[n, f"@{b}"])] for n in PAPER})


def nearest_lower() -> str:
    """Where the median of "nearest" is below that of "feasible", after which queries."""
    medians = {
        place: [float(np.median(anytime.ratio(part, b))) for b in anytime.BUDGETS]
        for place, part in searches().groupby(["data", "method"])
    }
    found = {}
    for name in PAPER:
        both = zip(anytime.BUDGETS, medians[name, "nearest"], medians[name, "feasible"], strict=True)
        found[name] = [b for b, theirs, ours in both if theirs < ours - 0.005]
    return _spans(found)


def _spans(found: dict[str, list[int]]) -> str:
    """Data sets with numbers of queries, neighbours drawn together: "kc2 (60 to 150)"."""
    words = []
    for name, budgets in found.items():
        runs: list[list[int]] = []
        for b in budgets:
            at = anytime.BUDGETS.index(b)
            if runs and at and anytime.BUDGETS[at - 1] == runs[-1][-1]:
                runs[-1].append(b)
            else:
                runs.append([b])
        texts = [f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
        if texts:
            words.append(f"{name} ({', '.join(texts)})")
    return _listed(words)


def unseen(data: str, method: str = "feasible-labels") -> float:
    """What it costs to make no step that nobody would see: mean J over that of `anytime.py`, same rows."""
    ours = mixed()[(mixed()["data"] == data) & (mixed()["method"] == method)].set_index("row")["J"]
    named = {"feasible-labels": "labels"}.get(method, method)
    free = searches()[(searches()["data"] == data) & (searches()["method"] == named)].set_index("row")["J60"]
    both = pd.concat([ours, free], axis=1, join="inner").to_numpy(dtype=float)
    both = both[np.isfinite(both).all(axis=1)]
    return float(both[:, 0].mean() / both[:, 1].mean())


def least_found(queries: int, method: str = "feasible") -> float:
    """The least share of rows with a hit after so many queries, of the data sets."""
    lines = searches()[searches()["method"] == method]
    return float(lines.groupby("data")[f"J{queries}"].agg(lambda J: np.isfinite(J).mean()).min())


def extreme_search(queries: int, which: str, method: str = "feasible") -> str:
    """The least or the greatest median of J over the best known of the data sets, and which it is."""
    lines = searches()[searches()["method"] == method]
    medians = {str(name): float(np.median(anytime.ratio(part, queries))) for name, part in lines.groupby("data")}
    name = (min if which == "min" else max)(medians, key=lambda n: medians[n])
    return f"{medians[name]:.2f} ({name.replace('_', ' ')})"


def n_within(queries: int, within: float, method: str = "feasible") -> int:
    """On how many data sets the median over rows of J over the best known is at most this."""
    lines = searches()[searches()["method"] == method]
    return sum(float(np.median(anytime.ratio(part, queries))) <= within for _, part in lines.groupby("data"))


def n_searched() -> int:
    """How many rows of each data set `anytime.py` has at least."""
    return int(searches().groupby(["data", "method"]).size().min())


def refused(table: str, filter: str) -> float:
    """The share of rows with one value from another row that a filter refuses (`plausible.py`)."""
    lines = _csv("plausible.csv")
    found = lines[(lines["table"] == table) & (lines["filter"] == filter)]
    return 1 - float(found["passes one"].iloc[0])


def many_categories(measure: str, which: str) -> float:
    """How much ten thousand categories take over ten, the least or the greatest ("min", "max") of the ways."""
    wide = _csv("categories.csv").pivot_table(index="way", columns="categories", values=measure)
    return float((wide[10_000] / wide[10]).agg(which))


def pooled() -> str:
    """What 10 queries with shared evidence are worth beside 60 alone, over the second hundred rows."""
    columns: dict[str, list[str]] = {}
    for name in HARD:
        lines = _csv(f"many-{name}-0.csv")
        ways = {way: part.set_index("row") for way, part in lines[lines["row"] >= 100].groupby("way")}
        alone = ways["alone"]

        def cell(J: pd.Series[float]) -> str:
            found = np.isfinite(J)
            return f"{J[found].mean():.1f} ({found.mean():.0%})"

        taught = ways["taught"]["J_few"]
        both = np.isfinite(taught) & np.isfinite(alone["J"])
        ratio_of_means = taught[both].mean() / alone["J"][both].mean()
        columns[name.replace("_", " ")] = [
            f"{alone['J'][np.isfinite(alone['J'])].mean():.1f}",
            cell(alone["J_few"]),
            cell(taught),
            cell(ways["ten"]["J_few"]),
            f"{ratio_of_means:.2f} / {(taught / alone['J'])[both].median():.2f}",
        ]
    names = (
        "60 queries alone", "10 queries alone", "10 queries, *taught*", "10 queries, *ten*",
        "*taught* over 60 alone: mean / median",
    )  # fmt: skip
    return _table(["", *columns], [[name, *(c[i] for c in columns.values())] for i, name in enumerate(names)])


# -- writing ---------------------------------------------------------------------------------------------------


@cache
def groups() -> str:
    """How often a comparison of two groups finds a difference, and how large one is found on average."""
    known = _csv("groups.csv").dropna(subset="p").query("measure != 'queries'")  # all of them spend their budget
    lines = []
    for way in known["way"].unique():
        told = dict(iter(known[known["way"] == way].groupby("measure")))
        small = [f"{int((told[m]['p'] <= 0.05).sum())} of {len(told[m])}" for m in ("found", "cost", "changes")]
        lines.append([way, *small, f"{told['found']['difference'].mean():+.2f}"])
    return _table(["experiment", "share found", "cost", "changes", "difference in the share found"], lines)


def _csv(name: str) -> pd.DataFrame:
    return pd.read_csv(RESULTS / name)


def _number(value: float, digits: int) -> str:
    return "–" if not np.isfinite(value) else f"{value:,.{digits}f}".replace(",", " ")


def _bolded(values: pd.DataFrame, is_best: pd.DataFrame, digits: int) -> str:
    """Methods by data sets, the best in bold."""
    lines = []
    for method, numbers, bold in zip(values.index, values.to_numpy(), is_best.to_numpy(), strict=True):
        texts = [_number(number, digits) for number in numbers]
        lines.append([str(method), *(f"**{t}**" if b and t != "–" else t for t, b in zip(texts, bold, strict=True))])
    return _table(["method", *values.columns], lines)


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = tuple(tuple(Cell(text) for text in line) for line in lines)
    return _only(markdown(Table("", tuple(header), rows)))
