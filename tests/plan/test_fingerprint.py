"""Rules that decide alike have one fingerprint; what has none is reported."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from acex.plan.fingerprint import fingerprint_of

LIMIT = 5


def below(limit: Any) -> Callable[[Any], Any]:
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


VALUES = [
    1,
    1.0,
    True,
    "1",
    b"1",
    (1,),
    [1],
    {1},
    {"a": 1},
    {"a": 2},
    np.arange(3),
    np.arange(3) + 1,
    np.float32(1),
    int,
]


@pytest.mark.parametrize("make", [below, lambda limit: partial(with_keyword, limit=limit)], ids=["closure", "partial"])
def test_the_values_that_a_rule_holds_are_part_of_it(make: Callable[[Any], Any]) -> None:
    prints = [fingerprint_of(make(value)) for value in VALUES]
    assert prints == [fingerprint_of(make(value)) for value in VALUES]
    assert len({name for name, _ in prints}) == len(VALUES)
    assert all(complete for _, complete in prints)


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
    """The `rule` that this source makes, as if a file had been edited between two runs."""
    names: dict[str, Any] = {"__name__": "a_module_of_the_caller", **known}
    exec(textwrap.dedent(body), names)
    return names["rule"]


EDITED = {
    "a constant": "def rule(rows): return rows < 1",
    "a function inside": "def rule(rows): return all(row < 1 for row in rows)",
    "a global of a function inside": "limit = 1\ndef rule(rows): return all(row < limit for row in rows)",
    "a helper in a list": "checks = [lambda rows: rows < 1]\ndef rule(rows): return all(c(rows) for c in checks)",
}


@pytest.mark.parametrize("body", EDITED.values(), ids=EDITED)
def test_what_a_rule_uses_is_part_of_it(body: str) -> None:
    before, after = fingerprint_of(made(body)), fingerprint_of(made(body.replace("1", "2")))
    assert before == fingerprint_of(made(body)) and before[1] and after[1]
    assert before[0] != after[0]


@pytest.mark.parametrize("rule", [by_helper, below(3.0), partial(with_keyword, limit=2), *map(made, EDITED.values())])
def test_a_rule_that_was_sent_to_a_worker_is_the_same_rule(rule: Any) -> None:
    assert fingerprint_of(cloudpickle.loads(cloudpickle.dumps(rule))) == fingerprint_of(rule)


def test_an_object_counts_by_its_attributes() -> None:
    assert fingerprint_of(Rule(1.0)) == fingerprint_of(Rule(1.0)) != fingerprint_of(Rule(2.0))
    assert fingerprint_of(Rule(1.0))[1] and not fingerprint_of(Rule(object()))[1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "rule",
    [
        Rule(1.0).__call__,
        below(Rule),
        below(pd.DataFrame({"a": [1]})),
        below(np.array([None])),
        {1, 2}.__contains__,
        iter([1]).__next__,
        made("def rule(rows): return rows < settings.limit", settings=ModuleType("settings")),
    ],
    ids=["method", "class", "frame", "array of objects", "bound", "iterator", "module"],
)
def test_other_things_have_no_fingerprint(rule: Any) -> None:
    assert not fingerprint_of(rule)[1]


@pytest.mark.parametrize("rule", [open, np.isin, pd.isna, lambda rows: np.log(rows) < 1, below(pd.Timestamp)])
def test_a_name_in_a_library_is_enough(rule: Any) -> None:
    assert fingerprint_of(rule)[1]


def test_an_object_that_refers_to_itself_has_no_fingerprint() -> None:
    class Rule:
        def __init__(self) -> None:
            self.itself = self

        def __call__(self, rows: pd.DataFrame) -> Any:
            return rows["a"] > 0

    assert not fingerprint_of(Rule())[1]


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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert done.stdout.strip() == fingerprint_of(by_helper)[0]
