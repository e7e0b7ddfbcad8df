"""A rule of the caller's that has changed between two runs: what it forbids now is not sent any more."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acex
from acex.arrays import FloatArray
from ledgers import Bill

# Nothing is known between 0 and 1, where the decision changes: there the search has to ask. What a rule says of known
# rows is the same whether it forbids a part of this gap or not.
RNG = np.random.default_rng(0)
X = np.column_stack([np.r_[-RNG.random(40), 1 + RNG.random(40)], RNG.random(80)]).round(3)
FACTUAL = X[np.argmin(np.abs(X[:, 0] + 0.2))]
NOWHERE, THE_GAP = 1.0, 0.0  # from where on the gap is forbidden

FROM = NOWHERE  # for the rule that uses a global


def outside(rows: FloatArray, start: float) -> Any:
    return ~((start < rows[:, 0]) & (rows[:, 0] < 1.0))


class Rule:
    def __init__(self, start: float) -> None:
        self.start = start

    def __call__(self, rows: FloatArray) -> Any:
        return outside(rows, self.start)

    def check(self, rows: FloatArray) -> Any:
        return outside(rows, self.start)


def by_global(rows: FloatArray) -> Any:
    return outside(rows, FROM)


def by_default(rows: FloatArray, *, start: float = NOWHERE) -> Any:
    return outside(rows, start)


def with_global(start: float, patch: pytest.MonkeyPatch) -> Any:
    patch.setattr(sys.modules[__name__], "FROM", start)
    return by_global


def with_default(start: float, patch: pytest.MonkeyPatch) -> Any:
    patch.setattr(by_default, "__kwdefaults__", {"start": start})
    return by_default


KINDS: dict[str, Callable[[float, pytest.MonkeyPatch], Any]] = {
    "object": lambda start, patch: Rule(start),
    "method": lambda start, patch: Rule(start).check,
    "global": with_global,
    "keyword default": with_default,
    "partial": lambda start, patch: partial(outside, start=start),
}


def in_the_gap(rows: FloatArray) -> Any:
    return (rows[:, 0] > 0) & (rows[:, 0] < 1)


class Seller:
    """A model that writes down what it is sent; it may die at the first row in the gap."""

    def __init__(self, bill: Bill, dies: bool = False) -> None:
        self.bill, self.dies = bill, dies

    def __call__(self, rows: FloatArray) -> Any:
        self.bill.add([str(in_the_gap(rows[[i]])[0]) for i in range(len(rows))])
        if self.dies and in_the_gap(rows).any():
            os._exit(9)  # nobody can write down anything any more
        return np.where(rows[:, 0] > 0.4, "yes", "no")


def explain(rule: Any, folder: Path, name: str, budget: int, dies: bool = False) -> acex.Explanation:
    model = Seller(Bill(folder / name), dies)
    return acex.explain(
        acex.Model(model, name="m"),
        FACTUAL,
        data=X,
        ledger=folder / "ledger.db",
        budget=budget,
        target="yes",
        rules=[rule],
    )


def explained_and_killed(rule: Any, folder: Path) -> None:
    """A process that explains and dies with a row of the gap in flight."""
    child = os.fork()
    if child == 0:
        try:
            explain(rule, folder, "before", 20, dies=True)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("ended", [True, False], ids=["budget enlarged", "killed in flight"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_rule_forbids_now_is_not_sent_whatever_was_begun_before(
    kind: str, ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = KINDS[kind](NOWHERE, monkeypatch)
    if ended:
        explain(before, tmp_path, "before", 14)
    else:
        explained_and_killed(before, tmp_path)
    assert "True" in Bill(tmp_path / "before").lines()  # or there would be nothing to see
    e = explain(KINDS[kind](THE_GAP, monkeypatch), tmp_path, "now", 20)
    assert "True" not in Bill(tmp_path / "now").lines()
    assert not in_the_gap(e.trace[e.plan.space.names].to_numpy()).any()
    assert not in_the_gap(e.counterfactuals.to_numpy()).any()
    assert e.warnings == ()


@pytest.mark.parametrize("ended", [True, False], ids=["budget enlarged", "killed in flight"])
def test_a_rule_that_is_taken_for_another_is_found_out_before_anything_is_sent(
    ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However well a rule is pinned down, code can depend on more: the clock, a file, a server.
    monkeypatch.setattr("acex.engine.planner.fingerprint_of", lambda rule: ("some rule", True))
    if ended:
        explain(Rule(NOWHERE), tmp_path, "before", 8)
        e = explain(Rule(THE_GAP), tmp_path, "now", 20)
        assert not in_the_gap(e.trace[e.plan.space.names].to_numpy()[8:]).any()
        assert not in_the_gap(e.counterfactuals.to_numpy()).any()  # also where the answer was paid for before
    else:
        explained_and_killed(Rule(NOWHERE), tmp_path)
        with pytest.raises(ValueError, match="is forbidden by the rules"):
            explain(Rule(THE_GAP), tmp_path, "now", 20)
    assert "True" not in Bill(tmp_path / "now").lines()


def test_a_rule_that_has_not_changed_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    rule = partial(outside, start=NOWHERE)
    explain(rule, tmp_path, "before", 8)
    e = explain(rule, tmp_path, "now", 12)
    before, now = (Bill(tmp_path / name).lines() for name in ("before", "now"))
    assert (e.n_reused, e.n_queries) == (len(before), len(now)) and len(now) > 0
