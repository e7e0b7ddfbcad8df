"""Every promise of an explanation is checked: each is broken here in a file with a new checksum, and is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acex
from acex.audit.verify import Check, Verified, n_queries, verify
from acex.engine.certificate import certified, parsed
from toys import high as label

RNG = np.random.default_rng(0)
DATA = pd.DataFrame(
    {
        "a": RNG.normal(size=80).round(2),
        "b": RNG.normal(size=80).round(2),
        "job": RNG.choice(["clerk", "cook", "nurse"], 80),
        "age": RNG.integers(20, 60, 80),
    }
)


def number(rows: pd.DataFrame) -> Any:
    return (10 + 3 * rows["a"] + rows["b"]).to_numpy()


class Likely:
    """Gives probabilities."""

    classes_ = np.array(["high", "low"])

    def predict(self, rows: pd.DataFrame) -> Any:
        return label(rows)

    def predict_proba(self, rows: pd.DataFrame) -> Any:
        p = 1 / (1 + np.exp(-3 * (rows["a"] + rows["b"] - 0.7)))
        return np.c_[p, 1 - p]


class Wavering:
    """Gives the wrong label every ninth time."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, rows: pd.DataFrame) -> list[str]:
        out = []
        for right in label(rows):
            self.n += 1
            out.append({"high": "low", "low": "high"}[right] if self.n % 9 == 0 else str(right))
        return out


def factual() -> pd.Series[Any]:
    row: pd.Series[Any] = DATA[(label(DATA) == "low") & (DATA["job"] == "clerk")].iloc[0]
    return row


RULES = ["a + b <= 1.6", "job: clerk -> nurse is impossible", "if age > 50 then b < 2"]
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "label": (label, {"target": "high", "rules": RULES, "max_changes": 2, "freeze": ["age"]}),
    "any other": (acex.Model(label, class_names={"high": "yes", "low": "no"}), {}),
    "between": (number, {"target": acex.Between(12, 13)}),
    "at least": (number, {"target": acex.AtLeast(12)}),
    "at most": (number, {"target": acex.AtMost(7)}),
    "relative": (number, {"target": acex.Relative(0.2)}),
    "probability": (acex.Model(Likely(), scores=True), {"target": acex.AtLeast(0.7, label="high")}),
    "scores": (acex.Model(Likely(), scores=True), {"target": "high"}),
    "noise": (acex.Model(Wavering(), noise=0.1), {"target": "high", "budget": 30}),
}


@cache
def text(case: str) -> str:
    model, options = CASES[case]
    e = acex.explain(model, factual(), data=DATA, **{"budget": 10, **options})
    assert e.outcome == "found"
    return e.to_json()


def forged(case: str, change: Callable[[dict[str, Any]], Any]) -> Verified:
    """The checks of a file that was changed and got a new checksum."""
    document = json.loads(text(case))
    change(document)
    del document["certificate"]
    return verify(parsed(certified(document)))


def failed(verified: Verified) -> set[str]:
    return {check.promise for check in verified.checks if check.holds is False}


def check(verified: Verified, promise: str) -> Check:
    [found] = [check for check in verified.checks if check.promise == promise]
    return found


def after(d: dict[str, Any]) -> list[Any]:
    """The counterfactual among the rows asked."""
    row: list[Any] = d["asked"][d["positions"][0]]
    return row


def answer(d: dict[str, Any]) -> dict[str, Any]:
    query: dict[str, Any] = d["queries"][d["positions"][0]]
    return query


@pytest.mark.parametrize("case", CASES)
def test_what_acex_wrote_holds_for_every_kind_of_target(case: str) -> None:
    verified = verify(parsed(text(case)), model=CASES[case][0])
    assert failed(verified) == set(), verified
    n_asked = sum(check.promise == "model" for check in verified.checks)
    assert n_asked == 2


@pytest.mark.parametrize(
    ("case", "change", "promise"),
    [
        ("label", lambda d: after(d).__setitem__(3, 59), "limits"),
        ("label", lambda d: after(d).__setitem__(0, 2.0), "rules"),
        ("label", lambda d: after(d).__setitem__(2, "nurse"), "rules"),
        ("label", lambda d: d["settings"]["rules"].append("a + b <= -9"), "rules"),
        ("label", lambda d: d["settings"]["rules"].append("nonsense <= 3"), "rules"),
        ("label", lambda d: d["settings"].__setitem__("max_changes", 0), "changes"),
        (
            "label",
            lambda d: d["settings"].__setitem__("ranges", {"a": [-0.001, 0.001], "b": [-0.001, 0.001]}),
            "limits",
        ),
        ("label", lambda d: d["settings"].__setitem__("budget", 2), "budget"),
        ("label", lambda d: d.__setitem__("n_queries", 1), "budget"),
        ("label", lambda d: d["queries"][1].__setitem__("paid", 40), "budget"),
        ("label", lambda d: d["queries"][1].__setitem__("cost", 77.0), "cost"),
        ("label", lambda d: d["space"]["features"][0].__setitem__("direction", _other_way(d)), "limits"),
        ("label", lambda d: d.__setitem__("note", "approved by a court"), "record"),
        ("label", lambda d: d.__setitem__("outcome", "exhausted"), "record"),
        ("label", lambda d: d.__setitem__("n_reused", 3), "record"),
        ("label", lambda d: d["queries"][-1].__setitem__("best", 0.001), "record"),
        ("label", lambda d: d["queries"][0].__setitem__("best", 0.001), "record"),
        ("label", lambda d: answer(d).__setitem__("counts", False), "record"),
        ("any other", lambda d: answer(d).__setitem__("label", "low"), "labels"),
        ("between", lambda d: answer(d).__setitem__("label", 13.5), "labels"),
        ("between", lambda d: d["settings"].__setitem__("target", {"between": [12, 12.0001]}), "labels"),
        ("at least", lambda d: answer(d).__setitem__("label", 11.9), "labels"),
        ("at most", lambda d: answer(d).__setitem__("label", 7.1), "labels"),
        ("relative", lambda d: d["queries"][0].__setitem__("label", 90.0), "labels"),
        ("probability", lambda d: answer(d).__setitem__("label", 0.69), "labels"),
        ("noise", lambda d: _outvote(d), "labels"),
    ],
)
def test_a_broken_promise_is_named_though_the_checksum_matches(case: str, change: Any, promise: str) -> None:
    verified = forged(case, change)
    assert promise in failed(verified) and "sum" not in failed(verified), verified


def _other_way(d: dict[str, Any]) -> str:
    return "decrease" if after(d)[0] > d["asked"][0][0] else "increase"


def _outvote(d: dict[str, Any]) -> None:
    """Most answers for the counterfactual become misses; the first one stays a hit."""
    mine = [i for i, row in enumerate(d["asked"]) if row == after(d)]
    for i in mine[1:]:
        d["queries"][i] |= {"label": "low", "hit": False}
    assert len(mine) > 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("outcome", "exhausted"), ("outcome", "found"), ("outcome", "already_target"), ("stopped_by", "time")],
)
def test_an_outcome_that_the_steps_contradict_is_named(name: str, value: str) -> None:
    document = acex.explain(lambda rows: ["low"] * len(rows), factual(), DATA, target="high", budget=3).to_dict()
    assert (document["outcome"], document["stopped_by"]) == ("budget_spent", "budget")
    assert verify(parsed(certified(document))).holds
    assert failed(verify(parsed(certified(document | {name: value})))) == {"record"}


def test_what_cannot_be_recomputed_is_listed_as_stated() -> None:
    words = check(verify(parsed(text("label"))), "stated").words
    assert "stated, not checked" in words
    for name in ("stopped_by", "affinities", "needed", "model_id", "labels of the rows"):
        assert name in words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("asked", 3),
        ("queries", [[]]),
        ("space", {"features": 1}),
        ("deviations", ["x"]),
        ("settings", []),
        ("positions", [99]),
    ],
)
def test_a_malformed_document_cannot_be_read(name: str, value: Any) -> None:
    document = json.loads(text("label")) | {name: value}
    del document["certificate"]
    with pytest.raises(ValueError, match="cannot be read as an explanation"):
        verify(parsed(certified(document)))


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all nodes of a document."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(place for key, child in children for place in places(child, (*path, key)))]


def nested(depth: int, key: str | None) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if key is None else {key: value}
    return value


STRANGE: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, True, -1, 0, 10**30, 10**5000, 1.5, float("nan"), float("inf"), "", "x", "=1+1", "1e999"]),
    st.sampled_from([[], {}, [[]], [None], {"x": 1}, [1, 2, 3], {"name": "a", "kind": "number"}]),
    st.builds(nested, st.integers(400, 900), st.sampled_from([None, "features", "x"])),
)
CHANGES = st.lists(st.tuples(st.integers(0, 10**6), st.one_of(STRANGE, st.just("delete"))), min_size=1, max_size=2)


@given(st.sampled_from(["label", "between", "noise"]), CHANGES)
@settings(max_examples=200, deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_any_document_is_verified_or_raises_a_value_error(case: str, changes: list[tuple[int, Any]]) -> None:
    document = json.loads(text(case))
    everywhere = places(document)
    for place, new in changes:
        path, parent = everywhere[place % len(everywhere)], document
        try:
            for key in path[:-1]:
                parent = parent[key]
            if new == "delete" and path:
                del parent[path[-1]]
            elif path:
                parent[path[-1]] = new
            else:
                document = new
        except (LookupError, TypeError):  # the first change took the second place away
            continue
    with suppress(ValueError, RecursionError):  # then `verify` gets what no file can hold
        document = parsed(json.dumps(document))
    n_queries(document)
    try:
        verified = verify(document)
    except ValueError:
        return
    assert isinstance(verified, Verified) and isinstance(verified.holds, bool)


def test_deep_nesting_cannot_be_read() -> None:
    for depth in (400, 900, 20_000):
        with pytest.raises(ValueError, match="cannot be read as an explanation"):
            verify(json.loads(text("label")) | {"settings": nested(depth, "settings")})


def test_numbers_that_another_machine_rounds_otherwise_are_the_same_and_others_are_not() -> None:
    document = parsed(text("between"))
    assert verify(document, model=lambda rows: number(rows) * (1 + 1e-13)).holds
    verified = verify(document, model=lambda rows: number(rows) + 0.01)
    assert failed(verified) == {"model"}


def test_one_answer_of_a_model_that_contradicts_itself_proves_nothing() -> None:
    verified = verify(parsed(text("noise")), model=lambda rows: ["low"] * len(rows))
    assert verified.holds
    assert [c.holds for c in verified.checks if c.promise == "model"] == [True, None]
    assert "vary" in verified.checks[-1].words


def test_rows_that_are_the_same_and_rows_of_an_earlier_run_hold_too() -> None:
    rows = DATA[label(DATA) == "low"].iloc[[0, 0, 1]]
    explainer = acex.Explainer(label, DATA)
    for _ in range(2):  # the second time nothing is paid
        for e in explainer.explain_many(rows, target="high", budget=5, n_jobs=1):
            verified = verify(parsed(e.to_json()))
            assert verified.holds, verified


def test_a_rule_over_a_redacted_column_is_not_checked() -> None:
    model, options = CASES["label"]
    e = acex.explain(model, factual(), data=DATA, budget=10, **options)
    verified = verify(parsed(e.to_json(redact=["job", "age"])))
    assert failed(verified) == set()
    rules = {check.words: check.holds for check in verified.checks if check.promise == "rules"}
    assert rules == {"'a + b <= 1.6' holds.": True, "not checked for 2 rules over redacted columns.": None}
    assert check(verified, "changes").holds is None
    assert "2 rules name redacted columns." in e.to_html(redact=["job", "age"])


def test_a_frozen_column_that_is_redacted_is_named_as_such_and_not_checked() -> None:
    model, options = CASES["label"]
    e = acex.explain(model, factual(), data=DATA, budget=10, **(options | {"freeze": ["job"], "rules": []}))
    verified = verify(parsed(e.to_json(redact=["job"])))
    limits = {check.words: check.holds for check in verified.checks if check.promise == "limits"}
    assert limits["1 redacted column was not checked."] is None
    page = e.to_html(redact=["job"])
    assert "One frozen column is redacted." in page and "no feature" not in page


def test_a_rule_over_a_missing_value_does_not_apply() -> None:
    data = DATA.astype({"b": float, "age": float})
    data.loc[::4, "age"] = np.nan
    space = acex.Space.infer(data, missing="keep")
    row = data[(label(data) == "low") & data["age"].isna()].iloc[0]
    e = acex.explain(label, row, data=data, space=space, target="high", budget=10, rules=["a + b <= 9", "age < 10"])
    checks = verify(parsed(e.to_json())).checks
    rules = {check.holds: check.words for check in checks if check.promise == "rules"}
    assert "'a + b <= 9' holds" in rules[True]
    assert "'age < 10' does not apply" in rules[None]
