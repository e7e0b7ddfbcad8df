"""The language of rules: from a text such as "rate * 12 < income" to what can be checked of points.

    rule        if condition then condition | condition
    condition   all {or all}              all         one {and one}
    one         not one | (condition) | column in ('a', 'b') | sum op sum {op sum}
    op          <= < >= > == = !=         sum         term {(+ | -) term}
    term        factor {(* | /) factor}   factor      number | column | name(sum, ...) | (sum) | -factor

A column whose name is no plain word stands in backticks, a category in quotes. Functions are sum, mean, min, max, abs.
Nothing is ever run as code. Errors say what is wrong and point at the character.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray
from acex.space.feature import Feature
from acex.space.space import Space
from acex.values import joined_words, listed, readable

CLOSE = 1e-9  # relative: numbers that differ by less are equal
MOST_DEEP = 50  # parentheses within each other

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<sign><=|>=|==|!=|[<>=+\-*/(),]))"
)
SAYS = {"<=": "is at most", "<": "is below", ">=": "is at least", ">": "is above", "==": "is", "!=": "is not"}
COMPARE: dict[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater,
    "==": lambda a, b: is_close(a, b), "!=": lambda a, b: ~is_close(a, b),
}  # fmt: skip
COMBINE: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip
FUNCTIONS: dict[str, tuple[Callable[[FloatArray], FloatArray], str]] = {
    "sum": (lambda A: A.sum(axis=0), "the sum of"), "mean": (lambda A: A.mean(axis=0), "the mean of"),
    "min": (lambda A: A.min(axis=0), "the least of"), "max": (lambda A: A.max(axis=0), "the greatest of"),
    "abs": (lambda A: np.abs(A[0]), "the size of"),
}  # fmt: skip
KEYWORDS = {("word", word) for word in ("if", "then", "and", "or", "not", "in")}


def is_close(a: FloatArray, b: FloatArray) -> BoolArray:
    """Which numbers are equal but for rounding, (n,)."""
    return np.asarray(np.abs(a - b) <= CLOSE * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0))


# -- what a text becomes -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Number:
    """A number for each point: its words, the columns it rests on, and how it is worked out, (n, d) -> (n,)."""

    words: str
    columns: frozenset[int]
    of: Callable[[FloatArray], FloatArray]
    is_simple: bool = True  # needs no parentheses within others


@dataclass(frozen=True, eq=False)
class Equality:
    """Two numbers that are to be equal, or a column, `columns`, that is to have one code, where `left` is None."""

    left: Number | None
    right: Number
    columns: frozenset[int]

    def residual(self, X: FloatArray) -> FloatArray:
        """How far the sides are apart, (n,)."""
        assert self.left is not None
        return self.left.of(X) - self.right.of(X)


@dataclass(frozen=True, eq=False)
class Condition:
    """What is true of a point or not, (n, d) -> (n,); `equalities` hold wherever it is true."""

    words: str
    of: Callable[[FloatArray], BoolArray]
    equalities: tuple[Equality, ...] = ()


class Token(NamedTuple):
    """A piece of a text, and where it stands."""

    kind: str
    text: str
    at: int


Side: TypeAlias = Number | Feature | Token  # of a comparison: a number, a column of categories, or one of its values


class Parser:
    """Reads one rule over the columns of a space."""

    def __init__(self, text: str, space: Space) -> None:
        self.text, self.space = text, space
        self.tokens = list(self._tokens())
        self.words = frozenset(token.text for token in self.tokens if token.kind in ("word", "quoted"))
        self.i, self.depth = 0, 0

    def _tokens(self) -> Iterator[Token]:
        at = 0
        while self.text[at:].strip():
            found = TOKEN.match(self.text, at)
            if found is None or found.lastgroup is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                what = "this quote does not end" if self.text[at] in "'\"`" else f"{self.text[at]!r} means nothing here"
                raise self.wrong(what, at)
            kind, start = found.lastgroup, found.start(found.lastgroup)
            quoted = kind in ("single", "double", "quoted")
            name = "text" if kind in ("single", "double") else kind
            yield Token(name, found[kind], start - 1 if quoted else start)
            at = found.end()
        yield Token("end", "", len(self.text.rstrip()))

    def wrong(self, what: str, at: int) -> ValueError:
        """The error, which points at a character."""
        end = "" if what.endswith("?") else "."
        return ValueError(f"rule: {what}{end}\n  {self.text}\n  {' ' * at}^")

    # -- tokens ------------------------------------------------------------------------------------------

    @property
    def now(self) -> Token:
        return self.tokens[self.i]

    def take(self, *texts: str) -> Token | None:
        """The next token, if it is one of these words or signs."""
        if self.now.kind in ("word", "sign") and self.now.text in texts:
            self.i += 1
            return self.tokens[self.i - 1]
        return None

    def need(self, text: str, why: str) -> None:
        if self.take(text) is None:
            found = f"got {self.now.text!r}" if self.now.kind != "end" else "the rule ends here"
            raise self.wrong(f"expected {text!r} {why}, {found}", self.now.at)

    # -- conditions --------------------------------------------------------------------------------------

    def rule(self) -> tuple[Condition | None, Condition]:
        """What has to hold, and when; None: always."""
        premise = None
        if self.take("if"):
            premise = self.condition()
            self.need("then", "after the condition")
        says = self.condition()
        if self.now.kind != "end":
            raise self.wrong(f"the rule is complete before {self.now.text!r}", self.now.at)
        return premise, says

    def condition(self) -> Condition:
        parts = [self._all()]
        while self.take("or"):
            parts.append(self._all())
        if len(parts) == 1:
            return parts[0]
        return Condition(" or ".join(p.words for p in parts), lambda X: np.any([p.of(X) for p in parts], axis=0))

    def _all(self) -> Condition:
        parts = [self._one()]
        while self.take("and"):
            parts.append(self._one())
        return both(parts)

    def _one(self) -> Condition:
        if self.take("not"):
            inner = self._nested(self._one)
            return Condition(f"not ({inner.words})", lambda X: ~inner.of(X))
        if self.now == ("sign", "(", self.now.at) and self._is_condition_within():
            self.i += 1
            inner = self._nested(self.condition)
            self.need(")", "to close the parenthesis")
            return inner
        return self._comparison()

    def _nested(self, read: Callable[[], Condition]) -> Condition:
        self._deeper()
        inner = read()
        self.depth -= 1
        return inner

    def _deeper(self) -> None:
        self.depth += 1
        if self.depth > MOST_DEEP:
            raise self.wrong("this is nested too deeply", self.now.at)

    def _is_condition_within(self) -> bool:
        """Does the parenthesis here hold a comparison, and not a number?"""
        open_, i = 0, self.i
        for token in self.tokens[i:]:
            open_ += (token.text == "(") - (token.text == ")") if token.kind == "sign" else 0
            if open_ == 0:
                return False
            if (token.kind == "sign" and token.text in (*SAYS, "=")) or token[:2] in KEYWORDS:
                return True
        return False

    def _comparison(self) -> Condition:
        start = self.now
        left = self._side()
        if self.take("in"):
            return self._membership(left, start)
        parts: list[Condition] = []
        while (sign := self.take(*SAYS, "=")) is not None:
            here = self.now
            right = self._side()
            parts.append(self._compared("==" if sign.text == "=" else sign.text, left, right, sign, (start, here)))
            left, start = right, here
        if not parts:
            raise self.wrong(f"expected a comparison, such as {listed(SAYS)}, after this", start.at)
        return both(parts)

    def _compared(self, op: str, left: Side, right: Side, sign: Token, at: tuple[Token, Token]) -> Condition:
        if isinstance(left, Number) and isinstance(right, Number):
            compare, columns = COMPARE[op], left.columns | right.columns
            if not columns:
                raise self.wrong("no column is in this comparison", at[0].at)
            equal = (Equality(left, right, columns),) if op == "==" else ()
            words = f"{left.words} {SAYS[op]} {right.words}"
            return Condition(words, lambda X: compare(left.of(X), right.of(X)), equal)
        if isinstance(right, Feature) and not isinstance(left, Feature):
            turned = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}.get(op, op)
            return self._compared(turned, right, left, sign, (at[1], at[0]))
        if not isinstance(left, Feature):
            raise self.wrong("a value in quotes is compared with a column that has such values", at[0].at)
        if isinstance(right, Feature) or (isinstance(right, Number) and right.columns):
            raise self.wrong(f"{left.name!r} holds categories: compare it with one of them, in quotes", at[1].at)
        if op not in ("==", "!=") and not left.ordered:
            raise self.wrong(f"the categories of {left.name!r} have no order; there are == and !=", sign.at)
        code, j = self._code(left, at[1]), self.space.names.index(left.name)
        compare = COMPARE[op]
        equal = (Equality(None, constant(code), frozenset({j})),) if op == "==" else ()
        return Condition(f"{left.name} {SAYS[op]} {at[1].text}", lambda X: compare(X[:, j], np.array(code)), equal)

    def _membership(self, left: Side, at: Token) -> Condition:
        if not isinstance(left, Feature):
            raise self.wrong("'in' is for a column of categories", at.at)
        self.need("(", "after 'in'")
        codes, words = [], []
        while True:
            words.append(self.now.text)
            codes.append(self._code(left, self.now))
            self.i += 1
            if self.take(",") is None:
                break
        self.need(")", "to end the list")
        j = self.space.names.index(left.name)
        return Condition(f"{left.name} is one of {joined_words(words, 'or')}", lambda X: np.isin(X[:, j], codes))

    def _code(self, feature: Feature, token: Token) -> float:
        """The code of a category as it is written."""
        codes = codes_of(self.space, feature)
        text = token.text.capitalize() if token.text.lower() in ("true", "false") and "True" in codes else token.text
        if token.kind not in ("text", "number", "word") or text not in codes:
            raise self.wrong(f"{feature.name!r} has no value {token.text!r}{close_to(text, codes)}", token.at)
        return codes[text]

    # -- numbers -----------------------------------------------------------------------------------------

    def _side(self) -> Side:
        """A number, a column of categories, or a value of one."""
        token = self.now
        if token.kind == "text" or (token.kind == "word" and token.text.lower() in ("true", "false")):
            self.i += 1
            return token
        if token.kind in ("word", "quoted") and token.text in self.space.names:
            feature = self.space.feature(token.text)
            if not feature.is_number:
                self.i += 1
                return feature
        return self._sum()

    def _sum(self) -> Number:
        out = self._term()
        while (sign := self.take("+", "-")) is not None:
            out = combined(sign.text, out, self._term(), is_simple=False)
        return out

    def _term(self) -> Number:
        out = self._factor()
        while (sign := self.take("*", "/")) is not None:
            out = combined(sign.text, out, self._factor(), is_simple=True)
        return out

    def _factor(self) -> Number:
        token = self.now
        self.i += 1
        match token:
            case ("number", text, _):
                return constant(float(text))
            case ("sign", "-", _):
                self._deeper()
                inner = self._factor()
                self.depth -= 1
                return Number(f"-{bracketed(inner)}", inner.columns, lambda X: -inner.of(X))
            case ("sign", "(", _):
                self._deeper()
                inner = self._sum()
                self.depth -= 1
                self.need(")", "to close the parenthesis")
                return inner
            case ("word", name, _) if name in FUNCTIONS and self.now.kind == "sign" and self.now.text == "(":
                return self._function(name)
            case ("word" | "quoted", name, at):
                return self._column(name, at)
            case ("end", _, at):
                raise self.wrong("a number or a column is missing here", at)
        raise self.wrong(f"expected a number or a column, got {token.text!r}", token.at)

    def _function(self, name: str) -> Number:
        self.i += 1
        self._deeper()
        parts = [self._sum()]
        while self.take(","):
            parts.append(self._sum())
        self.depth -= 1
        if name == "abs" and len(parts) > 1:
            raise self.wrong("abs takes one number", self.now.at)
        self.need(")", f"to end {name}")
        work, words = FUNCTIONS[name]
        columns = frozenset[int]().union(*(p.columns for p in parts))
        said = f"{words} {joined_words([p.words for p in parts])}"
        return Number(said, columns, lambda X: work(np.array([p.of(X) for p in parts])), is_simple=False)

    def _column(self, name: str, at: int) -> Number:
        names = self.space.names
        if name not in names:
            raise self.wrong(f"there is no column {name!r}{close_to(name, names)}", at)
        j = names.index(name)
        if not self.space.features[j].is_number:
            raise self.wrong(f"{name!r} holds categories, with which nothing can be calculated", at)
        return Number(name, frozenset({j}), lambda X: X[:, j])


def both(parts: list[Condition]) -> Condition:
    """All of these."""
    equal = tuple(e for p in parts for e in p.equalities)
    words = " and ".join(p.words for p in parts)
    return Condition(words, lambda X: np.asarray(np.all([p.of(X) for p in parts], axis=0)), equal)


def constant(value: float) -> Number:
    """The same number for every point."""
    return Number(readable(value), frozenset(), lambda X: np.full(len(X), value))


def combined(sign: str, left: Number, right: Number, *, is_simple: bool) -> Number:
    """A sum, difference, product or quotient; by zero it is no number, of which nothing is true."""
    work = COMBINE[sign]

    def of(X: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return work(left.of(X), right.of(X))

    first, second = (bracketed(left), bracketed(right)) if is_simple else (left.words, right.words)
    second = bracketed(right) if sign == "-" else second
    return Number(f"{first} {sign} {second}", left.columns | right.columns, of, is_simple)


def bracketed(number: Number) -> str:
    """The words, in parentheses where they would be read otherwise."""
    return number.words if number.is_simple else f"({number.words})"


def codes_of(space: Space, feature: Feature) -> dict[str, float]:
    """The codes of a column of categories by what they are called."""
    codes = feature.codes(space.held[space.names.index(feature.name)].allowed(None))
    return {str(feature.value(code)): float(code) for code in ([] if codes is None else codes)}


def close_to(word: str, known: object) -> str:
    """What may have been meant, for the end of an error."""
    names = [str(name) for name in known]  # type: ignore[attr-defined]
    found = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; there are {listed(names)}"
