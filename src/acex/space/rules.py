"""Rules over rows, as text: what must hold in every row that is queried, and how a row is moved so that it does.

    rate * 12 < income                    if housing == 'own' then rent == 0
    term_months in (12, 24)               sum(sand, clay, lime) == 100
    purpose: car -> business is impossible
    school: primary -> high -> university only

A rule is a comparison, or several with `and`, `or`, `not` and parentheses; `if ... then ...` makes it conditional.
There are + - * / and the functions sum, mean, min, max, abs. A column whose name is no plain word stands in backticks,
a category in quotes. The last two forms say which categories a row may go to from the factual's.

Expressions are parsed by Python's `ast`, with an `x` of the same width in place of each name and constant, so that
positions stay the same. Nothing is run as code. Errors point at the character.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray, Rows
from acex.space.feature import Feature
from acex.space.space import Space
from acex.values import listed

RuleFunction: TypeAlias = Callable[[Rows], Any]  # from rows to one True or False per row

EQUAL = 1e-9  # relative: numbers that differ by less are equal
MOST_TOKENS = 1000
MOST_DEEP = 100  # levels of operations within each other; sum(a, b, ...) is one level
MOST_STEPS = 20  # of the secant method; a linear rule needs one
PASSES = 3  # over all rules, since moving along one may break another
FIRST_STEP = 1e-3  # of a feature's range: the first step of the secant method

TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<word>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<sign><=|>=|==|!=|[<>+\-*/(),])|(?P<wrong>\S)"
)
TRANSITION = re.compile(r"\s*(?:`([^`]+)`|([^\W\d][\w.]*))\s*:(.*?)\s(is\s+impossible|only)\s*", re.DOTALL)
KEYWORDS = ("if", "then", "and", "or", "not", "in")
COMPARE: dict[type[ast.AST], Callable[[FloatArray, FloatArray], BoolArray]] = {
    ast.LtE: np.less_equal, ast.Lt: np.less, ast.GtE: np.greater_equal, ast.Gt: np.greater,
    ast.Eq: lambda a, b: is_close(a, b), ast.NotEq: lambda a, b: ~is_close(a, b),
}  # fmt: skip
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.LtE: ast.GtE, ast.Lt: ast.Gt, ast.GtE: ast.LtE, ast.Gt: ast.Lt}
COMBINE: dict[type[ast.AST], Callable[[FloatArray, FloatArray], FloatArray]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sum": lambda A: A.sum(axis=0), "mean": lambda A: A.mean(axis=0), "min": lambda A: A.min(axis=0),
    "max": lambda A: A.max(axis=0), "abs": lambda A: np.abs(A[0]),
}  # fmt: skip


def is_close(a: FloatArray, b: FloatArray) -> BoolArray:
    """Which numbers are equal but for rounding, (n,)."""
    return np.asarray(np.abs(a - b) <= EQUAL * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0))


@dataclass(frozen=True, eq=False)
class Rule:
    """What has to be true of a row.

    Attributes:
        text: as it was written.
        equalities: what has to be equal where it applies; points are moved until it is.
        gaps: of its columns that may have gaps, their codes.
    """

    text: str
    _holds: Callable[[FloatArray, FloatArray], BoolArray] = field(repr=False)
    equalities: tuple[Equality, ...] = field(default=(), repr=False)
    gaps: Mapping[int, float] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(text: str, space: Space) -> Rule:
        """The rule that a text stands for.

        Raises:
            ValueError: it is not a rule over these columns; the message points at the character.
        """
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"rules: expected a text such as 'duration <= 84 - age', or a function, got {text!r}.")
        if (found := TRANSITION.fullmatch(text)) is not None:
            return _transition(text, space, found)
        return _Reader(text, space).rule()

    def holds(self, X: FloatArray, factual: FloatArray) -> BoolArray:
        """For which points, (n, d), it is true where this factual, (d,), is explained, (n,).

        It holds wherever one of its values is missing.
        """
        if not len(X):
            return np.zeros(0, dtype=bool)
        holds = self._holds(X, factual)
        return holds | (X[:, [*self.gaps]] == [*self.gaps.values()]).any(axis=1) if self.gaps else holds


def as_rules(rules: Any, space: Space) -> tuple[tuple[Rule, ...], tuple[RuleFunction, ...]]:
    """Rules and functions from what a caller passes: texts, `Rule`s and functions, or one of them.

    Raises:
        ValueError: one of them is neither, or a text is not a rule over the columns of the space.
    """
    given = (
        [rules] if isinstance(rules, (str, Rule)) or callable(rules) or not isinstance(rules, Iterable) else [*rules]
    )
    functions = tuple(rule for rule in given if callable(rule))
    texts = (rule for rule in given if not callable(rule))
    return tuple(rule if isinstance(rule, Rule) else Rule.of(rule, space) for rule in texts), functions


# -- reading a text ----------------------------------------------------------------------------------------


class Expression(NamedTuple):
    """A number for each point, (n, d) -> (n,), and the columns that it is calculated from."""

    of: Callable[[FloatArray], FloatArray]
    columns: frozenset[int] = frozenset()


class Equality(NamedTuple):
    """Two numbers that are to be equal."""

    left: Expression
    right: Expression

    def residual(self, X: FloatArray) -> FloatArray:
        """How far the sides are apart, (n,)."""
        return self.left.of(X) - self.right.of(X)

    def is_broken(self, X: FloatArray) -> BoolArray:
        """For which points the sides differ, (n,)."""
        return ~is_close(self.left.of(X), self.right.of(X))


class Condition(NamedTuple):
    """What is true or false of a point, (n, d) -> (n,); `equalities` hold wherever it is true."""

    of: Callable[[FloatArray], BoolArray]
    equalities: tuple[Equality, ...] = ()


class Token(NamedTuple):
    """A name or a constant in a rule."""

    kind: str  # number, word, quoted (a name in backticks), single or double (a value in quotes)
    text: str

    @property
    def is_value(self) -> bool:
        """Is it a category: in quotes, or true or false?"""
        return self.kind in ("single", "double") or (self.kind == "word" and self.text.lower() in ("true", "false"))


def _error(text: str, what: str, at: int) -> ValueError:
    """An error that points at a character."""
    end = "" if what[-1] in ".?" else "."
    return ValueError(f"rule: {what}{end}\n  {text}\n  {' ' * at}^")


class _Reader:
    """Reads one rule over the columns of a space."""

    def __init__(self, text: str, space: Space) -> None:
        self.text, self.space = text, space
        self.tokens: dict[int, Token] = {}  # names and constants, by position
        self.columns: set[int] = set()
        if len(TOKEN.findall(text)) > MOST_TOKENS:
            raise ValueError(f"rule: longer than {MOST_TOKENS} words and signs: {text[:60]}... Split it.")
        self.python = re.sub(r"\s", " ", TOKEN.sub(self._masked, text))

    def _masked(self, found: re.Match[str]) -> str:
        """What Python is given in place of a token, of the same width."""
        kind, text, at = str(found.lastgroup), found[found.lastgroup or 0], found.start()
        if kind == "wrong":
            what = "this quote does not end" if text in "'\"`" else f"{text!r} means nothing here"
            raise _error(self.text, "write == for equality" if text == "=" else what, at)
        if kind == "sign" or (kind == "word" and text in KEYWORDS):
            return text
        is_quoted = kind not in ("number", "word")  # a space keeps it apart from a name before it
        self.tokens[at + is_quoted] = Token(kind, text)
        return (is_quoted * " " + "x").ljust(len(found[0]))

    def rule(self) -> Rule:
        """The rule in the whole text."""
        if_then = re.fullmatch(r" *if\b(.*?)(?:\bthen\b(.*))?", self.python)
        if if_then is None:
            claim = self._parsed(0, len(self.python))
            return Rule(self.text, lambda X, x: claim.of(X), claim.equalities, self._gaps())
        if if_then[2] is None:
            raise _error(self.text, "expected 'then' after the condition", len(self.text.rstrip()))
        premise, claim = self._parsed(*if_then.span(1)), self._parsed(*if_then.span(2))
        return Rule(self.text, lambda X, x: ~premise.of(X) | claim.of(X), claim.equalities, self._gaps())

    def _gaps(self) -> dict[int, float]:
        return {j: self.space.features[j].gap for j in sorted(self.columns) if self.space.features[j].gaps}

    def _parsed(self, start: int, stop: int) -> Condition:
        """The condition in a part of the text."""
        part = self.python[start:stop].lstrip()
        self.start = stop - len(part)
        try:
            tree = ast.parse(part, mode="eval").body
        except SyntaxError as error:
            at = error.offset - 1 if error.offset else len(part.rstrip())
            raise _error(self.text, error.msg, self.start + at) from None
        level: list[ast.AST] = [tree]
        for _ in range(MOST_DEEP):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise ValueError(f"rule: nested too deeply: {self.text[:60]}... For a long sum use sum(a, b, ...).")
        return self._condition(tree)

    def _wrong(self, what: str, node: ast.expr) -> ValueError:
        """An error that points at a node."""
        return _error(self.text, what, self.start + node.col_offset)

    def _token(self, node: ast.expr) -> Token | None:
        """The name or constant that a node is; None for anything else."""
        return self.tokens[self.start + node.col_offset] if isinstance(node, ast.Name) else None

    # -- conditions --------------------------------------------------------------------------------------

    def _condition(self, node: ast.expr) -> Condition:
        match node:
            case ast.BoolOp(ast.And(), values):
                return _all_of([self._condition(value) for value in values])
            case ast.BoolOp(ast.Or(), values):
                return _any_of([self._condition(value) for value in values])
            case ast.UnaryOp(ast.Not(), operand):
                return _not(self._condition(operand))
            case ast.Compare(left, ops, comparators):
                sides = zip([left, *comparators], ops, comparators, strict=False)
                return _all_of([self._comparison(a, op, b) for a, op, b in sides])
        raise self._wrong("expected a comparison, such as <= or ==", node)

    def _comparison(self, a: ast.expr, op: ast.cmpop, b: ast.expr) -> Condition:
        if not isinstance(op, (ast.In, ast.NotIn)):
            return self._compared(a, type(op), b)
        elements = b.elts if isinstance(b, ast.Tuple) else [b]
        if not elements:
            raise self._wrong("expected at least one value", b)
        within = _any_of([self._compared(a, ast.Eq, element) for element in elements])
        return within if isinstance(op, ast.In) else _not(within)

    def _compared(self, a: ast.expr, op: type[ast.cmpop], b: ast.expr) -> Condition:
        j, other = self._category_column(a), self._category_column(b)
        if j is None and other is not None:
            return self._compared(b, TURNED.get(op, op), a)
        if j is None:
            left, right = self._number(a), self._number(b)
            if not left.columns | right.columns:
                raise self._wrong("no column is in this comparison", a)
        else:
            if op not in (ast.Eq, ast.NotEq) and not self.space.features[j].ordered:
                raise self._wrong(f"the categories of {self.space.names[j]!r} have no order; use == or !=", a)
            left, right = _column(j), _constant(self._code(self.space.features[j], b))
        compare = COMPARE[op]
        equal = (Equality(left, right),) if op is ast.Eq else ()
        return Condition(lambda X: compare(left.of(X), right.of(X)), equal)

    def _category_column(self, node: ast.expr) -> int | None:
        """The position of the column that a node names, if it holds no numbers."""
        token = self._token(node)
        if token is None or token.kind not in ("word", "quoted") or token.text not in self.space.names:
            return None
        j = self._index(token, node)
        return None if self.space.features[j].is_number else j

    def _index(self, token: Token, node: ast.expr) -> int:
        """The position of the column that a token names."""
        try:
            j = self.space.index(token.text)
        except ValueError as error:
            raise self._wrong(str(error), node) from None
        self.columns.add(j)
        return j

    def _code(self, feature: Feature, node: ast.expr) -> float:
        """The code of a category as it is written."""
        token = self._token(node)
        if token is None or not (token.is_value or token.kind == "number"):
            raise self._wrong(f"{feature.name!r} holds categories: compare it with one of them, in quotes", node)
        try:
            return feature.code_in(token.text)
        except ValueError as error:
            raise self._wrong(str(error), node) from None

    # -- numbers -----------------------------------------------------------------------------------------

    def _number(self, node: ast.expr) -> Expression:
        if (token := self._token(node)) is not None:
            return self._operand(token, node)
        match node:
            case ast.UnaryOp(ast.USub(), operand):
                inner = self._number(operand)
                return Expression(lambda X: -inner.of(X), inner.columns)
            case ast.BinOp(left, op, right) if type(op) in COMBINE:
                return _combined(COMBINE[type(op)], [self._number(left), self._number(right)])
            case ast.Call(function, args):
                token = self._token(function)
                if token is None or token.text not in FUNCTIONS or not args:
                    raise self._wrong(f"expected one of the functions {listed(FUNCTIONS)}, and numbers", node)
                if token.text == "abs" and len(args) > 1:
                    raise self._wrong("abs takes one number", node)
                work = FUNCTIONS[token.text]
                return _combined(lambda *parts: work(np.array(parts)), [self._number(argument) for argument in args])
        raise self._wrong("expected a number or a column", node)

    def _operand(self, token: Token, node: ast.expr) -> Expression:
        if token.kind == "number":
            return _constant(float(token.text))
        if token.is_value:
            raise self._wrong("a value in quotes is compared with a column that has such values", node)
        j = self._index(token, node)
        if not self.space.features[j].is_number:
            raise self._wrong(f"{token.text!r} holds categories, with which nothing can be calculated", node)
        return _column(j)


def _all_of(parts: list[Condition]) -> Condition:
    equal = tuple(equality for part in parts for equality in part.equalities)
    return Condition(lambda X: np.asarray(np.all([part.of(X) for part in parts], axis=0)), equal)


def _any_of(parts: list[Condition]) -> Condition:
    return Condition(lambda X: np.asarray(np.any([part.of(X) for part in parts], axis=0)))


def _not(part: Condition) -> Condition:
    return Condition(lambda X: ~part.of(X))


def _constant(value: float) -> Expression:
    return Expression(lambda X: np.full(len(X), value))


def _column(j: int) -> Expression:
    return Expression(lambda X: X[:, j], frozenset({j}))


def _combined(work: Callable[..., FloatArray], parts: list[Expression]) -> Expression:
    """What is calculated from several numbers; NaN, of which no comparison is true, after a division by zero."""

    def of(X: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return work(*[part.of(X) for part in parts])

    return Expression(of, frozenset[int]().union(*(part.columns for part in parts)))


# -- transitions -------------------------------------------------------------------------------------------


def _transition(text: str, space: Space, found: re.Match[str]) -> Rule:
    """The rule in a text such as "purpose: car -> business is impossible"."""
    at = found.start(1 if found[1] else 2)
    try:
        j = space.index(found[1] or found[2])
        feature, at = space.features[j], found.start(3)
        if feature.is_number:
            raise ValueError(f"{feature.name!r} holds numbers, and '->' is about categories; see directions")
        places = []
        for part in found[3].split("->"):
            places.append(feature.code_in(part.strip().strip("'\"")))
            at += len(part) + len("->")
    except ValueError as error:
        raise _error(text, str(error), at) from None
    only = found[4] == "only"
    if len(places) < 2 or (len(places) > 2 and not only):
        raise _error(text, f"expected two values{' or more' if only else ''} with '->' between", found.start(3))
    if only:
        return Rule(text, lambda X, x: _is_forward(X[:, j], x[j], places))
    return Rule(text, lambda X, x: (x[j] != places[0]) | (X[:, j] != places[1]))


def _is_forward(codes: FloatArray, start: float, places: Sequence[float]) -> BoolArray:
    """Which codes, (n,), come after the start in a chain, or are it; all, where the start is not in the chain."""
    if start not in places:
        return np.ones(len(codes), dtype=bool)
    return np.isin(codes, places[places.index(start) :])


# -- moving along equalities -------------------------------------------------------------------------------


class EqualitySolver:
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
        columns = [j for j in sorted(equality.left.columns | equality.right.columns) if self.movable[j]]
        if not columns:
            return X
        order = self._order(X, columns)
        for turn in range(len(columns)):
            for k, j in enumerate(columns):
                mine = np.flatnonzero((order[:, turn] == k) & equality.is_broken(X))
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
        now = before + np.maximum(FIRST_STEP * (self.high[j] - self.low[j]), 1e-9)
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
