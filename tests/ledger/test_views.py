"""A ledger as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

from acex.ledger import Question
from acex.ledger.sql import Ledger
from ledgers import MODEL, questions, rows


@pytest.fixture
def kept(address: str) -> Iterator[Ledger]:
    with Ledger(address) as found:
        yield found


def test_queries_are_shown_as_they_stand(kept: Ledger) -> None:
    kept.claim(MODEL, questions(1, 2, 3))
    kept.record(MODEL, rows(2), [1])
    kept.record(MODEL, rows(1), ["1"])
    shown = kept.tables.queries(MODEL).set_index("row")
    assert shown["label"].to_dict() == {"[3]": None, "[2]": 1, "[1]": "1"}
    assert shown.index.tolist() == ["[3]", "[2]", "[1]"]
    assert set(shown["claimed_by"]) == {kept._me()}
    assert kept.tables.queries(newest=1)["row"].tolist() == ["[1]"]
    exported = kept.tables.answers(MODEL)
    assert exported[["sequence", "row", "label"]].values.tolist() == [[1, "[2]", 1], [2, "[1]", "1"]]
    kept.correct(MODEL, "[2]", 5)
    assert kept.tables.answers(MODEL)["superseded"].tolist() == [True, False, False]
    line = kept.tables.models().iloc[0]
    assert (line["charged"], line["answered"], line["unanswered"]) == (3, 2, 1)


def test_an_empty_ledger_can_be_shown(kept: Ledger) -> None:
    for frame in (kept.tables.models(), kept.tables.queries(), kept.tables.answers(MODEL), kept.tables.explanations()):
        assert len(frame) == 0 and len(frame.columns) > 5


def test_an_explanation_that_goes_on_has_no_outcome_until_it_ends_again(kept: Ledger) -> None:
    kept.begin("e", MODEL, factual={"a": 1}, settings={})
    first, second = (Question(row, position=i, seen=0, note={"first": i}) for i, row in enumerate(rows(1, 2)))
    for question, outcome in ((first, "budget_spent"), (second, "found")):
        kept.claim(MODEL, [question], explanation="e")
        asked = kept.tables.explanations(MODEL).iloc[0]["asked"]
        assert pd.isna(kept.tables.explanations(MODEL).iloc[0]["outcome"])
        kept.finish("e", outcome, {"asked": int(asked)})
        assert kept.tables.explanations(MODEL).iloc[0]["outcome"] == outcome
