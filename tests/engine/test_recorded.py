"""An explanation comes back from its ledger as it was, without the model and the data."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

import acex
from acex import Ledger
from acex.engine.recorded import load_explanation
from acex.ledger import canonical
from toys import not_asked

MODEL = "bank-1"
ROW = {"income": 1500, "debt": 0.6, "job": "cook"}
OLD = Path(__file__).parents[1] / "ledger" / "ledger-version-1.sql"  # as acex 0.1.0 wrote it before version 2


def data() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    columns = {"income": rng.integers(500, 4000, 60), "debt": rng.uniform(size=60).round(3)}
    return pd.DataFrame({**columns, "job": rng.choice(["clerk", "cook"], 60)})


def model(rows: Any) -> Any:
    return np.where((rows["income"] > 2000) & (rows["debt"] < 0.5), "good", "bad")


def explain(ledger: Any, predict: Any = model, **options: Any) -> acex.Explanation:
    settings = {"data": data(), "budget": 12, "ledger": ledger, **options}
    return acex.explain(acex.Model(predict, name=MODEL), ROW, **settings)


def names(where: Any) -> list[str]:
    with Ledger(where) as ledger:
        return [str(name) for name in ledger.tables.explanations()["id"]]


def read(where: Any) -> acex.Explanation:
    [name] = names(where)
    with Ledger(where) as ledger:
        return load_explanation(ledger, name)


def assert_same(back: acex.Explanation, e: acex.Explanation) -> None:
    for frame in ("counterfactuals", "trace", "changes"):
        assert_frame_equal(getattr(back, frame), getattr(e, frame))
    assert_series_equal(back.factual, e.factual)
    plain = ("label_before", "label_after", "target", "outcome", "stopped_by", "costs", "robustness", "remarks")
    for name in (*plain, "n_queries", "n_reused"):
        assert getattr(back, name) == getattr(e, name), name
    assert back.affinities == pytest.approx(e.affinities)
    assert back.settings.items() >= e.settings.items()
    assert back.plan.space == e.plan.space


@pytest.mark.parametrize(
    "options",
    [
        {
            "freeze": ["job"],
            "ranges": {"income": (0, np.inf)},
            "directions": {"debt": "decrease"},
            "cost": acex.Cost(weights={"job": 2}),
        },
        {"count": 2, "budget": 20},
        {"count": 3, "budget": 20, "freeze": ["job"]},
        {"strategy": acex.Feasible(margin=0.7)},
        {"strategy": acex.Penalty(n0=5, sobol=64), "plausibility": None},
        {"queries_per_round": 4, "target": ["good", "better"]},
        {"target": "bad"},
        {"target": "better"},
    ],
)
def test_it_comes_back_as_it_was(options: dict[str, Any], tmp_path: Path) -> None:
    e = explain(tmp_path / "l.db", **options)
    back = read(tmp_path / "l.db")
    assert_same(back, e)
    told = back.to_html()
    assert {"explanation", "started_at", "finished_at"} <= set(back.settings)
    assert back.settings["explanation"] in told


def test_it_comes_back_from_any_ledger(address: str) -> None:
    e = explain(address)
    assert_same(read(address), e)


def test_arrays_come_back_too(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    model = acex.Model(lambda A: (A.sum(axis=1) > 1).astype(int), name=MODEL)
    space = acex.Space.infer(np.vstack([X + 3, X - 6]))
    options: Any = {"ranges": {0: (-5, 3)}, "budget": 10, "ledger": tmp_path / "l.db"}
    e = acex.explain(model, X[0] - 2, X - 1, space=space, **options)
    assert_same(read(tmp_path / "l.db"), e)


def test_what_was_stopped_is_told_as_far_as_it_came(tmp_path: Path) -> None:
    def stop(e: acex.Explanation) -> None:
        if e.outcome == "found":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        explain(tmp_path / "l.db", callback=stop)
    back = read(tmp_path / "l.db")
    so_far = stopped.value.explanation  # type: ignore[attr-defined]
    assert_frame_equal(back.counterfactuals, so_far.counterfactuals)
    assert back.costs == so_far.costs
    assert [remark.code for remark in back.remarks] == ["unfinished"]
    e = explain(tmp_path / "l.db")
    assert_frame_equal(read(tmp_path / "l.db").counterfactuals, e.counterfactuals)
    assert read(tmp_path / "l.db").warnings == ()


def test_a_larger_budget_goes_on_and_is_told(tmp_path: Path) -> None:
    explain(tmp_path / "l.db", budget=5)
    assert read(tmp_path / "l.db").settings["budget"] == 5
    e = explain(tmp_path / "l.db", budget=9)
    back = read(tmp_path / "l.db")
    assert back.settings["budget"] == 9
    assert back.n_queries == len(e.trace) == 9  # paid by both runs together
    assert_frame_equal(back.counterfactuals, e.counterfactuals)


def test_rows_that_wait_are_told(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.db") as ledger:
        session = acex.Explainer(acex.Model(not_asked, name=MODEL), data(), ledger=ledger).search(
            ROW, queries_per_round=3
        )
        first = session.ask()
        with pytest.raises(ValueError, match="'bank-1' has no answer"):
            load_explanation(ledger, session.identity)
        assert first is not None
        session.tell(first, model(first))
        rows = session.ask()
        assert rows is not None
        assert "3 of its rows wait for a label" in load_explanation(ledger, session.identity).remarks[0].text


def test_a_contradiction_since_then_is_told(tmp_path: Path) -> None:
    e = explain(tmp_path / "l.db")
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.record(MODEL, ['[1500, 0.6, "cook"]'], ["good"])
    assert e.warnings == ()
    assert "it gave 1 row (1 asked here) another label later" in read(tmp_path / "l.db").warnings[0].text


def test_a_name_that_is_not_there_is_named(tmp_path: Path) -> None:
    explain(tmp_path / "l.db")
    with Ledger(tmp_path / "l.db") as ledger, pytest.raises(ValueError, match="'abc' is not an explanation"):
        load_explanation(ledger, "abc")


def test_explanations_share_what_their_rows_hold(tmp_path: Path) -> None:
    for seed in range(3):
        explain(tmp_path / "l.db", seed=seed, budget=3)
    explain(tmp_path / "l.db", freeze=["job"], budget=3)
    with sqlite3.connect(tmp_path / "l.db") as connection:
        assert connection.execute("SELECT COUNT(*), COUNT(DISTINCT space_id) FROM explanations").fetchone() == (4, 2)
        assert connection.execute("SELECT COUNT(*) FROM spaces").fetchone() == (2,)


# -- ledgers of an older acex --------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.executescript(OLD.read_text(encoding="utf-8"))
    return tmp_path / "old.db"


def test_an_explanation_of_an_older_ledger_has_to_be_explained_again(old: Path) -> None:
    with pytest.raises(ValueError, match=r"acex 0\.1"):
        read(old)


def test_explaining_again_records_what_an_older_ledger_lacks_and_pays_no_answer_again(old: Path) -> None:
    with Ledger(old) as ledger:
        paid = set(ledger.tables.answers(MODEL)["row"])
    sent: list[str] = []

    def asked(rows: Any) -> Any:
        sent.extend(canonical(rows))
        return model(rows)

    e = explain(old, asked, budget=6, freeze=["job"])
    assert len(sent) == e.n_queries and not paid & set(sent)
    assert e.n_reused > 0
    with Ledger(old) as ledger:
        _, newer = ledger.tables.explanations()["id"]
        back = load_explanation(ledger, newer)
    assert back.warnings == ()
    assert_frame_equal(back.changes, e.changes)
    assert back.n_queries == e.n_queries


def test_what_was_said_of_data_and_row_is_said_again(tmp_path: Path) -> None:
    rows, path = data(), tmp_path / "ledger.db"
    rows.loc[3, "debt"] = np.nan
    e = acex.explain(acex.Model(model, name=MODEL), ROW | {"income": 9000}, data=rows, budget=3, ledger=path)
    gaps, beyond = e.remarks[:2]
    assert "1 of 60 rows of data has a gap" in gaps.text
    assert "'income': 9000 lies beyond" in beyond.text
    assert read(path).remarks == e.remarks
    assert "remarks" not in read(path).settings
