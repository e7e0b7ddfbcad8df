"""Mutation testing: insert a seeded sample of small faults one by one, and count those that the tests detect.

    python -m benchmarks.mutants --n 40                       # the first 40 of the sample; resumes
    python -m benchmarks.mutants --n 10 --rooms space,plan    # of some rooms
    python -m benchmarks.mutants --report                     # the share that was detected, by room

A fault is another operator or comparison, `and` for `or`, a condition negated, or a number one off. The tests of its
module run first, then those of its room, then the recorded searches, which need the paper's data sets. A fault is
*killed* if a test fails, *timeout* if they take longer than `LIMIT_S`, and *survived* otherwise. Lines are appended to
`results/mutants.csv`. If the file or tests have changed since, the result may be outdated; `--again` runs the tests on
surviving faults again.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.statistics import wilson
from benchmarks.suite import RESULTS, ROOT

ROOMS = ("space", "plan", "engine", "search")
OUT = RESULTS / "mutants.csv"
COLUMNS = ("key", "room", "module", "line", "change", "outcome")
LIMIT_S = 900
SWAPS: dict[type[ast.AST], str] = {
    **{ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.BitAnd: "|", ast.BitOr: "&"},
    **{ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="},
    **{ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"},
}


@dataclass(frozen=True)
class Fault:
    """One change to one file; its key does not depend on the other lines of the file."""

    key: str
    room: str
    module: str
    line: int
    start: int
    end: int
    new: str

    def planted(self, source: bytes) -> bytes:
        """The text of the file with the fault inserted."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def faults(path: Path, room: str) -> Iterator[Fault]:
    """All possible faults in a file."""
    source = path.read_bytes()
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)

    def position(line: int, column: int) -> int:
        return starts[line - 1] + column

    def text(node: ast.expr) -> str:
        assert node.end_lineno and node.end_col_offset is not None
        end = position(node.end_lineno, node.end_col_offset)
        return source[position(node.lineno, node.col_offset) : end].decode()

    module = path.relative_to(ROOT / "src/acex").as_posix()
    seen: dict[str, int] = {}
    for node in evaluated(ast.parse(source)):
        for new in changed(node, text):
            assert isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset is not None
            what = f"{module} {text(node)} -> {new}"
            seen[what] = seen.get(what, 0) + 1
            key = hashlib.sha256(f"{what} {seen[what]}".encode()).hexdigest()[:12]
            start, end = position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)
            yield Fault(key, room, module, node.lineno, start, end, new)


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a syntax tree that are executed, without annotations, and without f-strings (positions unknown)."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield child
                yield from evaluated(child)


def changed(node: ast.AST, text: Callable[[ast.expr], str]) -> Iterator[str]:
    """The replacements for an expression."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield f"(({text(node.left)}) {SWAPS[type(node.op)]} ({text(node.right)}))"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        yield f"(({text(node.left)}) {SWAPS[type(node.ops[0])]} ({text(node.comparators[0])}))"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield f"({word.join(f'({text(value)})' for value in node.values)})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({text(node.operand)})"
    elif isinstance(node, ast.IfExp):
        yield f"({text(node.body)} if not ({text(node.test)}) else {text(node.orelse)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield f"({node.value!r} + 1)"


def sample(rooms: list[str], n: int) -> list[Fault]:
    """The first n faults of the rooms, in a reproducible random order."""
    found = [
        f for room in rooms for path in sorted((ROOT / "src/acex" / room).glob("*.py")) for f in faults(path, room)
    ]
    return sorted(found, key=lambda fault: fault.key)[:n]


def outcome(fault: Fault) -> str:
    """Insert a fault into a copy of the sources and run the tests."""
    room = ROOT / "tests" / fault.room
    own = room / f"test_{Path(fault.module).name}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / "acex" / fault.module
        path.write_bytes(fault.planted(path.read_bytes()))
        environment = os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
        for tests in (own, room, ROOT / "tests/test_recorded_searches.py"):
            if not tests.exists():
                continue
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", str(tests)]
            try:
                ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                return "timeout"
            if ended.returncode != 0:
                return "killed"
    return "survived"


def decided() -> pd.DataFrame:
    """The latest result line of each fault."""
    if not OUT.exists():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(OUT).drop_duplicates("key", keep="last")


def report() -> None:
    """Print the share of faults that were detected, by room."""
    lines = decided()
    for room, part in [*lines.groupby("room"), ("all", lines)]:
        k, n = int((part["outcome"] != "survived").sum()), len(part)
        low, high = wilson(k, n)
        print(f"{room}: {k} of {n} noticed, 95% interval {low:.0%} to {high:.0%}")
    for line in lines[lines["outcome"] == "survived"].itertuples():
        print(f"survived: {line.module}:{line.line}  {line.change}")


def main() -> None:
    """Parse the command line, test the faults and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--rooms", default=",".join(ROOMS))
    parser.add_argument("--again", action="store_true", help="plant survivors once more")
    parser.add_argument("--report", action="store_true", help="plant nothing")
    args = parser.parse_args()
    lines = decided()
    known = set(lines[lines["outcome"] != "survived"]["key"] if args.again else lines["key"])
    for fault in [] if args.report else sample(args.rooms.split(","), args.n):
        if fault.key in known:
            continue
        source = (ROOT / "src/acex" / fault.module).read_bytes()
        change = f"{source[fault.start : fault.end].decode()} -> {fault.new}"
        new = not OUT.exists()
        result = outcome(fault)
        with OUT.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            if new:
                writer.writerow(COLUMNS)
            line = (fault.key, fault.room, fault.module, fault.line, " ".join(change.split()), result)
            writer.writerow(line)
        print(*line[2:], flush=True)
    if OUT.exists():
        report()


if __name__ == "__main__":
    main()
