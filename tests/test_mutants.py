"""The faults that `make mutants` plants are faults, and the sample of them stays what it is."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
faults = pytest.importorskip("faults")

SOURCE = b'''"""A text of 3 words."""

LIMIT: int | None = 3


@plain
def area(a: float, b: float = 1e30) -> float | None:
    if a <= 0 and not b:  # \xc3\xa9
        return -a
    for step in range(2):
        try:
            a += step * b
        except ValueError:
            break
    return f"{a + 1}"
'''


def test_every_fault_is_python_and_another_program() -> None:
    found = list(faults.faults("m.py", SOURCE))
    programs = {ast.dump(ast.parse(fault.planted(SOURCE))) for fault in found}
    assert len(programs) == len(found) == len({fault.key for fault in found})
    assert ast.dump(ast.parse(SOURCE)) not in programs


def test_every_kind_is_planted_where_it_can_be() -> None:
    planted = {fault.change(SOURCE) for fault in faults.faults("m.py", SOURCE)}
    assert {
        "plain -> (lambda it: it)", "3 -> (4)", "3 -> (2)", "a <= 0 -> (a > 0)", "not b -> (b)", "-a -> (a)",
        "a <= 0 and not b -> (a <= 0 or not b)", "a <= 0 and not b -> (not (a <= 0 and (not b)))",
        "range(2) -> ()", "step * b -> (step / b)", "a += step * b -> a -= step * b", "ValueError -> ()",
        "break -> continue",
    } <= planted  # fmt: skip


def test_annotations_texts_and_numbers_too_large_for_one_more_are_left_alone() -> None:
    planted = [fault.change(SOURCE) for fault in faults.faults("m.py", SOURCE)]
    assert [text for text in planted if "None" in text or "1e30" in text or "a + 1" in text] == []


def test_a_line_added_elsewhere_leaves_the_sample_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(SOURCE)
    before = faults.sample(tmp_path, ["m.py"], 8, 0)
    (tmp_path / "m.py").write_bytes(b"# a line\n" + SOURCE)
    after = faults.sample(tmp_path, ["m.py"], 8, 0)
    assert [fault.key for fault in after] == [fault.key for fault in before]
    assert [fault.line for fault in after] == [fault.line + 1 for fault in before]


def test_a_smaller_sample_is_the_beginning_of_a_larger_one_and_another_seed_draws_others(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_bytes(SOURCE)
    drawn = faults.sample(tmp_path, ["m.py"], 8, 0)
    assert faults.sample(tmp_path, ["m.py"], 3, 0) == drawn[:3]
    assert [f.text for f in faults.sample(tmp_path, ["m.py"], 8, 1)] != [f.text for f in drawn]
    assert len({(fault.start, fault.end) for fault in drawn}) == 8
