"""Rules that decide alike have one fingerprint; what cannot be pinned down is said."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acex.plan.pinned import pinned

LIMIT = 5
LIMITS = {"a": 1}


def below(limit: float) -> Callable[[Any], Any]:
    return lambda rows: rows < limit


def with_keyword(rows: Any, *, limit: Any = 3) -> Any:
    return rows < limit


def of_global(rows: Any) -> Any:
    return rows < LIMIT


def by_helper(rows: Any) -> Any:
    return of_global(rows)


class Rule:
    def __init__(self, limit: float) -> None:
        self.limit = limit

    def __call__(self, rows: Any) -> Any:
        return rows < self.limit

    def check(self, rows: Any) -> Any:
        return rows < self.limit


@dataclass(frozen=True)
class Frozen:
    limit: float

    def __call__(self, rows: Any) -> Any:
        return rows < self.limit


@pytest.mark.parametrize(
    "make",
    [below, Rule, Frozen, lambda limit: Rule(limit).check, lambda limit: partial(with_keyword, limit=limit)],
    ids=["closure", "callable object", "dataclass", "method", "partial"],
)
def test_what_a_rule_holds_is_part_of_it(make: Callable[[float], Any]) -> None:
    assert pinned(make(1.0)) == pinned(make(1.0))
    assert pinned(make(1.0))[0] != pinned(make(2.0))[0]
    assert pinned(make(1.0))[1]


def test_globals_are_part_of_a_rule_also_those_of_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [pinned(rule) for rule in (of_global, by_helper)]
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 6)
    after = [pinned(rule) for rule in (of_global, by_helper)]
    assert all(complete for _, complete in before + after)
    assert all(a[0] != b[0] for a, b in zip(after, before, strict=True))


def test_keyword_defaults_are_part_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pinned(with_keyword)
    monkeypatch.setattr(with_keyword, "__kwdefaults__", {"limit": 4})
    assert pinned(with_keyword)[0] != before[0]


def test_arrays_and_mappings_are_told_apart_by_content() -> None:
    a, b = np.arange(3), np.arange(3) + 1
    assert pinned(lambda rows: rows in a)[1]
    assert pinned(partial(np.isin, test_elements=a))[0] != pinned(partial(np.isin, test_elements=b))[0]
    assert pinned(partial(with_keyword, limit={"x": 1}))[0] != pinned(partial(with_keyword, limit={"x": 2}))[0]


@pytest.mark.parametrize("rule", [{1, 2}.__contains__, open, iter([1]).__next__], ids=["bound", "named", "iterator"])
def test_a_method_of_something_built_in_cannot_be_pinned_down(rule: Any) -> None:
    assert pinned(rule)[1] is (rule is open)


def test_functions_that_call_each_other_end() -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    assert pinned(even) == pinned(even)


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    code = "import test_pinned as t; from acex.plan.pinned import pinned; print(pinned(t.by_helper)[0])"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert told.stdout.strip() == pinned(by_helper)[0]
