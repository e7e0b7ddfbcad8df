"""The benchmark: every query is counted, scores are the paper's, a run that was stopped resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from acex.arrays import FloatArray, IntArray
from acex.space.kinds import Integer
from acex.space.space import Space
from benchmarks import figures, heat_exchanger, score
from benchmarks import scenario as scenarios
from benchmarks.__main__ import main
from benchmarks.methods import METHODS
from benchmarks.scenario import Forest, Scenario, images, scenario
from benchmarks.suite import Job, Suite, append, read
from benchmarks.suites import SUITES, paper
from benchmarks.table import FORMATS
from benchmarks.task import CapReached, CountedModel, Task
from conftest import needs_data

MOONS = scenario("moons")
SUITE = SUITES["moons"]
QUICK = ["nearest", "random"]


class Counting:
    """A model that counts for itself."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows = model, 0

    def predict(self, X: FloatArray) -> IntArray:
        self.rows += len(X)
        labels: IntArray = self.model.predict(X)
        return labels


def moons_with(model: Any) -> Scenario:
    g = MOONS
    return Scenario(g.name, g.space, model, g.rows, g.reference, g.labels, g.deviations, g.is_category)


# -- counting --------------------------------------------------------------------------------------------


def test_the_faster_forest_answers_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(3, size=300)
    ours, theirs = (forest(30, random_state=0).fit(X[:200], y[:200]) for forest in (Forest, RandomForestClassifier))
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_every_row_counts_and_the_factual_is_the_first() -> None:
    inner = Counting(MOONS.model)
    model = CountedModel(Task(moons_with(inner), MOONS.rows[0]))
    model.is_hit(MOONS.reference[:5])
    assert model.queries == inner.rows == 6
    model.is_hit(MOONS.reference[:5])  # counts again, though the answers are known
    assert (model.queries, model.distinct, inner.rows) == (11, 6, 6)


def test_the_factual_asked_by_the_method_itself_is_not_counted_twice() -> None:
    model = CountedModel(Task(MOONS, MOONS.rows[0]))
    assert model.predict(MOONS.rows[:1])[0] == model.before == MOONS.predict(MOONS.rows[:1])[0]
    assert model.queries == 1


def test_at_the_cap_the_rows_that_are_left_are_still_asked() -> None:
    model = CountedModel(Task(MOONS, MOONS.rows[0]), cap=4)
    with pytest.raises(CapReached):
        model.predict(MOONS.reference[:10])
    assert model.queries == 4
    hits = MOONS.predict(MOONS.reference[:3]) != model.before
    assert (model.best is not None) == hits.any()


def test_the_curve_is_the_running_least_cost_of_hits() -> None:
    task = Task(MOONS, MOONS.rows[1])
    model = CountedModel(task)
    X = MOONS.reference[:40]
    hits = np.concatenate([model.is_hit(part) for part in np.split(X, [3, 4, 20])])
    least = np.minimum.accumulate(np.where(hits, task.cost(X), np.inf))
    expected = [(i + 2, J) for i, J in enumerate(least) if np.isfinite(J) and (i == 0 or least[i - 1] > J)]
    assert model.curve == expected
    assert task.cost(model.best[None])[0] == least[-1]  # type: ignore[index]


def test_a_hit_that_the_row_may_not_become_is_no_counterfactual() -> None:
    task = Task(MOONS, MOONS.rows[0])
    model = CountedModel(task)
    hits = MOONS.reference[MOONS.predict(MOONS.reference) != MOONS.predict(task.x[None])[0]]
    far = hits[:1] + 100.0
    model.is_hit(far)
    assert not task.allowed(far)[0] and model.best is None


# -- methods ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["feasible", "penalty", *QUICK])
def test_our_methods_find_a_valid_counterfactual_and_every_query_is_counted(method: str) -> None:
    inner = Counting(MOONS.model)
    task = Task(moons_with(inner), MOONS.rows[0])
    model = CountedModel(task)
    found = METHODS[method].explain(task, model, 0)
    assert model.distinct == inner.rows <= model.queries
    assert len(found) and task.allowed(found).all()
    assert (MOONS.predict(found) != model.before).all()
    assert task.cost(found).min() == pytest.approx(model.curve[-1][1])


def test_nearest_beats_every_row_of_the_reference() -> None:
    task = Task(MOONS, MOONS.rows[2])
    model = CountedModel(task)
    found = METHODS["nearest"].explain(task, model, 0)
    hits = MOONS.reference[MOONS.predict(MOONS.reference) != model.before]
    assert task.cost(found)[0] <= task.cost(hits).min()


def test_where_there_is_no_hit_a_baseline_gives_none() -> None:
    class Constant:
        def predict(self, X: FloatArray) -> IntArray:
            return np.zeros(len(X), dtype=np.intp)

    task = Task(moons_with(Constant()), MOONS.rows[0])
    for name in QUICK:
        assert METHODS[name].explain(task, CountedModel(task), 0).shape == (0, 2)


# -- runs ------------------------------------------------------------------------------------------------


def todo(rows: int = 2, methods: list[str] | None = None) -> list[Job]:
    return list(SUITE.jobs(rows, methods=methods or QUICK))


def test_a_killed_run_resumes_and_gives_what_one_run_gives(tmp_path: Path) -> None:
    SUITE.run(todo(), tmp_path / "whole", n_jobs=1)
    part = tmp_path / "part"
    SUITE.run(todo()[:2], part, n_jobs=1)
    with SUITE.path(part).open("a") as file:
        file.write("moons,nearest,1,1,1,1000")  # killed while writing
    left = SUITE.todo(todo(), part)
    assert left == todo()[2:]
    SUITE.run(left, part, n_jobs=1)
    assert SUITE.todo(todo(), part) == []
    columns = ["method", "row", "queries", "J", "curve"]
    pd.testing.assert_frame_equal(SUITE.read(tmp_path / "whole")[columns], SUITE.read(part)[columns])


def test_only_methods_that_have_changed_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SUITE.run(todo(), tmp_path, n_jobs=1)
    monkeypatch.setitem(METHODS, "nearest", replace(METHODS["nearest"], revision=7))
    left = SUITE.todo(todo(), tmp_path)
    assert {job.method for job in left} == {"nearest"}
    SUITE.run(left[:1], tmp_path, n_jobs=1)
    lines = SUITE.read(tmp_path)
    assert lines[lines["method"] == "nearest"]["revision"].tolist() == [7]  # never two revisions in one table


def test_a_line_says_what_was_measured(tmp_path: Path) -> None:
    SUITE.run(todo(1, ["nearest"]), tmp_path, n_jobs=1)
    (line,) = SUITE.read(tmp_path).to_dict("records")
    x, best = np.array(line["factual"]), np.array(line["counterfactual"])
    assert MOONS.predict(best[None])[0] != MOONS.predict(x[None])[0]
    z = (best - x) / MOONS.deviations
    assert line["J"] == pytest.approx(np.linalg.norm(z) + 5 * np.abs(z).sum(), rel=1e-5)
    assert line["d2"] == pytest.approx(np.linalg.norm(best - x), rel=1e-5)
    assert line["g1"] == pytest.approx(np.abs(best - x).sum(), rel=1e-5)
    assert line["queries"] >= line["distinct"] == len(line["asked"])
    assert line["curve"][-1][1] == pytest.approx(line["J"])


def test_a_method_that_fails_is_reported_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: Task, model: CountedModel, seed: int) -> FloatArray:
        raise RuntimeError("no such thing")

    monkeypatch.setitem(METHODS, "nearest", replace(METHODS["nearest"], explain=broken))
    errors = SUITE.run(todo(1), tmp_path, n_jobs=1)
    assert errors == {"nearest": "RuntimeError: no such thing"}
    assert [job.method for job in SUITE.todo(todo(1), tmp_path)] == ["nearest"]


def test_a_method_at_its_cap_answers_with_its_best_hit() -> None:
    (full,) = paper.measure(todo(1, ["nearest"])[0])
    first_hit = full["curve"][0]
    (cut,) = paper.measure(replace(todo(1, ["nearest"])[0], cap=first_hit[0]))
    assert cut["queries"] == first_hit[0] and cut["valid"] and cut["J"] == pytest.approx(first_hit[1], rel=1e-5)


def test_the_fixed_test_explains_one_row_of_either_label() -> None:
    rows = paper.two_rows(MOONS)
    assert MOONS.predict(MOONS.rows[list(rows)]).tolist() == [0, 1]


def test_every_suite_has_jobs_with_names_it_knows() -> None:
    for name, suite in SUITES.items():
        assert name == suite.name and isinstance(suite, Suite)
        assert len(set(suite.data)) == len(suite.data) > 0 and len(set(suite.methods)) == len(suite.methods) > 0


def test_a_raw_file_keeps_lists_numbers_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for row in (0, 1):
        line = {"data": "a, b", "method": "0.1", "row": row, "seed": 0, "revision": 1, "J": 1 / 3, "curve": [[1, 2.5]]}
        append(path, [*line, "cost"], [line])
    lines = read(path)
    assert lines["row"].tolist() == [0, 1] and lines["method"].tolist() == ["0.1", "0.1"]
    assert lines["J"].tolist() == [0.333333] * 2 and lines["curve"][1] == [[1, 2.5]] and lines["cost"].isna().all()


@pytest.mark.parametrize(
    ("suite", "job"),
    [
        pytest.param("mixed", Job("blood", "nearest", 0, 0), marks=needs_data),
        pytest.param("anytime-forest-1", Job("blood", "nearest", 0, 0), marks=needs_data),
        ("control", Job("control-1", "nearest", 0, 0)),
        ("plausible", Job("loan", "lof", 0, 0)),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_job_gives_its_committed_line_again(suite: str, job: Job) -> None:
    (line,) = SUITES[suite].measure(job)
    committed = SUITES[suite].read()
    key = ["data", "method", "row", "seed"]
    is_this = (committed[key] == [job.data, job.method, job.row, job.seed]).all(axis=1)
    (known,) = committed[is_this].to_dict("records")
    times = ("seconds", "fit", "judge")
    compared = [name for name in SUITES[suite].columns if name not in times and isinstance(known[name], float)]
    assert len(compared) > 4
    for name in compared:
        value = np.nan if line.get(name) is None else line[name]
        assert value == pytest.approx(known[name], rel=1e-4, nan_ok=True), name


def test_rows_of_a_history_are_free_and_others_are_not() -> None:
    s = scenario("control-1", 0)
    model = CountedModel(Task(s, s.rows[0]))
    new = (heat_exchanger.START + heat_exchanger.PAPERS) / 2
    rows = np.vstack([s.reference[:3], new, s.reference[3:5]])
    assert (model.predict(rows) == s.predict(rows)).all()
    assert model.queries == 2  # the start and the new one


@pytest.mark.parametrize("method", ["feasible-labels", "penalty"])
def test_a_passing_controller_is_found_with_few_trials(method: str) -> None:
    s = scenario("control-1", 0)
    task = Task(s, s.rows[0])
    model = CountedModel(task)
    found = METHODS[method].explain(task, model, 0)
    assert (s.predict(found) == 1).all() and 1 < model.queries < 100


def test_each_seed_of_control_has_a_history_of_its_own() -> None:
    jobs = list(SUITES["control"].jobs(3, ["control-1"], ["nearest"]))
    assert [(job.row, job.seed) for job in jobs] == [(0, 0), (0, 1), (0, 2)]
    first, second = (scenario("control-1", seed).reference for seed in (0, 1))
    assert not np.array_equal(first, second)


def test_the_rows_of_mnist_are_eights_that_the_model_sees_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bright:
        """Sees a nine where the first pixel is bright."""

        def fit(self, X: FloatArray, y: IntArray) -> None: ...

        def predict(self, X: FloatArray) -> IntArray:
            return (X[:, 0] > 127).astype(np.intp)

    X = np.random.default_rng(0).integers(0, 256, (2500, 4)).astype(float)
    nine = pd.Series(np.arange(2500) % 2)
    space = Space(tuple(Integer(f"p{j}", 0, 255) for j in range(4)))
    monkeypatch.setattr(
        scenarios, "mnist", lambda split: SimpleNamespace(name="mnist", codes=X, outcomes=nine, target=1, space=space)
    )
    g = images(model=Bright())
    seen = {row.tobytes() for i, row in enumerate(X) if i % 2 == 0 and row[0] <= 127}
    assert len(g.rows) == 100 and all(row.tobytes() in seen for row in g.rows)


def test_what_a_method_made_itself_is_measured_for_images(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_only(task: Task, model: CountedModel, seed: int) -> FloatArray:
        X = task.scenario.reference[:50]
        hits: FloatArray = X[model.is_hit(X)]
        model.is_hit(hits[:1] + 1e-6)
        return hits

    monkeypatch.setitem(METHODS, "nearest", replace(METHODS["nearest"], explain=rows_only))
    monkeypatch.setattr(paper, "scenario", lambda name, seed: MOONS)
    for data in ("moons", "mnist"):
        (line,) = paper.measure(Job(data, "nearest", 0, 0))
        assert line["is_reference_row"] and ("made" in line) == (data == "mnist")


# -- scores ----------------------------------------------------------------------------------------------


def test_the_scores_are_those_that_the_paper_prints() -> None:
    for where, block in score.published().groupby(["suite", "data", "label"], dropna=False):
        assert score.scores(block) == pytest.approx(block["score"].to_numpy(), abs=0.011, nan_ok=True), where


def results(*lines: tuple[str, int, int, float]) -> pd.DataFrame:
    """Method, row, queries, J: what was found with the last query."""
    return pd.DataFrame(
        [
            {
                "data": "blood", "row": row, "seed": row, "method": method, "cap": 9, "seconds": 1.0,
                "label": row % 2, "reference": 100, "is_reference_row": J > 1,
                "queries": queries, "valid": bool(np.isfinite(J)), "J": J if np.isfinite(J) else None,
                "d2n": J, "g1n": J, "d2": J, "g1": J, "affinity": 1.0,
                "curve": [[queries, J]] if np.isfinite(J) else [],
            }
            for method, row, queries, J in lines
        ]
    )  # fmt: skip


def test_labels_of_the_reference_are_shared_by_the_rows_where_a_method_asks_for_them() -> None:
    frame = results(("nice", 0, 110, 2.0), ("nice", 1, 130, 1.0), ("nearest", 0, 110, 2.0), ("nearest", 1, 130, 1.0))
    found = score.means(frame).set_index("method")
    assert found.loc["nice", "amortised"] == 120 - 100 + 100 / 2
    assert found.loc["nearest", "amortised"] == 120
    assert found.loc["nice", "reference_rows"] == 0.5


def test_queries_needed_are_medians_over_rows_that_have_a_counterfactual() -> None:
    frame = results(
        ("nearest", 0, 10, 1.0), ("nearest", 1, 20, 1.0), ("nearest", 2, 99, np.inf), ("nearest", 3, 30, 1.0),
        ("nice", 0, 4, 2.0), ("nice", 1, 6, 1.0), ("nice", 2, 99, np.inf), ("nice", 3, 99, np.inf),
    )  # fmt: skip
    twice, close = (score.needed(frame, within).set_index("method")["queries"] for within in (2.0, 1.1))
    assert twice["nearest"] == close["nearest"] == 20
    assert twice["nice"] == 6 and np.isnan(close["nice"])


def test_curves_are_medians_and_quartiles() -> None:
    frame = results(*[("nearest", row, 3 + row, 1.0) for row in range(5)], *[("random", r, 50, 2.0) for r in range(5)])
    curves = figures.curves_record(frame)["blood"]
    at = dict(zip(curves["nearest"].queries, curves["nearest"].middle, strict=True))
    assert np.isinf(at[4.0]) and at[5.0] == 1.0
    assert curves["random"].low[-1] == curves["random"].high[-1] == 2.0


def test_a_curve_ends_with_a_dot_at_its_median_and_a_line_from_quartile_to_quartile() -> None:
    queries = np.array([2.0, 3.0, 5.0, 9.0])
    low, middle, high = np.array([[np.inf, 4, 3, 2], [np.inf, np.inf, 5, 3], [np.inf, np.inf, 7, 6]])
    curve = figures.Curve(queries, low, middle, high)
    axes = figures.draw_curves({"blood": {"nearest": curve}}).axes[0]
    drawn = [points.tolist() for line in axes.lines if len(points := np.asarray(line.get_xydata()))]
    assert drawn == [[[5, 5], [9, 3]], [[9, 2], [9, 6]], [[9, 3]]]


def test_in_the_plane_both_boundaries_lie_where_labels_change() -> None:
    result = paper.measure(todo(1, ["nearest"])[0])[0] | {"method": "feasible"}
    record = figures.boundary_record(MOONS, result)
    assert record.counterfactual is not None and record.believed is not None
    assert record.counterfactual.tolist() == result["counterfactual"]
    assert figures.boundary_record(MOONS, {**result, "counterfactual": None}).counterfactual is None
    axes = figures.draw_boundaries([record]).axes[0]
    cell = np.array([axis[1] - axis[0] for axis in record.axes])
    for drawn, above in zip(axes.collections, (record.truth, record.believed > 0.5), strict=True):
        points = np.vstack([path.vertices for path in drawn.get_paths()])
        assert len(points) > 20
        near = ((points - [record.axes[0][0], record.axes[1][0]]) / cell).astype(int).clip(0, figures.SIDE - 2)
        corners = [above[near[:, 1] + i, near[:, 0] + j] for i in (0, 1) for j in (0, 1)]
        mixed = np.any(corners, axis=0) & ~np.all(corners, axis=0)
        assert mixed.mean() > 0.95  # a point on a line of the grid may count to the cell beside it


def test_an_image_of_the_reference_says_so_and_what_was_made_stands_beside_it() -> None:
    image = [0.0, 255.0, 0.0, 0.0]
    runs = pd.DataFrame(
        [
            {"method": "feasible", "counterfactual": image, "is_reference_row": False},
            {
                "method": "penalty", "counterfactual": image, "is_reference_row": True,
                "made": {"valid": True, "counterfactual": [255.0, 255.0, 0.0, 0.0]},
            },
        ]
    )  # fmt: skip
    runs = runs.assign(valid=True, queries=9, factual=pd.Series([[0.0] * 4] * 2))
    shown = figures.digits_record(runs).after
    assert list(shown) == ["feasible", "penalty:\na training image", "penalty:\nmade by the search"]
    assert [round(distance, 3) for _, _, distance in shown.values()] == [1.0, 1.0, 1.414]


# -- tables and commands ---------------------------------------------------------------------------------


def test_tables_have_the_papers_figure_beside_ours_and_the_best_in_bold() -> None:
    frame = results(("penalty", 0, 60, 2.0), ("growing-spheres", 0, 2000, 1.0))
    table = paper.beside(frame, "mixed")["blood"]
    lines = {row[0]: row for row in table.rows}
    assert lines["penalty"][1] == "rows" and lines["growing-spheres"][1] == "ranges"
    assert lines["penalty"][3:5] == ["**60 (0)**", "63"]
    assert "**60 (0)**" in FORMATS["markdown"](table)
    assert r"\textbf{60 (0)}" in FORMATS["latex"](table) and r"\bottomrule" in FORMATS["latex"](table)


def test_in_the_fixed_test_the_papers_figure_stands_beside_the_row_of_its_label() -> None:
    frame = results(("penalty", 3, 60, 2.0), ("penalty", 8, 80, 1.0))
    shown = {name: table.rows[0] for name, table in paper.beside(frame, "fixed").items()}
    # Row 3 has label 1, the paper's "Label 2".
    assert [text.strip("*") for text in shown["blood-1"][3:5]] == ["60 (0)", "57"]
    assert [text.strip("*") for text in shown["blood-0"][3:5]] == ["80 (0)", "54"]


def test_the_command_runs_resumes_tabulates_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--suite", "moons,control", "--results", str(tmp_path), "--methods", "nearest,penalty", "--rows", "1"]
    main(["run", *options, "--jobs", "1"])
    assert "moons: 2 of 2 measurements are missing" in capsys.readouterr().err
    main(["run", *options, "--dry-run"])
    assert "control: 0 of 6 measurements are missing" in capsys.readouterr().err
    main(["table", *options])
    shown = capsys.readouterr().out
    assert "### moons: moons" in shown and "1 of 30 pass | nearest | 1 | 100%" in shown
    main(["plot", "--suite", "moons", "--results", str(tmp_path)])
    assert capsys.readouterr().out.split() == [str(tmp_path / "moons.png")]
    assert (tmp_path / "moons.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("--suite", "mixt"), "mixt"), (("--suite", "mixed", "--methods", "lime"), "lime")],
)
def test_an_unknown_name_is_refused(arguments: tuple[str, ...], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["run", *arguments])
    assert name in capsys.readouterr().err + str(refused.value)


def test_without_results_the_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mixed"):
        SUITES["mixed"].read(tmp_path)
