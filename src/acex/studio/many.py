"""Explanations of the ledger as a table, whoever made them: this studio, another one, or `acex batch` in a shell."""

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
from acex.studio.jobs import Message
from acex.studio.searches import LIVE, Feed, State
from acex.studio.worker_pool import Task
from acex.studio.workspace import Desk
from acex.values import answer_text

AT_ONCE = 40  # explanations that are read from the ledger for one answer; the page asks again for the others
MOST_LINES = 2000  # the newest
QUARTERS = 4  # into which numbers are grouped


class Batch(Feed):
    """Many rows in work, or the last ones that were."""

    def __init__(self) -> None:
        super().__init__()
        self.state: State = "ended"
        self.total = self.done = self.paid = self.found = 0
        self.error = ""
        self.task: Task | None = None

    def begin(self, total: int) -> None:
        """So many rows are about to be explained."""
        self.state, self.total, self.done, self.paid, self.found, self.error = "waiting", total, 0, 0, 0, ""

    def take(self, message: Message) -> None:
        """What the process that works on it says."""
        name, data = message
        if name == "row":
            if self.state == "waiting":
                self.state = "running"
            self.done += 1
            self.paid += data["paid"]
            self.found += data["outcome"] == "found"
            self.error = data["error"] or self.error
        elif name in ("ended", "stopped"):
            self.state = "ended" if name == "ended" else "stopped"
        elif name == "failed":
            self.state, self.error = "failed", data
        self.stir()

    def told(self) -> dict[str, Any]:
        """Where it stands."""
        names = ("state", "total", "done", "paid", "found", "error")
        return {name: getattr(self, name) for name in names} | {"live": self.state in LIVE}


class Table:
    """A line for each explanation of the model; what has not changed is read once."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._lock = Lock()
        self._lines: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def read(self, by: str = "") -> dict[str, Any]:
        """The lines there are, newest first, how many are still to be read, and what they have in common."""
        ledger, model = self._desk.ledger, self._desk.explainer.model_id
        with self._lock:
            records = ledger.tables.explanations(model)
            records = records[records["asked"] > 0].iloc[::-1].head(MOST_LINES)
            # A row that was only looked up is no explanation.
            records = records[(records["asked"] > 1) | records["finished_at"].notna()]
            lines, pending = [], 0
            fresh = 0
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
        told: dict[str, Any] = {
            "id": record.id,
            "position": self._position(factual),
            "row": {name: "" if value is None else str(value) for name, value in factual.items()},
            "outcome": "unfinished" if record.finished_at is None else record.outcome,
            "before": None,
            "after": None,
            "cost": None,
            "changes": [],
            "paid": int(record.paid),
            "started": record.started_at,
        }
        try:
            e = acex.recorded(self._desk.ledger, record.id)
        except ValueError:  # no answer yet
            return told
        told |= {"before": answer_text(e.label_before), "outcome": told["outcome"] if not e.costs else "found"}
        if e.costs:
            told["before"], told["after"] = labels_as_text(e)
            told["cost"] = e.costs[0]
            told["changes"] = [list(change[:3]) for change in changes_as_text(e, 0)]
        return told

    def _position(self, factual: dict[str, Any]) -> int | None:
        text = json.dumps(list(factual.values()))
        form = json.dumps([int(v) if isinstance(v, float) and v.is_integer() else v for v in json.loads(text)])
        return self._desk.places.get(form)

    def _groups(self, lines: Sequence[dict[str, Any]], by: str) -> list[dict[str, Any]]:
        """What came of rows with the same value of a feature; of numbers, in quarters."""
        if by not in self._desk.space.names or not lines:
            return []
        feature = self._desk.space.feature(by)
        values = pd.Series([line["row"][by] for line in lines])
        if feature.is_number:
            numbers = pd.to_numeric(values, errors="coerce")
            edges = np.unique(numbers.quantile(np.linspace(0, 1, QUARTERS + 1)).dropna().to_numpy())
            if len(edges) > 2:
                cut = np.clip(np.searchsorted(edges, numbers.to_numpy(), side="right") - 1, 0, len(edges) - 2)
                missing = numbers.isna().to_numpy()
                names = [f"{feature.text(a)} to {feature.text(b)}" for a, b in pairwise(edges)]
                told = ["missing" if m else names[i] for i, m in zip(cut, missing, strict=True)]
                values, order = pd.Series(told), [*names, "missing"]
            else:
                order = sorted(set(values))
        else:
            order = sorted(set(values))
        out = []
        for name in order:
            mine = [line for line, value in zip(lines, values, strict=True) if value == name]
            if mine:
                out.append({"group": name, **_summary(mine)})
        return out


def _summary(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What lines have in common: how they ended, what has to change most often, and what it cost."""
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
