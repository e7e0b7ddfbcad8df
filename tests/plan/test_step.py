"""Steps and endings: what follows from labels and their order, and what files hold of them."""

from __future__ import annotations

import json

import numpy as np

from acex.plan.step import Ending, Note, Step, all_judged
from acex.plan.target import Target
from acex.values import Remark


def step(position: int, label: str, cost: float, counts: bool = True) -> Step:
    return Step(position, {"a": position}, "row", label, False, 0.0, 1, None, 0, Note(position, cost, counts))


def test_the_best_so_far_follows_hits_that_count() -> None:
    costs, labels, counts = (0, 9, 8, 7, 3, 5), ["no", "yes", "no", "yes", "yes", "yes"], (1, 1, 1, 0, 1, 1)
    steps = [step(i, label, c, bool(k)) for i, (label, c, k) in enumerate(zip(labels, costs, counts, strict=True))]
    steps = all_judged(steps, Target.of("yes"))
    assert [s.hit for s in steps] == [False, True, False, True, True, True]
    assert [s.best for s in steps] == [np.inf, 9, 9, 9, 3, 3]
    assert Ending.so_far(steps, Target.of("yes")).counterfactuals == (4,)


def test_the_factual_is_no_hit_also_where_it_has_the_label_wanted() -> None:
    steps = all_judged([step(0, "yes", 0)], Target.of("yes"))
    assert not steps[0].hit
    assert Ending.so_far(steps, Target.of("yes")).outcome == "already_target"
    assert Ending.so_far(all_judged([step(0, "no", 0)], Target.of("yes")), Target.of("yes")).outcome == "unfinished"


def test_notes_of_earlier_versions_are_read() -> None:
    note = {
        "first": 3,
        "cost": 1.5,
        "counts": True,
        "affinity": 0.9,
        "round": 2,
        "penalty": 0.0,
        "hope": 0.4,
        "chance": 0.2,
    }
    read = Note.from_dict(note)
    assert (read.max_p_hit, read.p_hit) == (0.4, 0.2)
    assert Note.from_dict({"first": 0, "cost": 0.0, "counts": False}) == Note(0, 0.0, False)


def test_notes_and_endings_come_back_from_json() -> None:
    note = Note(3, 1.5, True, 0.9, 2, 10.0, 0.4)
    assert Note.from_dict(json.loads(json.dumps(note.to_dict()))) == note
    for ending in (
        Ending("found", "settled", (3, 5), (0.7, 0.8), (Remark("a", "b"),)),
        Ending("failed", error="no"),
    ):
        assert Ending.from_dict(json.loads(json.dumps(ending.to_dict()))) == ending
