"""Explanations in the ledger as a table, whether this studio, another one or `acex batch` made them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd

import acex
from acex.engine.explanation import changes_as_text, labels_as_text
from acex.studio.searches import Tracked
from acex.studio.worker_pool import Message
from acex.studio.workspace import Workspace
from acex.values import answer_text

AT_ONCE = 40  # explanations that are read from the ledger for one request; the page asks again for the others
MAX_LINES = 2000  # the newest
QUARTERS = 4  # into which numbers are grouped


class TrackedBatch(Tracked):
    """The batch that is running, or the last one that was."""

    def __init__(self) -> None:
        super().__init__()
        self.begin(0)
        self.state = "ended"

    def begin(self, total: int) -> None:
        """Start counting: so many rows are about to be explained."""
        self.state, self.error = "waiting", ""
        self.total, self.done, self.paid, self.found = total, 0, 0, 0

    def receive(self, message: Message) -> None:
        name, data = message
        if name == "row":
            self.done += 1
            self.paid += data["paid"]
            self.found += data["outcome"] == "found"
            self.error = data["error"] or self.error
        super().receive(message)

    def to_json(self) -> dict[str, Any]:
        """Its state."""
        names = ("state", "total", "done", "paid", "found", "error")
        return {name: getattr(self, name) for name in names} | {"live": self.is_live}


class ExplanationTable:
    """A line for each explanation of the model; a line is read again only when it has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._lines: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def read(self, by: str = "") -> dict[str, Any]:
        """The lines, newest first, how many are still to be read, and a summary."""
        ledger, model = self._workspace.ledger, self._workspace.explainer.model_id
        with self._lock:
            records = ledger.tables.explanations(model)
            records = records[records["asked"] > 0].iloc[::-1].head(MAX_LINES)
            # A row that was only queried by itself is not an explanation.
            records = records[(records["asked"] > 1) | records["finished_at"].notna()]
            lines, pending, fresh = [], 0, 0
            for line in records.itertuples(index=False):
                mark = (line.asked, line.finished_at, line.paid)
                known = self._lines.get(str(line.id))
                if known is None or known[0] != mark:
                    if fresh >= AT_ONCE:
                        pending += 1
                        continue
                    fresh += 1
                    known = self._lines[str(line.id)] = (mark, self._line(line))
                lines.append(known[1])
        return {"lines": lines, "pending": pending, "groups": self._groups(lines, by), "summary": _summary(lines)}

    def _line(self, record: Any) -> dict[str, Any]:
        factual = json.loads(record.factual)
        out: dict[str, Any] = {
            "id": record.id,
            "position": self._workspace.position_of(factual),
            "row": {name: "" if value is None else str(value) for name, value in factual.items()},
            "outcome": "unfinished" if record.finished_at is None else record.outcome,
            "before": None,
            "after": None,
            "cost": None,
            "changes": [],
            "paid": int(record.paid),
        }
        try:
            e = acex.load_explanation(self._workspace.ledger, record.id)
        except ValueError:  # no answer yet
            return out
        out |= {"before": answer_text(e.label_before), "outcome": out["outcome"] if not e.costs else "found"}
        if e.costs:
            out["before"], out["after"] = labels_as_text(e)
            out["cost"] = e.costs[0]
            out["changes"] = [list(change[:3]) for change in changes_as_text(e, 0)]
        return out

    def _groups(self, lines: Sequence[dict[str, Any]], by: str) -> list[dict[str, Any]]:
        """A summary of the rows with each value of a feature; numbers are grouped by quartile."""
        if by not in self._workspace.space.names or not lines:
            return []
        feature = self._workspace.space.feature(by)
        values = pd.Series([line["row"][by] for line in lines])
        order = sorted(set(values))
        numbers = pd.to_numeric(values, errors="coerce").to_numpy() if feature.is_number else np.array([])
        known = numbers[~np.isnan(numbers)]
        edges = np.unique(np.quantile(known, np.linspace(0, 1, QUARTERS + 1))) if len(known) else known
        if len(edges) > 2:
            names = [f"{feature.text(a)} to {feature.text(b)}" for a, b in pairwise(edges)]
            positions = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
            values = pd.Series(
                ["missing" if np.isnan(x) else names[i] for x, i in zip(numbers, positions, strict=True)]
            )
            order = [*names, "missing"]
        members = {name: [line for line, value in zip(lines, values, strict=True) if value == name] for name in order}
        return [{"group": name, **_summary(mine)} for name, mine in members.items() if mine]


def _summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How lines ended, what has to change most often, and what it cost."""
    found = [line for line in lines if line["outcome"] == "found"]
    often = Counter(name for line in found for name, *_ in line["changes"])
    costs = [line["cost"] for line in found]
    return {
        "rows": len(lines),
        "outcomes": dict(Counter(line["outcome"] for line in lines)),
        "found": len(found),
        "paid": sum(line["paid"] for line in lines),
        "median_cost": float(np.median(costs)) if costs else None,
        "mean_changes": float(np.mean([len(line["changes"]) for line in found])) if found else None,
        "often": [{"feature": name, "rows": n, "share": n / len(found)} for name, n in often.most_common(8)],
    }
