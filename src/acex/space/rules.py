"""Rules over rows, as text: conditions on every row that is queried, and how points are moved to satisfy them.

    rate * 12 < income                    if housing == 'own' then rent == 0
    term_months in (12, 24)               sum(sand, clay, lime) == 100
    purpose: car -> business is impossible
    school: primary -> high -> university only

A rule is a comparison, or several with `and`, `or`, `not` and parentheses; `if ... then ...` makes it conditional.
Numbers are combined by + - * / and the functions sum, mean, min, max, abs; abs(a - b) <= 0.1 means that two numbers are
nearly equal. Dates without a time are numbers of days: end == start + days.
A column name that is not a plain word is written in backticks, a category in quotes. The last two forms say which
categories a row may have, given the factual's.

Expressions are parsed by Python's `ast`, with an `x` of the same width in place of each name and constant, so that
positions stay the same, and evaluated node by node. Nothing is run as code. Errors point at the character.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray, Rows
from acex.space.kinds import Date
from acex.space.relations import KEYWORDS, is_close
from acex.space.space import Space
from acex.values import did_you_mean, listed

RuleFunction: TypeAlias = Callable[[Rows], Any]  # from rows to one True or False per row

MOST_TOKENS = 1000
MOST_DEEP = 100  # levels of nested operations; sum(a, b, ...) is one level
MOST_STEPS = 20  # of the secant method; a linear rule needs one
PASSES = 3  # over all rules, since satisfying one may break another
FIRST_STEP = 1e-3  # of a feature's range: the first step of the secant method

TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<word>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<swapped>=[<>])|(?P<sign><=|>=|==|!=|[<>=+\-*/(),])|(?P<wrong>\S)"
)
TRANSITION = re.compile(r"\s*(?:`([^`]+)`|([^\W\d][\w.]*))\s*:(.*?)\s(is\s+impossible|only)\s*", re.DOTALL)
COMPARE: dict[type[ast.AST], Callable[[FloatArray, FloatArray], BoolArray]] = {
    ast.LtE: lambda a, b: (a <= b) | is_close(a, b), ast.Lt: lambda a, b: (a < b) & ~is_close(a, b),
    ast.GtE: lambda a, b: (a >= b) | is_close(a, b), ast.Gt: lambda a, b: (a > b) & ~is_close(a, b),
    ast.Eq: is_close, ast.NotEq: lambda a, b: ~is_close(a, b),
}  # fmt: skip
COMBINE: dict[type[ast.AST], Callable[[FloatArray, FloatArray], FloatArray]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "sum": lambda A: A.sum(axis=0), "mean": lambda A: A.mean(axis=0), "min": lambda A: A.min(axis=0),
    "max": lambda A: A.max(axis=0), "abs": lambda A: np.abs(A[0]),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Rule:
    """A condition on rows.

    Attributes:
        text: the rule as written.
        equalities: the equalities that it requires; points are moved to satisfy them.
        gaps: for each of its columns that may have gaps, their code.
    """

    text: str
    _holds: Callable[[FloatArray, FloatArray], BoolArray] = field(repr=False)
    equalities: tuple[Equality, ...] = field(default=(), repr=False)
    gaps: Mapping[int, float] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(text: str, space: Space) -> Rule:
        """The rule that a text describes.

        Raises:
            ValueError: it is not a rule over these columns; the message points at the character.
        """
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"rules: expected a text such as 'duration <= 84 - age', or a function, got {text!r}.")
        if (found := TRANSITION.fullmatch(text)) is not None:
            return _transition(text, space, found)
        formula = Formula(text, space)
        if_then = re.fullmatch(r" *if\b(.*?)(?:\bthen\b(.*))?", formula.python)
        if if_then is not None and if_then[2] is None:
            raise _error(formula.text, "expected 'then' after the condition", len(formula.text.rstrip()))
        premise = None if if_then is None else formula.parsed(*if_then.span(1))
        claim = formula.parsed(*((0, len(formula.python)) if if_then is None else if_then.span(2)))

        def holds(X: FloatArray, factual: FloatArray) -> BoolArray:
            held = formula.holds(claim, X)
            return held if premise is None else held | ~formula.holds(premise, X)

        columns = formula.columns(claim, *([] if premise is None else [premise]))
        gaps = {j: space.features[j].gap for j in sorted(columns) if space.features[j].gaps}
        return Rule(text, holds, tuple(formula.equalities(claim)), gaps)

    def holds(self, X: FloatArray, factual: FloatArray) -> BoolArray:
        """Which points, (n, d), satisfy the rule given this factual, (d,), as an array (n,).

        Points that it does not apply to satisfy it.
        """
        holds = self._holds(X, factual)
        return holds | ~self.applies(X) if self.gaps else holds

    def applies(self, X: FloatArray) -> BoolArray:
        """Which points, (n, d), the rule applies to: those without gaps in its columns, (n,)."""
        return np.asarray((X[:, [*self.gaps]] != [*self.gaps.values()]).all(axis=1))


def as_rules(rules: Any, space: Space) -> tuple[tuple[Rule, ...], tuple[RuleFunction, ...]]:
    """The rules and the functions in what a caller passes: a list of texts, `Rule`s and functions, or one of them.

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


class Token(NamedTuple):
    """A name or a constant in a rule."""

    kind: str  # number, word, quoted (a name in backticks), single or double (a value in quotes)
    text: str

    @property
    def is_value(self) -> bool:
        """Whether it is a category: in quotes, or true or false."""
        return self.kind in ("single", "double") or (self.kind == "word" and self.text.lower() in ("true", "false"))


def _error(text: str, what: str, at: int) -> ValueError:
    """An error that points at a character."""
    end = "" if what[-1] in ".?" else "."
    return ValueError(f"rule: {what}{end}\n  {text}\n  {' ' * at}^")


class Formula:
    """The text of a rule over the columns of a space; its syntax trees are evaluated node by node.

    X is (n, d) everywhere, and results are (n,).
    """

    def __init__(self, text: str, space: Space) -> None:
        if len(TOKEN.findall(text)) > MOST_TOKENS:
            raise ValueError(f"rule: longer than {MOST_TOKENS} words and signs: {text[:60]}... Split it.")
        self.text = TOKEN.sub(lambda found: "==" if found[0] == "=" else found[0], text)
        self.space, self.places = space, {name: j for j, name in enumerate(space.names)}
        self.tokens: dict[int, Token] = {}  # names and constants, by position
        self.codes: dict[tuple[int, int], float] = {}  # of categories, by feature and position
        self.python = re.sub(r"\s", " ", TOKEN.sub(self._masked, self.text))

    def _masked(self, found: re.Match[str]) -> str:
        """The replacement of a token in `python`, of the same width."""
        kind, text, at = str(found.lastgroup), found[found.lastgroup or 0], found.start()
        if kind == "wrong":
            what = "this quote does not end" if text in "'\"`" else f"{text!r} is unexpected here"
            raise _error(self.text, what, at)
        if kind == "swapped":
            raise _error(self.text, f"write {text[::-1]} instead of {text}", at)
        if kind == "sign" or (kind == "word" and text in KEYWORDS):
            return text
        is_quoted = kind not in ("number", "word")  # a space separates it from a name before it
        self.tokens[at + is_quoted] = Token(kind, text)
        return (is_quoted * " " + "x").ljust(len(found[0]))

    def parsed(self, start: int, stop: int) -> ast.expr:
        """The syntax tree of a part of the text; `col_offset` of its nodes are positions in the whole text."""
        part = self.python[start:stop].lstrip()
        shift = stop - len(part)
        try:
            tree = ast.parse(part, mode="eval").body
        except SyntaxError as error:
            at = error.offset - 1 if error.offset else len(part.rstrip())
            raise _error(self.text, error.msg, shift + at) from None
        level: list[ast.AST] = [tree]
        for _ in range(MOST_DEEP):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise ValueError(f"rule: nested too deeply: {self.text[:60]}... For a long sum use sum(a, b, ...).")
        for node in ast.walk(tree):
            if isinstance(node, ast.expr):
                node.col_offset += shift
        self.holds(tree, np.zeros((1, len(self.space))))  # raises errors now
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and not self.columns(node):
                raise self._wrong("this comparison contains no column", node)
        return tree

    def _wrong(self, what: str, node: ast.expr) -> ValueError:
        """An error that points at a node."""
        return _error(self.text, what, node.col_offset)

    def _token(self, node: ast.AST) -> Token | None:
        """The name or constant of a node; None for any other node."""
        if not isinstance(node, ast.Name):
            return None
        if node.col_offset not in self.tokens:  # a misplaced 'then' is a name for Python
            raise self._wrong(f"{node.id!r} is unexpected here", node)
        return self.tokens[node.col_offset]

    def columns(self, *nodes: ast.expr) -> set[int]:
        """Positions of the columns that occur in nodes."""
        names = {token.text for node in nodes for part in ast.walk(node) if (token := self._token(part)) is not None}
        return {self.places[name] for name in names if name in self.places}

    # -- conditions --------------------------------------------------------------------------------------

    def holds(self, node: ast.expr, X: FloatArray) -> BoolArray:
        """Which points satisfy a condition."""
        match node:
            case ast.BoolOp(op, values):
                combine = np.all if isinstance(op, ast.And) else np.any
                return np.asarray(combine([self.holds(value, X) for value in values], axis=0))
            case ast.UnaryOp(ast.Not(), operand):
                return ~self.holds(operand, X)
            case ast.Compare(left, ops, comparators):
                sides = zip([left, *comparators], ops, comparators, strict=False)
                return np.asarray(np.all([self._compared(a, type(op), b, X) for a, op, b in sides], axis=0))
        raise self._wrong("expected a comparison, such as <= or ==", node)

    def _compared(self, a: ast.expr, op: type[ast.cmpop], b: ast.expr, X: FloatArray) -> BoolArray:
        if op in (ast.In, ast.NotIn):
            elements = b.elts if isinstance(b, ast.Tuple) else [b]
            if not elements:
                raise self._wrong("expected at least one value", b)
            within = np.any([self._compared(a, ast.Eq, element, X) for element in elements], axis=0)
            return np.asarray(within if op is ast.In else ~within)
        for node in (a, b):
            j = self._category_column(node)
            if j is not None and op not in (ast.Eq, ast.NotEq) and not self.space.features[j].ordered:
                raise self._wrong(f"the categories of {self.space.names[j]!r} have no order; use == or !=", node)
        return COMPARE[op](*self.sides(a, b, X))

    def sides(self, a: ast.expr, b: ast.expr, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both sides of a comparison: numbers, or codes of categories or dates."""
        left, right = self._category_column(a, b), self._category_column(b, a)
        if left is not None and right is not None and self._are_dates(left, right):
            return X[:, left], X[:, right]
        if left is not None:
            return X[:, left], self._code(left, b, X)
        if right is not None:
            return self._code(right, a, X), X[:, right]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # no comparison with NaN is true
            return self._number(a, X), self._number(b, X)

    def _are_dates(self, *columns: int) -> bool:
        """Whether all these columns hold dates, counted in the same unit."""
        steps = {f.step if isinstance(f, Date) else "" for f in (self.space.features[j] for j in columns)}
        return len(steps) == 1 and "" not in steps

    def _category_column(self, node: ast.expr, other: ast.expr | None = None) -> int | None:
        """The position of the column that a node names, if it is compared as a category or a date."""
        token = self._token(node)
        j = self.places.get(token.text) if token is not None and token.kind in ("word", "quoted") else None
        if j is None or self.space.features[j].is_number:
            return None
        value = None if other is None else self._token(other)
        is_value = value is not None and (value.is_value or value.text not in self.places)
        return j if is_value or not self.space.features[j].is_counted else None  # or a number: end == start + days

    def _code(self, j: int, node: ast.expr, X: FloatArray) -> FloatArray:
        """The code of the value of feature j that is written at a node, (n,)."""
        key, token = (j, node.col_offset), self._token(node)
        if token is None or not (token.is_value or token.kind == "number"):
            what = f"{self.space.names[j]!r} holds no numbers: compare it with one of its values, in quotes"
            raise self._wrong(what, node)
        try:
            if key not in self.codes:
                self.codes[key] = self.space.features[j].code_in(token.text)
        except ValueError as error:
            raise self._wrong(str(error), node) from None
        return np.full(len(X), self.codes[key])

    def equalities(self, node: ast.expr) -> list[Equality]:
        """The equalities that a condition implies."""
        match node:
            case ast.BoolOp(ast.And(), values):
                return [equality for value in values for equality in self.equalities(value)]
            case ast.Compare(left, ops, comparators):
                sides = zip([left, *comparators], ops, comparators, strict=False)
                return [Equality(self, *pair) for a, op, b in sides if (pair := self._equal(a, op, b)) is not None]
        return []

    def _equal(self, a: ast.expr, op: ast.cmpop, b: ast.expr) -> tuple[ast.expr, ast.expr, float] | None:
        """The sides of a == b, or of abs(left - right) <= limit, and their largest allowed difference."""
        match a, op, self._token(b):
            case _, ast.Eq(), _:
                return a, b, 0.0
            case ast.Call(function, [ast.BinOp(left, ast.Sub(), right)]), ast.LtE(), Token("number", limit):
                token = self._token(function)
                return (left, right, float(limit)) if token is not None and token.text == "abs" else None
        return None

    # -- numbers -----------------------------------------------------------------------------------------

    def _number(self, node: ast.expr, X: FloatArray) -> FloatArray:
        if (token := self._token(node)) is not None:
            return self._operand(token, node, X)
        match node:
            case ast.UnaryOp(ast.USub(), operand):
                return -self._number(operand, X)
            case ast.BinOp(left, op, right) if type(op) in COMBINE:
                return COMBINE[type(op)](self._number(left, X), self._number(right, X))
            case ast.Call(function, args):
                token = self._token(function)
                if token is None or token.text not in FUNCTIONS or not args:
                    raise self._wrong(f"expected one of the functions {listed(FUNCTIONS)}, and numbers", node)
                if token.text == "abs" and len(args) > 1:
                    raise self._wrong("abs takes one number", node)
                return FUNCTIONS[token.text](np.array([self._number(argument, X) for argument in args]))
        raise self._wrong("expected a number or a column", node)

    def _operand(self, token: Token, node: ast.expr, X: FloatArray) -> FloatArray:
        if token.kind == "number":
            return np.full(len(X), float(token.text))
        if token.is_value:
            raise self._wrong("a value in quotes is compared with a column that has such values", node)
        if token.text not in self.places:
            known = f"there are {listed(self.places)}.{did_you_mean(token.text, self.places)}"
            raise self._wrong(f"{token.text!r} is not a feature; {known}", node)
        if not (feature := self.space.features[self.places[token.text]]).is_counted:
            what = "dates with a time" if isinstance(feature, Date) else "categories"
            raise self._wrong(f"{token.text!r} holds {what}, which cannot be used in arithmetic", node)
        return X[:, self.places[token.text]]


@dataclass(frozen=True, eq=False)
class Equality:
    """Two expressions that must be equal."""

    formula: Formula
    left: ast.expr
    right: ast.expr
    limit: float  # largest allowed difference

    @cached_property
    def columns(self) -> list[int]:
        return sorted(self.formula.columns(self.left, self.right))

    def residual(self, X: FloatArray) -> FloatArray:
        """Left side minus right side, (n,)."""
        left, right = self.formula.sides(self.left, self.right, X)
        return left - right

    def is_broken(self, X: FloatArray) -> BoolArray:
        """Which points have sides that differ by more than the limit, (n,)."""
        left, right = self.formula.sides(self.left, self.right, X)
        return ~is_close(left, right) & ~COMPARE[ast.LtE](np.abs(left - right), np.full(len(X), self.limit))


# -- transitions -------------------------------------------------------------------------------------------


def _transition(text: str, space: Space, found: re.Match[str]) -> Rule:
    """The rule described by a text such as "purpose: car -> business is impossible"."""
    at = found.start(1 if found[1] else 2)
    try:
        j = space.index(found[1] or found[2])
        feature, at = space.features[j], found.start(3)
        if feature.is_number:
            raise ValueError(f"{feature.name!r} holds numbers, and '->' is for categories; see directions")
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
    """Which codes, (n,), are the start or come after it in a chain; all if the start is not in the chain."""
    if start not in places:
        return np.ones(len(codes), dtype=bool)
    return np.isin(codes, places[places.index(start) :])


# -- moving along equalities -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EqualitySolver:
    """Moves points so that equalities hold.

    If several features of an equality were changed, the one with the largest change stays and the other changed ones
    are adjusted; if only one was, an unchanged feature is adjusted, a different one for each point in turn.
    """

    rules: list[Rule]  # with equalities
    factual: FloatArray
    movable: BoolArray  # which features may change, (d,)
    low: FloatArray  # bounds, (d,) each
    high: FloatArray
    snap: Callable[[int, FloatArray], FloatArray]  # the nearest values that feature j can take, (n,)

    def __call__(self, X: FloatArray, fixed: BoolArray | None = None, first: Iterable[int] = ()) -> FloatArray:
        """The points, (n, d), moved if necessary; points that satisfy a rule are not moved for it.

        Args:
            fixed: values that must not change, (n, d).
            first: features that are adjusted before others.
        """
        X, fixed = X.copy(), np.zeros(X.shape, dtype=bool) if fixed is None else fixed
        for _ in range(PASSES):
            broken = False
            for rule in self.rules:
                bad = np.flatnonzero(~rule.holds(X, self.factual))
                broken |= len(bad) > 0
                for equality in rule.equalities if len(bad) else ():
                    X[bad] = self._moved(X[bad], fixed[bad], equality, first)
            if not broken:
                break
        return X

    def _moved(self, X: FloatArray, fixed: BoolArray, equality: Equality, first: Iterable[int]) -> FloatArray:
        columns = [j for j in equality.columns if self.movable[j]]
        if not columns:
            return X
        order = self._order(X, columns, np.isin(columns, list(first)))
        for turn in range(len(columns)):
            for k, j in enumerate(columns):
                mine = np.flatnonzero((order[:, turn] == k) & ~fixed[:, j] & equality.is_broken(X))
                if len(mine):
                    X[mine, j] = self.snap(j, np.clip(self._root(X[mine], equality, j), self.low[j], self.high[j]))
        return X

    def _order(self, X: FloatArray, columns: Sequence[int], is_first: BoolArray) -> IntArray:
        """The order in which the columns are adjusted, for each point, (n, k)."""
        n, k = len(X), len(columns)
        wide = np.maximum(self.high - self.low, 1e-300)[columns]
        moved = np.abs(X[:, columns] - self.factual[columns]) / wide
        turn = (np.arange(n)[:, None] + np.arange(k)) % k / k
        rank = np.where(moved > 0, 0.0, 1.0) + turn
        most = moved.argmax(axis=1)
        rank[np.arange(n), most] = 3.0  # the largest change is adjusted last
        rank[:, is_first] = -1.0
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
