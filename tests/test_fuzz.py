"""The promises of the README with random tables, models and options; `fuzz` makes the cases.

The message of a failure contains the number of the case: `python tests/test_fuzz.py NUMBER` shows it and runs it alone.
"""

from __future__ import annotations

import sys
import traceback
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acex
from acex.engine.blackbox import BlackBox
from acex.ledger import BaseLedger, MemoryLedger, open_ledger
from acex.models.labels import as_labels
from acex.plan.plan import Plan
from acex.plan.target import Target
from acex.search.search import Search
from acex.space.region import Region
from fuzz import Case, Interrupted, Key, Model, keys, part

NAME = "fuzzed-v1"
BLOCK = 20  # cases in a quick test, of which there are ten
SLOW_BLOCK = 250  # in a slow one, of which there are twenty


@dataclass
class Run:
    """The result of a case: the explanations, each with the row that it explains, and an error."""

    model: Model
    explanations: list[tuple[Key, acex.Explanation]] = field(default_factory=list)
    error: BaseException | None = None
    batch: acex.Explanations | None = None

    @property
    def asked(self) -> list[list[Key]]:
        """The rows of each explanation in order."""
        return [[tuple(step.row.values()) for step in e.steps] for _, e in self.explanations]

    @property
    def ends(self) -> list[Any]:
        return [(e.outcome, e.stopped_by, e.costs, e.ending.counterfactuals) for _, e in self.explanations]


def run(case: Case, path: Path | None, before: Run | None = None, stop_after: int | None = None) -> Run:
    """Run the case once with a ledger in this file or in memory; `before` is the run that it continues."""
    done = Run(case.model(healthy=before is not None))
    done.model.answered |= case.answered if before is None else before.model.answered
    try:
        with MemoryLedger() if path is None else open_ledger(path) as ledger:
            if case.lifetime is not None:
                ledger.budget(NAME, rows=case.lifetime)
            _run(case, ledger, done, stop_after)
    except (Exception, Interrupted) as error:
        done.error = error
    return done


def _run(case: Case, ledger: BaseLedger, done: Run, stop_after: int | None) -> None:
    rows, setup, options = keys(case.rows), {**case.setup, "ledger": ledger}, dict(case.options)
    model = acex.Model(done.model, **{"name": NAME, **case.model_options})
    if case.cost:
        options["cost"] = acex.Cost(**case.cost)
    if case.answers is not None:
        acex.Explainer(model, case.data, ledger=ledger).import_answers(*case.answers)
    if case.mode == "explain":
        try:
            e = acex.explain(model, case.x(0), case.data, **setup, **options)
            done.explanations.append((rows[0], e))
        except BaseException as error:
            if getattr(error, "explanation", None) is not None:
                done.explanations.append((rows[0], error.explanation))  # type: ignore[attr-defined]
            raise
        return
    explainer = acex.Explainer(model, case.data, **setup)
    if case.mode == "many":
        done.batch = explainer.explain_many(case.rows, n_jobs=1, budget_total=case.budget_total, **options)
        done.explanations += zip(rows, done.batch, strict=True)
        return
    for i, row in enumerate(rows):
        session = explainer.search(case.x(i), **options)
        try:
            if case.mode == "ask and tell":
                ask_and_tell(case, session, done.model)
            else:
                list(islice(session, stop_after))
        finally:
            if session.steps:
                done.explanations.append((row, session.explanation()))


def ask_and_tell(case: Case, session: Any, model: Model) -> None:
    """Tell whole rounds, or row by row from the last one, each twice."""
    while (rows := session.ask()) is not None:
        labels = model.answer(rows.copy())
        for i in reversed(range(len(rows))) if case.in_parts else ():
            session.tell(part(rows, [i, i]), [labels[i]] * 2)
        if not case.in_parts:
            session.tell(rows, labels)


# -- what must hold ------------------------------------------------------------------------------------------


def attack(case: Case, folder: Path) -> bool:
    """Was any row sent? Raises at the first promise that is broken."""
    path = folder / f"{case.number}.db" if case.on_disk else None
    first = run(case, path, stop_after=case.stop_after)
    check(case, first)
    if case.is_repeated:
        # The same seed sends the same rows, also with another ledger.
        single = case.mode in ("explain", "steps", "ask and tell")
        again = run(case, None if single or path is None else folder / f"{case.number}-again.db")
        check(case, again)
        n = len(first.model.sent)
        assert first.model.sent == (again.model.sent if case.stop_after is None else again.model.sent[:n])
        assert first.asked == again.asked or case.stop_after is not None
        assert type(again.error) is type(first.error)
    if path is not None:
        resume(case, path, first, again)
    return bool(first.model.sent)


def resume(case: Case, path: Path, first: Run, undisturbed: Run) -> None:
    """What was interrupted continues, what has ended stays ended, and nothing is paid for twice."""
    later = run(case, path, before=first)
    sent = [*first.model.sent, *later.model.sent]
    check(case, later, before=first)
    if case.fails is None:  # a row in doubt may have been charged, and counts
        assert later.asked == undisturbed.asked and later.ends == undisturbed.ends
        assert sorted(map(repr, sent)) == sorted(map(repr, undisturbed.model.sent))
    elif first.error is None and not failed(first):
        assert later.model.sent == []
        assert later.ends == first.ends
    else:
        last = run(case, path, before=later)
        assert last.model.sent == []
        for (_, ended), old, new in zip(later.explanations, later.asked, last.asked, strict=True):
            # Only one whose budget a row in doubt used up may go on: with answers that another has paid for since.
            assert new == old or (ended.outcome == "budget_spent" and new[: len(old)] == old)
            assert all(row in later.model.sent for row in new[len(old) :])


def failed(done: Run) -> bool:
    return any(e.outcome == "failed" for _, e in done.explanations)


def check(case: Case, done: Run, before: Run | None = None) -> None:
    """Every promise, for what one run has sent and found; `before` is the run that it continued."""
    model = done.model
    assert model.complaints == []
    n = len(model.sent)
    paid = n if before is None else n + len(before.model.sent)
    if case.lifetime is not None:
        assert paid <= case.lifetime
    if case.budget_total is not None:
        assert paid <= case.budget_total
    budget = 0 if case.mistake is not None else case.options["budget"]
    assert paid <= budget * len(case.rows)
    if done.error is None:
        assert sum(e.n_queries for _, e in done.explanations) == n
    if done.batch is not None and done.error is None:
        assert done.batch.frame()["queries"].sum() == paid
        assert done.batch.summary().queries == paid
    check_error(case, done)
    for factual, e in done.explanations:
        assert e.n_queries <= budget
        check_explanation(case, factual, e, model.answered)


ARGUMENTS = {*signature(acex.explain).parameters, "feature", "column", "row"}
NOTHING_LEFT = "No feature can change"


def check_error(case: Case, done: Run) -> None:
    """An error names what is wrong; a wrong argument is refused before a row is sent."""
    error, mistake = done.error, case.mistake
    if mistake is not None:
        messages = [e.error or "" for _, e in done.explanations] if error is None else [str(error)]
        assert isinstance(error, (ValueError, TypeError)) or (case.mode == "many" and failed(done)), repr(mistake)
        # A row that cannot change at all is refused first, whatever else is wrong.
        assert messages and all(mistake.word in m or NOTHING_LEFT in m for m in messages), f"{mistake} gave {messages}"
        assert done.model.sent == []
    if error is None or mistake is not None:
        return
    if isinstance(error, Interrupted):
        assert case.fails is not None
    elif isinstance(error, acex.AcexError):
        event = acex.ModelFailed if case.lifetime is None else (acex.ModelFailed, acex.BudgetSpent)
        assert isinstance(error, event), repr(error)
        assert case.fails is not None or case.lifetime is not None
        explained = getattr(error, "explanation", None)
        assert explained is None or explained.n_queries <= len(done.model.sent)
    else:
        assert isinstance(error, (ValueError, TypeError)), repr(error)
        names = [str(limit.name) for limit in case.limits]
        assert any(word in str(error) for word in (*ARGUMENTS, *names)), repr(error)
        assert not done.model.sent or len(case.rows) > 1, f"a row was sent before the error: {error!r}"


def check_explanation(case: Case, factual: Key, e: acex.Explanation, answered: dict[Key, Any]) -> None:
    target = Target.of(case.options.get("target"))
    asked = [tuple(step.row.values()) for step in e.steps]
    if e.outcome == "failed":
        assert e.error
    for position, (row, step) in enumerate(zip(asked, e.steps, strict=True)):
        assert step.label == answered[row], f"row {row}: not the label that the model gave"
        if position == 0:
            assert row == factual
            continue
        for limit, value, was in zip(case.limits, row, factual, strict=True):
            assert (how := limit.breach(value, was)) is None, f"{limit.name!r}: {value!r}, before {was!r}, {how}"
        assert case.rule is None or case.rule.allows(row), f"row {row} breaks {case.rule}"
    assert len(set(asked)) == len(asked), "a row was sent twice"
    found = keys(e.counterfactuals)
    assert (e.outcome == "found") == bool(found)
    for row in found:
        assert row in asked[1:]
        assert target.is_hit(answered[row], answered[factual])
    if found:
        assert e.label_after == answered[found[0]] and e.label_before == answered[factual]
        if isinstance(case.data, pd.DataFrame):
            assert e.counterfactuals.dtypes.equals(case.data.dtypes)
        else:
            assert e.counterfactuals.dtypes.tolist() == pd.DataFrame(case.data).dtypes.tolist()
        assert len(e.sentences()) > 0
    back = acex.Explanation.from_json(e.to_json())
    assert (back.outcome, back.n_queries, back.costs) == (e.outcome, e.n_queries, e.costs)
    assert str(e)


# -- the tests -----------------------------------------------------------------------------------------------


def attack_all(numbers: Sequence[int], folder: Path, most: int = 5) -> None:
    """Attack these cases; the error shows the first few that break a promise."""
    broken: list[str] = []
    alive = 0
    for number in numbers:
        try:
            alive += attack(Case(number), folder)
        except Exception:
            broken.append(f"case {number}: python tests/test_fuzz.py {number}\n{traceback.format_exc(limit=-2)}")
        if len(broken) == most:
            break
    assert not broken, "\n".join(broken)
    assert alive > len(numbers) / 2  # a case that is refused at once tests nothing else


@pytest.mark.parametrize("block", range(10))
def test_every_promise_holds_in_random_cases(block: int, tmp_path: Path) -> None:
    attack_all(range(block * BLOCK, (block + 1) * BLOCK), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_every_promise_holds_in_five_thousand_random_cases(block: int, tmp_path: Path) -> None:
    attack_all(range(1000 + block * SLOW_BLOCK, 1000 + (block + 1) * SLOW_BLOCK), tmp_path)


# -- a broken library is noticed -------------------------------------------------------------------------------


def overdraws(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BlackBox, "remaining", property(lambda box: box.budget - box.paid + 1))


def sends_twice(patch: pytest.MonkeyPatch) -> None:
    answers = BlackBox._answers
    patch.setattr(BlackBox, "_answers", lambda box, *rows: (answers(box, *rows), answers(box, *rows))[0])


def mistakes_labels(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("acex.models.model.as_labels", lambda *answer: as_labels(*answer)[::-1])


def ignores_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Region, "_snapped", lambda region, X, chosen=None: region.space.snap(X))


def ignores_rules(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Region, "_holds", lambda region, function, X: np.ones(len(X), dtype=bool))


def forgets_seeds(patch: pytest.MonkeyPatch) -> None:
    begin, seeds = Search.begin, iter(range(1000, 9999))
    patch.setattr(Search, "begin", lambda problem, how, seed, **rest: begin(problem, how, next(seeds), **rest))


def forgets_the_past(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Plan, "identity", property(lambda plan: uuid.uuid4().hex))


@pytest.mark.parametrize(
    ("broken", "option"),  # the option that a case must have to show the fault
    [
        (overdraws, "budget"),
        (sends_twice, "budget"),
        (mistakes_labels, "budget"),
        (ignores_limits, "freeze"),
        (ignores_rules, "rules"),
        (forgets_seeds, "seed"),
        (forgets_the_past, "seed"),
    ],
)
def test_a_broken_promise_is_noticed(
    broken: Callable[[pytest.MonkeyPatch], None], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    concerned = [number for number in range(100) if option in Case(number).options]
    with pytest.raises(AssertionError, match=r"python tests/test_fuzz.py \d+"):
        attack_all(concerned, tmp_path, most=1)


if __name__ == "__main__":
    chosen = Case(int(sys.argv[1]))
    print(chosen)
    with TemporaryDirectory() as temporary:
        attack(chosen, Path(temporary))
    print("every promise holds")
