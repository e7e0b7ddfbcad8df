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

AT_ONCE = 40  # explanations that one request reads from the ledger; the page asks again for the others
MAX_LINES = 2000  # the newest
QUARTERS = 4  # into which numbers are grouped


class TrackedBatch(Tracked):
    """Rows that are being explained, or were."""

    def __init__(self, total: int) -> None:
        super().__init__("waiting" if total else "ended")
        self.total = total
        self.rows: list[dict[str, Any]] = []

    def receive(self, message: Message) -> None:
        name, data = message
        if name == "row":
            self.rows.append(data)
        super().receive(message)

    def to_json(self) -> dict[str, Any]:
        """Its state."""
        errors = [row["error"] for row in self.rows if row["error"]]
        return {
            "state": self.state,
            "live": self.is_live,
            "total": self.total,
            "done": len(self.rows),
            "paid": sum(row["paid"] for row in self.rows),
            "found": sum(row["outcome"] == "found" for row in self.rows),
            "error": self.error or (errors[-1] if errors else ""),
        }


class ExplanationTable:
    """A line for each explanation of the model; a line is read again only when it has changed."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._lines: dict[tuple[Any, ...], dict[str, Any]] = {}  # by what changes when an explanation does

    def read(self, by: str = "") -> dict[str, Any]:
        """The lines, newest first, how many are still to be read, and a summary."""
        records = self._workspace.ledger.tables.explanations(self._workspace.explainer.model_id)
        records = records[records["asked"] > 0].iloc[::-1].head(MAX_LINES)
        # A row that was only queried by itself is not an explanation.
        records = records[(records["asked"] > 1) | records["finished_at"].notna()]
        with self._lock:
            keys = {(r.id, r.asked, r.finished_at, r.paid): r for r in records.itertuples(index=False)}
            new = [key for key in keys if key not in self._lines]
            self._lines |= {key: self._line(keys[key]) for key in new[:AT_ONCE]}
            self._lines = {key: self._lines[key] for key in keys if key in self._lines}
            lines = list(self._lines.values())
        groups = self._groups(lines, by)
        return {"lines": lines, "pending": len(keys) - len(lines), "groups": groups, "summary": _summary(lines)}

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
        numbers = pd.to_numeric(values, errors="coerce") if feature.is_number else pd.Series()
        if numbers.nunique() > 1:
            quarters, edges = pd.qcut(numbers, QUARTERS, labels=False, retbins=True, duplicates="drop")
            order = [*(f"{feature.text(a)} to {feature.text(b)}" for a, b in pairwise(edges)), "missing"]
            values = quarters.fillna(-1).astype(int).map(lambda quarter: order[quarter])
        members = values.groupby(values).indices
        return [
            {"group": name, **_summary([lines[i] for i in members[name]])}
            for name in dict.fromkeys(order)
            if name in members
        ]


def _summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many lines have an answer, what has to change most often, and what it cost."""
    found = [line for line in lines if line["outcome"] == "found"]
    often = Counter(name for line in found for name, *_ in line["changes"])
    costs = [line["cost"] for line in found]
    return {
        "rows": len(lines),
        "found": len(found),
        "paid": sum(line["paid"] for line in lines),
        "median_cost": float(np.median(costs)) if costs else None,
        "mean_changes": float(np.mean([len(line["changes"]) for line in found])) if found else None,
        "often": [{"feature": name, "share": n / len(found)} for name, n in often.most_common(8)],
    }
