"""Rules that hold for all known rows, for a person to accept or not: a rule without exception may still be accidental.

Looked for are columns in an order (a <= b), sums (a + b == c, a + b + c == 100), constant ratios (a == 2.5 * b), and
what follows from a category (if housing == 'own' then rent == 0).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np

from acex.arrays import FloatArray
from acex.space.kinds import Categorical
from acex.space.rules import KEYWORDS, Rule, is_close
from acex.space.space import Space

FEWEST = 20  # rows that a rule has to hold for
SURPRISE = 0.05  # share of rows that would break it, if the columns had nothing to do with each other
MOST_NUMBERS = 30  # columns of numbers that are compared with each other
MOST_SUMMED, WIDEST = 12, 5  # columns that sums are looked for among, and columns in one


@dataclass(frozen=True, eq=False)
class MinedRule:
    """A rule that all known rows keep.

    Attributes:
        rule: with its text and its sentence.
        support: rows that it applies to; it holds for all of them.
        surprise: the share of rows that would break it after shuffling one column.
    """

    rule: Rule
    support: int
    surprise: float

    def __str__(self) -> str:
        return f"{self.rule.text}  ({self.support} rows keep it; {100 * self.surprise:.0f}% would break it by chance)"

    __repr__ = __str__


def mine(space: Space, X: FloatArray) -> list[MinedRule]:
    """Rules that hold for all points, (n, d), that have no gap, the most surprising first."""
    X = X[~space.is_gap(X).any(axis=1)]
    if len(X) < FEWEST:
        return []
    numbers = [j for j, f in enumerate(space.features) if f.is_number and np.ptp(X[:, j]) > 0][:MOST_NUMBERS]
    found: list[MinedRule] = []
    for text, rows, column in [*_equal(space, X, numbers), *_ordered(space, X, numbers), *_implied(space, X, numbers)]:
        rule = Rule.of(text, space)
        if not rule.holds(X, X[0]).all():
            continue
        shuffled = X.copy()
        shuffled[:, column] = np.random.default_rng(0).permutation(X[:, column])
        broken = 1 - float(rule.holds(shuffled, X[0]).mean())
        if broken >= SURPRISE * rows / len(X):
            found.append(MinedRule(rule, rows, broken))
    return sorted(found, key=lambda m: -m.surprise)


def _equal(space: Space, X: FloatArray, numbers: list[int]) -> Iterator[tuple[str, int, int]]:
    """Sums that are constant or another column, and constant ratios: text, rows, and a column of it."""
    few = numbers[:MOST_SUMMED]
    for k in range(2, WIDEST + 1):
        for chosen in combinations(few, k):
            total = X[:, chosen].sum(axis=1)
            names = ", ".join(_name(space, j) for j in chosen)
            if is_close(total, total[:1]).all():
                yield f"sum({names}) == {_number(float(total.mean()))}", len(X), chosen[0]
            elif k <= 3:
                for j in numbers:
                    if j not in chosen and is_close(total, X[:, j]).all():
                        yield f"{_name(space, j)} == sum({names})", len(X), j
    for a, b in combinations(numbers, 2):
        if (X[:, b] != 0).all():
            ratio = X[:, a] / X[:, b]
            if is_close(ratio, ratio[:1]).all():
                yield f"{_name(space, a)} == {_number(float(ratio.mean()))} * {_name(space, b)}", len(X), a


def _ordered(space: Space, X: FloatArray, numbers: list[int]) -> Iterator[tuple[str, int, int]]:
    """Columns that are never above another."""
    for a, b in permutations(numbers, 2):
        if (X[:, a] <= X[:, b]).all():
            yield f"{_name(space, a)} <= {_name(space, b)}", len(X), a


def _implied(space: Space, X: FloatArray, numbers: list[int]) -> Iterator[tuple[str, int, int]]:
    """Numbers and categories that are always the same where a column has one category."""
    categories = {
        j: {str(category): float(code) for code, category in enumerate(f.categories)}
        for j, f in enumerate(space.features)
        if isinstance(f, Categorical) and not f.has_many
    }
    for j, codes in categories.items():
        for word, code in codes.items():
            rows = X[X[:, j] == code]
            if not FEWEST <= len(rows) < len(X):
                continue
            premise = f"if {_name(space, j)} == {_quoted(word)} then"
            for k in numbers:
                if np.ptp(rows[:, k]) == 0:
                    yield f"{premise} {_name(space, k)} == {_number(float(rows[0, k]))}", len(rows), k
            for k, others in categories.items():
                if k != j and np.ptp(rows[:, k]) == 0 and np.ptp(X[:, k]) > 0:
                    other = next(w for w, c in others.items() if c == rows[0, k])
                    yield f"{premise} {_name(space, k)} == {_quoted(other)}", len(rows), k


def _name(space: Space, j: int) -> str:
    name = space.names[j]
    words = (*KEYWORDS, "true", "false")
    return name if re.fullmatch(r"[^\W\d][\w.]*", name) and name not in words else f"`{name}`"


def _quoted(word: str) -> str:
    return f"'{word}'" if "'" not in word else f'"{word}"'


def _number(value: float) -> str:
    """As short as it can be without being another number."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 18))  # 17 tell any two floats apart
    short = next(text for text in texts if bool(is_close(np.array(float(text)), np.array(value))))
    return f"{float(short):.15g}"
