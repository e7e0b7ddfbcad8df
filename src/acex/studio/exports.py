"""What a person takes along: a letter, tables, and the commands that give the same result elsewhere."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.engine.explanation import single
from acex.plan.target import Measured, Target
from acex.show.sentences import one_sentence, sentences
from acex.space.feature import MISSING
from acex.spreadsheets import write_csv
from acex.studio.serializers import templates
from acex.studio.workspace import Desk
from acex.values import as_json, plain

CAVEAT = (
    "This says how the model decides, not what would happen in the world. It is no promise and no advice: a change "
    "made in life may bring other changes with it, and the decision may rest on something else by then."
)


def letter(e: acex.Explanation) -> str:
    """The answer as a letter: plain text, ready to be edited."""
    lines = [f"The decision is: {e.label_before}.", ""]
    if e.outcome != "found":
        lines += [one_sentence(e, templates(e.plan.space))]
    else:
        lines += [f"It would have been {e.label_after} with the following changes, and everything else as it is:", ""]
        lines += [f"  - {sentence}" for sentence in sentences(e, templates(e.plan.space))]
        for i in range(1, len(e.costs)):
            other = single(e, i)
            lines += ["", f"Or it would have been {other.label_after} like this:", ""]
            lines += [f"  - {sentence}" for sentence in sentences(other, templates(e.plan.space))]
        lines += ["", "The model itself has confirmed this: it was shown the changed data and gave this answer."]
    return "\n".join([*lines, "", CAVEAT, ""])


def answers_csv(e: acex.Explanation) -> str:
    """The row and its counterfactuals as a table, a line each."""
    rows = pd.concat([e.factual.to_frame().T, e.counterfactuals], ignore_index=True)
    labels = [e.label_before, *(single(e, i).label_after for i in range(len(e.costs)))]
    what = ["as it is", *(f"answer {i + 1}" for i in range(len(e.costs)))]
    head = pd.DataFrame({"acex_row": what, "acex_label": labels, "acex_cost": [0.0, *e.costs]})
    return write_csv(pd.concat([head, rows], axis=1))


def steps_csv(e: acex.Explanation) -> str:
    """Every row that was asked, as a table."""
    return write_csv(e.trace)


def python_code(desk: Desk, position: int | None, row: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """A script that gives the same result."""
    chosen = f"rows.iloc[{position}]" if position is not None else _literal({k: as_json(v) for k, v in row.items()})
    said = {name: _literal(value) for name, value in _said(options).items()}
    if isinstance(target := Target.of(options.get("target")), Measured):
        said["target"] = f"acex.{target!r}"
    arguments = "".join(f"    {name}={value},\n" for name, value in said.items())
    return f"{desk.recipe.python}\ne = explainer.explain(\n    {chosen},\n{arguments})\nprint(e)\n"


def shell_command(desk: Desk, position: int | None, row: Mapping[str, Any], options: Mapping[str, Any]) -> str | None:
    """The command that gives the same result; None where there is none."""
    if desk.recipe.shell is None:
        return None
    words = ["acex", "explain", *desk.recipe.shell]
    before = ""
    if position is not None:
        words += ["--row", str(position)]
    else:
        told = json.dumps({name: as_json(value) for name, value in row.items()}, ensure_ascii=False)
        before = f"printf '%s' {shlex.quote(told)} > row.json\n"
        words += ["--x", "row.json"]
    said = _said(options)
    words += _target_words(said.get("target"))
    for name in said.get("freeze", ()):
        words += ["--freeze", name]
    for name, way in said.get("directions", {}).items():
        words += [f"--{way}", name]
    for name, limits in said.get("ranges", {}).items():
        text = _limits_text(desk.space.feature(name), limits)
        if text is None:
            return None
        words += ["--range", f"{name}={text}"]
    for name, weight in said.get("weights", {}).items():
        words += ["--weight", f"{name}={weight:g}"]
    plain_ones = ("margin", "max_changes", "effort", "budget", "count")
    words += [w for name in plain_ones if name in said for w in (f"--{name.replace('_', '-')}", str(said[name]))]
    return before + shlex.join(_apart(words)) + (' --ledger "$ACEX_LEDGER"' if desk.recipe.environment else "")


def _target_words(said: Any) -> list[str]:
    """What is wanted, as a command says it."""
    target = Target.of(said)
    if isinstance(target, Measured):
        label = [] if target.label is None else ["--target", str(target.label)]
        return [*label, "--target-range", _range_text(target)]
    return [word for label in getattr(target, "labels", ()) for word in ("--target", str(label))]


def _range_text(target: Measured) -> str:
    wish = target.said[target.key]
    if target.key == "between":
        return f"{_number(wish[0])}..{_number(wish[1])}"
    return {"at_least": f"{_number(wish)}..", "at_most": f"..{_number(wish)}", "relative": f"{100 * wish:+.15g}%"}[
        target.key
    ]


def _number(x: float) -> str:
    """As short as it can be read back."""
    return str(int(x)) if float(x).is_integer() and abs(x) < 1e15 else repr(float(x))


def _apart(words: list[str]) -> list[str]:
    """Words of a command; a value that looks like an option is tied to its own."""
    out: list[str] = []
    for word in words:
        is_value = bool(out) and out[-1].startswith("--") and "=" not in out[-1]
        if is_value and word.startswith("-") and not word.startswith("--"):
            out[-1] = f"{out[-1]}={word}"
        else:
            out.append(word)
    return out


def _limits_text(feature: Any, limits: Any) -> str | None:
    if list(limits) == [None]:
        return MISSING
    if feature.is_number:
        low, high = ("" if not np.isfinite(end) else _number(end) for end in limits)
        return f"{low}:{high}"
    if not hasattr(feature, "categories"):
        return "..".join("" if end is None else feature.text(end) for end in limits)
    texts = [str(category) for category in limits]
    return None if any("|" in text for text in texts) else "|".join(texts)


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """The wishes that say something."""
    usual = {"count": 1, "queries_per_round": 1, "seed": 0, "strategy": "feasible", "effort": "settle"}
    usual |= {"noise": 0, "confirm": 3}
    told = {name: value for name, value in options.items() if value not in (None, [], {}, ())}
    return {name: value for name, value in told.items() if usual.get(name) != value}


def _literal(value: Any) -> str:
    """A value as Python is given it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(_literal(v) for v in value)
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    value = plain(value)
    if isinstance(value, float) and np.isinf(value):
        return f'float("{value}")'
    return repr(value)
