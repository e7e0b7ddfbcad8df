"""What a model was asked before, as points: read once, the nearest first, a bounded number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from acex.arrays import FloatArray
from acex.engine import pool as pools
from acex.engine.pool import ENOUGH, MOST_KNOWN, Pool, hint_cutoff, points_of
from acex.ledger import Answer, MemoryLedger, canonical
from acex.search.problem import key
from acex.space.scale import Quantiles, Scale
from problems import MIXED, PEOPLE, reference_rows

REFERENCE = reference_rows(MIXED, 200)


def filled(n: int, seed: int = 1, reference: FloatArray = REFERENCE) -> tuple[Pool, FloatArray]:
    """A pool of so many answers, and their points in the order of answering."""
    ledger = MemoryLedger()
    ledger.register("m", features=MIXED.names)
    rng = np.random.default_rng(seed)
    X = np.unique(MIXED.snap(MIXED.low + rng.random((n, 6)) * (MIXED.high - MIXED.low)), axis=0)
    X = X[rng.permutation(len(X))]
    ledger.import_answers("m", canonical(MIXED.frame(X)), ["yes" if x[0] > 5 else "no" for x in X])
    return Pool(ledger, "m", MIXED, Quantiles.of(Scale.of(MIXED, reference), reference)), X


def is_hit(answer: Answer) -> tuple[bool, float | None]:
    return answer.label == "yes", None


def test_the_nearest_are_those_of_brute_force_without_what_was_asked() -> None:
    pool, X = filled(300)
    home = pool.quantiles.coordinates(REFERENCE[:1])
    asked = {key(x) for x in X[:50]}
    found = pool.nearest(home, 250, asked, ())
    others = [i for i in range(250) if key(X[i]) not in asked]
    distance = np.linalg.norm(pool.quantiles.coordinates(X[others]) - home, axis=1)
    expected = X[others][np.argsort(distance, kind="stable")[:MOST_KNOWN]]
    np.testing.assert_array_equal(found.X, expected)
    known = found.known(is_hit)
    assert known is not None
    assert known.is_hit.tolist() == [x[0] > 5 for x in expected]


def test_what_came_later_is_not_seen() -> None:
    pool, X = filled(60)
    home = pool.quantiles.coordinates(REFERENCE[:1])
    seen = {key(x) for x in pool.nearest(home, 10, (), ()).X}
    assert seen == {key(x) for x in X[:10]}
    assert pool.nearest(home, 0, (), ()).known(is_hit) is None


def test_each_answer_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, _ = filled(60)
    read: list[tuple[int, int]] = []
    real = pool.ledger.answers

    def answers(model: str, **part: Any) -> list[Answer]:
        read.append((part["after"], part["up_to"]))
        return real(model, **part)

    monkeypatch.setattr(pool.ledger, "answers", answers)
    home = pool.quantiles.coordinates(REFERENCE[:1])
    for seen in (20, 20, 40, 30, 60):
        pool.nearest(home, seen, (), ())
    assert read == [(0, 20), (20, 40), (40, 60)]
    pool.nearest(home, 60, (), own={61, 62})
    assert len(read) == 3


def test_only_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "NEWEST", 20)
    pool, X = filled(200)
    home = pool.quantiles.coordinates(REFERENCE[:1])
    for seen in range(10, 201, 10):
        found = pool.nearest(home, seen, (), ())
        assert {key(x) for x in found.X} == {key(x) for x in X[max(seen - 20, 0) : seen]}
        assert len(pool._newest.X) <= 50


def test_a_hint_needs_enough_answers_of_both_kinds_and_serves_all_who_want_the_same() -> None:
    pool, X = filled(ENOUGH + 150)
    assert pool.hint(ENOUGH - 1, "yes", is_hit) is None
    hint = pool.hint(ENOUGH + 10, "yes", is_hit)
    assert hint is not None and pool.hint(ENOUGH + 12, "yes", is_hit) is hint
    right = (hint(X) > 0.5) == (X[:, 0] > 5)
    assert right.mean() > 0.9
    assert pool.hint(ENOUGH + 10, "none", lambda answer: (False, None)) is None


def test_a_hint_learns_nothing_from_a_feature_that_never_varies_in_the_reference() -> None:
    constant = REFERENCE.copy()
    constant[:, 0] = 3.0  # the answers depend on this feature alone
    for reference, learns in ((REFERENCE, True), (constant, False)):
        pool, X = filled(ENOUGH + 100, reference=reference)
        hint = pool.hint(len(X), "yes", is_hit)
        assert hint is not None
        low, high = X[:40].copy(), X[:40].copy()
        low[:, 0], high[:, 0] = MIXED.low[0], MIXED.high[0]
        assert bool((hint(low) < hint(high)).all()) == learns
        assert learns or (hint(low) == hint(high)).all()


def test_a_hint_changes_seldom() -> None:
    numbers = [hint_cutoff(n) for n in range(0, 20_000)]
    assert all(number <= n for n, number in enumerate(numbers))
    assert np.all(np.diff(numbers) >= 0)
    assert len(set(numbers[ENOUGH:])) < 60
    assert all(n - number <= max(0.2 * number, 1) for n, number in enumerate(numbers) if n >= ENOUGH)


def test_rows_that_do_not_fit_the_space_are_left_out_one_by_one() -> None:
    good = canonical(PEOPLE.frame(np.array([[30.0, 1000.0, 1.0], [40.0, 2000.0, 0.0]])))
    forms = [good[0], "[1, 2]", '{"a": 1}', '[30, 1000, "pilot"]', good[1], '["x", 1, "cook"]']
    points = points_of(PEOPLE, forms)
    assert [x is not None for x in points] == [True, False, False, False, True, False]
    np.testing.assert_array_equal(points[4], [40.0, 2000.0, 0.0])


def test_of_a_corrected_row_each_question_sees_the_answer_that_was_valid_then() -> None:
    pool, X = filled(20)
    home = pool.quantiles.coordinates(REFERENCE[:1])
    row = pool.ledger.answers("m")[3]
    other = "no" if row.label == "yes" else "yes"
    pool.ledger.correct("m", row.row, other)
    n = len(X)
    before, after = (pool.nearest(home, seen, (), ()).answers for seen in (n, n + 1))
    assert [a.label for a in before if a.row == row.row] == [row.label]
    assert [a.label for a in after if a.row == row.row] == [other]
    assert len(before) == len(after) == n
