"""Planted faults: every one can be read, changes the file, and has a key of its own."""

from __future__ import annotations

import ast

from benchmarks import mutants
from benchmarks.suite import ROOT


def test_every_fault_is_valid_python_that_differs() -> None:
    found = mutants.sample(["plan"], 10**6)
    assert len(found) > 100 and len({fault.key for fault in found}) == len(found)
    for fault in found:
        source = (ROOT / "src/acex" / fault.module).read_bytes()
        assert ast.dump(ast.parse(fault.planted(source))) != ast.dump(ast.parse(source))


def test_annotations_have_no_faults() -> None:
    tree = ast.parse("def f(x: int | None = 1) -> int | None: return x if x > 2 else 3")
    kinds = {type(node) for node in mutants.evaluated(tree)}
    assert ast.Compare in kinds and ast.BinOp not in kinds
