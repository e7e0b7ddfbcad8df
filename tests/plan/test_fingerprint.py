"""Rules that decide alike have one fingerprint; what cannot be pinned down is said."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from acex.plan.fingerprint import fingerprint_of

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
    assert fingerprint_of(make(1.0)) == fingerprint_of(make(1.0))
    assert fingerprint_of(make(1.0))[0] != fingerprint_of(make(2.0))[0]
    assert fingerprint_of(make(1.0))[1]


def test_globals_are_part_of_a_rule_also_those_of_what_it_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [fingerprint_of(rule) for rule in (of_global, by_helper)]
    monkeypatch.setattr(sys.modules[__name__], "LIMIT", 6)
    after = [fingerprint_of(rule) for rule in (of_global, by_helper)]
    assert all(complete for _, complete in before + after)
    assert all(a[0] != b[0] for a, b in zip(after, before, strict=True))


def test_keyword_defaults_are_part_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint_of(with_keyword)
    monkeypatch.setattr(with_keyword, "__kwdefaults__", {"limit": 4})
    assert fingerprint_of(with_keyword)[0] != before[0]


def made(body: str, **known: Any) -> Any:
    """The `rule` that this source makes, as if somebody had edited a file between two runs."""
    names: dict[str, Any] = {"__name__": "a_module_of_the_caller", "NamedTuple": NamedTuple, **known}
    exec(textwrap.dedent(body), names)
    return names["rule"]


EDITED = {
    "a constant of a class": """
        class Rule:
            limit = 1
            def __call__(self, rows): return rows < self.limit
        rule = Rule()""",
    "a method that another one calls": """
        class Rule:
            def __call__(self, rows): return self.check(rows)
            def check(self, rows): return rows < 1
        rule = Rule()""",
    "a method of the class above": """
        class Base:
            @staticmethod
            def check(rows): return rows < 1
        class Rule(Base):
            def __call__(self, rows): return self.check(rows)
        rule = Rule().__call__""",
    "a property": """
        class Rule:
            @property
            def limit(self): return 1
            def __call__(self, rows): return rows < self.limit
        rule = Rule()""",
    "a class that is used": """
        class Limit:
            def __init__(self): self.most = 1
        def rule(rows): return rows < Limit().most""",
    "the code of a tuple that can be called": """
        class Rule(NamedTuple):
            name: str
            def __call__(self, rows): return rows < 1
        rule = Rule("limit")""",
    "an attribute of a function": """
        def rule(rows): return rows < rule.limit
        rule.limit = 1""",
    "what a function in a list does": """
        checks = [lambda rows: rows < 1]
        def rule(rows): return all(check(rows) for check in checks)""",
}


@pytest.mark.parametrize("body", EDITED.values(), ids=EDITED)
def test_whatever_a_rule_uses_is_part_of_it(body: str) -> None:
    before, after = fingerprint_of(made(body)), fingerprint_of(made(body.replace("1", "2")))
    assert before == fingerprint_of(made(body)) and before[1] and after[1]
    assert before[0] != after[0]


def test_a_constant_in_a_module_of_the_caller_s_is_part_of_a_rule() -> None:
    settings = ModuleType("settings")
    limits = ModuleType("settings.limits")
    vars(settings)["limits"] = limits
    told = []
    for limit in (1, 1, 2):
        vars(limits).update(most=limit, other=object())
        told.append(fingerprint_of(made("def rule(rows): return rows < settings.limits.most", settings=settings)))
    assert told[0] == told[1] != told[2]
    assert all(complete for _, complete in told)


@pytest.mark.parametrize("rule", [by_helper, Rule(3.0), Frozen(3.0).__call__, partial(with_keyword, limit=2)])
def test_a_rule_that_has_travelled_to_a_worker_is_the_same_rule(rule: Any) -> None:
    assert fingerprint_of(cloudpickle.loads(cloudpickle.dumps(rule))) == fingerprint_of(rule)


def test_a_rule_by_value_that_has_travelled_is_the_same_rule() -> None:
    for body in EDITED.values():
        rule = made("index = [object()]\n" + textwrap.dedent(body).replace("rows <", "rows.index <"))
        assert fingerprint_of(cloudpickle.loads(cloudpickle.dumps(rule))) == fingerprint_of(rule), body


def test_arrays_and_mappings_are_told_apart_by_content() -> None:
    a, b = np.arange(3), np.arange(3) + 1
    assert fingerprint_of(lambda rows: rows in a)[1]
    assert fingerprint_of(partial(np.isin, test_elements=a))[0] != fingerprint_of(partial(np.isin, test_elements=b))[0]
    assert (
        fingerprint_of(partial(with_keyword, limit={"x": 1}))[0]
        != fingerprint_of(partial(with_keyword, limit={"x": 2}))[0]
    )


@pytest.mark.parametrize(
    "values",
    [(pd.Categorical(["a"]), pd.Categorical(["b"])), (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})), (Rule, 1)],
    ids=["categorical", "frame", "class"],
)
def test_what_differs_is_told_apart_or_not_pinned_down(values: tuple[Any, Any]) -> None:
    one, two = (fingerprint_of(lambda rows, value=value: rows < value) for value in values)
    assert one[0] != two[0] or not (one[1] or two[1])


@pytest.mark.parametrize("rule", [{1, 2}.__contains__, open, iter([1]).__next__], ids=["bound", "named", "iterator"])
def test_a_method_of_something_built_in_cannot_be_pinned_down(rule: Any) -> None:
    assert fingerprint_of(rule)[1] is (rule is open)


def test_functions_that_call_each_other_end() -> None:
    def even(n: int) -> bool:
        return n == 0 or odd(n - 1)

    def odd(n: int) -> bool:
        return n != 0 and even(n - 1)

    assert fingerprint_of(even) == fingerprint_of(even)


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    code = (
        "import test_fingerprint as t; from acex.plan import fingerprint as f; print(f.fingerprint_of(t.by_helper)[0])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert told.stdout.strip() == fingerprint_of(by_helper)[0]
