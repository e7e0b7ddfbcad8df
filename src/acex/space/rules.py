"""Rules over rows, as text: what holds in every row that is asked, and how a row is moved so that it does.

Besides what `grammar` reads there are rules about where a category may go from the factual's:

    purpose: car -> business is impossible          school: primary -> high -> university only
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray
from acex.space.grammar import Equality, Parser, close_to, codes_of, is_close
from acex.space.space import Space

TRANSITION = re.compile(r"\s*(?:`([^`]+)`|([^\W\d][\w.]*))\s*:(.*?)\s(is\s+impossible|only)\s*", re.DOTALL)
MOST_STEPS = 20  # of the secant method; a linear rule needs one
PASSES = 3  # over all rules, since moving along one may break another
PART = 1e-3  # of a feature's range: the first step of the secant method


@dataclass(frozen=True, eq=False)
class Rule:
    """What has to be true of a row.

    Attributes:
        text: as it was written. sentence: the same for people.
        equalities: what has to be equal where `applies`; the row is moved until it is.
    """

    text: str
    sentence: str
    _holds: Callable[[FloatArray, FloatArray], BoolArray] = field(repr=False)
    applies: Callable[[FloatArray], BoolArray] | None = field(default=None, repr=False)
    equalities: tuple[Equality, ...] = field(default=(), repr=False)
    gaps: Mapping[int, float] = field(default_factory=dict, repr=False)  # of its columns that may have some: their code

    @staticmethod
    def of(text: str, space: Space) -> Rule:
        """The rule that a text stands for.

        Raises:
            ValueError: it stands for none; the message points at the character.
        """
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"rules: expected a text such as 'duration <= 84 - age', got {text!r}.")
        if (found := TRANSITION.fullmatch(text)) is not None:
            return _transition(text, space, found)
        parser = Parser(text, space)
        premise, says = parser.rule()
        gaps = {j: f.gap for j, f in enumerate(space.features) if f.gaps and f.name in parser.words}
        if premise is None:
            return Rule(text, _sentence(says.words), lambda X, x: says.of(X), None, says.equalities, gaps)
        applies = premise.of
        words = f"If {premise.words}, then {says.words}."
        return Rule(text, words, lambda X, x: ~applies(X) | says.of(X), applies, says.equalities, gaps)

    def holds(self, X: FloatArray, factual: FloatArray) -> BoolArray:
        """Of which points, (n, d), it is true, for somebody who comes from the factual, (d,), (n,).

        Where a value that it is about is missing, it says nothing.
        """
        if not len(X):
            return np.zeros(0, dtype=bool)
        holds = self._holds(X, factual)
        return holds | (X[:, [*self.gaps]] == [*self.gaps.values()]).any(axis=1) if self.gaps else holds


def as_rules(said: Any, space: Space) -> tuple[Rule, ...]:
    """The rules that a caller means: texts, or one of them."""
    texts = [said] if isinstance(said, str) else said
    if not isinstance(texts, Iterable):
        raise ValueError(f"rules: expected a list of texts, such as ['duration <= 84 - age'], got {said!r}.")
    return tuple(Rule.of(text, space) for text in texts)


def _sentence(words: str) -> str:
    first = words.split(maxsplit=1)[0]
    return f"{words[0].upper()}{words[1:]}." if first == "the" else f"{words}."


def _transition(text: str, space: Space, found: re.Match[str]) -> Rule:
    parser = Parser.__new__(Parser)  # for its errors alone: categories may be any words
    parser.text = text
    name = found[1] or found[2]
    if name not in space.names:
        raise parser.wrong(
            f"there is no column {name!r}{close_to(name, space.names)}", found.start(1 if found[1] else 2)
        )
    j = space.names.index(name)
    feature = space.features[j]
    if feature.is_number:
        raise parser.wrong(f"{name!r} holds numbers, and '->' is about categories; see directions", found.start(3))
    codes, chain, at = codes_of(space, feature), [], found.start(3)
    parts = found[3].split("->")
    for part in parts:
        word = part.strip().strip("'\"")
        if word not in codes:
            here = at + len(part) - len(part.lstrip())
            raise parser.wrong(f"{name!r} has no value {word!r}{close_to(word, codes)}", here)
        chain.append(word)
        at += len(part) + len("->")
    only = found[4] == "only"
    if len(chain) < 2 or (len(chain) > 2 and not only):
        raise parser.wrong(
            f"expected {'two values or more' if only else 'two values'} with '->' between", found.start(3)
        )
    places = [codes[word] for word in chain]
    if only:
        words = f"{name} may only go from {' to '.join(chain)}."
        return Rule(text, words, lambda X, x: _is_forward(X[:, j], x[j], places))
    words = f"{name} never goes from {chain[0]} to {chain[1]}."
    return Rule(text, words, lambda X, x: (x[j] != places[0]) | (X[:, j] != places[1]))


def _is_forward(codes: FloatArray, start: float, places: Sequence[float]) -> BoolArray:
    """Which codes, (n,), come after the start in a chain, or are it; all, where the start is not in the chain."""
    if start not in places:
        return np.ones(len(codes), dtype=bool)
    return np.isin(codes, places[places.index(start) :])


# -- moving along equalities -------------------------------------------------------------------------------


class Along:
    """Moves points so that equalities hold.

    Where some of the features of an equality were changed, the others of those make up for the largest change; where
    only one was, an unchanged one does, each point another in turn.

    Args:
        snap: onto what one feature may hold: from its place and numbers, (n,), to the nearest it can take, (n,).
        movable: which features may change, (d,). low, high: how far, (d,) each.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        factual: FloatArray,
        movable: BoolArray,
        low: FloatArray,
        high: FloatArray,
        snap: Callable[[int, FloatArray], FloatArray],
    ) -> None:
        self.rules = [rule for rule in rules if rule.equalities]
        self.factual, self.movable, self.low, self.high, self.snap = factual, movable, low, high, snap

    def __call__(self, X: FloatArray) -> FloatArray:
        """The points, (n, d), each moved if it has to be; what holds already is left as it is."""
        X = X.copy()
        for _ in range(PASSES):
            broken = False
            for rule in self.rules:
                bad = np.flatnonzero(~rule.holds(X, self.factual))
                broken |= len(bad) > 0
                for equality in rule.equalities if len(bad) else ():
                    X[bad] = self._moved(X[bad], equality)
            if not broken:
                break
        return X

    def _moved(self, X: FloatArray, equality: Equality) -> FloatArray:
        columns = [j for j in sorted(equality.columns) if self.movable[j]]
        if equality.left is None:
            for j in columns:
                X[:, j] = self.snap(j, equality.right.of(X))
            return X
        order = self._order(X, columns)
        for turn in range(len(columns)):
            for k, j in enumerate(columns):
                mine = np.flatnonzero((order[:, turn] == k) & _is_off(equality, X))
                if len(mine):
                    X[mine, j] = self.snap(j, np.clip(self._root(X[mine], equality, j), self.low[j], self.high[j]))
        return X

    def _order(self, X: FloatArray, columns: Sequence[int]) -> IntArray:
        """In which order the columns make up for what is missing, for each point, (n, k)."""
        n, k = len(X), len(columns)
        wide = np.maximum(self.high - self.low, 1e-300)[columns]
        moved = np.abs(X[:, columns] - self.factual[columns]) / wide
        turn = (np.arange(n)[:, None] + np.arange(k)) % k / k
        rank = np.where(moved > 0, 0.0, 1.0) + turn
        most = moved.argmax(axis=1)
        rank[np.arange(n), most] = 3.0  # what the point is about stays, if anything can
        return np.asarray(np.argsort(rank, axis=1, kind="stable"), dtype=np.int64)

    def _root(self, X: FloatArray, equality: Equality, j: int) -> FloatArray:
        """The values of feature j for which the equality holds, all else equal, (n,); by the secant method."""
        X = X.copy()
        before, f_before = X[:, j].copy(), equality.residual(X)
        now = before + np.maximum(PART * (self.high[j] - self.low[j]), 1e-9)
        for _ in range(MOST_STEPS):
            X[:, j] = now
            f = equality.residual(X)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = f * (now - before) / (f - f_before)
            step = np.where(np.isfinite(step), step, 0.0)
            if not step.any():
                break
            before, f_before, now = now, f, now - step
        return np.asarray(now)


def _is_off(equality: Equality, X: FloatArray) -> BoolArray:
    assert equality.left is not None
    return ~is_close(equality.left.of(X), equality.right.of(X))
