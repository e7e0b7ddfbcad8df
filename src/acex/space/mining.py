"""Rules that hold for all known rows, for a person to review: a rule without exceptions may still be due to chance.

There are three kinds: numeric relations (see `relations`), pairs of ordered columns (a <= b), and implications of a
category (if housing == 'own' then rent == 0).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from acex.arrays import FloatArray
from acex.space.kinds import Categorical
from acex.space.relations import FEWEST, SURPRISE, column_text, find_relations, number_text
from acex.space.rules import Rule
from acex.space.space import Space

MOST_NUMBERS = 30  # number of numeric columns that are compared pairwise


@dataclass(frozen=True, eq=False)
class MinedRule:
    """A rule that all known rows satisfy.

    Attributes:
        rule: its text can be passed as `rules=`.
        support: number of rows that it applies to; it holds for all of them.
        surprise: the share of rows that would break it after shuffling one column.
    """

    rule: Rule
    support: int
    surprise: float

    def __str__(self) -> str:
        return f"{self.rule.text}  ({self.support} rows keep it; {100 * self.surprise:.0f}% would break it by chance)"

    __repr__ = __str__


def mine(space: Space, X: FloatArray) -> list[MinedRule]:
    """Rules that hold for all points, (n, d), without gaps, most surprising first."""
    X = X[~space.is_gap(X).any(axis=1)]
    if len(X) < FEWEST:
        return []
    counted = [j for j, f in enumerate(space.features) if f.is_counted and np.ptp(X[:, j]) > 0]
    some = [j for j in counted if space.features[j].is_number][:MOST_NUMBERS]
    found: list[MinedRule] = []
    for text, rows, column in [*_equal(space, X, counted), *_ordered(space, X, some), *_implied(space, X, some)]:
        rule = Rule.of(text, space)
        if not rule.holds(X, X[0]).all():
            continue
        shuffled = X.copy()
        shuffled[:, column] = np.random.default_rng(0).permutation(X[:, column])
        broken = 1 - float(rule.holds(shuffled, X[0]).mean())
        if broken >= SURPRISE * rows / len(X):
            found.append(MinedRule(rule, rows, broken))
    return sorted(found, key=lambda m: -m.surprise)


def _equal(space: Space, X: FloatArray, counted: list[int]) -> Iterator[tuple[str, int, int]]:
    """Sums, constant multiples and products: text, number of rows, and one of its columns."""
    for text in find_relations([space.names[j] for j in counted], X[:, counted]):
        yield text, len(X), Rule.of(text, space).equalities[0].columns[0]


def _ordered(space: Space, X: FloatArray, numbers: list[int]) -> Iterator[tuple[str, int, int]]:
    """Pairs of columns of which one never exceeds the other."""
    for a, b in permutations(numbers, 2):
        if (X[:, a] <= X[:, b]).all():
            yield f"{column_text(space.names[a])} <= {column_text(space.names[b])}", len(X), a


def _implied(space: Space, X: FloatArray, numbers: list[int]) -> Iterator[tuple[str, int, int]]:
    """Numbers and categories that are constant among the rows of a category."""
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
            premise = f"if {column_text(space.names[j])} == {_quoted(word)} then"
            for k in numbers:
                if np.ptp(rows[:, k]) == 0:
                    yield f"{premise} {column_text(space.names[k])} == {number_text(float(rows[0, k]))}", len(rows), k
            for k, others in categories.items():
                if k != j and np.ptp(rows[:, k]) == 0 and np.ptp(X[:, k]) > 0:
                    other = next(w for w, c in others.items() if c == rows[0, k])
                    yield f"{premise} {column_text(space.names[k])} == {_quoted(other)}", len(rows), k


def _quoted(word: str) -> str:
    return f"'{word}'" if "'" not in word else f'"{word}"'
