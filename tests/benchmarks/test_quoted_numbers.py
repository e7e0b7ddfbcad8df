"""Numbers in sentences of README and docs are what their files say: page, words with gaps for numbers, computation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from acex.arrays import FloatArray
from acex.search import belief_inputs
from benchmarks import score
from benchmarks.published import PAPER
from benchmarks.statistics import bootstrap, holm, sign_test
from benchmarks.suite import RESULTS, ROOT, read
from benchmarks.suites import SUITES, anytime, comparison, optimum, paper, pooling
from benchmarks.suites.ablation import ablation_tables
from benchmarks.suites.plausible import SIMULATED, USERS
from benchmarks.table import Table, listed

OF_THE_PAPER = ["feasible", "penalty", "growing-spheres", "moc", "baycon"]
WEIGHTS = Path(belief_inputs.__file__).with_name("weights.npz")


@cache
def lines(suite: str) -> pd.DataFrame:
    return SUITES[suite].read()


@cache
def searches(seed: int = 0) -> pd.DataFrame:
    return anytime.with_best_known(lines(f"anytime-forest-{seed}"), has_known=seed == 0)


def few_values() -> list[float]:
    """Shares of columns with few values that are recognised, by rows; other columns that are, and all others."""
    counts = pd.read_csv(ROOT / "benchmarks/results/few_values.csv")
    few, others = counts.loc[counts["is few"]], counts.loc[~counts["is few"]]
    parts = [few[few["rows"] == size] for size in ("200 and more", "50 to 199", "12 to 49")]
    return [*(part["sum"].sum() / part["size"].sum() for part in parts), others["sum"].sum(), others["size"].sum()]


def ratio(measure: str, method: str, other: str, data: str | None = None) -> float:
    """The mean of a measure over rows for which both methods have one, over that of the other method."""
    part = lines("mixed")[lines("mixed")["data"].isin([data] if data else PAPER)]
    one, two = (part[part["method"] == m].set_index(["data", "row"])[measure] for m in (method, other))
    both = pd.concat([one, two], axis=1, join="inner").dropna().to_numpy(dtype=float)
    return float(both[:, 0].mean() / both[:, 1].mean())


def both(measure: str, method: str, other: str, data: Sequence[str] = PAPER) -> FloatArray:
    """A measure of both methods on the rows where both have one, (n, 2)."""
    part = lines("mixed")[lines("mixed")["data"].isin(data)]
    one, two = (part[part["method"] == m].set_index(["data", "row"])[measure] for m in (method, other))
    return pd.concat([one, two], axis=1, join="inner").dropna().to_numpy(dtype=float)


def saved(measure: str, method: str, other: str, without: str = "") -> tuple[float, float, float]:
    """By how much the sum of a measure is lower than that of the other method, and its 95% bootstrap interval."""
    values = both(measure, method, other, [name for name in PAPER if name != without])
    chosen = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    sums = values[chosen].sum(axis=1)
    high, low = np.percentile(sums[:, 0] / sums[:, 1], [2.5, 97.5])
    return 1 - float(values[:, 0].sum() / values[:, 1].sum()), 1 - float(low), 1 - float(high)


def times(method: str, other: str, data: str) -> tuple[float, float, float]:
    """The ratio of costs on the same rows of a data set (geometric mean) and its 95% interval."""
    values = np.log(both("J", method, other, [data]))
    apart = values[:, 0] - values[:, 1]
    low, high = bootstrap(apart, np.arange(len(apart), dtype=float))
    return float(np.exp(apart.mean())), float(np.exp(low)), float(np.exp(high))


@cache
def comparison_tables() -> dict[str, Table]:
    return comparison.tables(lines("comparison"))


def compared(method: str, queries: int = 60, panel: str = "filter") -> tuple[str, str, str, str]:
    """The ratio of costs of acex and this method, its 95% interval over tables, and on how many rows both are known."""
    for row in comparison_tables()[f"against-{panel}"].rows:
        if row[:2] == [method, f"{queries}"]:
            low, high = row[9].split("–")
            return row[7], low, high, row[6]
    raise KeyError(method)


def best_ranked() -> str:
    """The method of others, ACE apart, that has the best rank at 60 queries where plausible hits count."""
    others = [row for row in comparison_tables()["summary"].rows if row[0] not in comparison.NAMES.values()]
    return min(others, key=lambda row: float(row[5].split(" / ")[1]))[0]


def success(queries: int, panel: str = "filter") -> tuple[str, str, str]:
    """The share of rows for which acex has a counterfactual after so many queries, and its interval, in percent."""
    table = comparison_tables()[f"budgets-{panel}"]
    cell = table.rows[0][table.header.index(f"{queries}")]
    assert table.rows[0][0] == "acex"
    found, low, high = cell.replace("%", "").replace("(", "").replace(")", "").replace("–", " ").split()
    return found, low, high


def on_kc2(panel: str = "filter", queries: int = 60) -> tuple[int, int, float, float]:
    """On how many rows of kc2 nearest is cheaper than acex and costlier; p, and p after Holm's correction."""
    J = comparison.costs(lines("comparison"), panel, f"J{queries}")[["feasible", "nearest"]].dropna()
    tests = {
        str(data): sign_test(part["feasible"].to_numpy(), part["nearest"].to_numpy())
        for data, part in J.groupby(level="data")
    }
    corrected = dict(zip(tests, holm(np.array([p for _, _, p in tests.values()])), strict=True))
    less, more, p = tests["kc2"]
    return more, less, p, corrected["kc2"]


def n_behind(method: str, queries: int, panel: str = "filter") -> int:
    """On how many tasks acex is significantly behind a method."""
    rows = comparison_tables()[f"against-{panel}"].rows
    return sum(int(row[10].split(" / ")[1]) for row in rows if row[:2] == [method, f"{queries}"])


LARGER = "acex, 150 queries"


def n_behind_others() -> int:
    """The same for all other methods, both panels and both budgets together."""
    names = {row[0] for row in comparison_tables()["against-none"].rows} - {"acex with outcomes", LARGER}
    return sum(n_behind(name, b, panel) for name in names for b in comparison.SHOWN for panel in comparison.PANELS)


def outranked(panel: str) -> str:
    """The tasks on which another method has a better mean rank than acex."""
    table = comparison_tables()[f"tasks-{panel}"]
    return listed(f"{row[0]} ({row[4]})" for row in table.rows if float(row[5]) < float(row[3]))


def in_runs(budgets: Sequence[int]) -> str:
    """Budgets as text: those that follow each other as "10 to 40"."""
    runs: list[list[int]] = []
    for budget in budgets:
        place = anytime.BUDGETS.index(budget)
        if runs and place and anytime.BUDGETS[place - 1] == runs[-1][-1]:
            runs[-1].append(budget)
        else:
            runs.append([budget])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def ahead_of(rival: str, sign: str) -> str:
    """The data sets where acex is ahead (<) or behind (>) in the mean of log J, with the budgets."""
    found = anytime.behind(searches())
    out = []
    for line in found[(found["method"] == "feasible") & (found["against"] == rival)].to_dict("records"):
        at = [b for b in anytime.BUDGETS if str(line.get(f"@{b}", "")).endswith(sign)]
        if at:
            out.append(f"{line['data']} ({in_runs(at)})")
    return "; ".join(name.replace("_", " ") for name in out) or "none"


def cheaper(method: str, other: str) -> str:
    """The data sets on which the 95% interval of the ratio of costs (geometric mean, same rows) is below 1."""
    names = []
    for name in PAPER:
        values = np.log(both("J", method, other, [name]))
        apart = values[:, 0] - values[:, 1]
        if len(apart) and bootstrap(apart, np.arange(len(apart), dtype=float))[1] < -1e-6:
            names.append(name)
    return listed(names)


def best_scores(method: str, among: Sequence[str]) -> int:
    """On how many data sets a method has the best score, normalised over these methods alone."""
    means = score.means(paper.shared(lines("mixed")))
    blocks = [block.set_index("method") for _, block in means[means["method"].isin(among)].groupby("data")]
    return sum(bool(np.isclose(score.scores(b)[list(b.index).index(method)], score.scores(b).min())) for b in blocks)


def median(method: str, data: str, queries: int, seed: int = 0) -> float:
    part = searches(seed)
    part = part[(part["method"] == method) & (part["data"] == data)]
    return float(np.median(anytime.ratio(part, queries)))


def within(method: str, queries: int, most: float) -> int:
    return sum(median(method, name, queries) <= most for name in PAPER)


def least_found(method: str, queries: int) -> float:
    part = searches()[searches()["method"] == method]
    return float(part.groupby("data")[f"J{queries}"].agg(lambda J: np.isfinite(J).mean()).min())


def gap(data: str) -> float:
    runs = lines("mixed").query("method == 'feasible' and valid and data == @data")
    proved = optimum.proved()
    pairs = zip(runs.row, runs.J, strict=True)
    return float(np.median([J / proved[data, row] for row, J in pairs if (data, row) in proved]))


def image(method: str) -> float:
    """The cost of the first image."""
    return float(lines("mnist").query("row == 0").set_index("method")["J"][method])


def trial(data: str, method: str, column: str) -> str:
    table = paper.control_tables(lines("control"))["trials"]
    row = next(row for row in table.rows if row[:2] == [f"{data} of 30 pass", method])
    return row[table.header.index(column)]


def one(suite: str, data: str, method: str, column: str) -> Any:
    return lines(suite).query("data == @data and method == @method")[column].iloc[0]


def categories(column: str, which: str) -> float:
    wide = lines("categories").pivot_table(index="method", columns="data", values=column)
    return float((wide["10000"] / wide["10"]).agg(which))


def needless(queries: str, column: str) -> int:
    return int(lines("needless").query("method == @queries")[column].sum())


def first_hit(method: str) -> float:
    """The share of rows whose first hit is the second query or earlier."""
    return float(np.mean([bool(c) and c[0][0] <= 2 for c in lines("mixed").query("method == @method")["curve"]]))


def asks() -> dict[str, float]:
    speed = lines("speed").query("method == 'feasible' and data != 'wide'")
    return dict(zip(speed["data"], speed["ratio"], strict=True))


def dice(which: str) -> float:
    """DiCE's cost over ours after 30 queries: the least or greatest median by table and range."""
    wide = lines("ranges").set_index(["data", "row", "method"])[["cost", "after_30"]].unstack("method")
    ratios = (wide["cost", "dice"] / wide["after_30", "number"]).replace(np.inf, np.nan).dropna()
    names = ratios.index.get_level_values("data").str.split(", ")
    return float(ratios.groupby([names.str[0], names.str[2]]).median().agg(which))


def row_seconds() -> float:
    return float(one("throughput", "generated", "1", "seconds") / one("throughput", "generated", "1", "n_rows"))


def authors(data: str, column: str) -> str:
    return str(paper.authors_file().query('data == @data and code == "the authors\' code"')[column].iloc[0])


def mnist_counts(method: str) -> list[list[str]]:
    return [row for row in paper.mnist_tables(lines("mnist"))["counts"].rows if row[0] == method]


def ablated(variant: str, column: int) -> str:
    """A cell of the table of repairs."""
    return next(row[column] for row in ablation_tables(lines("ablation"))["repairs"].rows if row[0] == variant)


def trained() -> tuple[float, float, float]:
    rounds = json.loads(WEIGHTS.with_suffix(".json").read_text())["rounds"]
    candidates = sum(part["candidates"] for part in rounds)
    return candidates / 1e6, rounds[-1]["loss before"][0], rounds[-1]["loss after"][0]


def looked_ahead(choice: str) -> list[str]:
    """Mean advantage of a choice without help, before and after the first hit, with its standard error."""
    chosen = pd.read_csv(RESULTS / "rollouts.csv.gz").query("help == 'none'")
    of = chosen[[choice in kinds.split() for kinds in chosen["choice"]]].groupby("has_hit")["advantage"]
    return [f"{part.mean():+.3f} ({part.std(ddof=0) / len(part) ** 0.5:.3f})" for _, part in of]


def other_belief(method: str, help_: str) -> list[str]:
    """Mean log cost of a belief against revision 6, with its standard error."""
    return against_revision_6(pd.read_csv(RESULTS / "beliefs.csv").query("help == @help_"), method)


def taught(n: int, *data: str) -> list[list[str]]:
    """Mean and median of 10 or 20 taught queries over 60 alone, and the share of rows more than twice as expensive."""
    table = pooling.tables(lines("pooling"))["second-hundred"]
    line = {10: table.rows[-2], 20: table.rows[-1]}[n]
    return [line[table.header.index(name)].split(" / ") for name in data]


def sharing() -> list[float]:
    """CPU time of explanations with earlier answers over that without: least and greatest, and that on breast."""
    ratio = lines("sharing").set_index("data")["ratio"]
    others = ratio.drop("breast")
    return [others.min(), others.max(), ratio["breast"]]


def twice_as_expensive(data: str) -> int:
    """How many rows of the second hundred cost more than twice as much with 10 taught queries as with 60 alone."""
    part = lines("pooling").query("data == @data and row >= 100").set_index("row")
    ratio = part[part["method"] == "taught"]["J_few"] / part[part["method"] == "alone"]["J"]
    return int((ratio[np.isfinite(ratio)] > 2).sum())


def added(expert: str) -> list[str]:
    """The change of the network's log loss with another model of P(hit) beside it, with its standard error."""
    part = pd.read_csv(RESULTS / "experts.csv").query("expert == @expert")
    return [f"{change:+.1%} ({100 * error:.1f})" for change, error in zip(part["added"], part["error"], strict=True)]


def correlated_groups(method: str, data: str) -> list[str]:
    """Mean log cost against revision 6, with its standard error."""
    return against_revision_6(pd.read_csv(RESULTS / "correlated_groups.csv").query("data == @data"), method)


def outcome_hints(method: str, data: str) -> list[str]:
    """Mean log cost of another forest of outcomes against revision 6, with its standard error."""
    return against_revision_6(pd.read_csv(RESULTS / "outcome_hints.csv").query("data == @data"), method)


def pooled_hints(method: str) -> list[Any]:
    """Rows, mean log cost by task with its standard error, and rows at more than twice the cost of 60 queries alone."""
    J = pd.read_csv(RESULTS / "pooled_hints.csv").pivot(index=["data", "task", "row"], columns="method", values="J")
    J = J.dropna(subset=[method])
    by_task = (J[method] / J["revision 6"]).apply(np.log).groupby(level=["data", "task"]).mean()
    cost = f"{by_task.mean():+.2f} ({by_task.std(ddof=0) / len(by_task) ** 0.5:.2f})"
    return [len(J), cost, *(f"{(J[name] > 2).mean():.0%}" for name in (method, "revision 6"))]


def pooled_now() -> list[Any]:
    J = pd.read_csv(RESULTS / "pooled_hints.csv").query("method == 'revision 6'")
    return [J["task"].nunique(), J["J"].median(), f"{(J['J'] > 2).mean():.0%}"]


def pooled_neighbours(method: str) -> list[str]:
    """Mean log cost by task against 150 neighbours, rows at more than twice the cost of 60 queries alone, CPU time."""
    wide = pd.read_csv(RESULTS / "pooled_neighbours.csv").pivot(index=["data", "task", "row"], columns="method")
    J, cpu = wide["J"], wide["cpu"]
    by_task = (J[method] / J["150"]).apply(np.log).groupby(level=["data", "task"]).mean()
    cost = f"{by_task.mean():+.2f} ({by_task.std(ddof=0) / len(by_task) ** 0.5:.2f})"
    return [cost, f"{(J[method] > 2).mean():.0%}", f"{cpu[method].mean() / cpu['150'].mean():.2f}"]


def fewer_neighbours(data: str) -> str:
    """Mean log cost of ten taught queries with 60 neighbours against 150, with its standard error."""
    fewer = pd.read_csv(RESULTS / "pooling60.csv").query("data == @data").set_index("row")["J_few"]
    usual = lines("pooling").query("data == @data and method == 'taught'").set_index("row")["J_few"]
    logs = (fewer / usual.loc[fewer.index])[np.isfinite(fewer) & np.isfinite(usual.loc[fewer.index])].apply(np.log)
    return f"{logs.mean():+.2f} ({logs.std() / len(logs) ** 0.5:.2f})"


def apart(name: str) -> list[str]:
    """Medians with outcomes at 5, 10 and 20 queries where the model was trained on other rows."""
    lines = anytime.current("apart", 0).query("data == @name and method == 'labels'")
    return [f"{np.median(anytime.ratio(lines, budget)):.2f}" for budget in (5, 10, 20)]


def odds_trained_again() -> list[str]:
    """Log loss, trained again and in use, area under the curve in the same order, and bins that hold."""
    searches, loss, area, hold = anytime.current("forest", 1), [], [], []
    best = searches.groupby(["data", "row"])["best"].first().rename("best").reset_index()
    for name in ("odds", "outlook-forest-1"):
        stated = read(RESULTS / f"{name}.csv")
        hold.append(str((anytime.calibration(searches, stated)["holds"] == "yes").sum()))
        stated = stated.merge(best, on=["data", "row"])
        for share in anytime.SHARES:
            exists, chance = stated["best"] <= (1 - share) * stated["J"], stated[f"chance{share}"]
            loss.append(f"{log_loss(exists, chance):.3f}")
            area.append(f"{roc_auc_score(exists, chance):.2f}")
    return [*loss, *area, *hold]


def simulated_bins() -> list[int]:
    """How many of the bins on simulated tasks hold, and of how many; the others are within 0.1 of the share."""
    holds = [row[-1] for row in SUITES["outlook-simulated"].tables(lines("outlook-simulated"))["calibration"].rows]
    assert set(holds) <= {"yes", "nearly"}
    return [holds.count("yes"), len(holds)]


def against_revision_6(compared: pd.DataFrame, method: str) -> list[str]:
    """Mean log cost of a method against revision 6 at each budget, with its standard error."""
    out = []
    for budget in compared.filter(regex="^J"):
        J = compared.pivot(index=["data", "row"], columns="method", values=budget)
        difference = np.log((J[method] / J["revision 6"]).dropna().to_numpy())
        out.append(f"{difference.mean():+.2f} ({difference.std() / len(difference) ** 0.5:.2f})")
    return out


QUERIES, COST = ("queries", "feasible", "penalty"), ("J", "feasible", "penalty")
SENTENCES: list[tuple[str, str, Callable[[], Sequence[Any]]]] = [
    (
        "docs/research.md",
        "With the whole budget the first is missed on {}, the second on {}; with defaults, which stop early, on {} "
        "and {}. The median of the changes is more than 1.5 times that of the best known on {}.",
        lambda: (*unprepared("whole budget"), *unprepared("defaults"), many_changes()),
    ),
    (
        "docs/many.md",
        "of a hundred, {} on diabetes, {} on blood and {} on german credit cost more than twice",
        lambda: [twice_as_expensive(data) for data in ("diabetes", "blood", "german_credit")],
    ),
    (
        "docs/research.md",
        "breast {} and {}, kc2 {} and {}, diabetes {} and {}, blood {} and {}, german credit {} and {} ([many",
        lambda: [J for cells in taught(10, "breast", "kc2", "diabetes", "blood", "german credit") for J in cells[:2]],
    ),
    (
        "docs/research.md",
        "a row it is breast {} and {}, kc2 {} and {}, diabetes {} and {}, blood {} and {}, german credit {} and {}:",
        lambda: [J for cells in taught(20, "breast", "kc2", "diabetes", "blood", "german credit") for J in cells[:2]],
    ),
    (
        "docs/research.md",
        "takes {:.2f} to {:.2f} times as long for 30 queries on four of the data sets and {:.2f} times on breast",
        sharing,
    ),
    (
        "docs/many.md",
        "With 20 queries a row they cost {}, {} and {} times as much, and {}, {} and {} of the rows",
        lambda: [cells[i] for i in (0, 2) for cells in taught(20, "diabetes", "blood", "german credit")],
    ),
    (
        "docs/research.md",
        "are {} of 100 rows on breast, {} on kc2, {} on diabetes, {} of 97 on blood (three have none after 10 "
        "queries) and {} on german credit.",
        lambda: [twice_as_expensive(data) for data in ("breast", "kc2", "diabetes", "blood", "german_credit")],
    ),
    *(
        (
            "docs/research.md",
            f"| {method} | {data} | {{}} | {{}} | {{}} |",
            lambda method=method, data=data: correlated_groups(method, data),
        )
        for method in ("columns like a random one", "the same, weighed by saving and risk", "cheapest row, then halves")
        for data in ("wide", "sparse")
    ),
    *(
        (
            "docs/research.md",
            f"| {method} | {data} | {{}} | {{}} | {{}} | {{}} |",
            lambda method=method, data=data: outcome_hints(method, data),
        )
        for method in ("leaves of three rows", "leaves of five rows", "mean of leaves of two and of ten rows")
        for data in ("usual", "noisy", "apart", "noisy and apart", "sparse and apart")
    ),
    *(
        ("docs/research.md", f"| {method} | {{}} | {{}} | {{}} | {{}} |", lambda method=method: pooled_hints(method))
        for method in pd.read_csv(RESULTS / "pooled_hints.csv")["method"].unique()
        if method != "revision 6"
    ),
    *(
        ("docs/research.md", f"| {method} | {{}} | {{}} | {{}} |", lambda method=method: pooled_neighbours(method))
        for method in pd.read_csv(RESULTS / "pooled_neighbours.csv")["method"].unique()
    ),
    (
        "docs/research.md",
        "of {} on diabetes, {} on kc2, {} on breast, {} on blood and {} on german credit: better where",
        lambda: [fewer_neighbours(data) for data in ("diabetes", "kc2", "breast", "blood", "german_credit")],
    ),
    ("docs/research.md", "In {} simulated tasks (noisy and usual)", lambda: pooled_now()[:1]),
    (
        "docs/research.md",
        "has a median of {:.2f}, and {} of the rows cost more than twice as much",
        lambda: pooled_now()[1:],
    ),
    (
        "docs/research.md",
        "miss the goal ({} / {} / {}, {} / {} / {}, {} / {} / {})",
        lambda: [number for name in ("diabetes", "blood", "german_credit") for number in apart(name)],
    ),
    *(
        ("docs/research.md", " | {} | {} | {} | {} | {} |", lambda expert=expert: added(expert))
        for expert in pd.read_csv(RESULTS / "experts.csv")["expert"].unique()
    ),
    (
        "docs/research.md",
        "loss {} / {} / {} against {} / {} / {}, area under the ROC curve {} / {} / {} against {} / {} / {}, and "
        "{} of 30 bins hold instead of {}.",
        odds_trained_again,
    ),
    (
        "docs/research.md",
        "interval in {} of {} bins and within 0.1 of the share in the others.",
        simulated_bins,
    ),
    *(
        (
            "docs/research.md",
            f"| {words} | {{}} | {{}} | {{}} | {{}} |",
            lambda words=words: against_revision_6(pd.read_csv(RESULTS / "optimism.csv"), words),
        )
        for words in ("slope", "slope, not for rows", "level and slope, not for rows")
    ),
    *(
        ("docs/research.md", f"| {words} | {{}} | {{}} |", lambda choice=choice: looked_ahead(choice))
        for words, choice in (
            ("less patience, or P(hit) to the power of 0.5", "bold"),
            ("more patience, or the saving to the power of 0.5", "safe"),
            ("best reference row", "row"),
            ("random, by expected saving", "rand"),
        )
    ),
    *(
        (
            "docs/research.md",
            f"| {words} | {help_} | {{}} | {{}} | {{}} | {{}} | {{}} |",
            lambda method=method, help_=help_: other_belief(method, help_),
        )
        for words, method, help_ in (
            ("three new networks", "diverse", "none"),
            ("the same, odds of rows less certain", "diverse, rows corrected", "none"),
            ("mean of these and today's, odds of rows less certain", "mean of both, rows corrected", "none"),
            ("three new networks", "diverse", "outcomes"),
            ("mean of these and today's, odds of rows less certain", "mean of both, rows corrected", "outcomes"),
        )
    ),
    (
        "README.md",
        "With at most 60 queries its counterfactuals cost {} times as much as those of ACE, the published method it "
        "implements, with our repairs (95% interval over 20 tables {} to {}; {} rows where both found one), and {} "
        "times as much as those of `{}`, the best-ranked method of others ({} to {}; {} rows)",
        lambda: (*compared("ACE"), compared("nearest")[0], best_ranked(), *compared("nearest")[1:]),
    ),
    (
        "README.md",
        "After 30 queries it has a plausible counterfactual for {}% of the rows (95% interval {}% to {}%). So does the "
        "best of 30 random rows of the data, but at {:.0f} times the cost.",
        lambda: (*success(30), 1 / float(compared("random", 30)[0])),
    ),
    (
        "README.md",
        "kc2, `nearest` is cheaper on {} of {} rows after 60 queries.",
        lambda: (on_kc2()[0], sum(on_kc2()[:2])),
    ),
    (
        "docs/decisions.md",
        'takes {:.0%} fewer queries (95% interval {:.0%} to {:.0%}) than "penalty", and the sum of its costs is {:.0%} '
        "lower ({:.0%} to {:.0%}; without kc2 {:.0%}, {:.0%} to {:.0%})",
        lambda: (*saved(*QUERIES), *saved(*COST), *saved(*COST, "kc2")),
    ),
    (
        "docs/benchmark.md",
        "the answers of acex cost {:.2f} times as much on breast (95% interval {:.2f} to {:.2f}), "
        "{:.2f} times on kc2 ({:.2f} to {:.2f}) and {:.2f} times on blood ({:.2f} to {:.2f})",
        lambda: [value for name in ("breast", "kc2", "blood") for value in times("feasible", "nearest", name)],
    ),
    (
        "docs/benchmark.md",
        "On kc2 it is cheaper on {} and costlier on {} rows after 60 queries where plausible hits count (p = {:.3f}, "
        "after Holm's correction over the tasks {:.2f}), and on {} and {} where any hit counts ({:.3f}, {:.2f})",
        lambda: (*on_kc2(), *on_kc2("none")),
    ),
    (
        "docs/benchmark.md",
        "After 150 queries, {} and {} rows, the difference is significant ({:.2f} after the correction)",
        lambda: (*on_kc2(queries=150)[:2], on_kc2(queries=150)[3]),
    ),
    (
        "docs/benchmark.md",
        "Another method has the better mean rank at 60 queries on {} where any hit counts, and on {} where plausible "
        "hits count.",
        lambda: [outranked(panel) for panel in comparison.PANELS],
    ),
    (
        "docs/benchmark.md",
        "behind acex with outcomes, which has more information, on {} tasks with 30 queries and on {} with 60 where "
        "plausible hits count, and behind the other methods on {}. After 60 queries, acex with a budget of 150 is "
        "ahead of acex with a budget of 60 on {} tasks, because the smaller budget reserves some queries for checks.",
        lambda: (
            n_behind("acex with outcomes", 30),
            n_behind("acex with outcomes", 60),
            n_behind_others(),
            n_behind(LARGER, 60),
        ),
    ),
    (
        "docs/benchmark.md",
        "`feasible` is ahead of `nearest`, after so many queries, on {}; behind on {}. Of `nearest` with the filter it "
        "is ahead on {}; behind on {}.",
        lambda: [ahead_of(rival, sign) for rival in ("nearest", "nearest-filter") for sign in "<>"],
    ),
    ("docs/benchmark.md", "over the first {} rows of each data set", lambda: [len(shared_rows())]),
    (
        "docs/benchmark.md",
        "within a fifth of the paper's but for {}. `feasible` uses fewer in {} of 16 of these lines.",
        lambda: fixed_queries(),
    ),
    ("docs/benchmark.md", "test, with {} seeds or more where the paper has 100", lambda: [fixed_seeds()]),
    (
        "docs/benchmark.md",
        "the best score on {} of eight data sets. It uses {:.0%} fewer queries than `penalty` (95% interval {:.0%} to "
        "{:.0%}), and the sum of its costs is {:.0%} lower ({:.0%} to {:.0%}), without kc2 {:.0%} ({:.0%} to {:.0%})",
        lambda: (best_scores("feasible", OF_THE_PAPER), *saved(*QUERIES), *saved(*COST), *saved(*COST, "kc2")),
    ),
    (
        "docs/benchmark.md",
        "on kc2 it uses {:.0%} more for {:.0%} lower cost",
        lambda: (ratio(*QUERIES, "kc2") - 1, 1 - ratio(*COST, "kc2")),
    ),
    (
        "docs/benchmark.md",
        "Growing Spheres on {}; MOC on {}; BayCon on {}.",
        lambda: [cheaper(rival, "feasible") for rival in ("growing-spheres", "moc", "baycon")],
    ),
    (
        "docs/benchmark.md",
        "the best score of `feasible` is that of {} data sets, and `nearest` has that of {}.",
        lambda: [best_scores(method, [*OF_THE_PAPER, "nearest"]) for method in ("feasible", "nearest")],
    ),
    (
        "docs/benchmark.md",
        "It is cheaper on the same rows on {}, and `feasible` is on {}.",
        lambda: [cheaper(*pair) for pair in (("nearest", "feasible"), ("feasible", "nearest"))],
    ),
    (
        "docs/benchmark.md",
        "It is cheaper than `nearest` on {}, and costlier on {};",
        lambda: [cheaper(*pair) for pair in (("feasible-labels", "nearest"), ("nearest", "feasible-labels"))],
    ),
    (
        "docs/benchmark.md",
        "up to {} for a row, where `feasible` stops at 60. It has no filter for plausibility; its affinity is "
        "nevertheless "
        "the higher one on {} of the eight, and the lower one on {}.",
        lambda: (
            mixed().query("method == 'nearest'")["queries"].max(),
            *((sign * affinity_ahead("nearest", "feasible") > 1e-9).sum() for sign in (1, -1)),
        ),
    ),
    (
        "docs/benchmark.md",
        "the fewest queries on {} data sets",
        lambda: [(by_data("queries").drop(columns=["gradient", "treecf"]).idxmin(axis=1) == "feasible-labels").sum()],
    ),
    (
        "docs/benchmark.md",
        "is {:.2f} times the mean cost on kc2, {:.2f} on diabetes and {:.2f} on german credit",
        lambda: [over_anytime(name) for name in ("kc2", "diabetes", "german_credit")],
    ),
    (
        "docs/benchmark.md",
        "costs it on cmc (J {:.1f}, where `nearest` has {:.1f})",
        lambda: [by_data("J")[name]["cmc"] for name in ("growing-spheres", "nearest")],
    ),
    (
        "docs/benchmark.md",
        "with 175 generations `moc` makes {} queries by construction",
        lambda: mixed().query("method == 'moc'")["queries"].unique().tolist(),
    ),
    ("docs/benchmark.md", "costs more: J {:.0f} against {:.0f}", lambda: (made(), image("penalty"))),
    ("docs/benchmark.md", "made for tables (J {:.0f})", lambda: [image("feasible")]),
    ("docs/benchmark.md", "the gradient method ({:.0f})", lambda: [image("gradient")]),
    (
        "docs/benchmark.md",
        "a passing controller after {} trials where 10 of 30 passed before and after {} where one did",
        lambda: [trial(n, "feasible-labels", "trials until the first") for n in ("10", "1")],
    ),
    (
        "docs/benchmark.md",
        "in {} of the histories, after {} trials, and gives up",
        lambda: [trial("0", "feasible", column) for column in ("passed", "trials until the first")],
    ),
    (
        "docs/budget.md",
        "for {:.0%} to 100% of rows, by data set, and after 30 the median cost is within a quarter of the best known "
        "on {} of eight data sets; with them 10 queries find one for {:.0%} to 100%, and within that quarter on {}.",
        lambda: (
            *(least_found("feasible", 15), within("feasible", 30, 1.25)),
            *(least_found("labels", 10), within("labels", 10, 1.25)),
        ),
    ),
    ("docs/limits.md", "from {:.2f} (cmc) to {:.2f} (breast) times it", lambda: (gap("cmc"), gap("breast"))),
    (
        "docs/limits.md",
        "from {:.2f} (cmc) to {:.2f} (kc2) times the best known",
        lambda: [median("feasible", name, 60) for name in ("cmc", "kc2")],
    ),
    (
        "docs/limits.md",
        "refuses {:.0%} on diamonds (the local outlier factor {:.0%}) and {:.0%} on loans ({:.0%})",
        lambda: [1 - one("plausible", d, m, "passes_one") for d in ("diamonds", "loan") for m in ("joint", "lof")],
    ),
    (
        "docs/limits.md",
        "take {:.1f} to {:.1f} times as long as ten, and up to {:.1f} times the memory",
        lambda: (categories("total_s", "min"), categories("total_s", "max"), categories("memory_mb", "max")),
    ),
    ("docs/method.md", "{} numbers that describe a point", lambda: [len(belief_inputs.NAMES)]),
    ("docs/method.md", "{:.0f} kB of plain arrays", lambda: [WEIGHTS.stat().st_size / 1000]),
    (
        "docs/ranges.md",
        "queried {:.0f} rows for each (median). Its counterfactuals cost {:.1f} to {:.1f} times",
        lambda: (lines("ranges").query("method == 'dice'")["queries"].median(), dice("min"), dice("max")),
    ),
    (
        "docs/readings.md",
        "breast it reports {}, {}, {} and {}, but it sends {}, {}, {} and {}.",
        lambda: [
            authors(name, column)
            for column in ("reported", "asked")
            for name in ("diabetes", "blood", "tic_tac_toe", "breast")
        ],
    ),
    (
        "docs/reproduction.md",
        "(within a fifth but for {} of 16 lines)",
        lambda: [len(fixed_queries()[0].split(", "))],
    ),
    (
        "docs/reproduction.md",
        "lower the cost to {} of that as published, with as many queries and more answers ({} instead of {})",
        lambda: (ablated("all repairs", 5)[:4], ablated("all repairs", 4), ablated("as published", 4)),
    ),
    (
        "docs/reproduction.md",
        "R5 and R6 alone lose answers ({} and {} valid), as does R16 ({})",
        lambda: [ablated(f"`{name}`", 4) for name in ("sobol_rays", "choose_by_cost", "reference_spread")],
    ),
    (
        "docs/reproduction.md",
        "{} queries and a distance of {:.1f} with the repairs, against 59 and 5.47",
        lambda: [row[2] if i == 2 else float(row[3]) for row in mnist_counts("`penalty`") for i in (2, 3)],
    ),
    (
        "docs/reproduction.md",
        "after 14 queries its J is {:.1f}, at the end {:.1f}.",
        lambda: [least_after(one("moons", "moons", "penalty", "curve"), queries) for queries in (14, 1000)],
    ),
    (
        "docs/reproduction.md",
        "{:.2f} of 2.26 on diabetes, {:.2f} of 3.66 on kc2.",
        lambda: [papers_spheres(name, "g1") / papers_spheres(name, "d2") for name in ("diabetes", "kc2")],
    ),
    (
        "docs/research.md",
        "{:.2f} million candidates with their true answers. Cross entropy of P(hit) on the third round's tasks before "
        "they were learned from: {:.3f}, after: {:.3f}",
        trained,
    ),
    (
        "docs/research.md",
        "level on simulated tables (mean of both columns {:.2f} and {:.2f}) and on the tables of users ({:.2f} "
        "and {:.2f})",
        lambda: [filter_auc(tables, name) for tables in (SIMULATED, USERS) for name in ("forests", "joint")],
    ),
    (
        "docs/research.md",
        "recognises {:.1%} with 200 rows or more, {:.1%} with 50 to 199, and {:.1%} with fewer. Of the others it takes "
        "{} of {} wrongly",
        few_values,
    ),
    (
        "docs/research.md",
        "*joint* is ahead in the mean ({:.2f} and {:.2f})",
        lambda: [filter_auc(PAPER, name) for name in ("joint", "forests")],
    ),
    (
        "docs/research.md",
        "judging takes *joint* {:.2f} to {:.2f} of the time that *lof* takes, the forests {:.0f} to {:.0f} "
        "times as long, and "
        "fitting {:.1f} to {:.1f} times as long (forests: {:.0f} to {:.0f} times)",
        lambda: [n for what in ("judge", "fit") for name in ("joint", "forests") for n in filter_time(what, name)],
    ),
    (
        "docs/research.md",
        "pass (*lof* / *joint*): simulated {:.0%} / {:.0%}, users {:.0%} / {:.0%}, the eight {:.0%} / {:.0%}; "
        "of rows with one "
        "value from another {:.0%} / {:.0%}, {:.0%} / {:.0%}, {:.0%} / {:.0%}; with two {:.0%} / {:.0%}, {:.0%} "
        "/ {:.0%}, "
        "{:.0%} / {:.0%}. On diamonds {:.0%} / {:.0%} and {:.0%} / {:.0%}.",
        lambda: [
            *(n for what in ("real", "one", "two") for t in (SIMULATED, USERS, PAPER) for n in passing(t, what)),
            *(n for what in ("one", "two") for n in passing(["diamonds"], what)),
        ],
    ),
    (
        "docs/research.md",
        "only kc2 misses it ({:.2f} / {:.2f} / {:.2f})",
        lambda: [median("labels", "kc2", queries) for queries in (10, 20, 40)],
    ),
    (
        "docs/research.md",
        "{:.2f} at 60 queries, where labels alone give {:.2f}",
        lambda: [median(method, "kc2", 60) for method in ("scores", "feasible")],
    ),
    (
        "docs/research.md",
        "takes {:.2f} to {:.2f} of one fit of scikit-learn's classifier on seven data sets, and {:.2f} on kc2",
        lambda: (min(asks().values()), sorted(asks().values())[-2], asks()["kc2"]),
    ),
    (
        "docs/research.md",
        "On simulated tables of 90 columns it takes {:.2f}, where 2 was the goal",
        lambda: [one("speed", "wide", "feasible", "ratio")],
    ),
    (
        "docs/scale.md",
        "`import acex` {:.2f}, `acex --help` {:.2f}",
        lambda: [one("startup", "new process", name, "ratio") for name in ("import acex", "acex --help")],
    ),
    ("docs/scale.md", "| seconds of one core | {:.2f} a row of 30 queries", lambda: [row_seconds()]),
    ("docs/scale.md", "| ledger | {:.1f} kB a query", lambda: [lines("throughput")["kb_a_query"].max()]),
    ("docs/scale.md", "up to {:.0f} MB for the answers", lambda: [lines("ledger-size")["memory_mb"].max()]),
    (
        "docs/scale.md",
        "{:.1f} kB a row, with a ledger on disk; {:.0f} kB a row where all is kept",
        lambda: (one("memory", "100000", "ledger", "kb_a_row"), one("memory", "10000", "all kept", "kb_a_row")),
    ),
    (
        "docs/settings.md",
        "with the second query for {:.0%} of the rows of the [benchmark](benchmark.md), without them for {:.0%}",
        lambda: (first_hit("feasible-labels"), first_hit("feasible")),
    ),
    (
        "docs/settings.md",
        "explanations with 60 queries each kept {} needless changes of {}",
        lambda: (needless("60", "needless"), needless("60", "changes")),
    ),
    (
        "docs/settings.md",
        "with 15 queries {:.1%} of the changes were needless",
        lambda: [needless("15", "needless") / needless("15", "changes")],
    ),
]


def mixed() -> pd.DataFrame:
    return lines("mixed")[lines("mixed")["data"].isin(PAPER)]


def by_data(measure: str) -> pd.DataFrame:
    """The mean of a measure, data sets by methods."""
    return mixed().groupby(["data", "method"])[measure].mean().unstack()


def affinity_ahead(method: str, other: str) -> pd.Series[float]:
    return by_data("affinity")[method] - by_data("affinity")[other]


def over_anytime(data: str) -> float:
    """The mean cost with outcomes of answers as users get them over that of searches that may make smaller steps."""
    users = mixed().query("method == 'feasible-labels' and data == @data").set_index("row")["J"]
    searched = lines("anytime-forest-0").query("method == 'labels' and data == @data").set_index("row")["J60"]
    both = pd.concat([users, searched], axis=1, join="inner").replace(np.inf, np.nan).dropna()
    return float(both["J"].mean() / both["J60"].mean())


def filters(tables: Sequence[str], name: str) -> pd.DataFrame:
    return lines("plausible").query("data in @tables and method == @name")


def filter_auc(tables: Sequence[str], name: str) -> float:
    return float(filters(tables, name)[["auc_one", "auc_two"]].to_numpy().mean())


def filter_time(what: str, name: str) -> list[float]:
    """How much longer than "lof" a filter takes on the tables of users: the least and the most."""
    one, lof = (filters(USERS, filter_).set_index("data")[what] for filter_ in (name, "lof"))
    return [float((one / lof).min()), float((one / lof).max())]


def passing(tables: Sequence[str], what: str) -> list[float]:
    return [float(filters(tables, name)[f"passes_{what}"].mean()) for name in ("lof", "joint")]


def least_after(curve: list[list[float]], queries: int) -> float:
    return min(J for asked, J in curve if asked <= queries)


def papers_spheres(data: str, column: str) -> float:
    """The paper's Growing Spheres in the fixed test, label 1."""
    table = score.published()
    line = table[(table["suite"] == "fixed") & (table["method"] == "growing-spheres") & (table["data"] == data)]
    return float(line[column].iloc[0])


def shared_rows() -> set[int]:
    return set(paper.shared(lines("mixed"))["row"])


def unprepared(method: str) -> list[str]:
    """The unprepared tables on which the median, and the 90th percentile, misses its goal."""
    costs = lines("strangers").pivot(index=["data", "row"], columns="method", values="cost")[method]
    best = lines("strangers").query("method == 'defaults'").set_index(["data", "row"])["best"]
    by = (costs / best).dropna().groupby(level="data", sort=False)
    missed = []
    for share, goal in ((0.5, 1.2), (0.9, 2.5)):
        ratios = by.quantile(share)
        missed.append(listed([f"{name} ({ratio:.2f})" for name, ratio in ratios[ratios > goal].items()]))
    return missed


def many_changes() -> str:
    """The unprepared tables whose answers change more than 1.5 times as many columns as the best known, by medians."""
    found = lines("strangers").query("method == 'defaults' and outcome == 'found'")
    of = found.groupby("data", sort=False)[["changes", "best_changes"]].median()
    return listed(
        f"{name} ({changes:g} and {best:g})" for name, changes, best in of.itertuples() if changes > 1.5 * best
    )


def fixed_queries() -> tuple[str, int]:
    """Lines of the fixed test where the queries of "penalty" are off by a fifth, and where "feasible" asks fewer."""
    rows = paper.fixed_tables(lines("fixed"))["ace"].rows
    counts = {f"{name} {label}": [float(n) for n in cell.split(" / ")] for name, label, cell, *_ in rows}
    off = [f"{at} ({n[1]:.0f} against {n[0]:.0f})" for at, n in counts.items() if abs(n[1] / n[0] - 1) > 0.2]
    return listed(off), sum(n[2] < n[0] for n in counts.values())


def fixed_seeds() -> int:
    part = lines("fixed")[lines("fixed")["method"].isin(OF_THE_PAPER)]
    return int(part.groupby(["data", "row", "method"]).size().min())


def made() -> float:
    """The cost of the image that "penalty" made itself."""
    return float(lines("mnist").query("row == 0").set_index("method")["made"]["penalty"]["J"])


@pytest.mark.parametrize(
    ("page", "words", "computed"), SENTENCES, ids=lambda value: value[:60] if isinstance(value, str) else ""
)
def test_a_sentence_has_the_numbers_of_its_file(page: str, words: str, computed: Callable[[], Sequence[Any]]) -> None:
    sentence = words.format(*computed())
    assert sentence in " ".join((ROOT / page).read_text(encoding="utf-8").split())
