from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.engine.blackbox import BlackBox
from acex.engine.explanation import asked_rows
from acex.ledger import MemoryLedger, canonical, query_id
from acex.space.space import rows_in_form
from toys import not_asked

DATA = pd.DataFrame(np.random.default_rng(0).uniform(size=(60, 2)).round(3), columns=["a", "b"])
ROW = {"a": 0.1, "b": 0.2}


def decide(rows: pd.DataFrame) -> list[str]:
    return ["yes" if a > 0.6 else "no" for a in rows["a"]]


def session(ledger: Path, *, budget: int = 4, per_round: int = 1) -> acex.Session:
    """The session as another process would begin it."""
    explainer = acex.Explainer(acex.Model(not_asked, name="laboratory"), DATA, ledger=ledger)
    return explainer.search(ROW, target="yes", budget=budget, queries_per_round=per_round)


def test_each_round_may_be_asked_and_told_by_another_process_and_the_budget_is_used_up(tmp_path: Path) -> None:
    ledger = tmp_path / "lab.db"
    asked = []
    while (rows := session(ledger).ask()) is not None:
        assert isinstance(rows, pd.DataFrame)
        again = session(ledger).ask()  # the same rows until they are told, the last ones of the budget too
        assert canonical(rows) == canonical(again)
        asked += canonical(rows)
        session(ledger).tell(rows, decide(rows))
    assert len(asked) == len(set(asked)) == 4
    [line] = acex.Ledger(ledger).tables.explanations().to_dict("records")
    assert line["paid"] == 4
    alone = acex.explain(decide, ROW, data=DATA, target="yes", budget=4)
    assert line["outcome"] == alone.outcome
    assert asked == canonical(asked_rows(alone))  # as with the model at hand


def test_the_ledger_knows_the_rows_by_key_and_what_they_would_cost(tmp_path: Path) -> None:
    ledger = acex.Ledger(tmp_path / "lab.db")
    explainer = acex.Explainer(acex.Model(not_asked, name="laboratory"), DATA, ledger=ledger)
    search = explainer.search(ROW, target="yes")
    rows = search.ask()
    assert isinstance(rows, pd.DataFrame)
    [form] = canonical(rows)
    key = query_id("laboratory", form)
    assert ledger.find([key, "strange"]) == {key: ("laboratory", form, None)}
    assert ledger.in_flight("laboratory", [form, "[9]"]) == {form: False}
    assert ledger.account("laboratory").features == ("a", "b")
    assert ledger.account("unknown").features is None
    search.tell(rows, ["no"])
    rows = search.ask()
    assert isinstance(rows, pd.DataFrame)
    note = ledger.asks(search.identity)[1].note
    assert note["cost"] > 0 and note["counts"] is True and isinstance(note["reference"], bool)
    ledger.abandon("laboratory")
    assert not ledger.in_flight("laboratory", canonical(rows))


def test_only_labels_of_the_model_can_be_told() -> None:
    model = acex.HttpModel("http://host", protocol="json", request="$rows", labels="labels", classes=["yes", "no"])
    search = acex.Explainer(model, DATA).search(ROW, target="yes")
    rows = search.ask()
    for strange in ("maybe", ""):
        with pytest.raises(ValueError, match="not a label"):
            search.tell(rows, [strange])
    search.tell(rows, ["no"])
    assert len(search.steps) == 1


def test_asking_again_counts_and_keeps_what_differs() -> None:
    ledger = MemoryLedger()
    rows = DATA[:3]
    ledger.import_answers("m", canonical(rows), ["no", "no", "no"])
    ledger.budget("m", rows=3)
    box = BlackBox(acex.Model(lambda rows: ["no", "yes", "no"]), ledger, 5, model_id="m")
    assert box.ask_again(rows) == ["no", "yes", "no"]
    assert ledger.contradicted("m") == set(canonical(rows[1:2]))
    assert ledger.account("m").remaining == 0
    with pytest.raises(acex.BudgetSpent):
        box.ask_again(rows[:1])
    with pytest.raises(acex.BudgetSpent, match="only 2 more"):
        box.ask_again(rows)


def test_what_was_not_sent_when_asking_again_is_not_charged() -> None:
    def fail(rows: Any) -> Any:
        raise acex.ModelFailed("unplugged", answered=["no"], in_doubt=0)

    ledger = MemoryLedger()
    ledger.import_answers("m", canonical(DATA[:3]), ["no", "no", "no"])
    ledger.budget("m", rows=3)
    box = BlackBox(acex.Model(fail), ledger, 5, model_id="m")
    with pytest.raises(acex.ModelFailed):
        box.ask_again(DATA[:3])
    assert ledger.account("m").remaining == 2 and box.remaining == 4


@pytest.mark.parametrize("data", [DATA.astype("float32"), DATA.to_numpy(), DATA.assign(c="x", d=range(60))])
def test_rows_come_back_in_the_form_they_were_asked_in(data: Any) -> None:
    space = acex.Space.infer(data)
    rows = space.decode(space.encode(data))
    back = rows_in_form([json.loads(form) for form in canonical(rows)], space.form())
    assert canonical(back) == canonical(rows)
    if isinstance(rows, pd.DataFrame):
        pd.testing.assert_frame_equal(back, rows)


def test_a_first_label_that_is_no_label_of_the_target_is_not_recorded(tmp_path: Path) -> None:
    rows = session(tmp_path / "lab.db").ask()
    for wrong in (1, " yes"):
        with pytest.raises(ValueError, match="target"):
            session(tmp_path / "lab.db").tell(rows, [wrong])
    session(tmp_path / "lab.db").tell(rows, ["no"])
    assert session(tmp_path / "lab.db").ask() is not None
