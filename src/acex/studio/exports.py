"""Downloads: documents, and a script that reproduces the explanation elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import acex
from acex.options import BY_NAME, Options, search_arguments
from acex.plan.target import Measured, Target
from acex.search.search import as_strategy
from acex.show.notice import LISTS, notice_page
from acex.show.report import explanation_page
from acex.spreadsheets import write_csv
from acex.studio.serializers import YES_NO, titles
from acex.studio.workspace import Workspace
from acex.values import as_json


def _notice(e: acex.Explanation, _: Workspace, given: Mapping[str, str]) -> str:
    fields = {name: text.splitlines() if name in LISTS else text for name, text in given.items()}
    return notice_page(e, fields | {"words": YES_NO | titles(e.plan.space)})


# By file name; the mapping passed to each function contains the fields of a notice.
EXPORTS: dict[str, Callable[[acex.Explanation, Workspace, Mapping[str, str]], str]] = {
    "report.html": lambda e, workspace, _: explanation_page(e, price_per_row=workspace.price_per_row),
    "notice.html": _notice,
    "counterfactuals.csv": lambda e, *_: write_csv(e.counterfactuals),
    "queries.csv": lambda e, *_: write_csv(e.trace),
    "explanation.json": lambda e, *_: e.to_json(),
}


def python_code(workspace: Workspace, position: int | None, row: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """A script that reproduces the explanation."""
    chosen = f"rows.iloc[{position}]" if position is not None else literal({k: as_json(v) for k, v in row.items()})
    given = search_arguments(options)
    if isinstance(target := Target.of(given.get("target")), Measured):
        given["target"] = target
    strategy, defaults = given["strategy"], {name: BY_NAME[name].default for name in given}
    defaults |= {"strategy": as_strategy(defaults["strategy"]), "cost": Options(strategy=strategy).cost_or_default}
    lines = [f"    {name}={literal(value)},\n" for name, value in given.items() if value != defaults[name]]
    return f"{workspace.setup}\ne = explainer.explain(\n    {chosen},\n{''.join(lines)})\nprint(e)\n"


def literal(value: Any) -> str:
    """A value as Python code; dataclasses of acex as calls with the arguments that differ from the defaults."""
    if is_dataclass(value):
        words = [f"{f.name}={literal(v)}" for f in fields(value) if (v := getattr(value, f.name)) != f.default]
        return f"acex.{type(value).__name__}({', '.join(words)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k!r}: {literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(literal, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' if len(value) == 1 else ''})"
    return repr(as_json(value))
