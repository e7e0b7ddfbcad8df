"""What a person takes away: a letter, tables, and code that gives the same explanation elsewhere."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.engine.explanation import single
from acex.options import BY_NAME
from acex.plan.target import Measured, Target
from acex.search.search import as_strategy
from acex.show.sentences import one_sentence, sentences
from acex.space.feature import MISSING, Feature
from acex.spreadsheets import write_csv
from acex.studio.request_parsing import PLAIN, default_cost, search_arguments
from acex.studio.serializers import templates
from acex.studio.workspace import Workspace
from acex.values import as_json

CAVEAT = (
    "This describes how the model decides, not what would happen in the world. It is neither a promise nor advice: a "
    "change made in life may bring other changes with it, and by then the decision may depend on something else."
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
            lines += ["", f"Or it would have been {other.label_after} with these changes:", ""]
            lines += [f"  - {sentence}" for sentence in sentences(other, templates(e.plan.space))]
        lines += ["", "The model itself has confirmed this: it was sent the changed data and gave this answer."]
    return "\n".join([*lines, "", CAVEAT, ""])


def answers_csv(e: acex.Explanation) -> str:
    """The row and its counterfactuals as a table, a line each."""
    rows = pd.concat([e.factual.to_frame().T, e.counterfactuals], ignore_index=True)
    labels = [e.label_before, *(single(e, i).label_after for i in range(len(e.costs)))]
    what = ["as it is", *(f"answer {i + 1}" for i in range(len(e.costs)))]
    head = pd.DataFrame({"acex_row": what, "acex_label": labels, "acex_cost": [0.0, *e.costs]})
    return write_csv(pd.concat([head, rows], axis=1))


# -- code --------------------------------------------------------------------------------------------------------


def python_code(workspace: Workspace, position: int | None, row: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """A script that gives the same explanation."""
    chosen = f"rows.iloc[{position}]" if position is not None else literal({k: as_json(v) for k, v in row.items()})
    given = search_arguments(options)
    if isinstance(target := Target.of(given.get("target")), Measured):
        given["target"] = target
    strategy, defaults = given["strategy"], {name: BY_NAME[name].default for name in given}
    defaults |= {"strategy": as_strategy(defaults["strategy"]), "cost": default_cost(strategy)}
    lines = [f"    {name}={literal(value)},\n" for name, value in given.items() if value != defaults[name]]
    return f"{workspace.setup.python}\ne = explainer.explain(\n    {chosen},\n{''.join(lines)})\nprint(e)\n"


def shell_command(
    workspace: Workspace, position: int | None, row: Mapping[str, Any], options: Mapping[str, Any]
) -> str | None:
    """The command that gives the same explanation; None if there is none."""
    if workspace.setup.shell is None:
        return None
    words, before = ["acex", "explain", *workspace.setup.shell], ""
    if position is not None:
        words += ["--row", str(position)]
    else:
        written = json.dumps({name: as_json(value) for name, value in row.items()}, ensure_ascii=False)
        before = f"printf '%s' {shlex.quote(written)} > row.json\n"
        words += ["--x", "row.json"]
    words += _target_words(options.get("target"))
    words += _repeated("freeze", options.get("freeze") or ())
    for name, way in (options.get("directions") or {}).items():
        words += [f"--{way}", name]
    for option, write in (("ranges", _range_text), ("values", _values_text)):
        limits = options.get(option) or {}
        texts = {name: write(workspace.space.feature(name), limit) for name, limit in limits.items()}
        if None in texts.values():
            return None
        words += _repeated(option, (f"{name}={text}" for name, text in texts.items()))
    words += _repeated("weights", (f"{name}={weight:g}" for name, weight in (options.get("weights") or {}).items()))
    for name in PLAIN:
        words += _repeated(name, [] if options.get(name) is None else [str(options[name])])
    ledger = ' --ledger "$ACEX_LEDGER"' if workspace.setup.ledger_from_environment else ""
    return before + shlex.join(_with_equals(words)) + ledger


def _repeated(name: str, texts: Iterable[str]) -> list[str]:
    """The flag of an option before each text."""
    flag = BY_NAME[name].flag.partition(" ")[0]
    return [word for text in texts for word in (flag, text)]


def _target_words(given: Any) -> list[str]:
    target = Target.of(given)
    if isinstance(target, Measured):
        label = [] if target.label is None else ["--target", str(target.label)]
        return [*label, "--target-range", _target_range(target)]
    return _repeated("target", map(str, getattr(target, "labels", ())))


def _target_range(target: Measured) -> str:
    limit = target.described[target.key]
    if target.key == "between":
        return f"{_number(limit[0])}..{_number(limit[1])}"
    return {"at_least": f"{_number(limit)}..", "at_most": f"..{_number(limit)}", "relative": f"{100 * limit:+.15g}%"}[
        target.key
    ]


def _number(x: float) -> str:
    """The shortest text that is read back as the same number."""
    return str(int(x)) if float(x).is_integer() and abs(x) < 1e15 else repr(float(x))


def _with_equals(words: list[str]) -> list[str]:
    """The words of a command, with "=" between a flag and a value that looks like a flag."""
    out: list[str] = []
    for word in words:
        is_value = bool(out) and out[-1].startswith("--") and "=" not in out[-1]
        if is_value and word.startswith("-") and not word.startswith("--"):
            out[-1] = f"{out[-1]}={word}"
        else:
            out.append(word)
    return out


def _range_text(feature: Feature, limits: Any) -> str:
    write, between = (_number, ":") if feature.is_number else (feature.text, "..")
    return between.join("" if end is None or end in (-np.inf, np.inf) else write(end) for end in limits)


def _values_text(feature: Feature, values: Any) -> str | None:
    texts = [MISSING if v is None else _number(v) if feature.is_number else str(v) for v in values]
    return None if any("|" in text for text in texts) else "|".join(texts)


def literal(value: Any) -> str:
    """A value as Python code; objects of acex as calls with the arguments that are not at their defaults."""
    if is_dataclass(value):
        words = [f"{f.name}={literal(v)}" for f in fields(value) if (v := getattr(value, f.name)) != f.default]
        return f"acex.{type(value).__name__}({', '.join(words)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(literal, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    value = as_json(value)
    return f'float("{value}")' if isinstance(value, float) and np.isinf(value) else repr(value)
