"""Explanations and their steps as JSON for pages. Nothing is sent to the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.engine.explanation import is_reference_row, labels_as_text, single
from acex.engine.session import value_of
from acex.ledger import Answer
from acex.plan.step import Note, Step, all_judged
from acex.plan.target import Measured
from acex.show.records import changes_record
from acex.show.sentences import Templates, one_sentence, robustness_sentence
from acex.values import Remark, answer_text, is_missing, plain

YES_NO = {"True": "yes", "False": "no"}
TYPICAL = 0.8  # lowest affinity of a row that is called typical
# Phrases in messages for programmers (as regular expressions), and their replacements on pages.
ON_PAGES = {
    r"\bmax_changes\b": "a limit on the number of changes (More options)",
    r"\bdata has only (\S+) rows?": r"only \1 rows are known",
    r"\brows of data\b": "known rows",
    r"\b(in|among)(?: the)? data\b": r"\1 the known rows",
    r"(?:\w+(?:Error|Exception|Failed): |The model raised )+": "The model did not answer: ",
}


def titles(space: acex.Space) -> dict[str, str]:
    """Display names of features: "credit score" for `credit_score`, unless two features would have the same one."""
    spaced = {name: " ".join(name.replace("_", " ").split()) or name for name in space.names}
    taken = Counter(spaced.values())
    return {name: title if taken[title] == 1 else name for name, title in spaced.items()}


def templates(space: acex.Space) -> Templates:
    """Templates for sentences on pages."""
    return Templates(words=YES_NO | titles(space))


def page_text(text: str) -> str:
    """A message of the library rephrased for pages, without names of arguments and exceptions."""
    for pattern, words in ON_PAGES.items():
        text = re.sub(pattern, words, text)
    return text


def remarks_json(remarks: Sequence[Remark]) -> list[dict[str, Any]]:
    """Remarks as JSON for pages."""
    return [replace(remark, text=page_text(remark.text), advice="").to_dict() for remark in remarks]


def step_json(step: acex.Step, plan: acex.Plan) -> dict[str, Any]:
    """A step, with the features that differ from the factual."""
    factual = plan.factual
    changed = [f for f in plan.space.features if _differ(step.row[f.name], factual[f.name])]
    names = {} if isinstance(plan.target, Measured) else plan.class_names
    return {
        "position": step.position,
        "label": answer_text(names.get(step.label, step.label)),
        "hit": step.hit,
        "counts": step.is_counterfactual,
        "cost": step.cost,
        "best": None if np.isinf(step.best) else step.best,
        "paid": step.paid,
        "changes": [[f.name, *f.texts(factual[f.name], step.row[f.name])] for f in changed],
    }


def _differ(a: Any, b: Any) -> bool:
    return bool(a != b) and not (is_missing(a) and is_missing(b))


def explanation_json(e: acex.Explanation) -> dict[str, Any]:
    """The current state of an explanation."""
    return {
        "outcome": e.outcome,
        "stopped_by": e.stopped_by,
        "before": None if e.label_before is None else answer_text(e.label_before),
        "sentence": one_sentence(e, templates(e.plan.space)),
        "remarks": remarks_json(e.remarks),
        "answers": [_answer_json(single(e, i)) for i in range(len(e.costs))],
        "excluded": e.ending.excluded,
    }


def _answer_json(e: acex.Explanation) -> dict[str, Any]:
    """The card for the only counterfactual of an explanation."""
    space, size = e.plan.space, e.changes["step"].abs().sum()
    changes = [
        {"feature": c.feature, "before": c.before, "after": c.after, "unit": c.unit, "needed": c.needed}
        | {"places": [c.start, c.end] if c.low else None}
        for c in changes_record(e)
    ]
    return {
        "position": e.ending.counterfactuals[0],
        "kind": e.kinds[0] if e.kinds else None,
        "label": labels_as_text(e)[1],
        "sentence": one_sentence(e, templates(space)),
        "changes": changes,
        "cost": e.costs[0],
        "size": "small" if size < 0.75 else "moderate" if size < 2 else "large",
        "typical": _typical(e),
        "robust": robustness_sentence(e.robustness[0]) if e.robustness else None,
        "row": {f.name: f.text(v) for f, v in zip(space.features, e.counterfactual.tolist(), strict=True)},
    }


def _typical(e: acex.Explanation) -> str:
    """How much the changed row resembles the known ones, in words."""
    if is_reference_row(e):
        return "one of the known rows"
    if not e.affinities:
        return "not checked"
    return "like many known rows" if e.affinities[0] >= TYPICAL else "rather unusual"


def tried(session: acex.Session, rows: pd.DataFrame, answers: Sequence[Answer]) -> acex.Explanation:
    """A row and a what-if version of it as an explanation; `answers` are those of both."""
    plan, (space, X) = session.plan, session.plan.space.reaching(rows)
    problem = session.problem
    likeness = np.ones(len(X)) if problem.density is None else problem.density.affinity(X)
    costs = problem.cost(X)
    steps = []
    for i, (row, answer) in enumerate(zip(rows.itertuples(index=False), answers, strict=True)):
        values, value = dict(zip(space.names, map(plain, row), strict=True)), value_of(answer, plan.target)
        note = Note(i, float(costs[i]), counts=True, affinity=float(likeness[i]))
        purpose = "what if" if i else "factual"
        steps.append(Step(i, values, purpose, value, False, np.inf, 0, None, 0, note, answer.scores))
    return acex.Explanation.of(replace(plan, space=space), all_judged(steps, plan.target))
