"""The benchmark: its door counts, its scores are the paper's, a killed run goes on."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from acex.bench import figures, records, run, score, table
from acex.bench import ground as grounds
from acex.bench.ground import Ground, ground
from acex.bench.methods import METHODS
from acex.bench.task import CapReached, Door, Task

from acex.arrays import FloatArray, IntArray
from acex.space.kinds import Integer
from acex.space.space import Space
from commands import run as command

MOONS = ground("moons")
QUICK = ["nearest", "random"]


class Counting:
    """A model that counts for itself."""

    def __init__(self, model: Any) -> None:
        self.model, self.rows = model, 0

    def predict(self, X: FloatArray) -> IntArray:
        self.rows += len(X)
        labels: IntArray = self.model.predict(X)
        return labels


def moons_with(model: Any) -> Ground:
    g = MOONS
    return Ground(g.name, g.space, model, g.rows, g.reference, g.labels, g.deviations, g.is_category)


# -- the door --------------------------------------------------------------------------------------------


def test_every_row_counts_and_the_factual_is_the_first() -> None:
    model = Counting(MOONS.model)
    door = Door(Task(moons_with(model), MOONS.rows[0]))
    door.is_hit(MOONS.reference[:5])
    assert door.queries == model.rows == 6
    door.is_hit(MOONS.reference[:5])  # counts again, though the model is spared
    assert (door.queries, door.distinct, model.rows) == (11, 6, 6)


def test_the_factual_asked_by_the_method_itself_is_not_counted_twice() -> None:
    door = Door(Task(MOONS, MOONS.rows[0]))
    assert door.predict(MOONS.rows[:1])[0] == door.before == MOONS.predict(MOONS.rows[:1])[0]
    assert door.queries == 1


def test_at_the_cap_the_rows_that_are_left_are_still_asked() -> None:
    door = Door(Task(MOONS, MOONS.rows[0]), cap=4)
    with pytest.raises(CapReached):
        door.predict(MOONS.reference[:10])
    assert door.queries == 4
    hits = MOONS.predict(MOONS.reference[:3]) != door.before
    assert (door.best is not None) == hits.any()


def test_the_curve_is_the_running_least_cost_of_hits() -> None:
    task = Task(MOONS, MOONS.rows[1])
    door = Door(task)
    X = MOONS.reference[:40]
    hits = np.concatenate([door.is_hit(part) for part in np.split(X, [3, 4, 20])])
    least = np.minimum.accumulate(np.where(hits, task.cost(X), np.inf))
    expected = [(i + 2, J) for i, J in enumerate(least) if np.isfinite(J) and (i == 0 or least[i - 1] > J)]
    assert door.curve == expected
    assert task.cost(door.best[None])[0] == least[-1]  # type: ignore[index]


def test_a_hit_that_the_row_may_not_become_is_no_counterfactual() -> None:
    task = Task(MOONS, MOONS.rows[0])
    door = Door(task)
    hits = MOONS.reference[MOONS.predict(MOONS.reference) != MOONS.predict(task.x[None])[0]]
    far = hits[:1] + 100.0
    door.is_hit(far)
    assert not task.allowed(far)[0] and door.best is None


# -- methods ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["feasible", "penalty", *QUICK])
def test_our_methods_find_a_valid_counterfactual_and_every_query_is_counted(method: str) -> None:
    model = Counting(MOONS.model)
    task = Task(moons_with(model), MOONS.rows[0])
    door = Door(task)
    found = METHODS[method].explain(task, door, 0)
    assert door.distinct == model.rows <= door.queries
    assert len(found) and task.allowed(found).all()
    assert (MOONS.predict(found) != door.before).all()
    assert task.cost(found).min() == pytest.approx(door.curve[-1][1])


def test_nearest_beats_every_row_of_the_reference() -> None:
    task = Task(MOONS, MOONS.rows[2])
    door = Door(task)
    found = METHODS["nearest"].explain(task, door, 0)
    hits = MOONS.reference[MOONS.predict(MOONS.reference) != door.before]
    assert task.cost(found)[0] <= task.cost(hits).min()


def test_where_there_is_no_hit_a_baseline_gives_none() -> None:
    class Constant:
        def predict(self, X: FloatArray) -> IntArray:
            return np.zeros(len(X), dtype=np.intp)

    task = Task(moons_with(Constant()), MOONS.rows[0])
    for name in QUICK:
        assert METHODS[name].explain(task, Door(task), 0).shape == (0, 2)


# -- runs ------------------------------------------------------------------------------------------------


def todo(rows: int = 2, methods: list[str] | None = None) -> list[run.Job]:
    return list(run.jobs("moons", ["moons"], methods or QUICK, rows=rows, seeds=1))


def test_a_killed_run_goes_on_and_gives_what_one_run_gives(tmp_path: Path) -> None:
    run.run(todo(), tmp_path / "whole", n_jobs=1)
    part = tmp_path / "part"
    run.run(todo()[:2], part, n_jobs=1)
    with (part / "moons.jsonl").open("a") as file:
        file.write('{"suite": "moons", "da')  # killed while writing
    left = run.unfinished(todo(), part)
    assert left == todo()[2:]
    run.run(left, part, n_jobs=1)
    assert run.unfinished(todo(), part) == []
    whole, resumed = (
        {run._job(r): (r["queries"], r["J"]) for r in records.read(tmp_path / d)} for d in ("whole", "part")
    )
    assert whole == resumed


def test_a_line_says_what_was_measured(tmp_path: Path) -> None:
    run.run(todo(1, ["nearest"]), tmp_path, n_jobs=1)
    (record,) = records.read(tmp_path)
    x, best = np.array(record["factual"]), np.array(record["counterfactual"])
    assert MOONS.predict(best[None])[0] != MOONS.predict(x[None])[0]
    z = (best - x) / MOONS.deviations
    assert record["J"] == pytest.approx(np.linalg.norm(z) + 5 * np.abs(z).sum())
    assert (record["d2"], record["g1"]) == pytest.approx((np.linalg.norm(best - x), np.abs(best - x).sum()))
    assert record["queries"] >= record["distinct"] == len(record["asked"])
    assert record["curve"][-1][1] == pytest.approx(record["J"])
    assert {"acex", "python"} <= set(record["versions"])
    assert (
        record["seed"] == 0 and record["settings"]["model"] == "SVC" and record["settings"]["movable"] == ["x0", "x1"]
    )


def test_a_method_that_fails_is_written_down_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: Task, door: Door, seed: int) -> FloatArray:
        door.is_hit(task.x[None] + 0.1)
        raise RuntimeError("no such thing")

    monkeypatch.setitem(METHODS, "nearest", METHODS["nearest"].__class__("nearest", broken))
    run.run(todo(1, ["nearest"]), tmp_path, n_jobs=1)
    (record,) = records.read(tmp_path)
    assert record["error"] == "RuntimeError: no such thing" and not record["valid"] and record["queries"] == 2
    assert run.unfinished(todo(1, ["nearest"]), tmp_path)


def test_a_method_at_its_cap_answers_with_its_best_hit(tmp_path: Path) -> None:
    jobs = list(run.jobs("moons", ["moons"], ["nearest"], rows=1, seeds=1, cap=10**6))
    full = run.explained(jobs[0])
    first_hit = full["curve"][0]
    cut = run.explained(run.Job(**{**vars(jobs[0]), "cap": first_hit[0]}))
    assert cut["queries"] == first_hit[0] and cut["valid"] and cut["J"] == pytest.approx(first_hit[1])


def test_the_fixed_test_explains_one_row_of_either_label() -> None:
    rows = run.two_rows(MOONS)
    assert MOONS.predict(MOONS.rows[list(rows)]).tolist() == [0, 1]


def test_the_rows_of_mnist_are_eights_that_the_model_sees_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bright:
        """Sees a nine where the first pixel is bright."""

        def fit(self, X: FloatArray, y: IntArray) -> None: ...

        def predict(self, X: FloatArray) -> IntArray:
            return (X[:, 0] > 127).astype(np.intp)

    X = np.random.default_rng(0).integers(0, 256, (2500, 4)).astype(float)
    nine = np.arange(2500) % 2
    space = Space(tuple(Integer(f"p{j}", 0, 255) for j in range(4)))
    monkeypatch.setattr(grounds, "mnist", lambda split: SimpleNamespace(codes=X, binary=nine, space=space))
    g = ground("mnist", model=Bright())
    seen = {row.tobytes() for i, row in enumerate(X) if i % 2 == 0 and row[0] <= 127}
    assert len(g.rows) == 100 and all(row.tobytes() in seen for row in g.rows)


@pytest.mark.parametrize("suite", ["fixed", "mnist"])
def test_what_a_method_made_itself_is_measured_for_images_only(suite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows_only(task: Task, door: Door, seed: int) -> FloatArray:
        X = task.ground.reference[:50]
        hits: FloatArray = X[door.is_hit(X)]
        door.is_hit(hits[:1] + 1e-6)
        return hits

    monkeypatch.setitem(METHODS, "nearest", METHODS["nearest"].__class__("nearest", rows_only))
    record = run.explained(run.Job(**{**vars(todo(1, ["nearest"])[0]), "suite": suite}))
    assert record["is_reference_row"]
    assert ("made" in record) == (suite == "mnist")


# -- scores ----------------------------------------------------------------------------------------------


def test_the_scores_are_those_that_the_paper_prints() -> None:
    for where, block in score.paper().groupby(["suite", "data", "label"], dropna=False):
        assert score.scores(block) == pytest.approx(block["score"].to_numpy(), abs=0.011, nan_ok=True), where


def results(*lines: tuple[str, int, int, float]) -> pd.DataFrame:
    """Method, row, queries, J: what was found with the last query."""
    return score.frame(
        [
            {
                "suite": "mixed", "data": "blood", "row": row, "seed": row, "method": method, "cap": 9, "seconds": 1.0,
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
    needed = {line["method"]: line for line in score.needed(frame).to_dict("records")}
    assert [needed["nearest"][name] for name in ("n", "2x", "1.1x")] == [3, 20, 20]
    assert needed["nice"]["2x"] == 6 and np.isnan(needed["nice"]["1.1x"])


def test_a_result_made_again_counts_once() -> None:
    frame = results(("nearest", 0, 10, 3.0), ("nearest", 0, 12, 1.0))
    assert score.means(frame)["queries"].tolist() == [12]


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
    jobs = todo(1, ["nearest"])
    result = run.explained(jobs[0]) | {"method": "feasible"}
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
    first = table.tables(frame)[0]
    lines = {row[0].text: [c.text for c in row] for row in first.rows}
    assert lines["penalty"][1] == "rows" and lines["growing-spheres"][1] == "ranges"
    assert lines["penalty"][3:5] == ["60 (0)", "63"]
    assert [row[3].best for row in first.rows if row[0].text == "penalty"] == [True]
    assert "**60 (0)**" in table.markdown(first)
    assert r"\textbf{60 (0)}" in table.latex(first) and r"\bottomrule" in table.latex(first)
    assert "<b>60 (0)</b>" in table.html(first)


def test_in_the_fixed_test_the_papers_figure_stands_beside_the_row_of_its_label() -> None:
    frame = results(("penalty", 3, 60, 2.0), ("penalty", 8, 80, 1.0)).assign(suite="fixed")
    shown = {t.title: t.rows[0] for t in table.tables(frame) if "label" in t.title}
    assert list(shown) == ["fixed: blood, label 1", "fixed: blood, label 0"]
    # Row 3 has label 1, the paper's "Label 2".
    assert [c.text for c in shown["fixed: blood, label 1"][3:5]] == ["60 (0)", "57"]
    assert [c.text for c in shown["fixed: blood, label 0"][3:5]] == ["80 (0)", "54"]


def test_packed_results_are_read_as_if_they_had_been_written_line_by_line(tmp_path: Path) -> None:
    run.run(todo(), tmp_path / "lines", n_jobs=1)
    lines = records.read(tmp_path / "lines")
    records.pack([*lines, lines[0] | {"row": 9, "error": "no"}], tmp_path / "packed" / "moons.csv")
    packed = records.read(tmp_path / "packed")
    assert run.unfinished(todo(), tmp_path / "packed") == []
    one, other = score.means(score.frame(lines)), score.means(score.frame(packed))
    pd.testing.assert_frame_equal(one.sort_values("method"), other.sort_values("method"), atol=1e-4, check_like=True)
    for line in lines:
        (again,) = [r for r in packed if (r["row"], r["method"]) == (line["row"], line["method"])]
        assert again.keys() == line.keys() & set(records.KEPT)  # what was not measured is not there
        assert [asked for asked, _ in again["curve"]] == [asked for asked, _ in line["curve"]]
        assert again["valid"] is line["valid"] and again["is_reference_row"] is line["is_reference_row"]


def test_the_commands_run_resume_and_draw(tmp_path: Path) -> None:
    out = str(tmp_path / "results")
    line = ["bench", "run", "--suite", "moons", "--methods", "nearest,penalty", "--rows", "1", "--jobs", "1"]
    assert command(*line, "--out", out).exit_code == 0
    again = command(*line, "--out", out)
    assert "2 of 2 explanations are there already" in again.stderr
    shown = command("bench", "table", out)
    assert "moons: moons" in shown.stdout and "nearest" in shown.stdout
    drawn = command("bench", "plot", out)
    assert [Path(p).name for p in drawn.stdout.split()] == ["moons.png", "moons-boundaries.png"]
    assert all(Path(p).stat().st_size > 5000 for p in drawn.stdout.split())


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (("run", "--suite", "mixt"), "expected one of 'mixed'"),
        (("run", "--methods", "lime"), "'lime' is not one of 'feasible'"),
        (("run", "--data", "iris"), "'iris' is not one of"),
        (("table", "nowhere"), "there are no results here"),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(line: tuple[str, ...], word: str) -> None:
    done = command("bench", *line)
    assert done.exit_code == 2 and word in done.stderr


def test_results_are_json_without_nan(tmp_path: Path) -> None:
    run.run(todo(1), tmp_path, n_jobs=1)
    for text in (tmp_path / "moons.jsonl").read_text().splitlines():
        json.loads(text, parse_constant=lambda name: pytest.fail(name))
