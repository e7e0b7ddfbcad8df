"""The suite "comparison": panels, budgets, limits, packed lines, and the tables with failures in them."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from acex.arrays import FloatArray
from benchmarks.methods import METHODS
from benchmarks.scenario import scenario
from benchmarks.suite import Job, append
from benchmarks.suites import SUITES, comparison
from benchmarks.task import CountedModel, Panel, Task
from benchmarks.tasks import MODELS, TABLES, TASKS, task_scenario
from conftest import needs_data

MOONS = scenario("moons")
FAR = MOONS.reference.max(axis=0) + 5  # a point that no filter accepts
SUITE = SUITES["comparison"]


@pytest.fixture(autouse=True)
def _moons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "task_scenario", lambda name: MOONS)


def counted(panel: Panel) -> CountedModel:
    return CountedModel(Task(MOONS, MOONS.rows[0], panel))


def hits(model: CountedModel) -> FloatArray:
    X: FloatArray = MOONS.reference[MOONS.predict(MOONS.reference) != model.before]
    plausible: FloatArray = X[MOONS.density.plausible(X)]
    return plausible


def test_with_the_filter_an_implausible_point_is_a_miss_and_free() -> None:
    model = counted("filter")
    X = np.vstack([hits(model)[:1], FAR])
    assert model.is_hit(X).tolist() == [True, False]
    assert (model.queries, model.rejected) == (2, 1)  # the factual and the plausible point


def test_without_the_filter_every_point_is_asked() -> None:
    model = counted("none")
    model.is_hit(np.vstack([hits(model)[:1], FAR]))
    assert (model.queries, model.rejected) == (3, 0)


def test_implausible_hits_do_not_count_even_for_methods_that_read_the_labels() -> None:
    model = counted("filter")
    other = [x for x in np.random.default_rng(0).uniform(-9, 9, (200, 2)) if MOONS.predict(x[None])[0] != model.before]
    model.labels(np.array([x for x in other if not MOONS.density.plausible(x[None])[0]]))
    assert model.queries > 5 and model.distinct_curve == []


def test_the_distinct_curve_counts_a_repeated_row_once() -> None:
    model = counted("none")
    X = hits(model)
    X = X[np.argsort(-model.task.cost(X))][:2]  # the second is cheaper
    for x in (X[0], X[0], X[0], X[1]):
        model.is_hit(x[None])
    assert [n for n, _ in model.distinct_curve] == [2, 3] and [n for n, _ in model.curve] == [2, 5]


def line(method: str, panel: Panel = "none", limit_s: float = 20) -> dict[str, object]:
    return comparison.measured(Job("diabetes", method, 0, 0), panel, limit_s)


def test_costs_fall_with_the_budget_and_the_answer_is_valid() -> None:
    found = line("nearest", "filter")
    J = [found[f"J{b}"] for b in comparison.BUDGETS]
    assert sorted(J, reverse=True) == J and found["ended"] == "itself" and found["valid"]  # type: ignore[type-var]
    assert found["J"] == J[-1] and found["distinct"] == found["queries"]


def test_a_method_that_hangs_or_fails_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(task: Task, model: CountedModel, seed: int) -> FloatArray:
        model.is_hit(hits(model)[:3])
        while True:
            try:
                sum(range(1000))
            except Exception:  # what a package may do
                continue

    def fail(task: Task, model: CountedModel, seed: int) -> FloatArray:
        raise RuntimeError("out of range")

    monkeypatch.setitem(METHODS, "nearest", replace(METHODS["nearest"], explain=hang))
    hung = line("nearest", limit_s=0.05)
    assert (hung["ended"], hung["valid"], hung["J"]) == ("time", False, np.inf) and np.isfinite(hung["J15"])  # type: ignore[call-overload]
    monkeypatch.setitem(METHODS, "nearest", replace(METHODS["nearest"], explain=fail))
    failed = line("nearest")
    assert (failed["ended"], failed["valid"]) == ("error", False) and "out of range" in str(failed["error"])


def test_an_implausible_answer_is_valid_only_without_the_filter() -> None:
    before = MOONS.predict(MOONS.rows[:1])[0]
    grid = np.random.default_rng(0).uniform(MOONS.space.low, MOONS.space.high, (2000, 2))
    X = grid[(MOONS.predict(grid) != before) & ~MOONS.density.plausible(grid)]
    assert len(X)
    J = [comparison.answer(Task(MOONS, MOONS.rows[0], panel), X) for panel in comparison.PANELS]
    assert np.isfinite(J[0]) and np.isinf(J[1])


@needs_data
@pytest.mark.parametrize("panel", comparison.PANELS)
def test_a_job_gives_its_committed_line_again(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "task_scenario", task_scenario)
    found = comparison.measured(Job("blood", "nearest", 0, 0), panel)
    known = SUITE.read().query("data == 'blood' and method == 'nearest' and row == 0 and panel == @panel").iloc[0]
    for name in ("queries", "distinct", "J", *(f"J{b}" for b in comparison.BUDGETS)):
        assert found[name] == pytest.approx(known[name], rel=1e-5), name


def test_lines_are_packed_by_data_set_and_only_added(tmp_path: Path) -> None:
    columns = ("data", "method", "row", "seed", "revision", *SUITE.columns)
    key = {"method": "nearest", "seed": 0, "revision": 1, "cap": 100_000, "panel": "none"}
    for row in (0, 1):
        lines = [{"data": data, "row": row, "J": np.inf, **key} for data in ("cmc", "kc2")]
        append(SUITE.path(tmp_path), columns, lines)
        if row == 0:
            SUITE.pack(tmp_path)
            first = (tmp_path / "comparison/cmc.csv.gz").read_bytes()
    with SUITE.path(tmp_path).open("a") as file:
        file.write("cmc,nearest,2")  # killed while writing
    before = SUITE.lines(tmp_path)
    SUITE.pack(tmp_path)
    packed = (tmp_path / "comparison/cmc.csv.gz").read_bytes()
    assert packed.startswith(first) and not SUITE.path(tmp_path).exists()
    assert gzip.decompress(packed).decode().count("\n") == 3  # one header, two lines
    assert before["row"].tolist() == [0, 0, 1, 1] and sorted(SUITE.lines(tmp_path)["row"]) == [0, 0, 1, 1]
    left = SUITE.todo([Job("cmc", "nearest", row, 0) for row in (0, 1, 2)], tmp_path)
    assert [job.row for job in left] == [2]


def made(J: dict[str, list[float]]) -> pd.DataFrame:
    """Lines of both panels with the same cost at every budget."""
    lines = [
        {"data": "cmc", "method": method, "row": row, "panel": panel, "ended": "itself", "valid": np.isfinite(cost)}
        | {"J": cost, "queries": 60, "distinct": 50, "cpu": 0.5}
        | {f"J{b}": cost for b in comparison.BUDGETS}
        for panel in comparison.PANELS
        for method, costs in J.items()
        for row, cost in enumerate(costs)
    ]
    return pd.DataFrame(lines)


def test_a_method_that_fails_often_but_cheaply_is_not_ahead() -> None:
    lines = made({"feasible": [2.0] * 10, "nearest": [1.0] * 3 + [np.inf] * 7})
    table = comparison.summary(lines)
    ranks = {row[0]: row[3] for row in table.rows}
    assert ranks == {"acex": "1.3 / 1.3", "nearest": "1.7 / 1.7"}
    assert [(row[2], row[4]) for row in table.rows] == [("10", "100% / 100%"), ("10", "30% / 30%")]
    (first, _) = comparison.against(lines, "none").rows
    assert first[:6] == ["nearest", "30", "10", "1", "7", "3"] and first[7] == "2.00"


def test_rows_of_one_table_are_one_cluster_whatever_its_variant() -> None:
    cheap, costly = (
        made({"feasible": [1.0] * 20, "nearest": [4.0] * 20}),
        made({"feasible": [1.0] * 20, "nearest": [1.0] * 20}),
    )
    lines = pd.concat([cheap.assign(data="a"), cheap.assign(data="a-linear"), costly.assign(data="b")])
    (first, _) = comparison.against(lines, "none").rows
    (low, high), (low_over_tables, high_over_tables) = ([float(x) for x in cell.split("–")] for cell in first[8:10])
    assert low_over_tables == 0.25 < low < high < high_over_tables == 1.0


def test_a_difference_on_one_of_many_tasks_does_not_survive_the_correction() -> None:
    some = made({"feasible": [1.0] * 7, "nearest": [2.0] * 7})  # p = 2 / 2**7
    assert comparison.significant(comparison.costs(some, "none", "J30"), "nearest") == (1, 0)
    equal = made({"feasible": [1.0] * 7, "nearest": [1.0] * 7})
    many = pd.concat([some, *(equal.assign(data=f"t{i}") for i in range(5))])
    assert comparison.significant(comparison.costs(many, "none", "J30"), "nearest") == (0, 0)


def test_every_table_and_picture_is_made_from_lines_of_few_methods() -> None:
    lines = made({"feasible": [2.0, 3.0], "nearest": [1.0, np.inf]})
    assert all(table.rows for table in comparison.tables(lines).values())
    assert list(comparison.pictures(lines)) == ["comparison"]


def test_the_task_set_has_every_model_and_setting() -> None:
    assert len(TABLES) == 12
    assert {variant.model for variant in TASKS.values()} == MODELS.keys()
    assert any(v.unfrozen for v in TASKS.values()) and any(v.apart for v in TASKS.values())
