"""Small faults that can be planted in a Python file, and a seeded sample of them, for benchmarks/mutants.py.

The kinds are those of cosmic-ray: another operator, another comparison, a number one off, a truth turned round, `and`
for `or`, a condition negated, a sign or a `not` dropped, `break` for `continue`, a loop over nothing, an exception that
is not caught, a decorator that does nothing. Written here, in a page, since the tool brings twenty packages, numbers
faults by position (a line added anywhere moves the sample) and plants one at a time in the tree itself.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ARITHMETIC: tuple[type[ast.operator], ...] = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
BITS: tuple[type[ast.operator], ...] = (ast.BitAnd, ast.BitOr, ast.BitXor)
ORDER: tuple[type[ast.cmpop], ...] = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
Change = tuple[ast.AST, str, str]  # what is replaced, by what text, and the kind of fault


@dataclass(frozen=True)
class Fault:
    """One change of one file; `key` stays the same when lines are added elsewhere in it."""

    key: str
    module: str  # the file, relative to the root
    line: int
    lines: range  # those that a test has run if it has reached the fault
    kind: str
    start: int
    end: int
    text: str

    def planted(self, source: bytes) -> bytes:
        """The file with the fault in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def change(self, source: bytes) -> str:
        """What was there and what is there now, each on one line."""
        return " -> ".join(" ".join(s.split()) for s in (source[self.start : self.end].decode(), self.text))


def sample(root: Path, modules: list[str], n: int, seed: int) -> list[Fault]:
    """So many faults: places are drawn evenly over all files, then a fault at each."""
    places: dict[tuple[str, int, int], list[Fault]] = {}
    for module in modules:
        for fault in faults(module, (root / module).read_bytes(), seed):
            places.setdefault((module, fault.start, fault.end), []).append(fault)
    one_each = (min(at_place, key=lambda fault: fault.key) for at_place in places.values())
    # The key of the place is drawn anew: the least of many keys is small, and would favour places with many faults.
    return sorted(one_each, key=lambda fault: hashed(seed, fault.key, "place"))[:n]


def faults(module: str, source: bytes, seed: int = 0) -> Iterator[Fault]:
    """Every fault of a file, in the order of its lines."""
    tree = ast.parse(source)
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    seen: Counter[str] = Counter()
    for node, path in evaluated(tree):
        within = next((n for n in (node, *reversed(path)) if isinstance(n, ast.stmt)), None)
        names = ".".join(n.name for n in path if isinstance(n, ast.FunctionDef | ast.ClassDef))
        for old, text, kind in changes(node):
            assert isinstance(old, ast.expr | ast.stmt) and old.end_lineno and old.end_col_offset is not None
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            what = f"{module} {names} {source[start:end].decode()} -> {text}"
            seen[what] += 1
            first = min(within.lineno if within else old.lineno, old.lineno)
            yield Fault(
                hashed(seed, what, str(seen[what])), module, old.lineno, range(first, old.end_lineno + 1), kind,
                start, end, text,
            )  # fmt: skip


def evaluated(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Every node that a run evaluates, with those around it: no annotation, no text, nothing for type checkers."""
    stack: list[tuple[ast.AST, list[ast.AST]]] = [(tree, [])]
    while stack:
        node, path = stack.pop()
        yield node, path
        left_out = {getattr(node, "annotation", None), getattr(node, "returns", None)}
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            continue
        around = [*path, node]
        stack += [(child, around) for child in reversed(list(ast.iter_child_nodes(node))) if child not in left_out]


def changes(node: ast.AST) -> Iterator[Change]:
    """The faults that can be planted at a node."""
    match node:
        case ast.BinOp(left, op, right):
            for other in others(op):
                yield node, f"({ast.unparse(ast.BinOp(left, other, right))})", "operator"
        case ast.AugAssign(target, op, value):
            for other in others(op):
                yield node, ast.unparse(ast.AugAssign(target, other, value)), "operator"
        case ast.Compare(left, ops, comparators):
            for i, between in enumerate(ops):
                for kind in compared(type(between)):
                    again = ast.Compare(left, [*ops[:i], kind(), *ops[i + 1 :]], comparators)
                    yield node, f"({ast.unparse(again)})", "comparison"
        case ast.BoolOp(joined, values):
            other_one = ast.Or() if isinstance(joined, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other_one, values))})", "and/or"
        case ast.Constant(bool() as value):
            yield node, str(not value), "truth"
        case ast.Constant(int() | float() as value):
            for near in {value + 1, value - 1} - {value}:  # none is one off 1e30
                yield node, f"({near!r})", "number"
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            yield node, f"({ast.unparse(operand)})", "sign"
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield test, f"(not ({ast.unparse(test)}))", "condition"
        case ast.comprehension(ifs=ifs):
            for test in ifs:
                yield test, f"(not ({ast.unparse(test)}))", "condition"
        case ast.Break():
            yield node, "continue", "break/continue"
        case ast.Continue():
            yield node, "break", "break/continue"
        case ast.For(iter=over):
            yield over, "()", "no loop"
        case ast.ExceptHandler(type=ast.expr() as caught):
            yield caught, "()", "not caught"
        case ast.FunctionDef(decorator_list=decorators) | ast.ClassDef(decorator_list=decorators):
            for decorator in decorators:
                yield decorator, "(lambda it: it)", "decorator"


def others(op: ast.operator) -> Iterator[ast.operator]:
    """The operators that could stand in one's place."""
    for group in (ARITHMETIC, BITS):
        if type(op) in group:
            yield from (kind() for kind in group if kind is not type(op))


def compared(kind: type[ast.cmpop]) -> list[type[ast.cmpop]]:
    """The comparisons that could stand in one's place."""
    return [TURNED[kind]] if kind in TURNED else [other for other in ORDER if other is not kind]


def hashed(seed: int, *words: str) -> str:
    """A name of ten letters that the seed and the words determine."""
    return hashlib.sha256("\n".join([str(seed), *words]).encode()).hexdigest()[:10]
