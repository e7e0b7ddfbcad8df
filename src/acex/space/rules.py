"""Rules over rows, as text: what must hold in every row that is queried, and how a row is moved so that it does.

    rate * 12 < income                    if housing == 'own' then rent == 0
    term_months in (12, 24)               sum(sand, clay, lime) == 100
    purpose: car -> business is impossible
    school: primary -> high -> university only

A rule is a comparison, or several with `and`, `or`, `not` and parentheses; `if ... then ...` makes it conditional.
There are + - * / and the functions sum, mean, min, max, abs. A column whose name is no plain word stands in backticks,
a category in quotes. The last two forms say which categories a row may go to from the factual's.

Expressions are parsed by Python's `ast`: each token becomes one line of source, names and constants all become `x`, and
line numbers lead back to the tokens. Nothing is run as code. Errors point at the character.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from acex.arrays import BoolArray, FloatArray, IntArray, Rows
from acex.space.feature import Feature
from acex.space.space import Space
from acex.values import joined_words, listed, readable

RuleFunction: TypeAlias = Callable[[Rows], Any]  # from rows to one True or False per row

EQUAL = 1e-9  # relative: numbers that differ by less are equal
MOST_TOKENS = 1000
MOST_DEEP = 50  # levels of parentheses, and of operations within each other; sum(a, b, ...) is one level
MOST_STEPS = 20  # of the secant method; a linear rule needs one
PASSES = 3  # over all rules, since moving along one may break another
FIRST_STEP = 1e-3  # of a feature's range: the first step of the secant method

TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<word>[^\W\d][\w.]*)|`(?P<quoted>[^`]+)`"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|(?P<sign><=|>=|==|!=|[<>=+\-*/(),]))"
)
TRANSITION = re.compile(r"\s*(?:`([^`]+)`|([^\W\d][\w.]*))\s*:(.*?)\s(is\s+impossible|only)\s*", re.DOTALL)
OPERATORS = ("and", "or", "not", "in")
WORDS = {"<=": "is at most", "<": "is below", ">=": "is at least", ">": "is above", "==": "is", "!=": "is not"}
TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<"}
COMPARE: dict[str, Callable[[FloatArray, FloatArray], BoolArray]] = {
    "<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater,
    "==": lambda a, b: is_close(a, b), "!=": lambda a, b: ~is_close(a, b),
}  # fmt: skip
SIGNS: dict[type[ast.AST], str] = {
    ast.LtE: "<=", ast.Lt: "<", ast.GtE: ">=", ast.Gt: ">", ast.Eq: "==", ast.NotEq: "!=",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
}  # fmt: skip
COMBINE: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip
FUNCTIONS: dict[str, tuple[Callable[[FloatArray], FloatArray], str]] = {
    "sum": (lambda A: A.sum(axis=0), "the sum of"), "mean": (lambda A: A.mean(axis=0), "the mean of"),
    "min": (lambda A: A.min(axis=0), "the least of"), "max": (lambda A: A.max(axis=0), "the greatest of"),
    "abs": (lambda A: np.abs(A[0]), "the size of"),
}  # fmt: skip


def is_close(a: FloatArray, b: FloatArray) -> BoolArray:
    """Which numbers are equal but for rounding, (n,)."""
    return np.asarray(np.abs(a - b) <= EQUAL * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0))


@dataclass(frozen=True, eq=False)
class Rule:
    """What has to be true of a row.

    Attributes:
        text: as it was written.
        sentence: the same for people.
        applies: for which points the premise of `if ... then` is true; None without one.
        equalities: what has to be equal where it applies; points are moved until it is.
        gaps: of its columns that may have gaps, their codes.
    """

    text: str
    sentence: str
    _holds: Callable[[FloatArray, FloatArray], BoolArray] = field(repr=False)
    applies: Callable[[FloatArray], BoolArray] | None = field(default=None, repr=False)
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
        reader = _Reader(text, space)
        premise, claim = reader.rule()
        names = {token.text for token in reader.tokens if token.kind in ("word", "quoted")}
        gaps = {j: f.gap for j, f in enumerate(space.features) if f.gaps and f.name in names}
        if premise is None:
            return Rule(text, _sentence(claim.words), lambda X, x: claim.of(X), None, claim.equalities, gaps)
        applies = premise.of
        sentence = f"If {premise.words}, then {claim.words}."
        return Rule(text, sentence, lambda X, x: ~applies(X) | claim.of(X), applies, claim.equalities, gaps)

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


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}." if words.startswith("the ") else f"{words}."


# -- reading a text ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Expression:
    """A number for each point, (n, d) -> (n,): its words, its columns, and how it is calculated."""

    words: str
    columns: frozenset[int]
    of: Callable[[FloatArray], FloatArray]
    is_simple: bool = True  # needs no parentheses within others

    @property
    def bracketed(self) -> str:
        return self.words if self.is_simple else f"({self.words})"


@dataclass(frozen=True, eq=False)
class Equality:
    """Two numbers that are to be equal; or, where `left` is None, a column that is to have the code on the right."""

    left: Expression | None
    right: Expression
    columns: frozenset[int]

    def residual(self, X: FloatArray) -> FloatArray:
        """How far the sides are apart, (n,)."""
        assert self.left is not None
        return self.left.of(X) - self.right.of(X)

    def is_broken(self, X: FloatArray) -> BoolArray:
        """For which points two numbers differ, (n,)."""
        assert self.left is not None
        return ~is_close(self.left.of(X), self.right.of(X))


@dataclass(frozen=True, eq=False)
class Condition:
    """What is true or false of a point, (n, d) -> (n,); `equalities` hold wherever it is true."""

    words: str
    of: Callable[[FloatArray], BoolArray]
    equalities: tuple[Equality, ...] = ()


class Token(NamedTuple):
    """A piece of a text, and its position."""

    kind: str  # number, word, quoted (a name in backticks), text (a value in quotes), sign, end
    text: str
    at: int

    @property
    def is_operand(self) -> bool:
        return self.kind in ("number", "quoted", "text") or (self.kind == "word" and self.text not in OPERATORS)


Side: TypeAlias = Expression | Feature | Token  # a number, a column of categories, or a value of one


def _error(text: str, what: str, at: int) -> ValueError:
    """An error that points at a character."""
    end = "" if what.endswith("?") else "."
    return ValueError(f"rule: {what}{end}\n  {text}\n  {' ' * at}^")


class _Reader:
    """Reads one rule over the columns of a space."""

    def __init__(self, text: str, space: Space) -> None:
        self.text, self.space = text, space
        self.tokens = self._tokens()
        self.first = 0  # of the tokens that are read now

    def wrong(self, what: str, at: Token | ast.expr) -> ValueError:
        return _error(self.text, what, at.at if isinstance(at, Token) else self._token(at).at)

    def _tokens(self) -> list[Token]:
        tokens: list[Token] = []
        at, depth = 0, 0
        while self.text[at:].strip():
            found = TOKEN.match(self.text, at)
            if found is None or found.lastgroup is None:
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                sign = self.text[at]
                what = "this quote does not end" if sign in "'\"`" else f"{sign!r} means nothing here"
                raise _error(self.text, what, at)
            kind, start = found.lastgroup, found.start(found.lastgroup)
            is_quoted = kind in ("single", "double", "quoted")
            kind = "text" if kind in ("single", "double") else kind
            tokens.append(Token(kind, found[found.lastgroup], start - is_quoted))
            at = found.end()
            depth += (tokens[-1][:2] == ("sign", "(")) - (tokens[-1][:2] == ("sign", ")"))
            if depth > MOST_DEEP or len(tokens) > MOST_TOKENS:
                what = "nested too deeply" if depth > MOST_DEEP else f"longer than {MOST_TOKENS} words and signs"
                raise ValueError(f"rule: {what}: {self.text[:60]}... Split it into several rules.")
        return [*tokens, Token("end", "", len(self.text.rstrip()))]

    def rule(self) -> tuple[Condition | None, Condition]:
        """The premise, None without one, and what has to hold."""
        words = [token.text if token.kind == "word" else "" for token in self.tokens]
        if words[0] != "if":
            return None, self._read(0, len(words) - 1)
        if "then" not in words:
            raise self.wrong("expected 'then' after the condition", self.tokens[-1])
        then = words.index("then")
        return self._read(1, then), self._read(then + 1, len(words) - 1)

    def _read(self, start: int, stop: int) -> Condition:
        """The condition in some of the tokens."""
        part = self.tokens[start:stop]
        opened: list[Token] = []
        for before, token in zip([None, *part], part, strict=False):
            if before is not None and token.is_operand and (before.is_operand or before.text == ")"):
                raise self.wrong(f"expected an operator before {token.text!r}", token)
            if token[:2] == ("sign", "("):
                opened.append(token)
            elif token[:2] == ("sign", ")"):
                if not opened:
                    raise self.wrong("this parenthesis was not opened", token)
                opened.pop()
        if opened:
            raise self.wrong("this parenthesis is not closed", opened[-1])
        python = ["x" if t.is_operand else "==" if t.text == "=" else t.text for t in part]
        self.first = start
        try:
            tree = ast.parse("\n".join(["(", *python, ")"]), mode="eval").body
        except SyntaxError as error:
            at = self.tokens[min(max(start + (error.lineno or 0) - 2, start), stop)]
            raise self.wrong("a number or a column is missing here", at) from None
        self._refuse_deep(tree)
        return self._condition(tree)

    def _refuse_deep(self, tree: ast.expr) -> None:
        level: list[ast.AST] = [tree]
        for _ in range(2 * MOST_DEEP):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise ValueError(f"rule: nested too deeply: {self.text[:60]}... For a long sum use sum(a, b, ...).")

    def _token(self, node: ast.expr) -> Token:
        """The first token of a node."""
        return self.tokens[self.first + max(node.lineno - 2, 0)]

    # -- conditions --------------------------------------------------------------------------------------

    def _condition(self, node: ast.expr) -> Condition:
        match node:
            case ast.BoolOp(ast.And(), values):
                return _all_of([self._condition(value) for value in values])
            case ast.BoolOp(ast.Or(), values):
                parts = [self._condition(value) for value in values]
                words = " or ".join(part.words for part in parts)
                return Condition(words, lambda X: np.any([part.of(X) for part in parts], axis=0))
            case ast.UnaryOp(ast.Not(), operand):
                inner = self._condition(operand)
                return Condition(f"not ({inner.words})", lambda X: ~inner.of(X))
            case ast.Compare(left, ops, comparators):
                sides = zip([left, *comparators], ops, comparators, strict=False)
                return _all_of([self._comparison(a, op, b) for a, op, b in sides])
        raise self.wrong(f"expected a comparison, such as {listed(WORDS)}, after this", node)

    def _comparison(self, a: ast.expr, op: ast.cmpop, b: ast.expr) -> Condition:
        left = self._side(a)
        if isinstance(op, (ast.In, ast.NotIn)):
            within = self._membership(left, a, b.elts if isinstance(b, ast.Tuple) else [b])
            return within if isinstance(op, ast.In) else Condition(f"not ({within.words})", lambda X: ~within.of(X))
        return self._compared(SIGNS[type(op)], left, self._side(b), a, b)

    def _compared(self, sign: str, left: Side, right: Side, a: ast.expr, b: ast.expr) -> Condition:
        compare = COMPARE[sign]
        if isinstance(left, Expression) and isinstance(right, Expression):
            columns = left.columns | right.columns
            if not columns:
                raise self.wrong("no column is in this comparison", a)
            equal = (Equality(left, right, columns),) if sign == "==" else ()
            words = f"{left.words} {WORDS[sign]} {right.words}"
            return Condition(words, lambda X: compare(left.of(X), right.of(X)), equal)
        if isinstance(right, Feature) and not isinstance(left, Feature):
            return self._compared(TURNED.get(sign, sign), right, left, b, a)
        if not isinstance(left, Feature):
            raise self.wrong("a value in quotes is compared with a column that has such values", a)
        if isinstance(right, Feature) or (isinstance(right, Expression) and right.columns):
            raise self.wrong(f"{left.name!r} holds categories: compare it with one of them, in quotes", b)
        if sign not in ("==", "!=") and not left.ordered:
            raise self.wrong(f"the categories of {left.name!r} have no order; use == or !=", a)
        code, j = self._code(left, b), self.space.names.index(left.name)
        equal = (Equality(None, _constant(code), frozenset({j})),) if sign == "==" else ()
        words = f"{left.name} {WORDS[sign]} {self._token(b).text}"
        return Condition(words, lambda X: compare(X[:, j], np.array(code)), equal)

    def _membership(self, left: Side, a: ast.expr, elements: Sequence[ast.expr]) -> Condition:
        if isinstance(left, Expression):
            numbers = [self._number(element) for element in elements]
            if not left.columns or any(number.columns for number in numbers):
                raise self.wrong("'in' is for a column and a list of values", a)
            words = f"{left.words} is one of {joined_words([number.words for number in numbers], 'or')}"
            return Condition(words, lambda X: np.any([is_close(left.of(X), n.of(X)) for n in numbers], axis=0))
        if not isinstance(left, Feature):
            raise self.wrong("'in' is for a column and a list of values", a)
        codes, j = [self._code(left, element) for element in elements], self.space.names.index(left.name)
        words = f"{left.name} is one of {joined_words([self._token(e).text for e in elements], 'or')}"
        return Condition(words, lambda X: np.isin(X[:, j], codes))

    def _code(self, feature: Feature, node: ast.expr) -> float:
        """The code of a category as it is written."""
        token, codes = self._token(node), codes_of(self.space, feature)
        text = token.text.capitalize() if token.text.lower() in ("true", "false") and "True" in codes else token.text
        if not isinstance(node, ast.Name) or text not in codes:
            raise self.wrong(f"{feature.name!r} has no value {token.text!r}{_close_to(text, codes)}", node)
        return codes[text]

    # -- numbers -----------------------------------------------------------------------------------------

    def _side(self, node: ast.expr) -> Side:
        """A number, a column of categories, or a value of one."""
        token = self._token(node)
        if isinstance(node, ast.Name):
            if token.kind == "text" or (token.kind == "word" and token.text.lower() in ("true", "false")):
                return token
            if token.kind != "number" and token.text in self.space.names:
                feature = self.space.feature(token.text)
                if not feature.is_number:
                    return feature
        return self._number(node)

    def _number(self, node: ast.expr) -> Expression:
        token = self._token(node)
        match node:
            case ast.Name():
                return _constant(float(token.text)) if token.kind == "number" else self._column(token)
            case ast.UnaryOp(ast.USub(), operand):
                inner = self._number(operand)
                return Expression(f"-{inner.bracketed}", inner.columns, lambda X: -inner.of(X))
            case ast.BinOp(left, op, right) if type(op) in SIGNS:
                return _combined(SIGNS[type(op)], self._number(left), self._number(right))
            case ast.Call(ast.Name(), args, []) if token.kind == "word" and token.text in FUNCTIONS and args:
                return self._function(token, [self._number(argument) for argument in args])
            case ast.Call():
                raise self.wrong(f"there is no function {token.text!r}; there are {listed(FUNCTIONS)}", token)
        raise self.wrong("expected a number or a column", node)

    def _function(self, token: Token, parts: list[Expression]) -> Expression:
        if token.text == "abs" and len(parts) > 1:
            raise self.wrong("abs takes one number", token)
        work, words = FUNCTIONS[token.text]
        columns = frozenset[int]().union(*(part.columns for part in parts))
        words = f"{words} {joined_words([part.words for part in parts])}"
        return Expression(words, columns, lambda X: work(np.array([part.of(X) for part in parts])), is_simple=False)

    def _column(self, token: Token) -> Expression:
        names = self.space.names
        if token.kind == "text" or token.text not in names:
            raise self.wrong(f"there is no column {token.text!r}{_close_to(token.text, names)}", token)
        j = names.index(token.text)
        if not self.space.features[j].is_number:
            raise self.wrong(f"{token.text!r} holds categories, with which nothing can be calculated", token)
        return Expression(token.text, frozenset({j}), lambda X: X[:, j])


def _all_of(parts: list[Condition]) -> Condition:
    equal = tuple(equality for part in parts for equality in part.equalities)
    words = " and ".join(part.words for part in parts)
    return Condition(words, lambda X: np.asarray(np.all([part.of(X) for part in parts], axis=0)), equal)


def _constant(value: float) -> Expression:
    return Expression(readable(value), frozenset(), lambda X: np.full(len(X), value))


def _combined(sign: str, left: Expression, right: Expression) -> Expression:
    """A sum, difference, product or quotient; NaN, of which no comparison is true, after a division by zero."""
    work, is_product = COMBINE[sign], sign in "*/"

    def of(X: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return work(left.of(X), right.of(X))

    first = left.bracketed if is_product else left.words
    second = right.words if sign == "+" else right.bracketed
    return Expression(f"{first} {sign} {second}", left.columns | right.columns, of, is_simple=is_product)


def codes_of(space: Space, feature: Feature) -> dict[str, float]:
    """The codes of a column of categories, by name."""
    codes = feature.codes(space.held[space.names.index(feature.name)].every)
    return {str(feature.value(code)): float(code) for code in ([] if codes is None else codes)}


def _close_to(word: str, known: Iterable[str]) -> str:
    """What may have been meant, as the end of an error."""
    names = list(known)
    found = difflib.get_close_matches(word, names, n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; there are {listed(names)}"


# -- transitions -------------------------------------------------------------------------------------------


def _transition(text: str, space: Space, found: re.Match[str]) -> Rule:
    """The rule in a text such as "purpose: car -> business is impossible"."""
    name = found[1] or found[2]
    if name not in space.names:
        at = found.start(1 if found[1] else 2)
        raise _error(text, f"there is no column {name!r}{_close_to(name, space.names)}", at)
    j = space.names.index(name)
    feature = space.features[j]
    if feature.is_number:
        raise _error(text, f"{name!r} holds numbers, and '->' is about categories; see directions", found.start(3))
    codes, chain, at = codes_of(space, feature), [], found.start(3)
    for part in found[3].split("->"):
        word = part.strip().strip("'\"")
        if word not in codes:
            here = at + len(part) - len(part.lstrip())
            raise _error(text, f"{name!r} has no value {word!r}{_close_to(word, codes)}", here)
        chain.append(word)
        at += len(part) + len("->")
    only = found[4] == "only"
    if len(chain) < 2 or (len(chain) > 2 and not only):
        count = "two values or more" if only else "two values"
        raise _error(text, f"expected {count} with '->' between", found.start(3))
    places = [codes[word] for word in chain]
    if only:
        sentence = f"{name} may only go from {' to '.join(chain)}."
        return Rule(text, sentence, lambda X, x: _is_forward(X[:, j], x[j], places))
    sentence = f"{name} never goes from {chain[0]} to {chain[1]}."
    return Rule(text, sentence, lambda X, x: (x[j] != places[0]) | (X[:, j] != places[1]))


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
        columns = [j for j in sorted(equality.columns) if self.movable[j]]
        if equality.left is None:
            for j in columns:
                X[:, j] = self.snap(j, equality.right.of(X))
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
